/* Writes, on the host, the twiddle tables that the transforms of fft_fma.cuh read. A twiddle w = c (1 + i t) is stored
 * as (c, t), computed in double precision and rounded once. */
#ifndef GC_KERNELS_TWIDDLES_H
#define GC_KERNELS_TWIDDLES_H

#include "kernels/device/fft_fma.cuh"

#include <cmath>

/* Returns the fraction 0 <= v < 1 whose binary digits are the `bits` bits of j in reverse order. */
inline double bit_reversed_fraction(int j, int bits) {
    return (double)bit_reversed(j, bits) / (double)(1 << bits);
}

/* Returns the twiddle of the angle pi * half_revolutions. */
inline float2 twiddle_of(double half_revolutions) {
    const double pi = 3.14159265358979323846;
    return make_float2((float)cos(pi * half_revolutions), (float)tan(pi * half_revolutions));
}

/* Writes the table for forward_node<levels> below each of 2^depth nodes: 2^levels / 2 x 2^depth entries, [entry][node].
 * The root of the tree is x^N - e^(2 pi i root). Returns the end of the table. */
inline float2 *write_forward_twiddles(float2 *to, int depth, int levels, double root = 0) {
    int nodes = 1 << depth;
    for (int l = 0; l < levels; l++)
        for (int j = 0; j < 1 << l; j += 2)
            for (int node = 0; node < nodes; node++)
                to[((l ? 1 << l : 0) / 2 + j / 2) * nodes + node] = twiddle_of(
                    bit_reversed_fraction(j, l) + (bit_reversed_fraction(node, depth) + root / nodes) / (1 << l));
    return to + nodes * (1 << levels) / 2;
}

/* Writes the table for inverse_blocks<levels> of blocks of `points`: 2^levels / 2 x points entries, [entry][index].
 * Returns the end of the table. */
inline float2 *write_inverse_twiddles(float2 *to, int levels, int points) {
    for (int s = 0; s < levels; s++)
        for (int q = 0; q < (s ? 1 << s : 2) / 2; q++)
            for (int n = 0; n < points; n++)
                to[((s ? 1 << s : 0) / 2 + q) * points + n] = twiddle_of(((double)n / points + q) / (1 << s));
    return to + points * (1 << levels) / 2;
}

/* Writes untwist_angle<points>(t) of right_angle.cuh for 0 <= t < count. */
inline void write_untwist_angles(float2 *to, int count, int points) {
    const double pi = 3.14159265358979323846;
    for (int t = 0; t < count; t++)
        to[t] = make_float2((float)-tan(pi * t / (4.0 * points)), (float)-sin(pi * t / (2.0 * points)));
}

/* Writes e^(2 pi i t v) for 0 <= t < count. */
inline void write_powers(float2 *to, int count, double v) {
    const double pi = 3.14159265358979323846;
    for (int t = 0; t < count; t++)
        to[t] = make_float2((float)cos(2 * pi * t * v), (float)sin(2 * pi * t * v));
}

/* Writes the tables of F, a twisted_fft<levels>. */
template <typename F, int LEVELS> void write_twisted_tables(float2 *to) {
    for (int i = 0; i < 5; i++)
        write_powers(to + F::FACTORS + i * F::T, F::T, 0.5 / (1 << i) / F::T);
    write_powers(to + F::BASE, F::T, 0.25 / 32 / F::T);
    write_forward_twiddles(to + F::FORWARD, 5, LEVELS);
    write_inverse_twiddles(to + F::INVERSE, 5, F::GROUP);
}

#endif
