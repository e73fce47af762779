/*
 * The tail of a response, convolved on a GPU through a bank: the last stage of a convolver, whose blocks a thread of
 * its own computes.
 *
 *      audio callback   publishes blocks of input, and adds the tail's output where it is ready
 *      tail thread      passes one block of input after another to the bank
 *
 * The tail begins GC_GPU_TAIL_OFFSET taps into the response. That leaves time for a block's way to the GPU and back,
 * and for a short stall of the driver. The callback never waits for the tail thread (unless freewheeling). Blocks have
 * absolute numbers, so output that comes too late is dropped and never played at another place.
 */
#ifndef GC_REALTIME_GPU_TAIL_H
#define GC_REALTIME_GPU_TAIL_H

#include "libgpuconv/conv/backend.h"

enum {
    GC_GPU_TAIL_OFFSET = 4096,      /* taps before the tail; a block may be this late, less its own length: 75 ms at
                                       48 kHz */
    GC_GPU_TAIL_PERIOD = 512,       /* frames of a block */
    GC_GPU_TAIL_INPUT_MIN = 1 << 16 /* frames that the input ring must hold at least */
};

typedef struct gc_gpu_tail gc_gpu_tail;
struct gc_rt_convolver;

/* The GPU that computes tails. */
typedef struct gc_gpu_target {
    const gc_bank_backend *backend; /* NULL: no GPU, the CPU computes everything */
    int device;                     /* -1: the one with the most multiprocessors */
} gc_gpu_target;

/* Makes the tail of a convolver whose response has more than GC_GPU_TAIL_OFFSET taps, and its stage behind the stages
 * of the CPU, and starts it. Returns DEVICE, MEMORY, or the bank's error. */
gpuconv_status gc_gpu_tail_new(struct gc_rt_convolver *convolver, double rate, const gc_gpu_target *gpu,
                               gpuconv_error *error);
void gc_gpu_tail_free(gc_gpu_tail *tail);

/* Opens the bank and starts the thread, unless the tail has failed; if this fails, the tail has failed. Returns DEVICE,
 * MEMORY, or the bank's error. */
gpuconv_status gc_gpu_tail_start(gc_gpu_tail *tail, gpuconv_error *error);

/* Ends the thread and closes the bank, which has no other way to forget its input. */
void gc_gpu_tail_stop(gc_gpu_tail *tail);

/* Counts frames whose output was not ready; 0: the output was ready. After 0.2 s without a break the tail has failed.
 * For the callback. */
void gc_gpu_tail_count_late(gc_gpu_tail *tail, int64_t frames);

/* Returns whether the bank failed or was late for too long. The tail then stays silent, and the CPU has to replace it.
 * For any thread. */
bool gc_gpu_tail_has_failed(const gc_gpu_tail *tail);

#endif
