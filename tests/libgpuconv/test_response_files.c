/* Checks the forms of files that responses are read from, value by value, and that responses, matrices, sets and lists
 * of directions are read from regular files only: a named pipe without a writer and a device without an end are refused
 * by every function that reads them, and never block it. */
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

/* A file of numbers, and the response that is read from it: with the rate `given`, `channels` of `frames` taps. */
typedef struct numbers_case {
    const char *name, *text;
    double given, rate;
    int channels, frames;
    float taps[8]; /* channel after channel */
} numbers_case;

static void check_taps(const numbers_case *n, const gpuconv_ir *ir) {
    CHECK(gpuconv_ir_outputs(ir) == n->channels && gpuconv_ir_frames(ir) == n->frames && gpuconv_ir_rate(ir) == n->rate,
          "%s: %d channels of %lld at %g", n->name, gpuconv_ir_outputs(ir), (long long)gpuconv_ir_frames(ir),
          gpuconv_ir_rate(ir));
    for (int c = 0; c < n->channels; c++)
        for (int i = 0; i < n->frames; i++)
            CHECK(gpuconv_ir_taps(ir, 0, c)[i] == n->taps[c * n->frames + i], "%s: tap %d of channel %d is %g", n->name,
                  i, c, (double)gpuconv_ir_taps(ir, 0, c)[i]);
}

static void texts_of_coefficients_are_read_value_by_value(void **state) {
    static const char rew[] = "* Impulse Response data saved by REW V5.30.9\n* IR is not normalised\n"
                              "* Excitation: Imported Impulse Response, 44100.0 Hz sampling\n"
                              "* Response measured over: 2,9 to 24 000,0 Hz\n"
                              "0.10347 // Peak value before normalisation\n0 // Peak index\n3 // Response length\n"
                              "2.0833333333333333E-5 // Sample interval (seconds)\n-0.9 // Start time (seconds)\n"
                              "* Data start\n1.0E-1\n-5.5E-6\n3\n";
    static const numbers_case cases[] = {
        {"a.txt", "1.0\n0.5\n-0.25\n", 44100, 44100, 1, 3, {1, 0.5f, -0.25f}},
        {"bom.txt",
         "\xef\xbb\xbf"
         "1.0\r\n0.5\r\n",
         96000,
         96000,
         1,
         2,
         {1, 0.5f}},
        {"b.csv", "left,right\n1.0,0.1\n0.5,0.2\n", 48000, 48000, 2, 2, {1, 0.5f, 0.1f, 0.2f}},
        {"list.csv", "1.0,\n.5,\n-2,\n", 48000, 48000, 1, 3, {1, 0.5f, -2}},
        {"decimal.csv", "L;R\n1,5;0,1\n0,5;0\n", 48000, 48000, 2, 2, {1.5f, 0.5f, 0.1f, 0}},
        {"rew.txt", rew, 44100, 48000, 1, 3, {0.1f, -5.5e-6f, 3}},
        {"matlab.txt",
         "   1.0000000e+00   2.0000000e+00\n   5.0000000e-01   2.5000000e-01\n",
         8000,
         8000,
         2,
         2,
         {1, 0.5f, 2, 0.25f}},
        {"row.asc", "   1.0000000e+00   2.0000000e+00  -3.0000000e+00\n", 8000, 8000, 1, 3, {1, 2, -3}},
        {"octave.txt", "# Created by Octave\n# name: h\n# rows: 2\n 1\n -2\n", 8000, 8000, 1, 2, {1, -2}},
        {"head.txt", "Filter by X, sampling rate = 44.1 kHz\n\n1\n2\n", 0, 44100, 1, 2, {1, 2}},
        {"fs.dat", "% fs: 96000\n1 3\n2 4\n", 0, 96000, 2, 2, {1, 2, 3, 4}},
        {"index.tsv", "n\th\n0\t1.5\n1\t2\n2\t3\n3\t1\n", 8000, 8000, 1, 4, {1.5f, 2, 3, 1}},
        {"seconds.csv",
         "t,h\n0.000000000,1\n0.000020833,0.5\n0.000041667,0\n0.000062500,2\n",
         44100,
         48000,
         1,
         4,
         {1, 0.5f, 0, 2}},
        {"rounded.csv",
         "t,h\n0.000000,1\n0.000021,0.5\n0.000042,0\n0.000063,2\n0.000083,1\n",
         44100,
         44100,
         1,
         5,
         {1, 0.5f, 0, 2, 1}},
    };
    (void)state;
    for (int i = 0; i < COUNT(cases); i++) {
        gpuconv_ir *ir;
        gpuconv_error error = {0};
        gpuconv_preparation p = gpuconv_preparation_default();
        put(cases[i].name, cases[i].text);
        CHECK(gpuconv_ir_load_as(cases[i].name, cases[i].given, NULL, &ir, &error) == GPUCONV_OK, "%s", error.message);
        check_taps(&cases[i], ir);
        gpuconv_ir_free(ir);
        p.file_rate = cases[i].given;
        CHECK(gpuconv_ir_prepare(cases[i].name, &p, 1, cases[i].rate, &ir, &error) == GPUCONV_OK, "%s", error.message);
        check_taps(&cases[i], ir);
        gpuconv_ir_free(ir);
    }
}

