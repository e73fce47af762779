/*
 * Reports as JSON: the records of GPUs, which are embedded, and the reports that run --json has saved.
 *
 * The members of a saved report that the tables and the page read are checked when it is loaded.
 */
#include "pages.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/number.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Recorded reports -------------------------------------------------------------------------------------------- */

const char *gc_lab_recorded_device(const json_t *recorded) {
    const char *name = json_string_value(json_object_get(json_object_get(recorded, "device"), "name"));
    return name ? name : "the recorded GPU";
}

const json_t *gc_lab_recorded_find(const json_t *recorded, const char *module, const char *variant, const char *size) {
    const json_t *found = NULL, *row;
    size_t i;
    json_array_foreach(json_object_get(recorded, "results"), i, row) {
        if (gc_lab_row_has(row, "module", module) && gc_lab_row_has(row, "variant", variant) &&
            gc_lab_row_has(row, "state", "measured") && (!size || gc_lab_row_has(row, "size", size)))
            found = row;
    }
    return found;
}

/* Appends the measured rows of modules that the report lacks, each with the name of its own device. */
static void append_missing(json_t *recorded, const json_t *other) {
    json_t *rows = json_object_get(recorded, "results"), *row;
    const char *device = gc_lab_recorded_device(other);
    size_t i, own = json_array_size(rows);
    json_array_foreach(json_object_get(other, "results"), i, row) {
        bool found = false;
        for (size_t k = 0; k < own && !found; k++)
            found =
                gc_lab_row_has(json_array_get(rows, k), "module", json_string_value(json_object_get(row, "module")));
        if (!found && json_object_set_new(row, "recorded_on", json_string(device)) == 0)
            (void)json_array_append(rows, row);
    }
}

json_t *gc_lab_recorded_load(void) {
    json_error_t ignored;
    json_t *recorded = json_loads(gc_lab_recorded_text(), 0, &ignored),
           *other = json_loads(gc_lab_recorded_text_h100(), 0, &ignored);
    append_missing(recorded, other);
    json_decref(other);
    return recorded;
}

void gc_lab_recorded_format(const json_t *row, gc_lab_detail detail, char *text, size_t room) {
    double median = gc_lab_row_number(row, "median"), share = gc_lab_row_number(row, "share");
    const json_t *figure = json_object_get(row, "figure");
    const char *size = json_string_value(json_object_get(row, "size")),
               *device = json_string_value(json_object_get(row, "recorded_on")),
               *bound = json_string_value(json_object_get(row, "bound")),
               *unit = json_string_value(json_object_get(row, "unit"));
    if (figure && unit)
        gc_format(text, room, "%.4g %s", json_number_value(figure), unit);
    else if (median >= 1e-3)
        gc_format(text, room, "%.3f ms", median * 1e3);
    else if (median >= 1e-6)
        gc_format(text, room, "%.2f us", median * 1e6);
    else
        gc_format(text, room, "%.1f ns", median * 1e9);
    if (detail >= GC_LAB_SIZE)
        gc_append(text, room, " at %s", size ? size : "?");
    if (detail >= GC_LAB_SIZE && device)
        gc_append(text, room, " on an %s", device);
    if (share > 0 && bound)
        gc_append(text, room, 100 * share < 1 ? ", %.1g %% of the %s limit" : ", %.0f %% of the %s limit", 100 * share,
                  bound);
    double least = gc_lab_row_number(row, "floor");
    bool bytes = bound && strcmp(bound, "memory") == 0;
    double amount = gc_lab_row_number(row, bytes ? "bytes" : "operations");
    if (detail >= GC_LAB_ARITHMETIC && share > 0 && bound && least > 0)
        gc_append(text, room, " (%.4g %s at %.4g %s: %.3g ms)", amount * 1e-6, bytes ? "MB" : "million operations",
                  amount / least * (bytes ? 1e-9 : 1e-12), bytes ? "GB/s" : "TFLOP/s", least * 1e3);
}

