/* After a reset a real-time convolver gives the samples of a new one with the present responses, bit for bit: at any
 * moment, in the middle of an exchange, and while another thread makes one. And samples that are NaN or infinite are
 * silence, not a past that a reset would have to clear. */
#include "harness.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

enum { FRAMES = 30000 / HARNESS_LESS };

/* Returns a response from all inputs to all outputs, whose taps *kept holds. */
static gpuconv_ir *make_matrix(oracle_random *random, int inputs, int outputs, int64_t taps, guarded *kept) {
    gpuconv_ir *ir;
    gpuconv_error error = {0};
    *kept = guarded_random(random, inputs * outputs, taps);
    CHECK(gpuconv_ir_new_matrix((const float *const *)kept->channel, inputs, outputs, taps, 48000, &ir, &error) ==
              GPUCONV_OK,
          "%s", error.message);
    return ir;
}

/* Plays part of a signal, from 1 to `most` frames, in calls of random length. */
static void play_some(gpuconv_realtime *rt, oracle_random *random, const guarded *x, int outputs, int64_t most) {
    guarded part = *x;
    part.frames = 1 + oracle_below(random, most);
    guarded y = harness_play(rt, &part, outputs, 1 + (int)oracle_below(random, 700), NULL);
    guarded_free(&y);
}

/* Resets and compares with a new object, which gets `routes` (NULL: none) before its first call. */
static void check_reset(const char *what, gpuconv_realtime *rt, const gpuconv_ir *ir, const gpuconv_ir *routes,
                        const guarded *x) {
    gpuconv_realtime *fresh = harness_realtime(ir, 128, true);
    if (routes)
        assert_int_equal(gpuconv_realtime_swap_routes(fresh, routes, 0, NULL), GPUCONV_OK);
    gpuconv_realtime_reset(rt);
    guarded want = harness_play(fresh, x, gpuconv_ir_outputs(ir), 0, NULL);
    guarded y = harness_play(rt, x, gpuconv_ir_outputs(ir), 0, NULL);
    CHECK(oracle_identical(what, &y, x->frames, &want, x->frames), "%s", what);
    assert_int_equal(gpuconv_realtime_late_blocks(rt), 0);
    gpuconv_realtime_free(fresh);
    guarded_free(&want);
    guarded_free(&y);
}

static void at_any_moment_a_reset_gives_a_new_object(void **state) {
    (void)state;
    static const struct {
        int inputs, outputs, taps;
    } shapes[] = {{1, 1, 300}, {1, 1, 90000}, {2, 2, 20000}, {8, 8, 6000}}; /* the last one by matrix products */
    oracle_random random = {31};
    for (int s = 0; s < COUNT(shapes); s++) {
        guarded kept, x = guarded_random(&random, shapes[s].inputs, FRAMES);
        gpuconv_ir *ir = make_matrix(&random, shapes[s].inputs, shapes[s].outputs, shapes[s].taps, &kept);
        gpuconv_realtime *rt = harness_realtime(ir, 128, true);
        assert_true((strstr(gpuconv_realtime_plan(rt), "matrix products") != NULL) == (s == 3));
        check_reset("before the first call", rt, ir, NULL, &x);
        for (int round = 0; round < 4 - HARNESS_LESS / 3; round++) {
            play_some(rt, &random, &x, gpuconv_ir_outputs(ir), FRAMES);
            gpuconv_realtime_set_freewheel(rt, round % 2); /* the workers may be late and at work */
            play_some(rt, &random, &x, gpuconv_ir_outputs(ir), FRAMES);
            gpuconv_realtime_set_freewheel(rt, true);
            check_reset("after some calls", rt, ir, NULL, &x);
        }
        gpuconv_realtime_free(rt);
        gpuconv_ir_free(ir);
        guarded_free(&kept);
        guarded_free(&x);
    }
}

static void a_reset_ends_every_exchange(void **state) {
    (void)state;
    oracle_random random = {32};
    guarded kept[3], x = guarded_random(&random, 2, FRAMES);
    gpuconv_ir *ir[3];
    for (int i = 0; i < 3; i++)
        ir[i] = harness_response(&random, 4, 2, 3000 + 4000 * i, &kept[i]);
    gpuconv_realtime *rt = harness_realtime(ir[0], 128, true);
    for (int round = 0; round < 12; round++) {
        const gpuconv_ir *last = NULL;
        const int exchanges = 1 + (int)oracle_below(&random, 5); /* more than there are voices */
        for (int k = 0; k < exchanges; k++) {
            last = ir[oracle_below(&random, 3)];
            assert_int_equal(gpuconv_realtime_swap(rt, last, 0.05, NULL), GPUCONV_OK);
            if (k < exchanges - 1 || round % 3) /* else none takes it up */
                play_some(rt, &random, &x, 2, round % 2 ? 3000 : 500);
        }
        check_reset("in an exchange", rt, last, NULL, &x);
    }
    gpuconv_realtime_free(rt);
    guarded_free(&x);
    for (int i = 0; i < 3; i++) {
        gpuconv_ir_free(ir[i]);
        guarded_free(&kept[i]);
    }
}

