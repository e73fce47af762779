/* Set-up that filter banks and matrix banks on a device share. */
#include "cuda_bank.h"

#include "cuda_device.h"
#include "cuda_pinned.h"
#include "libgpuconv/core/memory.h"

#include <math.h>
#include <stdlib.h>

/* Responses are copied to the device in pieces of at most UPLOAD_FLOATS, or of one response. */
enum { UPLOAD_FLOATS = 1 << 24 };

const float2 *gc_cuda_bank_table(gc_cuda_resources *r, int64_t hop) {
    float2 *table = gc_calloc(hop, (int64_t)sizeof *table);
    if (!table) {
        GC_CUDA_TRY(r->err, cudaErrorMemoryAllocation);
        return NULL;
    }
    for (int64_t m = 0; m < hop; m++) {
        double angle = -2 * 3.14159265358979323846 * (double)m / (double)hop;
        table[m] = (float2){(float)cos(angle), (float)sin(angle)};
    }
    const float2 *uploaded = gc_cuda_upload(r, table, hop * (int64_t)sizeof *table);
    free(table);
    return uploaded;
}

void *gc_cuda_bank_zeroed(gc_cuda_resources *r, int64_t bytes, cudaStream_t stream) {
    void *p = gc_cuda_memory(r, bytes);
    GC_CUDA_TRY(r->err, cudaMemsetAsync(p, 0, (size_t)bytes, stream));
    return p;
}

cudaError_t gc_cuda_bank_transform(int device, const gc_filter_bank_config *c, const gc_cuda_bank_spectra *levels,
                                   int count, cudaStream_t stream) {
    int64_t channels = gc_max(1, gc_min(c->channels, UPLOAD_FLOATS / c->taps));
    gc_cuda_resources buffers;
    gc_cuda_resources_init(&buffers, device);
    float *host = gc_cuda_pinned(&buffers, channels * c->taps * (int64_t)sizeof *host);
    float *copy = gc_cuda_memory(&buffers, channels * c->taps * (int64_t)sizeof *copy);
    cudaError_t err = buffers.err;
    for (int64_t first = 0; first < c->channels && !err; first += channels) {
        int64_t n = gc_min(channels, c->channels - first);
        gck_responses responses = {copy, (int)n, c->taps};
        for (int64_t i = 0; i < n; i++)
            c->response(c->context, (int)(first + i), host + i * c->taps);
        err = cudaMemcpyAsync(copy, host, (size_t)(n * c->taps) * sizeof(float), cudaMemcpyHostToDevice, stream);
        for (int k = 0; k < count; k++) {
            const gc_cuda_bank_spectra *s = &levels[k];
            GC_CUDA_TRY(err, gck_filter_bank_spectra(&s->level, &responses, s->offset,
                                                     s->spectra + first * s->level.partitions * s->level.hop, stream));
        }
        GC_CUDA_TRY(err, cudaStreamSynchronize(stream));
    }
    gc_cuda_resources_free(&buffers);
    return err;
}

cudaGraphExec_t gc_cuda_bank_capture(gc_cuda_resources *r, cudaStream_t stream,
                                     cudaError_t (*queue)(gc_filter_bank *bank), gc_filter_bank *bank) {
    cudaGraph_t graph = NULL;
    if (GC_CUDA_TRY(r->err, cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal)))
        return NULL;
    cudaError_t queue_err = queue(bank);
    r->err = cudaStreamEndCapture(stream, &graph); /* also after an error: the capture must end */
    GC_CUDA_TRY(r->err, queue_err);
    cudaGraphExec_t instance = gc_cuda_graph(r, graph);
    if (graph)
        cudaGraphDestroy(graph);
    return instance;
}

cudaError_t gc_cuda_bank_wait(cudaEvent_t event) {
    cudaError_t err;
    do /* polls, because the wait takes only microseconds */
        err = cudaEventQuery(event);
    while (err == cudaErrorNotReady);
    return err;
}

float *gc_cuda_bank_pinned(int device, int64_t floats) {
    void *pinned = NULL;
    int caller;
    cudaError_t err = gc_cuda_enter(device, &caller);
    GC_CUDA_TRY(err, gc_cuda_pinned_new(GC_CUDA_PINNED, floats * (int64_t)sizeof(float), &pinned));
    gc_cuda_leave(caller);
    if (err)
        (void)cudaGetLastError();
    return err ? NULL : pinned;
}

void gc_cuda_bank_free_pinned(int device, float *pinned) {
    int caller;
    (void)gc_cuda_enter(device, &caller);
    gc_cuda_pinned_free(pinned);
    gc_cuda_leave(caller);
}
