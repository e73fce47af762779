/* Exchanging the response of a real-time convolver causes no click and no leak and ends with the new response alone. */
#include "harness.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

typedef struct exchanges {
    gpuconv_realtime *rt;
    gpuconv_ir *ir[2];
    int count;
    _Atomic int done;
    _Atomic int64_t frame; /* number of the last frame that the callback processed */
} exchanges;

static void *swap_repeatedly(void *argument) {
    exchanges *e = argument;
    gpuconv_error error = {0};
    for (int i = 0; i < e->count; i++) {
        int64_t begun = atomic_load(&e->frame);
        if (gpuconv_realtime_swap(e->rt, e->ir[i % 2], 0.005, &error) != GPUCONV_OK)
            break;
        atomic_fetch_add(&e->done, 1);
        while (atomic_load(&e->frame) < begun + 1000 &&
               i < e->count - 1) { /* two fades: the callback takes it before the next one */
            struct timespec interval = {0, 50000};
            nanosleep(&interval, NULL);
        }
    }
    return NULL;
}

static void a_thousand_exchanges_cause_no_click(void **state) {
    (void)state;
    enum { BLOCK = 64, TAPS = 2000 };
    guarded h[2] = {guarded_new(1, TAPS), guarded_new(1, TAPS)};
    exchanges e = {.count = 1000};
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < TAPS; k++)
            h[i].channel[0][k] = k % (i ? 777 : 450) == 0 ? (i ? 0.5f : 1.0f) / (float)(1 + k / 300) : 0.0f;
        e.ir[i] = harness_route(&h[i], 1);
    }
    e.rt = harness_realtime(e.ir[1], BLOCK, true);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, swap_repeatedly, &e) == 0, "cannot start a thread");
    double before = 0, earlier = 0, worst = 0;
    int64_t frame = 0;
    for (int64_t after = 0; after < 100; after += atomic_load(&e.done) == e.count) {
        float x[BLOCK], y[BLOCK], *out = y;
        const float *in = x;
        for (int i = 0; i < BLOCK; i++, frame++)
            x[i] = 0.5f * (float)sin(2 * M_PI * 300 / 48000 * (double)(frame % 160));
        gpuconv_realtime_process(e.rt, &in, &out, BLOCK);
        atomic_store(&e.frame, frame);
        for (int i = 0; i < BLOCK; i++) {
            double now = (double)y[i], second = fabs(now - 2 * before + earlier);
            if (frame > 4 * TAPS) /* past the beginning of the sine and of its echoes */
                worst = second > worst ? second : worst;
            CHECK(isfinite(now), "not finite");
            earlier = before;
            before = now;
        }
        CHECK(frame < INT64_C(400000000), "only %d exchanges were made", atomic_load(&e.done));
    }
    pthread_join(thread, NULL);
    CHECK(atomic_load(&e.done) == e.count, "%d of %d exchanges", atomic_load(&e.done), e.count);
    /* The sine's own second difference is 0.0008, times a gain of 3; a jump between the responses would be 0.5. */
    CHECK(worst < 0.02, "a second difference of %g: a click", worst);
    CHECK(gpuconv_realtime_late_blocks(e.rt) == 0, "late blocks while freewheeling");
    gpuconv_realtime_free(e.rt);
    for (int i = 0; i < 2; i++) {
        gpuconv_ir_free(e.ir[i]);
        guarded_free(&h[i]);
    }
}

static void without_callbacks_an_exchange_returns_and_the_newest_one_is_used(void **state) {
    (void)state;
    gpuconv_ir *ir[8];
    gpuconv_error error = {0};
    for (int i = 0; i < COUNT(ir); i++) {
        guarded h = guarded_new(1, 1);
        h.channel[0][0] = (float)(i + 1);
        ir[i] = harness_route(&h, 1);
        guarded_free(&h);
    }
    gpuconv_realtime *rt = harness_realtime(ir[0], 64, true);
    for (int round = 0; round < 50; round++)
        for (int i = 0; i < COUNT(ir); i++)
            CHECK(gpuconv_realtime_swap(rt, ir[i], 0, &error) == GPUCONV_OK, "%s", error.message);
    float x[64], y[64], *out = y;
    const float *in = x;
    for (int i = 0; i < COUNT(x); i++)
        x[i] = 1;
    for (int b = 0; b < 4; b++)
        gpuconv_realtime_process(rt, &in, &out, COUNT(x));
    CHECK(fabsf(y[63] - (float)COUNT(ir)) < 1e-5f, "output %g instead of the newest response's %d", (double)y[63],
          COUNT(ir));
    gpuconv_realtime_free(rt);
    for (int i = 0; i < COUNT(ir); i++)
        gpuconv_ir_free(ir[i]);
}

static void an_exchange_ends_with_the_new_response_alone(void **state) {
    (void)state;
    oracle_random random = {10};
    guarded h[2] = {guarded_random(&random, 1, 3000), guarded_random(&random, 1, 7000)};
    gpuconv_ir *ir[2] = {harness_route(&h[0], 1), harness_route(&h[1], 1)};
    guarded x = guarded_random(&random, 1, 60000), want = harness_offline(ir[1], &x);
    gpuconv_realtime *rt = harness_realtime(ir[0], 128, true);
    gpuconv_error error = {0};
    CHECK(gpuconv_realtime_swap(rt, ir[1], 0.1, &error) == GPUCONV_OK, "%s", error.message);
    guarded y = harness_play(rt, &x, 1, 128, NULL);
    double wrong = 0, power = 0;
    for (int64_t n = 20000; n < x.frames; n++) { /* the fade, the old response and the faded input are over */
        double d = (double)y.channel[0][n] - (double)want.channel[0][n];
        wrong += d * d;
        power += (double)want.channel[0][n] * (double)want.channel[0][n];
    }
    CHECK(10 * log10(wrong / power) <= -120, "%.1f dB", 10 * log10(wrong / power));
    guarded two = guarded_random(&random, 2, 100);
    gpuconv_ir *other = harness_route(&two, 2);
    CHECK(gpuconv_realtime_swap(rt, other, 0, &error) == GPUCONV_ERROR_TOPOLOGY,
          "a response of other channels was accepted");
    CHECK(gpuconv_realtime_swap(rt, ir[0], -1, &error) == GPUCONV_ERROR_ARGUMENT, "a negative fade was accepted");
    gpuconv_realtime_free(rt);
    gpuconv_ir_free(other);
    guarded_free(&two);
    guarded_free(&y);
    guarded_free(&x);
    guarded_free(&want);
    for (int i = 0; i < 2; i++) {
        gpuconv_ir_free(ir[i]);
        guarded_free(&h[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thousand_exchanges_cause_no_click),
        cmocka_unit_test(without_callbacks_an_exchange_returns_and_the_newest_one_is_used),
        cmocka_unit_test(an_exchange_ends_with_the_new_response_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