const json_t *gc_lab_recorded_instead(const json_t *report, const json_t *recorded, const json_t *row) {
    const bool skipped = json_object_get(json_object_get(report, "device"), "missing") &&
                         gc_lab_row_has(row, "where", "GPU") && gc_lab_row_has(row, "state", "skipped");
    return skipped ? gc_lab_recorded_find(recorded, gc_lab_row_text(row, "module"), gc_lab_row_text(row, "variant"),
                                          gc_lab_row_text(row, "size"))
                   : NULL;
}

/* ---- Saved reports ----------------------------------------------------------------------------------------------- */

enum { MAX_COLUMNS = 8, MAX_ROWS = 100000 };

static const double max_number = 1e18, min_positive = 1e-18;

/* The place of the check, for messages. */
typedef struct position {
    const char *path, *part; /* the file; the member of the report */
    size_t row;              /* in that member, from 0 */
    gpuconv_error *error;
} position;

static gpuconv_status format_error(const position *p, const char *name, const char *what) {
    return gc_fail(p->error, GPUCONV_ERROR_FORMAT, "%s: not a report of gpulab: %s %zu, %s: %s", p->path, p->part,
                   p->row + 1, name, what);
}

static bool is_number(const json_t *value) {
    double v = json_number_value(value);
    return json_is_number(value) && fabs(v) <= max_number;
}

/* Returns whether an unknown member may have this value: a string, a boolean, null, or a number in range. */
static bool is_scalar(const json_t *value) {
    return json_is_string(value) || json_is_boolean(value) || json_is_null(value) || is_number(value);
}

/* Checks the types of the members that the tables and the page read. */
static gpuconv_status check_members(const json_t *object, const position *p) {
    static const char *const texts[] = {"name", "module", "variant", "where", "size", "course", "state",
                                        "why",  "bound",  "unit",    "said",  "what", "across", "missing"};
    static const char *const numbers[] = {
        "copy",  "read",  "launch", "fp32",   "fp16",      "tf32",        "median", "spread",  "bytes",     "cold",
        "share", "ratio", "wanted", "figure", "registers", "local_bytes", "blocks", "threads", "operations"};
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value) {
        if (json_is_object(value) && strcmp(name, "facts") == 0) {
            gpuconv_status status = check_members(value, p);
            if (status)
                return status;
            continue;
        }
        if (!is_scalar(value))
            return format_error(p, name, "must be a text or a number within 1e18");
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
            if (strcmp(name, texts[i]) == 0 && !json_is_string(value))
                return format_error(p, name, "must be a text");
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
            if (strcmp(name, numbers[i]) == 0 && !json_is_number(value) && !json_is_null(value))
                return format_error(p, name, "must be a number");
    }
    return GPUCONV_OK;
}

static gpuconv_status check_object(const json_t *object, position *p) {
    return json_is_object(object) ? check_members(object, p) : format_error(p, "the member", "must be an object");
}

/* Checks a list of rows, each of which has the texts named in `needed`, a list that ends with NULL. */
static gpuconv_status check_rows(const json_t *rows, position *p, const char *const *needed) {
    json_t *row;
    gpuconv_status status = GPUCONV_OK;
    if (!json_is_array(rows) || json_array_size(rows) > MAX_ROWS)
        return format_error(p, "the member", "must be a list of at most 100000 rows");
    json_array_foreach((json_t *)rows, p->row, row) {
        status = check_object(row, p);
        for (int i = 0; needed[i] && !status; i++) {
            const char *text = json_string_value(json_object_get(row, needed[i]));
            if (!text || !*text)
                status = format_error(p, needed[i], "is missing");
        }
        const char *state = status ? NULL : json_string_value(json_object_get(row, "state"));
        if (state && strcmp(state, "measured") == 0 && !(gc_lab_row_number(row, "median") >= min_positive))
            status = format_error(p, "median", "must be a time above 0");
        if (status)
            return status;
    }
    return GPUCONV_OK;
}

/* Returns whether a value can be drawn on a logarithmic axis or is left out of it (0, null). */
static bool is_drawable(const json_t *value) {
    double v = json_number_value(value);
    return json_is_null(value) || (is_number(value) && (v == 0 || v >= min_positive));
}

