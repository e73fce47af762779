/* Reports: filling the tree of facts and measurements (report_tree.h), and writing it as JSON or as text. */
#include "report_tree.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/visible.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

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

/* Returns the section or list with this title, created by `make` if necessary; NULL if there is too little memory. */
static json_t *get_part(gpuconv_report *r, const char *title, json_t *(*make)(void)) {
    json_t *part = json_object_get(r->root, title);
    if (!part && json_object_set_new(r->root, title, make()) == 0) /* takes ownership, also on failure */
        part = json_object_get(r->root, title);
    return part;
}

/* Sets section.name and takes ownership of the value. */
static void set_value(gpuconv_report *r, const char *section, const char *name, json_t *value) {
    if (!r) {
        json_decref(value);
        return;
    }
    r->incomplete |= json_object_set_new(get_part(r, section, json_object), name, value) != 0;
}

/* Returns a text as JSON, with escapes for bytes that are not UTF-8 (paths may have them); NULL if there is too little
 * memory. */
static json_t *json_text(const char *value) {
    json_t *text = json_string(value);
    if (text)
        return text;
    size_t room = 4 * strlen(value) + 1; /* a byte becomes \xff at most */
    char *plain = malloc(room);
    text = plain ? json_string(gc_visible(plain, room, value)) : NULL;
    free(plain);
    return text;
}

void gc_report_text(gpuconv_report *r, const char *section, const char *name, const char *value) {
    if (r)
        set_value(r, section, name, json_text(value));
}

bool gc_report_has(const gpuconv_report *r, const char *title) {
    return r && json_object_get(r->root, title);
}

void gc_report_count(gpuconv_report *r, const char *section, const char *name, int64_t value) {
    if (r)
        set_value(r, section, name, json_integer(value));
}

/* Returns a number as JSON. JSON has no infinity: a ratio by zero and the level of silence are null. */
static json_t *json_number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

void gc_report_measure(gpuconv_report *r, const char *section, const char *name, double value, const char *unit, int n,
                       double spread) {
    if (r)
        set_value(r, section, name,
                  json_pack("{s:o, s:s, s:i, s:o}", "value", json_number(value), "unit", unit, "n", n, "spread",
                            json_number(spread)));
}

void gc_report_named_row(gpuconv_report *r, const char *list, const char *label, int count, const char *const *names,
                         const double *values) {
    if (!r)
        return;
    json_t *row = json_object();
    if (label)
        r->incomplete |= json_object_set_new(row, "label", json_text(label)) != 0;
    for (int i = 0; i < count; i++)
        r->incomplete |= json_object_set_new(row, names[i], json_number(values[i])) != 0;
    r->incomplete |= json_array_append_new(get_part(r, list, json_array), row) != 0;
}

void gc_report_row(gpuconv_report *r, const char *list, int count, const char *const *names, const double *values) {
    gc_report_named_row(r, list, NULL, count, names, values);
}

/* Copies a text for printing: control characters become escapes, long texts are shortened. */
static const char *printable(const char *text, char *to, size_t room) {
    return gc_visible(to, room, text ? text : "");
}

/* Formats a number, from 1e-7 to 1e9 without an exponent: 48000, not 4.8e+04. */
static const char *number_text(double value, char *to, size_t room) {
    double size = fabs(value);
    if (size >= 1e4 && size < 1e9)
        (void)snprintf(to, room, "%.0f", value);
    else if (size >= 1e-7 && size < 1e-4)
        (void)snprintf(to, room, "%.*f", 3 - (int)floor(log10(size)), value);
    else
        (void)snprintf(to, room, "%.4g", value);
    return to;
}

static void print_value(FILE *to, json_t *value) {
    char text[1024];
    if (json_is_string(value))
        fprintf(to, "%s", printable(json_string_value(value), text, sizeof text));
    else if (json_is_integer(value))
        fprintf(to, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        fprintf(to, "%s", number_text(json_real_value(value), text, sizeof text));
    else
        fputc('-', to);
}

static void print_section(FILE *to, const char *title, json_t *section) {
    const char *name;
    json_t *value;
    fprintf(to, "%s\n", title);
    json_object_foreach(section, name, value) {
        fprintf(to, "  %-24s ", name);
        if (json_is_object(value)) {
            print_value(to, json_object_get(value, "value"));
            if (json_is_number(json_object_get(value, "value")))
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

enum { COLUMN = 9, LABEL = 200 };

static void print_row(FILE *to, json_t *row, int widest) {
    const char *name;
    json_t *value;
    char text[LABEL];
    fprintf(to, "  %-*s", widest - 2, printable(json_string_value(json_object_get(row, "label")), text, sizeof text));
    json_object_foreach(row, name, value) {
        int width = (int)strlen(name) > COLUMN ? (int)strlen(name) : COLUMN;
        if (strcmp(name, "label") == 0)
            continue;
        const char *number = json_is_number(value) ? number_text(json_number_value(value), text, sizeof text) : "-";
        fprintf(to, "  %*s", width, number);
    }
    fputc('\n', to);
}

/* Prints a list whose rows have labels as a table. Other lists are raw data and appear only in JSON. */
static void print_list(FILE *to, const char *title, json_t *list) {
    int widest = (int)strlen(title);
    const char *name;
    char text[LABEL];
    json_t *value, *row, *first = json_array_get(list, 0);
    size_t i;
    if (!json_object_get(first, "label"))
        return;
    json_array_foreach(list, i, row) {
        int width = (int)strlen(printable(json_string_value(json_object_get(row, "label")), text, sizeof text)) + 2;
        widest = width > widest ? width : widest;
    }
    fprintf(to, "%-*s", widest, title);
    json_object_foreach(first, name, value) if (strcmp(name, "label") != 0) fprintf(to, "  %*s", COLUMN, name);
    fputc('\n', to);
    json_array_foreach(list, i, row) print_row(to, row, widest);
}

gpuconv_status gpuconv_report_write(const gpuconv_report *r, gpuconv_report_format format, FILE *to) {
    if (r->incomplete)
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
