/* Tests cancelling: long work returns CANCELLED and no partial object when the thread's flag is set before or during
 * it. The cancelled work would take minutes, so a loop that does not check the flag exceeds the test's time limit. */
#include "harness.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/pool.h"
#include "libgpuconv/dsp/fourier.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { LONG = (1 << 21) / HARNESS_LESS };

static volatile int flag;

static int clear_flag(void **state) {
    (void)state;
    flag = 0;
    assert_null(gpuconv_cancel_set(NULL));
    return 0;
}

static void *set_flag_later(void *unused) {
    const struct timespec moment = {0, 100000000};
    nanosleep(&moment, NULL);
    __atomic_store_n(&flag, 1, __ATOMIC_RELAXED);
    return unused;
}

/* Installs the flag and starts a thread that sets it after 0.1 s. */
static pthread_t begin(void) {
    pthread_t thread;
    flag = 0;
    gpuconv_cancel_set(&flag);
    CHECK(pthread_create(&thread, NULL, set_flag_later, NULL) == 0, "no thread");
    return thread;
}

static void end(pthread_t thread) {
    pthread_join(thread, NULL);
    CHECK(gpuconv_cancel_set(NULL) == &flag, "another flag is installed");
    flag = 0;
}

static gpuconv_ir *long_response(int64_t frames) {
    oracle_random random = {.state = 5};
    guarded taps = guarded_random(&random, 1, frames);
    gpuconv_ir *ir = harness_route(&taps, 1);
    guarded_free(&taps);
    return ir;
}

/* Calls one of the library's long functions. */
static gpuconv_status call(int which, const gpuconv_ir *ir, gpuconv_ir **made, gpuconv_error *error) {
    gpuconv_status status = GPUCONV_OK;
    *made = NULL;
    switch (which) {
    case 0:
        return gpuconv_ir_resample(ir, 191999, made, error);
    case 1:
        return gpuconv_ir_stretch(ir, 3.7, made, error);
    case 2:
        return gpuconv_ir_minimum_phase(ir, made, error);
    case 3:
        return gpuconv_ir_series(ir, ir, made, error);
    default:
        status = gpuconv_ir_normalize(ir, GPUCONV_NORMALIZE_LOUDNESS, NULL, made, error);
        return status;
    }
}

static void preparing_a_response_can_be_cancelled(void **state) {
    (void)state;
    gpuconv_ir *ir = long_response(LONG), *made;
    for (int midway = 0; midway < 2; midway++)
        for (int which = 0; which < 5; which++) {
            gpuconv_error error = {0};
            gpuconv_status status = GPUCONV_OK;
            if (midway) { /* repeated, in case a call ends before the flag is set */
                pthread_t thread = begin();
                while (!status) {
                    status = call(which, ir, &made, &error);
                    gpuconv_ir_free(status ? NULL : made);
                }
                end(thread);
            } else {
                flag = 1;
                gpuconv_cancel_set(&flag);
                status = call(which, ir, &made, &error);
                gpuconv_cancel_set(NULL);
            }
            CHECK(status == GPUCONV_ERROR_CANCELLED, "call %d: %s: %s", which, gpuconv_status_text(status),
                  error.message);
            assert_null(made);
            assert_int_equal(error.status, GPUCONV_ERROR_CANCELLED);
            CHECK(strstr(error.message, "interrupted"), "%s", error.message);
        }
    gpuconv_ir_free(ir);
}

/* Direct convolution of 2^21 frames with 2^14 taps takes seconds on one core. The faster algorithms repeat the call. */
static void a_cancelled_convolution_works_after_a_reset(void **state) {
    (void)state;
    gpuconv_ir *ir = long_response(1 << 14);
    float *x = calloc(LONG, sizeof *x), *y = calloc(LONG, sizeof *y);
    CHECK(x && y, "no memory");
    x[0] = 1;
    const float *in[] = {x};
    float *out[] = {y};
    for (int a = 0; a < COUNT(harness_algorithms); a++)
        for (int threads = 1; threads <= 3; threads += 2) {
            gpuconv_engine *engine;
            gpuconv_error error = {0};
            int64_t produced;
            gpuconv_plan *plan = harness_plan(ir, harness_algorithms[a], -1, threads);
            pthread_t thread = begin();
            gpuconv_status status = gpuconv_engine_new(plan, &engine, &error);
            while (!status)
                status = gpuconv_engine_process(engine, in, LONG, out, &produced);
            CHECK(status == GPUCONV_ERROR_CANCELLED, "%s on %d threads: %s",
                  gpuconv_algorithm_name(harness_algorithms[a]), threads, gpuconv_status_text(status));
            end(thread);
            if (engine) {
                assert_int_equal(gpuconv_engine_process(engine, in, 1, out, &produced), GPUCONV_ERROR_STATE);
                assert_int_equal(gpuconv_engine_reset(engine), GPUCONV_OK);
                assert_int_equal(gpuconv_engine_process(engine, in, 1, out, &produced), GPUCONV_OK);
                assert_int_equal(gpuconv_engine_drain(engine, out, 1, &produced), GPUCONV_OK);
                assert_int_equal(produced, 1);
                assert_true(y[0] - gpuconv_ir_taps(ir, 0, 0)[0] < 1e-6f && gpuconv_ir_taps(ir, 0, 0)[0] - y[0] < 1e-6f);
            }
            gpuconv_engine_free(engine);
            gpuconv_plan_free(plan);
        }
    free(x);
    free(y);
    gpuconv_ir_free(ir);
}

