/* The kernels of module divergence: polar coordinates with a branch for each quadrant, without branches, and with fast
 * intrinsics. */
#include "course.cuh"

using namespace course;

namespace {

enum { BLOCK = 256 };

#define TWO_PI 6.2831853071795865f

__global__ void branches(const float *in, float *out, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i >= n)
        return;
    float x = in[2 * i], y = in[2 * i + 1], r, a;
    if (x > 0.0f) {
        if (y >= 0.0f) {
            r = hypotf(x, y);
            a = asinf(fminf(y / r, 1.0f));
            a = y < x ? a : 0.25f * TWO_PI - asinf(fminf(x / r, 1.0f));
        } else {
            r = hypotf(x, -y);
            a = TWO_PI - atanf(-y / x);
        }
    } else if (y > 0.0f) {
        r = hypotf(-x, y);
        a = 0.25f * TWO_PI + atanf(-x / y);
    } else if (x < 0.0f) {
        r = hypotf(-x, -y);
        a = 0.5f * TWO_PI + atanf(y / x);
    } else {
        r = -y;
        a = y < 0.0f ? 0.75f * TWO_PI : 0.0f;
    }
    out[2 * i] = r;
    out[2 * i + 1] = a;
}

__global__ void branchless(const float *in, float *out, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i >= n)
        return;
    float x = in[2 * i], y = in[2 * i + 1], a = atan2f(y, x);
    out[2 * i] = sqrtf(x * x + y * y);
    out[2 * i + 1] = a + (a < 0.0f ? TWO_PI : 0.0f);
}

/* Returns radius and angle. The arc tangent of the smaller over the larger coordinate is a polynomial in the square of
 * the quotient (nine terms, fitted at Chebyshev nodes); selects then mirror it into the octant of the point. */
__device__ __forceinline__ float2 polar(float2 p) {
    float u = fabsf(p.x), v = fabsf(p.y), larger = fmaxf(u, v), smaller = fminf(u, v);
    float q = larger > 0.0f ? __fdividef(smaller, larger) : 0.0f, s = q * q;
    float a = fmaf(
        fmaf(fmaf(fmaf(fmaf(fmaf(fmaf(fmaf(0.00283406433f, s, -0.0160050306f), s, 0.0425876076f), s, -0.0749544546f), s,
                            0.106367541f),
                       s, -0.142025705f),
                  s, 0.199924836f),
             s, -0.333330668f),
        s, 0.999999984f);
    a *= q;
    a = v > u ? 0.25f * TWO_PI - a : a;
    a = p.x < 0.0f ? 0.5f * TWO_PI - a : a;
    a = p.y < 0.0f ? TWO_PI - a : a;
    float r_squared = p.x * p.x + p.y * p.y;
    return make_float2(r_squared > 0.0f ? r_squared * rsqrtf(r_squared) : 0.0f, a);
}

__global__ void fast(const float2 *in, float2 *out, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        out[i] = polar(in[i]);
}

/* Two points per thread, because 2048 threads with 8 bytes in flight each are only 16 KB per multiprocessor, and more
 * than 20 KB must be in flight to use the full memory bandwidth. */
__global__ void two_points(const float2 *in, float2 *out, int64_t n) {
    int64_t i = 2 * ((int64_t)blockIdx.x * BLOCK + threadIdx.x);
    if (i + 1 < n) {
        float4 p = *(const float4 *)(in + i);
        float2 a = polar(make_float2(p.x, p.y)), b = polar(make_float2(p.z, p.w));
        *(float4 *)(out + i) = make_float4(a.x, a.y, b.x, b.y);
    } else if (i < n) {
        out[i] = polar(in[i]);
    }
}

} // namespace

LAB_LAUNCHER(gck_polar_branches) {
    branches<<<ceil_div(run->size[0], BLOCK), BLOCK, 0, stream(run)>>>(buffer<const float>(run, 0),
                                                                       buffer<float>(run, 1), run->size[0]);
    return cudaGetLastError();
}

LAB_LAUNCHER(gck_polar_branchless) {
    branchless<<<ceil_div(run->size[0], BLOCK), BLOCK, 0, stream(run)>>>(buffer<const float>(run, 0),
                                                                         buffer<float>(run, 1), run->size[0]);
    return cudaGetLastError();
}

LAB_LAUNCHER(gck_polar_fast) {
    fast<<<ceil_div(run->size[0], BLOCK), BLOCK, 0, stream(run)>>>(buffer<const float2>(run, 0), buffer<float2>(run, 1),
                                                                   run->size[0]);
    return cudaGetLastError();
}

LAB_LAUNCHER(gck_polar_two_points) {
    two_points<<<ceil_div(run->size[0], 2 * BLOCK), BLOCK, 0, stream(run)>>>(buffer<const float2>(run, 0),
                                                                             buffer<float2>(run, 1), run->size[0]);
    return cudaGetLastError();
}
