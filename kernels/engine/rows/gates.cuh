/* Gates of rows whose transforms are on the chip: factors of the samples that are loaded and stored. The samples of
 * gates are fetched into the cache before the transform. Contract: gck_gates in job.h. */
#ifndef GC_KERNELS_ROWS_GATES_CUH
#define GC_KERNELS_ROWS_GATES_CUH

#include "segments.cuh"

/* Fetches a range of frames of a row into the second-level cache; T threads. */
template <int T>
__device__ __forceinline__ void prefetch_frames(const gck_rows &rows, int64_t row, int64_t frame, int count, int t) {
    const int bytes = rows.sample == GCK_F32 ? 4 : 2, begin = within(-frame, count);
    const char *at = (const char *)rows.data + (row_start(rows, row) + frame) * bytes;
    const int end = within(row_frames(rows, row) - frame, count) * bytes;
    for (int i = begin * bytes + 128 * t; i < end; i += 128 * T)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(at + i));
}

/* Multiplies the points of a segment that load_segment has loaded by the gate of the row. */
template <int P, int T>
__device__ __forceinline__ void gate_segment(float2 *v, const gck_rows &gate, int64_t row, int64_t at, int window,
                                             int t) {
    const int begin = within(-at, window), end = within(gate.frames - at, window);
    with_samples<GATED>(gate, row_start(gate, row), at + t, [=](auto g) {
#pragma unroll
        for (int j = 0; j < P; j++) {
            const unsigned n = t - begin + j * T, m = n + P * T, count = end - begin;
            v[j].x *= sample_if<GATED>(g, j * T, n < count);
            v[j].y *= sample_if<GATED>(g, (j + P) * T, m < count);
        }
    });
}

/* Calls change(value, sample) for the points lo .. end - 1, with the samples of a row of a gate whose frame `frame` is
 * point lo. From: a pointer to them. */
template <int P, int T, typename From, typename F>
__device__ __forceinline__ void pass_gate(float2 *v, const gck_rows &gate, int64_t row, int64_t frame, int lo, int end,
                                          int t, F change) {
    const From x = (From)gate.data + row_start(gate, row) + frame - lo + t;
#pragma unroll
    for (int j = 0; j < 2 * P; j++)
        change(j < P ? v[j % P].x : v[j % P].y,
               sample_if<GATED>(x, j * T, (unsigned)(t - lo + j * T) < (unsigned)(end - lo)));
}

/* Passes the points lo .. lo + kept - 1, times gain, through the gates of the target, and stores them as the frames
 * from `frame` on of a row, or adds them. All samples have one type. */
template <int P, int T>
__device__ __forceinline__ void store_gated_segment(float2 *v, const gck_gates &gates, const gck_target &target,
                                                    int64_t row, int64_t frame, int lo, int kept, float gain, int t) {
    const written_frames frames = frames_to_write(target, row);
    const int hi = lo + within(frames.end - frame, kept), valued = lo + within(frames.valued - frame, kept);
    const float factor = gates.factor ? gates.factor[row] : 0.0f;
    const int skipped = gates.factor ? lo + within(row_frames(gates.skip, row) - frame, valued - lo) : lo;
    with_samples<GATED>(target.rows, row_start(target.rows, row), frame - lo + t, [&](auto y) {
        typedef decltype(y) pointer;
        const auto add = [=](float &sum, float x) { sum = fmaf(factor, x, sum); };
        const auto multiply = [](float &sum, float x) { sum *= x; };
        if (gain != 1.0f)
            scale<P>(v, gain);
        if (gates.factor && !gates.skip_last)
            pass_gate<P, T, pointer>(v, gates.skip, row, frame, lo, skipped, t, add);
        if (gates.target.data)
            pass_gate<P, T, pointer>(v, gates.target, row, frame, lo, valued, t, multiply);
        if (gates.factor && gates.skip_last && !gates.skip_gate.data)
            pass_gate<P, T, pointer>(v, gates.skip, row, frame, lo, skipped, t, add);
        if (gates.factor && gates.skip_last && gates.skip_gate.data) {
            const pointer w = (pointer)gates.skip_gate.data + row_start(gates.skip_gate, row) + frame - lo + t;
            const pointer x = (pointer)gates.skip.data + row_start(gates.skip, row) + frame - lo + t;
#pragma unroll
            for (int j = 0; j < 2 * P; j++) {
                const bool inside = (unsigned)(t - lo + j * T) < (unsigned)(skipped - lo);
                add(j < P ? v[j % P].x : v[j % P].y,
                    sample_if<GATED>(x, j * T, inside) * sample_if<GATED>(w, j * T, inside));
            }
        }
        if (target.accumulate)
            pass_gate<P, T, pointer>(v, target.rows, row, frame, lo, valued, t, [](float &sum, float x) { sum += x; });
        store_points<P, T, false>(v, y, lo, valued, hi, t);
    });
}

#endif
