/* Scripts for gnuplot. A script consists of constant text and numbers. Every byte of a title or label is written as an
 * octal escape in a double-quoted string, so that no title or label can become a gnuplot or shell command, or a macro.
 */
#ifndef GC_REPORT_SCRIPT_H
#define GC_REPORT_SCRIPT_H

#include "plot.h"

#include <stdio.h>

/* Write a script, data included, that makes gnuplot print the drawing on its standard output. The caller checks
 * ferror(to). */
void gc_script_plot(const gc_plot *plot, gc_plot_format format, FILE *to);
void gc_script_panels(const gc_panel *panel, int count, int columns, gc_plot_format format, FILE *to);

#endif
