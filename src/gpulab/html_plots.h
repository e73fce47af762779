/* The drawings of the page, as SVG, and the writing of text as HTML. */
#ifndef GPULAB_HTML_PLOTS_H
#define GPULAB_HTML_PLOTS_H

#include <jansson.h>
#include <stdio.h>

/* Writes a text with markup and quotes as entities and control characters as escapes. Every text of a report and of a
 * module is written by this function. Line breaks are kept; a line of more than 4095 bytes is shortened in the middle.
 * NULL is an empty text. */
void gc_html_put_text(FILE *to, const char *text);

/* Draw a sweep with its first two columns, and the variants of a report under its peak rates. */
void gc_html_draw_sweep(FILE *to, const char *name, const json_t *sweep);
void gc_html_draw_roofline(FILE *to, const json_t *report);

#endif
