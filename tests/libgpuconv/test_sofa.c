/* Checks reading of SOFA files: every layout of HDF5 that is read gives the same values, and a file that is damaged,
 * cut off or hostile is read or refused. */
#include "harness.h"

#include "libgpuconv/ir/sofa.h"
#include "libgpuconv/ir/spatial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define SETS TESTS_SOURCE "/tests/sofa/"
#define CORPUS TESTS_SOURCE "/tests/fuzz/corpus/sofa/"

static volatile int cancel;
static char message[sizeof((gpuconv_error *)NULL)->message]; /* of the file that was read last */

/* Returns the bytes of a file. */
static uint8_t *content(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    CHECK(f && fseek(f, 0, SEEK_END) == 0, "%s", path);
    *size = (size_t)ftell(f);
    rewind(f);
    uint8_t *bytes = malloc(*size);
    CHECK(bytes && fread(bytes, 1, *size, f) == *size, "%s", path);
    fclose(f);
    return bytes;
}

/* Reads bytes as a SOFA file. The file is read whole, or refused with a message. */
static gpuconv_status read_bytes(const uint8_t *bytes, size_t size) {
    gpuconv_sofa *set;
    gpuconv_error error = {0};
    char path[64];
    static int fd = -1;
    fd = fd < 0 ? memfd_create("hostile.sofa", 0) : fd;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    CHECK(fd >= 0 && ftruncate(fd, (off_t)size) == 0 && pwrite(fd, bytes, size, 0) == (ssize_t)size,
          "no file in memory");
    gpuconv_status status = gc_sofa_load(path, GPUCONV_INTERPOLATE_AUTO, &set, &error);
    CHECK(!status == !!set && (!status || *error.message), "status %d: %s", (int)status, error.message);
    memcpy(message, error.message, sizeof message);
    gpuconv_sofa_free(set);
    return status;
}

/* The values of pattern() in tests/sofa/make_sofa.py. */
static void every_layout_gives_the_same_values(void **state) {
    (void)state;
    static const char *const names[] = {SETS "dense.sofa", SETS "latest.sofa", SETS "units.sofa", SETS "old.sofa",
                                        SETS "indexes.sofa"};
    for (int i = 0; i < COUNT(names); i++) {
        gpuconv_sofa *s;
        gpuconv_error error = {0};
        CHECK(gc_sofa_load(names[i], GPUCONV_INTERPOLATE_AUTO, &s, &error) == GPUCONV_OK, "%s", error.message);
        assert_int_equal(s->measurements, 5);
        assert_int_equal(s->receivers, 2);
        const gc_sofa_form form = gc_sofa_form_of(s, false);
        assert_int_equal(form.frames, 8); /* 6 taps and the longest delay */
        assert_true(s->responses->rate == 48000 && s->longest_delay == 2 && form.lead == 0);
        assert_string_equal(s->conventions, "SimpleFreeFieldHRIR");
        assert_true(s->exchanged == (i == 2 || i == 4));
        assert_string_equal(s->title, i == 0 ? "Pr\xc3\xbc"
                                               "fung"
                                             : "latest");
        for (int m = 0; m < 5; m++) {
            const double *p = s->position + 3 * m, pi = acos(-1);
            const double elevation = (10.0 * m - 20) * pi / 180, azimuth = 72 * m * pi / 180;
            assert_true(fabs(p[0] - 1.5 * cos(elevation) * cos(azimuth)) < (i == 2 ? 1e-6 : 1e-12));
            assert_true(fabs(p[1] - 1.5 * cos(elevation) * sin(azimuth)) < (i == 2 ? 1e-6 : 1e-12));
            assert_true(fabs(p[2] - 1.5 * sin(elevation)) < (i == 2 ? 1e-6 : 1e-12));
            const gc_blend one = {.measurement = {m, m, m}, .weight = {1}, .gain = 1};
            float taps[2][8];
            CHECK(gc_sofa_respond(s, &one, form, taps[0], 8, &error) == GPUCONV_OK, "%s", error.message);
            for (int r = 0; r < 2; r++)
                for (int n = 0; n < 8; n++) {
                    const int tap = n - 2 * r; /* the second receiver is delayed by 2 frames */
                    const float want = tap >= 0 && tap < 6 ? (float)(m * 16 + r * 8 + tap - 30) / 64 : 0;
                    CHECK(taps[r][n] == want, "%s: tap %d of receiver %d at %d: %g instead of %g", names[i], n, r, m,
                          (double)taps[r][n], (double)want);
                }
        }
        gpuconv_sofa_free(s);
    }
}

