/* Checks what moving sources give to a GPU: the backend of the test computes directly, in double precision. */
#include "harness.h"
#include "libgpuconv/conv/backend.h"
#include "libgpuconv/dsp/motion_kernels.h"
#include "libgpuconv/space/motion.h"

#include <math.h>
#include <stdlib.h>

enum { RATE = 48000, FRAMES = 9600, CHANNELS = 3 };

/* ---- The backend ------------------------------------------------------------------------------------------------- */

struct gc_motion_gpu {
    gc_motion_options o;
    float *taps, *past, *out;
    int64_t width; /* frames of a channel in `past` */
};

static gpuconv_status open_gpu(const gc_motion_options *o, gc_motion_gpu **gpu, gpuconv_error *error) {
    gc_motion_gpu *g = calloc(1, sizeof *g);
    CHECK(g, "no memory");
    g->o = *o;
    g->width = o->past + o->hops * o->hop;
    g->taps = calloc((size_t)(o->responses * o->receivers * o->taps), sizeof *g->taps);
    g->past = calloc((size_t)(o->channels * g->width), sizeof *g->past);
    g->out = calloc((size_t)(o->hops * o->receivers * o->points), sizeof *g->out);
    CHECK(g->taps && g->past && g->out, "no memory");
    for (int i = 0; i < o->responses; i++)
        assert_int_equal(o->response(o->context, i, g->taps + i * o->receivers * o->taps, error), GPUCONV_OK);
    *gpu = g;
    return GPUCONV_OK;
}

/* Returns the input at a place between its frames. */
static double read_at(const gc_motion_gpu *g, const float *x, double place) {
    const double whole = floor(place), phase = (place - whole) * GC_DELAY_PHASES, part = phase - floor(phase);
    const float *a = g->o.filters + (int64_t)phase * GC_DELAY_TAPS, *at = x + (int64_t)whole + 1 - GC_DELAY_REACH;
    double sum = 0;
    for (int k = 0; k < GC_DELAY_TAPS; k++)
        sum += ((1 - part) * (double)a[k] + part * (double)a[k + GC_DELAY_TAPS]) * (double)at[k];
    return sum;
}

/* Makes the response of a blend. */
static void blend(const gc_motion_gpu *g, const gc_motion_blend *b, int receiver, double *to) {
    const int64_t taps = g->o.taps;
    double energy = 0, sum = 0;
    memset(to, 0, (size_t)taps * sizeof *to);
    for (int k = 0; k < 3; k++)
        for (int64_t i = 0; i < taps; i++) {
            const double h = (double)g->taps[((int64_t)b->response[k] * g->o.receivers + receiver) * taps + i];
            to[i] += (double)b->weight[k] * h;
            energy += (double)b->weight[k] * h * h;
        }
    for (int64_t i = 0; i < taps; i++)
        sum += to[i] * to[i];
    for (int64_t i = 0; i < taps; i++)
        to[i] *= (double)b->gain * (b->weight[0] == 1 ? 1 : sqrt(energy / sum));
}

/* Adds a channel to a receiver over a hop. */
static void add(gc_motion_gpu *g, const gc_motion_work *w, int64_t hop, int channel, int receiver) {
    const int64_t now = hop * g->o.channels + channel, next = now + g->o.channels, frames = g->o.hop;
    const double from = w->delay[now * g->o.receivers + receiver], to = w->delay[next * g->o.receivers + receiver];
    const float *x = g->past + channel * g->width + g->o.past + hop * frames - GC_DELAY_REACH;
    float *out = g->out + (hop * g->o.receivers + receiver) * g->o.points;
    double first[1024], last[1024];
    assert_true(g->o.taps <= COUNT(first));
    blend(g, &w->blend[now], receiver, first);
    blend(g, &w->blend[next], receiver, last);
    for (int64_t i = 0; i < frames; i++) {
        const double part = (double)i / (double)frames, v = read_at(g, x, (double)i - (from + (to - from) * part));
        for (int64_t k = 0; k < g->o.taps; k++)
            out[i + k] += (float)(v * ((1 - part) * first[k] + part * last[k]));
    }
}

