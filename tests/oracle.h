/*
 * The oracle: linear convolution by its definition in double precision, and the comparison of results with it. It
 * shares no code with src/ and includes nothing from there.
 *
 * Outputs lie in guarded buffers: every channel is filled with NaN and lies between two bands of a known bit pattern,
 * so that missing frames and writes outside the channel are both detected.
 */
#ifndef TESTS_ORACLE_H
#define TESTS_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

/* ---- Random numbers with a fixed seed --------------------------------------------------------------------------- */

typedef struct oracle_random {
    uint64_t state;
} oracle_random;

uint64_t oracle_bits(oracle_random *random);
int64_t oracle_below(oracle_random *random, int64_t limit); /* 0 .. limit - 1 */
float oracle_uniform(oracle_random *random);                /* -1 .. 1 */
void oracle_fill(oracle_random *random, float *to, int64_t n);

/* ---- Guarded planar buffers ------------------------------------------------------------------------------------- */

enum { ORACLE_BAND = 64 }; /* floats before and after every channel */

typedef struct guarded {
    int channels;
    int64_t frames;
    float **channel; /* frames of each channel, between the bands */
    float *memory;
} guarded;

/* Returns a buffer with all frames NaN. Exits the process if memory is exhausted. */
guarded guarded_new(int channels, int64_t frames);
guarded guarded_random(oracle_random *random, int channels, int64_t frames);
void guarded_poison(guarded *g);
bool guarded_intact(const guarded *g);
void guarded_free(guarded *g);

/* ---- Convolution ------------------------------------------------------------------------------------------------ */

typedef struct oracle_route {
    int input, output;
    const float *taps;
} oracle_route;

/* Computes y[o][n], the sum over all routes to output o and over k of taps[k] * in[input][n - k], for
 * n < frames + taps - 1. `out` has that many doubles per channel, channel after channel. */
void oracle_convolve(const float *const *in, int64_t frames, const oracle_route *route, int routes, int64_t taps,
                     int outputs, double *out);

/* Adds `gain` times a sinc around a place between frames, under a Hann window of 24 frames to each side. */
void oracle_add_sinc(double at, double gain, int64_t frames, double *sum);

/* Returns frame `at` of the convolution for one route. */
double oracle_frame(const float *in, int64_t frames, const float *taps, int64_t count, int64_t at);

/* Fills `route`, which has room for `channels` x `inputs`, with the routes that the documentation gives for a response
 * of `channels` channels and an input of `inputs` channels. Returns their number, or 0 if they do not fit. */
int oracle_routes(const float *const *response, int channels, int inputs, oracle_route *route, int *outputs);

/* ---- Comparison ------------------------------------------------------------------------------------------------- */

typedef struct oracle_error {
    double rms;  /* dB relative to the expected signal; -infinity without any error */
    double peak; /* largest error relative to the largest expected magnitude, linear */
} oracle_error;

oracle_error oracle_compare(const float *got, const double *want, int64_t n);

/* Checks in this order: lengths, NaN and infinity, guard bands, and the error of each channel (RMS at most `bound` dB,
 * peak at most four times that). Only the first `got_frames` frames of `got` count. Prints the first failure to stderr
 * and returns false. */
bool oracle_agrees(const char *what, const guarded *got, int64_t got_frames, const double *want, int64_t want_frames,
                   double bound);

/* Returns whether the frames are equal bit for bit and finite; prints the first difference to stderr. */
bool oracle_identical(const char *what, const guarded *a, int64_t a_frames, const guarded *b, int64_t b_frames);

#endif
