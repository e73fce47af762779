/* Prints the lab as text: the list of modules, one module, and the tables of a report. */
#ifndef GPULAB_TEXT_H
#define GPULAB_TEXT_H

#include "session.h"

void gc_lab_write_list(FILE *to);

/* Print a module: its idea, its variants with what each changed, sizes and source files. The chapter is Markdown and
 * lists the effects. */
void gc_lab_write_module(const gc_lab_module *module, FILE *to);
void gc_lab_write_chapter(const gc_lab_module *module, FILE *to);

/* Prints the results, effects and sweeps of a report as tables. */
void gc_lab_write_tables(const json_t *report, FILE *to);

#endif
