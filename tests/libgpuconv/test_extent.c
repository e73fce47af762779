/* Tests that no frame is lost without a word: every container and encoding that libsndfile writes, cut at 50 places and
 * damaged in every field that states a length, gives all frames, an error, or a note; and that every excerpt of it is,
 * bit for bit, a part of the whole. */
#include "files.h"

#include "gpuconv.h"
#include "libgpuconv/audio/file.h"

#include <math.h>
#include <unistd.h>

enum { FRAMES = 24000, CUTS = 50, EXCERPTS = 24, CHANNELS_MOST = 2, FILE_MOST = 1 << 20, SHORT = 3000 };

/* Frames that a file of coded blocks may give more if it does not state how many of its last block are its own. */
enum { BLOCK = 330 };

static int formats, cuts, damages, silent, excerpts, different;

static void write_bytes(const char *path, const unsigned char *bytes, size_t size) {
    unlink(path);
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(bytes, 1, size, f) == size && fclose(f) == 0, "%s cannot be written", path);
}

static size_t read_bytes(const char *path, unsigned char *bytes) {
    FILE *f = fopen(path, "rb");
    CHECK(f, "%s cannot be read", path);
    const size_t size = fread(bytes, 1, FILE_MOST, f);
    fclose(f);
    CHECK(size < FILE_MOST, "%s is too long for the test", path);
    return size;
}

/* Writes a tone with noise. Returns false if libsndfile does not write the format. */
static bool write_sound(const char *path, int format, int channels, int rate, int64_t frames) {
    static float samples[FRAMES * CHANNELS_MOST];
    SF_INFO info = {.format = format, .channels = channels, .samplerate = rate};
    SNDFILE *file = sf_format_check(&info) ? sf_open(path, SFM_WRITE, &info) : NULL;
    if (!file)
        return false;
    oracle_random random = {.state = (uint64_t)format};
    for (int64_t i = 0; i < frames * channels; i++)
        samples[i] = (float)(0.4 * sin(0.03 * (double)i + 1e-6 * (double)(i * i)) +
                             0.1 * ((double)oracle_below(&random, 2001) / 1000 - 1));
    const bool ok = sf_writef_float(file, samples, frames) == frames;
    return sf_close(file) == 0 && ok;
}

/* Reads a file as a job does. Returns its frames; -1: it is refused, or a note says what is missing. */
static int64_t read_all(const char *path, float *samples, int64_t most) {
    gc_reader *reader;
    gpuconv_error error = {0};
    if (gc_reader_new(path, &reader, &error))
        return -1;
    static float block[4096 * 64];
    const int channels = gc_reader_info(reader)->channels;
    int64_t frames = 0, got = 1;
    gpuconv_status status = channels <= 64 ? GPUCONV_OK : GPUCONV_ERROR_FORMAT;
    while (!status && got > 0 && frames < most) {
        status = gc_reader_read_floats(reader, block, 4096, &got, &error);
        if (samples && frames + got <= most)
            memcpy(samples + frames * channels, block, (size_t)(got * channels) * sizeof *block);
        frames += got;
    }
    if (!status)
        status = gc_reader_check_end(reader, &error);
    const bool noted = *gc_reader_note(reader) != '\0';
    gc_reader_free(reader);
    return status || noted ? -1 : frames;
}

/* ---- Lengths ----------------------------------------------------------------------------------------------------- */

static void check_not_silent(const char *name, const char *how, size_t at, int64_t frames, int64_t all) {
    if (frames < 0 || (frames >= all && frames < all + BLOCK))
        return;
    silent++;
    printf("%s, %s %zu: %lld of %lld frames without a word\n", name, how, at, (long long)frames, (long long)all);
}

/* Returns whether libsndfile writes a format without a field that says where its samples end. */
static bool states_nothing(int format) {
    const int container = format & SF_FORMAT_TYPEMASK;
    return container == SF_FORMAT_IRCAM || container == SF_FORMAT_PVF || container == SF_FORMAT_PAF ||
           container == SF_FORMAT_XI;
}

static uint64_t number(const unsigned char *at, int bytes, bool big) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << 8 * (big ? bytes - 1 - i : i);
    return value;
}

/* Returns whether a number in a header is the size of the file, of its samples, or their count. */
static bool is_length(uint64_t value, size_t size, int64_t frames, int channels) {
    const uint64_t near[] = {size, (uint64_t)frames, (uint64_t)(frames * channels)};
    for (int i = 0; i < COUNT(near); i++)
        if (value + 64 >= near[i] && value <= near[i] + 32)
            return true;
    return false;
}

