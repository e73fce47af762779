/*
 * The transforms of dense matrices (dense.h): each block of each input once, each block of each output once, and the
 * responses at set-up. A transform is on the chip: N complex points for 2 N real samples (right_angle.cuh).
 *
 * Memory: thread t holds bins 2 t and 2 t + 1 of 2 T, so that two adjacent threads write the 32 bytes of a group; the
 * blocks of threads of adjacent columns fill a line while it is in the second-level cache.
 *
 * 16384 points pass real and imaginary parts one after the other (dense_exchange.cuh), in the 64 KB that every device
 * has. Persistent blocks that copied their next samples to shared memory meanwhile were 3 to 5 % faster
 * (docs/experiments/dense.md).
 */
#include "dense.cuh"
#include "kernels/engine/dense_exchange.cuh"
#include "kernels/engine/overlap_save.cuh"

#include "kernels/device/fft_twisted.cuh"

#include <type_traits>

namespace {

/* ---- Transforms by size: 1024, 4096, 8192 and 16384 complex points ----------------------------------------------- */

/* The transform of size 0 .. 3, and the blocks per multiprocessor to compile for: 128 registers for each thread. */
template <int Size> struct config {
    typedef std::conditional_t<Size == 0, full_fft<5, 5>,
                               std::conditional_t<Size == 3, split_fft, twisted_fft<Size == 1 ? 2 : 3>>>
        transform;
    static const int resident = Size == 0 ? 16 : 512 / transform::T;
    static const int bytes = transform::shared * (int)sizeof(float2);
};

/* ---- Kernels ----------------------------------------------------------------------------------------------------- */

/* Returns the chunk of 16 bytes of register 0 of thread t in one column of a matrix of `columns` columns in all rows;
 * register j is j T / 4 groups further. */
__device__ __forceinline__ int64_t first_chunk(int t, int64_t columns, int64_t column) {
    return (t / 2 * columns + column) * 2 + t % 2;
}

/* Raises *peak to the bits of the largest real or imaginary part of the numbers of all threads. */
template <int P> __device__ __forceinline__ void raise_peak(unsigned *peak, const float2 *v) {
    float most = 0.0f;
#pragma unroll
    for (int j = 0; j < P; j++)
        most = fmaxf(most, fmaxf(fabsf(v[j].x), fabsf(v[j].y)));
    for (int d = 16; d > 0; d /= 2)
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, d));
    if (threadIdx.x % 32 == 0)
        atomicMax(peak, __float_as_uint(most));
}

/* block.x: column; block.y + 65535 block.z: input. */
template <int Size>
__global__ void __launch_bounds__(config<Size>::transform::T, config<Size>::resident)
    dense_forward(const __grid_constant__ gck_dense a, const float *in, int64_t in_stride) {
    typedef typename config<Size>::transform f;
    extern __shared__ __align__(16) float2 shared[];
    const int t = threadIdx.x, input = blockIdx.y + 65535 * blockIdx.z;
    pdl_trigger();
    if (input >= a.inputs)
        return;
    const int64_t columns = (int64_t)a.inputs * gridDim.x;
    const int64_t first = ((int64_t)blockIdx.x - a.partitions + 1) * a.hop - (2 * f::N - a.hop);
    const float *x = in + a.input_channel[input] * in_stride + first;
    float2 v[f::P];
    pdl_wait();
    load_fresh_right_angle<f::P, f::T>(v, x, t);
    f::forward(v, shared, t, a.twiddles);
    if (a.tensor_cores)
        raise_peak<f::P>(a.peaks + blockIdx.x, v);
    float4 *to = (float4 *)a.spectra + first_chunk(t, columns, (int64_t)input * gridDim.x + blockIdx.x);
#pragma unroll
    for (int j = 0; j < f::P; j += 2)
        to[j * (f::T / 4) * 2 * columns] = make_float4(v[j].x, v[j].y, v[j + 1].x, v[j + 1].y);
}

