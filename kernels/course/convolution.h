/* Launchers of the kernels of module convolution. */
#ifndef GC_KERNELS_COURSE_CONVOLUTION_H
#define GC_KERNELS_COURSE_CONVOLUTION_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { COURSE_MAX_TAPS = 1024 };

/* Copies `count` taps, 1 to COURSE_MAX_TAPS, to constant memory. Returns the status of the copy. */
cudaError_t course_convolution_set_taps(const float *taps, int count, cudaStream_t stream);

/* Queues out[n] = sum over k < count of taps[k] in[n - k] for n < frames, with the taps that
 * course_convolution_set_taps has copied. Each thread computes `outputs` outputs: 4, 8, 16 or 32. `count` must be a
 * multiple of `outputs`, and `in` must be aligned to 16 bytes and readable from in[-count] to in[frames + outputs].
 * Returns cudaErrorInvalidValue for another number of outputs, otherwise the status of the launch. */
cudaError_t course_convolution_unrolled(const float *in, float *out, int64_t frames, int count, int outputs,
                                        cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
