/* Scripts for gnuplot. A script is constant text and numbers: every character of a title or label is written as an
 * octal escape in a double-quoted string, so that no text can become a command, a macro or a shell command. */
#ifndef GC_REPORT_SCRIPT_H
#define GC_REPORT_SCRIPT_H

#include "plot.h"

#include <stdio.h>

/* Write the script of a drawing that gnuplot prints on its standard output, with its data. Whether it was written,
 * ferror says. */
void gc_script_plot(const gc_plot *plot, bool svg, FILE *to);
void gc_script_panels(const gc_panel *panel, int count, int columns, bool svg, FILE *to);

#endif
