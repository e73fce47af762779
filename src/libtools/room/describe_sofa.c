/* Describes a set of responses by direction (SOFA). */
#include "describe_sofa.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/visible.h"
#include "libgpuconv/ir/sofa.h"
#include "libgpuconv/report/report.h"

#include <math.h>

/* Reports the extent of the directions of a set, and their distances. */
static void report_directions(const gpuconv_sofa *s, gpuconv_report *report) {
    const double degree = 180 / 3.14159265358979323846;
    double low = 90, high = -90, nearest = HUGE_VAL, farthest = 0;
    for (int m = 0; m < s->measurements; m++) {
        const double *p = s->position + 3 * (int64_t)m;
        const double flat = sqrt(p[0] * p[0] + p[1] * p[1]), distance = sqrt(flat * flat + p[2] * p[2]);
        const double elevation = atan2(p[2], flat) * degree;
        low = fmin(low, elevation);
        high = fmax(high, elevation);
        nearest = fmin(nearest, distance);
        farthest = fmax(farthest, distance);
    }
    gc_report_count(report, "responses", "directions", s->measurements);
    gc_report_measure(report, "responses", "lowest elevation", low, "degrees", 1, 0);
    gc_report_measure(report, "responses", "highest elevation", high, "degrees", 1, 0);
    gc_report_measure(report, "responses", "nearest source", nearest, "m", 1, 0);
    gc_report_measure(report, "responses", "farthest source", farthest, "m", 1, 0);
}

/* Returns the widest gap: the largest angle from any direction of a dense spiral to the nearest measured one. Ends
 * early when the thread's flag is raised. */
static double widest_gap(const gpuconv_sofa *s) {
    enum { POINTS = 2000 };
    const double pi = 3.14159265358979323846;
    double widest = 0;
    for (int p = 0; p < POINTS && !gc_cancelled(); p++) {
        const double z = 1 - (2 * p + 1.0) / POINTS, around = p * pi * (3 - sqrt(5)), flat = sqrt(1 - z * z);
        const double at[3] = {flat * cos(around), flat * sin(around), z};
        double degrees;
        (void)gc_sofa_nearest(s, at, &degrees);
        widest = fmax(widest, degrees);
    }
    return widest;
}

gpuconv_status gc_describe_sofa(const char *path, gpuconv_report *report, gpuconv_error *error) {
    gpuconv_sofa *s;
    gpuconv_status status = gc_sofa_load(path, GPUCONV_INTERPOLATE_NEAREST, &s, error);
    if (status)
        return status;
    char shown[256];
    gc_report_text(report, "responses", "file", path);
    if (*s->conventions)
        gc_report_text(report, "responses", "conventions", gc_visible(shown, sizeof shown, s->conventions));
    if (*s->title)
        gc_report_text(report, "responses", "title", gc_visible(shown, sizeof shown, s->title));
    if (*s->listener)
        gc_report_text(report, "responses", "listener", gc_visible(shown, sizeof shown, s->listener));
    gc_report_measure(report, "responses", "rate", s->responses->rate, "Hz", 1, 0);
    gc_report_count(report, "responses", "receivers", s->receivers);
    gc_report_measure(report, "responses", "length",
                      (double)(s->responses->frames + (int64_t)ceil(s->longest_delay)) / s->responses->rate, "s", 1, 0);
    gc_report_count(report, "responses", "frames", s->responses->frames);
    gc_report_measure(report, "responses", "longest delay", 1e3 * s->longest_delay / s->responses->rate, "ms", 1, 0);
    report_directions(s, report);
    gc_report_measure(report, "responses", "widest gap", widest_gap(s), "degrees", 1, 0);
    gpuconv_sofa_free(s);
    return gc_cancelled() ? gc_fail_cancelled(error, path) : GPUCONV_OK;
}
