/* Gates of rows whose transforms are on the chip: factors of the samples that are loaded and stored. The samples pass
 * through shared memory in groups, so that they take few registers, and are fetched into the second-level cache before.
 * Contract: gck_gates in job.h. */
#ifndef GC_KERNELS_ROWS_GATES_CUH
#define GC_KERNELS_ROWS_GATES_CUH

#include "segments.cuh"

/* The samples of an array that a thread loads at a time; a transform has at least as many points of a thread. */
enum { GATE_LOADS = 16 };

/* Loads x[first], x[first + T], ..., zero outside begin .. end - 1. The samples are converted where they are used: a
 * conversion would wait for its load. */
template <int T, typename Sample>
__device__ __forceinline__ void load_stored(Sample *to, const Sample *x, int first, int begin, int end) {
#pragma unroll
    for (int j = 0; j < GATE_LOADS; j++)
        to[j] = stored_if(x + first + j * T, (unsigned)(first - begin + j * T) < (unsigned)(end - begin));
}

/* Fetches a range of frames of a row into the second-level cache; T threads. */
template <int T>
__device__ __forceinline__ void prefetch_frames(const gck_rows &rows, int64_t row, int64_t frame, int count, int t) {
    const int bytes = rows.sample == GCK_F32 ? 4 : 2, begin = within(-frame, count);
    const char *at = (const char *)rows.data + (row_start(rows, row) + frame) * bytes;
    const int end = within(row_frames(rows, row) - frame, count) * bytes;
    for (int i = begin * bytes + 128 * t; i < end; i += 128 * T)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(at + i));
}

/* Loads a window as load_segment does and multiplies it by the gate of the row. Both have one type. plane: 2 P T
 * floats of shared memory, of which each thread uses its own; without them the samples of both would not fit into the
 * registers. */
template <int P, int T>
__device__ __forceinline__ bool load_gated_segment(float2 *v, float *plane, const gck_rows &rows, const gck_rows &gate,
                                                   const row_window &w, int t) {
    const int begin = within(-w.at, w.frames), end = within(row_frames(rows, w.row) - w.at, w.frames);
    if (begin >= end)
        return false;
    with_samples<GATED>(rows, row_start(rows, w.row), w.at, [=](auto x) {
        const decltype(x) g = (decltype(x))gate.data + row_start(gate, w.row) + w.at;
#pragma unroll 1
        for (int first = t; first < 2 * P * T; first += GATE_LOADS * T) {
            typename std::remove_pointer<decltype(x)>::type samples[GATE_LOADS], factors[GATE_LOADS];
            load_stored<T>(samples, x, first, begin, end);
            load_stored<T>(factors, g, first, begin, end);
#pragma unroll
            for (int j = 0; j < GATE_LOADS; j++)
                plane[first + j * T] = sample_of(samples[j]) * sample_of(factors[j]);
        }
    });
#pragma unroll
    for (int j = 0; j < P; j++)
        v[j] = make_float2(plane[t + j * T], plane[t + (j + P) * T]);
    return true;
}

/* Passes a segment, times gain, through the gates of the target, and stores or adds it. All samples have one type;
 * plane: as above. */
template <int P, int T>
__device__ __forceinline__ void store_gated_segment(const float2 *v, float *plane, const gck_gates &gates,
                                                    const gck_target &target, const row_segment &part, float gain,
                                                    int t) {
    const int64_t row = part.row, frame = part.frame;
    const written_frames frames = frames_to_write(target, row);
    const int lo = part.lo, hi = lo + within(frames.end - frame, part.kept);
    const int valued = lo + within(frames.valued - frame, part.kept);
    const float factor = gates.factor ? gates.factor[row] : 0.0f;
    const int skipped = gates.factor ? lo + within(row_frames(gates.skip, row) - frame, valued - lo) : lo;
    const int gated = gates.target.data ? valued : lo;
#pragma unroll
    for (int j = 0; j < P; j++) {
        plane[t + j * T] = v[j].x;
        plane[t + (j + P) * T] = v[j].y;
    }
    with_samples<GATED>(target.rows, row_start(target.rows, row), frame - lo, [&](auto y) {
        typedef decltype(y) pointer;
        const auto row_of = [=](const gck_rows &rows) {
            return (pointer)rows.data + row_start(rows, row) + frame - lo;
        };
        const pointer gate = row_of(gates.target), skip = row_of(gates.skip), skip_gate = row_of(gates.skip_gate);
#pragma unroll 1
        for (int first = t; first < 2 * P * T; first += GATE_LOADS * T) {
            typename std::remove_pointer<pointer>::type x[GATE_LOADS], g[GATE_LOADS];
            load_stored<T>(x, skip, first, lo, skipped);
            load_stored<T>(g, gate, first, lo, gated);
            float added[GATE_LOADS], sum[GATE_LOADS];
#pragma unroll
            for (int j = 0; j < GATE_LOADS; j++)
                added[j] = factor * sample_of(x[j]);
            if (gates.skip_gate.data) {
                load_stored<T>(x, skip_gate, first, lo, skipped);
#pragma unroll
                for (int j = 0; j < GATE_LOADS; j++)
                    added[j] *= sample_of(x[j]);
            }
#pragma unroll
            for (int j = 0; j < GATE_LOADS; j++) {
                sum[j] = fmaf(gain, plane[first + j * T], gates.skip_last ? 0.0f : added[j]);
                sum[j] = (gates.target.data ? sum[j] * sample_of(g[j]) : sum[j]) + (gates.skip_last ? added[j] : 0.0f);
            }
            if (target.accumulate) {
                load_stored<T>(x, (const typename std::remove_pointer<pointer>::type *)y, first, lo, valued);
#pragma unroll
                for (int j = 0; j < GATE_LOADS; j++)
                    sum[j] += sample_of(x[j]);
            }
#pragma unroll
            for (int j = 0; j < GATE_LOADS; j++) {
                const int m = first + j * T;
                store_if(y, m, m < valued ? sum[j] : 0.0f, m >= lo && m < hi);
            }
        }
    });
}

#endif
