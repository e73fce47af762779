/* Moving sources of the benchmark: a motion for the clock, and a second one as its reference. */
#include "realtime_motion.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/limits.h"
#include "libgpuconv/core/memory.h"

#include <math.h>
#include <stdlib.h>

struct gc_bench_motion {
    const gc_bench_realtime_case *what;
    int sources;
    gpuconv_sofa *set;
    gpuconv_path *path;
    gpuconv_motion *motion;
    int64_t late, missed; /* frames, blocks */
};

/* Makes circles at 20 to 110 degrees/s, half of them to the right. Returns ARGUMENT, MEMORY. */
static gpuconv_status make_path(gc_bench_motion *m, gpuconv_error *error) {
    const double seconds[2] = {0, 1000};
    double *rows = gc_calloc((int64_t)2 * 3 * m->sources, sizeof *rows);
    if (!rows)
        return gc_fail_memory(error, "the benchmark");
    for (int i = 0; i < 2 * m->sources; i++) {
        const int source = i % m->sources;
        const double speed = (source % 2 ? -1 : 1) * (20 + source % 91);
        rows[3 * i] = 137.5 * source + (i < m->sources ? 0 : speed * seconds[1]);
        rows[3 * i + 1] = source % 121 - 40;
        rows[3 * i + 2] = 1.5;
    }
    gpuconv_status status = gpuconv_path_new(seconds, rows, 2, m->sources, &m->path, error);
    free(rows);
    return status;
}

static gpuconv_status make_motion(const gc_bench_motion *m, gpuconv_backend backend, gpuconv_motion **motion,
                                  gpuconv_error *error) {
    gpuconv_motion_config config = gpuconv_motion_config_default();
    config.threads = m->what->threads;
    config.backend = backend;
    config.device = m->what->device;
    return gpuconv_motion_new(m->set, m->path, &config, motion, error);
}

gpuconv_status gc_bench_motion_new(const gc_bench_realtime_case *what, int sources, gc_bench_motion **motion,
                                   gpuconv_error *error) {
    gc_bench_motion *m = gc_calloc(1, sizeof *m);
    if (!m)
        return gc_fail_memory(error, "the benchmark");
    m->what = what;
    m->sources = sources;
    gpuconv_status status = gpuconv_sofa_open(what->moving, what->rate, &m->set, error);
    if (!status)
        status = make_path(m, error);
    if (!status)
        status = make_motion(m, what->backend, &m->motion, error);
    if (!status)
        status = gpuconv_motion_start(m->motion, what->block, error);
    *motion = m;
    return status;
}

void gc_bench_motion_free(gc_bench_motion *m) {
    if (!m)
        return;
    gpuconv_motion_free(m->motion);
    gpuconv_path_free(m->path);
    gpuconv_sofa_free(m->set);
    free(m);
}

int gc_bench_motion_receivers(const gc_bench_motion *m) {
    return gpuconv_sofa_receivers(m->set);
}

void gc_bench_motion_process(gc_bench_motion *m, const float *const *in, float *const *out) {
    gpuconv_motion_process(m->motion, in, out, m->what->block);
    const int64_t late = gpuconv_motion_late(m->motion);
    m->missed += late > m->late;
    m->late = late;
}

const char *gc_bench_motion_plan(const gc_bench_motion *m) {
    return gpuconv_motion_plan(m->motion);
}

int64_t gc_bench_motion_missed(const gc_bench_motion *m) {
    return m->missed;
}

/* Fetches what is ready; adds those frames that the last block has to the error and the power. */
static int64_t compare_ready(gpuconv_motion *reference, int receivers, int64_t at, int64_t first, int block,
                             const float *out, double sums[2]) {
    enum { PART = 1024 };
    static float part[GC_MAX_CHANNELS][PART];
    float *rows[GC_MAX_CHANNELS];
    for (int r = 0; r < receivers; r++)
        rows[r] = part[r];
    for (int64_t got = 1; got > 0; at += got) {
        (void)gpuconv_motion_fetch(reference, rows, PART, &got);
        for (int64_t i = gc_max(0, first - at); i < got && at + i < first + block; i++)
            for (int r = 0; r < receivers; r++) {
                const double want = (double)part[r][i], off = (double)out[r * (int64_t)block + at + i - first] - want;
                sums[0] += off * off;
                sums[1] += want * want;
            }
    }
    return at;
}

/* Returns a block that begins with a hop, a quarter of a second before the last one, or the first. */
static int64_t find_start(const gc_bench_motion *m, int64_t blocks) {
    const double compared = 0.25;
    const int64_t hop = llrint(gpuconv_motion_config_default().interval * m->what->rate), block = m->what->block;
    int64_t first = gc_max(0, blocks - (int64_t)(compared * m->what->rate) / block);
    while (first * block % hop)
        first--;
    return first;
}

gpuconv_status gc_bench_motion_compare(gc_bench_motion *m, int64_t blocks,
                                       void (*block_of)(void *context, int64_t k, const float **rows), void *context,
                                       const float *out, double *decibels, gpuconv_error *error) {
    const int block = m->what->block;
    const int64_t start = find_start(m, blocks);
    const int64_t first = (blocks - 1 - start) * block - gpuconv_motion_latency(m->motion);
    gpuconv_motion *reference;
    const float *rows[GC_MAX_SOURCES];
    double sums[2] = {0, 0};
    int64_t at = 0;
    gpuconv_status status = make_motion(m, GPUCONV_BACKEND_CPU, &reference, error);
    if (!status)
        gpuconv_motion_seek(reference, start * block);
    for (int64_t k = start; k <= blocks && !status; k++) {
        block_of(context, k, rows);
        status = gpuconv_motion_feed(reference, rows, k < blocks ? block : 0, error);
        if (!status)
            at = compare_ready(reference, gc_bench_motion_receivers(m), at, first, block, out, sums);
    }
    gpuconv_motion_free(reference);
    *decibels = fmax(-200, 10 * log10(sums[0] / sums[1]));
    return status;
}
