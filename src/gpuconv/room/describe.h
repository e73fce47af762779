/* Describes an impulse response file (gpuconv ir info). */
#ifndef GPUCONV_ROOM_DESCRIBE_H
#define GPUCONV_ROOM_DESCRIBE_H

#include "gpuconv.h"

/* Reports length, rate, peak and delay in the section "response", and the ISO 3382 parameters of every channel, for the
 * whole spectrum and for octaves from 125 to 8000 Hz, in the list "acoustics".
 * @param plot file that receives a drawing of decay and spectrum, or NULL
 * @return any status of gpuconv_ir_load; ARGUMENT, UNSUPPORTED or FILE if the drawing fails; MEMORY */
gpuconv_status gc_describe(const char *path, const char *plot, gpuconv_report *report, gpuconv_error *error);

#endif