static void damage_lengths(const char *name, const unsigned char *good, size_t size, int64_t all, int channels) {
    static unsigned char bytes[FILE_MOST];
    const size_t header = size < 160 ? size : 160;
    for (int width = 2; width <= 8; width *= 2)
        for (int big = 0; big < 2; big++)
            for (size_t at = 0; at + 8 < header; at += 2) {
                const uint64_t value = number(good + at, width, big);
                if (!is_length(value, size, all, channels))
                    continue;
                const uint64_t others[] = {0,         1,          value / 2, value - 2000, value + 2000,
                                           2 * value, UINT64_MAX, 0x7fffffff};
                for (int k = 0; k < COUNT(others); k++) {
                    memcpy(bytes, good, size);
                    for (int i = 0; i < width; i++)
                        bytes[at + (size_t)(big ? width - 1 - i : i)] = (unsigned char)(others[k] >> 8 * i);
                    write_bytes(files_path("damaged"), bytes, size);
                    check_not_silent(name, "a length at", at, read_all(files_path("damaged"), NULL, 10 * FRAMES), all);
                    damages++;
                }
            }
}

static void check_lengths(const char *name, int format, int channels, int rate) {
    static unsigned char good[FILE_MOST];
    const char *path = files_path("good");
    if (!write_sound(path, format, channels, rate, SHORT))
        return;
    const size_t size = read_bytes(path, good);
    const int64_t all = read_all(path, NULL, FRAMES * 4);
    CHECK(all >= SHORT, "%s: %lld of %d frames", name, (long long)all, SHORT);
    formats++;
    for (int i = 0; i < CUTS && !states_nothing(format); i++) {
        const size_t at = 1 + (size - 2) * (size_t)i / (CUTS - 1);
        write_bytes(files_path("cut"), good, at);
        check_not_silent(name, "cut at", at, read_all(files_path("cut"), NULL, FRAMES * 4), all);
        cuts++;
    }
    /* The frames of coded samples in AIFF stand in one field that nothing else can be compared with. */
    const int code = format & SF_FORMAT_SUBMASK;
    if ((format & SF_FORMAT_TYPEMASK) != SF_FORMAT_AIFF || (code != SF_FORMAT_GSM610 && code != SF_FORMAT_DWVW_12 &&
                                                            code != SF_FORMAT_DWVW_16 && code != SF_FORMAT_DWVW_24))
        damage_lengths(name, good, size, all, channels);
}

/* ---- Excerpts ---------------------------------------------------------------------------------------------------- */

static void check_excerpts(const char *name, int format, int channels, int rate) {
    static float whole[(FRAMES + 8192) * CHANNELS_MOST], part[700 * CHANNELS_MOST];
    const char *path = files_path("whole");
    if (!write_sound(path, format, channels, rate, FRAMES))
        return;
    const int64_t all = read_all(path, whole, FRAMES + 8192);
    CHECK(all >= FRAMES, "%s: %lld of %d frames", name, (long long)all, FRAMES);
    oracle_random random = {.state = 99};
    gc_reader *reader = NULL;
    gpuconv_error error = {0};
    for (int i = 0; i < EXCERPTS; i++) {
        const int64_t at = i % 3 == 0 ? all - 1 - oracle_below(&random, 9000) : oracle_below(&random, all);
        int64_t got = 0;
        if (i % 2 == 0) { /* every other one from where the one before has ended */
            gc_reader_free(reader);
            CHECK(gc_reader_new(path, &reader, &error) == GPUCONV_OK, "%s: %s", name, error.message);
        }
        CHECK(gc_reader_seek(reader, at, &error) == GPUCONV_OK, "%s: %s", name, error.message);
        CHECK(gc_reader_read_floats(reader, part, 700, &got, &error) == GPUCONV_OK, "%s: %s", name, error.message);
        CHECK(got == (all - at < 700 ? all - at : 700), "%s: %lld frames from %lld of %lld on", name, (long long)got,
              (long long)at, (long long)all);
        if (memcmp(part, whole + at * channels, (size_t)(got * channels) * sizeof *part) != 0) {
            printf("%s: an excerpt from frame %lld on is no part of the whole\n", name, (long long)at);
            different++;
        }
        excerpts++;
    }
    gc_reader_free(reader);
}

/* ---- Several streams --------------------------------------------------------------------------------------------- */

/* Writes a file of a format twice, one behind the other, without the first `skip` bytes of each. */
static void write_twice(const char *path, const unsigned char *bytes, size_t size, size_t skip, int times) {
    static unsigned char both[2 * FILE_MOST];
    memcpy(both, bytes + skip, size - skip);
    memcpy(both + size - skip, bytes + skip, size - skip);
    write_bytes(path, both, (size_t)times * (size - skip));
}

static void all_streams_of_a_file_are_read(void **state) {
    static unsigned char bytes[FILE_MOST];
    (void)state;
    const int ogg[] = {SF_FORMAT_VORBIS, SF_FORMAT_OPUS};
    for (int i = 0; i < COUNT(ogg); i++) {
        assert_true(write_sound(files_path("one.ogg"), SF_FORMAT_OGG | ogg[i], 1, 16000, SHORT));
        write_twice(files_path("two.ogg"), bytes, read_bytes(files_path("one.ogg"), bytes), 0, 2);
        assert_int_equal(read_all(files_path("two.ogg"), NULL, FRAMES), 2 * SHORT);
    }
}

