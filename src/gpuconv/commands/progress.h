/* Progress on standard error: on a terminal one line that is redrawn, otherwise a new line every ten seconds. */
#ifndef GPUCONV_COMMANDS_PROGRESS_H
#define GPUCONV_COMMANDS_PROGRESS_H

#include "cli/terminal.h"

#include <stdbool.h>

typedef struct gc_meter {
    bool quiet, terminal, drawn;
    double printed; /* seconds after the beginning at which a line was last due */
} gc_meter;

gc_meter gc_meter_begin(bool quiet);

/* Returns whether a new line is due, `seconds` after the beginning. */
bool gc_meter_due(gc_meter *meter, double seconds);

/* Prints the line, within the width of the terminal. */
void gc_meter_print(gc_meter *meter, const gc_status_line *line);

/* Draws a line over the last one on a terminal, one column narrower than the terminal, so that it never scrolls. */
void gc_meter_draw(const gc_status_line *line);

/* Erases the line from the terminal; called before a message is printed. */
void gc_meter_clear(gc_meter *meter);

/* Appends a bar such as [#####     ] for a share from 0 to 1. */
void gc_meter_bar(gc_status_line *line, int rank, double share);

#endif
