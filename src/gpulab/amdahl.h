/* Amdahl's law, applied to measured times. */
#ifndef GPULAB_AMDAHL_H
#define GPULAB_AMDAHL_H

#include "session.h"

/* Times the vector-add module and prints the speedup that Amdahl's law allows. Returns the number of failed variants.
 */
int gc_lab_print_amdahl(gc_lab_session *session, FILE *to);

#endif