/* block.x: block of the signal; block.y + 65535 block.z: output. */
template <int Size>
__global__ void __launch_bounds__(config<Size>::transform::T, config<Size>::resident)
    dense_inverse(const __grid_constant__ gck_dense a, float *out, int64_t out_stride) {
    typedef typename config<Size>::transform f;
    extern __shared__ __align__(16) float2 shared[];
    const int t = threadIdx.x, output = blockIdx.y + 65535 * blockIdx.z, overlap = 2 * f::N - (int)a.hop;
    pdl_trigger();
    if (output >= a.outputs)
        return;
    const int64_t columns = (int64_t)a.outputs * gridDim.x;
    const float4 *from = (const float4 *)a.sums + first_chunk(t, columns, (int64_t)output * gridDim.x + blockIdx.x);
    float *y = out + a.output_channel[output] * out_stride + (int64_t)blockIdx.x * a.hop - overlap;
    float2 v[f::P];
    pdl_wait();
#pragma unroll
    for (int j = 0; j < f::P; j += 2) {
        const float4 w = from[j * (f::T / 4) * 2 * columns];
        v[j] = make_float2(w.x, w.y);
        v[j + 1] = make_float2(w.z, w.w);
    }
    f::inverse(v, shared, t, a.twiddles);
    if constexpr (Size == 0 || Size == 3)
        untwist<f::P>(v, untwist_angle<f::N>(t));
    else
        untwist_rows<f::P>(v);
    store_right_angle<f::P, f::T>(v, y, overlap, t);
}

/* Loads a response of `count` taps, zeros behind them, as load_right_angle loads samples. */
template <int P, int T>
__device__ __forceinline__ void load_response(float2 *v, const float *taps, int64_t count, float scale, int t) {
#pragma unroll
    for (int j = 0; j < P; j++) {
        const int64_t k = t + j * T, m = k + P * T;
        v[j] = make_float2(k < count ? taps[k] * scale : 0.0f, m < count ? taps[m] * scale : 0.0f);
    }
}

/* block.x: partition of a route. The spectra are scaled for the inverse. Measure: finds the peaks of the outputs
 * instead. */
template <int Size, bool Measure>
__global__ void __launch_bounds__(config<Size>::transform::T, config<Size>::resident)
    dense_response(const __grid_constant__ gck_dense a, const gck_dense_part *parts, const gck_dense_route *routes,
                   const float *taps, int64_t taps_count) {
    typedef typename config<Size>::transform f;
    extern __shared__ __align__(16) float2 shared[];
    const int t = threadIdx.x, partition = (int)(blockIdx.x % a.partitions);
    const gck_dense_route route = routes[blockIdx.x / a.partitions];
    const gck_dense_part part = parts[route.part];
    const int64_t count = min(a.partition_taps, taps_count - partition * a.partition_taps);
    const float *h = taps + route.plane * taps_count + partition * a.partition_taps;
    float2 v[f::P];
    load_response<f::P, f::T>(v, h, count, 1.0f / f::N, t);
    f::forward(v, shared, t, a.twiddles);
    unsigned *peak = a.response_peaks + part.first_output + route.output;
    if (Measure) {
        raise_peak<f::P>(peak, v);
        return;
    }
    const int64_t input_tiles = (part.inputs + dense::STEP - 1) / dense::STEP, output_tiles = (part.outputs + 15) / 16;
    const int64_t group = output_tiles * input_tiles * a.partitions * dense::TILE;
    const int64_t tile = (partition * input_tiles + route.input / dense::STEP) * output_tiles + route.output / 16;
    float2 *to = part.responses + t / 2 * group + tile * dense::TILE;
    const int row = route.output % 8, second = route.output / 8 % 2, k = route.input % dense::STEP;
    if (a.tensor_cores) {
        const float scale = dense::scale_of(*peak);
        const int word = second + k / 4 * 2;
#pragma unroll
        for (int j = 0; j < f::P; j++) {
            const uint2 h = dense::split_number(v[j].x, -v[j].y, scale);
            unsigned *words = (unsigned *)(to + j / 2 * (f::T / 2) * group) + word;
            words[4 * dense::tile_chunk(2 * (t % 2) + j % 2, row, k % 4)] = h.x;
            words[4 * dense::tile_chunk(2 * (t % 2) + j % 2, row, k % 4 + 4)] = h.y;
        }
    } else {
#pragma unroll
        for (int j = 0; j < f::P; j++)
            to[j / 2 * (f::T / 2) * group + 2 * dense::tile_chunk(2 * (t % 2) + j % 2, row, k) + second] = v[j];
    }
}

/* Returns a grid of x by rows, with the rows in its second and third dimension. */
dim3 grid_of(int64_t x, int64_t rows) {
    return dim3((unsigned)x, (unsigned)min(rows, (int64_t)65535), (unsigned)((rows + 65534) / 65535));
}

