/* Moving sources on a GPU, against the CPU. */
#include "gpu_test.h"
#include "libgpuconv/space/motion.h"

#include <math.h>
#include <stdlib.h>

enum { RATE = 48000, RECEIVERS = 2 };

/* Makes a set of noises that decay, at directions along a spiral; the ears differ in delay and level. */
static gpuconv_sofa *make_set(int directions, int taps) {
    gpuconv_error error = {0};
    oracle_random random = {.state = 5};
    gpuconv_sofa *s = gc_sofa_new(gc_ir_blank(1, 1, directions * RECEIVERS, 1, taps, RATE), directions, RECEIVERS);
    CHECK(s && (s->name = strdup("a set")), "no memory");
    for (int d = 0; d < directions; d++) {
        const double up = 1 - (2 * d + 1.0) / directions, flat = sqrt(1 - up * up), angle = 2.399963 * d;
        const double at[3] = {flat * cos(angle), flat * sin(angle), up};
        memcpy(s->position + 3 * d, at, sizeof at);
        for (int r = 0; r < RECEIVERS; r++) {
            float *row = s->responses->taps + ((int64_t)d * RECEIVERS + r) * taps;
            const double side = r ? -at[1] : at[1];
            atomic_store(&s->onset[d * RECEIVERS + r], 20.25 - 14 * side);
            for (int i = 20 - (int)(14 * side); i < taps; i++)
                row[i] = oracle_uniform(&random) * (float)((1 + 0.6 * side) * exp(-6.0 * i / taps));
        }
    }
    CHECK(gc_sofa_make_shells(s, &error) == GPUCONV_OK, "%s", error.message);
    CHECK(gc_sofa_make_meshes(s, GPUCONV_INTERPOLATE_AUTO, &error) == GPUCONV_OK, "%s", error.message);
    return s;
}

/* Makes circles that rise, of which every third one rests; their distances change. */
static gpuconv_path *make_path(int channels, double end) {
    const double seconds[2] = {0, end};
    gpuconv_path *path;
    double *rows = calloc((size_t)channels * 6, sizeof *rows);
    CHECK(rows, "no memory");
    for (int i = 0; i < 2 * channels; i++) {
        const int c = i % channels, last = i >= channels && c % 3;
        rows[3 * i] = 67 * c + (last ? (c % 2 ? -300 : 200) : 0);
        rows[3 * i + 1] = c % 90 - 40 + (last ? 30 : 0);
        rows[3 * i + 2] = 1 + c % 4 + (last ? 0.7 : 0);
    }
    CHECK(gpuconv_path_new(seconds, rows, 2, channels, &path, NULL) == GPUCONV_OK, "no path");
    free(rows);
    return path;
}

/* Renders the input in blocks of `block` frames. */
static guarded render(const gpuconv_sofa *set, const gpuconv_path *path, const gpuconv_motion_config *config,
                      const guarded *x, int64_t block) {
    gpuconv_motion *m;
    gpuconv_error error = {0};
    CHECK(gpuconv_motion_new(set, path, config, &m, &error) == GPUCONV_OK, "%s", error.message);
    CHECK((strstr(gpuconv_motion_plan(m), "GPU") != NULL) == (config->backend == GPUCONV_BACKEND_CUDA), "%s",
          gpuconv_motion_plan(m));
    guarded y = guarded_new(RECEIVERS, x->frames + gpuconv_motion_tail(m));
    const float **in = calloc((size_t)x->channels, sizeof *in);
    int64_t got = 0;
    for (int64_t at = 0, frames = 1; frames; at += frames) {
        float *out[RECEIVERS];
        int64_t now;
        frames = x->frames - at < block ? x->frames - at : block;
        for (int c = 0; c < x->channels; c++)
            in[c] = x->channel[c] + at;
        CHECK(gpuconv_motion_feed(m, in, frames, &error) == GPUCONV_OK, "%s", error.message);
        for (int r = 0; r < RECEIVERS; r++)
            out[r] = y.channel[r] + got;
        assert_int_equal(gpuconv_motion_fetch(m, out, y.frames - got, &now), GPUCONV_OK);
        got += now;
    }
    assert_int_equal(got, y.frames);
    free((void *)in);
    gpuconv_motion_free(m);
    return y;
}

/* Returns whether the GPU has the shared memory for these responses: below 99 KB the longest ones are refused. */
static bool fits(const gpuconv_sofa *set, const gpuconv_path *path, const gpuconv_motion_config *config, int taps) {
    gpuconv_motion *m;
    gpuconv_error error = {0};
    const gpuconv_status status = gpuconv_motion_new(set, path, config, &m, &error);
    CHECK(!status || (status == GPUCONV_ERROR_UNSUPPORTED && taps > 4000), "%s", error.message);
    gpuconv_motion_free(m);
    return !status;
}

