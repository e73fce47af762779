/*
 * Both gradients of rows on device memory, by the signal and by the responses, with a whole transform on the chip.
 * Contract: job.h; the transforms: chip.cuh.
 *
 *      for each segment of x and g:    load and transform both, sum += conj(X) G,
 *                                      conj(H) G, inverse, store as the gradient by x
 *      once for a response:            inverse of the sum, store
 *
 * This takes three transforms of a segment and reads g once; two jobs take four and read it twice. A spectrum that
 * crosses the second-level cache costs half as much as a transform, therefore the sum stays in registers and X in
 * registers or in shared memory, at the price of fewer resident blocks; only H comes from the cache. 16384 points leave
 * no registers for the sum, which stays in the cache. If the convolution has written X, two transforms remain: X is
 * copied while g is transformed.
 */
#include "chip.cuh"

#include "kernels/engine/async_copy.cuh"

namespace {

/* Where the kernel of a size keeps what it needs between two transforms, and its blocks per multiprocessor to compile
 * for: 128 threads with three blocks have 168 registers each, 256 threads of a multiprocessor 255. */
template <int Size> struct places {
    typedef typename config<Size>::transform f;
    static const int threads = config<Size>::threads;
    static const bool x_held = f::P == 16; /* X is in registers */
    /* Points of the sum in registers. A transform in a block leaves room for all but eight, which are in shared memory;
     * the largest one for none. */
    static const int sum_held = Size == GCK_CHIP_SIZES - 1 ? 0 : f::T > 32 ? f::P - 8 : f::P;
    static const int sum_stashed = sum_held ? (f::P - sum_held) / 2 : 0; /* pairs of points */
    /* Else pairs of points of X in shared memory, all of them or as many as a block of a Hopper GPU has room for; the
     * others are in `scratch`. */
    static const int room = (232448 - config<Size>::bytes) / (threads * (int)sizeof(float4)) - 1;
    static const int stashed = x_held ? 0 : room < f::P / 2 ? room : f::P / 2;
    static const int resident = x_held ? 384 / threads : threads < 256 ? 256 / threads : 1;
    static const int bytes = config<Size>::bytes + (stashed + sum_stashed + 1) * threads * (int)sizeof(float4);
};

/* Returns the number of the thread in its transform. */
template <int Size> __device__ __forceinline__ int hidden_thread() {
    return hidden(config<Size>::groups > 1 ? threadIdx.x % config<Size>::transform::T : threadIdx.x);
}

/* What a thread keeps in shared memory of its item: how many segments it has, and the most that an item of the warp
 * has. Behind the last item there are numbers that only wait. */
struct __align__(16) item {
    int number, response, end, last;
};

__device__ __forceinline__ item item_of(volatile item *from) {
    return {from->number, from->response, from->end, from->last};
}

/* Returns how many segments of part `part` are of rows that exist: these come first. */
__device__ __forceinline__ int segments_of_part(const gck_chip_gradient &a, int response, int part) {
    const gck_sharing &s = a.sharing;
    const int cycle = s.group * s.responses;
    const int rows = s.rows / cycle * s.group + within(s.rows % cycle - response * s.group, s.group);
    int begin = 0, end = (max(0, rows * a.segments - part) + a.splits - 1) / a.splits;
#pragma unroll 1
    while (a.x.lengths && begin < end) {
        const int middle = (begin + end) / 2;
        const int row = sharing_row(s, response, (part + middle * a.splits) / a.segments);
        if (is_missing(a.x, row) && is_missing(a.signal.rows, row))
            end = middle;
        else
            begin = middle + 1;
    }
    return end;
}

/* Returns the largest number of a warp. */
__device__ __forceinline__ int largest_of_warp(int x) {
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2)
        x = max(x, __shfl_xor_sync(~0u, x, lanes));
    return x;
}

/* A segment of a row. */
struct segment {
    int row;
    bool exists;
    int64_t n; /* its first frame */
};

/* Returns segment `step` of an item; there is none before 0. */
__device__ __forceinline__ segment segment_of(const gck_chip_gradient &a, const item &i, int items, int step) {
    const int part = min(i.number, items - 1) - i.response * a.splits, pair = part + hidden(step) * a.splits;
    const int row = min(sharing_row(a.sharing, i.response, pair / a.segments), a.sharing.rows - 1);
    return {row, (unsigned)step < (unsigned)i.end, (int64_t)(pair % a.segments) * a.hop};
}

