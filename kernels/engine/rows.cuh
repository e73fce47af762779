/* Reading and writing the caller's rows (rows/job.h): any type of sample, any alignment, ragged lengths. Adjacent
 * threads access adjacent samples. A point is one of the 2 N real points of a transform; register j of thread t holds
 * points t + T j (real part) and t + T j + N (imaginary part). */
#ifndef GC_KERNELS_ROWS_CUH
#define GC_KERNELS_ROWS_CUH

#include "kernels/engine/kernels.h"
#include "kernels/engine/launch.cuh"

#include "kernels/device/fft_fma.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <type_traits>

__device__ __forceinline__ float sample_of(float x) {
    return x;
}
__device__ __forceinline__ float sample_of(__half x) {
    return __half2float(x);
}
__device__ __forceinline__ float sample_of(__nv_bfloat16 x) {
    return __bfloat162float(x);
}
__device__ __forceinline__ void set_sample(float &to, float x) {
    to = x;
}
__device__ __forceinline__ void set_sample(__half &to, float x) {
    to = __float2half_rn(x);
}
__device__ __forceinline__ void set_sample(__nv_bfloat16 &to, float x) {
    to = __float2bfloat16_rn(x);
}

/* A sample of any type. */
struct sample_place {
    char *at;
    int sample; /* gck_sample */
};

__device__ __forceinline__ float sample_of(sample_place p) {
    return p.sample == GCK_F32   ? *(float *)p.at
           : p.sample == GCK_F16 ? sample_of(*(__half *)p.at)
                                 : sample_of(*(__nv_bfloat16 *)p.at);
}
__device__ __forceinline__ void set_sample(sample_place p, float x) {
    if (p.sample == GCK_F32)
        *(float *)p.at = x;
    else if (p.sample == GCK_F16)
        set_sample(*(__half *)p.at, x);
    else
        set_sample(*(__nv_bfloat16 *)p.at, x);
}

/* Frames of any type, `step` bytes apart; used as a pointer is. */
struct strided {
    char *at;
    int step, sample;

    /* The compiler would compute the addresses of all frames first and spill them if it could see `n`. */
    __device__ __forceinline__ sample_place operator[](int n) const {
        asm volatile("" : "+r"(n));
        return {at + (int64_t)n * step, sample};
    }
};

/* What a kernel knows of rows when it is compiled: it has fewer branches then. */
enum known_rows {
    UNKNOWN,  /* nothing */
    ADJACENT, /* the step is 1 */
    FLOATS,   /* the step is 1, the samples are GCK_F32 */
    HALVES,   /* the step is 1, the samples are GCK_F16 */
    BFLOATS,  /* the step is 1, the samples are GCK_BF16 */
    GATED     /* the step is 1, and the job may have gates */
};

__host__ __device__ constexpr bool knows_type(known_rows known) {
    return known == FLOATS || known == HALVES || known == BFLOATS;
}

/* The type of samples that are known. */
template <known_rows Known> struct sample_type { typedef float type; };
template <> struct sample_type<HALVES> { typedef __half type; };
template <> struct sample_type<BFLOATS> { typedef __nv_bfloat16 type; };

/* Calls f with a pointer to frame `at` of a row that begins at element `start`, of the type of its samples. */
template <known_rows Known = UNKNOWN, typename F>
__device__ __forceinline__ void with_samples(const gck_rows &rows, int64_t start, int64_t at, F f) {
    if constexpr (knows_type(Known)) {
        f((typename sample_type<Known>::type *)rows.data + start + at);
    } else {
        if constexpr (Known == UNKNOWN) {
            const int bytes = rows.sample == GCK_F32 ? 4 : 2;
            if (rows.step != 1) {
                f(strided{(char *)rows.data + (start + at * rows.step) * bytes, rows.step * bytes, rows.sample});
                return;
            }
        }
        if (rows.sample == GCK_F32)
            f((float *)rows.data + start + at);
        else if (rows.sample == GCK_F16)
            f((__half *)rows.data + start + at);
        else
            f((__nv_bfloat16 *)rows.data + start + at);
    }
}

__device__ __forceinline__ int64_t row_start(const gck_rows &rows, int64_t row) {
    return rows.starts ? rows.starts[row] : row * rows.stride;
}

/* Returns the frames of a row. */
__device__ __forceinline__ int64_t row_frames(const gck_rows &rows, int64_t row) {
    return rows.lengths ? max((int64_t)0, min(rows.lengths[row], rows.frames)) : rows.frames;
}

/* Returns whether rows that follow one another have neither this row nor one behind it. */
__device__ __forceinline__ bool is_missing(const gck_rows &rows, int row) {
    return rows.starts && rows.lengths && rows.lengths[row] < 0;
}

/* Returns `value` clamped to 0 .. limit, as int. */
__device__ __forceinline__ int within(int64_t value, int limit) {
    return (int)max((int64_t)0, min(value, (int64_t)limit));
}

