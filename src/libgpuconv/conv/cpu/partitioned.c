/*
 * Uniformly partitioned convolution on all cores. Each input block (one hop and the hop before it) is transformed once
 * and its spectrum is kept in a frequency-domain delay line. Output block t is the inverse FFT of the sum over p of H_p
 * X_(t-p), which section.c computes.
 */
#include "cpu_algorithm.h"

#include <math.h>

static int64_t chunk_frames(const gc_problem *p, const gc_schedule *s, int threads) {
    (void)p;
    (void)threads;
    return 16 * s->hop;
}

/* Spectra are read from memory if the slabs that one output needs exceed the second-level cache. */
static double seconds(const gc_problem *p, const gc_costs *c, const gc_schedule *s, double total, int64_t chunk) {
    (void)chunk;
    const double second_level = 1.5e6, slab = 4 * GC_SECTION_SLAB;
    const double streamed =
        2 * slab * (double)s->partitions * p->stream.ir->routes / p->stream.ir->outputs > second_level;
    const double blocks = ceil(total / (double)s->hop), fft = gc_cpu_fft_seconds(c, s->transform);
    const double block =
        (p->stream.ir->inputs + p->stream.ir->outputs) * fft + gc_cpu_product_seconds(p, c, s, streamed);
    return blocks * block + gc_cpu_copy_seconds(p, c, total) + (double)(p->stream.ir->planes * s->partitions) * fft;
}

static double floats(const gc_problem *p, const gc_schedule *s, int64_t chunk, int threads) {
    (void)threads;
    const double spectrum = (double)s->transform, partitions = (double)s->partitions;
    return (p->stream.ir->planes + p->stream.ir->inputs) * partitions * spectrum +
           (p->stream.ir->inputs + p->stream.ir->outputs) * (double)chunk * 2 +
           p->stream.ir->inputs * (double)gc_schedule_history(s);
}

const gc_cpu_algorithm gc_cpu_partitioned = {
    .row = GC_CPU_ROW(GPUCONV_ALGORITHM_PARTITIONED, "partitioned", GC_FFT_MIN_POINTS, 1 << 24, GC_CPU_THRIFT,
                      GC_CPU_EXCESS),
    .schedule = gc_schedule_partitioned,
    .chunk = chunk_frames,
    .seconds = seconds,
    .floats = floats,
    .section = GC_SECTION_SLABS,
};
