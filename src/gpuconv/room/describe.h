/* All that is told of a response file. */
#ifndef GPUCONV_ROOM_DESCRIBE_H
#define GPUCONV_ROOM_DESCRIBE_H

#include "gpuconv.h"

/* Length, rate, peak and delay into the section "response", ISO 3382's figures of every channel, all of it and octaves
 * from 125 to 8000 Hz, into the list "acoustics"; with `plot` a drawing of decay and spectrum. As gpuconv_ir_load;
 * ARGUMENT, UNSUPPORTED, FILE of the drawing; MEMORY. */
gpuconv_status gc_describe(const char *path, const char *plot, gpuconv_report *report, gpuconv_error *error);

#endif