/* Returns the response of a row. */
__device__ __forceinline__ int response_of(const gck_sharing &s, int row) {
    return row / s.group % s.responses;
}

/* Returns the row that is number `index` of those that share a response; s.rows or more: there is none. */
__device__ __forceinline__ int sharing_row(const gck_sharing &s, int response, int index) {
    return (index / s.group * s.responses + response) * s.group + index % s.group;
}

/* Returns an upper bound of the rows that share a response; sharing_row tells which of them exist. */
__host__ __device__ inline int sharing_rows(const gck_sharing &s) {
    return (int)((s.rows + (int64_t)s.group * s.responses - 1) / ((int64_t)s.group * s.responses)) * s.group;
}

/* Returns the weight of frame `m` of a block (gck_ramp). */
__device__ __forceinline__ float ramp_weight(const gck_blocks &blocks, int64_t block, int m) {
    const float w = block == blocks.count - 1 ? 0.0f : (float)m / (float)blocks.hop;
    return blocks.ramp == GCK_HOLD ? 1.0f : blocks.ramp == GCK_FALL ? 1.0f - w : w;
}

/* Return 16 bits of memory if `inside`, else 0; store 16 bits if `inside`. An assembler's predicate, not a branch: the
 * compiler would convert each sample within the branch, so that few loads are in flight at a time. */
__device__ __forceinline__ unsigned short load_16_if(const void *from, bool inside) {
    unsigned short bits;
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %2, 0; mov.b16 %0, 0; @p ld.global.b16 %0, [%1]; }"
                 : "=h"(bits)
                 : "l"(from), "r"((int)inside)
                 : "memory");
    return bits;
}
__device__ __forceinline__ void store_16_if(void *to, unsigned short bits, bool inside) {
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %2, 0; @p st.global.b16 [%0], %1; }" ::"l"(to), "h"(bits),
                 "r"((int)inside)
                 : "memory");
}

/* Return the stored sample *x if `inside`, else 0. */
__device__ __forceinline__ float stored_if(const float *x, bool inside) {
    return inside ? *x : 0.0f;
}
__device__ __forceinline__ __half stored_if(const __half *x, bool inside) {
    return __ushort_as_half(load_16_if(x, inside));
}
__device__ __forceinline__ __nv_bfloat16 stored_if(const __nv_bfloat16 *x, bool inside) {
    return __ushort_as_bfloat16(load_16_if(x, inside));
}

/* Returns sample x[n] if `inside`, else 0. */
template <typename Sample> __device__ __forceinline__ float sample_if(const Sample *x, int n, bool inside) {
    return sample_of(stored_if(x + n, inside));
}
__device__ __forceinline__ float sample_if(strided x, int n, bool inside) {
    return inside ? sample_of(x[n]) : 0.0f;
}

/* Sets sample y[n] to x if `inside`. Floats keep the branch: predicates made rows of 2048 frames 8 % slower on an H200.
 */
__device__ __forceinline__ void store_if(float *y, int n, float x, bool inside) {
    if (inside)
        y[n] = x;
}
template <typename Half> __device__ __forceinline__ void store_if(Half *y, int n, float x, bool inside) {
    Half rounded;
    set_sample(rounded, x);
    store_16_if(y + n, *(unsigned short *)&rounded, inside);
}
__device__ __forceinline__ void store_if(strided y, int n, float x, bool inside) {
    if (inside)
        set_sample(y[n], x);
}

/* What a transform reads: point m is frame at + m of the row for m < frames, zero outside the row. */
struct row_window {
    int64_t row, at;
    int frames;
};

/* Loads a window. Returns whether it contains a frame of the row; if not, v is not written. */
template <int P, int T, known_rows Known>
__device__ __forceinline__ bool load_segment(float2 *v, const gck_rows &rows, const row_window &w, int t) {
    const int begin = within(-w.at, w.frames), end = within(row_frames(rows, w.row) - w.at, w.frames);
    if (begin >= end)
        return false;
    with_samples<Known>(rows, row_start(rows, w.row), w.at + t, [=](auto x) {
        if (begin == 0 && end == 2 * P * T) {
#pragma unroll
            for (int j = 0; j < P; j++)
                v[j] = make_float2(sample_of(x[j * T]), sample_of(x[(j + P) * T]));
        } else {
#pragma unroll
            for (int j = 0; j < P; j++) {
                const unsigned n = t - begin + j * T, m = n + P * T, count = end - begin;
                v[j].x = sample_if(x, j * T, n < count);
                v[j].y = sample_if(x, (j + P) * T, m < count);
            }
        }
    });
    return true;
}

/* Loads the first frames of a row as load_segment does, whatever their step, in a loop over points in shared memory.
 * plane: 2 P T floats of the transform, of which each thread uses its own. */
