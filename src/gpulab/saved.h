/* Reads and checks reports of gpulab that were saved as JSON. */
#ifndef GPULAB_SAVED_H
#define GPULAB_SAVED_H

#include "gpuconv.h"

#include <jansson.h>

/* Checks that a report has the form that gpulab writes, so that the tables and the page can rely on it: known members
 * have their types, every row has its names, numbers lie within 1e18, times are at least 1e-18, values of a sweep are 0
 * or at least 1e-18, and a sweep's axis is positive and increases. Unknown members may be scalars. `path` is the file's
 * name in messages. Fails with FORMAT and a message that has the row and what must hold. */
gpuconv_status gc_lab_saved_check(const json_t *report, const char *path, gpuconv_error *error);

/* Reads and checks a report. The caller releases `*report` with json_decref. Fails with FILE if the file cannot be
 * opened, and with FORMAT if it is not JSON or not a report. */
gpuconv_status gc_lab_saved_load(const char *path, json_t **report, gpuconv_error *error);

#endif
