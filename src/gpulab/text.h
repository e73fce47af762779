/* The lab in words: lists, chapters, tables. */
#ifndef GPULAB_TEXT_H
#define GPULAB_TEXT_H

#include "session.h"

void gc_lab_write_list(FILE *to);

/* The idea, the ladder and the source's place; as Markdown a chapter for a student. */
void gc_lab_write_module(const gc_lab_module *module, FILE *to);
void gc_lab_write_chapter(const gc_lab_module *module, FILE *to);

/* What a report of gpulab holds, as tables. */
void gc_lab_write_tables(const json_t *report, FILE *to);

/* Folded at 100 columns, every line behind `margin`. */
void gc_lab_write_wrapped(const char *text, const char *margin, FILE *to);

#endif
