/* Exchanging single routes of a real-time convolver is the crossfade of these routes, in double precision; it causes no
 * click, and no other output changes a sample. */
#include "harness.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { MOST = 24, CHANNELS = 4 };

/* One set of taps of a route, and the frame from which its input is faded in. */
typedef struct step {
    int input, output;
    int64_t from, fade;
    const float *taps;
} step;

/* A matrix, its input, and every exchange that is made. */
typedef struct scene {
    int inputs, outputs;
    int64_t taps;
    guarded h, x; /* h: MOST planes to choose from */
    int used;
    step step[MOST];
    int steps;
    double *faded[MOST]; /* the input of every step */
    guarded y;
    gpuconv_realtime *rt;
    int64_t now;
} scene;

/* Takes the next unused plane as the taps of a route from now on. */
static void take_plane(scene *s, const float **plane, int input, int output, double seconds) {
    assert_true(s->used < MOST && s->steps < MOST);
    const float *taps = s->h.channel[s->used++];
    plane[input * s->outputs + output] = taps;
    s->step[s->steps++] = (step){input, output, s->now, (int64_t)(seconds * 48000), taps};
}

static gpuconv_ir *matrix_of(const scene *s, const float *const *plane) {
    gpuconv_ir *ir;
    gpuconv_error error = {0};
    CHECK(gpuconv_ir_new_matrix(plane, s->inputs, s->outputs, s->taps, 48000, &ir, &error) == GPUCONV_OK, "%s",
          error.message);
    return ir;
}

/* Begins with a response between all channels but input 0 and output 1. */
static scene begin(int64_t taps, int64_t frames, int64_t latency) {
    oracle_random random = {77};
    scene s = {.inputs = 3, .outputs = CHANNELS, .taps = taps};
    const float *plane[MOST] = {NULL};
    gpuconv_error error = {0};
    s.h = guarded_random(&random, MOST, taps);
    s.x = guarded_random(&random, s.inputs, frames);
    s.y = guarded_new(s.outputs, frames);
    for (int i = 0; i < s.inputs; i++)
        for (int o = 0; o < s.outputs; o++)
            if (i != 0 || o != 1)
                take_plane(&s, plane, i, o, 0);
    gpuconv_ir *ir = matrix_of(&s, plane);
    gpuconv_realtime_config config = gpuconv_realtime_config_default();
    config.block = 128;
    config.freewheel = true;
    config.latency = latency;
    CHECK(gpuconv_realtime_new(ir, &config, &s.rt, &error) == GPUCONV_OK, "%s", error.message);
    gpuconv_ir_free(ir);
    return s;
}

static void end(scene *s) {
    gpuconv_realtime_free(s->rt);
    for (int k = 0; k < MOST; k++)
        free(s->faded[k]);
    guarded_free(&s->h);
    guarded_free(&s->x);
    guarded_free(&s->y);
}

static void play_until(scene *s, int64_t frame) {
    while (s->now < frame) {
        const int64_t n = frame - s->now < 128 ? frame - s->now : 128;
        const float *in[CHANNELS];
        float *out[CHANNELS];
        for (int i = 0; i < s->inputs; i++)
            in[i] = s->x.channel[i] + s->now;
        for (int o = 0; o < s->outputs; o++)
            out[o] = s->y.channel[o] + s->now;
        gpuconv_realtime_process(s->rt, in, out, n);
        s->now += n;
    }
}

/* Exchanges `count` routes, each given by input and output. */
static void exchange(scene *s, int count, const int (*route)[2], double seconds) {
    const float *plane[MOST] = {NULL};
    gpuconv_error error = {0};
    for (int k = 0; k < count; k++)
        take_plane(s, plane, route[k][0], route[k][1], seconds);
    gpuconv_ir *ir = matrix_of(s, plane);
    CHECK(gpuconv_realtime_swap_routes(s->rt, ir, seconds, &error) == GPUCONV_OK, "%s", error.message);
    gpuconv_ir_free(ir);
}

