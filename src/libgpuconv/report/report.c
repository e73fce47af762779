/*
 * Reports: filling the tree of facts and measurements, writing it as JSON, text or HTML or a list of it as CSV, and
 * reading it from a program: titles, rows, names and values. The tree that a report is stored as:
 *
 *      { "section": { "fact": "text", "count": 7, "measure": { "value": 1.5, "unit": "s", "n": 1, "spread": 0 } },
 *        "list": [ { "label": "...", "name": value, ... }, ... ] }
 */
#include "report.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/os.h"
#include "libgpuconv/core/visible.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct gpuconv_report {
    json_t *root;
    json_t *details; /* per list the names of its details, per section those of its headlines; NULL: none */
    bool incomplete; /* an allocation failed */
};

gpuconv_status gpuconv_report_new(gpuconv_report **report) {
    if (!report)
        return GPUCONV_ERROR_ARGUMENT;
    *report = NULL;
    gpuconv_report *r = gc_calloc(1, sizeof *r);
    if (!r || !(r->root = json_object())) {
        free(r);
        return GPUCONV_ERROR_MEMORY;
    }
    gc_os_names names;
    gc_report_text(r, "environment", "gpuconv", gpuconv_version());
    gc_report_text(r, "environment", "compiler", __VERSION__);
    if (gc_os_get_names(&names)) {
        gc_report_text(r, "environment", "system", names.system);
        gc_report_text(r, "environment", "kernel", names.release);
        gc_report_text(r, "environment", "machine", names.machine);
    }
    *report = r;
    return GPUCONV_OK;
}

