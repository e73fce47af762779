/*
 * The real-time convolution of one impulse response, without added latency.
 *
 *      audio callback   writes the input into rings, convolves the head directly, adds the output of the stages that is
 *                       ready, and publishes every block of input that is complete
 *      worker threads   claim published blocks and compute the output that the callback needs one hop later
 *
 * Callback and workers share three counters of blocks per stage: `published` (input complete), `claimed` (a thread
 * computes it) and `done` (output ready). A thread claims block `done` by raising `claimed` from `done` to `done` + 1,
 * so the blocks of a stage are computed one at a time and in order. The callback takes no lock, allocates nothing and
 * makes no system call.
 */
#ifndef GC_REALTIME_STAGE_CONVOLVER_H
#define GC_REALTIME_STAGE_CONVOLVER_H

#include "gpu_tail.h"
#include "libgpuconv/conv/cpu/section.h"
#include "libgpuconv/conv/plan.h"
#include "libgpuconv/dsp/simd.h"

#include <stdatomic.h>

enum { GC_RT_CHUNK = 1024 /* most frames of a call */ };

/* The calls that a convolver serves. */
typedef struct gc_rt_calls {
    int64_t block; /* frames of the longest call that has to be served in time */
    double rate;   /* frames a second */
    double share;  /* of the time that the callback may spend on a stage: 1, or less for one of many convolvers */
} gc_rt_calls;

/* A level of the response and its blocks of output. */
typedef struct gc_rt_stage {
    gc_level level;
    gc_convolver *section;                    /* of one block at a time; NULL: the stage is the tail on a GPU */
    float **channel;                          /* of the block being computed: where each input and each output begins */
    int64_t blocks;                           /* of output that are kept, a power of two: block t at index t % blocks */
    float *out;                               /* outputs x blocks x hop */
    _Atomic int64_t published, claimed, done; /* counts of blocks: see above */
} gc_rt_stage;

/* The terms of the exchange for which a convolver is made. */
typedef struct gc_rt_terms {
    int64_t fade;     /* frames */
    int64_t response; /* number of the whole response that it plays, or whose routes it changes */
} gc_rt_terms;

typedef struct gc_rt_convolver {
    gpuconv_ir *response; /* the whole response */
    gc_choice plan;       /* level 0 is the head, the others are stages */
    gc_rt_terms terms;    /* written by the owner */
    int *channel;         /* the caller's channel of each input, then of each output: at first 0, 1, ... for both. The
                             owner may write it before the first block */
    gc_gpu_tail *tail;    /* the tail, on a GPU; NULL: the CPU convolves everything */

    /* Used by stage_convolver.c and gpu_tail.c alone: */
    gpuconv_ir *ir; /* the part of the response that the CPU convolves */
    int64_t zeros;  /* its taps of silence at the beginning, which the direct convolution skips */
    int stages;     /* of the CPU; the tail is the one behind them */
    gc_rt_stage stage[GC_CPU_LEVELS_MAX];
    gc_rt_stage head; /* in blocks; without a section it is always direct */
    const gc_simd *simd;
    int64_t now;    /* frames processed so far */
    int64_t ring;   /* frames of the input ring, a power of two */
    int64_t mirror; /* frames of the ring's beginning that are repeated behind its end, so that reads need not wrap */
    float *input;   /* inputs x (ring + mirror) */
    float *silence; /* GC_RT_CHUNK zeros */
} gc_rt_convolver;

/* Returns the input ring of one channel. */
static inline float *gc_rt_input_ring(const gc_rt_convolver *convolver, int input) {
    return convolver->input + input * (convolver->ring + convolver->mirror);
}

/* Returns block t of an output of a stage. */
static inline float *gc_rt_block_of(const gc_rt_stage *stage, int output, int64_t t) {
    return stage->out + (output * stage->blocks + (t & (stage->blocks - 1))) * stage->level.hop;
}

/* Prepares a convolver. Returns DEVICE, MEMORY. */
gpuconv_status gc_rt_convolver_new(const gpuconv_ir *ir, const gc_rt_calls *calls, const gc_gpu_target *gpu,
                                   gc_rt_convolver **convolver, gpuconv_error *error);
void gc_rt_convolver_free(gc_rt_convolver *convolver);

/* Forgets all input: the next frame is frame 0. No other thread may use the convolver. */
void gc_rt_convolver_reset(gc_rt_convolver *convolver);

/* Convolves 1 .. GC_RT_CHUNK frames and adds the result to `out`. `in` NULL stands for silence. A block that is
 * not ready is left out and counted; with `freewheel` it is computed or waited for here. Returns the count. */
int64_t gc_rt_convolver_process(gc_rt_convolver *convolver, const float *const *in, float *const *out, int64_t frames,
                                bool freewheel);

/* Computes one published block of the stage with the shortest hop that has one. Returns false if no block waits. For
 * worker threads. */
bool gc_rt_convolver_work(gc_rt_convolver *convolver);

#endif
