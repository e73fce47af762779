/* The functions of gpuconv_cuda.h in a build without CUDA. No object can be made, so that the other functions are never
 * reached with one; they refuse NULL as with CUDA. */
#include "gpuconv_cuda.h"

#include "libgpuconv/core/error.h"

static gpuconv_status refuse(gpuconv_error *error) {
    return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED,
                   "this gpuconv was built without CUDA; build it with -DGPUCONV_CUDA=ON");
}

gpuconv_status gpuconv_cuda_new(int device, gpuconv_cuda **cuda, gpuconv_error *error) {
    (void)device;
    return gc_begin(cuda, cuda, __func__, error) ? refuse(error) : GPUCONV_ERROR_ARGUMENT;
}

int gpuconv_cuda_device(const gpuconv_cuda *cuda) {
    (void)cuda;
    return -1;
}

void gpuconv_cuda_free(gpuconv_cuda *cuda) {
    (void)cuda;
}

gpuconv_status gpuconv_cuda_workspace(const gpuconv_cuda *cuda, const gpuconv_cuda_job *job, size_t *bytes,
                                      gpuconv_error *error) {
    return gc_begin(bytes, cuda && job ? cuda : NULL, __func__, error) ? refuse(error) : GPUCONV_ERROR_ARGUMENT;
}

gpuconv_status gpuconv_cuda_run(const gpuconv_cuda *cuda, const gpuconv_cuda_job *job, void *workspace, size_t bytes,
                                struct CUstream_st *stream, gpuconv_error *error) {
    (void)workspace;
    (void)bytes;
    (void)stream;
    return cuda && job ? refuse(error) : gc_fail_null(error, __func__);
}

gpuconv_status gpuconv_cuda_responses_new(const gpuconv_cuda *cuda, const gpuconv_cuda_array *response, int64_t frames,
                                          struct CUstream_st *stream, gpuconv_cuda_responses **responses,
                                          gpuconv_error *error) {
    (void)frames;
    (void)stream;
    return gc_begin(responses, cuda && response ? cuda : NULL, __func__, error) ? refuse(error)
                                                                                : GPUCONV_ERROR_ARGUMENT;
}

gpuconv_status gpuconv_cuda_responses_route(const gpuconv_cuda *cuda, const gpuconv_ir *ir, int64_t frames,
                                            gpuconv_cuda_responses **responses, gpuconv_error *error) {
    (void)frames;
    return gc_begin(responses, cuda && ir ? cuda : NULL, __func__, error) ? refuse(error) : GPUCONV_ERROR_ARGUMENT;
}

gpuconv_status gpuconv_cuda_responses_update(const gpuconv_cuda *cuda, gpuconv_cuda_responses *responses,
                                             const gpuconv_cuda_array *response, struct CUstream_st *stream,
                                             gpuconv_error *error) {
    (void)stream;
    return cuda && responses && response ? refuse(error) : gc_fail_null(error, __func__);
}

int64_t gpuconv_cuda_responses_bytes(const gpuconv_cuda_responses *responses) {
    (void)responses;
    return 0;
}

void gpuconv_cuda_responses_free(gpuconv_cuda_responses *responses) {
    (void)responses;
}

gpuconv_status gpuconv_cuda_streamer_new(const gpuconv_cuda *cuda, const gpuconv_cuda_array *response, int64_t channels,
                                         int64_t block, struct CUstream_st *stream, gpuconv_cuda_streamer **streamer,
                                         gpuconv_error *error) {
    (void)channels;
    (void)block;
    (void)stream;
    return gc_begin(streamer, cuda && response ? cuda : NULL, __func__, error) ? refuse(error) : GPUCONV_ERROR_ARGUMENT;
}

gpuconv_status gpuconv_cuda_streamer_process(gpuconv_cuda_streamer *streamer, const gpuconv_cuda_array *in,
                                             const gpuconv_cuda_array *out, struct CUstream_st *stream,
                                             gpuconv_error *error) {
    (void)stream;
    return streamer && in && out ? refuse(error) : gc_fail_null(error, __func__);
}

gpuconv_status gpuconv_cuda_streamer_reset(gpuconv_cuda_streamer *streamer, struct CUstream_st *stream,
                                           gpuconv_error *error) {
    (void)stream;
    return streamer ? refuse(error) : gc_fail_null(error, __func__);
}

void gpuconv_cuda_streamer_free(gpuconv_cuda_streamer *streamer) {
    (void)streamer;
}