static void setting_up_can_be_cancelled(void **state) {
    (void)state;
    gpuconv_ir *ir = long_response(LONG);
    for (int a = 1; a < COUNT(harness_algorithms); a++) {
        gpuconv_plan *plan = harness_plan(ir, harness_algorithms[a], -1, 1);
        gpuconv_engine *engine = (gpuconv_engine *)plan;
        gpuconv_error error = {0};
        flag = 1;
        gpuconv_cancel_set(&flag);
        assert_int_equal(gpuconv_engine_new(plan, &engine, &error), GPUCONV_ERROR_CANCELLED);
        gpuconv_cancel_set(NULL);
        assert_null(engine);
        CHECK(strstr(error.message, "interrupted"), "%s", error.message);
        gpuconv_plan_free(plan);
    }
    gpuconv_realtime_config config = gpuconv_realtime_config_default();
    gpuconv_realtime *played = (gpuconv_realtime *)ir;
    gpuconv_cancel_set(&flag);
    assert_int_equal(gpuconv_realtime_new(ir, &config, &played, NULL), GPUCONV_ERROR_CANCELLED);
    assert_int_equal(gpuconv_calibrate(NULL, NULL), GPUCONV_ERROR_CANCELLED);
    gpuconv_cancel_set(NULL);
    assert_null(played);
    gpuconv_ir_free(ir);
}

static void count(void *context, int64_t index, int worker) {
    (void)worker;
    atomic_fetch_add((_Atomic int64_t *)context, 1);
    if (index == 10)
        __atomic_store_n(&flag, 1, __ATOMIC_RELAXED);
}

static void a_cancelled_pool_skips_the_remaining_jobs(void **state) {
    (void)state;
    for (int threads = 1; threads <= 4; threads += 3) {
        _Atomic int64_t done = 0;
        flag = 0;
        gpuconv_cancel_set(&flag);
        gc_pool *pool = gc_pool_new(threads);
        assert_non_null(pool);
        gc_pool_run(pool, count, (void *)&done, INT64_C(1) << 60);
        gpuconv_cancel_set(NULL);
        /* Another thread may have claimed an index below 10 and looked at the flag after it was set. */
        CHECK(done > 11 - threads && done < 1000000000, "%lld", (long long)done);
        gc_pool_free(pool);
    }
}

/* A flag that is raised stops filling and copying of more than 4 MiB, which take milliseconds. */
static void filling_and_copying_memory_can_be_cancelled(void **state) {
    (void)state;
    enum { LARGE = (4 << 20) + 1 };
    char *from = calloc(1, LARGE), *to = calloc(1, LARGE);
    CHECK(from && to, "no memory");
    CHECK(gc_set_memory(from, 1, LARGE) && gc_copy_memory(to, from, LARGE), "stopped without a flag");
    CHECK(memcmp(from, to, LARGE) == 0 && to[LARGE - 1] == 1, "not copied whole");
    flag = 1;
    gpuconv_cancel_set(&flag);
    void *zeroed = gc_calloc(1, LARGE), *small = gc_calloc(1, LARGE / 2);
    const bool set = gc_set_memory(to, 2, LARGE), copied = gc_copy_memory(from, to, LARGE);
    gpuconv_cancel_set(NULL);
    CHECK(!zeroed && small && !set && !copied && to[LARGE - 1] == 1, "the flag was not seen");
    free(small);
    free(from);
    free(to);
}

static void the_double_precision_fft_can_be_cancelled(void **state) {
    (void)state;
    enum { POINTS = 1 << 22 };
    double *re = calloc(POINTS, 2 * sizeof *re);
    CHECK(re, "no memory");
    pthread_t thread = begin();
    bool good = true;
    while (good)
        good = gc_fourier(re, re + POINTS, POINTS, -1);
    end(thread);
    free(re);
}

static void a_flag_belongs_to_its_thread(void **state) {
    (void)state;
    volatile int other = 1;
    assert_false(gc_cancelled());
    assert_null(gpuconv_cancel_set(&other));
    assert_true(gc_cancelled());
    other = 0;
    assert_false(gc_cancelled());
    assert_ptr_equal(gpuconv_cancel_set(NULL), &other);
    assert_null(gc_cancel_flag());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_flag_belongs_to_its_thread, clear_flag),
        cmocka_unit_test_setup(preparing_a_response_can_be_cancelled, clear_flag),
        cmocka_unit_test_setup(a_cancelled_convolution_works_after_a_reset, clear_flag),
        cmocka_unit_test_setup(setting_up_can_be_cancelled, clear_flag),
        cmocka_unit_test_setup(a_cancelled_pool_skips_the_remaining_jobs, clear_flag),
        cmocka_unit_test_setup(filling_and_copying_memory_can_be_cancelled, clear_flag),
        cmocka_unit_test_setup(the_double_precision_fft_can_be_cancelled, clear_flag),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
