/* Running an engine from one end to the other, through guarded buffers, in whatever blocks a test wants. */
#ifndef TESTS_HARNESS_H
#define TESTS_HARNESS_H

#include "check.h"
#include "gpuconv.h"
#include "oracle.h"

/* A routed response of `channels` random channels that decay a little, for `inputs` channels; *taps keeps them. */
gpuconv_ir *harness_response(oracle_random *random, int channels, int inputs, int64_t frames, guarded *taps);

/* A response from given taps, routed; fails the test when the library refuses. */
gpuconv_ir *harness_route(const guarded *taps, int inputs);

gpuconv_plan *harness_plan(const gpuconv_ir *ir, gpuconv_algorithm algorithm, int64_t frames, int threads);

/* Block lengths: `fixed` > 0 for all blocks, else random ones from 0 to -fixed. */
typedef struct harness_split {
    int64_t fixed;
    oracle_random random;
} harness_split;

/* Feeds all of `in` to a fresh or reset engine and drains it. The result has N + M - 1 frames in guards; any frame too
 * many or too few fails the test. */
guarded harness_run(gpuconv_engine *engine, const guarded *in, int outputs, int64_t taps, harness_split split);

/* The same with an engine made for the occasion, in one block. */
guarded harness_convolve(const gpuconv_plan *plan, const gpuconv_ir *ir, const guarded *in);

/* What it must be: N + M - 1 doubles a channel, to be freed. */
double *harness_expected(const guarded *taps, const guarded *in, int *outputs);

/* The algorithms there are. */
extern const gpuconv_algorithm harness_algorithms[3];

/* What the CPU's engine makes of it offline. */
guarded harness_offline(const gpuconv_ir *ir, const guarded *in);

/* Plays all of `in` in calls of `block` frames, or of changing ones for 0; the result has its length. *inside (may be
 * NULL) is true during the calls. */
guarded harness_play(gpuconv_realtime *rt, const guarded *in, int outputs, int block, bool *inside);

/* Error of a against b in dB, over the first frames of all channels. */
double harness_distance(const guarded *a, const guarded *b, int64_t frames);

#endif
