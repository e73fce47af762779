/* Word wrapping of help texts and of the lab's pages. */
#ifndef GPUCONV_CLI_WRAP_H
#define GPUCONV_CLI_WRAP_H

#include <stddef.h>
#include <stdio.h>

/* The lines of a wrapped text. */
typedef struct gc_wrap {
    int margin; /* column in which every line after the first one begins */
    int width;  /* columns of a line; a longer word exceeds them */
} gc_wrap;

/* Prints `bytes` bytes of text as words separated by one blank, wrapped, and ends the last line. The first line begins
 * where the caller stopped, which must be column `margin`. */
void gc_print_words(FILE *to, const char *words, size_t bytes, gc_wrap wrap);

#endif
