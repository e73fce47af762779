/* Peak rates of the backends: arithmetic, memory and bus, the upper bounds of every convolution. */
#include "timing.h"

#include "libgpuconv/report/report.h"

#include <stdio.h>

/* Reports the peak rates of one backend; a rate of 0 was not measured. */
static void report_rates(const gc_bench *b, const char *backend, const char *device, const gc_peak_rates *rates) {
    const struct {
        const char *what;
        double value;
        const char *unit;
    } rows[] = {{"multiply-add loop", rates->arithmetic * 1e-12, "TFLOP/s"},
                {"copy", rates->copy * 1e-9, "GB/s"},
                {"launch", rates->launch * 1e6, "us"},
                {"bus to the device", rates->to_device * 1e-9, "GB/s"},
                {"bus from the device", rates->from_device * 1e-9, "GB/s"},
                {"bus both ways, each", rates->both_at_once * 1e-9, "GB/s"}};
    char name[64];
    snprintf(name, sizeof name, "%s device", backend);
    gc_report_text(b->report, "ceilings", name, device);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        if (!(rows[k].value > 0))
            continue;
        snprintf(name, sizeof name, "%s %s", backend, rows[k].what);
        gc_report_measure(b->report, "ceilings", name, rows[k].value, rows[k].unit, 1, 0);
    }
}

gpuconv_status gc_bench_peak_rates(gc_bench *b, gpuconv_error *error) {
    const gc_backend *list[GC_BACKENDS];
    int count = gc_bench_backends(b, list);
    if (!count)
        return gc_bench_fail_no_backend(error);
    for (int i = 0; i < count; i++) {
        gc_device device;
        gc_peak_rates rates = {0};
        gpuconv_backend id = list[i]->id;
        gpuconv_status status = list[i]->probe(&b->config, &device, error);
        if (!status)
            status = gc_measures_find(list[i]->id)->peak_rates(&b->config, &rates, error);
        if (status)
            return status;
        b->arithmetic[id] = rates.arithmetic;
        b->bus[id] = rates.both_at_once;
        b->copy[id] = rates.copy;
        report_rates(b, gpuconv_backend_name(id), device.name, &rates);
    }
    return GPUCONV_OK;
}
