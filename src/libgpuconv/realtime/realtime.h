/* Creation of a real-time convolution with a given bank for the tail: the CUDA backend's, or a test's. */
#ifndef GC_REALTIME_REALTIME_H
#define GC_REALTIME_REALTIME_H

#include "libgpuconv/conv/backend.h"

/* Does what gpuconv_realtime_new does, with the tail on `backend`; NULL: everything on the CPU. */
gpuconv_status gc_realtime_new(const gpuconv_ir *ir, const gpuconv_realtime_config *config,
                               const gc_bank_backend *backend, gpuconv_realtime **realtime, gpuconv_error *error);

#endif