template <int P, int T>
__device__ __forceinline__ void load_any_step(float2 *v, float *plane, const gck_rows &rows, int64_t row, int window,
                                              int t) {
    const int end = within(row_frames(rows, row), window);
    with_samples(rows, row_start(rows, row), 0, [=](auto x) {
#pragma unroll 1
        for (int m = t; m < 2 * P * T; m += T)
            plane[m] = m < end ? sample_of(x[m]) : 0.0f;
    });
#pragma unroll
    for (int j = 0; j < P; j++)
        v[j] = make_float2(plane[t + j * T], plane[t + (j + P) * T]);
}

/* The frames of a target row that are written (end), and those that have a value; the others are zero. */
struct written_frames {
    int64_t end, valued;
};

__device__ __forceinline__ written_frames frames_to_write(const gck_target &target, int64_t row) {
    const int64_t frames = row_frames(target.rows, row);
    return {target.rows.starts || target.accumulate ? frames : target.rows.frames, frames};
}

/* What a transform writes: its points lo .. lo + kept - 1 are the frames of a row from `frame` on. */
struct row_segment {
    int64_t row, frame;
    int lo, kept;
};

/* Stores a segment of a target row, times gain, or adds it.
 * Quick: has a branch of its own for the usual case, in the fewest instructions. All other cases take a loop over
 * points in shared memory, one copy for each type of sample, so that the kernels are a third smaller. plane: 2 P T
 * floats of the transform, of which each thread uses its own. */
template <int P, int T, bool Quick, known_rows Known>
__device__ __forceinline__ void store_segment(const float2 *v, float *plane, const gck_target &target,
                                              const row_segment &part, float gain, int t) {
    const written_frames frames = frames_to_write(target, part.row);
    const int lo = part.lo, hi = lo + within(frames.end - part.frame, part.kept);
    const int valued = lo + within(frames.valued - part.frame, part.kept);
    const bool add = target.accumulate, simple = Quick && !add && valued == hi && gain == 1.0f;
    if (T < 32 || !simple)
        transform_barrier<T>();
    if (!simple) {
#pragma unroll
        for (int j = 0; j < P; j++) {
            plane[t + j * T] = v[j].x;
            plane[t + (j + P) * T] = v[j].y;
        }
    }
    with_samples<Known>(target.rows, row_start(target.rows, part.row), part.frame - lo, [=](auto y) {
        if (simple) {
#pragma unroll
            for (int j = 0; j < 2 * P; j++)
                store_if(y, t + j * T, j < P ? v[j % P].x : v[j % P].y, t + j * T >= lo && t + j * T < hi);
            return;
        }
#pragma unroll 1
        for (int m = t; m < hi; m += T)
            if (m >= lo) {
                const float x = m < valued ? gain * plane[m] : 0.0f;
                set_sample(y[m], add ? sample_of(y[m]) + x : x);
            }
    });
}

/* Stores the points lo .. valued - 1, or adds them, and zeros as those up to hi - 1. y: where point t is stored. */
template <int P, int T, bool Add, typename To>
__device__ __forceinline__ void store_points(const float2 *v, To y, int lo, int valued, int hi, int t) {
#pragma unroll
    for (int j = 0; j < 2 * P; j++) {
        const bool inside = (unsigned)(t - lo + j * T) < (unsigned)(valued - lo);
        const float x = j < P ? v[j % P].x : v[j % P].y;
        store_if(y, j * T, Add ? sample_if(y, j * T, inside) + x : x, inside);
    }
    if (valued < hi) { /* the row has ended */
#pragma unroll 1
        for (int j = 0; j < 2 * P; j++)
            if (t + j * T >= valued && t + j * T < hi)
                set_sample(y[j * T], 0.0f);
    }
}

/* Does what store_segment does for samples of a known type that are overwritten, with a gain of 1; Add: or added to. */
template <int P, int T, known_rows Known = FLOATS, bool Add = false>
__device__ __forceinline__ void store_plain_segment(const float2 *v, const gck_target &target, const row_segment &part,
                                                    int t) {
    const written_frames frames = frames_to_write(target, part.row);
    const int hi = part.lo + within(frames.end - part.frame, part.kept);
    const int valued = part.lo + within(frames.valued - part.frame, part.kept);
    auto *row = (typename sample_type<Known>::type *)target.rows.data + row_start(target.rows, part.row);
    store_points<P, T, Add>(v, row + part.frame - part.lo + t, part.lo, valued, hi, t);
}

/* Returns the status of loading a kernel, with `bytes` of dynamic shared memory allowed. Loading at the first launch
 * would allocate and synchronise there. */
template <typename Kernel> cudaError_t load_kernel(Kernel kernel, int bytes) {
    cudaFuncAttributes attributes;
    cudaError_t err = cudaFuncGetAttributes(&attributes, (const void *)kernel);
    return err ? err : allow_shared(kernel, bytes);
}

#endif