/* Returns whether a segment has neither frames of x nor of the gradient by x. */
__device__ __forceinline__ bool is_empty(const gck_chip_gradient &a, const segment &at) {
    return at.n >= row_frames(a.x, at.row) && at.n >= frames_to_write(a.signal, at.row).end;
}

/* Adds conj(X) v to the sum. x or stash and `rest`: X; sum, sums or `total`: the sum. Loads come before stores: a store
 * would hold up the loads behind it. */
template <int Size>
__device__ __forceinline__ void add_product(const float2 *v, const float2 *x, const float4 *stash, const float2 *rest,
                                            float2 *sum, float4 *sums, float2 *total) {
    typedef typename config<Size>::transform f;
    typedef places<Size> keeps;
    constexpr int PAIRS = keeps::sum_held ? 4 : 2, THREADS = config<Size>::threads;
#pragma unroll
    for (int k = 0; k < f::P; k += 2 * PAIRS) {
        float4 w[PAIRS], to[PAIRS];
#pragma unroll
        for (int i = 0; i < PAIRS; i++) {
            const int j = k + 2 * i;
            if constexpr (keeps::x_held)
                w[i] = make_float4(x[j].x, x[j].y, x[j + 1].x, x[j + 1].y);
            else if (j < 2 * keeps::stashed)
                w[i] = stash[j / 2 * THREADS];
            else
                w[i] = *(const float4 *)(rest + j * f::T);
            if (j < keeps::sum_held)
                to[i] = make_float4(sum[j].x, sum[j].y, sum[j + 1].x, sum[j + 1].y);
            else if (keeps::sum_held)
                to[i] = sums[(j - keeps::sum_held) / 2 * THREADS];
            else
                to[i] = *(const float4 *)(total + j * f::T);
        }
#pragma unroll
        for (int i = 0; i < PAIRS; i++) {
            const int j = k + 2 * i;
            const float2 a0 = mul_add(v[j], make_float2(w[i].x, -w[i].y), make_float2(to[i].x, to[i].y));
            const float2 a1 = mul_add(v[j + 1], make_float2(w[i].z, -w[i].w), make_float2(to[i].z, to[i].w));
            const float4 added = make_float4(a0.x, a0.y, a1.x, a1.y);
            if (j < keeps::sum_held) {
                sum[j] = a0;
                sum[j + 1] = a1;
            } else if (keeps::sum_held)
                sums[(j - keeps::sum_held) / 2 * THREADS] = added;
            else
                *(float4 *)(total + j * f::T) = added;
        }
    }
}

/* Begins to copy a transform of x to shared memory, and the part that has no room there to the second-level cache. */
template <int Size> __device__ __forceinline__ void begin_transform(float4 *stash, const float2 *from) {
    typedef typename config<Size>::transform f;
    constexpr int STASHED = places<Size>::stashed;
#pragma unroll
    for (int i = 0; i < f::P / 2; i++)
        if (i < STASHED)
            copy_16(stash + i * config<Size>::threads, from + 2 * i * f::T, 16);
        else
            asm volatile("prefetch.global.L2 [%0];" ::"l"(from + 2 * i * f::T));
}

/* Loads the sum. */
template <int Size>
__device__ __forceinline__ void load_sum(float2 *v, const float2 *sum, const float4 *sums, const float2 *total) {
    typedef typename config<Size>::transform f;
    constexpr int HELD = places<Size>::sum_held;
#pragma unroll
    for (int j = 0; j < f::P; j += 2) {
        const float4 w = j < HELD ? make_float4(sum[j].x, sum[j].y, sum[j + 1].x, sum[j + 1].y)
                         : HELD   ? sums[(j - HELD) / 2 * config<Size>::threads]
                                  : *(const float4 *)(total + j * f::T);
        v[j] = make_float2(w.x, w.y);
        v[j + 1] = make_float2(w.z, w.w);
    }
}

/* An item is a response and one of `splits` parts of the segments of all its rows: part p has the segments p, p +
 * splits, ..., so that all parts have as many rows that exist. The target has splits x responses rows: with several
 * splits it is the partial sums. */
