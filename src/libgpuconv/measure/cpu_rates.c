/* Peak rates of the CPU: arithmetic, memory copies and the start of a parallel job. */
#include "measure.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/pool.h"
#include "libgpuconv/dsp/simd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 7 };

/* The work of one measurement, shared by all threads. */
typedef struct workload {
    const gc_simd *simd;
    char *from, *to;
    int64_t share;     /* bytes that one job copies */
    double operations; /* of one job */
    float results[64]; /* stored so that the compiler keeps the arithmetic */
} workload;

static void multiply_add(void *context, int64_t index, int worker) {
    workload *load = context;
    double operations;
    load->results[worker % 64] = load->simd->multiply_add_loop(1 << 20, &operations);
    if (index == 0)
        load->operations = operations;
}

static void copy(void *context, int64_t index, int worker) {
    (void)worker;
    workload *load = context;
    memcpy(load->to + index * load->share, load->from + index * load->share, (size_t)load->share);
}

static void empty_job(void *context, int64_t index, int worker) {
    (void)context;
    (void)index;
    (void)worker;
}

/* Returns the shortest time of RUNS runs: a peak rate is the best that was reached. */
static double shortest_time(gc_pool *pool, void (*job)(void *, int64_t, int), workload *load, int jobs) {
    double best = HUGE_VAL;
    for (int r = 0; r < RUNS; r++) {
        double begin = gc_now();
        gc_pool_run(pool, job, load, jobs);
        best = fmin(best, gc_now() - begin);
    }
    return best;
}

gpuconv_status gc_cpu_peak_rates(const gpuconv_config *config, gc_peak_rates *rates, gpuconv_error *error) {
    const int64_t bytes = INT64_C(1) << 28;
    int threads = config->threads ? config->threads : gc_processor_count();
    workload load = {.simd = gc_simd_best(), .share = bytes / threads / 64 * 64};
    load.from = gc_calloc(bytes, 1);
    load.to = gc_calloc(bytes, 1);
    gc_pool *pool = gc_pool_new(threads);
    bool ok = load.from && load.to && pool;
    if (ok) {
        memset(load.from, 1, (size_t)bytes); /* touch the pages, which else all map to one page of zeros */
        memset(load.to, 2, (size_t)bytes);
        double t = shortest_time(pool, multiply_add, &load, threads);
        *rates = (gc_peak_rates){.arithmetic = load.operations * threads / t};
        rates->copy = 2.0 * (double)load.share * threads / shortest_time(pool, copy, &load, threads);
        rates->launch = shortest_time(pool, empty_job, &load, threads);
        ok = !gc_cancelled();
    }
    gc_pool_free(pool);
    free(load.from);
    free(load.to);
    return ok ? GPUCONV_OK : gc_fail_memory(error, "the benchmark");
}

gpuconv_status gc_cpu_copy(const gpuconv_config *config, int64_t bytes, int runs, bool early, double *seconds,
                           gpuconv_error *error) {
    if (early)
        return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED, "a CPU starts no copy before the previous one has ended");
    int threads = config->threads ? config->threads : gc_processor_count();
    workload load = {.share = gc_round_up(bytes, threads) / threads};
    load.from = gc_calloc(load.share, threads);
    load.to = gc_calloc(load.share, threads);
    gc_pool *pool = gc_pool_new(threads);
    bool ok = load.from && load.to && pool;
    if (ok)
        memset(load.from, 1, (size_t)(load.share * threads)); /* touch the pages */
    for (int run = -1; ok && run < runs; run++) {             /* run -1 warms up */
        double begin = gc_now();
        gc_pool_run(pool, copy, &load, threads);
        ok = !gc_cancelled();
        if (run >= 0)
            seconds[run] = gc_now() - begin;
    }
    gc_pool_free(pool);
    free(load.from);
    free(load.to);
    return ok ? GPUCONV_OK : gc_fail_memory(error, "the benchmark");
}
