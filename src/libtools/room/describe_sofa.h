/* Describes a set of responses by direction (SOFA, AES69). */
#ifndef GPUCONV_ROOM_DESCRIBE_SOFA_H
#define GPUCONV_ROOM_DESCRIBE_SOFA_H

#include "gpuconv.h"

/* Adds the names, sizes and directions of a SOFA file to the section "responses" of a report.
 * @return FILE, FORMAT, MEMORY, CANCELLED */
gpuconv_status gc_describe_sofa(const char *path, gpuconv_report *report, gpuconv_error *error);

#endif
