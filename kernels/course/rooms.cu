/*
 * The kernels of module rooms. Image (i, j, k) lies at the place of room (i, j, k), in which the source is mirrored in
 * each axis with an odd number. A row of images has the same i and j; in a segment of the response it has two ends, at
 * negative and at positive z, and a hole between them.
 */
#include "course.cuh"

using namespace course;

namespace {

enum { BLOCK = 256, REACH = 24, STEPS = 6, HALF = 152, TAPS = 306, SEGMENT = 1600, PLACES = STEPS * (SEGMENT + 52) };
const float SX = 5.0f, SY = 4.0f, SZ = 3.0f, LOG2_WALL = -0.15200309f, PER_METRE = 16000 / 343.2f, UNIT = 1 << 24;

/* A source and a receiver, in parts of the room. */
struct pair {
    float source[3], receiver[3];
};

__device__ __forceinline__ float coordinate(int n, float source, float receiver, float size) {
    return ((n & 1 ? (float)(n + 1) - source : (float)n + source) - receiver) * size;
}

/* Distance in frames, and amplitude. */
struct image {
    float t, amplitude;
};

__device__ __forceinline__ image image_of(float across, int hits, int k, const pair &p) {
    const float z = coordinate(k, p.source[2], p.receiver[2], SZ), d = sqrtf(fmaf(z, z, across));
    return {d * PER_METRE, exp2f(LOG2_WALL * (float)(hits + abs(k))) / d};
}

__device__ __forceinline__ float square_of(int i, int j, const pair &p) {
    const float x = coordinate(i, p.source[0], p.receiver[0], SX), y = coordinate(j, p.source[1], p.receiver[1], SY);
    return fmaf(x, x, y * y);
}

/* Adds the 48 frames of an image to frames first .. first + count - 1 of the response. */
__device__ __forceinline__ void add_frames(float *to, int first, int count, const image &m) {
    const int begin = max((int)ceilf(m.t - REACH), first), end = min((int)ceilf(m.t + REACH), first + count);
    for (int n = begin; n < end; n++) {
        const float x = (float)n - m.t, sinc = fabsf(x) < 1e-4f ? 1.0f : sinpif(x) / (3.14159265f * x);
        atomicAdd(to + n - first, m.amplitude * sinc * fmaf(0.5f, cospif(x * (1.0f / REACH)), 0.5f));
    }
}

/* block.y: responses */
__global__ void __launch_bounds__(BLOCK) add_global(const pair *pairs, float *out, int frames, int3 most) {
    const int64_t index = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    const int nz = 2 * most.z + 1, ny = 2 * most.y + 1;
    const int k = (int)(index % nz) - most.z, j = (int)(index / nz % ny) - most.y, i = (int)(index / nz / ny) - most.x;
    const pair p = pairs[blockIdx.y];
    const image m = image_of(square_of(i, j, p), abs(i) + abs(j), k, p);
    if (i <= most.x && m.t < (float)(frames + REACH))
        add_frames(out + (int64_t)blockIdx.y * frames, 0, frames, m);
}

/* Images first .. first + count - 1 of a row, but for `hole` ones from number hole_at on. */
struct row {
    int start, first, hole_at, hole;
    float across;
    int hits;
};

/* Fills *to with row q of the box around the ball of `far` metres: its images from `near` to `far` metres. Returns how
 * many they are. */
__device__ int make_row(int q, const pair &p, float near, float far, row *to) {
    const int ni = 2 * ((int)(far / SX) + 2), nj = 2 * ((int)(far / SY) + 2), i = q / nj - ni / 2, j = q % nj - nj / 2;
    to->across = square_of(i, j, p);
    to->hits = abs(i) + abs(j);
    if (q >= ni * nj || to->across >= far * far)
        return 0;
    const float at = p.receiver[2], end = sqrtf(far * far - to->across) / SZ, inner = near * near - to->across;
    const float gap = near > 0.0f && inner > 0.0f ? sqrtf(inner) / SZ : 0.0f;
    to->first = (int)floorf(at - end);
    const int last = (int)floorf(at + end), open = max((int)ceilf(at - gap), to->first);
    to->hole = max(min((int)floorf(at + gap) - 1, last) - open + 1, 0);
    to->hole_at = open - to->first;
    return last - to->first + 1 - to->hole;
}

__device__ __forceinline__ image image_in(const row &r, int k, const pair &p) {
    return image_of(r.across, r.hits, r.first + k + (k >= r.hole_at ? r.hole : 0), p);
}

/* Calls add(image) for the images between two distances, a thread for each row. */
template <typename Add> __device__ void for_each_image(const pair &p, float near, float far, Add add) {
    const int rows = 4 * ((int)(far / SX) + 2) * ((int)(far / SY) + 2);
    for (int q = threadIdx.x; q < rows; q += BLOCK) {
        row r;
        const int count = make_row(q, p, near, far, &r);
        for (int k = 0; k < count; k++)
            add(image_in(r, k, p));
    }
}

/* The same with the images of 32 rows in order, 32 at a time. */
template <typename Add> __device__ void for_each_in_order(const pair &p, float near, float far, row *rows, Add add) {
    const int all = 4 * ((int)(far / SX) + 2) * ((int)(far / SY) + 2), lane = threadIdx.x % 32;
    rows += threadIdx.x - lane;
    for (int q = threadIdx.x - lane; q < all; q += BLOCK) {
        row r;
        const int count = make_row(q + lane, p, near, far, &r);
        int end = count;
        for (int k = 1; k < 32; k *= 2) {
            const int before = __shfl_up_sync(0xffffffffu, end, k);
            end += lane >= k ? before : 0;
        }
        r.start = end - count;
        const int total = __shfl_sync(0xffffffffu, end, 31);
        rows[lane] = r;
        __syncwarp();
        for (int at = 0, next = 0; at < total; at += 32) {
            int mine = next;
            while (next < 31 && rows[next + 1].start < at + 32)
                mine += rows[++next].start <= at + lane;
            if (at + lane < total)
                add(image_in(rows[mine], at + lane - rows[mine].start, p));
        }
        __syncwarp();
    }
}

/* block.x: segments; block.y: responses */
__global__ void __launch_bounds__(BLOCK) add_shared(const pair *pairs, float *out, int frames) {
    __shared__ float sums[SEGMENT];
    const int begin = blockIdx.x * SEGMENT, count = min(SEGMENT, frames - begin);
    const pair p = pairs[blockIdx.y];
    for (int n = threadIdx.x; n < SEGMENT; n += BLOCK)
        sums[n] = 0.0f;
    __syncthreads();
    for_each_image(p, (float)(begin - REACH) / PER_METRE, (float)(begin + count + REACH) / PER_METRE,
                   [&](const image &m) { add_frames(sums, begin, count, m); });
    __syncthreads();
    for (int n = threadIdx.x; n < count; n += BLOCK)
        out[(int64_t)blockIdx.y * frames + begin + n] = sums[n];
}

__device__ __forceinline__ void add_to(float *sum, float value) {
    atomicAdd(sum, value);
}

__device__ __forceinline__ void add_to(int *sum, float value) {
    atomicAdd(sum, __float2int_rn(value * UNIT));
}

/* Sum: float or int. ORDERED: for_each_in_order. */
template <typename Sum, bool ORDERED>
__global__ void __launch_bounds__(BLOCK) add_steps(const pair *pairs, const float *taps, float *out, int frames) {
    extern __shared__ int memory[];
    Sum *sums = (Sum *)memory;
    row *rows = (row *)(memory + PLACES);
    const int begin = blockIdx.x * SEGMENT, count = min(SEGMENT, frames - begin), base = begin * STEPS - HALF - 2;
    const pair p = pairs[blockIdx.y];
    for (int n = threadIdx.x; n < PLACES; n += BLOCK)
        sums[n] = 0;
    __syncthreads();
    const float near = (float)(base - 4) / (STEPS * PER_METRE), far = (float)(base + PLACES) / (STEPS * PER_METRE);
    auto add = [&](const image &m) {
        const float step = m.t * STEPS, whole = floorf(step), f = step - whole, g = 1.0f - f;
        const int at = (int)whole - base;
        if ((unsigned)at >= PLACES - 3u)
            return;
        add_to(sums + at, m.amplitude * (g * g * g / 6));
        add_to(sums + at + 1, m.amplitude * (2 / 3.0f - f * f * fmaf(-0.5f, f, 1.0f)));
        add_to(sums + at + 2, m.amplitude * (2 / 3.0f - g * g * fmaf(-0.5f, g, 1.0f)));
        add_to(sums + at + 3, m.amplitude * (f * f * f / 6));
    };
    if (ORDERED)
        for_each_in_order(p, near, far, rows, add);
    else
        for_each_image(p, near, far, add);
    __syncthreads();
    const float one = Sum(0.5f) == 0 ? 1 / UNIT : 1.0f; /* integers */
    for (int n = threadIdx.x; n < count; n += BLOCK) {
        float sum = 0.0f;
        for (int j = 0; j < TAPS; j++)
            sum = fmaf(taps[j], (float)sums[STEPS * n + j + 3], sum);
        out[(int64_t)blockIdx.y * frames + begin + n] = sum * one;
    }
}

template <typename Sum, bool ORDERED> cudaError_t run_steps(const gc_lab_run *run) {
    const int bytes = (int)(PLACES * sizeof(int) + (ORDERED ? BLOCK * sizeof(row) : 0));
    const dim3 grid(ceil_div(run->size[1], SEGMENT), (unsigned)run->size[0]);
    cudaError_t err = cudaFuncSetAttribute(add_steps<Sum, ORDERED>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (err)
        return err;
    add_steps<Sum, ORDERED><<<grid, BLOCK, bytes, stream(run)>>>(
        buffer<const pair>(run, 0), buffer<const float>(run, 1), buffer<float>(run, 2), (int)run->size[1]);
    return cudaGetLastError();
}

} // namespace

LAB_LAUNCHER(gck_rooms_global) {
    const int frames = (int)run->size[1];
    const float far = (float)(frames + REACH) / PER_METRE;
    const int3 most = {(int)(far / SX) + 2, (int)(far / SY) + 2, (int)(far / SZ) + 2};
    const int64_t images = (2 * most.x + 1) * (2 * most.y + 1) * (int64_t)(2 * most.z + 1);
    cudaError_t err = cudaMemsetAsync(run->buffer[2], 0, (size_t)run->count[2] * sizeof(float), stream(run));
    add_global<<<dim3(ceil_div(images, BLOCK), (unsigned)run->size[0]), BLOCK, 0, stream(run)>>>(
        buffer<const pair>(run, 0), buffer<float>(run, 2), frames, most);
    return err ? err : cudaGetLastError();
}

LAB_LAUNCHER(gck_rooms_shared) {
    add_shared<<<dim3(ceil_div(run->size[1], SEGMENT), (unsigned)run->size[0]), BLOCK, 0, stream(run)>>>(
        buffer<const pair>(run, 0), buffer<float>(run, 2), (int)run->size[1]);
    return cudaGetLastError();
}

LAB_LAUNCHER(gck_rooms_steps) {
    return run_steps<float, false>(run);
}

LAB_LAUNCHER(gck_rooms_integers) {
    return run_steps<int, false>(run);
}

LAB_LAUNCHER(gck_rooms_rows) {
    return run_steps<int, true>(run);
}
