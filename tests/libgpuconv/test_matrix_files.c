/* The files of a matrix: routes have the taps of their files whatever thread read them, and of several files that
 * cannot be read the first one in the text is told. Read under the thread sanitizer too. */
#include "files.h"
#include "harness.h"

#include <math.h>

enum { FILES = 24, CHANNELS = 2, FRAMES = 30000 }; /* more taps than one thread sums alone */

static guarded taps[FILES];

static int write_files(void **state) {
    oracle_random random = {.state = 91};
    files_begin(state);
    for (int f = 0; f < FILES; f++) {
        taps[f] = guarded_random(&random, CHANNELS, FRAMES);
        files_write(files_path("%d.wav", f), SF_FORMAT_WAV | SF_FORMAT_FLOAT, 48000, &taps[f]);
    }
    return 0;
}

static int remove_files(void **state) {
    for (int f = 0; f < FILES; f++)
        guarded_free(&taps[f]);
    return files_end(state);
}

static FILE *begin_text(const char *path) {
    FILE *f = fopen(path, "w");
    CHECK(f, "%s cannot be written", path);
    return f;
}

/* Output 1 has channel 1 of each file, output 2 the sum of channel 1 at -6.0206 dB and of channel 2, a frame late. */
static void every_route_has_the_taps_of_its_files(void **state) {
    (void)state;
    const char *path = files_path("matrix.txt");
    FILE *f = begin_text(path);
    for (int i = 0; i < FILES; i++)
        fprintf(f, "%d 1 %d.wav 1\n%d 2 %d.wav 1 -6.0205999132796239\n%d 2 %d.wav 2 0 0.0000208333333333\n", i + 1, i,
                i + 1, i, i + 1, i);
    fclose(f);
    gpuconv_ir *ir;
    gpuconv_error error = {0};
    CHECK(gpuconv_ir_load_matrix(path, 48000, &ir, &error) == GPUCONV_OK, "%s", error.message);
    assert_int_equal(gpuconv_ir_frames(ir), FRAMES + 1);
    for (int i = 0; i < FILES; i++) {
        const float *one = gpuconv_ir_taps(ir, i, 0), *two = gpuconv_ir_taps(ir, i, 1);
        for (int k = 0; k <= FRAMES; k++) {
            const float first = k < FRAMES ? taps[i].channel[0][k] : 0, late = k > 0 ? taps[i].channel[1][k - 1] : 0;
            CHECK(one[k] == first, "input %d, tap %d: %g instead of %g", i, k, (double)one[k], (double)first);
            CHECK(fabsf(two[k] - (first / 2 + late)) < 1e-6F, "input %d, tap %d of the sum", i, k);
        }
    }
    gpuconv_ir_free(ir);
}

/* A declared length leaves out nothing of what the resampler rings behind the end of one frame, whose sum stays 1. */
static void a_part_of_another_rate_keeps_both_ends(void **state) {
    (void)state;
    guarded one = guarded_new(1, 1);
    one.channel[0][0] = 1;
    files_write(files_path("one48.wav"), SF_FORMAT_WAV | SF_FORMAT_FLOAT, 48000, &one);
    files_write(files_path("one44.wav"), SF_FORMAT_WAV | SF_FORMAT_FLOAT, 44100, &one);
    const char *path = files_path("rates.conf");
    FILE *f = begin_text(path);
    fprintf(f,
            "/convolver/new 2 1 256 2\n/impulse/read 1 1 1 0 0 0 1 one48.wav\n/impulse/read 2 1 1 0 0 0 1 one44.wav\n");
    fclose(f);
    gpuconv_ir *ir;
    gpuconv_error error = {0};
    CHECK(gpuconv_ir_load_matrix(path, 48000, &ir, &error) == GPUCONV_OK, "%s", error.message);
    for (int i = 0; i < 2; i++) {
        double sum = 0;
        for (int64_t k = 0; k < gpuconv_ir_frames(ir); k++)
            sum += (double)gpuconv_ir_taps(ir, i, 0)[k];
        CHECK(fabs(sum - 1) < 1e-4, "input %d: the sum is %g", i, sum);
    }
    CHECK(!strstr(gpuconv_ir_history(ir), "left out"), "%s", gpuconv_ir_history(ir));
    gpuconv_ir_free(ir);
    guarded_free(&one);
}

static void the_first_file_that_cannot_be_read_is_told(void **state) {
    (void)state;
    const char *path = files_path("missing.txt");
    FILE *f = begin_text(path);
    for (int i = 0; i < FILES; i++)
        fprintf(f, "%d 1 %d.wav\n", i + 1, i < 5 ? i : i + 100);
    fclose(f);
    gpuconv_ir *ir;
    gpuconv_error error = {0};
    assert_int_equal(gpuconv_ir_load_matrix(path, 48000, &ir, &error), GPUCONV_ERROR_FILE);
    assert_null(ir);
    CHECK(strstr(error.message, "line 6: ") && strstr(error.message, "105.wav"), "%s", error.message);
}

static void a_cancelled_matrix_is_no_matrix(void **state) {
    (void)state;
    const char *path = files_path("cancelled.txt");
    FILE *f = begin_text(path);
    for (int i = 0; i < FILES; i++)
        fprintf(f, "%d 1 %d.wav\n", i + 1, i);
    fclose(f);
    gpuconv_ir *ir;
    gpuconv_error error = {0};
    volatile int flag = 1;
    gpuconv_cancel_set(&flag);
    gpuconv_status status = gpuconv_ir_load_matrix(path, 48000, &ir, &error);
    gpuconv_cancel_set(NULL);
    assert_int_equal(status, GPUCONV_ERROR_CANCELLED);
    assert_null(ir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_route_has_the_taps_of_its_files),
        cmocka_unit_test(a_part_of_another_rate_keeps_both_ends),
        cmocka_unit_test(the_first_file_that_cannot_be_read_is_told),
        cmocka_unit_test(a_cancelled_matrix_is_no_matrix),
    };
    return cmocka_run_group_tests(tests, write_files, remove_files);
}
