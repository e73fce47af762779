/* Mixing in memory: sums convolutions, adds noise at an SNR and sets the level of an output. */
#ifndef GPUCONV_BATCH_MIX_H
#define GPUCONV_BATCH_MIX_H

#include "gpuconv.h"
#include "recipe.h"

/* Planar samples, owned. */
typedef struct gc_mix {
    float **row; /* one for each channel */
    int channels, rate;
    int64_t frames;
} gc_mix;

/* Allocates silence. @return MEMORY */
gpuconv_status gc_mix_new(gc_mix *mix, int channels, int64_t frames, int rate, gpuconv_error *error);
void gc_mix_free(gc_mix *mix);

/* Adds `frames` frames of row[channel] from frame `at` of the mix on; frames behind its end are left out. */
void gc_mix_add(gc_mix *mix, const float *const *row, int64_t frames, int64_t at);

/* Adds noise from its frame `from` on, repeated as often as needed, such that the mean power of the mix before is `snr`
 * decibels above that of the noise. A single channel is added to all. *silent: mix or noise is silent, and nothing was
 * added. Fails with FORMAT if the channels do not fit. */
gpuconv_status gc_mix_add_noise(gc_mix *mix, const gpuconv_ir *noise, int64_t from, double snr, bool *silent,
                                gpuconv_error *error);

/* Returns the factor that brings the mix to a level; 1 for GC_LEVEL_NONE or silence. `input_power`: mean power of the
 * input, for GC_LEVEL_INPUT. Fails with FORMAT if there is no loudness, MEMORY. */
gpuconv_status gc_mix_find_level(const gc_mix *mix, gc_level_kind kind, double decibels, double input_power,
                                 double *factor, gpuconv_error *error);
void gc_mix_scale(gc_mix *mix, double factor);

/* Returns the number of frames up to the last one, from frame `from` on, in which a channel reaches `floor`; at least
 * `from`. */
int64_t gc_audible_frames(const float *const *row, int channels, int64_t frames, int64_t from, double floor);

/* Returns the mean power of planar samples. */
double gc_mean_power(const float *const *row, int channels, int64_t frames);

#endif
