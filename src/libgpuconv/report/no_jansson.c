/* Takes the place of report.c in a build without jansson: there is no report to fill or to read. */
#include "report.h"

#include <math.h>

gpuconv_status gpuconv_report_new(gpuconv_report **report) {
    if (!report)
        return GPUCONV_ERROR_ARGUMENT;
    *report = NULL;
    return GPUCONV_ERROR_UNSUPPORTED;
}

gpuconv_status gpuconv_report_write(const gpuconv_report *report, gpuconv_report_format format, FILE *to) {
    (void)report, (void)format, (void)to;
    return GPUCONV_ERROR_ARGUMENT;
}

void gpuconv_report_free(gpuconv_report *report) {
    (void)report;
}

const char *gpuconv_report_title(const gpuconv_report *report, int part) {
    (void)report, (void)part;
    return NULL;
}

int gpuconv_report_rows(const gpuconv_report *report, const char *title) {
    (void)report, (void)title;
    return 0;
}

const char *gpuconv_report_name(const gpuconv_report *report, const char *title, int row, int value) {
    (void)report, (void)title, (void)row, (void)value;
    return NULL;
}

gpuconv_value_type gpuconv_report_type(const gpuconv_report *report, const char *title, int row, const char *name) {
    (void)report, (void)title, (void)row, (void)name;
    return GPUCONV_VALUE_NONE;
}

const char *gpuconv_report_text(const gpuconv_report *report, const char *title, int row, const char *name) {
    (void)report, (void)title, (void)row, (void)name;
    return NULL;
}

int64_t gpuconv_report_count(const gpuconv_report *report, const char *title, int row, const char *name) {
    (void)report, (void)title, (void)row, (void)name;
    return 0;
}

double gpuconv_report_number(const gpuconv_report *report, const char *title, int row, const char *name) {
    (void)report, (void)title, (void)row, (void)name;
    return (double)NAN;
}

const char *gpuconv_report_unit(const gpuconv_report *report, const char *title, int row, const char *name) {
    (void)report, (void)title, (void)row, (void)name;
    return "";
}

int64_t gpuconv_report_runs(const gpuconv_report *report, const char *title, int row, const char *name) {
    (void)report, (void)title, (void)row, (void)name;
    return 0;
}

double gpuconv_report_spread(const gpuconv_report *report, const char *title, int row, const char *name) {
    (void)report, (void)title, (void)row, (void)name;
    return (double)NAN;
}

void gc_report_text(gpuconv_report *report, const char *section, const char *name, const char *value) {
    (void)report, (void)section, (void)name, (void)value;
}

void gc_report_headline(gpuconv_report *report, const char *section, const char *name, const char *value) {
    (void)report, (void)section, (void)name, (void)value;
}

void gc_report_count(gpuconv_report *report, const char *section, const char *name, int64_t value) {
    (void)report, (void)section, (void)name, (void)value;
}

void gc_report_measure(gpuconv_report *report, const char *section, const char *name, double value, const char *unit,
                       int n, double spread) {
    (void)report, (void)section, (void)name, (void)value, (void)unit, (void)n, (void)spread;
}

void gc_report_named_row(gpuconv_report *report, const char *list, const char *label, int count,
                         const char *const *names, const double *values) {
    (void)report, (void)list, (void)label, (void)count, (void)names, (void)values;
}
