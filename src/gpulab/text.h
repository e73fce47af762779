/* Prints the lab as text: the list of modules and the tables of a report. */
#ifndef GPULAB_TEXT_H
#define GPULAB_TEXT_H

#include "session.h"

/* The courses that the modules name, with author and title, a line each. */
extern const char gc_lab_courses[];

void gc_lab_write_list(FILE *to);

/* Prints the results, effects and sweeps of a report as tables. */
void gc_lab_write_tables(const json_t *report, FILE *to);

#endif
