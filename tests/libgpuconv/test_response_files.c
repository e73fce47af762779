/* Checks that responses, matrices, sets and lists of directions are read from regular files only: a named pipe without
 * a writer and a device without an end are refused by every function that reads them, and never block it. */
#include "harness.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const names[] = {"pipe.wav",  "pipe.txt",  "pipe.conf", "pipe.matrix", "pipe.sofa",
                                    "zero.wav",  "zero.txt",  "zero.conf", "zero.matrix", "zero.sofa",
                                    "/dev/zero", "/dev/null", "/dev/full"};

/* Writes a text file. */
static void put(const char *name, const char *text) {
    FILE *f = fopen(name, "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0, "%s", name);
}

/* Ends the test if a function blocks, which the default action of the signal does. */
static int make_files(void **state) {
    (void)state;
    for (int i = 0; i < 10; i++)
        CHECK((i < 5 ? mkfifo(names[i], 0600) : symlink("/dev/zero", names[i])) == 0, "%s", names[i]);
    alarm(60);
    return 0;
}

static void check_refused(const char *name, gpuconv_status status, gpuconv_ir *const *ir, const gpuconv_error *error) {
    CHECK(status == GPUCONV_ERROR_FILE || status == GPUCONV_ERROR_FORMAT, "%s: status %d", name, (int)status);
    CHECK(strstr(error->message, "is a pipe or a device; use a regular file"), "%s: %s", name, error->message);
    assert_null(*ir);
}

static void pipes_and_devices_are_refused(void **state) {
    (void)state;
    for (int i = 0; i < COUNT(names); i++) {
        gpuconv_ir *ir;
        gpuconv_error error = {0};
        gpuconv_preparation p = gpuconv_preparation_default();
        check_refused(names[i], gpuconv_ir_load(names[i], &ir, &error), &ir, &error);
        check_refused(names[i], gpuconv_ir_load_matrix(names[i], 48000, &ir, &error), &ir, &error);
        check_refused(names[i], gpuconv_ir_prepare(names[i], &p, 1, 48000, &ir, &error), &ir, &error);
    }
}

static void pipes_named_by_other_files_are_refused(void **state) {
    (void)state;
    static const char *const texts[][2] = {
        {"files.txt", "1 1 pipe.wav\n"},
        {"jconvolver.conf", "/convolver/new 1 1 512 8192\n/impulse/read 1 1 1 0 0 0 1 zero.wav\n"},
        {"brutefir.conf",
         "sampling_rate: 48000; filter_length: 64;\n"
         "coeff \"c\" { format: \"text\"; filename: \"pipe.txt\"; };\n"
         "input \"i\" { device: \"file\" { path: \"/dev/stdin\"; }; sample: \"S16_LE\"; channels: 1; };\n"
         "output \"o\" { device: \"file\" { path: \"x\"; }; sample: \"S16_LE\"; channels: 1; };\n"
         "filter \"f\" { inputs: \"i\"; outputs: \"o\"; coeff: \"c\"; };\n"}};
    for (int i = 0; i < COUNT(texts); i++) {
        gpuconv_ir *ir;
        gpuconv_error error = {0};
        put(texts[i][0], texts[i][1]);
        check_refused(texts[i][0], gpuconv_ir_load_matrix(texts[i][0], 48000, &ir, &error), &ir, &error);
    }
    gpuconv_ir *ir;
    gpuconv_error error = {0};
    gpuconv_preparation p = gpuconv_preparation_default();
    p.speakers = "pipe.txt";
    check_refused("a layout", gpuconv_ir_prepare(TESTS_SOURCE "/tests/sofa/head.sofa", &p, 2, 48000, &ir, &error), &ir,
                  &error);
    static const char *const series[] = {"pipe.wav"};
    p = gpuconv_preparation_default();
    p.series = series;
    p.series_count = 1;
    check_refused("in series", gpuconv_ir_prepare(TESTS_SOURCE "/impulses/studio.flac", &p, 2, 48000, &ir, &error), &ir,
                  &error);
}

int main(void) {
    char folder[] = "/tmp/gpuconv-files-XXXXXX", command[64];
    CHECK(mkdtemp(folder) && chdir(folder) == 0, "no folder");
    const struct CMUnitTest tests[] = {cmocka_unit_test(pipes_and_devices_are_refused),
                                       cmocka_unit_test(pipes_named_by_other_files_are_refused)};
    const int failed = cmocka_run_group_tests(tests, make_files, NULL);
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) || failed;
}
