/*
 * The gradient by the responses of rows on device memory, with a whole transform on the chip, and the sum of partial
 * sums. Contract: job.h; the transforms: chip.cuh.
 *
 *      for each segment of x and g:  load and transform both, sum += conj(X) G;  once: inverse, store
 */
#include "chip.cuh"

namespace {

/* Returns whether a thread of the block, or of its warp if each part of it has an item, has anything left. */
template <int Size> __device__ __forceinline__ bool any_left(bool left) {
    return config<Size>::groups > 1 ? __any_sync(~0u, left) : left;
}

/* An item is a response and one of `splits` parts of the `pairs` of segments of all its rows: part p has the pairs p, p
 * + splits, ..., so that all parts have as many rows that exist. The target has splits x responses rows: with several
 * splits it is the partial sums. */
template <int Size, known_rows Known>
__global__ void __launch_bounds__(config<Size>::threads, resident_of<Size, Known>())
    chip_gradient(const __grid_constant__ gck_chip_gradient a, int items, int pairs) {
    typedef config<Size> c;
    typedef typename c::transform f;
    extern __shared__ __align__(16) float2 shared[];
    const int group = group_of_thread<Size>();
    const int held = holds_addresses<Size>() ? thread_of_segment<Size>() : 0; /* the part of t in the addresses */
    float2 *kept = a.scratch + ((int64_t)blockIdx.x * c::groups + group) * 2 * f::N + 2 * held, *sum = kept + f::N;
    float2 *s = shared + group * c::stride, v[f::P];
    pdl_trigger();
    pdl_wait();
    for (int number = blockIdx.x * c::groups; number < items; number += gridDim.x * c::groups) {
        const int item = min(number + group, items - 1), response = item / a.splits, part = item % a.splits;
        bool first = true;
#pragma unroll 1
        for (int step = 0;; step++) { /* two for each segment: x, then g */
            const int t = thread_of_segment<Size>();
            const bool second = step & 1;
            const int pair = part + step / 2 * a.splits;
            const int row = sharing_row(a.sharing, response, pair / a.segments);
            const bool exists = pair < pairs && row < a.sharing.rows && !is_missing(a.x, row);
            if (!any_left<Size>(exists))
                break;
            const int64_t n = (int64_t)(pair % a.segments) * a.hop + (second ? a.shift : 0);
            const gck_rows &from = second ? a.g : a.x, &gate = second ? a.g_gate : a.x_gate;
            const int window = second ? 2 * f::N : a.hop;
            if (Known == GATED) {
                if (exists && gate.data) {
                    prefetch_frames<f::T>(from, row, n, window, t);
                    prefetch_frames<f::T>(gate, row, n, window, t);
                }
                transform_barrier<f::T>();
            }
            if (!exists || !(Known == GATED && gate.data
                                 ? load_gated_segment<f::P, f::T>(v, (float *)s, from, gate, {row, n, window}, t)
                                 : load_segment<f::P, f::T, Known>(v, from, {row, n, window}, t))) {
                if (c::groups == 1) {
                    step |= 1; /* neither of the two has anything to add */
                    continue;
                }
                clear<f::P>(v);
            }
            if (!second)
                scale<f::P>(v, (a.gain && exists ? a.gain[row] : 1.0f) * (1.0f / f::N));
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
        const row_segment sum = {part * a.sharing.responses + response, 0, 0, number + group < items ? (int)a.taps : 0};
        store_segment<f::P, f::T, false, Known>(v, (float *)s, a.target, sum, 1.0f, t);
    }
}

enum { SUM_THREADS = 256 };

/* Adds up the parts of the sums; block.x: frames of a response; block.y + 65535 block.z: response. */
__global__ void sum_parts(const __grid_constant__ gck_target target, const float *partial, int splits,
                          int64_t responses, int64_t taps) {
    const int64_t n = (int64_t)blockIdx.x * SUM_THREADS + threadIdx.x, row = blockIdx.y + 65535ll * blockIdx.z;
    pdl_wait();
    if (row >= responses)
        return;
    const written_frames frames = frames_to_write(target, row);
    if (n >= min(taps, frames.end))
        return;
    float sum = 0;
    for (int s = 0; s < splits; s++)
        sum += partial[(s * responses + row) * taps + n];
    sum = n < frames.valued ? sum : 0.0f;
    with_samples(target.rows, row_start(target.rows, row), n,
                 [&](auto y) { set_sample(y[0], target.accumulate ? sample_of(y[0]) + sum : sum); });
}

/* The launchers of one size. */
template <int Size> struct launchers {
    static const int bytes = config<Size>::bytes, threads = config<Size>::threads;

    static cudaError_t load() {
        return load_kernels<Size>(chip_gradient<Size, ADJACENT>, chip_gradient<Size, GATED>);
    }

    static cudaError_t gradient(const gck_chip_gradient *job, cudaStream_t stream) {
        return launch_dependent(job->gated ? chip_gradient<Size, GATED> : chip_gradient<Size, ADJACENT>,
                                dim3(job->blocks), threads, bytes, stream, *job, job->sharing.responses * job->splits,
                                sharing_rows(job->sharing) * job->segments);
    }
};

struct gradient_row {
    cudaError_t (*load)();
    cudaError_t (*gradient)(const gck_chip_gradient *job, cudaStream_t stream);
};

template <int Size> constexpr gradient_row row_of() {
    return gradient_row{launchers<Size>::load, launchers<Size>::gradient};
}

const gradient_row rows[GCK_CHIP_SIZES] = {row_of<0>(), row_of<1>(), row_of<2>(), row_of<3>(),
                                           row_of<4>(), row_of<5>(), row_of<6>(), row_of<7>()};

} // namespace

cudaError_t gck_chip_load_gradient(int shared_bytes_max) {
    cudaError_t err = load_kernel(sum_parts, 0);
    for (int size = 0; size < GCK_CHIP_SIZES && !err; size++)
        if (gck_chip_query(size).shared_bytes <= shared_bytes_max)
            err = rows[size].load();
    return err;
}

cudaError_t gck_sum_parts(const gck_target *target, const float *partial, int splits, int64_t responses, int64_t frames,
                          cudaStream_t stream) {
    const dim3 grid((unsigned)((target->rows.frames + SUM_THREADS - 1) / SUM_THREADS),
                    (unsigned)min(responses, (int64_t)65535), (unsigned)((responses + 65534) / 65535));
    return launch_dependent(sum_parts, grid, SUM_THREADS, 0, stream, *target, partial, splits, responses, frames);
}

cudaError_t gck_chip_gradient_response(int size, const gck_chip_gradient *job, cudaStream_t stream) {
    if (job->splits == 1)
        return rows[size].gradient(job, stream);
    gck_chip_gradient parts = *job;
    parts.target = {{job->partial, job->taps, job->taps, 1, NULL, NULL, GCK_F32}, 0};
    cudaError_t err = rows[size].gradient(&parts, stream);
    if (err)
        return err;
    return gck_sum_parts(&job->target, job->partial, job->splits, job->sharing.responses, job->taps, stream);
}
