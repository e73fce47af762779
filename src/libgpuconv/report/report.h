/* Fills reports: texts, counts and measurements in sections, rows in lists. These functions return no status: after a
 * failed allocation gpuconv_report_write returns MEMORY. They do nothing if the report is NULL. */
#ifndef GC_REPORT_REPORT_H
#define GC_REPORT_REPORT_H

#include "gpuconv.h"

#include <stdbool.h>

/* Set a fact of a section, which is created if necessary. */
void gc_report_text(gpuconv_report *report, const char *section, const char *name, const char *value);
void gc_report_count(gpuconv_report *report, const char *section, const char *name, int64_t value);

/* Sets a fact, a sentence, with which a text report begins, in place of its section. */
void gc_report_headline(gpuconv_report *report, const char *section, const char *name, const char *value);

/* Returns whether the report has a section or list of that title. */
bool gc_report_has(const gpuconv_report *report, const char *title);

/* Sets a measurement; `spread` is half of max - min over n samples, 0 for one sample. */
void gc_report_measure(gpuconv_report *report, const char *section, const char *name, double value, const char *unit,
                       int n, double spread);

/* Appends a row of `count` named values to a list, which a text report prints as a table if its rows have labels.
 * `label`: NULL for none. */
void gc_report_named_row(gpuconv_report *report, const char *list, const char *label, int count,
                         const char *const *names, const double *values);

/* A named value of a row: a text, or a number if `text` is NULL. */
typedef struct gc_report_cell {
    const char *name, *text;
    double number;
    bool detail; /* left out of a text report */
} gc_report_cell;

/* Appends a row of cells with a label to a list. All rows of a list have the same cells. */
void gc_report_cells(gpuconv_report *report, const char *list, const char *label, int count,
                     const gc_report_cell *cells);

/* Writes a list as CSV (RFC 4180, but with line feeds): a line of names, then a line for each row. A number that does
 * not exist is an empty field; labels are left out. @return FILE, MEMORY */
gpuconv_status gc_report_write_csv(const gpuconv_report *report, const char *list, FILE *to);

/* Writes every section and every list with labels as an HTML table, without the environment. Texts become entities, so
 * that none is markup. @return FILE, MEMORY */
gpuconv_status gc_report_write_html(const gpuconv_report *report, FILE *to);

/* Writes a text as HTML: markup and quotes as entities, control characters as escapes; at most 500 bytes of it. */
void gc_html_text(const char *text, FILE *to);

/* Writes a text so between two pieces of markup. */
void gc_html_put(const char *before, const char *text, const char *after, FILE *to);

#endif
