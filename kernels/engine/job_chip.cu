/*
 * Jobs on device memory with a whole transform on the chip: convolution and correlation of rows with a response each,
 * and the gradient by the responses. Contracts: job.h.
 *
 *      convolve    for each segment of a row:    load, forward, multiply by the spectrum, inverse, store
 *      gradient    for each segment of x and g:  load and transform both, sum += conj(X) G;  once: inverse, store
 *
 * N complex points represent 2 N real ones (right_angle.cuh): 128 to 512 points in a part of a warp, which computes
 * several rows, 1024 in a warp (fft_fma.cuh), 2048 to 16384 in a block (fft_twisted.cuh). The blocks are persistent:
 * block b takes the items b, b + blocks, ... Rows that share a response follow one another. A response that few rows
 * use is transformed by each block that needs it and kept in `scratch`, in the order in which the threads hold it, so
 * that a thread reads only what it wrote; it stays in the second-level cache.
 *
 * Memory: samples are read 2 N / hop times (mostly from the cache) and written once.
 */
#include "job_segments.cuh"
#include "twiddles.h"

#include "kernels/device/fft_twisted.cuh"

#include <type_traits>

namespace {

/* The size of 16384 points, which has a kernel for long jobs of floats. */
const int LARGEST = GCK_CHIP_SIZES - 1;

/* 2^(A + B) points in a warp or a part of one, with the interface of twisted_fft; `inverse` removes the twist. */
template <int A, int B> struct warp_fft : fft_fma<A, B, true> {
    typedef fft_fma<A, B, true> base;
    static const int twiddles = base::forward_twiddles + base::inverse_twiddles;

    static __device__ __forceinline__ void inverse(float2 *v, float2 *s, int t, const float2 *__restrict__ table) {
        base::inverse(v, s, t, table + base::forward_twiddles);
        untwist<base::P>(v, untwist_angle<base::N>(t));
    }

    static void write_twiddles(float2 *to) {
        write_inverse_twiddles(write_forward_twiddles(to, A, B, 0.25), A, base::T);
    }
};

/* A transform in a block, with the interface of warp_fft. */
template <int LEVELS> struct block_fft : twisted_fft<LEVELS> {
    typedef twisted_fft<LEVELS> base;

    static __device__ __forceinline__ void inverse(float2 *v, float2 *s, int t, const float2 *__restrict__ table) {
        base::inverse(v, s, t, table);
        untwist_rows<base::P>(v);
    }

    static void write_twiddles(float2 *to) {
        write_twisted_tables<base, LEVELS>(to);
    }
};

/* The transforms by size. */
template <int Size> struct transform_of { typedef block_fft<Size - 3> type; };
template <> struct transform_of<0> { typedef warp_fft<4, 3> type; };
template <> struct transform_of<1> { typedef warp_fft<4, 4> type; };
template <> struct transform_of<2> { typedef warp_fft<5, 4> type; };
template <> struct transform_of<3> { typedef warp_fft<5, 5> type; };

/* A block has one transform, or 128 threads in groups with a transform each. Its blocks per multiprocessor to compile
 * for: 128 registers for each thread; in groups 168, of 16 points 80 or 96. */
template <int Size> struct config {
    typedef typename transform_of<Size>::type transform;
    static const int groups = transform::T < 32 ? 128 / transform::T : 1, threads = groups * transform::T;
    static const int resident = (groups == 1          ? 512
                                 : transform::P == 32 ? 384
                                 : transform::T == 8  ? 640
                                                      : 768) /
                                threads;
    /* float2 of a group; those of half a warp begin in different banks */
    static const int stride = transform::shared + (transform::T == 8 ? 8 : 0);
    static const int bytes = groups * stride * (int)sizeof(float2);
};

/* The blocks per multiprocessor to compile for; frames with a step take more registers. */
template <int Size, known_rows Known> __host__ __device__ constexpr int resident_of() {
    return config<Size>::resident / (Known == STEPPED && Size < LARGEST ? 2 : 1);
}

/* Whether the kernels of a size hold the addresses of a thread in registers over all segments. Elsewhere the compiler
 * runs out of them then and spills. */
template <int Size> __host__ __device__ constexpr bool holds_addresses() {
#if defined(__CUDA_ARCH__)
    return Size > 2 && (__CUDA_ARCH__ == 900 || (__CUDA_ARCH__ > 900 && Size > 3));
#else
    return true;
#endif
}

/* Returns the number of the thread in its transform; without `holds_addresses` it hides the value from the compiler,
 * which then computes what follows from it again in each segment. */
template <int Size> __device__ __forceinline__ int thread_of_segment() {
    int t = config<Size>::groups > 1 ? threadIdx.x % config<Size>::transform::T : threadIdx.x;
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
 * place; sign: -1 for its conjugate. used: whether anyone reads the result; the transforms of a warp wait for each
 * other all the same. */
template <typename F, known_rows Known>
__device__ __forceinline__ void convolve_segment(float2 *v, float2 *s, const gck_rows &source, int64_t row, int64_t at,
                                                 const float2 *h, float sign, const float2 *__restrict__ twiddles,
                                                 int t, bool used) {
    const bool loaded = used && load_segment<F::P, F::T, Known>(v, source, row, at, 2 * F::N, t);
    if (!loaded)
        clear<F::P>(v);
    if (loaded || F::T < 32) {
        transform_barrier<F::T>();
        F::forward(v, s, t, twiddles);
        multiply<F::P, F::T>(v, h, sign);
        transform_barrier<F::T>();
        F::inverse(v, s, t, twiddles);
    }
}

/* What a group of threads computes: part `part` of a row with its response. */
struct chip_item {
    int row, response, part;
    bool exists;
};

/* Returns item `number` of `items`; rows: of each response, those that do not exist included. The rows of a response
 * follow one another, and the parts of a row. */
__device__ __forceinline__ chip_item item_of(const gck_sharing &s, int number, int items, int rows, int splits) {
    const int clamped = min(number, items - 1), place = clamped / splits;
    const int response = place / rows, row = sharing_row(s, response, place % rows);
    return {min(row, s.rows - 1), response, clamped % splits, number < items && row < s.rows};
}

/* An item is a row and one of `splits` ranges of its segments. FLOATS, HALVES, BFLOATS: also, the target is overwritten
 * and there is no gain. This is the usual job, and a kernel that can do no more is faster. */
template <int Size, known_rows Known>
__global__ void __launch_bounds__(config<Size>::threads, resident_of<Size, Known>())
    chip_convolve(const __grid_constant__ gck_chip_job a, int items, int rows) {
    typedef config<Size> c;
    typedef typename c::transform f;
    extern __shared__ __align__(16) float2 shared[];
    const int group = c::groups > 1 ? threadIdx.x / f::T : 0;
    const int held = holds_addresses<Size>() ? thread_of_segment<Size>() : 0; /* the part of t in the addresses */
    float2 *own = a.scratch + ((int64_t)blockIdx.x * c::groups + group) * f::N + 2 * held, v[f::P];
    float2 *s = shared + group * c::stride;
    const float sign = a.reflect ? -1.0f : 1.0f;
    pdl_trigger();
    pdl_wait();
    for (int first = blockIdx.x * c::groups; first < items; first += gridDim.x * c::groups) {
        const chip_item item = item_of(a.sharing, first + group, items, rows, a.splits);
        if (c::groups == 1 && !item.exists)
            continue;
        const float2 *h = a.spectra ? a.spectra + (int64_t)item.response * f::N + 2 * held : own;
        if (!a.spectra) {
            const int t = thread_of_segment<Size>();
            transform_response<f, Known>(v, s, a.response, item.response, a.taps, a.twiddles, t);
            keep<f::P, f::T>(v, own + 2 * (t - held));
        }
        const int begin = part_begin(item.part, a.segments, a.splits);
        const int end = part_begin(item.part + 1, a.segments, a.splits);
        const int last = c::groups > 1 ? begin + (a.segments + a.splits - 1) / a.splits : end;
#pragma unroll 1
        for (int segment = begin; segment < last; segment++) {
            const int t = thread_of_segment<Size>();
            const int64_t n = (int64_t)segment * a.hop;
            const bool used = item.exists && segment < end && n < frames_to_write(a.target, item.row).end;
            if (c::groups == 1 && !used)
                break;
            convolve_segment<f, Known>(v, s, a.source, item.row, n + a.shift, h + 2 * (t - held), sign, a.twiddles, t,
                                       used);
            const int kept = used ? a.hop : 0;
            if (Known == FLOATS || Known == HALVES || Known == BFLOATS)
                store_plain_segment<f::P, f::T, Known>(v, a.target, item.row, n, a.lo, kept, t);
            else
                store_segment<f::P, f::T, Size != 3, Known>(v, a.target, item.row, n, a.lo, kept,
                                                            a.gain ? a.gain[item.row] : 1.0f, t);
        }
    }
}

/* A group of threads transforms a response. */
template <int Size>
__global__ void __launch_bounds__(config<Size>::threads, config<Size>::resident)
    chip_spectra(const __grid_constant__ gck_rows response, int64_t responses, int64_t taps,
                 const float2 *__restrict__ twiddles, float2 *spectra) {
    typedef config<Size> c;
    typedef typename c::transform f;
    extern __shared__ __align__(16) float2 shared[];
    const int group = c::groups > 1 ? threadIdx.x / f::T : 0, t = thread_of_segment<Size>();
    const int64_t number = (int64_t)blockIdx.x * c::groups + group, row = min(number, responses - 1);
    float2 v[f::P];
    pdl_trigger();
    pdl_wait();
    transform_response<f, UNKNOWN>(v, shared + group * c::stride, response, row, taps, twiddles, t);
    if (number < responses)
        keep<f::P, f::T>(v, spectra + row * f::N + 2 * t);
}

/* An item is a response and one of `splits` ranges of the `pairs` of segments of all its rows. The target has splits x
 * responses rows: with several splits it is the partial sums. */
template <int Size, known_rows Known>
__global__ void __launch_bounds__(config<Size>::threads, resident_of<Size, Known>())
    chip_gradient(const __grid_constant__ gck_chip_gradient a, int items, int pairs) {
    typedef config<Size> c;
    typedef typename c::transform f;
    extern __shared__ __align__(16) float2 shared[];
    const int group = c::groups > 1 ? threadIdx.x / f::T : 0;
    const int held = holds_addresses<Size>() ? thread_of_segment<Size>() : 0; /* the part of t in the addresses */
    float2 *kept = a.scratch + ((int64_t)blockIdx.x * c::groups + group) * 2 * f::N + 2 * held, *sum = kept + f::N;
    float2 *s = shared + group * c::stride, v[f::P];
    pdl_trigger();
    pdl_wait();
    for (int number = blockIdx.x * c::groups; number < items; number += gridDim.x * c::groups) {
        const int item = min(number + group, items - 1), response = item / a.splits, part = item % a.splits;
        const int begin = part_begin(part, pairs, a.splits), end = part_begin(part + 1, pairs, a.splits);
        const int last = 2 * (c::groups > 1 ? begin + (pairs + a.splits - 1) / a.splits : end);
        bool first = true;
#pragma unroll 1
        for (int step = 2 * begin; step < last; step++) { /* two for each segment: x, then g */
            const int t = thread_of_segment<Size>();
            const bool second = step & 1;
            const int row = sharing_row(a.sharing, response, step / 2 / a.segments);
            const int64_t n = (int64_t)(step / 2 % a.segments) * a.hop + (second ? a.shift : 0);
            if (step >= 2 * end || row >= a.sharing.rows ||
                !load_segment<f::P, f::T, Known>(v, second ? a.g : a.x, row, n, second ? 2 * f::N : a.hop, t)) {
                if (c::groups == 1) {
                    step |= 1; /* neither of the two has anything to add */
                    continue;
                }
                clear<f::P>(v);
            }
            if (!second)
                scale<f::P>(v, (a.gain && row < a.sharing.rows ? a.gain[row] : 1.0f) * (1.0f / f::N));
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
        if (!first) {
#pragma unroll
            for (int j = 0; j < f::P; j += 2) {
                const float4 w = *(const float4 *)(sum + j * f::T + 2 * (t - held));
                v[j] = make_float2(w.x, w.y);
                v[j + 1] = make_float2(w.z, w.w);
            }
            transform_barrier<f::T>();
            f::inverse(v, s, t, a.twiddles);
        }
        store_segment<f::P, f::T, false, Known>(v, a.target, part * a.sharing.responses + response, 0, 0,
                                                number + group < items ? (int)a.taps : 0, 1.0f, t);
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

bool are_adjacent(const gck_chip_job *job) {
    return job->source.step == 1 && (job->spectra || job->response.step == 1) && job->target.rows.step == 1;
}

/* Whether every sample that a job reads and writes has the type of the target. The samples of prepared responses are
 * not read. */
bool have_one_type(const gck_chip_job *job) {
    const int type = job->target.rows.sample;
    return job->source.sample == type && (job->spectra || job->response.sample == type);
}

/* The launchers of one size. */
template <int Size> struct launchers {
    typedef typename config<Size>::transform f;
    static const int bytes = config<Size>::bytes, threads = config<Size>::threads;
    typedef void (*convolver)(gck_chip_job, int, int);

    /* The sizes of 2048 and 4096 points have no kernel for floats: it takes 3 % longer there, elsewhere 1 to 14 % less.
     */
    static const known_rows plain = Size == 4 || Size == 5 ? ADJACENT : FLOATS;

    /* Returns the kernel for a job, the one that knows most of it. */
    static convolver convolver_of(const gck_chip_job *job) {
        if (!are_adjacent(job))
            return chip_convolve<Size, STEPPED>;
        if (!have_one_type(job) || job->gain || job->target.accumulate)
            return chip_convolve<Size, ADJACENT>;
        return job->target.rows.sample == GCK_F32   ? chip_convolve<Size, plain>
               : job->target.rows.sample == GCK_F16 ? chip_convolve<Size, HALVES>
                                                    : chip_convolve<Size, BFLOATS>;
    }

    static gck_chip_sizes sizes() {
        return gck_chip_sizes{f::N, f::twiddles, bytes, threads, config<Size>::resident, config<Size>::groups};
    }

    static cudaError_t load() {
        int device = 0;
        cudaError_t err = load_kernel(chip_spectra<Size>, bytes);
        err = err ? err : cudaGetDevice(&device);
        for (const auto kernel : {chip_convolve<Size, plain>, chip_convolve<Size, HALVES>, chip_convolve<Size, BFLOATS>,
                                  chip_convolve<Size, ADJACENT>, chip_convolve<Size, STEPPED>}) {
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
        const int rows = sharing_rows(job->sharing);
        return launch_dependent(convolver_of(job), dim3(job->blocks), threads, bytes, stream, *job,
                                job->sharing.responses * rows * job->splits, rows);
    }

    static cudaError_t spectra(const gck_rows *response, int64_t responses, int64_t taps, const float2 *twiddles,
                               float2 *to, cudaStream_t stream) {
        const int64_t groups = config<Size>::groups, blocks = (responses + groups - 1) / groups;
        return launch_dependent(chip_spectra<Size>, dim3((unsigned)blocks), threads, bytes, stream, *response,
                                responses, taps, twiddles, to);
    }

    static cudaError_t gradient(const gck_chip_gradient *job, cudaStream_t stream) {
        const bool adjacent = job->x.step == 1 && job->g.step == 1 && job->target.rows.step == 1;
        return launch_dependent(adjacent ? chip_gradient<Size, ADJACENT> : chip_gradient<Size, STEPPED>,
                                dim3(job->blocks), threads, bytes, stream, *job, job->sharing.responses * job->splits,
                                sharing_rows(job->sharing) * job->segments);
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
    return chip_row{l::sizes, l::f::write_twiddles, l::load, l::convolve, l::spectra, l::gradient};
}

const chip_row rows[GCK_CHIP_SIZES] = {row_of<0>(), row_of<1>(), row_of<2>(), row_of<3>(),
                                       row_of<4>(), row_of<5>(), row_of<6>(), row_of<7>()};

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
