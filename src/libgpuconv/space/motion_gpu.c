/* The moving sources of a GPU: what it needs once. motion_render.c calls it for each chunk. */
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "motion.h"

static gpuconv_status align(void *motion, int response, float *taps, gpuconv_error *error) {
    return gc_motion_align(motion, response, taps, error);
}

gpuconv_status gc_motion_open_gpu(gpuconv_motion *m, gpuconv_error *error) {
    const gc_motion_options options = {.channels = m->channels,
                                       .receivers = m->receivers,
                                       .responses = m->responses,
                                       .hop = m->hop,
                                       .hops = m->hops,
                                       .points = m->points,
                                       .taps = m->taps,
                                       .past = m->past,
                                       .device = m->config.device,
                                       .filters = gc_delay_line_filters(m->line),
                                       .response = align,
                                       .context = m};
    gpuconv_status status = m->backend->open(&options, &m->gpu, error);
    if (status)
        return status;
    m->mixture = gc_calloc((m->hops + 1) * m->channels, sizeof *m->mixture);
    m->input = m->pinned = m->backend->alloc_pinned(m->gpu, m->channels * m->width);
    return m->mixture && m->pinned ? GPUCONV_OK : gc_fail_memory(error, "the moving sources");
}

void gc_motion_close_gpu(gpuconv_motion *m) {
    if (!m->gpu)
        return;
    m->backend->free_pinned(m->gpu, m->pinned);
    m->backend->free(m->gpu);
}
