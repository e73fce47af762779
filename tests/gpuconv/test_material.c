/* Convolves every sample of samples/ with every response of impulses/, from file to file, and compares 300 frames of
 * each output, at both ends and at random, with the oracle: direct sums over the whole response in doubles. The error
 * of a transform follows the level of the whole output, and most random frames lie in a quiet tail: their error is
 * bounded by -120 dB of the output and by -100 dB of the compared frames. */
#include "files.h"

#include "gpuconv.h"

#include <math.h>

static const char *const samples[] = {"click", "drums", "speech", "strings"};
static const char *const responses[] = {"bathroom", "cabinet",    "cathedral", "hall",   "hall-true-stereo",
                                        "plate",    "small-room", "spring",    "studio", "telephone"};

enum { CHECKED = 300 };

static void convolve(const char *in, const char *response, const char *out, gpuconv_algorithm algorithm) {
    gpuconv_job job = gpuconv_job_default();
    job.input = in;
    job.response = response;
    job.output = out;
    gpuconv_config config = gpuconv_config_default();
    config.backend = GPUCONV_BACKEND_CPU;
    config.algorithm = algorithm;
    gpuconv_error error = {0};
    gpuconv_status status = gpuconv_convolve_file(&job, &config, NULL, &error);
    CHECK(status == GPUCONV_OK, "%s", error.message);
}

/* The error of the compared frames is at least 120 dB below the output. */
static void check_level(const char *what, const float *y, int64_t frames, const float *actual, const double *expected) {
    double error = 0, power = 0;
    for (int i = 0; i < CHECKED; i++)
        error += pow((double)actual[i] - expected[i], 2);
    for (int64_t i = 0; i < frames; i++)
        power += pow((double)y[i], 2);
    const double db = 10 * log10((error / CHECKED) / (power / (double)frames));
    CHECK(db <= -120, "%s: the error is %.1f dB of the output", what, db);
}

/* Compares frames of y, at both ends and at random, with the sums over all routes. */
static void compare(const char *what, const guarded *x, const guarded *h, const guarded *y) {
    oracle_random random = {.state = (uint64_t)(x->frames + h->frames)};
    oracle_route route[16];
    int outputs, routes = oracle_routes((const float *const *)h->channel, h->channels, x->channels, route, &outputs);
    CHECK(routes > 0, "%s has no topology", what);
    assert_int_equal(y->channels, outputs);
    assert_int_equal(y->frames, x->frames + h->frames - 1);
    guarded actual = guarded_new(outputs, CHECKED);
    double *expected = calloc((size_t)outputs * CHECKED, sizeof *expected);
    CHECK(expected, "no memory");
    for (int i = 0; i < CHECKED; i++) {
        int64_t at = i < 20 ? i : i < 40 ? y->frames - 1 - (i - 20) : oracle_below(&random, y->frames);
        at = at < 0 ? 0 : at < y->frames ? at : y->frames - 1;
        for (int o = 0; o < outputs; o++)
            actual.channel[o][i] = y->channel[o][at];
        for (int r = 0; r < routes; r++)
            expected[route[r].output * CHECKED + i] +=
                oracle_frame(x->channel[route[r].input], x->frames, route[r].taps, h->frames, at);
    }
    CHECK(oracle_agrees(what, &actual, CHECKED, expected, CHECKED, -100), "%s", what);
    for (int o = 0; o < outputs; o++)
        check_level(what, y->channel[o], y->frames, actual.channel[o], expected + (ptrdiff_t)o * CHECKED);
    free(expected);
    guarded_free(&actual);
}

static void every_sample_through_every_response(void **state) {
    (void)state;
    for (int s = 0; s < COUNT(samples); s++) {
        SF_INFO info;
        char name[128];
        snprintf(name, sizeof name, "samples/%s.flac", samples[s]);
        guarded x = files_read(files_source(name), &info);
        /* A float input gives a float output, without rounding. */
        files_write(files_path("in.wav"), SF_FORMAT_WAV | SF_FORMAT_FLOAT, info.samplerate, &x);
        for (int r = 0; r < COUNT(responses); r++) {
            snprintf(name, sizeof name, "impulses/%s.flac", responses[r]);
            char *response = strdup(files_source(name));
            SF_INFO from, to;
            guarded h = files_read(response, &from);
            const char *out = files_path("out.wav");
            convolve(files_path("in.wav"), response, out, GPUCONV_ALGORITHM_AUTO);
            guarded y = files_read(out, &to);
            assert_int_equal(to.samplerate, info.samplerate);
            assert_int_equal(to.format & SF_FORMAT_SUBMASK, SF_FORMAT_FLOAT);
            snprintf(name, sizeof name, "%s in %s", samples[s], responses[r]);
            compare(name, &x, &h, &y);
            guarded_free(&y);
            guarded_free(&h);
            free(response);
        }
        guarded_free(&x);
    }
}

static void every_algorithm_on_one_of_each_topology(void **state) {
    (void)state;
    static const struct {
        const char *sample, *response;
    } pairs[] = {{"drums", "cabinet"}, {"click", "studio"}, {"strings", "small-room"}, {"strings", "studio"}};
    for (int p = 0; p < COUNT(pairs); p++) {
        for (int a = GPUCONV_ALGORITHM_DIRECT; a <= GPUCONV_ALGORITHM_PARTITIONED; a++) {
            SF_INFO info, from, to;
            char name[128];
            snprintf(name, sizeof name, "samples/%s.flac", pairs[p].sample);
            guarded x = files_read(files_source(name), &info);
            x.frames = x.frames < 60000 ? x.frames : 60000; /* direct convolution is slow */
            files_write(files_path("in.wav"), SF_FORMAT_WAV | SF_FORMAT_FLOAT, info.samplerate, &x);
            snprintf(name, sizeof name, "impulses/%s.flac", pairs[p].response);
            guarded h = files_read(files_source(name), &from);
            convolve(files_path("in.wav"), files_source(name), files_path("out.wav"), (gpuconv_algorithm)a);
            guarded y = files_read(files_path("out.wav"), &to);
            compare(gpuconv_algorithm_name((gpuconv_algorithm)a), &x, &h, &y);
            guarded_free(&x);
            guarded_free(&h);
            guarded_free(&y);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sample_through_every_response),
        cmocka_unit_test(every_algorithm_on_one_of_each_topology),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
