/* What the public header does not have: parts of responses that were pickled, and whether CUDA can be used. */
#ifndef GPUCONV_PYTHON_RESPONSE_STATE_H
#define GPUCONV_PYTHON_RESPONSE_STATE_H

#include "gpuconv.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns whether a response is routed, as that of a matrix. */
bool gcpy_is_routed(const gpuconv_ir *ir);

/* Sets the frames before time zero, and the history, of a new response without history that nothing else refers to.
 * @return ARGUMENT (lead), MEMORY */
gpuconv_status gcpy_restore(gpuconv_ir *ir, int64_t lead, const char *history, gpuconv_error *error);

/* Returns whether there is a CUDA backend, which this loads. */
bool gcpy_has_cuda(void);

#ifdef __cplusplus
}
#endif

#endif