void test_moving_sources_agree_with_the_cpu(void **state) {
    (void)state;
    static const struct {
        int directions, taps, channels;
        double interval; /* s */
        int64_t frames;
    } cases[] = {{47, 128, 1, 0.005, 9000}, {47, 200, 70, 0.005, 4000},  {2702, 256, 600, 0.005, 1300},
                 {47, 90, 9, 0.001, 2000},  {300, 900, 11, 0.005, 3000}, {60, 2500, 5, 0.01, 5000},
                 {47, 7000, 3, 0.02, 6000}, {60, 200, 17, 0.0301, 6000}};
    oracle_random random = {.state = 82};
    double worst = -HUGE_VAL;
    for (int k = 0; k < COUNT(cases); k += harness_quick ? 3 : 1) {
        gpuconv_sofa *set = make_set(cases[k].directions, cases[k].taps);
        gpuconv_path *path = make_path(cases[k].channels, (double)cases[k].frames / RATE);
        const double seconds[2] = {0, 0.1}, angles[6] = {-20, 5, 3, 70, -30, 10};
        gpuconv_head *head;
        assert_int_equal(gpuconv_head_new(seconds, angles, 2, &head, NULL), GPUCONV_OK);
        guarded x = guarded_random(&random, cases[k].channels, cases[k].frames);
        gpuconv_motion_config config = gpuconv_motion_config_default();
        config.interval = cases[k].interval;
        config.head = k % 2 ? head : NULL;
        config.doppler = k % 3 == 1;
        config.by_distance = k % 4 == 1;
        guarded want = render(set, path, &config, &x, cases[k].frames);
        config.backend = GPUCONV_BACKEND_CUDA;
        if (!fits(set, path, &config, cases[k].taps))
            config.backend = GPUCONV_BACKEND_CPU;
        guarded y = render(set, path, &config, &x, cases[k].frames), again = render(set, path, &config, &x, 333);
        const double decibels = harness_distance(&y, &want, want.frames);
        CHECK(decibels <= -110, "%d directions, %d taps, %d channels: %.1f dB", cases[k].directions, cases[k].taps,
              cases[k].channels, decibels);
        CHECK(oracle_identical("blocks", &y, y.frames, &again, again.frames), "case %d: blocks change the result", k);
        worst = fmax(worst, decibels);
        guarded_free(&x);
        guarded_free(&want);
        guarded_free(&y);
        guarded_free(&again);
        gpuconv_head_free(head);
        gpuconv_path_free(path);
        gpuconv_sofa_free(set);
    }
    gpu_note("moving sources", worst);
}

void test_moving_sources_in_real_time_agree_with_the_cpu(void **state) {
    (void)state;
    static const int blocks[] = {32, 128, 480, 1024};
    enum { CHANNELS = 21, FRAMES = 20480 };
    oracle_random random = {.state = 83};
    gpuconv_sofa *set = make_set(47, 200);
    gpuconv_path *path = make_path(CHANNELS, (double)FRAMES / RATE);
    guarded x = guarded_random(&random, CHANNELS, FRAMES);
    gpuconv_motion_config config = gpuconv_motion_config_default();
    guarded want = render(set, path, &config, &x, FRAMES);
    config.backend = GPUCONV_BACKEND_CUDA;
    for (int k = 0; k < COUNT(blocks); k += harness_quick ? 3 : 1) {
        gpuconv_motion *m;
        gpuconv_error error = {0};
        CHECK(gpuconv_motion_new(set, path, &config, &m, &error) == GPUCONV_OK, "%s", error.message);
        CHECK(gpuconv_motion_start(m, blocks[k], &error) == GPUCONV_OK, "%s", error.message);
        const int64_t latency = gpuconv_motion_latency(m), whole = FRAMES / blocks[k] * blocks[k];
        guarded y = guarded_new(RECEIVERS, whole);
        for (int64_t at = 0; at < whole; at += blocks[k]) {
            const float *in[CHANNELS];
            float *out[RECEIVERS] = {y.channel[0] + at, y.channel[1] + at};
            for (int c = 0; c < CHANNELS; c++)
                in[c] = x.channel[c] + at;
            gpuconv_motion_process(m, in, out, blocks[k]);
            gc_motion_settle(m);
        }
        assert_int_equal(gpuconv_motion_late(m), 0);
        guarded shifted = guarded_new(RECEIVERS, whole - latency);
        for (int r = 0; r < RECEIVERS; r++)
            memcpy(shifted.channel[r], y.channel[r] + latency, (size_t)shifted.frames * sizeof(float));
        const double decibels = harness_distance(&shifted, &want, shifted.frames);
        CHECK(decibels <= -110, "blocks of %d: %.1f dB", blocks[k], decibels);
        gpuconv_motion_free(m);
        guarded_free(&y);
        guarded_free(&shifted);
    }
    guarded_free(&x);
    guarded_free(&want);
    gpuconv_path_free(path);
    gpuconv_sofa_free(set);
}
