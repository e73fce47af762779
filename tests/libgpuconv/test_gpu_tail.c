/* A tail on a GPU gives the same samples as the engine, a short stall stays inaudible, and the CPU takes over after a
 * failure. The bank is a CPU stand-in, so the test runs without a GPU. */
#include "check.h"
#include "harness.h"

#include "libgpuconv/conv/backend.h"

#include <math.h>
#include <stdatomic.h>
#include <time.h>

/* A bank that convolves directly on the calling thread, over the taps that are not zero. `stall_ms` makes its
 * next call sleep, `bank_fails` makes its calls, and opening one, fail. */
struct gc_bank {
    gc_bank_options options;
    gc_route *route;
    float *taps, *past, *out; /* routes x taps; inputs x (taps + block); outputs x block */
};

static _Atomic int stall_ms;
static _Atomic bool bank_fails;

static gpuconv_status fake_open(const gc_bank_options *c, gc_bank **bank, gpuconv_error *error) {
    (void)error;
    if (atomic_load(&bank_fails))
        return GPUCONV_ERROR_DEVICE;
    gc_bank *b = calloc(1, sizeof *b);
    CHECK(b, "no memory");
    b->options = *c;
    b->taps = calloc((size_t)(c->routes * c->taps), sizeof(float));
    b->past = calloc((size_t)(c->inputs * (c->taps + c->block)), sizeof(float));
    b->out = calloc((size_t)c->outputs * (size_t)c->block, sizeof(float));
    b->route = calloc((size_t)c->routes, sizeof *b->route);
    CHECK(b->taps && b->past && b->out && b->route, "no memory");
    memcpy(b->route, c->route, (size_t)c->routes * sizeof *b->route);
    for (int k = 0; k < c->routes; k++)
        c->response(c->context, k, b->taps + k * c->taps);
    *bank = b;
    return GPUCONV_OK;
}

NOT_SANITIZED static gpuconv_status fake_process(gc_bank *b, const float *in, const float **out, gpuconv_error *error) {
    (void)error;
    int ms = atomic_exchange(&stall_ms, 0);
    struct timespec stall = {ms / 1000, ms % 1000 * 1000000L};
    if (ms)
        nanosleep(&stall, NULL);
    if (atomic_load(&bank_fails))
        return GPUCONV_ERROR_DEVICE;
    int block = b->options.block;
    int64_t count = b->options.taps;
    memset(b->out, 0, (size_t)b->options.outputs * (size_t)block * sizeof(float));
    for (int c = 0; c < b->options.inputs; c++) {
        float *past = b->past + c * (count + block);
        memmove(past, past + block, (size_t)count * sizeof *past);
        memcpy(past + count, in + c * block, (size_t)block * sizeof *past);
    }
    for (int r = 0; r < b->options.routes; r++) {
        const float *past = b->past + b->route[r].input * (count + block);
        float *to = b->out + b->route[r].output * block;
        for (int64_t k = 0; k < count; k++) {
            float h = b->taps[r * count + k];
            for (int i = 0; h != 0 && i < block; i++)
                to[i] += h * past[count + i - k];
        }
    }
    *out = b->out;
    return GPUCONV_OK;
}

static float *fake_pin(int device, int64_t floats) {
    (void)device;
    return calloc((size_t)floats, sizeof(float));
}

static void fake_unpin(int device, float *pinned) {
    (void)device;
    free(pinned);
}

static const char *fake_plan(const gc_bank *b) {
    (void)b;
    return "a bank on the CPU";
}

static void fake_free(gc_bank *b) {
    free(b->taps);
    free(b->past);
    free(b->out);
    free(b->route);
    free(b);
}

static const gc_bank_backend bank = {fake_open, fake_process, fake_plan, fake_free};
static const gc_backend fake = {
    .id = GPUCONV_BACKEND_CUDA, .alloc_pinned = fake_pin, .free_pinned = fake_unpin, .bank = &bank};

const gc_backend *__real_gc_backend_find(gpuconv_backend id);
const gc_backend *__wrap_gc_backend_find(gpuconv_backend id);
const gc_backend *__wrap_gc_backend_find(gpuconv_backend id) {
    return id == GPUCONV_BACKEND_CUDA ? &fake : __real_gc_backend_find(id);
}

static gpuconv_realtime *start_with_gpu_tail(const gpuconv_ir *ir, bool freewheel) {
    gpuconv_realtime_config config = gpuconv_realtime_config_default();
    config.rate = 48000;
    config.block = 256;
    config.freewheel = freewheel;
    config.backend = GPUCONV_BACKEND_CUDA;
    gpuconv_realtime *rt;
    gpuconv_error error = {0};
    CHECK(gpuconv_realtime_new(ir, &config, &rt, &error) == GPUCONV_OK, "%s", error.message);
    return rt;
}

