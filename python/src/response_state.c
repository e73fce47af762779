/* Sets lead and history of a response; looks for CUDA. */
#include "response_state.h"

#include "libgpuconv/conv/backend.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/ir/object.h"

gpuconv_status gcpy_restore(gpuconv_ir *ir, int64_t lead, const char *history, gpuconv_error *error) {
    if (lead < 0 || lead >= ir->frames)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a lead of %lld frames does not fit a response of %lld",
                       (long long)lead, (long long)ir->frames);
    ir->lead = lead;
    return gc_ir_append_history(ir, "%s", history) ? GPUCONV_OK : gc_fail_memory(error, "the history of a response");
}

bool gcpy_is_routed(const gpuconv_ir *ir) {
    return ir->routed;
}

bool gcpy_has_cuda(void) {
    return gc_backend_find(GPUCONV_BACKEND_CUDA) != NULL;
}
