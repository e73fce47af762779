/* A report as one self-contained page: ladders, effects, sweeps and the roofline, drawings as SVG. */
#ifndef GPULAB_HTML_H
#define GPULAB_HTML_H

#include <jansson.h>
#include <stdio.h>

/* Writes the page; whether it was written, ferror says. */
void gc_lab_write_page(const json_t *report, FILE *to);

#endif
