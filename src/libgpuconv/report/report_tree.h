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
    bool incomplete; /* an allocation failed */
};

#endif