static void check_refusal(const char *name, double rate, const char *raw, const char *why) {
    gpuconv_ir *ir;
    gpuconv_error error = {0};
    CHECK(gpuconv_ir_load_as(name, rate, raw, &ir, &error) != GPUCONV_OK && !ir, "%s was read", name);
    CHECK(strstr(error.message, why) && strstr(error.message, name), "%s: %s", name, error.message);
}

static void texts_that_mean_two_things_are_refused_with_line_and_remedy(void **state) {
    static const char *const cases[][3] = {
        {"norate.txt", "1\n2\n", "states no sampling rate; give it with --ir-rate"},
        {"comma.txt", "0,5\n0,25\n", "the comma may be a decimal comma or divide two channels"},
        {"ragged.csv", "1.0,2\n1.0\n", "line 2: '1.0': 1 numbers, and 2 in the rows above"},
        {"word.txt", "1.0\n0.5\nnan\n", "line 3: 'nan': 'nan' is not a number"},
        {"large.txt", "1.0\n1e31\n", "line 2: '1e31': '1e31' is not a number of -1e30 to 1e30"},
        {"slashes.txt", "1.0 // a\n0.5 // b\n", "line 1: '1.0 // a': '//' is not a number"},
        {"hole.csv", "1.0,,2.0\n", "'' is not a number"},
        {"none.csv", "a,b\n", "contains no coefficient"},
        {"route.txt", "1 1 nowhere.wav\n", "line 1: nowhere.wav: No such file"},
        {"rows.txt", "row 1 0.5 0.5\n1 1 x.wav\n", "line 2: x.wav: No such file"}};
    (void)state;
    for (int i = 0; i < COUNT(cases); i++) {
        put(cases[i][0], cases[i][1]);
        check_refusal(cases[i][0], i ? 48000 : 0, NULL, cases[i][2]);
    }
}

/* Writes bytes behind a header. */
static void put_bytes(const char *name, const void *head, size_t head_bytes, const void *bytes, size_t count) {
    FILE *f = fopen(name, "wb");
    CHECK(f && fwrite(head, 1, head_bytes, f) == head_bytes && fwrite(bytes, 1, count, f) == count && fclose(f) == 0,
          "%s", name);
}

/* Writes an array as numpy.save does in a version of its format. */
static void put_npy(const char *name, int version, const char *header, const void *bytes, size_t count) {
    char head[256] = "\x93NUMPY";
    const size_t begin = version == 1 ? 10 : 12, length = strlen(header);
    head[6] = (char)version;
    head[8] = (char)length;
    memcpy(head + begin, header, length);
    put_bytes(name, head, begin + length, bytes, count);
}

