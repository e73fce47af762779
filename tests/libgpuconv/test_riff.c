/* Tests of the header that libsndfile is given for a WAV: valid metadata from in front of and behind the samples, true
 * sizes, and nothing of damaged chunks. */
#include "check.h"
#include "libgpuconv/audio/extent.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM = 200000 };

/* A file in memory; `length` may be larger than what was written: the rest is zero. */
typedef struct file {
    unsigned char bytes[ROOM];
    int64_t count;
} file;

static void put(file *f, const char *bytes, int64_t count) {
    memcpy(f->bytes + f->count, bytes, (size_t)count);
    f->count += count;
}

static void put_32(file *f, uint32_t value) {
    for (int i = 0; i < 4; i++)
        f->bytes[f->count++] = (unsigned char)(value >> 8 * i);
}

/* Appends the name and the size of a chunk. */
static void put_head(file *f, const char *name, uint32_t size) {
    put(f, name, 4);
    put_32(f, size);
}

static void put_chunk(file *f, const char *name, const char *text) {
    put_head(f, name, (uint32_t)strlen(text));
    put(f, text, (int64_t)strlen(text));
    f->count += (int64_t)(strlen(text) & 1);
}

/* Appends a format: 16 bit PCM, 48 kHz, mono. */
static void put_format(file *f) {
    put_head(f, "fmt ", 16);
    put(f, "\1\0\1\0\200\273\0\0\0\167\1\0\2\0\20\0", 16);
}

static void begin(file *f, const char *name) {
    memset(f, 0, sizeof *f);
    put_head(f, name, 1000);
    put(f, "WAVE", 4);
}

static int64_t read_file(void *data, int64_t at, void *bytes, int64_t count) {
    const int64_t got = at >= ROOM ? 0 : at + count > ROOM ? ROOM - at : count;
    if (got > 0)
        memcpy(bytes, ((file *)data)->bytes + at, (size_t)got);
    return got;
}

/* Parses the file, whose size is its count or `length`. Its header must be freed. */
static gc_riff parse(file *f, int64_t length) {
    gc_riff riff;
    const gc_riff_input in = {.read = read_file, .file = f, .length = length};
    assert_true(gc_riff_parse(&in, &riff));
    return riff;
}

/* Compares a header with the bytes of `want`, whose data chunk states `bytes`, and frees it. */
static void check_header(gc_riff *riff, file *want, uint32_t bytes) {
    put_head(want, "data", bytes);
    const int64_t count = want->count;
    want->count = 4;
    put_32(want, (uint32_t)count - 8 + bytes);
    assert_int_equal(riff->header_bytes, count);
    assert_memory_equal(riff->header, want->bytes, (size_t)count);
    free(riff->header);
}

static file a, want; /* too large for the stack */

static void metadata_in_front_and_behind_is_kept_and_the_rest_is_not(void **state) {
    (void)state;
    begin(&a, "RIFF");
    put_chunk(&a, "junk", "odd");
    put_format(&a);
    put_chunk(&a, "fact", "1234abcd");
    put_head(&a, "bext", 602);
    a.count += 602;
    put_head(&a, "bext", 10); /* too short for libsndfile */
    a.count += 10;
    put_head(&a, "data", 7);
    const int64_t samples = a.count;
    a.count += 8;
    put_head(&a, "LIST", 4 + 8 + 6);
    put(&a, "INFO", 4);
    put_chunk(&a, "INAM", "Title.");
    gc_riff riff = parse(&a, a.count);
    assert_int_equal(riff.begin, samples);
    assert_int_equal(riff.bytes, 7);
    assert_true(riff.has_fixed_frames);

    begin(&want, "RIFF");
    put_format(&want);
    put_chunk(&want, "fact", "1234");
    put_head(&want, "bext", 602);
    want.count += 602;
    put_head(&want, "LIST", 4 + 8 + 6);
    put(&want, "INFO", 4);
    put_chunk(&want, "INAM", "Title.");
    check_header(&riff, &want, 7);
}

static void a_list_is_kept_up_to_its_first_damaged_chunk(void **state) {
    (void)state;
    begin(&a, "RIFF");
    put_format(&a);
    put_head(&a, "LIST", 4 + 2 * (8 + 4) + 8 + 3000 + 12 + 20);
    put(&a, "INFO", 4);
    put_chunk(&a, "INAM", "abc");
    put_chunk(&a, "labl", "1234"); /* belongs to another type of list */
    put_head(&a, "ICMT", 3000);    /* too long for libsndfile */
    a.count += 3000;
    put_chunk(&a, "IART", "1234");
    put_head(&a, "IART", 0xfffffff7); /* makes libsndfile go back for ever */
    a.count += 12;
    put_head(&a, "LIST", 4 + 8 + 4);
    put(&a, "adtl", 4);
    put_chunk(&a, "labl", "1234"); /* without a text */
    put_head(&a, "data", 20);
    gc_riff riff = parse(&a, a.count + 20);

    begin(&want, "RIFF");
    put_format(&want);
    put_head(&want, "LIST", 4 + 2 * (8 + 4));
    put(&want, "INFO", 4);
    put_head(&want, "INAM", 4);
    put(&want, "abc\0", 4);
    put_chunk(&want, "IART", "1234");
    check_header(&riff, &want, 20);
}

