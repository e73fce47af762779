/* Loudness by libebur128. */
#include "loudness.h"

#include <ebur128.h>
#include <math.h>
#include <stddef.h>

bool gc_loudness(const float *samples, int channels, int64_t frames, double rate, double *lufs) {
    *lufs = -HUGE_VAL;
    if (!(rate >= 16 && rate <= 2822400) || channels < 1 || channels > 64) /* what libebur128 supports */
        return false;
    ebur128_state *state = ebur128_init((unsigned)channels, (unsigned long)rate, EBUR128_MODE_I);
    bool good = state && ebur128_add_frames_float(state, samples, (size_t)frames) == EBUR128_SUCCESS &&
                ebur128_loudness_global(state, lufs) == EBUR128_SUCCESS;
    if (state)
        ebur128_destroy(&state);
    return good;
}