/* Units that are not known, or do not fit the type, are refused by a message that names the data set. */
static void units_that_are_not_read_are_refused(void **state) {
    (void)state;
    static const char *const others[] = {"microparse", "radian    ", "          "};
    size_t size;
    uint8_t *bytes = content(SETS "units.sofa", &size);
    uint8_t *unit = memmem(bytes, size, "millimetre", 10);
    CHECK(unit, "no unit");
    for (int i = 0; i < COUNT(others); i++) {
        memcpy(unit, others[i], 10);
        assert_int_equal(read_bytes(bytes, size), GPUCONV_ERROR_FORMAT);
        CHECK(strstr(message, "the units of SourcePosition are 'radian, radian, "), "%s", message);
    }
    free(bytes);
}

/* What HDF5 may leave out of a file, or put into another one, is refused by a message that names the data set. */
static void links_and_missing_values_are_refused(void **state) {
    (void)state;
    static const char *const files[][2] = {{SETS "linked.sofa", "Data.IR: is a link to another place"},
                                           {SETS "symbol.sofa", "Data.IR: is a link to another place"},
                                           {SETS "never.sofa", "Data.IR: values are missing, or were never written"}};
    for (int i = 0; i < COUNT(files); i++) {
        size_t size;
        uint8_t *bytes = content(files[i][0], &size);
        assert_int_equal(read_bytes(bytes, size), GPUCONV_ERROR_FORMAT);
        CHECK(strstr(message, files[i][1]), "%s", message);
        free(bytes);
    }
}

/* A file may begin behind bytes of the user's, as many as a power of two from 512 on. */
static void a_block_of_the_user_is_passed_over(void **state) {
    (void)state;
    enum { BASE = 24, END = 40 }; /* of a superblock of version 0: where addresses begin, and where the file ends */
    size_t size;
    uint8_t *bytes = content(SETS "old.sofa", &size), *moved = calloc(1, size + 2048);
    CHECK(moved, "no memory");
    for (uint64_t block = 512; block <= 2048; block *= 2) {
        const uint64_t end = size + block;
        memset(moved, 'x', (size_t)block);
        memcpy(moved + block, bytes, size);
        memcpy(moved + block + END, &end, sizeof end);
        assert_int_equal(read_bytes(moved, (size_t)end), GPUCONV_ERROR_FORMAT); /* addresses of another base */
        memcpy(moved + block + BASE, &block, sizeof block);
        CHECK(read_bytes(moved, (size_t)end) == GPUCONV_OK, "%s", message);
    }
    free(moved);
    free(bytes);
}

/* The files of the corpus made libmysofa 1.3.1 loop without end. */
static void hostile_files_end(void **state) {
    (void)state;
    static const char *const names[] = {CORPUS "crash_1_16", CORPUS "crash_1_481", CORPUS "cut"};
    for (int i = 0; i < COUNT(names); i++) {
        size_t size;
        uint8_t *bytes = content(names[i], &size);
        (void)read_bytes(bytes, size);
        free(bytes);
    }
}

/* Cuts a file at every length, and replaces every byte of it, or every byte number n x step, by three values; under a
 * sanitizer by one of them: fuzz_sofa has these files too. */
static void mutate(const char *name, size_t step) {
    static const uint8_t values[] = {0x00, 0xff, 0x7f};
#ifdef __SANITIZE_ADDRESS__
    enum { TRIED = 1 };
#else
    enum { TRIED = COUNT(values) };
#endif
    size_t size;
    int read_whole = 0;
    uint8_t *bytes = content(name, &size);
    for (size_t cut = 0; cut < size; cut += 1 + cut / 64)
        CHECK(read_bytes(bytes, cut) != GPUCONV_OK, "%s is read from %zu bytes", name, cut);
    for (size_t at = 0; at < size; at += step) {
        const uint8_t own = bytes[at];
        for (size_t v = at; v < at + TRIED; v++) {
            bytes[at] = values[v % COUNT(values)];
            read_whole += read_bytes(bytes, size) == GPUCONV_OK;
        }
        bytes[at] = own;
    }
    CHECK(read_whole > 0, "%s: no byte is free to change", name);
    free(bytes);
}

static void no_byte_of_a_file_can_do_harm(void **state) {
    (void)state;
    struct rlimit limit = {60, 60}; /* seconds of the processor: an endless loop ends the test */
    assert_int_equal(setrlimit(RLIMIT_CPU, &limit), 0);
    mutate(SETS "latest.sofa", 1);
    mutate(SETS "spectra.sofa", 1);
    mutate(SETS "old.sofa", 3);
    mutate(SETS "indexes.sofa", 7);
}

