/* Reports and texts as HTML, for pages. */
#ifndef GPUCONV_ROOM_REPORT_HTML_H
#define GPUCONV_ROOM_REPORT_HTML_H

#include "gpuconv.h"

#include <stdio.h>

/* Writes every section and every list with labels as an HTML table, without the environment. Texts become entities, so
 * that none is markup. @return FILE, MEMORY */
gpuconv_status gc_report_write_html(const gpuconv_report *report, FILE *to);

/* Writes a text as HTML: markup and quotes as entities, control characters as escapes; at most 500 bytes of it. */
void gc_html_text(const char *text, FILE *to);

#endif