static void mpeg_audio_without_a_length_is_read_to_its_end(void **state) {
    static unsigned char bytes[FILE_MOST];
    (void)state;
    if (!write_sound(files_path("one.mp3"), SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III, 1, 16000, FRAMES))
        skip();
    const size_t size = read_bytes(files_path("one.mp3"), bytes);
    size_t at = 0, tag = 0;
    while (tag + 4 < size && memcmp(bytes + tag, "Xing", 4) != 0 && memcmp(bytes + tag, "Info", 4) != 0)
        tag++;
    for (at = tag; at + 1 < size && !(bytes[at] == 0xff && (bytes[at + 1] & 0xf6) == 0xf2); at++) {
    }
    assert_true(at + 1 < size);
    write_twice(files_path("bare.mp3"), bytes, size, at, 1);
    const int64_t bare = read_all(files_path("bare.mp3"), NULL, 4 * FRAMES);
    CHECK(bare >= FRAMES && bare % 576 == 0, "%lld frames without the header", (long long)bare);
    write_twice(files_path("twice.mp3"), bytes, size, at, 2);
    assert_int_equal(read_all(files_path("twice.mp3"), NULL, 4 * FRAMES), 2 * bare);
}

/* ---- All formats ------------------------------------------------------------------------------------------------- */

static void for_every_format(void (*check)(const char *name, int format, int channels, int rate)) {
    int containers = 0, encodings = 0;
    sf_command(NULL, SFC_GET_FORMAT_MAJOR_COUNT, &containers, sizeof containers);
    sf_command(NULL, SFC_GET_FORMAT_SUBTYPE_COUNT, &encodings, sizeof encodings);
    for (int c = 0; c < containers; c++)
        for (int e = 0; e < encodings; e++) {
            SF_FORMAT_INFO container = {.format = c}, encoding = {.format = e};
            sf_command(NULL, SFC_GET_FORMAT_MAJOR, &container, sizeof container);
            sf_command(NULL, SFC_GET_FORMAT_SUBTYPE, &encoding, sizeof encoding);
            const int format = container.format | encoding.format;
            char name[128];
            (void)snprintf(name, sizeof name, "%s, %s", container.name, encoding.name);
            if ((container.format & SF_FORMAT_TYPEMASK) == SF_FORMAT_RAW ||
                (container.format & SF_FORMAT_TYPEMASK) == SF_FORMAT_SD2)
                continue; /* no header; a header in a second file */
            SF_INFO info = {.format = format, .channels = 1, .samplerate = 16000};
            const bool eight = !sf_format_check(&info) || encoding.format == SF_FORMAT_GSM610;
            check(name, format, 1, eight ? 8000 : 16000);
        }
}

static void damaged_lengths_and_cuts_are_never_silent(void **state) {
    (void)state;
    for_every_format(check_lengths);
    printf("%d formats, %d cuts, %d damaged lengths, %d silent\n", formats, cuts, damages, silent);
    assert_int_equal(silent, 0);
    assert_true(formats > 80);
}

static void every_excerpt_is_a_part_of_the_whole(void **state) {
    (void)state;
    for_every_format(check_excerpts);
    printf("%d excerpts, %d different\n", excerpts, different);
    assert_int_equal(different, 0);
    assert_true(excerpts > 80 * EXCERPTS);
}

/* Opens a pipe that holds the bytes. */
static gpuconv_status open_pipe(const unsigned char *bytes, size_t size, gc_reader **reader, gpuconv_error *error) {
    int end[2];
    assert_int_equal(pipe(end), 0);
    assert_int_equal(write(end[1], bytes, size), size);
    close(end[1]);
    return gc_reader_open_descriptor(end[0], false, -1, "a pipe", NULL, reader, error);
}

static void a_pipe_that_is_copied_is_bounded(void **state) {
    static unsigned char bytes[FILE_MOST];
    gc_reader *reader;
    gpuconv_error error = {0};
    const int64_t most = gc_spool_most;
    (void)state;
    assert_true(most > 1 << 30);
    assert_true(write_sound(files_path("one.flac"), SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 1, 16000, 2000));
    const size_t size = read_bytes(files_path("one.flac"), bytes);
    gc_spool_most = (int64_t)size;
    assert_int_equal(open_pipe(bytes, size, &reader, &error), GPUCONV_OK);
    assert_int_equal(gc_reader_info(reader)->frames, 2000);
    gc_reader_free(reader);
    gc_spool_most = (int64_t)size - 1;
    assert_int_equal(open_pipe(bytes, size, &reader, &error), GPUCONV_ERROR_FILE);
    assert_non_null(strstr(error.message, "a pipe: its format cannot be read while it arrives, and more than 0 MiB"));
    gc_spool_most = most;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_lengths_and_cuts_are_never_silent),
                                       cmocka_unit_test(all_streams_of_a_file_are_read),
                                       cmocka_unit_test(a_pipe_that_is_copied_is_bounded),
                                       cmocka_unit_test(mpeg_audio_without_a_length_is_read_to_its_end),
                                       cmocka_unit_test(every_excerpt_is_a_part_of_the_whole)};
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
