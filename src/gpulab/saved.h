/* Reports of gpulab that were saved as JSON. */
#ifndef GPULAB_SAVED_H
#define GPULAB_SAVED_H

#include "gpuconv.h"

#include <jansson.h>

/* Checks that a report has the form that gpulab writes, so that tables and the page can rely on it: every known part
 * has its type, every row its names, numbers lie within 1e18, what is measured is 0 or at least 1e-18, and a
 * sweep's axis is positive and increases. Unknown
 * scalars are accepted. `path` names the report in messages. @return FORMAT with the place and what is wrong */
gpuconv_status gc_lab_saved_check(const json_t *report, const char *path, gpuconv_error *error);

/* Reads and checks a report. @param report  gets it, for json_decref. FILE, FORMAT, MEMORY. */
gpuconv_status gc_lab_saved_load(const char *path, json_t **report, gpuconv_error *error);

#endif
