/* Real-time convolution gives the engine's samples without latency; the callback allocates nothing, takes no lock and
 * makes no system call. */
#include "check.h"
#include "count_calls.h"
#include "harness.h"

#include "libgpuconv/realtime/stage_convolver.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/seccomp.h>
#endif

static void calls_of_any_size_give_the_same_samples_as_the_engine(void **state) {
    (void)state;
    static const int blocks[] = {0, 1, 7, 32, 64, 127, 480, 1024};
    static const int64_t taps[] = {1, 300, 511, 513, 5000, 90000};
    static const struct { int inputs, channels; } shapes[] = {{1, 1}, {2, 2}, {2, 4}, {1, 3}};
    oracle_random random = {5};
    for (int t = 0; t < COUNT(taps); t++)
        for (int s = 0; s < COUNT(shapes); s++) {
            guarded h = guarded_random(&random, shapes[s].channels, taps[t]);
            gpuconv_ir *ir = harness_route(&h, shapes[s].inputs);
            guarded x = guarded_random(&random, shapes[s].inputs, (taps[t] > 5000 ? 120000 : 30000) / HARNESS_LESS);
            guarded want = harness_offline(ir, &x);
            for (int b = 0; b < COUNT(blocks); b++) {
                if (s > 0 && b != s)
                    continue;
                gpuconv_realtime *rt = harness_realtime(ir, blocks[b] ? blocks[b] : 64, true);
                guarded y = harness_play(rt, &x, gpuconv_ir_outputs(ir), blocks[b], &in_callback);
                double error_db = harness_distance(&y, &want, x.frames);
                CHECK(guarded_intact(&y), "the output's guard bands were overwritten");
                CHECK(error_db <= -120, "%lld taps, shape %d, blocks of %d: %.1f dB", (long long)taps[t], s, blocks[b],
                      error_db);
                CHECK(gpuconv_realtime_late_blocks(rt) == 0, "late blocks while freewheeling");
                guarded_free(&y);
                gpuconv_realtime_free(rt);
            }
            guarded_free(&want);
            guarded_free(&x);
            guarded_free(&h);
            gpuconv_ir_free(ir);
        }
}

/* Returns the plan of a convolver that is called with blocks of 64 frames. */
static gc_choice plan_of(const gpuconv_ir *ir) {
    gc_rt_convolver *convolver;
    assert_int_equal(
        gc_rt_convolver_new(ir, &(gc_rt_calls){64, 48000, 1}, &(gc_gpu_target){NULL, -1}, &convolver, NULL),
        GPUCONV_OK);
    const gc_choice plan = convolver->plan;
    gc_rt_convolver_free(convolver);
    return plan;
}

static void a_single_tap_at_every_partition_edge_delays_exactly(void **state) {
    (void)state;
    enum { TAPS = 90000, FRAMES = 100000 };
    oracle_random random = {6};
    guarded h = guarded_new(1, TAPS), x = guarded_random(&random, 1, FRAMES);
    memset(h.channel[0], 0, TAPS * sizeof(float));
    h.channel[0][TAPS - 1] = h.channel[0][0] = 1e-30f; /* keeps the length, and leaves no zeros to skip */
    gpuconv_ir *shape = harness_route(&h, 1);
    const gc_levels levels = plan_of(shape).levels;
    CHECK(levels.count >= 3, "%d levels are too few to test partition edges", levels.count);
    int64_t edges[200];
    int count = 0;
    edges[count++] = levels.level[1].first_tap;
    for (int i = 1; i < levels.count; i++)
        for (int64_t p = 1; p <= levels.level[i].partitions; p++)
            if (count < 200 && (p == 1 || p == levels.level[i].partitions))
                edges[count++] = levels.level[i].first_tap + p * levels.level[i].hop;
    for (int e = 0; e < count; e++)
        for (int64_t k = edges[e] - 1; k <= edges[e] + 1; k += HARNESS_LESS) {
            if (k >= TAPS - 1)
                continue;
            h.channel[0][k] = 0.5f;
            gpuconv_ir *ir = harness_route(&h, 1);
            gpuconv_realtime *rt = harness_realtime(ir, 64, true);
            guarded y = harness_play(rt, &x, 1, 100, &in_callback);
            double wrong = 0, power = 0;
            for (int64_t n = 0; n < FRAMES; n++) {
                double want = n < k ? 0 : 0.5 * (double)x.channel[0][n - k], d = (double)y.channel[0][n] - want;
                wrong += d * d;
                power += want * want;
            }
            CHECK(10 * log10(wrong / power) <= -120, "a tap at %lld: %.1f dB", (long long)k, 10 * log10(wrong / power));
            guarded_free(&y);
            gpuconv_realtime_free(rt);
            gpuconv_ir_free(ir);
            h.channel[0][k] = 0;
            h.channel[0][0] = 1e-30f;
        }
    gpuconv_ir_free(shape);
    guarded_free(&h);
    guarded_free(&x);
}

