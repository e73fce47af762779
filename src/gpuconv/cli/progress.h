/* How far it is, on standard error: a line drawn over and over on a terminal, one every ten seconds elsewhere. */
#ifndef GPUCONV_CLI_PROGRESS_H
#define GPUCONV_CLI_PROGRESS_H

#include <stdbool.h>

typedef struct gc_meter {
    bool quiet, terminal, drawn;
    double told; /* seconds, when it last spoke */
} gc_meter;

gc_meter gc_meter_begin(bool quiet);

/* Whether it is time to speak, `seconds` after the beginning; the line is then begun, and ended by gc_meter_end_line.
 */
bool gc_meter_begin_line(gc_meter *meter, double seconds);
void gc_meter_end_line(gc_meter *meter);

/* Takes what is drawn off the terminal again, before anything else is said there. */
void gc_meter_clear(gc_meter *meter);

/* [#####     ] of a share 0..1 */
void gc_meter_bar(double share);

/* h:mm:ss or m:ss */
void gc_print_time(double seconds);

#endif
