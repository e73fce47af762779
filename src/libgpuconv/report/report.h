/* Filling a report: facts and measurements in sections, rows in lists. Nothing here fails to the caller: a report that
 * ran out of memory says so when it is written. A NULL report swallows everything. */
#ifndef GC_REPORT_REPORT_H
#define GC_REPORT_REPORT_H

#include "gpuconv.h"

void gc_report_text(gpuconv_report *report, const char *section, const char *name, const char *value);
void gc_report_count(gpuconv_report *report, const char *section, const char *name, int64_t value);

/* A measurement; `spread` is half of max - min over n samples, 0 for one. */
void gc_report_measure(gpuconv_report *report, const char *section, const char *name, double value, const char *unit,
                       int n, double spread);

/* One row of a list: `count` named values. */
void gc_report_row(gpuconv_report *report, const char *list, int count, const char *const *names, const double *values);

/* One row of a list with a text in front of the values. */
void gc_report_named_row(gpuconv_report *report, const char *list, const char *label, int count,
                         const char *const *names, const double *values);

#endif
