/* Sweeps: one kernel's time or rate over a range of launch shapes or sizes. */
#ifndef GPULAB_SIZE_SWEEP_H
#define GPULAB_SIZE_SWEEP_H

#include "session.h"

/* Returns the name of sweep `i` (from 0), "MODULE AXIS"; NULL past the last. */
const char *gc_lab_sweep_name(int i);

/* Measures a sweep and stores { across, unit, columns: [...], points: [[x, value...]...] } under its name in `results`.
 * Without a GPU the sweep has no points and its member "missing" has the reason. Returns false after an error, which
 * has been printed. */
bool gc_lab_sweep(const gc_lab_session *session, const char *name, json_t *results);

#endif
