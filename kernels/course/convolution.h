/* Launchers of the course's convolution kernels. */
#ifndef GC_KERNELS_COURSE_CONVOLUTION_H
#define GC_KERNELS_COURSE_CONVOLUTION_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { COURSE_TAPS_MOST = 1024 };

/* Copies the taps to constant memory; count is 1..COURSE_TAPS_MOST. */
cudaError_t course_convolution_taps(const float *taps, int count, cudaStream_t stream);

/* out[n] = sum over k < count of taps[k] in[n - k] for n < frames, with in aligned to 16 bytes and readable from
 * in[-count] to in[frames + outputs]; outputs a thread: 4, 8, 16 or 32, of which count is a multiple. */
cudaError_t course_convolution_unrolled(const float *in, float *out, int64_t frames, int count, int outputs,
                                        cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
