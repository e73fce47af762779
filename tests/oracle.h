/*
 * The oracle: linear convolution as its definition is written, in double precision, and the one way in which results
 * are held against it. It shares no line with src/ and includes nothing of it.
 *
 * Outputs live in guarded buffers: every channel is poisoned with NaN and stands between two bands of a known bit
 * pattern, so that a frame never written and a frame written where none belongs both show.
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

enum { ORACLE_BAND = 64 }; /* floats before and behind every channel */

typedef struct guarded {
    int channels;
    int64_t frames;
    float **channel; /* what a test hands on */
    float *memory;
} guarded;

/* All frames NaN, bands intact. Ends the process when there is no memory: a test without it proves nothing. */
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

/* y[o][n] = sum over routes to o, over k, of taps[k] in[input][n - k], for n < frames + taps - 1. `out` has that many
 * doubles a channel, one channel after another. */
void oracle_convolve(const float *const *in, int64_t frames, const oracle_route *route, int routes, int64_t taps,
                     int outputs, double *out);

/* One frame of it, for one route. */
double oracle_frame(const float *in, int64_t frames, const float *taps, int64_t count, int64_t at);

/* The routes of a response with `channels` channels on `inputs` channels, as the documentation words it; their number,
 * or 0 when they do not fit. `route` has room for `channels` x `inputs`. */
int oracle_routes(const float *const *response, int channels, int inputs, oracle_route *route, int *outputs);

/* ---- Holding a result against it -------------------------------------------------------------------------------- */

typedef struct oracle_error {
    double rms;  /* dB: error against what is wanted; -infinity for no error at all */
    double peak; /* largest error against the largest wanted magnitude, linear */
} oracle_error;

oracle_error oracle_compare(const float *got, const double *want, int64_t n);

/* In this order: lengths, NaN and infinity, guard bands, error of each channel (rms <= bound dB, peak <= four times
 * that). Says on stderr what does not hold. `got` may be longer than what counts: got_frames do. */
bool oracle_agrees(const char *what, const guarded *got, int64_t got_frames, const double *want, int64_t want_frames,
                   double bound);

/* The same frames, bit for bit; says where not. */
bool oracle_identical(const char *what, const guarded *a, int64_t a_frames, const guarded *b, int64_t b_frames);

#endif
