/* What the vector loops of pcm_kernels.c offer to pcm.c. */
#ifndef GC_DSP_PCM_KERNELS_H
#define GC_DSP_PCM_KERNELS_H

#include "pcm.h"

#include <stdint.h>

/* gc_pcm_unpack and gc_pcm_pack for one or two channels, as far as whole vectors go: how many frames were done. */
typedef int64_t gc_pcm_unpacker(gc_pcm format, const void *raw, int channels, int64_t frames, float *const *planar,
                                int64_t at);
typedef int64_t gc_pcm_packer(gc_pcm format, const float *const *planar, int64_t at, int channels, int64_t frames,
                              void *raw, gc_pcm_overs *overs);

#endif
