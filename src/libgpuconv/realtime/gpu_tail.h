/*
 * The tail of a response, convolved on a GPU through a bank.
 *
 *      audio callback   publishes the number of input frames, and adds the tail's output where it is ready
 *      tail thread      passes one period of input after another to the bank
 *
 * The tail begins GC_GPU_TAIL_OFFSET taps into the response. That leaves time for a period's way to the GPU and back,
 * and for a short stall of the driver. The callback never waits for the tail thread (unless freewheeling). Both sides
 * address frames by their absolute number, so output that comes too late is dropped and never played at another place.
 */
#ifndef GC_REALTIME_GPU_TAIL_H
#define GC_REALTIME_GPU_TAIL_H

#include "libgpuconv/engine/bank.h"
#include "libgpuconv/ir/object.h"

enum {
    GC_GPU_TAIL_OFFSET = 4096,      /* taps before the tail; a period may be this late, less its own length: 75 ms at
                                       48 kHz */
    GC_GPU_TAIL_PERIOD = 512,       /* frames that the bank gets at a time */
    GC_GPU_TAIL_INPUT_MIN = 1 << 16 /* frames that the input ring must hold at least */
};

typedef struct gc_gpu_tail gc_gpu_tail;

/* The GPU that computes tails. */
typedef struct gc_gpu_target {
    const gc_bank_backend *backend; /* NULL: no GPU, the CPU computes everything */
    int device;                     /* -1: the one with the most multiprocessors */
} gc_gpu_target;

/* Ring buffers with the input, one for each input channel; the caller owns them and keeps them until the tail is
 * freed. */
typedef struct gc_input_ring {
    const float *samples;
    int64_t stride; /* floats from one channel's ring to the next */
    int64_t length; /* frames; a power of two, at least GC_GPU_TAIL_INPUT_MIN */
} gc_input_ring;

/* Starts the tail of `ir`, which has more than GC_GPU_TAIL_OFFSET taps. Returns DEVICE, MEMORY, or the bank's
 * error. */
gpuconv_status gc_gpu_tail_new(const gpuconv_ir *ir, double rate, const gc_gpu_target *gpu, const gc_input_ring *input,
                               gc_gpu_tail **tail, gpuconv_error *error);
void gc_gpu_tail_free(gc_gpu_tail *tail);

/* Forgets all input; frames count from 0 again. Opens the bank anew, which has no other way to forget: the taps
 * are uploaded and transformed once more. If that fails, the tail has failed. No other thread may use the tail. */
void gc_gpu_tail_reset(gc_gpu_tail *tail);

/* Publishes that the ring holds the input up to frame `frames`. For the callback. */
void gc_gpu_tail_publish(gc_gpu_tail *tail, int64_t frames);

/* Adds the tail's output frames now .. now + n - 1 to out[output] + at. Returns 1 if they are not ready and were left
 * out, else 0; with `freewheel` it waits until they are ready. For the callback. */
int64_t gc_gpu_tail_add(gc_gpu_tail *tail, float *const *out, int64_t at, int64_t n, int64_t now, bool freewheel);

/* Returns whether the bank failed, or was late for 0.2 s without a break. The tail then stays silent, and the
 * CPU has to replace it. For any thread. */
bool gc_gpu_tail_has_failed(const gc_gpu_tail *tail);

#endif
