/*
 * The tree that a report is stored as:
 *
 *      { "section": { "fact": "text", "count": 7, "measure": { "value": 1.5, "unit": "s", "n": 1, "spread": 0 } },
 *        "list": [ { "label": "...", "name": value, ... }, ... ] }
 */
#ifndef GC_REPORT_REPORT_TREE_H
#define GC_REPORT_REPORT_TREE_H

#include "report.h"

#include <jansson.h>

struct gpuconv_report {
    json_t *root;
    json_t *details; /* per list the names of its details, per section those of its headlines; NULL: none */
    bool incomplete; /* an allocation failed */
};

/* Formats a number, from 1e-7 to 1e9 without an exponent: 48000, not 4.8e+04. @return `to` */
const char *gc_report_number(double value, char *to, size_t room);

#endif