static gpuconv_status render_gpu(gc_motion_gpu *g, const gc_motion_work *w, const float **out, gpuconv_error *error) {
    const int64_t frames = w->hops * g->o.hop;
    (void)error;
    memset(g->out, 0, (size_t)(w->hops * g->o.receivers * g->o.points) * sizeof *g->out);
    for (int c = 0; c < g->o.channels; c++) {
        float *row = g->past + c * g->width;
        memcpy(row + g->o.past, w->in + c * frames, (size_t)frames * sizeof *row);
        for (int64_t h = 0; h < w->hops; h++)
            for (int r = 0; r < g->o.receivers; r++)
                add(g, w, h, c, r);
        memmove(row, row + frames, (size_t)g->o.past * sizeof *row);
    }
    *out = g->out;
    return GPUCONV_OK;
}

static float *pin(int device, int64_t floats) {
    (void)device;
    return calloc((size_t)floats, sizeof(float));
}

static void unpin(int device, float *pinned) {
    (void)device;
    free(pinned);
}

static int64_t no_bytes(const gc_motion_gpu *g) {
    (void)g;
    return 0;
}

static void free_gpu(gc_motion_gpu *g) {
    free(g->taps);
    free(g->past);
    free(g->out);
    free(g);
}

static const gc_motion_backend motion = {open_gpu, render_gpu, no_bytes, free_gpu};
static const gc_backend gpu = {
    .id = GPUCONV_BACKEND_CUDA, .alloc_pinned = pin, .free_pinned = unpin, .motion = &motion};
static bool has_gpu = true;

const gc_backend *__wrap_gc_backend_find(gpuconv_backend id);
const gc_backend *__wrap_gc_backend_find(gpuconv_backend id) {
    return has_gpu && id == GPUCONV_BACKEND_CUDA ? &gpu : NULL;
}

/* ---- Tests ------------------------------------------------------------------------------------------------------- */

typedef struct scene {
    gpuconv_sofa *set;
    gpuconv_path *path;
    gpuconv_head *head;
    gpuconv_motion_config config;
    guarded x;
} scene;

static scene make_scene(void) {
    const double seconds[2] = {0, 0.2}, rows[18] = {0, 0, 1, 90, 20, 2, -30, 80, 3, 200, 10, 2, 90, 20, 2, 300, 40, 4};
    const double angles[6] = {0, 0, 0, 50, 20, 10};
    oracle_random random = {.state = 3};
    scene s = {.config = gpuconv_motion_config_default(), .x = guarded_random(&random, CHANNELS, FRAMES)};
    assert_int_equal(gpuconv_sofa_open(TESTS_SOURCE "/tests/sofa/head.sofa", 0, &s.set, NULL), GPUCONV_OK);
    assert_int_equal(gpuconv_path_new(seconds, rows, 2, CHANNELS, &s.path, NULL), GPUCONV_OK);
    assert_int_equal(gpuconv_head_new(seconds, angles, 2, &s.head, NULL), GPUCONV_OK);
    return s;
}

static void free_scene(scene *s) {
    gpuconv_path_free(s->path);
    gpuconv_head_free(s->head);
    gpuconv_sofa_free(s->set);
    guarded_free(&s->x);
}

static gpuconv_motion *new_motion(const scene *s, gpuconv_backend backend) {
    gpuconv_motion *m;
    gpuconv_error error = {0};
    gpuconv_motion_config config = s->config;
    config.backend = backend;
    CHECK(gpuconv_motion_new(s->set, s->path, &config, &m, &error) == GPUCONV_OK, "%s", error.message);
    CHECK(strstr(gpuconv_motion_plan(m), backend == GPUCONV_BACKEND_CUDA ? "GPU" : "CPU"), "%s",
          gpuconv_motion_plan(m));
    return m;
}

static guarded render(const scene *s, gpuconv_backend backend, int64_t block) {
    gpuconv_motion *m = new_motion(s, backend);
    guarded y = guarded_new(2, FRAMES + gpuconv_motion_tail(m));
    int64_t got = 0;
    for (int64_t at = 0, frames = 1, now; frames; at += frames, got += now) {
        const float *in[CHANNELS];
        float *out[2] = {y.channel[0] + got, y.channel[1] + got};
        frames = FRAMES - at < block ? FRAMES - at : block;
        for (int c = 0; c < CHANNELS; c++)
            in[c] = s->x.channel[c] + at;
        assert_int_equal(gpuconv_motion_feed(m, in, frames, NULL), GPUCONV_OK);
        assert_int_equal(gpuconv_motion_fetch(m, out, y.frames - got, &now), GPUCONV_OK);
    }
    assert_int_equal(got, y.frames);
    gpuconv_motion_free(m);
    return y;
}

