/*
 * Convolution of dense matrices on all cores: the forward transform once for each input block, the inverse once for
 * each output block, and between them, for each bin, the matrix of responses times the matrix of input blocks
 * (section.c). A response is one partition (overlap-save) or several (a frequency-domain delay line); the products of
 * all partitions of all inputs belong to one sum.
 */
#include "cpu_algorithm.h"

#include "libgpuconv/dsp/matrix_product.h"

#include <math.h>

/* A chunk has the blocks for which one pass over the responses pays: full tiles, fewer where their spectra take more
 * than 256 MB. */
static int64_t chunk_frames(const gc_problem *p, const gc_schedule *s, int threads) {
    (void)threads;
    const int64_t block = 4 * s->transform * (p->stream.ir->inputs + p->stream.ir->outputs), most = INT64_C(256) << 20;
    int64_t blocks = 4 * GC_MATRIX_ROWS;
    while (blocks > GC_MATRIX_ROWS && blocks * block > most)
        blocks -= GC_MATRIX_ROWS;
    return blocks * s->hop;
}

/* Returns the time of `count` rows or columns of a product of matrices, in full ones: rows of a tile that is not full
 * cost a little more. */
static double full_rows(int64_t count) {
    static const double rest[GC_MATRIX_ROWS] = {0, 1.7, 2.4};
    const int64_t left = count % GC_MATRIX_ROWS;
    return (double)(count - left) + rest[left];
}

/* Products are bound by arithmetic or by reading the responses once a chunk; spectra of inputs and outputs are written
 * and read in slabs. */
static double seconds(const gc_problem *p, const gc_costs *c, const gc_schedule *s, double total, int64_t chunk) {
    const double bins = (double)s->transform / 2, byte = c->seconds[GC_COST_CPU_BYTE];
    const double fft = gc_cpu_fft_seconds(c, s->transform), moves = (double)s->transform * 8 * byte;
    const int64_t hops = chunk / s->hop; /* of a chunk */
    const double blocks = ceil(total / (double)s->hop), columns = full_rows(hops);
    const double chunks = ceil(blocks / (double)hops);
    double sum = 0, spectra = 0;
    for (int i = 0; i < p->stream.components.count; i++) {
        const gc_component *channels = &p->stream.components.component[i];
        const double factors = channels->inputs * (double)s->partitions;
        const double products = full_rows(channels->outputs) * factors * columns * c->seconds[GC_COST_CPU_MATRIX];
        sum += chunks * bins * fmax(products, channels->outputs * factors * 8 * byte);
        spectra +=
            blocks * (channels->inputs + channels->outputs) + chunks * channels->inputs * (double)(s->partitions - 1);
    }
    return blocks * (p->stream.ir->inputs + p->stream.ir->outputs) * fft + gc_cpu_copy_seconds(p, c, total) +
           (sum + spectra * bins * 16 * byte) + (double)(p->stream.ir->routes * s->partitions) * (fft + moves);
}

static double floats(const gc_problem *p, const gc_schedule *s, int64_t chunk, int threads) {
    const int64_t hops = chunk / s->hop;
    const double block = (double)s->transform, past = (double)(s->partitions - 1);
    const double columns = (p->stream.ir->inputs + p->stream.ir->outputs) * (double)hops + p->stream.ir->inputs * past;
    return (double)p->stream.products * (double)s->partitions * block + threads * block * 2 + block * columns +
           p->stream.ir->inputs * (double)gc_schedule_overlap(s);
}

/* The responses alone are two times their taps in every size. */
const gc_cpu_algorithm gc_cpu_dense = {
    .row = GC_CPU_ROW(GPUCONV_ALGORITHM_MATRIX, "matrix", GC_FFT_MIN_POINTS, 1 << 24, 1e9, 2.5),
    .schedule = gc_schedule_dense,
    .chunk = chunk_frames,
    .seconds = seconds,
    .floats = floats,
    .section = GC_SECTION_DENSE,
};
