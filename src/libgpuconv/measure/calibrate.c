/* The measurements of the backends, and gpuconv_calibrate: measures the costs of operations on this machine and stores
 * them for later plans. */
#include "measure.h"

#include "libgpuconv/conv/backend.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/report/report.h"

static const gc_measures cpu = {
    .peak_rates = gc_cpu_peak_rates,
    .copy = gc_cpu_copy,
    .time_plan = gc_cpu_time_plan,
    .time_rows = gc_cpu_time_rows,
    .time_reference = gc_cpu_time_reference,
    .calibrate = gc_cpu_calibrate,
};

const gc_measures *gc_measures_find(gpuconv_backend id) {
    const char *why;
    if (id == GPUCONV_BACKEND_CPU)
        return &cpu;
    const gc_cuda_module *module = id == GPUCONV_BACKEND_CUDA ? gc_cuda_module_find(&why) : NULL;
    return module ? module->measures : NULL;
}

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
    bool cuda = gpu && gc_measures_find(gpu->id)->calibrate(&config, &costs, &absent) == GPUCONV_OK;
    if (gpu && !cuda && gpu->probe(&config, &device, &absent) == GPUCONV_OK)
        return gc_measures_find(gpu->id)->calibrate(&config, &costs,
                                                    error); /* a GPU that exists but fails is an error */
    gpuconv_status status = gc_cpu_calibrate(&config, &costs, error);
    if (!status)
        status = gc_costs_save(&costs, error);
    if (status)
        return status;
    report_costs(report, &costs, cuda);
    if (gc_costs_path(path, sizeof path))
        gc_report_text(report, "calibration", "kept in", path);
    return GPUCONV_OK;
}
