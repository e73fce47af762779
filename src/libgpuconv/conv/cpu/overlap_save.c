/*
 * Overlap-save convolution on all cores. A job is one block of one component (section.c). A component is a set of
 * inputs and outputs that routes connect: a stereo response has two components with one channel each, true stereo has
 * one component with two. A job transforms each input and each output of its component once; blocks are read from and
 * written to the chunk in place.
 */
#include "cpu_algorithm.h"

#include "libgpuconv/core/memory.h"

#include <math.h>

/* A chunk has a block for each thread. */
static int64_t chunk_frames(const gc_problem *p, const gc_schedule *s, int threads) {
    const int64_t least = gc_min(p->stream.ir->inputs, p->stream.ir->outputs);
    return s->hop * gc_divide_up(threads, least);
}

/* Spectra of responses that exceed the caches are read for each block: the more of them the more they exceed the share
 * of the last level that is left to them. */
static double seconds(const gc_problem *p, const gc_costs *c, const gc_schedule *s, double total, int64_t chunk) {
    (void)chunk;
    const double kept = 8e6, last_level = 32e6, bins = (double)s->transform / 2;
    const double streamed = fmin(1, fmax(0, 8 * bins * p->stream.ir->planes - kept) / (last_level - kept));
    const double blocks = ceil(total / (double)s->hop), fft = gc_cpu_fft_seconds(c, s->transform);
    const double block =
        (p->stream.ir->inputs + p->stream.ir->outputs) * fft + gc_cpu_product_seconds(p, c, s, streamed);
    return blocks * block + gc_cpu_copy_seconds(p, c, total) + p->stream.ir->planes * fft;
}

static double floats(const gc_problem *p, const gc_schedule *s, int64_t chunk, int threads) {
    const int64_t blocks = chunk / s->hop * p->stream.components.count;
    const double block = (double)s->transform, workers = fmin(threads, (double)blocks);
    return p->stream.ir->planes * block + workers * block * (1 + gc_section_most_spectra(&p->stream.components)) +
           p->stream.ir->inputs * (double)gc_schedule_history(s);
}

const gc_cpu_algorithm gc_cpu_overlap_save = {
    .row = GC_CPU_ROW(GPUCONV_ALGORITHM_OVERLAP_SAVE, "overlap-save", GC_FFT_MIN_POINTS, 1 << 24, GC_CPU_THRIFT,
                      GC_CPU_EXCESS),
    .schedule = gc_schedule_overlap_save,
    .chunk = chunk_frames,
    .seconds = seconds,
    .floats = floats,
    .section = GC_SECTION_BLOCKS,
};