static void arrays_of_numpy_are_read_value_by_value(void **state) {
    static const float f4[] = {1, 10, 2, 20, 3, 30};
    static const double f8[] = {0.5, -0.25, 2};
    static const int16_t i2[] = {16384, -32768};
    static const int32_t i4[] = {1 << 30, INT32_MIN};
    static const struct {
        int version;
        const char *header;
        const void *bytes;
        size_t count;
        numbers_case made;
    } cases[] = {
        {1,
         "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }  \n",
         f8,
         sizeof f8,
         {.channels = 1, .frames = 3, .taps = {0.5f, -0.25f, 2}}},
        {2,
         "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }\n",
         f4,
         sizeof f4,
         {.channels = 2, .frames = 3, .taps = {1, 2, 3, 10, 20, 30}}},
        {3,
         "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n",
         f4,
         sizeof f4,
         {.channels = 2, .frames = 3, .taps = {1, 10, 2, 20, 3, 30}}},
        {1,
         "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2), }\n",
         f4,
         sizeof f4,
         {.channels = 2, .frames = 3, .taps = {1, 10, 2, 20, 3, 30}}},
        {1,
         "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n",
         f4,
         sizeof f4,
         {.channels = 2, .frames = 3, .taps = {1, 2, 3, 10, 20, 30}}},
        {1,
         "{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }\n",
         i2,
         sizeof i2,
         {.channels = 1, .frames = 2, .taps = {0.5f, -1}}},
        {1,
         "{'shape': (1, 2), 'fortran_order': False, 'descr': '<i4'}",
         i4,
         sizeof i4,
         {.channels = 1, .frames = 2, .taps = {0.5f, -1}}},
    };
    (void)state;
    for (int i = 0; i < COUNT(cases); i++) {
        gpuconv_ir *ir;
        gpuconv_error error = {0};
        numbers_case made = cases[i].made;
        made.rate = 32000;
        made.name = cases[i].header;
        put_npy("a.npy", cases[i].version, cases[i].header, cases[i].bytes, cases[i].count);
        CHECK(gpuconv_ir_load_as("a.npy", 32000, NULL, &ir, &error) == GPUCONV_OK, "%s: %s", made.name, error.message);
        check_taps(&made, ir);
        gpuconv_ir_free(ir);
        check_refusal("a.npy", 0, NULL, "states no sampling rate");
        put_npy("a.npy", cases[i].version, cases[i].header, cases[i].bytes, cases[i].count - 1);
        check_refusal("a.npy", 32000, NULL, "damaged or cut off");
    }
    put_npy("b.npy", 1, "{'descr': '>f8', 'fortran_order': False, 'shape': (3,), }\n", f8, sizeof f8);
    check_refusal("b.npy", 32000, NULL, "an array of type '>f8'; use int16, int32, float32 or float64");
    put_npy("b.npy", 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 1, 1), }\n", f8, sizeof f8);
    check_refusal("b.npy", 32000, NULL, "an array of shape (3, 1, 1); use (frames,) or (frames, channels)");
    put_npy("b.npy", 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775807, 2), }", f8, sizeof f8);
    check_refusal("b.npy", 32000, NULL, "damaged or cut off: 24 bytes of samples");
    put_npy("b.npy", 4, "{}", f8, sizeof f8);
    check_refusal("b.npy", 32000, NULL, "is no file of numpy.save of version 1 to 3");
}

static void raw_samples_are_read_as_told_and_name_what_is_missing(void **state) {
    static const double f8[] = {0.5, -0.25, 2, 8};
    static const numbers_case two = {"x.dbl", NULL, 0, 96000, 2, 2, {0.5f, 2, -0.25f, 8}};
    gpuconv_ir *ir;
    gpuconv_error error = {0};
    (void)state;
    put_bytes("x.dbl", "", 0, f8, sizeof f8);
    CHECK(gpuconv_ir_load_as("x.dbl", 0, "96000,2,double", &ir, &error) == GPUCONV_OK, "%s", error.message);
    check_taps(&two, ir);
    gpuconv_ir_free(ir);
    check_refusal("x.dbl", 48000, NULL, "give rate, channels and encoding, such as --ir-raw 48000,1,double");
    assert_int_equal(gpuconv_ir_load_as("x.dbl", 0, "96000,2,nothing", &ir, &error), GPUCONV_ERROR_ARGUMENT);
    assert_int_equal(gpuconv_ir_load_as("x.dbl", -1, NULL, &ir, &error), GPUCONV_ERROR_ARGUMENT);
}

int main(void) {
    char folder[] = "/tmp/gpuconv-files-XXXXXX", command[64];
    CHECK(mkdtemp(folder) && chdir(folder) == 0, "no folder");
    const struct CMUnitTest tests[] = {cmocka_unit_test(pipes_and_devices_are_refused),
                                       cmocka_unit_test(pipes_named_by_other_files_are_refused),
                                       cmocka_unit_test(texts_of_coefficients_are_read_value_by_value),
                                       cmocka_unit_test(texts_that_mean_two_things_are_refused_with_line_and_remedy),
                                       cmocka_unit_test(arrays_of_numpy_are_read_value_by_value),
                                       cmocka_unit_test(raw_samples_are_read_as_told_and_name_what_is_missing)};
    const int failed = cmocka_run_group_tests(tests, make_files, NULL);
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) || failed;
}