static double risen(const step *k, int64_t n) {
    return n < k->from ? 0 : n - k->from + 1 >= k->fade ? 1 : (double)(n - k->from + 1) / (double)k->fade;
}

/* Returns the weight of the input for step k at frame n: what it has risen, less what its successor has. */
static double weight(const scene *s, int k, int64_t n) {
    for (int next = k + 1; next < s->steps; next++)
        if (s->step[next].input == s->step[k].input && s->step[next].output == s->step[k].output)
            return risen(&s->step[k], n) - risen(&s->step[next], n);
    return risen(&s->step[k], n);
}

/* Computes the faded input of every step, once all exchanges are made. */
static void weigh(scene *s) {
    for (int k = 0; k < s->steps; k++) {
        s->faded[k] = calloc((size_t)s->x.frames, sizeof(double));
        CHECK(s->faded[k], "no memory");
        for (int64_t n = 0; n < s->x.frames; n++)
            s->faded[k][n] = (double)s->x.channel[s->step[k].input][n] * weight(s, k, n);
    }
}

static double expected(const scene *s, int output, int64_t n) {
    double sum = 0;
    for (int k = 0; k < s->steps; k++)
        for (int64_t m = 0; s->step[k].output == output && m < s->taps && m <= n; m++)
            sum += (double)s->step[k].taps[m] * s->faded[k][n - m];
    return sum;
}

/* Compares the frames from .. to - 1 of every output; also the second difference of the error, which a click raises. */
static void check_frames(const scene *s, int64_t from, int64_t to) {
    for (int o = 0; o < s->outputs; o++) {
        double error = 0, power = 0, jump = 0, before = 0, earlier = 0;
        for (int64_t n = from; n < to; n++) {
            const double want = expected(s, o, n), off = (double)s->y.channel[o][n] - want;
            error += off * off;
            power += want * want;
            if (n >= from + 2)
                jump = fmax(jump, fabs(off - 2 * before + earlier));
            earlier = before;
            before = off;
        }
        const double rms = sqrt(power / (double)(to - from)), db = 10 * log10(error / power);
        CHECK(db <= -115, "output %d, frames %lld to %lld: %.1f dB", o, (long long)from, (long long)to, db);
        CHECK(jump <= 2e-5 * rms, "output %d, frames %lld to %lld: a click of %g in %g", o, (long long)from,
              (long long)to, jump, rms);
    }
}

static void an_exchange_of_routes_is_their_crossfade(void **state) {
    (void)state;
    static const int64_t at[] = {2000, 3472, 5136, 6700, 8192};
    scene s = begin(1500, 9600, 0);
    play_until(&s, at[0]); /* two routes; then one of them again; then another layer */
    exchange(&s, 2, (const int[][2]){{1, 2}, {0, 3}}, 0.01);
    play_until(&s, at[1]);
    exchange(&s, 1, (const int[][2]){{1, 2}}, 0.01);
    play_until(&s, at[2]);
    exchange(&s, 1, (const int[][2]){{2, 0}}, 0.02);
    play_until(&s, at[3]); /* a route that the response does not have: added */
    exchange(&s, 1, (const int[][2]){{0, 1}}, 0);
    play_until(&s, at[4]); /* more than half of the routes: a new response of all */
    exchange(&s, 4, (const int[][2]){{0, 0}, {1, 2}, {1, 3}, {2, 0}}, 0.005);
    play_until(&s, s.x.frames);
    weigh(&s);
    for (int k = 0; k < COUNT(at); k++)
        check_frames(&s, at[k] - 20, at[k] + 500);
    check_frames(&s, s.x.frames - 100, s.x.frames);
    end(&s);
}

static void a_latency_delays_exchanged_routes_too(void **state) {
    (void)state;
    enum { LATENCY = 300 };
    scene s = begin(700, 6000, LATENCY);
    play_until(&s, 3000);
    exchange(&s, 1, (const int[][2]){{2, 3}}, 0.01);
    play_until(&s, s.x.frames);
    weigh(&s);
    for (int64_t n = 3000; n < 4500; n += 7) {
        const double want = expected(&s, 3, n - LATENCY);
        CHECK(fabs((double)s.y.channel[3][n] - want) < 1e-4 * 15, "frame %lld: %g instead of %g", (long long)n,
              (double)s.y.channel[3][n], want);
    }
    end(&s);
}

