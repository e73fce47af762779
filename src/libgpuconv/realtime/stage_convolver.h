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

#include "libgpuconv/engine/bank.h"
#include "stage_schedule.h"

typedef struct gc_rt_convolver gc_rt_convolver;

/* The GPU that computes tails. */
typedef struct gc_gpu_target {
    const gc_bank_backend *backend; /* NULL: no GPU, the CPU computes everything */
    int device;                     /* -1: the one with the most multiprocessors */
} gc_gpu_target;

/* Prepares a convolver. Returns DEVICE, MEMORY. */
gpuconv_status gc_rt_convolver_new(const gpuconv_ir *ir, const gc_rt_calls *calls, const gc_gpu_target *gpu,
                                   gc_rt_convolver **convolver, gpuconv_error *error);
void gc_rt_convolver_free(gc_rt_convolver *convolver);

/* Forgets all input: the next frame is frame 0. No other thread may use the convolver. */
void gc_rt_convolver_reset(gc_rt_convolver *convolver);

/* Terms of the exchange for which a convolver is made. */
typedef struct gc_rt_terms {
    int64_t fade;     /* frames */
    int64_t response; /* number of the whole response that it plays, or whose routes it changes */
} gc_rt_terms;

/* Returns the terms, which the owner of the convolver may write. */
gc_rt_terms *gc_rt_convolver_terms(gc_rt_convolver *convolver);

/* Numbers the caller's channels from which the response's inputs are read and to which its outputs are added; without a
 * map, input i is the caller's channel i, and so is output i. Before the first call of gc_rt_convolver_process. */
void gc_rt_convolver_map(gc_rt_convolver *convolver, const int *inputs, const int *outputs);

/* Returns the numbers of the caller's channels that the `*count` inputs are. */
const int *gc_rt_convolver_inputs(const gc_rt_convolver *convolver, int *count);

const gc_rt_schedule *gc_rt_convolver_schedule(const gc_rt_convolver *convolver);
const gpuconv_ir *gc_rt_convolver_ir(const gc_rt_convolver *convolver);

/* Convolves `frames` frames and adds the result to `out`. `in` NULL stands for silence. A block of a worker's stage
 * that is not ready is left out and counted; with `freewheel` it is computed or waited for here. Returns the count. */
int64_t gc_rt_convolver_process(gc_rt_convolver *convolver, const float *const *in, float *const *out, int64_t frames,
                                bool freewheel);

/* Returns whether a GPU computes the tail. For any thread. */
bool gc_rt_convolver_has_gpu_tail(const gc_rt_convolver *convolver);

/* Returns whether the tail on the GPU failed and is silent. For any thread. */
bool gc_rt_convolver_gpu_tail_failed(const gc_rt_convolver *convolver);

/* Computes one published block of the stage with the shortest hop that has one. Returns false if no block waits. For
 * worker threads. */
bool gc_rt_convolver_work(gc_rt_convolver *convolver);

#endif
