/* The vector loops of pcm_kernels.c, which pcm.c calls. */
#ifndef GC_DSP_PCM_KERNELS_H
#define GC_DSP_PCM_KERNELS_H

#include "pcm.h"

#include <stdint.h>

/* Do what gc_pcm_unpack and gc_pcm_pack do, for one or two channels and whole vectors only.
 * @return the number of frames that were converted; the caller converts the rest */
typedef int64_t gc_pcm_unpacker(gc_pcm format, const void *raw, int channels, int64_t frames, float *const *planar,
                                int64_t at);
typedef int64_t gc_pcm_packer(gc_pcm format, const float *const *planar, int64_t at, int channels, int64_t frames,
                              void *raw, gc_pcm_overs *overs);

#endif
