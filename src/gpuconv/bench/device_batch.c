/* Times batches of signals in device memory, on one GPU and on several. */
#include "timing.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/statistics.h"
#include "libgpuconv/report/report.h"

#include <stdio.h>

gpuconv_status gc_bench_batch(const gc_bench *b, const gc_bench_case *what, int64_t signals, gpuconv_error *error) {
    enum { DEVICES = 64 };
    static const char *const names[] = {"devices", "ms", "spread", "GB/s", "signals a second", "of linear", "error dB"};
    const gc_backend *gpu = gc_backend_find(GPUCONV_BACKEND_CUDA);
    if (!gpu)
        return gc_backend_fail_missing(GPUCONV_ERROR_UNSUPPORTED, error);
    int device[DEVICES], count = (int)gc_min(DEVICES, gpu->batch->devices(error));
    double seconds[GC_BENCH_RUNS_MOST], one_device = 0;
    if (count == 0)
        return GPUCONV_ERROR_DEVICE;
    for (int i = 0; i < count; i++)
        device[i] = i;
    for (int n = 1; n <= count; n = n < count && 2 * n > count ? count : 2 * n) {
        double error_db, spread;
        char label[160];
        const gc_batch_timing timing = {device, n, signals, what->frames, what->taps, b->runs, seconds};
        gpuconv_status status = gc_measures_find(gpu->id)->time_batch(&timing, &error_db, error);
        if (status)
            return status;
        double time = gc_median(seconds, b->runs, &spread), bytes = 4.0 * (double)(2 * what->frames + 2 * what->taps);
        one_device = n == 1 ? time : one_device;
        double values[] = {n,
                           time * 1e3,
                           spread * 1e3,
                           bytes * (double)signals * n / time * 1e-9,
                           (double)signals * n / time,
                           one_device / time,
                           error_db};
        snprintf(label, sizeof label, "%s: %lld a device", what->name, (long long)signals);
        gc_report_named_row(b->report, "batches", label, 7, names, values);
        if (!(error_db <= GC_BENCH_ERROR_BOUND))
            return gc_fail(error, GPUCONV_ERROR_STATE, "a batch is wrong: the error is %.1f dB", error_db);
    }
    return GPUCONV_OK;
}
