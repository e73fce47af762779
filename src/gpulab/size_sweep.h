/* Sweeps: one kernel over a range of launches or sizes, where a course draws a curve. */
#ifndef GPULAB_SIZE_SWEEP_H
#define GPULAB_SIZE_SWEEP_H

#include "session.h"

/* Sweep number `i` from 0 on, as "MODULE AXIS"; NULL behind the last. */
const char *gc_lab_sweep_name(int i);

/* Measures it: { across, columns: [...], points: [[x, value...]...] } under its name in `sweeps`. A build or machine
 * without a GPU gives a sweep without points, and its reason. False: something failed, which was told. */
bool gc_lab_sweep(gc_lab_session *session, const char *name, json_t *sweeps);

#endif