static void other_outputs_keep_their_samples(void **state) {
    (void)state;
    scene moved = begin(5000, 20000, 0), still = begin(5000, 20000, 0);
    for (int64_t at = 3072; at < 18000; at += 1536) { /* whole calls: both scenes cut the blocks in the same way */
        play_until(&moved, at);
        moved.used = moved.steps = 11; /* the planes are not compared: take the same ones again */
        exchange(&moved, 2, (const int[][2]){{1, 2}, {2, 2}}, 0.02);
    }
    play_until(&moved, 20000);
    play_until(&still, 20000);
    for (int o = 0; o < CHANNELS; o++)
        CHECK((memcmp(moved.y.channel[o], still.y.channel[o], 20000 * sizeof(float)) == 0) == (o != 2), "output %d %s",
              o, o == 2 ? "did not change" : "changed");
    end(&moved);
    end(&still);
}

static void a_new_response_ends_every_exchange_of_routes(void **state) {
    (void)state;
    scene s = begin(600, 12000, 0);
    const float *plane[MOST] = {NULL};
    gpuconv_error error = {0};
    play_until(&s, 2000);
    exchange(&s, 1, (const int[][2]){{1, 2}}, 0.01);
    play_until(&s, 4000);
    exchange(&s, 1, (const int[][2]){{2, 3}}, 0.01); /* still pending, and withdrawn */
    s.used -= 1;
    s.steps = 0;
    for (int o = 0; o < 3; o++)
        take_plane(&s, plane, o, o, 0);
    gpuconv_ir *ir = matrix_of(&s, plane);
    CHECK(gpuconv_realtime_swap(s.rt, ir, 0.01, &error) == GPUCONV_OK, "%s", error.message);
    play_until(&s, 12000);
    weigh(&s);
    for (int o = 0; o < CHANNELS; o++)
        for (int64_t n = 7000; n < 7400; n++) {
            const double want = expected(&s, o, n);
            CHECK(fabs((double)s.y.channel[o][n] - want) < 1e-4 * 15, "output %d, frame %lld: %g instead of %g", o,
                  (long long)n, (double)s.y.channel[o][n], want);
        }
    gpuconv_ir_free(ir);
    end(&s);
}

/* ---- Many exchanges at once -------------------------------------------------------------------------------------- */

enum { SOURCES = 40, TURNS = 400 / HARNESS_FEWER, SOURCE_TAPS = 700 };

typedef struct motion {
    gpuconv_realtime *rt;
    _Atomic int64_t frame;
    _Atomic bool moved;
    guarded h; /* two responses of every source */
} motion;

/* Returns the routes of one source to both outputs, or all routes if `source` is negative. */
static gpuconv_ir *source_ir(const motion *m, int source, int which) {
    const float *plane[SOURCES * 2] = {NULL};
    gpuconv_ir *ir;
    gpuconv_error error = {0};
    for (int i = 0; i < SOURCES; i++)
        for (int o = 0; o < 2; o++)
            if (source < 0 || i == source)
                plane[i * 2 + o] = m->h.channel[which];
    CHECK(gpuconv_ir_new_matrix(plane, SOURCES, 2, SOURCE_TAPS, 48000, &ir, &error) == GPUCONV_OK, "%s", error.message);
    return ir;
}

/* Moves every source in turn, as fast as the callback plays: more sources than there are layers, and more exchanges
 * than voices. */
