/*
 * The code of a rung: the variant's function, found by name in the module's sources, with all functions, types and
 * constants of these sources that it reaches; and its difference from the code of the rung before.
 */
#ifndef GPULAB_CODE_H
#define GPULAB_CODE_H

#include "gpuconv.h"
#include "lab.h"

#include <stdbool.h>

enum { GC_LAB_LEFT_OUT = '~' };

typedef struct gc_lab_code_line {
    char mark; /* ' ', '+': not in the rung before, '-': only in the rung before, or GC_LAB_LEFT_OUT */
    const char *text;
    int length; /* without the line break; GC_LAB_LEFT_OUT: the number of lines that both rungs have here */
} gc_lab_code_line;

typedef struct gc_lab_code {
    gc_lab_code_line *line;
    int count;
    const gc_lab_variant *same;    /* an earlier rung with the same code, or NULL; the lines have no marks then */
    const gc_lab_variant *against; /* the rung that the marks refer to; NULL: no marks, because little is common */
} gc_lab_code;

/* Finds the code of variant `rung`. Without code (a function of the harness) count is 0. The caller frees the code.
 * @return MEMORY */
gpuconv_status gc_lab_code_find(const gc_lab_module *module, int rung, gc_lab_code *code, gpuconv_error *error);
void gc_lab_code_free(gc_lab_code *code);

#endif
