/* Checks the orientation of a head from a file: interpolation, the ends, the shorter way round, and wrong lines; and
 * from messages by OSC where the module is built. */
#include "check.h"
#include "gpuconv/play/player_state.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char path[] = "/tmp/gpuconv-follow-XXXXXX";

static void write_text(const char *text) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void angles_are_interpolated(void **state) {
    (void)state;
    gc_follow *f;
    gpuconv_error error = {0};
    write_text("# seconds yaw pitch roll\n1 10\n\n2 30 20 -10 # a comment\n4 30.0,20,-10\n4 90 0 0\n5 400\n");
    CHECK(gc_follow_open(path, &f, &error) == GPUCONV_OK, "%s", error.message);
    static const double want[][4] = {{0, 10, 0, 0},     {1, 10, 0, 0},      {1.5, 20, 10, -5},
                                     {2, 30, 20, -10},  {3.9, 30, 20, -10}, {4, 90, 0, 0},
                                     {4.5, -115, 0, 0}, {5, 40, 0, 0},      {1e6, 40, 0, 0}};
    for (int i = 0; i < COUNT(want); i++) {
        double at[3];
        gc_follow_at(f, want[i][0], at);
        for (int k = 0; k < 3; k++)
            CHECK(fabs(at[k] - want[i][k + 1]) < 1e-9, "at %g s: angle %d is %g", want[i][0], k, at[k]);
    }
    gc_follow_free(f);
}

static void wrong_files_are_refused(void **state) {
    (void)state;
    static const char *const wrong[][2] = {{"", "contains no orientation"},
                                           {"1\n", "line 1: '1': is not SECONDS YAW"},
                                           {"1 x\n", "line 1: '1 x': 'x' is not a number"},
                                           {"1 2 3 4 5\n", "is not SECONDS"},
                                           {"1 0\n0.5 0\n", "line 2: '0.5 0': 0.5 s is before"},
                                           {"-1 0\n", "times are 0 s or more"},
                                           {"1 nan\n", "'nan' is not a number"}};
    for (int i = 0; i < COUNT(wrong); i++) {
        gc_follow *f;
        gpuconv_error error = {0};
        write_text(wrong[i][0]);
        assert_int_equal(gc_follow_open(path, &f, &error), GPUCONV_ERROR_FORMAT);
        assert_null(f);
        CHECK(strstr(error.message, wrong[i][1]), "case %d says: %s", i, error.message);
    }
    gc_follow *f;
    gpuconv_error error = {0};
    assert_int_equal(gc_follow_open("/nowhere/at.all", &f, &error), GPUCONV_ERROR_FILE);
    assert_int_equal(gc_follow_open("osc:0", &f, &error), GPUCONV_ERROR_ARGUMENT);
    assert_int_equal(gc_follow_open("osc:x", &f, &error), GPUCONV_ERROR_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(angles_are_interpolated),
        cmocka_unit_test(wrong_files_are_refused),
    };
    int fd = mkstemp(path);
    if (fd < 0)
        return 1;
    close(fd);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