static void a_gpu_tail_gives_the_same_samples_as_the_engine(void **state) {
    (void)state;
    static const int blocks[] = {0, 64, 480};
    static const int64_t taps[] = {300, 4096, 4097, 9000};
    static const struct { int inputs, channels; } shapes[] = {{2, 4}, {1, 3}};
    oracle_random random = {15};
    for (int t = 0; t < COUNT(taps); t++)
        for (int s = 0; s < COUNT(shapes); s++) {
            guarded kept, x = guarded_random(&random, shapes[s].inputs, 40000 / (1 + HARNESS_FEWER));
            gpuconv_ir *ir = harness_response(&random, shapes[s].channels, shapes[s].inputs, taps[t], &kept);
            guarded want = harness_offline(ir, &x);
            for (int b = 0; b < COUNT(blocks); b++) {
                gpuconv_realtime *rt = start_with_gpu_tail(ir, true);
                assert_int_equal(gpuconv_realtime_backend(rt),
                                 taps[t] > 4096 ? GPUCONV_BACKEND_CUDA : GPUCONV_BACKEND_CPU);
                guarded y = harness_play(rt, &x, gpuconv_ir_outputs(ir), blocks[b], NULL);
                double error_db = harness_distance(&y, &want, x.frames);
                CHECK(error_db <= -120, "%lld taps, calls of %d: %.1f dB", (long long)taps[t], blocks[b], error_db);
                CHECK(gpuconv_realtime_late_blocks(rt) == 0, "late blocks while freewheeling");
                gpuconv_realtime_free(rt);
                guarded_free(&y);
            }
            guarded_free(&want);
            guarded_free(&x);
            guarded_free(&kept);
            gpuconv_ir_free(ir);
        }
}

/* Returns a response with a tap of 0.5 at frame 0 and a tap of 0.25 at frame 6000, in the tail. */
static gpuconv_ir *two_taps(void) {
    guarded taps = guarded_new(1, 6001);
    memset(taps.channel[0], 0, 6001 * sizeof(float));
    taps.channel[0][0] = 0.5f;
    taps.channel[0][6000] = 0.25f;
    gpuconv_ir *ir = harness_route(&taps, 1);
    guarded_free(&taps);
    return ir;
}

/* Plays ones in real time. Returns the last output sample, and stores the smallest and largest one. */
static float play_ones(gpuconv_realtime *rt, double seconds, float *least, float *most) {
    float ones[256], out[256];
    const float *in[] = {ones};
    float *to[] = {out};
    *least = INFINITY;
    *most = -INFINITY;
    for (int i = 0; i < 256; i++)
        ones[i] = 1;
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (int b = 0; b < (int)(seconds * 48000 / 256); b++) {
        next.tv_nsec += 5333333;
        next.tv_sec += next.tv_nsec / 1000000000;
        next.tv_nsec %= 1000000000;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
        gpuconv_realtime_process(rt, in, to, 256);
        for (int i = 0; i < 256; i++) {
            *least = fminf(*least, out[i]);
            *most = fmaxf(*most, out[i]);
        }
    }
    return out[255];
}

static void a_short_stall_of_the_bank_is_inaudible(void **state) {
    (void)state;
    gpuconv_ir *ir = two_taps();
    gpuconv_realtime *rt = start_with_gpu_tail(ir, false);
    float least, most;
    assert_true(play_ones(rt, 0.5, &least, &most) == 0.75f);
    int64_t before = gpuconv_realtime_late_blocks(rt);
    atomic_store(&stall_ms, 25);
    (void)play_ones(rt, 0.5, &least, &most);
    /* On a busy machine the test itself may be late; the samples then prove nothing. */
    if (gpuconv_realtime_late_blocks(rt) == before)
        CHECK(least == 0.75f && most == 0.75f, "samples from %g to %g", (double)least, (double)most);
    assert_int_equal(gpuconv_realtime_backend(rt), GPUCONV_BACKEND_CUDA);
    gpuconv_realtime_free(rt);
    gpuconv_ir_free(ir);
}