/* With the built-in costs. */
static void the_plan_of_a_response_is_the_recorded_one(void **state) {
    (void)state;
    static const struct {
        int channels, block;
        int64_t taps;
        const char *plan;
    } cases[] = {
        {1, 64, 90000, "the first 256 frames directly, 7 x 256, 7 x 2048, 5 x 16384; 0.1 % of a core predicted"},
        {1, 1024, 90000, "the first 1024 frames directly, 7 x 1024, 10 x 8192; 0.14 % of a core predicted"},
        {8, 64, 20000,
         "matrix products, the first 256 frames in blocks, 1 x 256, 1 x 512, 3 x 1024, 2 x 2048, 3 x 4096; 1.6 % of a core predicted"},
    };
    for (int k = 0; k < COUNT(cases); k++) {
        const int channels = cases[k].channels;
        oracle_random random = {21};
        guarded taps = guarded_random(&random, channels * channels, cases[k].taps);
        gpuconv_realtime_config config = {.size = sizeof config, .rate = 44100, .block = cases[k].block};
        gpuconv_ir *ir;
        gpuconv_realtime *rt;
        assert_int_equal(gpuconv_ir_new_matrix((const float *const *)taps.channel, channels, channels, taps.frames,
                                               44100, &ir, NULL),
                         GPUCONV_OK);
        assert_int_equal(gpuconv_realtime_new(ir, &config, &rt, NULL), GPUCONV_OK);
        assert_string_equal(gpuconv_realtime_plan(rt), cases[k].plan);
        gpuconv_realtime_free(rt);
        gpuconv_ir_free(ir);
        guarded_free(&taps);
    }
}

static void the_output_may_be_the_input(void **state) {
    (void)state;
    oracle_random random = {7};
    guarded h = guarded_random(&random, 2, 3000), x = guarded_random(&random, 2, 20000);
    gpuconv_ir *ir = harness_route(&h, 2);
    gpuconv_realtime *a = harness_realtime(ir, 64, true), *b = harness_realtime(ir, 64, true);
    guarded want = harness_play(a, &x, 2, 100, &in_callback);
    for (int64_t at = 0; at < x.frames; at += 100) {
        float *both[2] = {x.channel[0] + at, x.channel[1] + at};
        gpuconv_realtime_process(b, (const float *const *)both, both, 100);
    }
    CHECK(oracle_identical("in place", &x, x.frames, &want, x.frames), "the result in place differs");
    gpuconv_realtime_free(a);
    gpuconv_realtime_free(b);
    guarded_free(&want);
    guarded_free(&x);
    guarded_free(&h);
    gpuconv_ir_free(ir);
}

static void the_callback_does_not_allocate_or_lock(void **state) {
    (void)state;
    oracle_random random = {8};
    guarded h = guarded_random(&random, 2, 100000), x = guarded_random(&random, 2, 300000);
    gpuconv_ir *ir = harness_route(&h, 2);
    gpuconv_realtime *rt = harness_realtime(ir, 64, false);
    atomic_store(&calls, 0);
    guarded y = harness_play(rt, &x, 2, 64, &in_callback); /* harness_play allocates outside the callback */
    CHECK(atomic_load(&calls) == 0, "%d calls of the allocator, locks or sleep", atomic_load(&calls));
    gpuconv_realtime_free(rt);
    guarded_free(&y);
    guarded_free(&x);
    guarded_free(&h);
    gpuconv_ir_free(ir);
}

/* Runs the callback in a child process under strict seccomp: the kernel kills it at any system call but read, write and
 * exit. */
static void the_callback_makes_no_system_call(void **state) {
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__linux__)
    print_message("skipped: sanitizers make system calls themselves\n");
#else
    oracle_random random = {9};
    guarded h = guarded_random(&random, 2, 100000), x = guarded_random(&random, 2, 4096);
    gpuconv_ir *ir = harness_route(&h, 2);
    guarded y = guarded_new(2, 4096);
    int ends[2];
    char word[4] = "";
    CHECK(pipe(ends) == 0, "cannot make a pipe");
    pid_t child = fork();
    CHECK(child >= 0, "cannot fork");
    if (child == 0) {
        gpuconv_realtime *rt = harness_realtime(ir, 64, false);
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) {
            (void)!write(ends[1], "no", 2);
            _exit(0);
        }
        for (int call = 0; call < 3000; call++) {
            const float *in[2] = {x.channel[0] + call % 64 * 64, x.channel[1] + call % 64 * 64};
            float *out[2] = {y.channel[0], y.channel[1]};
            gpuconv_realtime_process(rt, in, out, 64);
        }
        (void)!write(ends[1], "yes", 3);
        syscall(SYS_exit, 0);
    }
    close(ends[1]);
    CHECK(read(ends[0], word, 3) >= 0, "cannot read from the pipe");
    close(ends[0]);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    if (strcmp(word, "no") == 0)
        print_message("skipped: seccomp is not available\n");
    else
        CHECK(strcmp(word, "yes") == 0, "the callback made a system call and was killed");
    guarded_free(&y);
    guarded_free(&x);
    guarded_free(&h);
    gpuconv_ir_free(ir);
