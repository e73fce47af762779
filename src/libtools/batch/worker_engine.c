/* Plans and makes the engine of a batch worker. */
#include "worker_engine.h"

#include "libgpuconv/conv/engine.h"

static gpuconv_status make(const gpuconv_ir *ir, const gpuconv_config *config, gc_pcm in, gc_pcm out,
                           gpuconv_plan **plan, gpuconv_engine **engine, gpuconv_error *error) {
    gpuconv_status status = gpuconv_plan_new(ir, config, plan, error);
    if (!status)
        status = gc_engine_new(*plan, in, out, engine, error);
    if (status) {
        gpuconv_plan_free(*plan);
        *plan = NULL;
    }
    return status;
}

gpuconv_status gc_worker_engine(const gc_worker *w, const gpuconv_ir *ir, int64_t frames, gc_pcm in, gc_pcm out,
                                gpuconv_plan **plan, gpuconv_engine **engine, gpuconv_error *error) {
    gpuconv_config config = gpuconv_config_default();
    gpuconv_error ignored;
    config.frames = frames;
    config.backend = GPUCONV_BACKEND_CUDA;
    config.device = w->device;
    if (w->devices > 0 && !make(ir, &config, in, out, plan, engine, &ignored))
        return GPUCONV_OK;
    config.backend = GPUCONV_BACKEND_CPU;
    config.threads = w->devices > 0 ? 0 : 1;
    return make(ir, &config, in, out, plan, engine, error);
}
