/* The thread that starts the GPU. The context of a device belongs to the process: the thread that convolves finds it
 * made. */
#include "early_start.h"

#include "libgpuconv/conv/backend.h"
#include "libgpuconv/core/clock.h"

/* Samples that two cores convolve in about a second. */
static const int64_t many_samples = INT64_C(1) << 27;

static void *start_gpu(void *argument) {
    gc_early_start *s = argument;
    const double begin = gc_now();
    gpuconv_error ignored = {0}; /* the thread that convolves finds it again */
    const gc_backend *gpu = gc_backend_find(GPUCONV_BACKEND_CUDA);
    if (gpu)
        (void)gpu->start(&s->config, &ignored);
    s->seconds = gc_now() - begin;
    return NULL;
}

void gc_early_start_begin(gc_early_start *s, const gpuconv_config *config, int64_t samples) {
    const bool wanted =
        config->backend == GPUCONV_BACKEND_CUDA || (config->backend == GPUCONV_BACKEND_AUTO && samples >= many_samples);
    s->config = *config;
    s->seconds = 0;
    s->started = wanted && pthread_create(&s->thread, NULL, start_gpu, s) == 0;
}

void gc_early_start_wait(gc_early_start *s) {
    if (s->started)
        pthread_join(s->thread, NULL);
    s->started = false;
}
