/* What plays, with a bank of one's own choice for the tail: a GPU's, or a test's. */
#ifndef GC_REALTIME_REALTIME_H
#define GC_REALTIME_REALTIME_H

#include "libgpuconv/engine/filter_bank.h"

/* As gpuconv_realtime_new; backend NULL: everything on the CPU. */
gpuconv_status gc_realtime_new(const gpuconv_ir *ir, const gpuconv_realtime_config *config,
                               const gc_filter_bank_backend *backend, gpuconv_realtime **realtime,
                               gpuconv_error *error);

#endif