static void a_reset_keeps_exchanged_routes(void **state) {
    (void)state;
    enum { TAPS = 3000 };
    oracle_random random = {33};
    guarded h, x = guarded_random(&random, 3, FRAMES);
    gpuconv_ir *ir = make_matrix(&random, 3, 3, TAPS, &h), *moved;
    for (int played = 0; played < 4; played++) {
        const float *route[9] = {[3] = h.channel[played]};
        gpuconv_realtime *rt = harness_realtime(ir, 128, true);
        assert_int_equal(gpuconv_ir_new_matrix(route, 3, 3, TAPS, 48000, &moved, NULL), GPUCONV_OK);
        play_some(rt, &random, &x, 3, 5000);
        if (played == 3) /* both wait */
            assert_int_equal(gpuconv_realtime_swap(rt, ir, 0.05, NULL), GPUCONV_OK);
        assert_int_equal(gpuconv_realtime_swap_routes(rt, moved, 0.05, NULL), GPUCONV_OK);
        if (played == 1 || played == 2) /* amid the crossfade; after it; else no call takes it up */
            play_some(rt, &random, &x, 3, played == 1 ? 2000 : FRAMES);
        check_reset("after an exchange of routes", rt, ir, moved, &x);
        check_reset("again", rt, ir, moved, &x);
        gpuconv_realtime_free(rt);
        gpuconv_ir_free(moved);
    }
    gpuconv_ir_free(ir);
    guarded_free(&h);
    guarded_free(&x);
}

typedef struct exchanging {
    gpuconv_realtime *rt;
    gpuconv_ir *ir[2];
    int last; /* that was posted */
    _Atomic bool quit;
} exchanging;

static void *exchange_repeatedly(void *argument) {
    exchanging *e = argument;
    for (; !atomic_load(&e->quit); e->last = 1 - e->last)
        assert_int_equal(gpuconv_realtime_swap(e->rt, e->ir[1 - e->last], 0.01, NULL), GPUCONV_OK);
    return NULL;
}

static void another_thread_may_exchange_during_a_reset(void **state) {
    (void)state;
    oracle_random random = {34};
    guarded kept[2], x = guarded_random(&random, 1, FRAMES), silence = guarded_new(1, 2000);
    exchanging e = {0};
    pthread_t thread;
    memset(silence.channel[0], 0, 2000 * sizeof(float));
    for (int i = 0; i < 2; i++)
        e.ir[i] = harness_response(&random, 1, 1, 2000, &kept[i]);
    e.rt = harness_realtime(e.ir[0], 128, true);
    CHECK(pthread_create(&thread, NULL, exchange_repeatedly, &e) == 0, "cannot start a thread");
    for (int round = 0; round < 60 / HARNESS_FEWER; round++) {
        play_some(e.rt, &random, &x, 1, 3000);
        gpuconv_realtime_reset(e.rt);
        guarded y = harness_play(e.rt, &silence, 1, 0, NULL);
        for (int64_t i = 0; i < y.frames; i++)
            CHECK(y.channel[0][i] == 0, "round %d: %g sounds after a reset", round, (double)y.channel[0][i]);
        guarded_free(&y);
    }
    atomic_store(&e.quit, true);
    pthread_join(thread, NULL);
    check_reset("after the other thread has ended", e.rt, e.ir[e.last], NULL, &x);
    gpuconv_realtime_free(e.rt);
    guarded_free(&x);
    guarded_free(&silence);
    for (int i = 0; i < 2; i++) {
        gpuconv_ir_free(e.ir[i]);
        guarded_free(&kept[i]);
    }
}

static void nan_and_infinite_samples_are_silence(void **state) {
    (void)state;
    oracle_random random = {35};
    guarded kept, x = guarded_random(&random, 2, FRAMES), clean = guarded_new(2, FRAMES);
    gpuconv_ir *ir = harness_response(&random, 4, 2, 20000, &kept);
    gpuconv_realtime *rt = harness_realtime(ir, 128, true), *other = harness_realtime(ir, 128, true);
    for (int k = 0; k < 40; k++)
        x.channel[k % 2][oracle_below(&random, FRAMES)] = k % 3 == 0 ? NAN : k % 3 == 1 ? INFINITY : -INFINITY;
    for (int c = 0; c < 2; c++)
        for (int64_t i = 0; i < FRAMES; i++)
            clean.channel[c][i] = isfinite(x.channel[c][i]) ? x.channel[c][i] : 0;
    guarded y = harness_play(rt, &x, 2, 0, NULL), want = harness_play(other, &clean, 2, 0, NULL);
    CHECK(oracle_identical("not finite", &y, FRAMES, &want, FRAMES), "NaN is not silence");
    gpuconv_realtime_free(rt);
    gpuconv_realtime_free(other);
    gpuconv_ir_free(ir);
    guarded_free(&kept);
    guarded_free(&x);
    guarded_free(&clean);
    guarded_free(&y);
    guarded_free(&want);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_any_moment_a_reset_gives_a_new_object),
        cmocka_unit_test(a_reset_ends_every_exchange),
        cmocka_unit_test(a_reset_keeps_exchanged_routes),
        cmocka_unit_test(another_thread_may_exchange_during_a_reset),
        cmocka_unit_test(nan_and_infinite_samples_are_silence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
