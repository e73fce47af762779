/* The tail thread: input periods to the bank, their output back, and the counters shared with the callback. */
#include "gpu_tail.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/subnormal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PERIOD = GC_GPU_TAIL_PERIOD, OUTPUT_RING = 4 * GC_GPU_TAIL_OFFSET };

static const double late_limit_seconds = 0.2;

struct gc_gpu_tail {
    gc_gpu_target gpu;
    gc_bank *bank;
    gpuconv_ir *ir;
    gc_input_ring input;
    float *in;  /* inputs x PERIOD, pinned; of the bank */
    float *out; /* outputs x OUTPUT_RING */
    struct timespec poll_interval;
    int64_t late_limit; /* frames */
    pthread_t thread;
    bool thread_started;
    _Atomic int64_t published; /* frames of input in the ring */
    _Atomic int64_t done;      /* periods whose output is ready */
    _Atomic bool quit, failed;
    int64_t late_frames; /* consecutive frames without output; written by the callback only */
};

/* Writes the taps of one route behind GC_GPU_TAIL_OFFSET; the bank calls it once for each route. */
static void copy_taps(void *context, int route, float *taps) {
    const gpuconv_ir *ir = context;
    memcpy(taps, gc_ir_plane(ir, ir->route[route].plane) + GC_GPU_TAIL_OFFSET,
           (size_t)(ir->frames - GC_GPU_TAIL_OFFSET) * sizeof *taps);
}

/* Copies one period of every input into the pinned buffer. */
static void copy_input(gc_gpu_tail *tail, int64_t period) {
    /* The ring's length is a multiple of PERIOD: a period never wraps round. */
    int64_t from = period * PERIOD & (tail->input.length - 1);
    for (int i = 0; i < tail->ir->inputs; i++)
        memcpy(tail->in + (int64_t)i * PERIOD, tail->input.samples + i * tail->input.stride + from,
               PERIOD * sizeof(float));
}

/* Copies the outputs into the output ring, at the frames that the period's output belongs to. */
static void copy_output(gc_gpu_tail *tail, int64_t period, const float *from) {
    int64_t at = (period * PERIOD + GC_GPU_TAIL_OFFSET) & (OUTPUT_RING - 1);
    for (int o = 0; o < tail->ir->outputs; o++)
        memcpy(tail->out + (int64_t)o * OUTPUT_RING + at, from + (int64_t)o * PERIOD, PERIOD * sizeof(float));
}

/* Convolves one period. Returns false if the bank failed, or if the callback has overwritten the period's input
 * in the ring before it was copied. */
static bool process_period(gc_gpu_tail *tail, int64_t period) {
    const float *out;
    gpuconv_error error;
    if (atomic_load(&tail->published) - period * PERIOD > tail->input.length - 2 * PERIOD)
        return false;
    copy_input(tail, period);
    if (atomic_load(&tail->published) - period * PERIOD > tail->input.length - PERIOD)
        return false;
    if (tail->gpu.backend->process(tail->bank, tail->in, &out, &error) != GPUCONV_OK)
        return false;
    copy_output(tail, period, out);
    return true;
}

static void *run_tail(void *argument) {
    gc_gpu_tail *tail = argument;
    gc_flush_subnormals();
    while (!atomic_load(&tail->quit) && !atomic_load(&tail->failed)) {
        int64_t period = atomic_load(&tail->done);
        if (atomic_load(&tail->published) < (period + 1) * PERIOD)
            nanosleep(&tail->poll_interval, NULL);
        else if (process_period(tail, period))
            atomic_store(&tail->done, period + 1);
        else
            atomic_store(&tail->failed, true);
    }
    return NULL;
}

/* Opens the bank and starts the thread. Returns DEVICE, MEMORY, or the bank's error. */
static gpuconv_status start(gc_gpu_tail *tail, gpuconv_error *error) {
    const gpuconv_ir *ir = tail->ir;
    const gc_bank_options options = {.routes = ir->routes,
                                     .block = PERIOD,
                                     .taps = ir->frames - GC_GPU_TAIL_OFFSET,
                                     .device = tail->gpu.device,
                                     .inputs = ir->inputs,
                                     .outputs = ir->outputs,
                                     .route = ir->route,
                                     .response = copy_taps,
                                     .context = tail->ir};
    gpuconv_status status = tail->gpu.backend->open(&options, &tail->bank, error);
    if (status)
        return status;
    tail->in = tail->gpu.backend->alloc_pinned(tail->bank, (int64_t)ir->inputs * PERIOD);
    if (!tail->in)
        return gc_fail_memory(error, "the tail on the GPU");
    int code = pthread_create(&tail->thread, NULL, run_tail, tail);
    tail->thread_started = code == 0;
    return code ? gc_fail(error, GPUCONV_ERROR_MEMORY, "cannot start the GPU tail thread: %s", strerror(code))
                : GPUCONV_OK;
}

