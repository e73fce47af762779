/*
 * One response that plays: output frames come with the input frames that they belong to, no later.
 *
 *      callback      writes the input, convolves the head directly, adds what the stages have ready, and publishes
 *                    every block of input that became complete
 *      workers       take published blocks of the stages and compute what is heard a hop later
 *
 * The two meet in counters: published and done count blocks of a stage, and whoever raises claimed from done does the
 * next one. No lock, no allocation, no call of the system on the callback's side.
 */
#ifndef GC_REALTIME_STAGE_CONVOLVER_H
#define GC_REALTIME_STAGE_CONVOLVER_H

#include "libgpuconv/engine/filter_bank.h"
#include "stage_schedule.h"

typedef struct gc_rt_convolver gc_rt_convolver;

/* What a tail on a GPU takes; backend NULL: none, everything on the CPU. */
typedef struct gc_rt_far {
    const gc_filter_bank_backend *backend;
    int device;
} gc_rt_far;

/* For calls of up to `block` frames in time, at `rate`. DEVICE, MEMORY. */
gpuconv_status gc_rt_convolver_new(const gpuconv_ir *ir, int64_t block, double rate, const gc_rt_far *far,
                                   gc_rt_convolver **convolver, gpuconv_error *error);
void gc_rt_convolver_free(gc_rt_convolver *convolver);

const gc_rt_schedule *gc_rt_convolver_schedule(const gc_rt_convolver *convolver);
const gpuconv_ir *gc_rt_convolver_ir(const gc_rt_convolver *convolver);

/* `frames` frames in, as many out, added to what stands there. in NULL: silence. What a worker's stage does not have
 * ready is left out and counted, unless `freewheel`: then it is done here, or waited for. Gives how often. */
int64_t gc_rt_convolver_process(gc_rt_convolver *convolver, const float *const *in, float *const *out, int64_t frames,
                                bool freewheel);

/* Whether its tail is on a GPU, and whether that was given up: from then on the tail is silent. From any thread. */
bool gc_rt_convolver_far(const gc_rt_convolver *convolver);
bool gc_rt_convolver_lost(const gc_rt_convolver *convolver);

/* From any thread but the callback's: does one block of one stage of the workers', the most urgent. False: nothing to
 * do. */
bool gc_rt_convolver_work(gc_rt_convolver *convolver);

#endif