static void behind_a_damaged_chunk_the_samples_are_searched(void **state) {
    (void)state;
    static const char *const damaged[] = {"LIST\377\377\377\177", "\1\2\3\4\0\0\0\0", "RIFFdat"};
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        begin(&a, "RIFF");
        put_format(&a);
        put(&a, damaged[i], i == 2 ? 7 : 8);
        a.count += 5000; /* the name lies across two blocks of the search */
        put_head(&a, "data", 4);
        gc_riff riff = parse(&a, a.count + 4);
        assert_int_equal(riff.begin, a.count);
        begin(&want, "RIFF");
        put_format(&want);
        check_header(&riff, &want, 4);
        riff = parse(&a, -1);
        assert_int_equal(riff.begin, 0); /* a stream is not searched */
        free(riff.header);
    }
}

static void without_a_format_there_are_no_samples(void **state) {
    (void)state;
    begin(&a, "RIFF");
    put_head(&a, "data", 4);
    gc_riff riff = parse(&a, a.count + 4);
    assert_int_equal(riff.begin, 0);
    assert_int_equal(riff.header_bytes, 12);
    free(riff.header);
    riff = parse(&a, 11);
    assert_int_equal(riff.begin, 0);
    free(riff.header);
    begin(&a, "OggS");
    riff = parse(&a, a.count);
    assert_null(riff.header);
}

static void an_unknown_length_ends_with_the_file(void **state) {
    (void)state;
    static const uint32_t unknown[] = {0xffffffff, 0x7ffff000};
    for (int i = 0; i < 2; i++) {
        begin(&a, "RIFF");
        put_format(&a);
        put_head(&a, "data", unknown[i]);
        gc_riff riff = parse(&a, a.count + 3000);
        assert_int_equal(riff.bytes, 3000);
        begin(&want, "RIFF");
        put_format(&want);
        check_header(&riff, &want, 3000);
        riff = parse(&a, -1);
        assert_int_equal(riff.bytes, -1);
        free(riff.header);
        riff = parse(&a, INT64_C(5) << 30); /* more than a size of 32 bits */
        assert_int_equal(riff.bytes, (INT64_C(5) << 30) - a.count);
        assert_memory_equal(riff.header + 4, "\10\0\0\0", 4);
        assert_memory_equal(riff.header + riff.header_bytes - 4, "\0\0\0\0", 4);
        free(riff.header);
    }
}

static void sizes_of_64_bits_are_read_and_written(void **state) {
    (void)state;
    static const char *const names[] = {"RF64", "BW64"};
    for (int i = 0; i < 2; i++) {
        begin(&a, names[i]);
        put_head(&a, "ds64", 28);
        put(&a, "\0\0\0\0\2\0\0\0\0\0\0\0\1\0\0\0", 16); /* 2^33 and 2^32 */
        a.count += 12;
        put_format(&a);
        put_head(&a, "data", 0xffffffff);
        gc_riff riff = parse(&a, INT64_C(9) << 30);
        assert_int_equal(riff.bytes, INT64_C(1) << 32);
        assert_memory_equal(riff.header, "RF64\377\377\377\377WAVEds64\34\0\0\0", 20);
        assert_memory_equal(riff.header + 28, "\0\0\0\0\1\0\0\0", 8);
        assert_memory_equal(riff.header + riff.header_bytes - 8, "data\377\377\377\377", 8);
        free(riff.header);
    }
}

static void big_endian_sizes_are_read_and_written(void **state) {
    (void)state;
    begin(&a, "RIFX");
    put(&a, "fmt \0\0\0\20\0\1\0\1\0\0\273\200\0\1\167\0\0\2\0\20data\0\0\0\6", 32);
    gc_riff riff = parse(&a, a.count + 6);
    assert_int_equal(riff.bytes, 6);
    assert_true(riff.has_fixed_frames);
    assert_memory_equal(riff.header, "RIFX\0\0\0\52", 8);
    assert_memory_equal(riff.header + 12, a.bytes + 12, 32);
    free(riff.header);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metadata_in_front_and_behind_is_kept_and_the_rest_is_not),
        cmocka_unit_test(a_list_is_kept_up_to_its_first_damaged_chunk),
        cmocka_unit_test(behind_a_damaged_chunk_the_samples_are_searched),
        cmocka_unit_test(without_a_format_there_are_no_samples),
        cmocka_unit_test(an_unknown_length_ends_with_the_file),
        cmocka_unit_test(sizes_of_64_bits_are_read_and_written),
        cmocka_unit_test(big_endian_sizes_are_read_and_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
