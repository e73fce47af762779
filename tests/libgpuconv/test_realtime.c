/* Playing through a response gives, frame by frame and without latency, what the engine gives offline; the callback
 * allocates nothing, locks nothing and calls nothing of the system; an exchange clicks nowhere and leaks nothing. */
#include "check.h"
#include "harness.h"

#include "libgpuconv/realtime/realtime.h"
#include "libgpuconv/realtime/stage_schedule.h"

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

/* ---- The allocator and the locks, watched -------------------------------------------------------------------------
 */

static _Thread_local bool in_callback;
static _Atomic int calls;

#define WATCH(result, name, parameters, arguments)                                                                     \
    result __real_##name parameters;                                                                                   \
    result __wrap_##name parameters;                                                                                   \
    result __wrap_##name parameters {                                                                                  \
        if (in_callback)                                                                                               \
            atomic_fetch_add(&calls, 1);                                                                               \
        return __real_##name arguments;                                                                                \
    }

WATCH(void *, malloc, (size_t n), (n))
WATCH(void *, calloc, (size_t n, size_t m), (n, m))
WATCH(void *, realloc, (void *p, size_t n), (p, n))
WATCH(int, posix_memalign, (void **p, size_t a, size_t n), (p, a, n))
WATCH(void *, aligned_alloc, (size_t a, size_t n), (a, n))
WATCH(void, free, (void *p), (p))
WATCH(int, pthread_mutex_lock, (pthread_mutex_t * m), (m))
WATCH(int, pthread_cond_signal, (pthread_cond_t * c), (c))
WATCH(int, nanosleep, (const struct timespec *t, struct timespec *left), (t, left))

/* ---- Helpers ------------------------------------------------------------------------------------------------------
 */

static gpuconv_realtime *start(const gpuconv_ir *ir, int block, bool freewheel) {
    gpuconv_realtime_config config = {.rate = 48000, .block = block, .freewheel = freewheel};
    gpuconv_realtime *rt;
    gpuconv_error error = {0};
    CHECK(gpuconv_realtime_new(ir, &config, &rt, &error) == GPUCONV_OK, "%s", error.message);
    return rt;
}

/* ---- Tests ---------------------------------------------------------------------------------------------------------
 */

static void calls_of_any_size_give_what_the_engine_gives_offline(void **state) {
    (void)state;
    static const int blocks[] = {0, 1, 7, 32, 64, 127, 480, 1024};
    static const int64_t taps[] = {1, 300, 511, 513, 5000, 90000};
    static const struct { int inputs, channels; } shapes[] = {{1, 1}, {2, 2}, {2, 4}, {1, 3}};
    oracle_random random = {5};
    for (int t = 0; t < COUNT(taps); t++)
        for (int s = 0; s < COUNT(shapes); s++) {
            guarded h = guarded_random(&random, shapes[s].channels, taps[t]);
            gpuconv_ir *ir = harness_route(&h, shapes[s].inputs);
            guarded x = guarded_random(&random, shapes[s].inputs, 150000);
            guarded want = harness_offline(ir, &x);
            for (int b = 0; b < COUNT(blocks); b++) {
                if (s > 0 && b != s)
                    continue;
                gpuconv_realtime *rt = start(ir, blocks[b] ? blocks[b] : 64, true);
                guarded y = harness_play(rt, &x, gpuconv_ir_outputs(ir), blocks[b], &in_callback);
                double e = harness_distance(&y, &want, x.frames);
                CHECK(guarded_intact(&y), "written beside");
                CHECK(e <= -120, "%lld taps, shape %d, blocks of %d: %.1f dB", (long long)taps[t], s, blocks[b], e);
                CHECK(gpuconv_realtime_late_blocks(rt) == 0, "a freewheel one missed something");
                guarded_free(&y);
                gpuconv_realtime_free(rt);
            }
            guarded_free(&want);
            guarded_free(&x);
            guarded_free(&h);
            gpuconv_ir_free(ir);
        }
}

