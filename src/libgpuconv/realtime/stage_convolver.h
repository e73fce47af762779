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
 *
 * The last stage may be the tail, convolved on a GPU through a bank: a thread of its own passes one block of input
 * after another to it. The tail begins GC_GPU_TAIL_OFFSET taps into the response. That leaves time for a block's way to
 * the GPU and back, and for a short stall of the driver. The callback never waits for the tail thread (unless
 * freewheeling). Blocks have absolute numbers, so output that comes too late is dropped and never played at another
 * place.
 */
#ifndef GC_REALTIME_STAGE_CONVOLVER_H
#define GC_REALTIME_STAGE_CONVOLVER_H

#include "libgpuconv/conv/backend.h"
#include "libgpuconv/conv/cpu/section.h"
#include "libgpuconv/conv/plan.h"
#include "libgpuconv/dsp/simd.h"

#include <stdatomic.h>

enum {
    GC_RT_CHUNK = 1024,       /* most frames of a call */
    GC_GPU_TAIL_OFFSET = 4096 /* taps before the tail; a block may be this late, less its own length: 75 ms at 48 kHz */
};

typedef struct gc_gpu_tail gc_gpu_tail;

/* The GPU that computes tails. */
typedef struct gc_gpu_target {
    const gc_backend *backend; /* NULL: no GPU, the CPU computes everything */
    int device;                /* -1: the one with the most multiprocessors */
} gc_gpu_target;

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

    /* Used by stage_convolver.c alone: */
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

/* Returns whether the bank failed or was late for too long. The tail then stays silent, and the CPU has to replace it.
 * For any thread. */
bool gc_gpu_tail_has_failed(const gc_gpu_tail *tail);

#endif
