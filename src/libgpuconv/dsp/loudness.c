/* Loudness of samples. libebur128 takes interleaved ones, which are made a piece at a time. */
#include "loudness.h"

#include "libgpuconv/core/error.h"

#include <ebur128.h>
#include <math.h>
#include <stdlib.h>

enum { PIECE = 4096, MAX_RATE = 2822400, MIN_RATE = 16, MAX_CHANNELS = 64 /* what libebur128 supports */ };

/* Feeds all samples. @return false: libebur128 failed */
static bool feed(ebur128_state *state, const float *const *channel, int64_t stride, int64_t frames, float *piece) {
    const int channels = (int)state->channels;
    for (int64_t at = 0; at < frames; at += PIECE) {
        const int64_t n = frames - at < PIECE ? frames - at : PIECE;
        for (int c = 0; c < channels; c++)
            for (int64_t i = 0; i < n; i++)
                piece[i * channels + c] = channel[c][(at + i) * stride];
        if (ebur128_add_frames_float(state, piece, (size_t)n) != EBUR128_SUCCESS)
            return false;
    }
    return true;
}

bool gc_loudness(const float *const *channel, int64_t stride, int channels, int64_t frames, double rate, double *lufs) {
    *lufs = -HUGE_VAL;
    if (!(rate >= MIN_RATE && rate <= MAX_RATE) || channels < 1 || channels > MAX_CHANNELS)
        return false;
    ebur128_state *state = ebur128_init((unsigned)channels, (unsigned long)rate, EBUR128_MODE_I);
    float *piece = state ? malloc((size_t)channels * PIECE * sizeof *piece) : NULL;
    bool measured =
        piece && feed(state, channel, stride, frames, piece) && ebur128_loudness_global(state, lufs) == EBUR128_SUCCESS;
    free(piece);
    if (state)
        ebur128_destroy(&state);
    return measured;
}

gpuconv_status gc_loudness_power(const double *samples, int64_t n, double rate, double *power, gpuconv_error *error) {
    ebur128_state *state = ebur128_init(1, (unsigned long)rate, EBUR128_MODE_I);
    double loudness = -HUGE_VAL;
    const bool measured = state && ebur128_add_frames_double(state, samples, (size_t)n) == EBUR128_SUCCESS &&
                          ebur128_loudness_global(state, &loudness) == EBUR128_SUCCESS;
    if (state)
        ebur128_destroy(&state);
    *power = loudness > -HUGE_VAL ? pow(10, loudness / 10) : 0;
    return measured ? GPUCONV_OK : gc_fail_memory(error, "the response's loudness");
}
