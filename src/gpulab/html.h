/* Writes a report as one self-contained HTML page: variants, effects, sweeps and the roofline, drawn as SVG. */
#ifndef GPULAB_HTML_H
#define GPULAB_HTML_H

#include <jansson.h>
#include <stdio.h>

/* Writes the page. The caller checks ferror(to). */
void gc_lab_write_page(const json_t *report, FILE *to);

#endif
