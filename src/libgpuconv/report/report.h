/* Fills reports: texts, counts and measurements in sections, rows in lists. These functions return no status: after a
 * failed allocation gpuconv_report_write returns MEMORY. They do nothing if the report is NULL. */
#ifndef GC_REPORT_REPORT_H
#define GC_REPORT_REPORT_H

#include "gpuconv.h"

#include <stdbool.h>

/* Set a fact of a section, which is created if necessary. */
void gc_report_text(gpuconv_report *report, const char *section, const char *name, const char *value);
void gc_report_count(gpuconv_report *report, const char *section, const char *name, int64_t value);

/* Returns whether the report has a section or list of that title. */
bool gc_report_has(const gpuconv_report *report, const char *title);

/* Sets a measurement; `spread` is half of max - min over n samples, 0 for one sample. */
void gc_report_measure(gpuconv_report *report, const char *section, const char *name, double value, const char *unit,
                       int n, double spread);

/* Appends a row of `count` named values to a list. */
void gc_report_row(gpuconv_report *report, const char *list, int count, const char *const *names, const double *values);

/* Appends a row with a label to a list, which a text report prints as a table. */
void gc_report_named_row(gpuconv_report *report, const char *list, const char *label, int count,
                         const char *const *names, const double *values);

#endif
