/*
 * Overlap-save in three kernels, for transforms that do not fit into one block's shared memory. A block of 2 N samples
 * is transformed as N complex points (right_angle.cuh). The N = C R points are a matrix of C rows and R columns, index
 * n1 R + n2 in row n1, column n2:
 *
 *      columns      for each n2: load, transform over n1, twiddles            ->  scratch, row J is leaf J
 *      rows         for each J: transform over n2, multiply, transform back   ->  scratch
 *      columns      for each n2: twiddles, transform back over J              ->  the last `hop` samples
 *
 * After the columns, row J is a polynomial modulo x^R - e^(2 pi i v(J)) (fft_fma.cuh). Multiplying index n2 by
 * e^(2 pi i v(J) n2 / R) makes it a polynomial modulo x^R - 1, the same for all rows. v(J) contains the quarter of the
 * root x^N - i, so that the rows are ordinary transforms, and the inverse leaves only the twist of the row,
 * e^(i pi n1 / 2 C).
 *
 * Memory: the signal is read and written once, the scratch memory written and read twice; with a million points that is
 * four times the traffic of a copy, less if the scratch fits into the second-level cache. A block of the column kernels
 * processes adjacent columns, so that its accesses are whole sectors.
 *
 * The kernels are in three_pass_columns.cu and three_pass_rows.cu: the channels of a chunk are rows of floats. The
 * contracts of the launchers are those of gck_overlap_save and its companions in kernels.h.
 *
 * What it buys: transforms beyond 2^15 real points. With 32 768 taps clusters of blocks, which are not kept, took 7 %
 * longer (0.0662 instead of 0.0619 ms for 2^23 samples, H200).
 */
#include "kernels/engine/overlap_save.cuh"

namespace {

/* The launchers for transforms of one size in job.h. */
template <int Size> struct launchers {
    static gck_overlap_save_sizes sizes() {
        const gck_3pass_sizes s = gck_3pass_query(Size);
        return gck_overlap_save_sizes{s.twiddles, s.points, s.shared_bytes, s.points};
    }

    static void write_twiddles(float2 *to) {
        gck_3pass_twiddles(Size, to);
    }

    static cudaError_t spectra(const gck_responses &responses, const gck_overlap_save_memory &memory,
                               cudaStream_t stream) {
        const int64_t points = sizes().spectrum;
        gck_3pass_blocks from = {};
        from.rows = {(void *)responses.taps, responses.taps_count, responses.taps_count, 1, NULL, NULL, GCK_F32};
        from.count = responses.planes;
        from.blocks = 1;
        from.window = (int)(2 * points);
        from.scale = 1.0f / (float)points;
        const cudaError_t err = gck_3pass_forward(Size, &from, memory.twiddles, memory.spectra, stream);
        return err ? err
                   : gck_3pass_spectra(Size, responses.planes, 0, memory.twiddles, memory.spectra, memory.spectra,
                                       stream);
    }

    static cudaError_t convolve(const gck_routes *routes, int64_t hop, int64_t blocks,
                                const gck_overlap_save_memory &memory, cudaStream_t stream) {
        const int64_t points = sizes().spectrum, overlap = 2 * points - hop, frames = blocks * hop;
        gck_3pass_blocks from = {};
        from.rows = {(void *)(routes->in - overlap), overlap + frames, routes->in_stride, 1, NULL, NULL, GCK_F32};
        from.count = routes->inputs;
        from.blocks = (int)blocks;
        from.step = hop;
        from.window = (int)(2 * points);
        from.scale = 1;
        from.whole = 1;
        gck_3pass_sums sums = {};
        sums.batch = sums.parts = 1;
        sums.blocks = (int)blocks;
        sums.inputs = routes->inputs;
        sums.outputs = routes->outputs;
        sums.single = routes->single;
        sums.route = routes->route;
        sums.row = routes->single ? NULL : routes->row;
        sums.twiddles = memory.twiddles;
        sums.spectra = memory.spectra;
        sums.sources = memory.scratch;
        sums.results = memory.scratch + (routes->in_place ? 0 : routes->inputs * blocks * points);
        gck_3pass_blocks to = {};
        to.rows = {routes->out, frames, routes->out_stride, 1, NULL, NULL, GCK_F32};
        to.count = routes->outputs;
        to.blocks = (int)blocks;
        to.step = hop;
        to.lo = (int)overlap;
        to.kept = (int)hop;
        to.whole = 1;
        cudaError_t err = gck_3pass_forward(Size, &from, memory.twiddles, memory.scratch, stream);
        if (!err)
            err = gck_3pass_sum(Size, &sums, stream);
        return err ? err : gck_3pass_inverse(Size, &to, memory.twiddles, sums.results, stream);
    }

    static constexpr overlap_save_row row() {
        return overlap_save_row{(int64_t)2 * 1024 << (4 + Size), sizes, write_twiddles, spectra, convolve, true};
    }
};

const overlap_save_row rows[GCK_3PASS_SIZES] = {launchers<0>::row(), launchers<1>::row(), launchers<2>::row(),
                                                launchers<3>::row(), launchers<4>::row(), launchers<5>::row(),
                                                launchers<6>::row()};

} // namespace

const overlap_save_row *gck_overlap_save_3pass_find(int64_t points) {
    for (const overlap_save_row &r : rows)
        if (r.points == points)
            return &r;
    return NULL;
}