static void a_stalled_or_failed_bank_is_replaced_by_the_cpu(void **state) {
    (void)state;
    for (int fails = 0; fails < 2; fails++) { /* 0: stalls for 0.9 s; 1: returns an error */
        gpuconv_ir *ir = two_taps();
        gpuconv_realtime *rt = start_with_gpu_tail(ir, false);
        float least, most;
        assert_true(play_ones(rt, 0.5, &least, &most) == 0.75f);
        if (!fails)
            atomic_store(&stall_ms, 900);
        else
            atomic_store(&bank_fails, true);
        (void)play_ones(rt, 1.5, &least, &most);
        CHECK(gpuconv_realtime_backend(rt) == GPUCONV_BACKEND_CPU, "the tail is still on the GPU");
        CHECK(fails || gpuconv_realtime_late_blocks(rt) > 0, "no late block was counted");
        float last = play_ones(rt, 0.5, &least, &most);
        CHECK(fabsf(last - 0.75f) < 1e-5f && fabsf(least - 0.75f) < 1e-5f && fabsf(most - 0.75f) < 1e-5f,
              "after the fallback: samples from %g to %g", (double)least, (double)most);
        /* A later exchange stays on the CPU. */
        gpuconv_error error = {0};
        CHECK(gpuconv_realtime_swap(rt, ir, 0.01, &error) == GPUCONV_OK, "%s", error.message);
        (void)play_ones(rt, 0.5, &least, &most);
        assert_int_equal(gpuconv_realtime_backend(rt), GPUCONV_BACKEND_CPU);
        atomic_store(&bank_fails, false);
        gpuconv_realtime_free(rt);
        gpuconv_ir_free(ir);
    }
}

/* The bank has no reset: it is opened anew, in the middle of a period and of the tail. */
static void after_a_reset_a_gpu_tail_is_that_of_a_new_object(void **state) {
    (void)state;
    oracle_random random = {19};
    guarded kept, past = guarded_random(&random, 2, 12000), x = guarded_random(&random, 2, 12000);
    gpuconv_ir *ir = harness_response(&random, 4, 2, 5000, &kept);
    gpuconv_realtime *rt = start_with_gpu_tail(ir, true), *fresh = start_with_gpu_tail(ir, true);
    guarded want = harness_play(fresh, &x, 2, 0, NULL);
    for (int round = 0; round < 5; round++) {
        past.frames = 5000 + oracle_below(&random, 5000); /* late for less than the 0.2 s of a failure */
        gpuconv_realtime_set_freewheel(rt, round % 2);
        guarded before = harness_play(rt, &past, 2, 0, NULL);
        gpuconv_realtime_set_freewheel(rt, true);
        gpuconv_realtime_reset(rt);
        assert_int_equal(gpuconv_realtime_late_blocks(rt), 0);
        assert_int_equal(gpuconv_realtime_backend(rt), GPUCONV_BACKEND_CUDA);
        guarded y = harness_play(rt, &x, 2, 0, NULL);
        CHECK(oracle_identical("after a reset", &y, x.frames, &want, x.frames), "round %d", round);
        guarded_free(&before);
        guarded_free(&y);
    }
    gpuconv_realtime_free(rt);
    gpuconv_realtime_free(fresh);
    guarded_free(&want);
    guarded_free(&kept);
    guarded_free(&past);
    guarded_free(&x);
    gpuconv_ir_free(ir);
}

/* Where the bank cannot be opened again, the CPU takes over. */
static void a_gpu_tail_that_cannot_be_reset_is_replaced_by_the_cpu(void **state) {
    (void)state;
    gpuconv_ir *ir = two_taps();
    gpuconv_realtime *rt = start_with_gpu_tail(ir, false);
    float least, most;
    assert_true(play_ones(rt, 0.5, &least, &most) == 0.75f);
    atomic_store(&bank_fails, true);
    gpuconv_realtime_reset(rt);
    (void)play_ones(rt, 1, &least, &most);
    CHECK(gpuconv_realtime_backend(rt) == GPUCONV_BACKEND_CPU, "the tail is still on the GPU");
    CHECK(fabsf(play_ones(rt, 0.5, &least, &most) - 0.75f) < 1e-5f, "the tail is missing");
    atomic_store(&bank_fails, false);
    gpuconv_realtime_free(rt);
    gpuconv_ir_free(ir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gpu_tail_gives_the_same_samples_as_the_engine),
        cmocka_unit_test(a_short_stall_of_the_bank_is_inaudible),
        cmocka_unit_test(a_stalled_or_failed_bank_is_replaced_by_the_cpu),
        cmocka_unit_test(after_a_reset_a_gpu_tail_is_that_of_a_new_object),
        cmocka_unit_test(a_gpu_tail_that_cannot_be_reset_is_replaced_by_the_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