template <int Size, known_rows Known>
__global__ void __launch_bounds__(config<Size>::threads, places<Size>::resident)
    chip_both(const __grid_constant__ gck_chip_gradient a, int items) {
    typedef config<Size> c;
    typedef typename c::transform f;
    typedef places<Size> keeps;
    extern __shared__ __align__(16) float2 shared[];
    float2 *s = shared + group_of_thread<Size>() * c::stride, v[f::P], sum[keeps::sum_held ? keeps::sum_held : 1];
    float2 x[keeps::x_held ? f::P : 1];
    float4 *stash = (float4 *)(shared + c::groups * c::stride) + threadIdx.x;
    float4 *sums = stash + keeps::stashed * c::threads;
    volatile item *own = (volatile item *)(sums + keeps::sum_stashed * c::threads);
    /* The scratch of the thread: 0 for H, 1 for X, 2 for the sum. */
    const auto scratch = [&](int place) {
        const int64_t transform = (int64_t)hidden(blockIdx.x) * c::groups + group_of_thread<Size>();
        return a.scratch + (3 * transform + place) * f::N + 2 * hidden_thread<Size>();
    };
    /* Returns the X that the convolution has written for the row of a segment. */
    const auto left = [&](int step) {
        return a.transforms + (int64_t)segment_of(a, item_of(own), items, step).row * f::N + 2 * hidden_thread<Size>();
    };
    pdl_trigger();
    pdl_wait();
    for (int number = blockIdx.x * c::groups + group_of_thread<Size>(); number - group_of_thread<Size>() < items;
         number = own->number + gridDim.x * c::groups) {
        const int present = min(number, items - 1), response = present / a.splits;
        const int end = segments_of_part(a, response, present % a.splits);
        own->number = number;
        own->response = response;
        own->end = end;
        own->last = c::groups > 1 ? largest_of_warp(end) : end;
        if constexpr (keeps::sum_held > 0) {
            clear<keeps::sum_held>(sum);
#pragma unroll
            for (int i = 0; i < keeps::sum_stashed; i++)
                sums[i * c::threads] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        } else {
            clear<f::P>(v);
            keep<f::P, f::T>(v, scratch(2));
        }
        /* Turns of one copy of each transform: the response, if it is fresh; the segments; the sum. */
        bool fresh = !a.spectra;
#pragma unroll 1
        for (int step = -fresh; step <= own->last; step++) {
            const bool ends = step == own->last, held = c::keeps && a.transforms && !fresh && !ends;
            if (c::groups == 1 && a.x.lengths && !fresh && !ends &&
                is_empty(a, segment_of(a, item_of(own), items, step)))
                continue;
            if (held)
                begin_transform<Size>(stash, left(step));
#pragma unroll 1
            for (int second = fresh || held; second < 2 && !ends; second++) { /* x, then g */
                const int t = hidden_thread<Size>();
                const segment at = segment_of(a, item_of(own), items, step);
                const gck_rows from = fresh    ? only_row(a.response, own->response)
                                      : second ? only_row(a.g, at.row)
                                               : only_row(a.x, at.row);
                const int64_t frame = fresh ? 0 : at.n + (second ? a.shift : 0);
                const int window = fresh ? (int)a.taps : second ? 2 * f::N : a.hop;
                if (!(fresh || at.exists) || !load_segment<f::P, f::T, Known>(v, from, {0, frame, window}, t))
                    clear<f::P>(v);
                if (fresh)
                    scale<f::P>(v, 1.0f / f::N);
                transform_barrier<f::T>();
                f::forward(v, s, t, a.twiddles);
                if (second)
                    continue;
#pragma unroll
                for (int j = 0; j < f::P; j += 2) {
                    const float4 w = make_float4(v[j].x, v[j].y, v[j + 1].x, v[j + 1].y);
                    if constexpr (keeps::x_held) {
                        x[j] = v[j];
                        x[j + 1] = v[j + 1];
                    } else if (j < 2 * keeps::stashed)
                        stash[j / 2 * c::threads] = w;
                    else
                        *(float4 *)(scratch(1) + j * f::T) = w;
                }
            }
            if (fresh) {
                keep<f::P, f::T>(v, scratch(0));
                fresh = false;
                continue;
            }
            if (held)
                wait_for_copies();
            if (ends) {
                load_sum<Size>(v, sum, sums, scratch(2));
                scale<f::P>(v, 1.0f / f::N);
            } else
                add_product<Size>(v, x, stash, held ? left(step) : scratch(1), sum, sums, scratch(2));
            transform_barrier<f::T>(); /* H is not loaded earlier: no registers are left for it */
            int t = hidden_thread<Size>();
            if (!ends)
                multiply<f::P, f::T>(v, a.spectra ? a.spectra + (int64_t)own->response * f::N + 2 * t : scratch(0),
                                     -1.0f);
            f::inverse(v, s, t, a.twiddles);
            t = hidden_thread<Size>();
            const segment at = segment_of(a, item_of(own), items, step);
            if (!ends)
                store_plain_segment<f::P, f::T, Known>(v, a.signal, {at.row, at.n, 0, at.exists ? a.hop : 0}, t);
        }
        const int mine = own->number, part = min(mine, items - 1) - own->response * a.splits;
        const row_segment sum = {part * a.sharing.responses + own->response, 0, 0, mine < items ? (int)a.taps : 0};
        store_segment<f::P, f::T, false, ADJACENT>(v, (float *)s, a.target, sum, 1.0f, hidden_thread<Size>());
    }
}

