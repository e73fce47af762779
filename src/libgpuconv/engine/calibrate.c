/* Measuring what operations cost here, once, so that plans fit this machine. */
#include "backend.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/report/report.h"

static void tell(gpuconv_report *report, const gc_costs *c, bool cuda) {
    gc_report_text(report, "calibration", "CPU", c->cpu);
    if (cuda)
        gc_report_text(report, "calibration", "GPU", c->cuda);
    for (int i = 0; i < (cuda ? GC_COSTS : GC_COST_CUDA_TAP); i++)
        gc_report_measure(report, "calibration", gc_cost_name((gc_cost)i), c->seconds[i] * 1e9, "ns", 1, 0);
}

gpuconv_status gpuconv_calibrate(gpuconv_report *report, gpuconv_error *error) {
    char path[4096];
    gpuconv_config config = gpuconv_config_default();
    gc_costs costs = {0};
    bool cuda = false;
    gpuconv_status status = GPUCONV_OK;
#ifdef GPUCONV_WITH_CUDA
    /* First, while no context is there: waking the GPU is among what is measured. */
    gpuconv_error absent = {0};
    gc_device device;
    cuda = gc_backend_cuda.calibrate(&config, &costs, &absent) == GPUCONV_OK;
    if (!cuda && gc_backend_cuda.probe(&config, &device, &absent) == GPUCONV_OK)
        return gc_backend_cuda.calibrate(&config, &costs, error); /* it is there and fails: that is news */
#endif
    status = gc_backend_cpu.calibrate(&config, &costs, error);
    if (!status)
        status = gc_costs_save(&costs, error);
    if (status)
        return status;
    tell(report, &costs, cuda);
    if (gc_costs_path(path, sizeof path))
        gc_report_text(report, "calibration", "kept in", path);
    return GPUCONV_OK;
}
