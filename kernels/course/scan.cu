/*
 * The kernels of module scan. The sums of the tiles are in the run's scratch memory.
 *
 * In the variants with registers a warp has 1024 consecutive elements, in eight rows of 32 int4: lane l reads vector l
 * of each row, so that every load is coalesced, and the row's sum is passed to the next row. Loads and stores are
 * marked as used once, so that the second-level cache keeps the sums of the tiles.
 */
#include "course.cuh"

using namespace course;

namespace {

const unsigned ALL_LANES = 0xffffffffu;

/* ---- One element a thread ---------------------------------------------------------------------------------------- */

enum { SMALL_TILE = 1024, PADDED_TILE = SMALL_TILE + SMALL_TILE / 32 };

/* Scans each tile of 1024 elements and writes its sum to sums[]. `a` and `out` may be the same. */
__global__ void __launch_bounds__(SMALL_TILE) hillis_steele(const int *a, int *out, int *sums, int64_t n) {
    __shared__ int s[2][SMALL_TILE];
    const int t = threadIdx.x;
    const int64_t i = (int64_t)blockIdx.x * SMALL_TILE + t;
    int from = 0;
    s[0][t] = i < n ? a[i] : 0;
    __syncthreads();
    for (int distance = 1; distance < SMALL_TILE; distance *= 2, from = 1 - from) {
        s[1 - from][t] = s[from][t] + (t >= distance ? s[from][t - distance] : 0);
        __syncthreads();
    }
    if (i < n)
        out[i] = s[from][t];
    if (t == SMALL_TILE - 1)
        sums[blockIdx.x] = s[from][t];
}

/* Returns the place of element i in shared memory: one word in 32 is left out. */
__device__ int padded(int i) {
    return i + i / 32;
}

/* The same. After the way up, element i holds the sum of the subtree that ends there; the way down turns these into
 * sums of all elements before i. */
__global__ void __launch_bounds__(SMALL_TILE / 2) blelloch(const int *a, int *out, int *sums, int64_t n) {
    __shared__ int s[PADDED_TILE];
    const int t = threadIdx.x, half = SMALL_TILE / 2;
    const int64_t first = (int64_t)blockIdx.x * SMALL_TILE, i = first + t, j = i + half;
    const int x = i < n ? a[i] : 0, y = j < n ? a[j] : 0;
    s[padded(t)] = x;
    s[padded(t + half)] = y;
    for (int distance = 1; distance < SMALL_TILE; distance *= 2) {
        const int right = (2 * t + 2) * distance - 1;
        __syncthreads();
        if (right < SMALL_TILE)
            s[padded(right)] += s[padded(right - distance)];
    }
    __syncthreads();
    if (t == 0) {
        sums[blockIdx.x] = s[padded(SMALL_TILE - 1)];
        s[padded(SMALL_TILE - 1)] = 0;
    }
    for (int distance = half; distance > 0; distance /= 2) {
        const int right = (2 * t + 2) * distance - 1;
        __syncthreads();
        if (right < SMALL_TILE) {
            const int left = s[padded(right - distance)];
            s[padded(right - distance)] = s[padded(right)];
            s[padded(right)] += left;
        }
    }
    __syncthreads();
    if (i < n)
        out[i] = s[padded(t)] + x;
    if (j < n)
        out[j] = s[padded(t + half)] + y;
}

/* Adds to each element of a tile, but the first tile, the scanned sum of the tiles before it. */
__global__ void __launch_bounds__(SMALL_TILE) add_sums(int *out, const int *sums, int64_t n) {
    const int64_t i = (int64_t)(blockIdx.x + 1) * SMALL_TILE + threadIdx.x;
    if (i < n)
        out[i] += sums[blockIdx.x];
}

/* Scans `a` tile by tile, and the sums of the tiles in the same way. */
template <typename Kernel>
cudaError_t scan_tiles(Kernel tile, int threads, const int *a, int *out, int *sums, int64_t n, cudaStream_t stream) {
    const unsigned tiles = ceil_div(n, SMALL_TILE);
    tile<<<tiles, threads, 0, stream>>>(a, out, sums, n);
    cudaError_t err = cudaGetLastError();
    if (err || tiles == 1)
        return err;
    err = scan_tiles(tile, threads, sums, sums, sums + tiles, tiles, stream);
    add_sums<<<tiles - 1, SMALL_TILE, 0, stream>>>(out, sums, n);
    return err ? err : cudaGetLastError();
}

/* ---- 32 elements a thread ---------------------------------------------------------------------------------------- */

enum { BLOCK = 512, BLOCKS = 2 /* of a multiprocessor */, ROWS = 8, TILE = BLOCK * ROWS * 4 };

/* Returns the index of the first of the four elements that the thread has in a row of the tile. */
__device__ int64_t element(int64_t tile, int row) {
    return tile * TILE + (threadIdx.x / 32 * ROWS + row) * 128 + threadIdx.x % 32 * 4;
}

/* Reads the thread's elements of a tile; those past the end are zero. */
__device__ void load_tile(const int *a, int64_t tile, int64_t n, int4 (&v)[ROWS]) {
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const int64_t i = element(tile, r);
        if (i + 4 <= n)
            v[r] = __ldcs((const int4 *)(a + i));
        else
            v[r] = make_int4(i < n ? a[i] : 0, i + 1 < n ? a[i + 1] : 0, i + 2 < n ? a[i + 2] : 0, 0);
    }
}