/* The launchers of one size. */
template <int Size> struct launchers {
    typedef typename config<Size>::transform f;
    typedef void (*kernel)(gck_chip_gradient, int);
    static const int bytes = places<Size>::bytes, threads = config<Size>::threads;

    static gck_chip_sizes sizes() {
        return gck_chip_sizes{
            f::N, f::twiddles, bytes, threads, places<Size>::resident, config<Size>::groups, config<Size>::keeps};
    }

    static cudaError_t load() {
        int device = 0;
        cudaError_t err = cudaGetDevice(&device);
        for (kernel k : {chip_both<Size, FLOATS>, chip_both<Size, HALVES>, chip_both<Size, BFLOATS>}) {
            err = err ? err : load_kernel(k, bytes);
            err = err ? err : set_carveout(device, k, places<Size>::resident, bytes);
        }
        return err;
    }

    static cudaError_t run(const gck_chip_gradient *job, cudaStream_t stream) {
        const int sample = job->g.sample;
        const kernel k = sample == GCK_F32   ? chip_both<Size, FLOATS>
                         : sample == GCK_F16 ? chip_both<Size, HALVES>
                                             : chip_both<Size, BFLOATS>;
        return launch_dependent(k, dim3(job->blocks), threads, bytes, stream, *job,
                                job->sharing.responses * job->splits);
    }
};

struct both_row {
    gck_chip_sizes (*sizes)();
    cudaError_t (*load)();
    cudaError_t (*run)(const gck_chip_gradient *job, cudaStream_t stream);
};

template <int Size> constexpr both_row row_of() {
    return both_row{launchers<Size>::sizes, launchers<Size>::load, launchers<Size>::run};
}

const both_row rows[GCK_CHIP_SIZES] = {row_of<0>(), row_of<1>(), row_of<2>(), row_of<3>(),
                                       row_of<4>(), row_of<5>(), row_of<6>(), row_of<7>()};

} // namespace

gck_chip_sizes gck_chip_query_both(int size) {
    return rows[size].sizes();
}

cudaError_t gck_chip_load_both(int shared_bytes_max) {
    cudaError_t err = cudaSuccess;
    for (const both_row &r : rows)
        if (!err && r.sizes().shared_bytes <= shared_bytes_max)
            err = r.load();
    return err;
}

cudaError_t gck_chip_both(int size, const gck_chip_gradient *job, cudaStream_t stream) {
    if (job->splits == 1)
        return rows[size].run(job, stream);
    gck_chip_gradient parts = *job;
    parts.target = {{job->partial, job->taps, job->taps, 1, NULL, NULL, GCK_F32}, 0};
    const cudaError_t err = rows[size].run(&parts, stream);
    return err ? err
               : gck_sum_parts(&job->target, job->partial, job->splits, job->sharing.responses, job->taps, stream);
}
