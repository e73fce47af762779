/* Fuzzes file names, titles and labels: a gnuplot script differs from the script for harmless texts, which are as long
 * or as short, only by octal escapes inside strings, and messages and reports have only printable UTF-8 characters. */
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/visible.h"
#include "libgpuconv/report/plot.h"
#include "libgpuconv/report/report.h"
#include "libtools/room/page.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXTS = 4, ROOM = 1024, SCRIPT = 1 << 14 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char text[TEXTS][ROOM];

/* Aborts unless every character is printable or a newline and there are `lines` newlines (any number if negative). */
static void check_visible(const char *from, int lines) {
    static char visible[4 * ROOM], part[4 * ROOM];
    int newlines = 0;
    for (const char *line = from; *line;) {
        size_t length = strcspn(line, "\n");
        if (length >= sizeof part)
            abort();
        memcpy(part, line, length);
        part[length] = '\0';
        if (strcmp(gc_visible(visible, sizeof visible, part), part) != 0) /* printable text is unchanged */
            abort();
        line += length;
        newlines += *line == '\n';
        line += *line == '\n';
    }
    if (lines >= 0 && newlines != lines)
        abort();
}

static void write_script(const char *const *t, bool panels, char *to) {
    static const double x[] = {1, 2, 4}, y[] = {1, (double)NAN, 3};
    static const float image[] = {-20, -30};
    gc_plot plot = {.title = t[0],
                    .x_label = t[1],
                    .y_label = t[2],
                    .series = 2,
                    .steps = 3,
                    .label = {t[3], t[0]},
                    .x = x,
                    .y = {y, y}};
    const gc_series series[] = {
        {.label = t[3], .colour = GC_COLOUR_MEAN, .mark = GC_MARK_POINTS, .y = y},
        {.label = t[2], .colour = GC_COLOUR_NOISE, .mark = GC_MARK_BARS, .y = y, .low = y, .high = y}};
    gc_panel panel[] = {{.title = t[0],
                         .x_label = t[1],
                         .y_label = t[2],
                         .x_range = {0, 1},
                         .y_range = {0, 1},
                         .count = 2,
                         .steps = 3,
                         .series = series,
                         .x = x},
                        {.title = t[3],
                         .x_label = t[0],
                         .y_label = t[1],
                         .x_range = {0, 1},
                         .y_range = {0, 1},
                         .seconds = 1,
                         .image = image,
                         .columns = 1,
                         .rows = 2},
                        {.title = t[2],
                         .x_label = t[3],
                         .y_label = t[0],
                         .x_range = {1, 4},
                         .seconds = 1,
                         .waterfall = true,
                         .x = x,
                         .image = image,
                         .columns = 1,
                         .rows = 2}};
    FILE *f = fmemopen(to, SCRIPT, "w");
    if (!f)
        abort();
    if (panels)
        gc_script_panels(panel, 3, 1, GC_PLOT_SVG, f);
    else
        gc_script_plot(&plot, GC_PLOT_PDF, f);
    if (fclose(f) != 0)
        abort();
}

/* Removes octal escapes from quoted strings, in place. */
static void strip(char *script) {
    char *to = script;
    bool inside = false;
    for (const char *from = script; *from;) {
        inside ^= *from == '"';
        if (inside && *from == '\\' && strspn(from + 1, "01234567") >= 3)
            from += 4;
        else
            *to++ = *from++;
    }
    *to = '\0';
}

/* Aborts if a text became markup of a page, or left its field of a table with commas. */
static void check_tables(const gpuconv_report *report) {
    static char written[16 * ROOM * TEXTS];
    FILE *f = fmemopen(written, sizeof written, "w");
    if (!f || gc_report_write_html(report, f) != GPUCONV_OK || fclose(f) != 0)
        abort();
    for (const char *c = written; (c = strchr(c, '<')) != NULL; c++) {
        static const char *const tags[] = {"h2>",
                                           "/h2>",
                                           "table>",
                                           "/table>",
                                           "tr>",
                                           "/tr>",
                                           "th>",
                                           "/th>",
                                           "td>",
                                           "/td>",
                                           "td class=\"text\">",
                                           "div class=\"wide\">",
                                           "/div>"};
        bool known = false;
        for (size_t k = 0; k < sizeof tags / sizeof *tags; k++)
            known |= strncmp(c + 1, tags[k], strlen(tags[k])) == 0;
        if (!known)
            abort();
    }
    f = fmemopen(written, sizeof written, "w");
    if (!f || gc_report_write_csv(report, "cells", f) != GPUCONV_OK || fclose(f) != 0)
        abort();
    int lines = 0;
    bool quoted = false;
    for (const char *c = written; *c; c++) {
        quoted ^= *c == '"';
        lines += *c == '\n' && !quoted;
    }
    if (quoted || lines != 1 + TEXTS)
        abort();
}

static void check_report(const char *const *t) {
    static char written[8 * ROOM * TEXTS];
    static const char *const names[] = {"value"};
    const double value = 1;
    gpuconv_report *report;
    if (gpuconv_report_new(&report) != GPUCONV_OK)
        abort();
    for (int i = 0; i < TEXTS; i++) {
        gc_report_text(report, "files", i == 0 ? "a" : i == 1 ? "b" : i == 2 ? "c" : "d", t[i]);
        gc_report_named_row(report, "list", t[i], 1, names, &value);
    }
    gpuconv_report *cells;
    if (gpuconv_report_new(&cells) != GPUCONV_OK)
        abort();
    for (int i = 0; i < TEXTS; i++) {
        const gc_report_cell cell[] = {{.name = "name", .text = t[i], .detail = true},
                                       {.name = "value", .number = value}};
        gc_report_cells(cells, "cells", t[i], 2, cell);
    }
    check_tables(cells);
    gpuconv_report_free(cells);
    for (int json = 0; json < 2; json++) {
        FILE *f = fmemopen(written, sizeof written, "w");
        if (!f || gpuconv_report_write(report, json ? GPUCONV_REPORT_JSON : GPUCONV_REPORT_TEXT, f) != GPUCONV_OK ||
            fclose(f) != 0)
            abort();
        if (!json)
            check_visible(written, 6 + 1 + TEXTS + 1 + TEXTS); /* environment, files, list */
        else
            for (const char *c = written; *c; c++)
                if ((unsigned char)*c < 0x20 && *c != '\n')
                    abort();
    }
    gpuconv_report_free(report);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char script[SCRIPT], plain[SCRIPT];
    const char *t[TEXTS], *harmless[TEXTS];
    for (int i = 0; i < TEXTS; i++) {
        const uint8_t *end = size ? memchr(data, 0, size) : NULL;
        size_t length = end ? (size_t)(end - data) : size, kept = length < ROOM ? length : ROOM - 1;
        if (kept)
            memcpy(text[i], data, kept);
        text[i][kept] = '\0';
        t[i] = text[i];
        harmless[i] = kept > 14 ? "a text of twenty bytes" : ""; /* a key has fewer columns with long labels */
        data += length + (end != NULL);
        size -= length + (end != NULL);
    }
    for (int panels = 0; panels < 2; panels++) {
        write_script(harmless, panels, plain);
        write_script(t, panels, script);
        strip(plain);
        strip(script);
        if (strcmp(script, plain) != 0)
            abort();
    }
    gpuconv_error error;
    gc_fail(&error, GPUCONV_ERROR_FILE, "%s: with %s: reason", t[0], t[1]);
    check_visible(error.message, 0);
    if (strlen(error.message) < 8 || strcmp(error.message + strlen(error.message) - 8, ": reason") != 0)
        abort();
    check_report(t);
    return 0;
}