/* Writes the thread's elements of a tile, each with `before` added. */
__device__ void store_tile(int *out, int64_t tile, int64_t n, const int4 (&v)[ROWS], int before) {
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const int64_t i = element(tile, r);
        const int4 x = make_int4(v[r].x + before, v[r].y + before, v[r].z + before, v[r].w + before);
        if (i + 4 <= n) {
            __stcs((int4 *)(out + i), x);
            continue;
        }
        if (i < n)
            out[i] = x.x;
        if (i + 1 < n)
            out[i + 1] = x.y;
        if (i + 2 < n)
            out[i + 2] = x.z;
    }
}

/* Returns the sum of the values of the lanes up to this one. */
__device__ int scan_warp(int v) {
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
        const int other = __shfl_up_sync(ALL_LANES, v, distance);
        v += (int)threadIdx.x % 32 >= distance ? other : 0;
    }
    return v;
}

/* Returns the sum of the values of a warp, in all lanes. */
__device__ int sum_warp(int v) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        v += __shfl_xor_sync(ALL_LANES, v, distance);
    return v;
}

/* Sets *before to the sum of the warps before this one, and returns the sum of all warps, from the sum of each. Has one
 * barrier; a block that calls it again needs another one between. */
__device__ int join_warps(int warp_sum, int *before) {
    __shared__ int sums[BLOCK / 32];
    const int warp = threadIdx.x / 32;
    int total = 0;
    if (threadIdx.x % 32 == 0)
        sums[warp] = warp_sum;
    __syncthreads();
    *before = 0;
#pragma unroll
    for (int w = 0; w < BLOCK / 32; w++) {
        *before += w < warp ? sums[w] : 0;
        total += sums[w];
    }
    return total;
}

/* Scans the elements of a warp and returns their sum. */
__device__ int scan_rows(int4 (&v)[ROWS]) {
    int rows_before = 0;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        v[r].y += v[r].x;
        v[r].z += v[r].y;
        v[r].w += v[r].z;
        const int sum = scan_warp(v[r].w), shift = rows_before + sum - v[r].w;
        v[r] = make_int4(v[r].x + shift, v[r].y + shift, v[r].z + shift, v[r].w + shift);
        rows_before += __shfl_sync(ALL_LANES, sum, 31);
    }
    return rows_before;
}

__global__ void __launch_bounds__(BLOCK) add_up_tiles(const int *a, int *sums, int64_t n) {
    int4 v[ROWS];
    int sum = 0, ignored;
    load_tile(a, blockIdx.x, n, v);
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        sum += (v[r].x + v[r].y) + (v[r].z + v[r].w);
    sum = join_warps(sum_warp(sum), &ignored);
    if (threadIdx.x == 0)
        sums[blockIdx.x] = sum;
}

/* Scans the sums of all tiles in one block. */
__global__ void __launch_bounds__(BLOCK) scan_sums(int *sums, int tiles) {
    int before = 0, warps_before;
    for (int first = 0; first < tiles; first += TILE) {
        int4 v[ROWS];
        load_tile(sums, first / TILE, tiles, v);
        const int sum = join_warps(scan_rows(v), &warps_before);
        store_tile(sums, first / TILE, tiles, v, before + warps_before);
        before += sum;
        __syncthreads(); /* before the next tile joins its warps */
    }
}

