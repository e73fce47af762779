/* Writes a report as HTML tables. */
#include "report_html.h"

#include "libgpuconv/core/visible.h"
#include "libgpuconv/report/report_tree.h"

#include <string.h>

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

/* Writes a value; a measurement with its unit. */
static void put_value(const json_t *value, FILE *to) {
    char text[64];
    const json_t *number = json_is_object(value) ? json_object_get(value, "value") : value;
    if (json_is_string(value))
        gc_html_text(json_string_value(value), to);
    else if (json_is_integer(value))
        fprintf(to, "%lld", (long long)json_integer_value(value));
    else
        fputs(json_is_number(number) ? gc_report_number(json_number_value(number), text, sizeof text) : "-", to);
    if (json_is_object(value) && json_is_number(number)) {
        fputc(' ', to);
        gc_html_text(json_string_value(json_object_get(value, "unit")), to);
    }
}

static void put_section(json_t *section, FILE *to) {
    const char *name;
    json_t *value;
    fputs("<table>\n", to);
    json_object_foreach(section, name, value) {
        fputs("<tr><th>", to);
        gc_html_text(name, to);
        fputs("</th><td>", to);
        put_value(value, to);
        fputs("</td></tr>\n", to);
    }
    fputs("</table>\n", to);
}

/* Writes a row, or with `names` the names of its cells. */
static void put_row(const json_t *details, json_t *row, bool names, FILE *to) {
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
        fputs("<h2>", to);
        gc_html_text(title, to);
        fputs("</h2>\n", to);
        if (!json_is_array(part)) {
            put_section(part, to);
            continue;
        }
        fputs("<div class=\"wide\"><table>\n", to);
        const json_t *details = json_object_get(r->details, title);
        put_row(details, json_array_get(part, 0), true, to);
        json_array_foreach(part, i, row) put_row(details, row, false, to);
        fputs("</table></div>\n", to);
    }
    return ferror(to) ? GPUCONV_ERROR_FILE : GPUCONV_OK;
}