static void *move_sources(void *argument) {
    motion *m = argument;
    gpuconv_error error = {0};
    for (int turn = 0; turn < TURNS; turn++) {
        const int64_t begun = atomic_load(&m->frame);
        gpuconv_ir *ir = source_ir(m, turn % SOURCES, (turn / SOURCES + 1) % 2);
        CHECK(gpuconv_realtime_swap_routes(m->rt, ir, 0.004, &error) == GPUCONV_OK, "%s", error.message);
        gpuconv_ir_free(ir);
        while (atomic_load(&m->frame) < begun + 300) {
            struct timespec interval = {0, 20000};
            nanosleep(&interval, NULL);
        }
    }
    atomic_store(&m->moved, true);
    return NULL;
}

static void many_moving_sources_cause_no_click(void **state) {
    (void)state;
    enum { BLOCK = 64 };
    motion m = {.h = guarded_new(2, SOURCE_TAPS)};
    for (int which = 0; which < 2; which++)
        for (int k = 0; k < SOURCE_TAPS; k++)
            m.h.channel[which][k] = k % (which ? 333 : 150) == 0 ? (which ? 0.2f : 0.4f) / (float)SOURCES : 0.0f;
    gpuconv_ir *all = source_ir(&m, -1, 0);
    m.rt = harness_realtime(all, BLOCK, true);
    gpuconv_ir_free(all);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, move_sources, &m) == 0, "cannot start a thread");
    double before = 0, earlier = 0, worst = 0;
    int64_t frame = 0;
    for (int64_t after = 0; after < 100; after += atomic_load(&m.moved)) {
        float x[BLOCK], y[2][BLOCK], *out[2] = {y[0], y[1]};
        const float *in[SOURCES];
        for (int i = 0; i < BLOCK; i++, frame++)
            x[i] = 0.5f * (float)sin(2 * M_PI * 300 / 48000 * (double)(frame % 160));
        for (int i = 0; i < SOURCES; i++)
            in[i] = x;
        gpuconv_realtime_process(m.rt, in, out, BLOCK);
        atomic_store(&m.frame, frame);
        for (int i = 0; i < BLOCK; i++) {
            const double now = (double)y[1][i], second = fabs(now - 2 * before + earlier);
            worst = frame > 4 * SOURCE_TAPS && second > worst ? second : worst;
            CHECK(isfinite(now), "not finite");
            earlier = before;
            before = now;
        }
        CHECK(frame < INT64_C(200000000), "the exchanges do not end");
    }
    pthread_join(thread, NULL);
    /* The sine's own second difference is 0.0008 times a gain of 2; a source of 40 that jumped would add 0.008. */
    CHECK(worst < 0.004, "a second difference of %g: a click", worst);
    CHECK(gpuconv_realtime_late_blocks(m.rt) == 0, "late blocks while freewheeling");
    gpuconv_realtime_free(m.rt);
    guarded_free(&m.h);
}

static void wrong_exchanges_of_routes_are_refused(void **state) {
    (void)state;
    scene s = begin(10, 100, 0);
    const float tap = 1, *one[] = {&tap};
    gpuconv_ir *other;
    gpuconv_error error = {0};
    CHECK(gpuconv_ir_new_matrix(one, 1, 1, 1, 48000, &other, &error) == GPUCONV_OK, "%s", error.message);
    assert_int_equal(gpuconv_realtime_swap_routes(s.rt, other, 0, &error), GPUCONV_ERROR_TOPOLOGY);
    const float *none[MOST] = {NULL};
    gpuconv_ir *empty = matrix_of(&s, none);
    assert_int_equal(gpuconv_realtime_swap_routes(s.rt, empty, 0, &error), GPUCONV_OK);
    assert_int_equal(gpuconv_realtime_swap_routes(s.rt, empty, NAN, &error), GPUCONV_ERROR_ARGUMENT);
    gpuconv_ir_free(empty);
    gpuconv_ir_free(other);
    end(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_exchange_of_routes_is_their_crossfade),
        cmocka_unit_test(a_latency_delays_exchanged_routes_too),
        cmocka_unit_test(other_outputs_keep_their_samples),
        cmocka_unit_test(a_new_response_ends_every_exchange_of_routes),
        cmocka_unit_test(many_moving_sources_cause_no_click),
        cmocka_unit_test(wrong_exchanges_of_routes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
