/* Tests of the buffered virtual file: random reads and seeks return the bytes of the file, or of a header and a part of
 * the file. */
#include "files.h"

#include "libgpuconv/audio/buffered_io.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { SIZE = 20011, STEPS = 20000 };

static unsigned char bytes[SIZE];

static int open_bytes(void) {
    const char *path = files_path("bytes");
    int fd = open(path, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0666);
    assert_true(fd >= 0);
    for (int i = 0; i < SIZE; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 256 * 13);
    assert_int_equal(write(fd, bytes, SIZE), SIZE);
    return fd;
}

/* Performs random reads and seeks on a virtual file and compares every byte with `want_bytes`. */
static void compare(gc_buffered_io *f, const unsigned char *want_bytes, int64_t size) {
    static unsigned char got[SIZE];
    uint32_t state = 1;
    int64_t at = 0;
    SF_VIRTUAL_IO *io = gc_buffered_io_callbacks();
    assert_int_equal(io->get_filelen(f), size);
    for (int step = 0; step < STEPS; step++) {
        state = state * 1664525u + 1013904223u;
        const uint32_t kind = state >> 30, number = state >> 8 & 0x3fffff;
        const int64_t most[] = {8, 700, 5000}, want = kind == 3 ? 0 : number % most[kind];
        if (kind == 3) {
            at = number % (size + 50); /* also beyond the end */
            const int whence = number & 1 ? SEEK_SET : number & 2 ? SEEK_CUR : SEEK_END;
            const int64_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? io->tell(f) : size;
            assert_int_equal(io->seek(at - from, whence, f), at);
        }
        const int64_t available = at < size ? size - at : 0, expected = want < available ? want : available;
        assert_int_equal(io->read(got, want, f), expected);
        CHECK(memcmp(got, want_bytes + at, (size_t)expected) == 0, "step %d: %lld bytes at %lld differ", step,
              (long long)expected, (long long)at);
        at += expected;
        assert_int_equal(io->tell(f), at);
    }
    assert_int_equal(io->seek(-1, SEEK_SET, f), -1);
    assert_int_equal(f->err, 0);
}

/* Compares a virtual file that begins at byte `begin`. */
static void check_random_access(int64_t begin) {
    int fd = open_bytes();
    gc_buffered_io f;
    lseek(fd, begin, SEEK_SET);
    gc_buffered_io_begin(&f, fd, SIZE);
    compare(&f, bytes + begin, SIZE - begin);
    close(fd);
}

static void a_header_replaces_that_of_the_file(void **state) {
    (void)state;
    enum { HEAD = 1234, BEGIN = 70, FROM = 3000, SAMPLES = 9001 };
    static unsigned char head[HEAD], all[HEAD + SAMPLES], got[8];
    for (int begin = 0; begin <= BEGIN; begin += BEGIN) {
        int fd = open_bytes();
        gc_buffered_io f;
        for (int i = 0; i < HEAD; i++)
            head[i] = (unsigned char)(i * 31);
        memcpy(all, head, HEAD);
        memcpy(all + HEAD, bytes + begin + FROM, SAMPLES);
        lseek(fd, begin, SEEK_SET);
        gc_buffered_io_begin(&f, fd, SIZE);
        assert_int_equal(gc_buffered_io_callbacks()->read(got, sizeof got, &f), sizeof got); /* fills the buffer */
        gc_buffered_io_set_header(&f, head, HEAD, FROM, SAMPLES);
        compare(&f, all, HEAD + SAMPLES);
        close(fd);
    }
}

static void random_access_returns_the_files_bytes(void **state) {
    (void)state;
    check_random_access(0);
}

static void a_file_begins_at_the_descriptors_position(void **state) {
    (void)state;
    check_random_access(4099);
}

static void a_failed_read_stores_its_error(void **state) {
    (void)state;
    int fd = open(files_path("."), O_RDONLY | O_CLOEXEC);
    gc_buffered_io f;
    char got[16];
    gc_buffered_io_begin(&f, fd, 100);
    assert_int_equal(gc_buffered_io_callbacks()->read(got, sizeof got, &f), 0);
    assert_int_equal(f.err, EISDIR);
    close(fd);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_access_returns_the_files_bytes),
        cmocka_unit_test(a_file_begins_at_the_descriptors_position),
        cmocka_unit_test(a_header_replaces_that_of_the_file),
        cmocka_unit_test(a_failed_read_stores_its_error),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