#endif
}

static void a_configured_latency_is_exact_and_reduces_the_load(void **state) {
    (void)state;
    static const int64_t latencies[] = {1, 63, 256, 1000, 5000, 200000}; /* the last one is partitions of silence */
    enum { FRAMES = 30000 };
    oracle_random random = {16};
    guarded kept, x = guarded_random(&random, 2, 200000 + FRAMES);
    gpuconv_ir *ir = harness_response(&random, 2, 2, 12000, &kept);
    guarded want = harness_offline(ir, &x);
    for (int l = 0; l < COUNT(latencies); l++) {
        gpuconv_realtime_config config = {
            .size = sizeof config, .rate = 48000, .block = 64, .freewheel = true, .latency = latencies[l]};
        gpuconv_realtime *rt;
        assert_int_equal(gpuconv_realtime_new(ir, &config, &rt, NULL), GPUCONV_OK);
        assert_int_equal(gpuconv_realtime_latency(rt), latencies[l]);
        guarded played = x;
        played.frames = latencies[l] + FRAMES;
        guarded y = harness_play(rt, &played, 2, 0, &in_callback);
        guarded late = y, early = want;
        float *from[2], *to[2];
        for (int c = 0; c < 2; c++) {
            from[c] = y.channel[c] + latencies[l];
            to[c] = want.channel[c];
            for (int64_t i = 0; i < latencies[l]; i++)
                CHECK(fabsf(y.channel[c][i]) < 1e-4f, "output before the latency has passed");
        }
        late.channel = from;
        early.channel = to;
        double error_db = harness_distance(&late, &early, FRAMES);
        CHECK(error_db <= -120, "latency %lld: %.1f dB", (long long)latencies[l], error_db);
        gpuconv_realtime_free(rt);
        guarded_free(&y);
    }
    gpuconv_ir *later;
    assert_int_equal(gpuconv_ir_delay(ir, 1024, &later, NULL), GPUCONV_OK);
    const double undelayed = plan_of(ir).predicted, delayed = plan_of(later).predicted;
    CHECK(delayed < undelayed, "a load of %g instead of %g", delayed, undelayed);
    gpuconv_ir_free(later);
    gpuconv_realtime_config config = {.size = sizeof config, .latency = -1};
    gpuconv_realtime *rt;
    assert_int_equal(gpuconv_realtime_new(ir, &config, &rt, NULL), GPUCONV_ERROR_ARGUMENT);
    guarded_free(&want);
    guarded_free(&x);
    guarded_free(&kept);
    gpuconv_ir_free(ir);
}

/* Inside the callback subnormal numbers are flushed to zero, because a decaying tail is full of them and they are slow.
 * Afterwards the processor's mode is restored. */
static void subnormal_numbers_are_flushed_inside_the_callback_only(void **state) {
    (void)state;
    guarded taps = guarded_new(1, 2000), x = guarded_new(1, 4000);
    for (int i = 0; i < 2000; i++)
        taps.channel[0][i] = i % 2 ? 1e-30f : -1e-30f;
    for (int i = 0; i < 4000; i++)
        x.channel[0][i] = i % 2 ? 1e-12f : -1e-12f; /* products of 1e-42 are subnormal */
    gpuconv_ir *ir = harness_route(&taps, 1);
    gpuconv_realtime *rt = harness_realtime(ir, 64, true);
    guarded y = harness_play(rt, &x, 1, 64, &in_callback);
    for (int i = 0; i < 4000; i++)
        CHECK(y.channel[0][i] == 0 || fabsf(y.channel[0][i]) >= 1.17549435e-38f, "a subnormal number came out");
    volatile float small = 1e-40f;
    CHECK(small * 0.5f > 0, "subnormal numbers are flushed outside the callback too");
    gpuconv_realtime_free(rt);
    gpuconv_ir_free(ir);
    guarded_free(&taps);
    guarded_free(&x);
    guarded_free(&y);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_of_any_size_give_the_same_samples_as_the_engine),
        cmocka_unit_test(a_single_tap_at_every_partition_edge_delays_exactly),
        cmocka_unit_test(the_plan_of_a_response_is_the_recorded_one),
        cmocka_unit_test(the_output_may_be_the_input),
        cmocka_unit_test(the_callback_does_not_allocate_or_lock),
        cmocka_unit_test(the_callback_makes_no_system_call),
        cmocka_unit_test(a_configured_latency_is_exact_and_reduces_the_load),
        cmocka_unit_test(subnormal_numbers_are_flushed_inside_the_callback_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