static void a_file_of_spectra_gives_the_responses_they_belong_to(void **state) {
    (void)state;
    gpuconv_sofa *s;
    gpuconv_error error = {0};
    CHECK(gc_sofa_load(SETS "spectra.sofa", GPUCONV_INTERPOLATE_AUTO, &s, &error) == GPUCONV_OK, "%s", error.message);
    assert_int_equal(s->measurements, 5);
    assert_int_equal(s->receivers, 2);
    assert_int_equal(s->responses->frames, 12);
    assert_int_equal(s->responses->lead, 3); /* a quarter of the frames */
    assert_true(s->responses->rate == 48000);
    for (int m = 0; m < 5; m++)
        for (int r = 0; r < 2; r++)
            for (int n = 0; n < 12; n++) {
                const int tap = n - 3;
                const double want = tap >= 0 && tap < 6 ? (m * 16 + r * 8 + tap - 30) / 64.0 : 0;
                const double is = (double)gc_sofa_taps(s, m, r)[n];
                CHECK(fabs(is - want) <= 1e-6, "tap %d of receiver %d at %d: %g instead of %g", n, r, m, is, want);
            }
    gpuconv_sofa_free(s);
}

/* Inverts the spectrum of two taps, from frequency number `first` of `frames` / 2 on. */
static gpuconv_status invert_two_taps(int first, int frames, const float *frequency, gc_from_spectra *made,
                                      gpuconv_error *error) {
    float re[64], im[64];
    for (int k = first; k <= frames / 2; k++) {
        const double phase = 2 * acos(-1) * k / frames;
        re[k - first] = (float)(-cos(5 * phase) - 0.25 * cos(6 * phase));
        im[k - first] = (float)(sin(5 * phase) + 0.25 * sin(6 * phase));
    }
    const gc_spectra spectra = {1, frames / 2 + 1 - first, frequency + first, re, im};
    return gc_spectra_invert("a file", &spectra, made, error);
}

static void a_convention_that_is_not_read_is_named(void **state) {
    (void)state;
    gpuconv_sofa *s;
    gpuconv_error error = {0};
    assert_int_equal(gc_sofa_load(SETS "filters.sofa", GPUCONV_INTERPOLATE_AUTO, &s, &error), GPUCONV_ERROR_FORMAT);
    CHECK(strstr(error.message, "type 'SOS' (SimpleFreeFieldHRSOS); only responses and spectra"), "%s", error.message);
    assert_null(s);
}

/* The spectrum is that of -1 at frame 5 and -0.25 at frame 6, of which the magnitude at 0 Hz is extrapolated: every tap
 * is wrong by the error of it divided by the frames. */
static void a_spectrum_without_zero_hertz_keeps_its_level_and_sign(void **state) {
    (void)state;
    enum { FRAMES = 90 };
    float frequency[FRAMES / 2 + 1];
    gc_from_spectra made;
    gpuconv_error error = {0};
    for (int k = 0; k <= FRAMES / 2; k++)
        frequency[k] = (float)(k * 100);
    for (int first = 0; first < 2; first++) {
        CHECK(invert_two_taps(first, FRAMES, frequency, &made, &error) == GPUCONV_OK, "%s", error.message);
        assert_true(made.frames == FRAMES && made.rate == 9000 && made.lead == 9);
        for (int n = 0; n < FRAMES; n++) {
            const double want = n == 5 + 9 ? -1 : n == 6 + 9 ? -0.25 : 0, is = (double)made.taps[n];
            CHECK(fabs(is - want) <= (first ? 1e-4 : 1e-6), "tap %d from frequency %d on: %g instead of %g", n, first,
                  is, want);
        }
        free(made.taps);
    }
}

static void frequencies_that_are_not_uniform_are_refused(void **state) {
    (void)state;
    float frequency[16];
    gc_from_spectra made;
    gpuconv_error error = {0};
    for (int k = 0; k < 16; k++)
        frequency[k] = (float)(100 * pow(2, k / 3.0));
    assert_int_equal(invert_two_taps(0, 30, frequency, &made, &error), GPUCONV_ERROR_FORMAT);
    CHECK(strstr(error.message, "a file: its frequencies are not uniform"), "%s", error.message);
    for (int k = 0; k < 16; k++)
        frequency[k] = (float)(250 + 100 * k);
    assert_int_equal(invert_two_taps(0, 30, frequency, &made, &error), GPUCONV_ERROR_FORMAT);
    CHECK(strstr(error.message, "begin at 250 Hz in steps of 100 Hz"), "%s", error.message);
    frequency[3] = NAN;
    assert_int_equal(invert_two_taps(0, 30, frequency, &made, &error), GPUCONV_ERROR_FORMAT);
    assert_null(made.taps);
}

/* Returns a position at a distance of 2 m. */
static void at_azimuth(double degrees, double at[3]) {
    at[0] = 2 * cos(degrees * acos(-1) / 180);
    at[1] = 2 * sin(degrees * acos(-1) / 180);
    at[2] = 0;
}

