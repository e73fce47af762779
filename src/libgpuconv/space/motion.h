/* The state of moving sources, shared by the files that make it (motion.c), render it (motion_render.c, motion_gpu.c),
 * and run it for a sound device (motion_live.c). */
#ifndef GC_SPACE_MOTION_H
#define GC_SPACE_MOTION_H

#include "libgpuconv/conv/backend.h"
#include "libgpuconv/core/pool.h"
#include "libgpuconv/dsp/delay_line.h"
#include "libgpuconv/dsp/fft.h"
#include "libgpuconv/dsp/simd.h"
#include "libgpuconv/ir/ambisonic.h"
#include "libgpuconv/ir/sofa.h"

#include <stdatomic.h>

/* Channels whose spectra one thread adds; the sums of groups are added in order, so that the result does not depend on
 * the number of threads. */
enum { GC_MOTION_GROUP = 8 };

typedef struct gc_motion_live gc_motion_live;
typedef struct gc_motion_room gc_motion_room;

struct gpuconv_motion {
    const gpuconv_sofa *set; /* NULL: in a room */
    gc_motion_room *room;    /* NULL: before the receivers of a set */
    const gpuconv_path *path;
    gpuconv_motion_config config;
    int channels, receivers, groups;
    int each;                  /* receivers that share a delay: in a room the channels of one, else 1 */
    int64_t kept;              /* moments of a chunk that the next one needs: 1, in a room 3 */
    double rate, speed;        /* Hz; of sound, m/s */
    int64_t lead;              /* frames of the set before time zero */
    int64_t hop, hops;         /* frames of a hop, hops of a chunk */
    int64_t taps, onset;       /* of the responses without delay, and where their delay ends */
    int64_t base, span;        /* frames that are taken off every delay; frames of the longest one that remains */
    int64_t past;              /* frames before a chunk that delays and their filters reach back to */
    int64_t before;            /* of them in `input`: all; on a GPU none, which keeps them */
    int64_t skip, tail;        /* frames before time zero, and behind the input */
    _Atomic int64_t ahead;     /* frames by which the path is ahead of the input */
    _Atomic bool head_rotated; /* by these angles */
    _Atomic double angle[3];
    _Atomic(double) *placed; /* per channel: where it is instead of on the path; NaN: it follows that */

    /* On a GPU: then there are no spectra here. */
    const gc_backend *backend; /* NULL: on the CPU */
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
    int responses;    /* measurements; with ambisonics, channels; in a room, moments x channels */
    float **spectrum; /* per response: those of its receivers; NULL: not made yet */
    float *energy;    /* per response and receiver */

    /* Of a chunk. Moments are the beginnings of its hops, and its end; in a room also one before and one behind. */
    gc_blend *blend;      /* moments x channels */
    double *delay;        /* moments x channels x receivers */
    int *slot;            /* in a room: moments x channels: number of the spectrum of the response */
    double *turn;         /* ambisonics: moments x channels x channels */
    float *input;         /* channels x width: chunks behind the frames that delays reach back to */
    int64_t width, place; /* frames of a channel; those before the chunk that is filled, without `before` */
    float *scratch;       /* per thread */
    float *sums;          /* hops x groups x receivers spectra */
    float *output;        /* receivers x (chunk + taps): the chunk and its tail */

    float *ready;                 /* receivers x capacity: finished frames that were not fetched yet */
    int64_t capacity, begin, end; /* of `ready` */
    int64_t fed, filled;          /* frames since the beginning, and of them in the chunk */
    int64_t chunk;                /* number of the chunk that is filled */
    int64_t placed_chunks;        /* chunks whose places were found */
    int64_t finished;             /* frames that were made ready */
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

/* Finds the places of all channels over the chunk that is filled, and in a room their responses, if they were not found
 * yet: they do not depend on the input. Returns MEMORY, CANCELLED. */
gpuconv_status gc_motion_find_places(gpuconv_motion *m, gpuconv_error *error);

/* Returns the time of a moment of the chunk that is filled, at which the sound arrives, in seconds. */
double gc_motion_time(gpuconv_motion *m, int64_t moment);

/* Returns how the head is turned at a time. */
gc_rotation gc_motion_head(gpuconv_motion *m, double seconds);

/* Finds the place of a channel for a time at which its sound arrives at `ear`: with the Doppler effect that where the
 * sound left, found by iteration. Returns the delay of the distance in frames. */
double gc_motion_find_place(const gpuconv_motion *m, double time, int channel, const double ear[3], double at[3]);

/* Adds the chunk that is filled to the output. Returns MEMORY, CANCELLED. */
gpuconv_status gc_motion_render(gpuconv_motion *m, gpuconv_error *error);

void gc_motion_close_gpu(gpuconv_motion *m);

/* ---- In a room (motion_room.c) ----------------------------------------------------------------------------------- */

/* Makes m->room, and finds rate, receivers and paths. Returns the errors of gpuconv_motion_new_in_room. */
gpuconv_status gc_motion_room_open(gpuconv_motion *m, const gpuconv_rooms_job *job, const gpuconv_path *receiver_path,
                                   gpuconv_error *error);

/* Finds the lengths. Returns MEMORY. */
gpuconv_status gc_motion_room_measure(gpuconv_motion *m, gpuconv_error *error);

/* Allocates, and simulates a response, after gc_motion_allocate. Returns ARGUMENT (of the room), MEMORY, CANCELLED. */
gpuconv_status gc_motion_room_begin(gpuconv_motion *m, gpuconv_error *error);

/* Finds the places of all channels over the chunk that is filled, and makes the spectra of their responses. Returns
 * MEMORY, CANCELLED. */
gpuconv_status gc_motion_room_find(gpuconv_motion *m, gpuconv_error *error);

/* Returns the coordinate within the room that is nearest to one. */
double gc_motion_room_within(const gc_motion_room *r, int axis, double at);

void gc_motion_room_free(gc_motion_room *r);

/* Frees a motion that no sound device uses. */
void gc_motion_free(gpuconv_motion *m);

/* Blocks until all frames that gpuconv_motion_process was given are rendered, on a GPU all whole hops. For tests. */
void gc_motion_settle(const gpuconv_motion *m);

#endif
