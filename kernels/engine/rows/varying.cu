/*
 * Filters that change with time, and their gradients, with a whole transform on the chip, on device memory. Contract:
 * job.h; the transforms: chip.cuh.
 *
 *      convolve    for each piece:       load and transform its response and it, multiply, inverse, add to the output
 *      signal      for each piece:       the same with the conjugate, from the output to the piece
 *      response    for each response:    for its pieces in all rows: sum += conj(X) G;  once: inverse, store
 *
 * A piece with its response is longer than the way to the next piece, so that pieces overlap in the output. Those of a
 * launch do not: every output frame is written by one thread of each launch, in the same order in every run.
 *
 * Memory: a convolution in k launches reads each piece and response once and accesses the output 2 k - 1 times.
 */
#include "chip.cuh"

namespace {

/* A piece of a block of the signal. */
struct piece_place {
    int number, block, within; /* its block, and its first frame there */
    int64_t at;                /* its first frame in the row */
    int frames;                /* 0 behind the last block */
};

__device__ __forceinline__ piece_place place_of(const gck_varying_job &a, int number) {
    const int block = number / a.pieces - a.leading, within = number % a.pieces * a.piece;
    return {number, block, within, (int64_t)block * a.blocks.hop + within,
            (unsigned)block < (unsigned)a.blocks.count ? min(a.piece, a.blocks.hop - within) : 0};
}

/* Weights the frames of a piece. */
template <typename F>
__device__ __forceinline__ void weigh(float2 *v, const gck_blocks &blocks, const piece_place &piece, int t) {
    if (blocks.ramp == GCK_HOLD)
        return;
    const bool last = piece.block >= blocks.count - 1, fall = blocks.ramp == GCK_FALL;
    const float start = fall ? 1.0f : 0.0f, slope = last ? 0.0f : (fall ? -1.0f : 1.0f) / (float)blocks.hop;
    const float at = (float)(piece.within + t);
#pragma unroll
    for (int j = 0; j < F::P; j++) {
        v[j].x *= fmaf(slope, at + (float)(j * F::T), start);
        v[j].y *= fmaf(slope, at + (float)(j * F::T + F::N), start);
    }
}

/* What a group of threads computes: a piece of a row with the response that weighs on it. */
struct varying_item {
    piece_place piece;
    int row, response;
    bool exists;
};

/* Returns item `number` of `items`; rows: sharing_rows. Items with the same response follow one another. */
__device__ __forceinline__ varying_item item_of(const gck_varying_job &a, int number, int items, int rows) {
    const int clamped = min(number, items - 1), place = clamped / rows, set = place / a.count;
    const int row = sharing_row(a.sharing, set, clamped % rows);
    const piece_place piece = place_of(a, a.first + place % a.count * a.step);
    const int rise = a.blocks.ramp == GCK_RISE;
    return {piece, min(row, a.sharing.rows - 1),
            set * a.blocks.count + min(max(piece.block, 0) + rise, a.blocks.count - 1),
            number < items && row < a.sharing.rows && !(rise && piece.block >= a.blocks.count - 1)};
}

/* Loads a response, or a piece or the frames of the output that it meets (reflect). Returns whether there is a frame;
 * if not, v is not written. */
template <typename F>
__device__ __forceinline__ bool load_turn(float2 *v, const gck_varying_job &a, const varying_item &item, bool response,
                                          bool reflect, int t) {
    const gck_rows x = response  ? only_row(a.response, item.response)
                       : reflect ? only_row(a.output, item.row)
                                 : only_row(a.signal, item.row);
    const int64_t at = response ? a.first_tap : item.piece.at + (reflect ? a.first_tap - a.offset : 0);
    const int window = response ? a.taps : reflect ? 2 * F::N : item.piece.frames;
    return (response || (item.exists && item.piece.frames)) &&
           load_segment<F::P, F::T, ADJACENT>(v, x, {0, at, window}, t);
}

/* Adds a segment, times gain, to a row. Reads all of them before it
 * writes the first one: a write would hold up the reads behind it. */
template <int P, int T>
__device__ __forceinline__ void add_segment(float2 *v, const gck_rows &rows, const row_segment &part, float gain,
                                            int t) {
    const unsigned count = within(row_frames(rows, part.row) - part.frame, part.kept);
    const int lo = part.lo;
    with_samples<ADJACENT>(rows, row_start(rows, part.row), part.frame - lo + t, [=](auto y) {
#pragma unroll
        for (int j = 0; j < 2 * P; j++) {
            float &x = j < P ? v[j % P].x : v[j % P].y;
            x = fmaf(gain, x, sample_if(y, j * T, t - lo + j * T < count));
        }
#pragma unroll
        for (int j = 0; j < 2 * P; j++)
            store_if(y, j * T, j < P ? v[j % P].x : v[j % P].y, t - lo + j * T < count);
    });
}

/* Stores what a piece adds to the output, or the gradient by the piece (reflect). */
template <typename F>
__device__ __forceinline__ void store_piece(float2 *v, float2 *s, const gck_varying_job &a, const varying_item &item,
                                            bool reflect, int t) {
    const gck_target target = {reflect ? a.signal : a.output, 0};
    const piece_place piece = item.piece;
    const float gain = a.gain ? a.gain[item.row] : 1.0f;
    int64_t frame = piece.at;
    int written = 0, skipped = 0;
    if (reflect) {
        weigh<F>(v, a.blocks, piece, t);
        written = piece.frames;
    } else {
        frame += a.first_tap - a.offset;
        written = a.accumulate ? piece.frames + a.taps - 1 : (int)(place_of(a, piece.number + a.step).at - piece.at);
        skipped = within(-frame, written);
    }
    const row_segment part = {item.row, frame + skipped, skipped, item.exists ? written - skipped : 0};
    if (a.accumulate)
        add_segment<F::P, F::T>(v, target.rows, part, gain, t);
    else
        store_segment<F::P, F::T, true, ADJACENT>(v, (float *)s, target, part, gain, t);
}

/* reflect: the gradient by the signal. */
template <int Size>
__global__ void __launch_bounds__(config<Size>::threads, config<Size>::resident)
    varying_convolve(const __grid_constant__ gck_varying_job a, int items, int rows, bool reflect) {
    typedef config<Size> c;
    typedef typename c::transform f;
    extern __shared__ __align__(16) float2 shared[];
    const int group = group_of_thread<Size>();
    const int held = holds_addresses<Size>() ? thread_of_segment<Size>() : 0; /* the part of t in the addresses */
    float2 *h = a.scratch + ((int64_t)blockIdx.x * c::groups + group) * f::N + 2 * held, v[f::P];
    float2 *s = shared + group * c::stride;
    pdl_trigger();
    pdl_wait();
#pragma unroll 1
    for (int first = blockIdx.x * c::groups; first < items; first += gridDim.x * c::groups) {
        const bool any = c::groups > 1 || item_of(a, first + group, items, rows).exists;
        if (!any)
            continue;
        const int t = thread_of_segment<Size>();
#pragma unroll 1
        for (int turn = 0; turn < 2; turn++) { /* the response, then the piece: one copy of the transform */
            const varying_item item = item_of(a, hidden(first) + group, items, rows);
            if (!load_turn<f>(v, a, item, turn == 0, reflect, t))
                clear<f::P>(v);
            if (turn == 0)
                scale<f::P>(v, 1.0f / f::N);
            else if (!reflect)
                weigh<f>(v, a.blocks, item.piece, t);
            transform_barrier<f::T>();
            f::forward(v, s, t, a.twiddles);
            if (turn == 0)
                keep<f::P, f::T>(v, h + 2 * (t - held));
        }
        multiply<f::P, f::T>(v, h + 2 * (t - held), reflect ? -1.0f : 1.0f);
        transform_barrier<f::T>();
        f::inverse(v, s, t, a.twiddles);
        store_piece<f>(v, s, a, item_of(a, hidden(first) + group, items, rows), reflect, t);
    }
}

/* An item is a response; its sum goes over the pieces of its block in the rows that share it. */
template <int Size>
__global__ void __launch_bounds__(config<Size>::threads, config<Size>::resident)
    varying_response(const __grid_constant__ gck_varying_job a, int items, int rows) {
    typedef config<Size> c;
    typedef typename c::transform f;
    extern __shared__ __align__(16) float2 shared[];
    const int group = group_of_thread<Size>();
    const int held = holds_addresses<Size>() ? thread_of_segment<Size>() : 0; /* the part of t in the addresses */
    float2 *kept = a.scratch + ((int64_t)blockIdx.x * c::groups + group) * 2 * f::N + 2 * held, *sum = kept + f::N;
    float2 *s = shared + group * c::stride, v[f::P];
    const gck_target target = {a.response, a.accumulate};
    const int rise = a.blocks.ramp == GCK_RISE;
    pdl_trigger();
    pdl_wait();
#pragma unroll 1
    for (int number = blockIdx.x * c::groups; number < items; number += gridDim.x * c::groups) {
        bool first = true;
#pragma unroll 1
        for (int step = 0; step < 2 * rows * a.pieces; step++) { /* two for each piece: x, then g */
            const int t = thread_of_segment<Size>();
            const bool second = step & 1;
            const int item = min(hidden(number) + group, items - 1), block = item % a.blocks.count;
            const int row = sharing_row(a.sharing, item / a.blocks.count, step / 2 / a.pieces);
            const piece_place piece = place_of(a, block * a.pieces + step / 2 % a.pieces);
            const bool exists = number + group < items && !(rise && block == a.blocks.count - 1);
            const bool used = exists && row < a.sharing.rows;
            const gck_rows &from = second ? a.output : a.signal;
            const int64_t at = second ? piece.at + a.first_tap - a.offset : piece.at;
            const bool loaded =
                used && load_segment<f::P, f::T, ADJACENT>(v, from, {row, at, second ? 2 * f::N : piece.frames}, t);
            if (!loaded) {
                if (c::groups == 1) {
                    step |= 1; /* neither of the two has anything to add */
                    continue;
                }
                clear<f::P>(v);
            }
            if (!second) {
                weigh<f>(v, a.blocks, piece, t);
                scale<f::P>(v, (a.gain && used ? a.gain[row] : 1.0f) * (1.0f / f::N));
            }
            transform_barrier<f::T>();
            f::forward(v, s, t, a.twiddles);
            if (second) {
                correlate<f::P, f::T>(v, kept + 2 * (t - held), first ? NULL : sum + 2 * (t - held));
                first = false;
            }
            keep<f::P, f::T>(v, (second ? sum : kept) + 2 * (t - held));
        }
        const int t = thread_of_segment<Size>();
        clear<f::P>(v);
        if (!first)
            finish_sum<f>(v, s, sum + 2 * (t - held), a.twiddles, t);
        const int item = min(hidden(number) + group, items - 1), last = item % a.blocks.count == a.blocks.count - 1;
        const row_segment sum = {item + (last ? 0 : rise), a.first_tap, 0,
                                 number + group < items && !(rise && last) ? a.taps : 0};
        store_segment<f::P, f::T, false, ADJACENT>(v, (float *)s, target, sum, 1.0f, t);
    }
}

/* The launchers of one size. */
template <int Size> struct launchers {
    static cudaError_t load() {
        return load_kernels<Size>(varying_convolve<Size>, varying_response<Size>);
    }

    static cudaError_t convolve(const gck_varying_job *job, bool reflect, cudaStream_t stream) {
        const int rows = sharing_rows(job->sharing);
        return launch_dependent(varying_convolve<Size>, dim3(job->grid), config<Size>::threads, config<Size>::bytes,
                                stream, *job, job->sharing.responses * rows * job->count, rows, reflect);
    }

    static cudaError_t response(const gck_varying_job *job, cudaStream_t stream) {
        return launch_dependent(varying_response<Size>, dim3(job->grid), config<Size>::threads, config<Size>::bytes,
                                stream, *job, job->sharing.responses * job->blocks.count, sharing_rows(job->sharing));
    }
};

struct varying_row {
    cudaError_t (*load)();
    cudaError_t (*convolve)(const gck_varying_job *job, bool reflect, cudaStream_t stream);
    cudaError_t (*response)(const gck_varying_job *job, cudaStream_t stream);
};

template <int Size> constexpr varying_row row_of() {
    return varying_row{launchers<Size>::load, launchers<Size>::convolve, launchers<Size>::response};
}

const varying_row rows[GCK_CHIP_SIZES] = {row_of<0>(), row_of<1>(), row_of<2>(), row_of<3>(),
                                          row_of<4>(), row_of<5>(), row_of<6>(), row_of<7>()};

} // namespace

cudaError_t gck_varying_load(int shared_bytes_max) {
    cudaError_t err = cudaSuccess;
    for (int size = 0; size < GCK_CHIP_SIZES && !err; size++)
        if (gck_chip_query(size).shared_bytes <= shared_bytes_max)
            err = rows[size].load();
    return err;
}

cudaError_t gck_varying_convolve(int size, const gck_varying_job *job, cudaStream_t stream) {
    return rows[size].convolve(job, false, stream);
}

cudaError_t gck_varying_signal(int size, const gck_varying_job *job, cudaStream_t stream) {
    return rows[size].convolve(job, true, stream);
}

cudaError_t gck_varying_response(int size, const gck_varying_job *job, cudaStream_t stream) {
    return rows[size].response(job, stream);
}
