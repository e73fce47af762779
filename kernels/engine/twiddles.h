/* The turns that tree.cuh's transforms look up, made on the host. */
#ifndef GC_KERNELS_TURNS_H
#define GC_KERNELS_TURNS_H

#include "kernels/device/tree.cuh"

#include <cmath>

/* The fraction 0 <= v < 1 whose binary digits are those of j, `bits` of them, the last one first. */
inline double fraction_of(int j, int bits) {
    return (double)reversed(j, bits) / (double)(1 << bits);
}

inline float2 turn_of(double half_turns) {
    const double pi = 3.14159265358979323846;
    return make_float2((float)cos(pi * half_turns), (float)tan(pi * half_turns));
}

/* For down_node<levels> below each of 2^depth nodes: 2^depth x 2^levels / 2 entries, [entry][node]. The root is x^N -
 * e^(2 pi i root). */
inline float2 *fill_down(float2 *to, int depth, int levels, double root = 0) {
    int nodes = 1 << depth;
    for (int l = 0; l < levels; l++)
        for (int j = 0; j < 1 << l; j += 2)
            for (int node = 0; node < nodes; node++)
                to[((l ? 1 << l : 0) / 2 + j / 2) * nodes + node] =
                    turn_of(fraction_of(j, l) + (fraction_of(node, depth) + root / nodes) / (1 << l));
    return to + nodes * (1 << levels) / 2;
}

/* For up_blocks<levels> of blocks of `places`: [entry][place]. */
inline float2 *fill_up(float2 *to, int levels, int places) {
    for (int s = 0; s < levels; s++)
        for (int q = 0; q < (s ? 1 << s : 2) / 2; q++)
            for (int n = 0; n < places; n++)
                to[((s ? 1 << s : 0) / 2 + q) * places + n] = turn_of(((double)n / places + q) / (1 << s));
    return to + places * (1 << levels) / 2;
}

/* unfolding<points>(t) of folded.cuh, 0 <= t < places. */
inline void fill_unfolding(float2 *to, int places, int points) {
    const double pi = 3.14159265358979323846;
    for (int t = 0; t < places; t++)
        to[t] = make_float2((float)-tan(pi * t / (4.0 * points)), (float)-sin(pi * t / (2.0 * points)));
}

#endif