/* The launchers of one size. */
template <int Size> struct launchers {
    typedef typename config<Size>::transform f;
    static const int bytes = config<Size>::bytes;

    static void write_twiddles(float2 *to) {
        if constexpr (Size == 0 || Size == 3)
            f::write_twiddles(to);
        else
            write_twisted_tables<f, Size + 1>(to);
    }

    static cudaError_t forward(const gck_dense &a, const gck_routes &m, cudaStream_t stream) {
        static once_per_device once;
        const int columns = a.blocks + a.partitions - 1;
        cudaError_t err = once([](int device) {
            cudaError_t refused = allow_shared(dense_forward<Size>, bytes);
            refused = refused ? refused : allow_shared(dense_inverse<Size>, bytes);
            refused = refused ? refused : set_carveout(device, dense_forward<Size>, config<Size>::resident, bytes);
            return refused ? refused : set_carveout(device, dense_inverse<Size>, config<Size>::resident, bytes);
        });
        return err ? err
                   : launch_dependent(dense_forward<Size>, grid_of(columns, a.inputs), f::T, bytes, stream, a, m.in,
                                      m.in_stride);
    }

    static cudaError_t inverse(const gck_dense &a, const gck_routes &m, cudaStream_t stream) {
        return launch_dependent(dense_inverse<Size>, grid_of(a.blocks, a.outputs), f::T, bytes, stream, a, m.out,
                                m.out_stride);
    }

    static cudaError_t responses(const gck_dense &a, const gck_dense_part *parts, const gck_dense_route *routes,
                                 int64_t count, const gck_responses &r, cudaStream_t stream) {
        const unsigned blocks = (unsigned)(count * a.partitions);
        cudaError_t err = allow_shared(dense_response<Size, false>, bytes);
        if (!err && a.tensor_cores) {
            err = allow_shared(dense_response<Size, true>, bytes);
            if (!err)
                err = cudaMemsetAsync(a.response_peaks, 0, a.outputs * sizeof *a.response_peaks, stream);
            if (err)
                return err;
            dense_response<Size, true><<<blocks, f::T, bytes, stream>>>(a, parts, routes, r.taps, r.taps_count);
            err = cudaGetLastError();
        }
        if (err)
            return err;
        dense_response<Size, false><<<blocks, f::T, bytes, stream>>>(a, parts, routes, r.taps, r.taps_count);
        return cudaGetLastError();
    }
};

const struct size_row {
    int64_t points, twiddles;
    int shared_bytes;
    void (*write_twiddles)(float2 *to);
    cudaError_t (*forward)(const gck_dense &a, const gck_routes &m, cudaStream_t stream);
    cudaError_t (*inverse)(const gck_dense &a, const gck_routes &m, cudaStream_t stream);
    cudaError_t (*responses)(const gck_dense &a, const gck_dense_part *parts, const gck_dense_route *routes,
                             int64_t count, const gck_responses &r, cudaStream_t stream);
} rows[] = {
#define ROW(size)                                                                                                      \
    {                                                                                                                  \
        2 * launchers<size>::f::N, launchers<size>::f::twiddles, launchers<size>::bytes,                               \
            launchers<size>::write_twiddles, launchers<size>::forward, launchers<size>::inverse,                       \
            launchers<size>::responses                                                                                 \
    }
    ROW(0), ROW(1), ROW(2), ROW(3)
#undef ROW
};

} // namespace

gck_dense_sizes gck_dense_query(int64_t points) {
    const size_row *r = find_points(rows, points);
    return r ? gck_dense_sizes{r->twiddles, max(r->shared_bytes, gck_dense_product_bytes())} : gck_dense_sizes{0, 0};
}

void gck_dense_twiddles(int64_t points, float2 *twiddles) {
    const size_row *r = find_points(rows, points);
    if (r)
        r->write_twiddles(twiddles);
}

cudaError_t gck_dense_transform_responses(const gck_dense *dense, const gck_dense_part *parts,
                                          const gck_dense_route *routes, int64_t count, const gck_responses *responses,
                                          cudaStream_t stream) {
    const size_row *r = find_points(rows, dense->points);
    return r ? r->responses(*dense, parts, routes, count, *responses, stream) : cudaErrorInvalidValue;
}

cudaError_t gck_dense_convolve(const gck_routes *routes, const gck_dense *dense, const gck_dense_part *parts,
                               int parts_count, int blocks, cudaStream_t stream) {
    const size_row *r = find_points(rows, dense->points);
    gck_dense a = *dense;
    a.blocks = blocks;
    cudaError_t err = r ? cudaSuccess : cudaErrorInvalidValue;
    if (!err && a.tensor_cores)
        err = cudaMemsetAsync(a.peaks, 0, (a.blocks + a.partitions - 1) * sizeof *a.peaks, stream);
    if (!err)
        err = r->forward(a, *routes, stream);
    for (int i = 0; i < parts_count && !err; i++)
        err = gck_dense_product(a, parts[i], stream);
    return err ? err : r->inverse(a, *routes, stream);
}