static void a_single_tap_at_every_partition_edge_delays_by_just_so_much(void **state) {
    (void)state;
    enum { TAPS = 90000, FRAMES = 100000 };
    oracle_random random = {6};
    guarded h = guarded_new(1, TAPS), x = guarded_random(&random, 1, FRAMES);
    memset(h.channel[0], 0, TAPS * sizeof(float));
    h.channel[0][TAPS - 1] = h.channel[0][0] = 1e-30f; /* the length stays, and nothing is silence */
    gpuconv_ir *shape = harness_route(&h, 1);
    gc_rt_schedule schedule;
    gc_rt_schedule_make(shape, 64, 48000, &schedule);
    CHECK(schedule.stages >= 2, "%d stages are no test of edges", schedule.stages);
    int64_t edges[200];
    int count = 0;
    edges[count++] = schedule.head;
    for (int i = 0; i < schedule.stages; i++)
        for (int64_t p = 1; p <= schedule.stage[i].partitions; p++)
            if (count < 200 && (p == 1 || p == schedule.stage[i].partitions))
                edges[count++] = schedule.stage[i].offset + p * schedule.stage[i].hop;
    for (int e = 0; e < count; e++)
        for (int64_t k = edges[e] - 1; k <= edges[e] + 1; k++) {
            if (k >= TAPS - 1)
                continue;
            h.channel[0][k] = 0.5f;
            gpuconv_ir *ir = harness_route(&h, 1);
            gpuconv_realtime *rt = start(ir, 64, true);
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

static void the_output_may_be_the_input(void **state) {
    (void)state;
    oracle_random random = {7};
    guarded h = guarded_random(&random, 2, 3000), x = guarded_random(&random, 2, 20000);
    gpuconv_ir *ir = harness_route(&h, 2);
    gpuconv_realtime *a = start(ir, 64, true), *b = start(ir, 64, true);
    guarded want = harness_play(a, &x, 2, 100, &in_callback);
    for (int64_t at = 0; at < x.frames; at += 100) {
        float *both[2] = {x.channel[0] + at, x.channel[1] + at};
        gpuconv_realtime_process(b, (const float *const *)both, both, 100);
    }
    CHECK(oracle_identical("in place", &x, x.frames, &want, x.frames), "in place is another result");
    gpuconv_realtime_free(a);
    gpuconv_realtime_free(b);
    guarded_free(&want);
    guarded_free(&x);
    guarded_free(&h);
    gpuconv_ir_free(ir);
}

static void the_callback_allocates_nothing_and_locks_nothing(void **state) {
    (void)state;
    oracle_random random = {8};
    guarded h = guarded_random(&random, 2, 100000), x = guarded_random(&random, 2, 300000);
    gpuconv_ir *ir = harness_route(&h, 2);
    gpuconv_realtime *rt = start(ir, 64, false);
    atomic_store(&calls, 0);
    guarded y = harness_play(rt, &x, 2, 64, &in_callback); /* play itself allocates before it calls */
    CHECK(atomic_load(&calls) == 0, "%d calls of the allocator, locks or sleep", atomic_load(&calls));
    gpuconv_realtime_free(rt);
    guarded_free(&y);
    guarded_free(&x);
    guarded_free(&h);
    gpuconv_ir_free(ir);
}

/* In a process of its own, whose thread may do nothing but write and end: the kernel kills it for any other call. */
static void the_callback_calls_nothing_of_the_system(void **state) {
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__linux__)
    print_message("a sanitizer calls the system by itself: not tested here\n");
#else
    oracle_random random = {9};
    guarded h = guarded_random(&random, 2, 100000), x = guarded_random(&random, 2, 4096);
    gpuconv_ir *ir = harness_route(&h, 2);
    guarded y = guarded_new(2, 4096);
    int ends[2];
    char word[4] = "";
    CHECK(pipe(ends) == 0, "no pipe");
    pid_t child = fork();
    CHECK(child >= 0, "no process");
    if (child == 0) {
        gpuconv_realtime *rt = start(ir, 64, false);
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
    CHECK(read(ends[0], word, 3) >= 0, "the pipe broke");
    close(ends[0]);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    if (strcmp(word, "no") == 0)
        print_message("seccomp is not to be had here: not tested\n");
    else
        CHECK(strcmp(word, "yes") == 0, "the callback called the system, and was killed for it");
    guarded_free(&y);
    guarded_free(&x);
    guarded_free(&h);
    gpuconv_ir_free(ir);
#endif
}

typedef struct exchanges {
    gpuconv_realtime *rt;
    gpuconv_ir *ir[2];
    int count;
    _Atomic int done;
    _Atomic int64_t frame; /* that the callback has reached */
} exchanges;

static void *exchange(void *argument) {
    exchanges *e = argument;
    gpuconv_error error = {0};
    for (int i = 0; i < e->count; i++) {
        int64_t begun = atomic_load(&e->frame);
        if (gpuconv_realtime_swap(e->rt, e->ir[i % 2], 0.005, &error) != GPUCONV_OK)
            break;
        atomic_fetch_add(&e->done, 1);
        while (atomic_load(&e->frame) < begun + 1000 &&
               i < e->count - 1) { /* two fades: it is taken up, not replaced */
            struct timespec moment = {0, 50000};
            nanosleep(&moment, NULL);
        }
    }
    return NULL;
}

static void a_thousand_exchanges_under_load_click_nowhere(void **state) {
    (void)state;
    enum { BLOCK = 64, TAPS = 2000 };
    guarded h[2] = {guarded_new(1, TAPS), guarded_new(1, TAPS)};
    exchanges e = {.count = 1000};
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < TAPS; k++)
            h[i].channel[0][k] = k % (i ? 777 : 450) == 0 ? (i ? 0.5f : 1.0f) / (float)(1 + k / 300) : 0.0f;
        e.ir[i] = harness_route(&h[i], 1);
    }
    e.rt = start(e.ir[1], BLOCK, true);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, exchange, &e) == 0, "no thread");
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
            if (frame > 4 * TAPS) /* the sine's own beginning, and each echo's, is over */
                worst = second > worst ? second : worst;
            CHECK(isfinite(now), "not finite");
            earlier = before;
            before = now;
        }
        CHECK(frame < INT64_C(400000000), "the exchanges do not come through: %d", atomic_load(&e.done));
    }
    pthread_join(thread, NULL);
    CHECK(atomic_load(&e.done) == e.count, "%d exchanges of %d", atomic_load(&e.done), e.count);
    /* The sine's own is 0.0008 times a gain of 3; a jump from one response to the other would be 0.5. */
    CHECK(worst < 0.02, "a second difference of %g: a click", worst);
    CHECK(gpuconv_realtime_late_blocks(e.rt) == 0, "missed");
    gpuconv_realtime_free(e.rt);
    for (int i = 0; i < 2; i++) {
        gpuconv_ir_free(e.ir[i]);
        guarded_free(&h[i]);
    }
}

