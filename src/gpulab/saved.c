/* Checking saved reports: one walk over the parts that tables and page read. */
#include "saved.h"

#include "libgpuconv/core/error.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { COLUMNS_MOST = 8, ROWS_MOST = 100000 };

static const double number_most = 1e18, number_least = 1e-18;

typedef struct place {
    const char *path, *part; /* the file; the part of the report */
    size_t row;              /* in the part, from 0 */
    gpuconv_error *error;
} place;

static gpuconv_status wrong(const place *p, const char *name, const char *what) {
    return gc_fail(p->error, GPUCONV_ERROR_FORMAT, "%s: no report of gpulab: %s %zu, %s: %s", p->path, p->part,
                   p->row + 1, name, what);
}

static bool is_number(const json_t *value) {
    double v = json_number_value(value);
    return json_is_number(value) && fabs(v) <= number_most;
}

/* Whether a value can stand where names are not known: a text, a truth value, null or a number in range. */
static bool is_scalar(const json_t *value) {
    return json_is_string(value) || json_is_boolean(value) || json_is_null(value) || is_number(value);
}

/* Checks the members of an object whose names the tables and the page use by their types. */
static gpuconv_status check_members(const json_t *object, const place *p) {
    static const char *const texts[] = {"name", "module", "variant", "where", "size", "course", "state",
                                        "why",  "bound",  "unit",    "said",  "what", "across", "missing"};
    static const char *const numbers[] = {"copy",   "launch",    "fp32",        "fp16",   "tf32",    "median",
                                          "spread", "bytes",     "cold",        "share",  "ratio",   "wanted",
                                          "figure", "registers", "local_bytes", "blocks", "threads", "operations"};
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
            return wrong(p, name, "is neither a text nor a number within 1e18");
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
            if (strcmp(name, texts[i]) == 0 && !json_is_string(value))
                return wrong(p, name, "is no text");
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
            if (strcmp(name, numbers[i]) == 0 && !json_is_number(value) && !json_is_null(value))
                return wrong(p, name, "is no number");
    }
    return GPUCONV_OK;
}

static gpuconv_status check_object(const json_t *object, place *p) {
    return json_is_object(object) ? check_members(object, p) : wrong(p, "the part", "is no object");
}

/* Checks a list of rows, each with the texts that are named; NULL ends them. */
static gpuconv_status check_rows(const json_t *rows, place *p, const char *const *needed) {
    json_t *row;
    gpuconv_status status = GPUCONV_OK;
    if (!json_is_array(rows) || json_array_size(rows) > ROWS_MOST)
        return wrong(p, "the part", "is no list of at most 100000 rows");
    json_array_foreach((json_t *)rows, p->row, row) {
        status = check_object(row, p);
        for (int i = 0; needed[i] && !status; i++) {
            const char *text = json_string_value(json_object_get(row, needed[i]));
            if (!text || !*text)
                status = wrong(p, needed[i], "is missing");
        }
        const char *state = status ? NULL : json_string_value(json_object_get(row, "state"));
        if (state && strcmp(state, "measured") == 0 &&
            !(json_number_value(json_object_get(row, "median")) >= number_least))
            status = wrong(p, "median", "is no time above 0");
        if (status)
            return status;
    }
    return GPUCONV_OK;
}

/* Whether a value can be drawn on a logarithmic axis, or is none. */
static bool is_measured(const json_t *value) {
    double v = json_number_value(value);
    return json_is_null(value) || (is_number(value) && (v == 0 || v >= number_least));
}

/* Checks one point: its place on the axis, which comes after `last`, and a value for each column at most. */
static gpuconv_status check_point(const json_t *point, size_t columns, double last, place *p) {
    double x = json_number_value(json_array_get(point, 0));
    size_t count = json_array_size(point);
    if (!json_is_array(point) || count < 1 || count > columns + 1)
        return wrong(p, "points", "have not one value for the axis and one for each column");
    for (size_t c = 1; c < count; c++)
        if (!is_measured(json_array_get(point, c)))
            return wrong(p, "points", "are no numbers of 0 or 1e-18 to 1e18");
    return is_number(json_array_get(point, 0)) && x >= number_least && x > last
               ? GPUCONV_OK
               : wrong(p, "points", "do not increase along the axis");
}

static gpuconv_status check_points(const json_t *points, size_t columns, place *p) {
    json_t *point;
    double last = 0;
    if (json_array_size(points) > ROWS_MOST)
        return wrong(p, "points", "are more than 100000");
    json_array_foreach((json_t *)points, p->row, point) {
        gpuconv_status status = check_point(point, columns, last, p);
        if (status)
            return status;
        last = json_number_value(json_array_get(point, 0));
    }
    return GPUCONV_OK;
}

static gpuconv_status check_sweep(const json_t *sweep, place *p) {
    const json_t *columns = json_object_get(sweep, "columns"), *points = json_object_get(sweep, "points"),
                 *missing = json_object_get(sweep, "missing"), *across = json_object_get(sweep, "across");
    json_t *column;
    size_t i;
    if (!json_is_object(sweep))
        return wrong(p, "the sweep", "is no object");
    if (!json_is_string(across) || (missing && !json_is_string(missing)))
        return wrong(p, "across", "or missing is no text");
    if (!json_is_array(columns) || json_array_size(columns) > COLUMNS_MOST || !json_is_array(points))
        return wrong(p, "columns", "are no list of at most 8, or points no list");
    json_array_foreach(columns, i, column) if (!json_is_string(column)) return wrong(p, "columns", "are no texts");
    return check_points(points, json_array_size(columns), p);
}

static gpuconv_status check_sweeps(const json_t *sweeps, place *p) {
    const char *name;
    json_t *sweep;
    if (!json_is_object(sweeps))
        return wrong(p, "the part", "is no object");
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
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: no report of gpulab: no object", path);
    json_object_foreach((json_t *)report, name, part) {
        place p = {path, name, 0, error};
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
