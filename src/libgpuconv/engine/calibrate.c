/* gpuconv_calibrate: measures the costs of operations on this machine and stores them for later plans. */
#include "backend.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/report/report.h"

static void report_costs(gpuconv_report *report, const gc_costs *c, bool cuda) {
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
    const gc_backend *gpu = gc_backend_find(GPUCONV_BACKEND_CUDA);
    gpuconv_error absent = {0};
    gc_device device;
    /* The GPU is measured first, before it has a context, because its start-up time is one of the costs. */
    bool cuda = gpu && gpu->measure->calibrate(&config, &costs, &absent) == GPUCONV_OK;
    if (gpu && !cuda && gpu->probe(&config, &device, &absent) == GPUCONV_OK)
        return gpu->measure->calibrate(&config, &costs, error); /* a GPU that exists but fails is an error */
    gpuconv_status status = gc_backend_find(GPUCONV_BACKEND_CPU)->measure->calibrate(&config, &costs, error);
    if (!status)
        status = gc_costs_save(&costs, error);
    if (status)
        return status;
    report_costs(report, &costs, cuda);
    if (gc_costs_path(path, sizeof path))
        gc_report_text(report, "calibration", "kept in", path);
    return GPUCONV_OK;
}
