/*
 * The tail of a response on a bank, that is, on a GPU: far enough from the beginning that a period's way there and
 * back, and a driver that stalls for a while, fit in between.
 *
 *      callback      tells how much input there is, and adds what the tail has ready, or goes without
 *      a thread      hands the bank one period after another; nobody waits for it
 *
 * Both know frames by their number: what comes too late is never heard at another place.
 */
#ifndef GC_REALTIME_GPU_TAIL_H
#define GC_REALTIME_GPU_TAIL_H

#include "libgpuconv/engine/filter_bank.h"
#include "libgpuconv/ir/object.h"

/* Taps before the tail: the time that a period may be late, at 48 kHz 75 ms. */
enum { GC_RT_LEAD = 4096, GC_GPU_TAIL_PERIOD = 512 };

typedef struct gc_gpu_tail gc_gpu_tail;

/* Where the input lies: a ring of frames for each input, `stride` floats apart, its length a power of two, at least
 * GC_GPU_TAIL_RING. */
enum { GC_GPU_TAIL_RING = 1 << 16 };

typedef struct gc_rt_input {
    const float *ring;
    int64_t stride, length;
} gc_rt_input;

/* For the taps of `ir`, which has more, from GC_RT_LEAD on. DEVICE, MEMORY, as the bank says. */
gpuconv_status gc_gpu_tail_new(const gpuconv_ir *ir, double rate, const gc_filter_bank_backend *backend, int device,
                               const gc_rt_input *input, gc_gpu_tail **remote, gpuconv_error *error);
void gc_gpu_tail_free(gc_gpu_tail *remote);

/* The callback: `frames` of input are in the ring. */
void gc_gpu_tail_publish(gc_gpu_tail *remote, int64_t frames);

/* The callback: adds the tail's part of frames now .. now + n to out[output] + at. Gives 1 where it is not ready; a
 * freewheel caller waits for it. */
int64_t gc_gpu_tail_add(gc_gpu_tail *remote, float *const *out, int64_t at, int64_t n, int64_t now, bool freewheel);

/* It failed, or was late for a fifth of a second on end: somebody else must do its work. From any thread. */
bool gc_gpu_tail_lost(const gc_gpu_tail *remote);

#endif
