/* How far a job is, on standard error: a line drawn over and over on a terminal, one every ten seconds elsewhere. */
#ifndef GPUCONV_CLI_PROGRESS_H
#define GPUCONV_CLI_PROGRESS_H

#include "cli/terminal.h"

#include <stdbool.h>

typedef struct gc_meter {
    bool quiet, terminal, drawn;
    double told; /* seconds, when it last spoke */
} gc_meter;

gc_meter gc_meter_begin(bool quiet);

/* Whether it is time for a line, `seconds` after the beginning. */
bool gc_meter_due(gc_meter *meter, double seconds);

/* Prints the line, within the width of the terminal. */
void gc_meter_print(gc_meter *meter, const gc_status_line *line);

/* Prints a line over the last one on a terminal, one column narrower than it, so that it never scrolls. */
void gc_meter_draw(const gc_status_line *line);

/* Takes what is drawn off the terminal again, before anything else is said there. */
void gc_meter_clear(gc_meter *meter);

/* Appends [#####     ] of a share 0..1. */
void gc_meter_bar(gc_status_line *line, int rank, double share);

#endif
