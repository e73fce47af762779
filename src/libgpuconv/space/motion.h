/* The state of moving sources, shared by the files that make it (motion.c), render it (motion_render.c, motion_gpu.c),
 * and run it for a sound device (motion_live.c). */
#ifndef GC_SPACE_MOTION_H
#define GC_SPACE_MOTION_H

#include "libgpuconv/conv/backend.h"
#include "libgpuconv/core/pool.h"
#include "libgpuconv/dsp/delay_line.h"
#include "libgpuconv/dsp/fft.h"
#include "libgpuconv/dsp/simd.h"
#include "libgpuconv/ir/sofa.h"

#include <stdatomic.h>

/* Channels whose spectra one thread adds; the sums of groups are added in order, so that the result does not depend on
 * the number of threads. */
enum { GC_MOTION_GROUP = 8 };

typedef struct gc_motion_live gc_motion_live;

struct gpuconv_motion {
    const gpuconv_sofa *set;
    const gpuconv_path *path;
    gpuconv_motion_config config;
    int channels, receivers, groups;
    int64_t hop, hops;     /* frames of a hop, hops of a chunk */
    int64_t taps, onset;   /* of the responses without delay, and where their delay ends */
    int64_t base, span;    /* frames that are taken off every delay; frames of the longest one that remains */
    int64_t past;          /* frames before a chunk that delays and their filters reach back to */
    int64_t before;        /* of them in `input`: all; on a GPU none, which keeps them */
    int64_t skip, tail;    /* frames before time zero, and behind the input */
    _Atomic int64_t ahead; /* frames by which the path is ahead of the input */
    _Atomic bool turned;   /* the head is turned by these angles */
    _Atomic double angle[3];
    _Atomic(double) *placed; /* per channel: where it is instead of on the path; NaN: it follows that */

    /* On a GPU: then there are no spectra here. */
    const gc_motion_backend *backend; /* NULL: on the CPU */
    gc_motion_gpu *gpu;
    gc_motion_blend *mixture; /* moments x channels: those of `blend` */
    float *pinned;            /* the memory of `input`, which a sound device replaces by its own */
    char plan[160];

    /* Filters. The spectrum of `points` frames has `floats` floats; those of a response are scaled for the inverse
     * transform. */
    const gc_simd *simd;
    gc_delay_line *line;
    gc_fft *fft;
    int64_t points, floats;
    gc_pool *pool;
    int responses;    /* measurements; with ambisonics, channels */
    float **spectrum; /* per response: those of its receivers; NULL: not made yet */
    float *energy;    /* per response and receiver */

    /* Of a chunk. Moments are the beginnings of its hops, and its end. */
    gc_blend *blend;      /* moments x channels */
    double *delay;        /* moments x channels x receivers */
    double *turn;         /* ambisonics: moments x channels x channels */
    float *input;         /* channels x width: chunks behind the frames that delays reach back to */
    int64_t width, place; /* frames of a channel; those before the chunk that is filled, without `before` */
    float *scratch;       /* per thread */
    float *sums;          /* hops x groups x receivers spectra */
    float *output;        /* receivers x (chunk + taps): the chunk, and what rings on */

    float *ready;             /* receivers x room: finished frames that were not fetched yet */
    int64_t room, begin, end; /* of `ready` */
    int64_t fed, filled;      /* frames since the beginning, and of them in the chunk */
    int64_t chunk;            /* number of the chunk that is filled */
    int64_t placed_chunks;    /* chunks whose places were found */
    int64_t finished;         /* frames that were made ready */
    bool ended;

    gc_motion_live *live; /* NULL: feed and fetch */
};

static inline int64_t gc_motion_chunk(const gpuconv_motion *m) {
    return m->hop * m->hops;
}

/* Returns a channel of the input at the beginning of the chunk that is filled. */
static inline float *gc_motion_input(const gpuconv_motion *m, int64_t channel) {
    return m->input + channel * m->width + m->before + m->place;
}

/* Allocates what rendering needs, once lengths and hops are known. Returns MEMORY. */
gpuconv_status gc_motion_allocate(gpuconv_motion *m, gpuconv_error *error);

/* Makes the spectra of a response, if they are missing. Returns MEMORY, CANCELLED. */
gpuconv_status gc_motion_make_spectra(gpuconv_motion *m, int response, gpuconv_error *error);

/* Finds the places of all channels over the chunk that is filled, if they were not found yet: they do not depend on the
 * input. */
void gc_motion_find_places(gpuconv_motion *m);

/* Adds the chunk that is filled to the output. Returns MEMORY, CANCELLED. */
gpuconv_status gc_motion_render(gpuconv_motion *m, gpuconv_error *error);

void gc_motion_close_gpu(gpuconv_motion *m);

/* Frees a motion that no sound device uses. */
void gc_motion_free(gpuconv_motion *m);

/* Blocks until all frames that gpuconv_motion_process was given are rendered, on a GPU all whole hops. For tests. */
void gc_motion_settle(const gpuconv_motion *m);

#endif