static void a_gpu_gets_what_gives_the_samples_of_the_cpu(void **state) {
    (void)state;
    scene s = make_scene();
    for (int k = 0; k < 3; k++) {
        s.config.doppler = s.config.by_distance = k > 0;
        s.config.head = k > 1 ? s.head : NULL;
        guarded want = render(&s, GPUCONV_BACKEND_CPU, FRAMES);
        guarded y = render(&s, GPUCONV_BACKEND_CUDA, FRAMES), again = render(&s, GPUCONV_BACKEND_CUDA, 333);
        CHECK(harness_distance(&y, &want, want.frames) <= -110, "scene %d: %.1f dB", k,
              harness_distance(&y, &want, want.frames));
        CHECK(oracle_identical("blocks", &y, y.frames, &again, again.frames), "scene %d", k);
        guarded_free(&want);
        guarded_free(&y);
        guarded_free(&again);
    }
    free_scene(&s);
}

static void a_gpu_gets_the_hops_of_a_sound_device(void **state) {
    (void)state;
    static const int blocks[] = {32, 128, 333, 480, 1000};
    scene s = make_scene();
    guarded want = render(&s, GPUCONV_BACKEND_CPU, FRAMES);
    for (int k = 0; k < COUNT(blocks); k++) {
        gpuconv_motion *m = new_motion(&s, GPUCONV_BACKEND_CUDA);
        assert_int_equal(gpuconv_motion_start(m, blocks[k], NULL), GPUCONV_OK);
        guarded y = guarded_new(2, FRAMES), early = guarded_new(2, FRAMES);
        const int64_t latency = gpuconv_motion_latency(m), whole = FRAMES / blocks[k] * blocks[k];
        for (int64_t at = 0; at < whole; at += blocks[k]) {
            const float *in[CHANNELS] = {s.x.channel[0] + at, s.x.channel[1] + at, s.x.channel[2] + at};
            float *out[2] = {y.channel[0] + at, y.channel[1] + at};
            gpuconv_motion_process(m, in, out, blocks[k]);
            gc_motion_settle(m);
        }
        for (int r = 0; r < 2; r++)
            memcpy(early.channel[r], y.channel[r] + latency, (size_t)(whole - latency) * sizeof(float));
        assert_int_equal(gpuconv_motion_late(m), 0);
        CHECK(harness_distance(&early, &want, whole - latency) <= -110, "blocks of %d: %.1f dB", blocks[k],
              harness_distance(&early, &want, whole - latency));
        gpuconv_motion_free(m);
        guarded_free(&y);
        guarded_free(&early);
    }
    guarded_free(&want);
    free_scene(&s);
}

static void a_missing_gpu_and_wrong_numbers_are_refused(void **state) {
    (void)state;
    scene s = make_scene();
    gpuconv_motion *m;
    s.config.backend = (gpuconv_backend)7;
    assert_int_equal(gpuconv_motion_new(s.set, s.path, &s.config, &m, NULL), GPUCONV_ERROR_ARGUMENT);
    s.config.backend = GPUCONV_BACKEND_CUDA;
    s.config.device = -2;
    assert_int_equal(gpuconv_motion_new(s.set, s.path, &s.config, &m, NULL), GPUCONV_ERROR_ARGUMENT);
    s.config.device = 0;
    has_gpu = false;
    assert_int_equal(gpuconv_motion_new(s.set, s.path, &s.config, &m, NULL), GPUCONV_ERROR_UNSUPPORTED);
    has_gpu = true;
    free_scene(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gpu_gets_what_gives_the_samples_of_the_cpu),
        cmocka_unit_test(a_gpu_gets_the_hops_of_a_sound_device),
        cmocka_unit_test(a_missing_gpu_and_wrong_numbers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
