/* Checks reading of SOFA files: every layout of HDF5 that is read gives the same values, and a file that is damaged,
 * cut off or hostile is read or refused. */
#include "harness.h"

#include "libgpuconv/ir/sofa.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define SETS TESTS_SOURCE "/tests/sofa/"
#define CORPUS TESTS_SOURCE "/tests/fuzz/corpus/sofa/"

static volatile int cancel;

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
    gpuconv_sofa_free(set);
    return status;
}

/* The values of pattern() in tests/sofa/make_sofa.py. */
static void every_layout_gives_the_same_values(void **state) {
    (void)state;
    static const char *const names[] = {SETS "dense.sofa", SETS "latest.sofa"};
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
        assert_string_equal(s->title, i == 0 ? "Pr\xc3\xbc"
                                               "fung"
                                             : "latest");
        for (int m = 0; m < 5; m++) {
            const double *p = s->position + 3 * m, pi = acos(-1);
            const double elevation = (10.0 * m - 20) * pi / 180, azimuth = 72 * m * pi / 180;
            assert_true(fabs(p[0] - 1.5 * cos(elevation) * cos(azimuth)) < 1e-12);
            assert_true(fabs(p[1] - 1.5 * cos(elevation) * sin(azimuth)) < 1e-12);
            assert_true(fabs(p[2] - 1.5 * sin(elevation)) < 1e-12);
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

/* Cuts a file at every length, and replaces every byte of it. */
static void mutate(const char *name) {
    static const uint8_t values[] = {0x00, 0xff, 0x7f};
    size_t size;
    int read_whole = 0;
    uint8_t *bytes = content(name, &size);
    for (size_t cut = 0; cut < size; cut += 1 + cut / 64)
        CHECK(read_bytes(bytes, cut) != GPUCONV_OK, "%s is read from %zu bytes", name, cut);
    for (size_t at = 0; at < size; at++) {
        const uint8_t own = bytes[at];
        for (int v = 0; v < COUNT(values); v++) {
            bytes[at] = values[v];
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
    mutate(SETS "latest.sofa");
}

static void a_file_of_spectra_is_told_what_is_read(void **state) {
    (void)state;
    gpuconv_sofa *s;
    gpuconv_error error = {0};
    assert_int_equal(gc_sofa_load(SETS "spectra.sofa", GPUCONV_INTERPOLATE_AUTO, &s, &error), GPUCONV_ERROR_FORMAT);
    CHECK(strstr(error.message, "type 'TF' (SimpleFreeFieldHRTF); only impulse responses"), "%s", error.message);
    assert_null(s);
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
        cmocka_unit_test(a_file_of_spectra_is_told_what_is_read),
        cmocka_unit_test(reading_is_cancelled),
        cmocka_unit_test(hostile_files_end),
        cmocka_unit_test(no_byte_of_a_file_can_do_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
