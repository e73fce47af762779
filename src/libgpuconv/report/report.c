/*
 * Measurements, kept as a JSON tree and printed as that or as text:
 *
 *      { "section": { "fact": "text", "count": 7, "measure": { "value": 1.5, "unit": "s", "n": 1, "spread": 0 } },
 *        "list": [ { "label": "...", "name": value, ... }, ... ] }
 */
#include "report.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

struct gpuconv_report {
    json_t *root;
    bool failed;
};

gpuconv_status gpuconv_report_new(gpuconv_report **report) {
    *report = NULL;
    gpuconv_report *r = gc_calloc(1, sizeof *r);
    if (!r || !(r->root = json_object())) {
        free(r);
        return GPUCONV_ERROR_MEMORY;
    }
    struct utsname system;
    gc_report_text(r, "environment", "gpuconv", gpuconv_version());
    gc_report_text(r, "environment", "compiler", __VERSION__);
    if (uname(&system) == 0) {
        gc_report_text(r, "environment", "system", system.sysname);
        gc_report_text(r, "environment", "kernel", system.release);
        gc_report_text(r, "environment", "machine", system.machine);
    }
    *report = r;
    return GPUCONV_OK;
}

void gpuconv_report_free(gpuconv_report *r) {
    if (!r)
        return;
    json_decref(r->root);
    free(r);
}

/* A part of the report by its title, made when it is not there yet; NULL: no memory. */
static json_t *part_of(gpuconv_report *r, const char *title, json_t *(*make)(void)) {
    json_t *part = json_object_get(r->root, title);
    if (!part && json_object_set_new(r->root, title, make()) == 0) /* which takes it over, or frees it */
        part = json_object_get(r->root, title);
    return part;
}

/* Sets section.name, taking over the value. */
static void set(gpuconv_report *r, const char *section, const char *name, json_t *value) {
    if (!r) {
        json_decref(value);
        return;
    }
    r->failed |= json_object_set_new(part_of(r, section, json_object), name, value) != 0;
}

void gc_report_text(gpuconv_report *r, const char *section, const char *name, const char *value) {
    json_t *text = json_string(value);
    if (!text) { /* no UTF-8, as a path may be: what is not ASCII becomes question marks */
        char plain[512];
        size_t n = 0;
        for (; value[n] && n < sizeof plain - 1; n++)
            plain[n] = (unsigned char)value[n] < 0x80 ? value[n] : '?';
        plain[n] = '\0';
        text = json_string(plain);
    }
    set(r, section, name, text);
}

void gc_report_count(gpuconv_report *r, const char *section, const char *name, int64_t value) {
    if (r)
        set(r, section, name, json_integer(value));
}

/* JSON has no infinity: a ratio by zero or the level of silence is null. */
static json_t *number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

void gc_report_measure(gpuconv_report *r, const char *section, const char *name, double value, const char *unit, int n,
                       double spread) {
    if (r)
        set(r, section, name,
            json_pack("{s:o, s:s, s:i, s:o}", "value", number(value), "unit", unit, "n", n, "spread", number(spread)));
}

void gc_report_named_row(gpuconv_report *r, const char *list, const char *label, int count, const char *const *names,
                         const double *values) {
    if (!r)
        return;
    json_t *row = json_object();
    if (label)
        r->failed |= json_object_set_new(row, "label", json_string(label)) != 0;
    for (int i = 0; i < count; i++)
        r->failed |= json_object_set_new(row, names[i], number(values[i])) != 0;
    r->failed |= json_array_append_new(part_of(r, list, json_array), row) != 0;
}

void gc_report_row(gpuconv_report *r, const char *list, int count, const char *const *names, const double *values) {
    gc_report_named_row(r, list, NULL, count, names, values);
}

static void print_value(FILE *to, json_t *value) {
    if (json_is_string(value))
        fprintf(to, "%s", json_string_value(value));
    else if (json_is_integer(value))
        fprintf(to, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        fprintf(to, "%.4g", json_real_value(value));
    else
        fputs("none", to);
}

static void print_section(FILE *to, const char *title, json_t *section) {
    const char *name;
    json_t *value;
    fprintf(to, "%s\n", title);
    json_object_foreach(section, name, value) {
        fprintf(to, "  %-24s ", name);
        if (json_is_object(value)) {
            print_value(to, json_object_get(value, "value"));
            fprintf(to, " %s", json_string_value(json_object_get(value, "unit")));
            if (json_integer_value(json_object_get(value, "n")) > 1)
                fprintf(to, " (+- %.2g, n = %lld)", json_real_value(json_object_get(value, "spread")),
                        (long long)json_integer_value(json_object_get(value, "n")));
        } else {
            print_value(to, value);
        }
        fputc('\n', to);
    }
}

/* A list whose rows carry labels is a table; others are raw data, which text leaves to the JSON. */
static void print_list(FILE *to, const char *title, json_t *list) {
    enum { COLUMN = 9 };
    int widest = (int)strlen(title);
    const char *name;
    json_t *value, *row, *first = json_array_get(list, 0);
    size_t i;
    if (!json_object_get(first, "label"))
        return;
    json_array_foreach(list, i, row) {
        int width = (int)strlen(json_string_value(json_object_get(row, "label"))) + 2;
        widest = width > widest ? width : widest;
    }
    fprintf(to, "%-*s", widest, title);
    json_object_foreach(first, name, value) if (strcmp(name, "label") != 0) fprintf(to, "  %*s", COLUMN, name);
    fputc('\n', to);
    json_array_foreach(list, i, row) {
        fprintf(to, "  %-*s", widest - 2, json_string_value(json_object_get(row, "label")));
        json_object_foreach(row, name, value) {
            int width = (int)strlen(name) > COLUMN ? (int)strlen(name) : COLUMN;
            if (strcmp(name, "label") == 0)
                continue;
            if (json_is_number(value))
                fprintf(to, "  %*.4g", width, json_number_value(value));
            else
                fprintf(to, "  %*s", width, "-");
        }
        fputc('\n', to);
    }
}

gpuconv_status gpuconv_report_write(const gpuconv_report *r, gpuconv_report_format format, FILE *to) {
    if (r->failed)
        return GPUCONV_ERROR_MEMORY;
    if (format == GPUCONV_REPORT_JSON) {
        if (json_dumpf(r->root, to, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) != 0)
            return GPUCONV_ERROR_FILE;
        fputc('\n', to);
    } else {
        const char *title;
        json_t *part;
        json_object_foreach(r->root, title, part) {
            if (json_is_array(part))
                print_list(to, title, part);
            else
                print_section(to, title, part);
        }
    }
    return fflush(to) != 0 || ferror(to) ? GPUCONV_ERROR_FILE : GPUCONV_OK;
}
