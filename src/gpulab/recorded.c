/* Finds rows in the recorded report. */
#include "recorded.h"

#include "libgpuconv/core/number.h"
#include "sources.h"

#include <stdio.h>
#include <string.h>

json_t *gc_lab_recorded_load(void) {
    json_error_t ignored;
    return json_loads(gc_lab_recorded_text(), 0, &ignored);
}

const char *gc_lab_recorded_device(const json_t *recorded) {
    const char *name = json_string_value(json_object_get(json_object_get(recorded, "device"), "name"));
    return name ? name : "the recorded GPU";
}

static bool has_text(const json_t *row, const char *name, const char *value) {
    const char *text = json_string_value(json_object_get(row, name));
    return text && strcmp(text, value) == 0;
}

const json_t *gc_lab_recorded_find(const json_t *recorded, const char *module, const char *variant, const char *size) {
    const json_t *found = NULL, *row;
    size_t i;
    json_array_foreach(json_object_get(recorded, "results"), i, row) {
        if (has_text(row, "module", module) && has_text(row, "variant", variant) &&
            has_text(row, "state", "measured") && (!size || has_text(row, "size", size)))
            found = row;
    }
    return found;
}

void gc_lab_recorded_format(const json_t *row, gc_lab_detail detail, char *text, size_t room) {
    double median = json_number_value(json_object_get(row, "median")),
           share = json_number_value(json_object_get(row, "share"));
    const json_t *figure = json_object_get(row, "figure");
    const char *size = json_string_value(json_object_get(row, "size")),
               *bound = json_string_value(json_object_get(row, "bound")),
               *unit = json_string_value(json_object_get(row, "unit"));
    size_t used;
    if (figure && unit)
        used = (size_t)gc_format(text, room, "%.4g %s", json_number_value(figure), unit);
    else if (median >= 1e-3)
        used = (size_t)gc_format(text, room, "%.3f ms", median * 1e3);
    else if (median >= 1e-6)
        used = (size_t)gc_format(text, room, "%.2f us", median * 1e6);
    else
        used = (size_t)gc_format(text, room, "%.1f ns", median * 1e9);
    if (used < room && detail >= GC_LAB_SIZE)
        used += (size_t)snprintf(text + used, room - used, " at %s", size ? size : "?");
    if (used < room && share > 0 && bound)
        used += (size_t)gc_format(text + used, room - used,
                                  100 * share < 1 ? ", %.1g %% of the %s limit" : ", %.0f %% of the %s limit",
                                  100 * share, bound);
    double least = json_number_value(json_object_get(row, "floor"));
    bool bytes = bound && strcmp(bound, "memory") == 0;
    double amount = json_number_value(json_object_get(row, bytes ? "bytes" : "operations"));
    if (used < room && detail >= GC_LAB_ARITHMETIC && share > 0 && bound && least > 0)
        (void)gc_format(text + used, room - used, " (%.4g %s at %.4g %s: %.3g ms)", amount * 1e-6,
                        bytes ? "MB" : "million operations", amount / least * (bytes ? 1e-9 : 1e-12),
                        bytes ? "GB/s" : "TFLOP/s", least * 1e3);
}

bool gc_lab_is_skipped_without_gpu(const json_t *report, const json_t *row) {
    return json_object_get(json_object_get(report, "device"), "missing") != NULL && has_text(row, "where", "GPU") &&
           has_text(row, "state", "skipped");
}