__global__ void __launch_bounds__(BLOCK, BLOCKS) scan_from_sums(const int *a, int *out, const int *sums, int64_t n) {
    int4 v[ROWS];
    int warps_before;
    load_tile(a, blockIdx.x, n, v);
    join_warps(scan_rows(v), &warps_before);
    store_tile(out, blockIdx.x, n, v, warps_before + (blockIdx.x ? sums[blockIdx.x - 1] : 0));
}

/* ---- Look-back --------------------------------------------------------------------------------------------------- */

typedef unsigned long long word; /* a sum in the lower half, its state in the upper half */

enum { EMPTY = 0, TILE_SUM = 1, PREFIX = 2 };

__device__ void publish(volatile word *words, int tile, int state, int sum) {
    words[tile] = (word)state << 32 | (unsigned)sum;
}

/* Returns the sum of all tiles before this one, in all lanes of the warp that calls it. Lane l reads the word of the
 * tile l + 1 before, and waits until it is not empty. */
__device__ int look_back(const volatile word *words, int tile) {
    const int lane = threadIdx.x % 32;
    int before = 0;
    for (int last = tile - 1;; last -= 32) {
        word w = (word)PREFIX << 32; /* before the first tile: the sum is 0 */
        if (last >= lane)
            do
                w = words[last - lane];
            while (w >> 32 == EMPTY);
        const unsigned prefixes = __ballot_sync(ALL_LANES, w >> 32 == PREFIX);
        const int first_prefix = prefixes ? __ffs((int)prefixes) - 1 : 31;
        before += sum_warp(lane <= first_prefix ? (int)(unsigned)w : 0);
        if (prefixes)
            return before;
    }
}

__global__ void __launch_bounds__(BLOCK, BLOCKS)
    scan_once(const int *a, int *out, word *words, int *next_tile, int64_t n) {
    __shared__ int tile, tile_before;
    int4 v[ROWS];
    int warps_before;
    if (threadIdx.x == 0)
        tile = atomicAdd(next_tile, 1);
    __syncthreads();
    const int t = tile;
    load_tile(a, t, n, v);
    const int sum = join_warps(scan_rows(v), &warps_before);
    if (threadIdx.x < 32) {
        if (threadIdx.x == 0 && t > 0)
            publish(words, t, TILE_SUM, sum);
        const int before = look_back(words, t);
        if (threadIdx.x == 0) {
            publish(words, t, PREFIX, before + sum);
            tile_before = before;
        }
    }
    __syncthreads();
    store_tile(out, t, n, v, warps_before + tile_before);
}

} // namespace

LAB_LAUNCHER(gck_scan_hillis_steele) {
    return scan_tiles(hillis_steele, SMALL_TILE, buffer<const int>(run, 0), buffer<int>(run, 1), (int *)run->scratch,
                      run->size[0], stream(run));
}

LAB_LAUNCHER(gck_scan_blelloch) {
    return scan_tiles(blelloch, SMALL_TILE / 2, buffer<const int>(run, 0), buffer<int>(run, 1), (int *)run->scratch,
                      run->size[0], stream(run));
}

LAB_LAUNCHER(gck_scan_shuffles) {
    const int *a = buffer<const int>(run, 0);
    int *sums = (int *)run->scratch;
    const unsigned tiles = ceil_div(run->size[0], TILE);
    add_up_tiles<<<tiles, BLOCK, 0, stream(run)>>>(a, sums, run->size[0]);
    scan_sums<<<1, BLOCK, 0, stream(run)>>>(sums, (int)tiles);
    scan_from_sums<<<tiles, BLOCK, 0, stream(run)>>>(a, buffer<int>(run, 1), sums, run->size[0]);
    return cudaGetLastError();
}

/* The words of the tiles and, after them, the number of the next tile. */
LAB_LAUNCHER(gck_scan_look_back) {
    const unsigned tiles = ceil_div(run->size[0], TILE);
    word *words = (word *)run->scratch;
    cudaError_t err = cudaMemsetAsync(words, 0, (tiles + 1) * sizeof *words, stream(run));
    scan_once<<<tiles, BLOCK, 0, stream(run)>>>(buffer<const int>(run, 0), buffer<int>(run, 1), words,
                                                (int *)(words + tiles), run->size[0]);
    return err ? err : cudaGetLastError();
}

LAB_FACTS(gck_scan_look_back_facts) {
    (void)run;
    return kernel_facts(scan_once, BLOCK, 0, facts);
}
