/*
 * Jobs on device memory with a whole transform on the chip: convolution and correlation of rows with a response each,
 * and the gradient by the responses. Contracts: job.h.
 *
 *      convolve    for each segment of a row:    load, forward, multiply by the spectrum, inverse, store
 *      gradient    for each segment of x and g:  load and transform both, sum += conj(X) G;  once: inverse, store
 *
 * N complex points represent 2 N real ones (right_angle.cuh): 1024 points in a warp (fft_fma.cuh), 4096, 8192 or 16384
 * in a block (fft_twisted.cuh). The blocks are persistent: block b takes the items b, b + blocks, ... A fresh response
 * is transformed by each block that needs it and kept in `scratch`, in the order in which the threads hold it, so that
 * a thread reads only what it wrote; it stays in the second-level cache.
 *
 * Memory: samples are read 2 N / hop times (mostly from the cache) and written once.
 */
#include "job_segments.cuh"
#include "twiddles.h"

#include "kernels/device/fft_twisted.cuh"

#include <type_traits>

namespace {

/* 1024 points in a warp, with the interface of twisted_fft; `inverse` removes the twist. */
struct warp_fft : fft_fma<5, 5, true> {
    typedef fft_fma<5, 5, true> base;
    static const int twiddles = base::forward_twiddles + base::inverse_twiddles;

