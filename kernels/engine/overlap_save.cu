/*
 * Overlap-save in one kernel: load, transform, multiply, transform back, store. Two neighbouring blocks of an output
 * are the real and imaginary part of one complex signal, which a real response keeps apart; the spectrum stays
 * scrambled.
 *
 *      in    |--- before ---|----- hop -----|----- hop -----|      pair: block a ends after the first hop,
 *            |<------- a: N points -------->|                      block b a hop later
 *
 * Device memory sees every input sample N / hop times (mostly from the cache) and every output once.
 */
#include "transform.cuh"

namespace {

template <int N, bool Single>
__global__ void __launch_bounds__(layout<N>::block, 512 / layout<N>::block)
    overlap_save(gck_matrix a, int hop, int64_t pairs, const float2 *__restrict__ table,
                 const float2 *__restrict__ spectra) {
    extern __shared__ float2 shared[];
    int group = threadIdx.x / layout<N>::threads, t = threadIdx.x % layout<N>::threads, before = N - hop;
    float2 *s = shared + group * fft<N>::shared;
    int64_t pair = (int64_t)blockIdx.x * layout<N>::groups + group;
    bool mine = pair < pairs; /* the others go along: barriers want everybody */
    int64_t first = (mine ? pair : pairs - 1) * 2 * hop;
    float2 v[16];
    if (Single) {
        gck_route route = a.route[blockIdx.y];
        const float *x = a.in + route.input * a.in_stride + first - before;
        load_pair<N>(v, x, x + hop, t);
        fft_forward<N>(v, s, t, table);
        multiply_spectrum<N>(v, fresh(spectra) + (int64_t)route.plane * N, t);
    } else {
        float2 sum[16];
#pragma unroll
        for (int j = 0; j < 16; j++)
            sum[j] = make_float2(0.0f, 0.0f);
#pragma unroll 1
        for (int e = a.row[blockIdx.y]; e < a.row[blockIdx.y + 1]; e++) {
            gck_route route = a.route[e];
            const float *x = a.in + route.input * a.in_stride + first - before;
            load_pair<N>(v, x, x + hop, t);
            __syncthreads();
            fft_forward<N>(v, s, t, table);
            multiply_add_spectrum<N>(sum, v, fresh(spectra) + (int64_t)route.plane * N, t);
            table = fresh(table);
        }
#pragma unroll
        for (int j = 0; j < 16; j++)
            v[j] = sum[j];
    }
    fft_inverse<N>(v, s, t, fresh(table));
    if (mine) {
        float *y = a.out + blockIdx.y * a.out_stride + first;
        store_pair<N>(v, y, y + hop, before, t);
    }
}

template <int N>
__global__ void __launch_bounds__(layout<N>::block)
    spectrum(const float *__restrict__ taps, int64_t count, int64_t partition, int64_t pieces, int64_t partitions,
             const float2 *__restrict__ table, float2 *spectra) {
    extern __shared__ float2 shared[];
    int group = threadIdx.x / layout<N>::threads, t = threadIdx.x % layout<N>::threads;
    int64_t piece = (int64_t)blockIdx.x * layout<N>::groups + group;
    bool mine = piece < pieces;
    int64_t at = mine ? piece % partitions * partition : 0, end = min(count, at + partition);
    const float *plane = taps + (mine ? piece / partitions : 0) * count;
    float2 v[16];
#pragma unroll
    for (int j = 0; j < 16; j++) {
        int64_t k = at + t + j * layout<N>::threads;
        v[j] = make_float2(k < end ? plane[k] * (1.0f / N) : 0.0f, 0.0f);
    }
    fft_forward<N>(v, shared + group * fft<N>::shared, t, table);
    if (mine)
        store_spectrum<N>(v, spectra + piece * N, t);
}

template <int N>
cudaError_t launch(const gck_matrix *matrix, int64_t hop, int64_t pairs, const float2 *table, const float2 *spectra,
                   cudaStream_t stream) {
    dim3 grid((unsigned)((pairs + layout<N>::groups - 1) / layout<N>::groups), matrix->outputs);
    cudaError_t failed = matrix->single ? allow_shared(overlap_save<N, true>, layout<N>::bytes)
                                        : allow_shared(overlap_save<N, false>, layout<N>::bytes);
    if (failed)
        return failed;
    if (matrix->single)
        overlap_save<N, true>
            <<<grid, layout<N>::block, layout<N>::bytes, stream>>>(*matrix, (int)hop, pairs, table, spectra);
    else
        overlap_save<N, false>
            <<<grid, layout<N>::block, layout<N>::bytes, stream>>>(*matrix, (int)hop, pairs, table, spectra);
    return cudaGetLastError();
}

template <int N>
cudaError_t launch_spectra(const float *taps, int planes, int64_t count, int64_t partition, int64_t partitions,
                           const float2 *table, float2 *spectra, cudaStream_t stream) {
    int64_t pieces = planes * partitions;
    cudaError_t failed = allow_shared(spectrum<N>, layout<N>::bytes);
    if (failed)
        return failed;
    spectrum<N><<<(unsigned)((pieces + layout<N>::groups - 1) / layout<N>::groups), layout<N>::block, layout<N>::bytes,
                  stream>>>(taps, count, partition, pieces, partitions, table, spectra);
    return cudaGetLastError();
}

} // namespace

int64_t gck_transform_shared(int64_t points){
#define CALL(n) layout<n>::bytes
    GCK_FOR_POINTS(points, CALL)
#undef CALL
}

cudaError_t gck_spectra(int64_t points, const float *taps, int planes, int64_t taps_count, int64_t partition,
                        int64_t partitions, const float2 *table, float2 *spectra, cudaStream_t stream){
#define CALL(n) launch_spectra<n>(taps, planes, taps_count, partition, partitions, table, spectra, stream)
    GCK_FOR_POINTS(points, CALL)
#undef CALL
}

cudaError_t gck_overlap_save(const gck_matrix *matrix, int64_t points, int64_t hop, int64_t pairs, const float2 *table,
                             const float2 *spectra, cudaStream_t stream) {
#define CALL(n) launch<n>(matrix, hop, pairs, table, spectra, stream)
    GCK_FOR_POINTS(points, CALL)
#undef CALL
}