/* A head that has turned to the left hears a source of the room farther to the right. */
static void a_room_is_heard_from_a_turned_head(void **state) {
    (void)state;
    gpuconv_sofa *s;
    gpuconv_error error = {0};
    CHECK(gc_sofa_load(SETS "turned.sofa", GPUCONV_INTERPOLATE_AUTO, &s, &error) == GPUCONV_OK, "%s", error.message);
    assert_int_equal(s->measurements, 8);
    for (int m = 0; m < 8; m++) {
        double want[3], degrees;
        at_azimuth(30 - 45 * m, want);
        for (int k = 0; k < 3; k++)
            CHECK(fabs(s->position[3 * m + k] - want[k]) < 1e-6, "coordinate %d at %d: %g", k, m,
                  s->position[3 * m + k]);
        assert_int_equal(gc_sofa_nearest(s, want, &degrees), m);
    }
    gpuconv_sofa_free(s);
}

/* The loudspeaker is chosen in the room, and the orientation by where it is from the head: at 30 degrees from the nose
 * there are a measurement of one loudspeaker and, for a head turned by 45 degrees, nearly one of the other. */
static void check_loudspeakers(const char *name) {
    gpuconv_sofa *s;
    gpuconv_error error = {0};
    CHECK(gc_sofa_load(name, GPUCONV_INTERPOLATE_AUTO, &s, &error) == GPUCONV_OK, "%s", error.message);
    assert_int_equal(s->measurements, 16);
    for (int e = 0; e < 2; e++)
        for (int m = 0; m < 8; m++) {
            gpuconv_ir *ir;
            /* 5 degrees beside the loudspeaker, and 3 beside the orientation */
            const gpuconv_preparation how = {
                .direction = e ? "-25,0,2" : "25,0,2", .yaw = 45 * m + 3, .interpolate = GPUCONV_INTERPOLATE_NEAREST};
            CHECK(gc_spatial_make(s, &how, false, 1, &ir, &error) == GPUCONV_OK, "%s", error.message);
            for (int r = 0; r < 2; r++) {
                const float *taps = gc_ir_plane(ir, r) + 3 * e; /* the second one is delayed by 3 frames */
                CHECK(taps[0] == (float)(1 + m + 10 * e + 100 * r) && taps[3] == 0.125f,
                      "%s: loudspeaker %d, orientation %d, receiver %d: %g", name, e, m, r, (double)taps[0]);
            }
            gpuconv_ir_free(ir);
        }
    gpuconv_sofa_free(s);
}

static void a_turned_head_hears_the_loudspeaker_that_was_chosen(void **state) {
    (void)state;
    check_loudspeakers(SETS "brir.sofa");
    check_loudspeakers(SETS "mimo.sofa");
}

static void ambisonics_are_not_decoded_to_the_loudspeakers_of_a_room(void **state) {
    (void)state;
    gpuconv_sofa *s;
    gpuconv_ir *ir;
    gpuconv_error error = {0};
    const gpuconv_preparation how = {.speakers = "ambisonic"};
    CHECK(gc_sofa_load(SETS "brir.sofa", GPUCONV_INTERPOLATE_AUTO, &s, &error) == GPUCONV_OK, "%s", error.message);
    assert_int_equal(gc_spatial_make(s, &how, false, 4, &ir, &error), GPUCONV_ERROR_ARGUMENT);
    CHECK(strstr(error.message, "2 loudspeakers of a room (MultiSpeakerBRIR)"), "%s", error.message);
    gpuconv_sofa_free(s);
}

static void reading_is_cancelled(void **state) {
    (void)state;
    gpuconv_sofa *s;
    gpuconv_error error = {0};
    cancel = 1;
    assert_null(gpuconv_cancel_set(&cancel));
    gpuconv_status status = gc_sofa_load(SETS "head.sofa", GPUCONV_INTERPOLATE_AUTO, &s, &error);
    gpuconv_cancel_set(NULL);
    assert_int_equal(status, GPUCONV_ERROR_CANCELLED);
    assert_null(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layout_gives_the_same_values),
        cmocka_unit_test(a_file_of_spectra_gives_the_responses_they_belong_to),
        cmocka_unit_test(a_convention_that_is_not_read_is_named),
        cmocka_unit_test(a_spectrum_without_zero_hertz_keeps_its_level_and_sign),
        cmocka_unit_test(frequencies_that_are_not_uniform_are_refused),
        cmocka_unit_test(a_room_is_heard_from_a_turned_head),
        cmocka_unit_test(a_turned_head_hears_the_loudspeaker_that_was_chosen),
        cmocka_unit_test(ambisonics_are_not_decoded_to_the_loudspeakers_of_a_room),
        cmocka_unit_test(reading_is_cancelled),
        cmocka_unit_test(units_that_are_not_read_are_refused),
        cmocka_unit_test(links_and_missing_values_are_refused),
        cmocka_unit_test(a_block_of_the_user_is_passed_over),
        cmocka_unit_test(hostile_files_end),
        cmocka_unit_test(no_byte_of_a_file_can_do_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
