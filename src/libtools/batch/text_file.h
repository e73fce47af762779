/* Reading of lists, which gzip may have compressed, line by line. */
#ifndef GPUCONV_BATCH_TEXT_FILE_H
#define GPUCONV_BATCH_TEXT_FILE_H

#include "libgpuconv/core/lines.h"

enum { GC_TEXT_LINE = 1 << 24 }; /* bytes: the longest line of a list, and of results.jsonl */

typedef struct gc_text_file gc_text_file;

/* Opens a list. Fails with FILE, FORMAT or MEMORY. Its lines fail as gc_lines_next does, and with FORMAT if compression
 * is damaged, or so good that the text cannot be a list. */
gpuconv_status gc_text_file_open(const char *path, gc_text_file **file, gpuconv_error *error);
gc_lines *gc_text_file_lines(gc_text_file *file);
void gc_text_file_close(gc_text_file *file);

#endif
