/* The tail thread: blocks of input to the bank, and their output back. */
#include "gpu_tail.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/subnormal.h"
#include "stage_convolver.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PERIOD = GC_GPU_TAIL_PERIOD, OUTPUT_BLOCKS = 4 * GC_GPU_TAIL_OFFSET / PERIOD };

static const double late_limit_seconds = 0.2;

struct gc_gpu_tail {
    const gc_rt_convolver *convolver;
    gc_rt_stage *stage;
    gc_gpu_target gpu;
    gc_bank *bank;
    float *in; /* inputs x PERIOD, pinned; of the bank */
    struct timespec poll_interval;
    int64_t late_limit; /* frames */
    pthread_t thread;
    bool thread_started;
    _Atomic bool quit, failed;
    int64_t late_frames; /* consecutive frames without output; written by the callback only */
};

/* Writes the taps of one route behind GC_GPU_TAIL_OFFSET; the bank calls it once for each route. */
static void copy_taps(void *context, int route, float *taps) {
    const gpuconv_ir *ir = context;
    memcpy(taps, gc_ir_plane(ir, ir->route[route].plane) + GC_GPU_TAIL_OFFSET,
           (size_t)(ir->frames - GC_GPU_TAIL_OFFSET) * sizeof *taps);
}

/* Convolves a block. Returns false if the bank failed, or if the callback may have overwritten the block's input in the
 * ring before it was copied. */
static bool process_block(gc_gpu_tail *tail, int64_t t) {
    const gc_rt_convolver *c = tail->convolver;
    gc_rt_stage *s = tail->stage;
    const float *out;
    gpuconv_error error;
    /* The ring's length is a multiple of PERIOD: a block never wraps round. */
    for (int i = 0; i < c->ir->inputs; i++)
        memcpy(tail->in + (int64_t)i * PERIOD, gc_rt_input_ring(c, i) + (t * PERIOD & (c->ring - 1)),
               PERIOD * sizeof(float));
    /* The callback writes at most a block and GC_RT_CHUNK frames before it publishes. */
    if (atomic_load(&s->published) - t >= (c->ring - GC_RT_CHUNK) / PERIOD - 1 ||
        tail->gpu.backend->process(tail->bank, tail->in, &out, &error) != GPUCONV_OK)
        return false;
    for (int o = 0; o < c->ir->outputs; o++)
        memcpy(gc_rt_block_of(s, o, t), out + (int64_t)o * PERIOD, PERIOD * sizeof(float));
    return true;
}

static void *run_tail(void *argument) {
    gc_gpu_tail *tail = argument;
    gc_flush_subnormals();
    while (!atomic_load(&tail->quit) && !atomic_load(&tail->failed)) {
        const int64_t t = atomic_load(&tail->stage->done);
        if (atomic_load(&tail->stage->published) <= t)
            nanosleep(&tail->poll_interval, NULL);
        else if (process_block(tail, t))
            atomic_store(&tail->stage->done, t + 1);
        else
            atomic_store(&tail->failed, true);
    }
    return NULL;
}

/* Opens the bank. Returns DEVICE, MEMORY, or the bank's error. */
static gpuconv_status open_bank(gc_gpu_tail *tail, gpuconv_error *error) {
    gpuconv_ir *ir = tail->convolver->response;
    const gc_bank_options options = {.routes = ir->routes,
                                     .block = PERIOD,
                                     .taps = ir->frames - GC_GPU_TAIL_OFFSET,
                                     .device = tail->gpu.device,
                                     .inputs = ir->inputs,
                                     .outputs = ir->outputs,
                                     .route = ir->route,
                                     .response = copy_taps,
                                     .context = ir};
    gpuconv_status status = tail->gpu.backend->open(&options, &tail->bank, error);
    if (status)
        return status;
    tail->in = tail->gpu.backend->alloc_pinned(tail->bank, (int64_t)ir->inputs * PERIOD);
    return tail->in ? GPUCONV_OK : gc_fail_memory(error, "the tail on the GPU");
}

gpuconv_status gc_gpu_tail_start(gc_gpu_tail *tail, gpuconv_error *error) {
    if (gc_gpu_tail_has_failed(tail))
        return GPUCONV_ERROR_DEVICE;
    atomic_store(&tail->quit, false);
    tail->late_frames = 0;
    gpuconv_status status = open_bank(tail, error);
    const int code = status ? 0 : pthread_create(&tail->thread, NULL, run_tail, tail);
    if (code)
        status = gc_fail(error, GPUCONV_ERROR_MEMORY, "cannot start the GPU tail thread: %s", strerror(code));
    tail->thread_started = !status;
    if (status)
        atomic_store(&tail->failed, true);
    return status;
}

void gc_gpu_tail_stop(gc_gpu_tail *tail) {
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
    gc_gpu_tail_stop(tail);
    free(tail);
}

gpuconv_status gc_gpu_tail_new(gc_rt_convolver *c, double rate, const gc_gpu_target *gpu, gpuconv_error *error) {
    gc_rt_stage *stage = &c->stage[c->stages];
    gc_gpu_tail *tail = c->tail = gc_calloc(1, sizeof *tail);
    stage->level = (gc_level){.hop = PERIOD, .first_tap = GC_GPU_TAIL_OFFSET};
    stage->blocks = OUTPUT_BLOCKS;
    stage->out = gc_calloc((int64_t)c->ir->outputs * OUTPUT_BLOCKS * PERIOD, sizeof *stage->out);
    if (!tail || !stage->out)
        return gc_fail_memory(error, "the tail on the GPU");
    tail->convolver = c;
    tail->stage = stage;
    tail->gpu = *gpu;
    tail->poll_interval.tv_nsec = (long)(1e9 * PERIOD / rate / 4);
    tail->late_limit = (int64_t)(late_limit_seconds * rate);
    return gc_gpu_tail_start(tail, error);
}

void gc_gpu_tail_count_late(gc_gpu_tail *tail, int64_t frames) {
    tail->late_frames = frames ? tail->late_frames + frames : 0;
    if (tail->late_frames > tail->late_limit)
        atomic_store_explicit(&tail->failed, true, memory_order_relaxed);
}

bool gc_gpu_tail_has_failed(const gc_gpu_tail *tail) {
    return atomic_load_explicit(&tail->failed, memory_order_relaxed);
}
