/* Prints a module for reading: its idea, and the ladder of variants with the code of each one, what it changed and the
 * time that was recorded for it. */
#ifndef GPULAB_CHAPTER_H
#define GPULAB_CHAPTER_H

#include "gpuconv.h"
#include "lab.h"

#include <stdbool.h>
#include <stdio.h>

/* Prints a module as text, as wide as the terminal, up to 100 columns. `brief` leaves out the code. @return MEMORY */
gpuconv_status gc_lab_write_module(const gc_lab_module *module, bool brief, FILE *to, gpuconv_error *error);

/* Prints a module as a chapter in Markdown, which also lists the effects. @return MEMORY */
gpuconv_status gc_lab_write_chapter(const gc_lab_module *module, bool brief, FILE *to, gpuconv_error *error);

#endif