/* Checks one point: its position on the axis, which is above `last`, and at most one value for each column. */
static gpuconv_status check_point(const json_t *point, size_t columns, double last, position *p) {
    double x = json_number_value(json_array_get(point, 0));
    size_t count = json_array_size(point);
    if (!json_is_array(point) || count < 1 || count > columns + 1)
        return format_error(p, "points", "must have one value for the axis and at most one for each column");
    for (size_t c = 1; c < count; c++)
        if (!is_drawable(json_array_get(point, c)))
            return format_error(p, "points", "must be 0 or numbers of 1e-18 to 1e18");
    return is_number(json_array_get(point, 0)) && x >= min_positive && x > last
               ? GPUCONV_OK
               : format_error(p, "points", "must increase along the axis");
}

static gpuconv_status check_points(const json_t *points, size_t columns, position *p) {
    json_t *point;
    double last = 0;
    if (json_array_size(points) > MAX_ROWS)
        return format_error(p, "points", "must be at most 100000");
    json_array_foreach((json_t *)points, p->row, point) {
        gpuconv_status status = check_point(point, columns, last, p);
        if (status)
            return status;
        last = json_number_value(json_array_get(point, 0));
    }
    return GPUCONV_OK;
}

static gpuconv_status check_sweep(const json_t *sweep, position *p) {
    const json_t *columns = json_object_get(sweep, "columns"), *points = json_object_get(sweep, "points"),
                 *missing = json_object_get(sweep, "missing"), *across = json_object_get(sweep, "across");
    json_t *column;
    size_t i;
    if (!json_is_object(sweep))
        return format_error(p, "the sweep", "must be an object");
    if (!json_is_string(across) || (missing && !json_is_string(missing)))
        return format_error(p, "across, missing", "must be texts");
    if (!json_is_array(columns) || json_array_size(columns) > MAX_COLUMNS || !json_is_array(points))
        return format_error(p, "columns, points", "must be lists, and at most 8 columns");
    json_array_foreach(columns, i, column) if (!json_is_string(column)) return format_error(p, "columns",
                                                                                            "must be texts");
    return check_points(points, json_array_size(columns), p);
}

static gpuconv_status check_sweeps(const json_t *sweeps, position *p) {
    const char *name;
    json_t *sweep;
    if (!json_is_object(sweeps))
        return format_error(p, "the member", "must be an object");
    json_object_foreach((json_t *)sweeps, name, sweep) {
        p->part = name;
        p->row = 0;
        gpuconv_status status = check_sweep(sweep, p);
        if (status)
            return status;
    }
    return GPUCONV_OK;
}

gpuconv_status gc_lab_saved_check(const json_t *report, const char *path, gpuconv_error *error) {
    static const char *const result[] = {"module", "variant", "where", "size", "state", NULL},
                             *const effect[] = {"module", "what", "size", NULL}, *const none[] = {NULL};
    const char *name;
    json_t *part;
    if (!json_is_object(report))
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: not a report of gpulab: not an object", path);
    json_object_foreach((json_t *)report, name, part) {
        position p = {path, name, 0, error};
        gpuconv_status status = GPUCONV_OK;
        if (strcmp(name, "results") == 0)
            status = check_rows(part, &p, result);
        else if (strcmp(name, "effects") == 0)
            status = check_rows(part, &p, effect);
        else if (strcmp(name, "checks") == 0)
            status = check_rows(part, &p, none);
        else if (strcmp(name, "sweeps") == 0)
            status = check_sweeps(part, &p);
        else if (strcmp(name, "device") == 0 || strcmp(name, "ceilings") == 0)
            status = check_object(part, &p);
        if (status)
            return status;
    }
    return GPUCONV_OK;
}

gpuconv_status gc_lab_saved_load(const char *path, json_t **report, gpuconv_error *error) {
    json_error_t reason;
    *report = NULL;
    FILE *from = fopen(path, "r");
    if (!from)
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", path, strerror(errno));
    json_t *saved = json_loadf(from, JSON_REJECT_DUPLICATES, &reason);
    (void)fclose(from);
    if (!saved)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s, line %d: %s", path, reason.line, reason.text);
    gpuconv_status status = gc_lab_saved_check(saved, path, error);
    if (status)
        json_decref(saved);
    else
        *report = saved;
    return status;
}