/* Ends the thread and closes the bank. */
static void stop(gc_gpu_tail *tail) {
    atomic_store(&tail->quit, true);
    if (tail->thread_started)
        pthread_join(tail->thread, NULL);
    tail->thread_started = false;
    if (tail->bank) {
        tail->gpu.backend->free_pinned(tail->bank, tail->in);
        tail->gpu.backend->free(tail->bank);
    }
    tail->bank = NULL;
}

void gc_gpu_tail_free(gc_gpu_tail *tail) {
    if (!tail)
        return;
    stop(tail);
    gpuconv_ir_free(tail->ir);
    free(tail->out);
    free(tail);
}

gpuconv_status gc_gpu_tail_new(const gpuconv_ir *ir, double rate, const gc_gpu_target *gpu, const gc_input_ring *input,
                               gc_gpu_tail **tail, gpuconv_error *error) {
    *tail = NULL;
    gc_gpu_tail *made = gc_calloc(1, sizeof *made);
    if (!made)
        return gc_fail_memory(error, "the tail on the GPU");
    made->gpu = *gpu;
    made->ir = gc_ir_hold(ir);
    made->input = *input;
    made->poll_interval.tv_nsec = (long)(1e9 * PERIOD / rate / 4);
    made->late_limit = (int64_t)(late_limit_seconds * rate);
    made->out = gc_calloc((int64_t)ir->outputs * OUTPUT_RING, sizeof *made->out);
    gpuconv_status status = made->out ? start(made, error) : gc_fail_memory(error, "the tail on the GPU");
    if (status)
        gc_gpu_tail_free(made);
    else
        *tail = made;
    return status;
}

void gc_gpu_tail_reset(gc_gpu_tail *tail) {
    if (gc_gpu_tail_has_failed(tail))
        return;
    stop(tail);
    atomic_store(&tail->quit, false);
    atomic_store(&tail->published, 0);
    atomic_store(&tail->done, 0);
    tail->late_frames = 0;
    if (start(tail, NULL))
        atomic_store(&tail->failed, true);
}

void gc_gpu_tail_publish(gc_gpu_tail *tail, int64_t frames) {
    atomic_store_explicit(&tail->published, frames, memory_order_release);
}

bool gc_gpu_tail_has_failed(const gc_gpu_tail *tail) {
    return atomic_load_explicit(&tail->failed, memory_order_relaxed);
}

int64_t gc_gpu_tail_add(gc_gpu_tail *tail, float *const *out, int64_t at, int64_t n, int64_t now, bool freewheel) {
    int64_t first = now - GC_GPU_TAIL_OFFSET;
    if (first + n <= 0 || gc_gpu_tail_has_failed(tail)) /* no output yet, or the CPU is about to replace the tail */
        return 0;
    int64_t skip = first < 0 ? -first : 0, needed = (first + n - 1) / PERIOD + 1;
    while (freewheel && atomic_load_explicit(&tail->done, memory_order_acquire) < needed &&
           !gc_gpu_tail_has_failed(tail)) {
        struct timespec interval = {0, 20000};
        nanosleep(&interval, NULL);
    }
    if (atomic_load_explicit(&tail->done, memory_order_acquire) < needed) {
        tail->late_frames += n;
        if (tail->late_frames > tail->late_limit)
            atomic_store_explicit(&tail->failed, true, memory_order_relaxed);
        return 1;
    }
    tail->late_frames = 0;
    for (int o = 0; o < tail->ir->outputs; o++) {
        const float *from = tail->out + (int64_t)o * OUTPUT_RING;
        float *to = out[o] + at;
        for (int64_t i = skip; i < n; i++)
            to[i] += from[(now + i) & (OUTPUT_RING - 1)];
    }
    return 0;
}