void gpuconv_report_free(gpuconv_report *r) {
    if (!r)
        return;
    json_decref(r->root);
    json_decref(r->details);
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

/* Notes that a text report leaves a name of a part out of its place. */
static void add_detail(gpuconv_report *r, const char *part, const char *name) {
    if (!r->details)
        r->details = json_object();
    json_t *names = json_object_get(r->details, part);
    if (!names && json_object_set_new(r->details, part, json_object()) == 0)
        names = json_object_get(r->details, part);
    r->incomplete |= json_object_set_new(names, name, json_true()) != 0;
}

void gc_report_headline(gpuconv_report *r, const char *section, const char *name, const char *value) {
    gc_report_text(r, section, name, value);
    if (r)
        add_detail(r, section, name);
}

void gc_report_cells(gpuconv_report *r, const char *list, const char *label, int count, const gc_report_cell *cells) {
    if (!r)
        return;
    json_t *row = json_object();
    r->incomplete |= json_object_set_new(row, "label", json_text(label)) != 0;
    for (int i = 0; i < count; i++) {
        json_t *value = cells[i].text ? json_text(cells[i].text) : json_number(cells[i].number);
        r->incomplete |= json_object_set_new(row, cells[i].name, value) != 0;
        if (cells[i].detail)
            add_detail(r, list, cells[i].name);
    }
    r->incomplete |= json_array_append_new(get_part(r, list, json_array), row) != 0;
}

/* Copies a text for printing: control characters become escapes, long texts are shortened. */
static const char *printable(const char *text, char *to, size_t room) {
    return gc_visible(to, room, text ? text : "");
}

/* Formats a number, from 1e-7 to 1e9 without an exponent: 48000, not 4.8e+04. @return `to` */
static const char *format_number(double value, char *to, size_t room) {
    double size = fabs(value);
    if (size >= 1e4 && size < 1e9)
        (void)gc_format(to, room, "%.0f", value);
    else if (size >= 1e-7 && size < 1e-4)
        (void)gc_format(to, room, "%.*f", 3 - (int)floor(log10(size)), value);
    else
        (void)gc_format(to, room, "%.4g", value);
    return to;
}

static void print_value(FILE *to, json_t *value) {
    char text[1024];
    if (json_is_string(value))
        fprintf(to, "%s", printable(json_string_value(value), text, sizeof text));
    else if (json_is_integer(value))
        fprintf(to, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        fprintf(to, "%s", format_number(json_real_value(value), text, sizeof text));
    else
        fputc('-', to);
}

/* Prints the headlines, each as a line, and a blank line after them. */
static void print_headlines(FILE *to, const gpuconv_report *r) {
    const char *title, *name;
    json_t *names, *value;
    bool any = false;
    json_object_foreach(r->details, title, names) {
        json_t *section = json_object_get(r->root, title);
        json_object_foreach(section, name, value) { /* not for a list */
            if (!json_object_get(names, name))
                continue;
            print_value(to, value);
            fputc('\n', to);
            any = true;
        }
    }
    fputs(any ? "\n" : "", to);
}

static void print_section(FILE *to, const gpuconv_report *r, const char *title, json_t *section) {
    const json_t *headlines = json_object_get(r->details, title);
    const char *name;
    json_t *value;
    fprintf(to, "%s\n", title);
    json_object_foreach(section, name, value) {
        if (json_object_get(headlines, name))
            continue;
        fprintf(to, "  %-24s ", name);
        if (json_is_object(value)) {
            print_value(to, json_object_get(value, "value"));
            if (json_is_number(json_object_get(value, "value")))
                fprintf(to, " %s", json_string_value(json_object_get(value, "unit")));
            if (json_integer_value(json_object_get(value, "n")) > 1)
                gc_print(to, " (+- %.2g, n = %lld)", json_real_value(json_object_get(value, "spread")),
                         (long long)json_integer_value(json_object_get(value, "n")));
        } else {
            print_value(to, value);
        }
        fputc('\n', to);
    }
}

enum { COLUMN = 9, COLUMNS = 64, LABEL = 200 };

/* Formats a cell of a table. */
static const char *cell_text(const json_t *value, char *to, size_t room) {
    if (json_is_string(value))
        return printable(json_string_value(value), to, room);
    return json_is_number(value) ? format_number(json_number_value(value), to, room) : "-";
}

/* Returns the characters of a text. */
static int width_of(const char *text) {
    int width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

/* The columns of a table. `narrow`: its columns are as wide as their content, otherwise at least COLUMN. */
typedef struct table {
    const json_t *details; /* NULL: none */
    bool narrow;
    int label, width[COLUMNS];
} table;

static bool is_detail(const table *t, const char *name) {
    return strcmp(name, "label") == 0 || json_object_get(t->details, name);
}

static void measure_row(table *t, json_t *row) {
    const char *name;
    json_t *value;
    char text[LABEL];
    int column = 0, label = width_of(cell_text(json_object_get(row, "label"), text, sizeof text)) + 2;
    t->label = label > t->label ? label : t->label;
    json_object_foreach(row, name, value) {
        if (is_detail(t, name) || column >= COLUMNS)
            continue;
        int width = width_of(cell_text(value, text, sizeof text)), least = t->narrow ? width_of(name) : COLUMN;
        width = width > least ? width : least;
        t->width[column] = width > t->width[column] ? width : t->width[column];
        column++;
    }
}

/* Prints a row, or with `names` the names of its cells. Texts are aligned at the left. */
static void print_row(FILE *to, const table *t, json_t *row, const char *title, bool names) {
    const char *name;
    json_t *value;
    char text[LABEL];
    int column = 0;
    const char *label = names ? title : cell_text(json_object_get(row, "label"), text, sizeof text);
    fprintf(to, "%s%s%*s", names ? "" : "  ", label, t->label - width_of(label) - (names ? 0 : 2), "");
    json_object_foreach(row, name, value) {
        if (is_detail(t, name) || column >= COLUMNS)
            continue;
        const char *shown = names ? name : cell_text(value, text, sizeof text);
        int pad = t->width[column++] - width_of(shown);
        if (json_is_string(value))
            fprintf(to, *shown ? "  %s" : "%s", shown);
        else
            fprintf(to, "  %*s%s", pad > 0 ? pad : 0, "", shown);
    }
    fputc('\n', to);
}

/* Prints a list whose rows have labels as a table. Other lists are raw data and appear only in JSON. */
static void print_list(FILE *to, const gpuconv_report *r, const char *title, json_t *list) {
    json_t *row, *first = json_array_get(list, 0);
    size_t i;
    const json_t *details = json_object_get(r->details, title);
    table t = {.details = details, .narrow = details != NULL, .label = width_of(title)};
    if (!json_object_get(first, "label"))
        return;
    json_array_foreach(list, i, row) measure_row(&t, row);
    print_row(to, &t, first, title, true);
    json_array_foreach(list, i, row) print_row(to, &t, row, title, false);
}

/* Writes a text as a field of CSV, in quotes if necessary. */
static void put_field(FILE *to, const char *text) {
    bool quoted = strpbrk(text, ",\"\r\n") != NULL;
    if (quoted)
        fputc('"', to);
    for (; *text; text++)
        fprintf(to, *text == '"' ? "\"\"" : "%c", *text);
    if (quoted)
        fputc('"', to);
}

gpuconv_status gc_report_write_csv(const gpuconv_report *r, const char *list, FILE *to) {
    json_t *rows = json_object_get(r->root, list), *row, *value;
    const char *name;
    size_t i;
    if (r->incomplete)
        return GPUCONV_ERROR_MEMORY;
    for (int names = 1; names >= 0; names--)
        json_array_foreach(rows, i, row) {
            const char *separator = "";
            json_object_foreach(row, name, value) {
                if (strcmp(name, "label") == 0)
                    continue;
                fputs(separator, to);
                separator = ",";
                if (names || json_is_string(value))
                    put_field(to, names ? name : json_string_value(value));
                else if (json_is_number(value))
                    gc_print(to, "%.9g", json_number_value(value));
            }
            fputc('\n', to);
            if (names)
                break;
        }
    return fflush(to) != 0 || ferror(to) ? GPUCONV_ERROR_FILE : GPUCONV_OK;
}

gpuconv_status gpuconv_report_write(const gpuconv_report *r, gpuconv_report_format format, FILE *to) {
    if (!r || !to)
        return GPUCONV_ERROR_ARGUMENT;
    if (r->incomplete)
        return GPUCONV_ERROR_MEMORY;
    if (format == GPUCONV_REPORT_JSON) {
        if (json_dumpf(r->root, to, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) != 0)
            return GPUCONV_ERROR_FILE;
        fputc('\n', to);
    } else {
        const char *title;
        json_t *part;
        print_headlines(to, r);
        json_object_foreach(r->root, title, part) {
            if (json_is_array(part))
                print_list(to, r, title, part);
            else
                print_section(to, r, title, part);
        }
    }
    return fflush(to) != 0 || ferror(to) ? GPUCONV_ERROR_FILE : GPUCONV_OK;
}

/* ---- Reports as HTML --------------------------------------------------------------------------------------------- */

void gc_html_text(const char *text, FILE *to) {
    char shown[512];
    for (const char *c = gc_visible(shown, sizeof shown, text); *c; c++) {
        const char *entity = gc_entity(*c);
        if (entity)
            fputs(entity, to);
        else
            fputc(*c, to);
    }
}

void gc_html_put(const char *before, const char *text, const char *after, FILE *to) {
    fputs(before, to);
    gc_html_text(text, to);
    fputs(after, to);
}

/* Writes a value; a measurement with its unit. */
static void put_value(const json_t *value, FILE *to) {
    char text[64];
    const json_t *number = json_is_object(value) ? json_object_get(value, "value") : value;
    if (json_is_string(value))
        gc_html_text(json_string_value(value), to);
    else if (json_is_integer(value))
        fprintf(to, "%lld", (long long)json_integer_value(value));
    else
        fputs(json_is_number(number) ? format_number(json_number_value(number), text, sizeof text) : "-", to);
    if (json_is_object(value) && json_is_number(number)) {
        fputc(' ', to);
        gc_html_text(json_string_value(json_object_get(value, "unit")), to);
    }
}

static void put_html_section(json_t *section, FILE *to) {
    const char *name;
    json_t *value;
    fputs("<table>\n", to);
    json_object_foreach(section, name, value) {
        gc_html_put("<tr><th>", name, "</th><td>", to);
        put_value(value, to);
        fputs("</td></tr>\n", to);
    }
    fputs("</table>\n", to);
}

/* Writes a row, or with `names` the names of its cells. */
static void put_html_row(const json_t *details, json_t *row, bool names, FILE *to) {
    const char *name;
    json_t *value;
    fputs("<tr><th>", to);
    if (!names)
        gc_html_text(json_string_value(json_object_get(row, "label")), to);
    fputs("</th>", to);
    json_object_foreach(row, name, value) {
        if (strcmp(name, "label") == 0 || json_object_get(details, name))
            continue;
        fputs(names ? "<th>" : json_is_string(value) ? "<td class=\"text\">" : "<td>", to);
        if (names)
            gc_html_text(name, to);
        else
            put_value(value, to);
        fputs(names ? "</th>" : "</td>", to);
    }
    fputs("</tr>\n", to);
}

gpuconv_status gc_report_write_html(const gpuconv_report *r, FILE *to) {
    const char *title;
    json_t *part, *row;
    size_t i;
    if (r->incomplete)
        return GPUCONV_ERROR_MEMORY;
    json_object_foreach(r->root, title, part) {
        if (strcmp(title, "environment") == 0 ||
            (json_is_array(part) && !json_object_get(json_array_get(part, 0), "label")))
            continue;
        gc_html_put("<h2>", title, "</h2>\n", to);
        if (!json_is_array(part)) {
            put_html_section(part, to);
            continue;
        }
        fputs("<div class=\"wide\"><table>\n", to);
        const json_t *details = json_object_get(r->details, title);
        put_html_row(details, json_array_get(part, 0), true, to);
        json_array_foreach(part, i, row) put_html_row(details, row, false, to);
        fputs("</table></div>\n", to);
    }
    return ferror(to) ? GPUCONV_ERROR_FILE : GPUCONV_OK;
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

/* Returns the key of the index-th member of an object, in the order in which they were added; NULL behind the last. */
static const char *find_key(json_t *object, int index) {
    void *member = json_object_iter(object);
    for (int i = 0; member && i < index; i++)
        member = json_object_iter_next(object, member);
    return member && index >= 0 ? json_object_iter_key(member) : NULL;
}

/* Returns the section or list with this title; NULL if there is none. */
static json_t *find_part(const gpuconv_report *r, const char *title) {
    return r ? json_object_get(r->root, title) : NULL;
}

/* Returns the object with the values of a row; NULL if there is none. */
static json_t *find_row(const gpuconv_report *r, const char *title, int row) {
    json_t *part = find_part(r, title);
    if (json_is_array(part))
        return row < 0 ? NULL : json_array_get(part, (size_t)row);
    return row == 0 ? part : NULL;
}

static json_t *find_value(const gpuconv_report *r, const char *title, int row, const char *name) {
    return json_object_get(find_row(r, title, row), name);
}

const char *gpuconv_report_title(const gpuconv_report *r, int part) {
    return r ? find_key(r->root, part) : NULL;
}

int gpuconv_report_rows(const gpuconv_report *r, const char *title) {
    json_t *part = find_part(r, title);
    return json_is_array(part) ? (int)json_array_size(part) : part ? 1 : 0;
}

const char *gpuconv_report_name(const gpuconv_report *r, const char *title, int row, int value) {
    return find_key(find_row(r, title, row), value);
}

gpuconv_value_type gpuconv_report_type(const gpuconv_report *r, const char *title, int row, const char *name) {
    json_t *value = find_value(r, title, row, name);
    if (!value)
        return GPUCONV_VALUE_NONE;
    return json_is_string(value)    ? GPUCONV_VALUE_TEXT
           : json_is_integer(value) ? GPUCONV_VALUE_COUNT
                                    : GPUCONV_VALUE_NUMBER; /* an object, or in a list a number or null */
}

const char *gpuconv_report_text(const gpuconv_report *r, const char *title, int row, const char *name) {
    return json_string_value(find_value(r, title, row, name));
}

int64_t gpuconv_report_count(const gpuconv_report *r, const char *title, int row, const char *name) {
    return json_integer_value(find_value(r, title, row, name));
}

double gpuconv_report_number(const gpuconv_report *r, const char *title, int row, const char *name) {
    json_t *value = find_value(r, title, row, name);
    if (json_is_object(value))
        value = json_object_get(value, "value");
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

const char *gpuconv_report_unit(const gpuconv_report *r, const char *title, int row, const char *name) {
    const char *unit = json_string_value(json_object_get(find_value(r, title, row, name), "unit"));
    return unit ? unit : "";
}

int64_t gpuconv_report_runs(const gpuconv_report *r, const char *title, int row, const char *name) {
    return json_integer_value(json_object_get(find_value(r, title, row, name), "n"));
}

double gpuconv_report_spread(const gpuconv_report *r, const char *title, int row, const char *name) {
    json_t *spread = json_object_get(find_value(r, title, row, name), "spread");
    return json_is_number(spread) ? json_number_value(spread) : (double)NAN;
}