    static __device__ __forceinline__ void inverse(float2 *v, float2 *s, int t, const float2 *__restrict__ table) {
        base::inverse(v, s, t, table + base::forward_twiddles);
        untwist<P>(v, untwist_angle<N>(t));
    }
};

/* A transform in a block, with the interface of warp_fft. */
template <int LEVELS> struct block_fft : twisted_fft<LEVELS> {
    typedef twisted_fft<LEVELS> base;

    static __device__ __forceinline__ void inverse(float2 *v, float2 *s, int t, const float2 *__restrict__ table) {
        base::inverse(v, s, t, table);
        untwist_rows<base::P>(v);
    }
};

/* The transform of size 0 .. 3, and the blocks per multiprocessor to compile for: 128 registers for each thread. */
template <int Size> struct config {
    typedef std::conditional_t<Size == 0, warp_fft, block_fft<Size == 0 ? 2 : Size + 1>> transform;
    static const int resident = Size == 0 ? 16 : 512 / transform::T;
    static const int bytes = transform::shared * (int)sizeof(float2);
};

/* The blocks per multiprocessor to compile for; frames with a step take more registers. */
template <int Size, known_rows Known> __host__ __device__ constexpr int resident_of() {
    return config<Size>::resident / (Known == STEPPED && Size < 3 ? 2 : 1);
}

/* Whether the kernels of a size hold the addresses of a thread in registers over all segments. Elsewhere the compiler
 * runs out of them then and spills. */
template <int Size> __host__ __device__ constexpr bool holds_addresses() {
#if defined(__CUDA_ARCH__)
    return __CUDA_ARCH__ == 900 || (__CUDA_ARCH__ > 900 && Size != 0);
#else
    return true;
#endif
}

/* Returns the number of the thread; without `holds_addresses` it hides the value from the compiler, which then computes
 * what follows from it again in each segment. */
template <int Size> __device__ __forceinline__ int thread_of_segment() {
    int t = threadIdx.x;
    if (!holds_addresses<Size>())
        asm volatile("" : "+r"(t));
    return t;
}

/* Multiplies by the conjugate of a spectrum and adds `sum`, if it is not NULL. */
template <int P, int T> __device__ __forceinline__ void correlate(float2 *v, const float2 *x, const float2 *sum) {
#pragma unroll
    for (int j = 0; j < P; j += 2) {
        const float4 w = *(const float4 *)(x + j * T);
        v[j] = mul_conj(v[j], make_float2(w.x, w.y));
        v[j + 1] = mul_conj(v[j + 1], make_float2(w.z, w.w));
    }
    if (sum) {
#pragma unroll
        for (int j = 0; j < P; j += 2) {
            const float4 w = *(const float4 *)(sum + j * T);
            v[j] = add(v[j], make_float2(w.x, w.y));
            v[j + 1] = add(v[j + 1], make_float2(w.z, w.w));
        }
    }
}

/* Returns the first of `count` segments that part `part` of `parts` computes. */
__device__ __forceinline__ int part_begin(int part, int count, int parts) {
    return (int)((int64_t)part * count / parts);
}

/* Loads and transforms a response, scaled for the inverse. */
template <typename F, known_rows Known>
__device__ __forceinline__ void transform_response(float2 *v, float2 *s, const gck_rows &response, int64_t row,
                                                   int64_t taps, const float2 *__restrict__ twiddles, int t) {
    if (!load_segment<F::P, F::T, Known>(v, response, row, 0, (int)taps, t))
        clear<F::P>(v);
    scale<F::P>(v, 1.0f / F::N);
    transform_barrier<F::T>();
    F::forward(v, s, t, twiddles);
}

/* Convolves one segment, whose first point is frame `at` of the row, in registers. h: the spectrum, at the thread's
 * place; sign: -1 for its conjugate. */
template <typename F, known_rows Known>
__device__ __forceinline__ void convolve_segment(float2 *v, float2 *s, const gck_rows &source, int64_t row, int64_t at,
                                                 const float2 *h, float sign, const float2 *__restrict__ twiddles,
                                                 int t) {
    if (load_segment<F::P, F::T, Known>(v, source, row, at, 2 * F::N, t)) {
        transform_barrier<F::T>();
        F::forward(v, s, t, twiddles);
        multiply<F::P, F::T>(v, h, sign);
        transform_barrier<F::T>();
        F::inverse(v, s, t, twiddles);
    } else {
        clear<F::P>(v);
    }
}

/* An item is a row and one of `splits` ranges of its segments. FLOATS: also, the target is overwritten and there is
 * no gain. This is the usual job, and a kernel that can do no more is faster. */
template <int Size, known_rows Known>
__global__ void __launch_bounds__(config<Size>::transform::T, resident_of<Size, Known>())
    chip_convolve(const __grid_constant__ gck_chip_job a) {
    typedef typename config<Size>::transform f;
    extern __shared__ __align__(16) float2 shared[];
    const int held = holds_addresses<Size>() ? threadIdx.x : 0; /* the part of t that is in the addresses */
    float2 *own = a.scratch + (int64_t)blockIdx.x * f::N + 2 * held, v[f::P];
    const float sign = a.reflect ? -1.0f : 1.0f;
    pdl_trigger();
    pdl_wait();
    for (int item = blockIdx.x; item < a.sharing.rows * a.splits; item += gridDim.x) {
        const int row = item / a.splits, part = item % a.splits, response = response_of(a.sharing, row);
        const float2 *h = a.spectra ? a.spectra + (int64_t)response * f::N + 2 * held : own;
        if (!a.spectra) {
            const int t = thread_of_segment<Size>();
            transform_response<f, Known>(v, shared, a.response, response, a.taps, a.twiddles, t);
            keep<f::P, f::T>(v, own + 2 * (t - held));
        }
        const int end = part_begin(part + 1, a.segments, a.splits);
#pragma unroll 1
        for (int segment = part_begin(part, a.segments, a.splits); segment < end; segment++) {
            const int t = thread_of_segment<Size>();
            const int64_t n = (int64_t)segment * a.hop;
            if (n >= frames_to_write(a.target, row).end)
                break;
            convolve_segment<f, Known>(v, shared, a.source, row, n + a.shift, h + 2 * (t - held), sign, a.twiddles, t);
            if (Known == FLOATS)
                store_plain_segment<f::P, f::T>(v, a.target, row, n, a.lo, a.hop, t);
            else
                store_segment<f::P, f::T, Size != 0, Known>(v, a.target, row, n, a.lo, a.hop,
                                                            a.gain ? a.gain[row] : 1.0f, t);
        }
    }
}

/* block.x: response. */
template <int Size>
__global__ void __launch_bounds__(config<Size>::transform::T, config<Size>::resident)
    chip_spectra(const __grid_constant__ gck_rows response, int64_t taps, const float2 *__restrict__ twiddles,
                 float2 *spectra) {
    typedef typename config<Size>::transform f;
    extern __shared__ __align__(16) float2 shared[];
    const int t = threadIdx.x;
    float2 v[f::P];
    pdl_wait();
    transform_response<f, UNKNOWN>(v, shared, response, blockIdx.x, taps, twiddles, t);
    keep<f::P, f::T>(v, spectra + (int64_t)blockIdx.x * f::N + 2 * t);
}

/* An item is a response and one of `splits` ranges of the segments of all its rows. The target has splits x responses
 * rows: with several splits it is the partial sums. */
template <int Size, known_rows Known>
__global__ void __launch_bounds__(config<Size>::transform::T, resident_of<Size, Known>())
    chip_gradient(const __grid_constant__ gck_chip_gradient a) {
    typedef typename config<Size>::transform f;
    extern __shared__ __align__(16) float2 shared[];
    const int held = holds_addresses<Size>() ? threadIdx.x : 0; /* the part of t that is in the addresses */
    float2 *kept = a.scratch + (int64_t)blockIdx.x * 2 * f::N + 2 * held, *sum = kept + f::N, v[f::P];
    pdl_trigger();
    pdl_wait();
    const int steps = 2 * sharing_rows(a.sharing) * a.segments; /* two for each segment: x, then g */
    for (int item = blockIdx.x; item < a.sharing.responses * a.splits; item += gridDim.x) {
        const int response = item / a.splits, part = item % a.splits;
        const int end = part_begin(part + 1, steps / 2, a.splits) * 2;
        bool first = true;
#pragma unroll 1
        for (int step = part_begin(part, steps / 2, a.splits) * 2; step < end; step++) {
            const int t = thread_of_segment<Size>();
            const bool second = step & 1;
            const int row = sharing_row(a.sharing, response, step / 2 / a.segments);
            const int64_t n = (int64_t)(step / 2 % a.segments) * a.hop + (second ? a.shift : 0);
            if (row >= a.sharing.rows ||
                !load_segment<f::P, f::T, Known>(v, second ? a.g : a.x, row, n, second ? 2 * f::N : a.hop, t)) {
                step |= 1; /* neither of the two has anything to add */
                continue;
            }
            if (!second)
                scale<f::P>(v, (a.gain ? a.gain[row] : 1.0f) * (1.0f / f::N));
            transform_barrier<f::T>();
            f::forward(v, shared, t, a.twiddles);
            if (second) {
                correlate<f::P, f::T>(v, kept + 2 * (t - held), first ? NULL : sum + 2 * (t - held));
                first = false;
            }
            keep<f::P, f::T>(v, (second ? sum : kept) + 2 * (t - held));
        }
        const int t = thread_of_segment<Size>();
        clear<f::P>(v);
        if (!first) {
#pragma unroll
            for (int j = 0; j < f::P; j += 2) {
                const float4 w = *(const float4 *)(sum + j * f::T + 2 * (t - held));
                v[j] = make_float2(w.x, w.y);
                v[j + 1] = make_float2(w.z, w.w);
            }
            transform_barrier<f::T>();
            f::inverse(v, shared, t, a.twiddles);
        }
        store_segment<f::P, f::T, false, Known>(v, a.target, part * a.sharing.responses + response, 0, 0, (int)a.taps,
                                                1.0f, t);
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

bool are_floats(const gck_rows &rows) {
    return rows.sample == GCK_F32 && rows.step == 1;
}

/* The launchers of one size. */
template <int Size> struct launchers {
    typedef typename config<Size>::transform f;
    static const int bytes = config<Size>::bytes;
    static const known_rows plain = Size == 3 ? FLOATS : ADJACENT; /* the size of long jobs has a kernel for them */

    static gck_chip_sizes sizes() {
        return gck_chip_sizes{f::N, f::twiddles, bytes, f::T, config<Size>::resident};
    }

    static void write_twiddles(float2 *to) {
        if constexpr (Size == 0) {
            write_inverse_twiddles(write_forward_twiddles(to, 5, 5, 0.25), 5, f::T);
        } else {
            write_twisted_tables<f, Size + 1>(to);
        }
    }

    static cudaError_t load() {
        int device = 0;
        cudaError_t err = load_kernel(chip_spectra<Size>, bytes);
        err = err ? err : cudaGetDevice(&device);
        for (const auto kernel :
             {chip_convolve<Size, plain>, chip_convolve<Size, ADJACENT>, chip_convolve<Size, STEPPED>}) {
            err = err ? err : load_kernel(kernel, bytes);
            err = err ? err : set_carveout(device, kernel, config<Size>::resident, bytes);
        }
        for (const auto kernel : {chip_gradient<Size, ADJACENT>, chip_gradient<Size, STEPPED>}) {
            err = err ? err : load_kernel(kernel, bytes);
            err = err ? err : set_carveout(device, kernel, config<Size>::resident, bytes);
        }
        return err;
    }

    static cudaError_t convolve(const gck_chip_job *job, cudaStream_t stream) {
        const gck_rows &x = job->source, &h = job->spectra ? x : job->response, &y = job->target.rows;
        const bool floats = are_floats(x) && are_floats(h) && are_floats(y) && !job->gain && !job->target.accumulate;
        const auto kernel = floats                                      ? chip_convolve<Size, plain>
                            : x.step == 1 && h.step == 1 && y.step == 1 ? chip_convolve<Size, ADJACENT>
                                                                        : chip_convolve<Size, STEPPED>;
        return launch_dependent(kernel, dim3(job->blocks), f::T, bytes, stream, *job);
    }

    static cudaError_t spectra(const gck_rows *response, int64_t responses, int64_t taps, const float2 *twiddles,
                               float2 *to, cudaStream_t stream) {
        return launch_dependent(chip_spectra<Size>, dim3((unsigned)responses), f::T, bytes, stream, *response, taps,
                                twiddles, to);
    }

    static cudaError_t gradient(const gck_chip_gradient *job, cudaStream_t stream) {
        const bool adjacent = job->x.step == 1 && job->g.step == 1 && job->target.rows.step == 1;
        return launch_dependent(adjacent ? chip_gradient<Size, ADJACENT> : chip_gradient<Size, STEPPED>,
                                dim3(job->blocks), f::T, bytes, stream, *job);
    }
};

struct chip_row {
    gck_chip_sizes (*sizes)();
    void (*write_twiddles)(float2 *to);
    cudaError_t (*load)();
    cudaError_t (*convolve)(const gck_chip_job *job, cudaStream_t stream);
    cudaError_t (*spectra)(const gck_rows *response, int64_t responses, int64_t taps, const float2 *twiddles,
                           float2 *to, cudaStream_t stream);
    cudaError_t (*gradient)(const gck_chip_gradient *job, cudaStream_t stream);
};

template <int Size> constexpr chip_row row_of() {
    typedef launchers<Size> l;
    return chip_row{l::sizes, l::write_twiddles, l::load, l::convolve, l::spectra, l::gradient};
}

const chip_row rows[GCK_CHIP_SIZES] = {row_of<0>(), row_of<1>(), row_of<2>(), row_of<3>()};

} // namespace

gck_chip_sizes gck_chip_query(int size) {
    return rows[size].sizes();
}

void gck_chip_twiddles(int size, float2 *twiddles) {
    rows[size].write_twiddles(twiddles);
}

cudaError_t gck_chip_load(int shared_bytes_max) {
    cudaError_t err = load_kernel(sum_parts, 0);
    for (const chip_row &r : rows)
        if (!err && r.sizes().shared_bytes <= shared_bytes_max)
            err = r.load();
    return err;
}

cudaError_t gck_chip_convolve(int size, const gck_chip_job *job, cudaStream_t stream) {
    return rows[size].convolve(job, stream);
}

cudaError_t gck_chip_spectra(int size, const gck_rows *response, int64_t responses, int64_t taps,
                             const float2 *twiddles, float2 *spectra, cudaStream_t stream) {
    return rows[size].spectra(response, responses, taps, twiddles, spectra, stream);
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