static void without_calls_an_exchange_waits_for_nothing_and_the_newest_counts(void **state) {
    (void)state;
    gpuconv_ir *ir[8];
    gpuconv_error error = {0};
    for (int i = 0; i < COUNT(ir); i++) {
        guarded h = guarded_new(1, 1);
        h.channel[0][0] = (float)(i + 1);
        ir[i] = harness_route(&h, 1);
        guarded_free(&h);
    }
    gpuconv_realtime *rt = start(ir[0], 64, true);
    for (int round = 0; round < 50; round++)
        for (int i = 0; i < COUNT(ir); i++)
            CHECK(gpuconv_realtime_swap(rt, ir[i], 0, &error) == GPUCONV_OK, "%s", error.message);
    float x[64], y[64], *out = y;
    const float *in = x;
    for (int i = 0; i < COUNT(x); i++)
        x[i] = 1;
    for (int b = 0; b < 4; b++)
        gpuconv_realtime_process(rt, &in, &out, COUNT(x));
    CHECK(fabsf(y[63] - (float)COUNT(ir)) < 1e-5f, "%g through the newest response of %d", (double)y[63], COUNT(ir));
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
    gpuconv_realtime *rt = start(ir[0], 128, true);
    gpuconv_error error = {0};
    CHECK(gpuconv_realtime_swap(rt, ir[1], 0.1, &error) == GPUCONV_OK, "%s", error.message);
    guarded y = harness_play(rt, &x, 1, 128, &in_callback);
    double wrong = 0, power = 0;
    for (int64_t n = 20000; n < x.frames; n++) { /* fade and the old response are over, and what was faded in is past */
        double d = (double)y.channel[0][n] - (double)want.channel[0][n];
        wrong += d * d;
        power += (double)want.channel[0][n] * (double)want.channel[0][n];
    }
    CHECK(10 * log10(wrong / power) <= -120, "%.1f dB", 10 * log10(wrong / power));
    guarded two = guarded_random(&random, 2, 100);
    gpuconv_ir *other = harness_route(&two, 2);
    CHECK(gpuconv_realtime_swap(rt, other, 0, &error) == GPUCONV_ERROR_TOPOLOGY, "another shape was taken");
    CHECK(gpuconv_realtime_swap(rt, ir[0], -1, &error) == GPUCONV_ERROR_ARGUMENT, "a negative fade was taken");
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

static void latency_that_is_granted_is_exact_and_saves_work(void **state) {
    (void)state;
    static const int64_t latencies[] = {1, 63, 256, 1000, 5000};
    oracle_random random = {16};
    guarded kept, x = guarded_random(&random, 2, 30000);
    gpuconv_ir *ir = harness_response(&random, 2, 2, 12000, &kept);
    guarded want = harness_offline(ir, &x);
    for (int l = 0; l < COUNT(latencies); l++) {
        gpuconv_realtime_config config = {.rate = 48000, .block = 64, .freewheel = true, .latency = latencies[l]};
        gpuconv_realtime *rt;
        assert_int_equal(gpuconv_realtime_new(ir, &config, &rt, NULL), GPUCONV_OK);
        assert_int_equal(gpuconv_realtime_latency(rt), latencies[l]);
        guarded y = harness_play(rt, &x, 2, 0, &in_callback);
        guarded late = y, early = want;
        float *from[2], *to[2];
        for (int c = 0; c < 2; c++) {
            from[c] = y.channel[c] + latencies[l];
            to[c] = want.channel[c];
            for (int64_t i = 0; i < latencies[l]; i++)
                CHECK(fabsf(y.channel[c][i]) < 1e-4f, "something came before its time");
        }
        late.channel = from;
        early.channel = to;
        double off = harness_distance(&late, &early, x.frames - latencies[l]);
        CHECK(off <= -120, "latency %lld: %.1f dB", (long long)latencies[l], off);
        gpuconv_realtime_free(rt);
        guarded_free(&y);
    }
    gc_rt_schedule now, then;
    gpuconv_ir *later;
    assert_int_equal(gpuconv_ir_delay(ir, 1024, &later, NULL), GPUCONV_OK);
    gc_rt_schedule_make(ir, 64, 48000, &now);
    gc_rt_schedule_make(later, 64, 48000, &then);
    CHECK(then.load < now.load, "a load of %g instead of %g", then.load, now.load);
    gpuconv_ir_free(later);
    gpuconv_realtime_config config = {.latency = -1};
    gpuconv_realtime *rt;
    assert_int_equal(gpuconv_realtime_new(ir, &config, &rt, NULL), GPUCONV_ERROR_ARGUMENT);
    guarded_free(&want);
    guarded_free(&x);
    guarded_free(&kept);
    gpuconv_ir_free(ir);
}

/* Subnormal numbers, which a tail that dies away is full of, cost nothing: the processor is told to take them for zero,
 * and told otherwise again before anyone else computes. */
static void subnormal_numbers_are_zeros_inside_and_whole_outside(void **state) {
    (void)state;
    guarded taps = guarded_new(1, 2000), x = guarded_new(1, 4000);
    for (int i = 0; i < 2000; i++)
        taps.channel[0][i] = i % 2 ? 1e-30f : -1e-30f;
    for (int i = 0; i < 4000; i++)
        x.channel[0][i] = i % 2 ? 1e-12f : -1e-12f; /* products of 1e-42, which only subnormals hold */
    gpuconv_ir *ir = harness_route(&taps, 1);
    gpuconv_realtime *rt = start(ir, 64, true);
    guarded y = harness_play(rt, &x, 1, 64, &in_callback);
    for (int i = 0; i < 4000; i++)
        CHECK(y.channel[0][i] == 0 || fabsf(y.channel[0][i]) >= 1.17549435e-38f, "a subnormal number came out");
    volatile float small = 1e-40f;
    CHECK(small * 0.5f > 0, "numbers are flushed outside the call as well");
    gpuconv_realtime_free(rt);
    gpuconv_ir_free(ir);
    guarded_free(&taps);
    guarded_free(&x);
    guarded_free(&y);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_of_any_size_give_what_the_engine_gives_offline),
        cmocka_unit_test(a_single_tap_at_every_partition_edge_delays_by_just_so_much),
        cmocka_unit_test(the_output_may_be_the_input),
        cmocka_unit_test(the_callback_allocates_nothing_and_locks_nothing),
        cmocka_unit_test(the_callback_calls_nothing_of_the_system),
        cmocka_unit_test(a_thousand_exchanges_under_load_click_nowhere),
        cmocka_unit_test(without_calls_an_exchange_waits_for_nothing_and_the_newest_counts),
        cmocka_unit_test(an_exchange_ends_with_the_new_response_alone),
        cmocka_unit_test(latency_that_is_granted_is_exact_and_saves_work),
        cmocka_unit_test(subnormal_numbers_are_zeros_inside_and_whole_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
