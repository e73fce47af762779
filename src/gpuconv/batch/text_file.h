/* Reading lists into memory. */
#ifndef GPUCONV_BATCH_TEXT_FILE_H
#define GPUCONV_BATCH_TEXT_FILE_H

#include "gpuconv.h"

/* Reads a text file, which gzip may have compressed. @return the text with room for one more byte, which is zero; to be
 * freed. NULL with FILE, FORMAT (a NUL byte, damaged compression) or MEMORY in *error */
char *gc_text_file_read(const char *path, size_t *length, gpuconv_error *error);

/* Refuses a NUL byte in a text of `length` bytes. @return FORMAT, with the line */
gpuconv_status gc_text_file_check(const char *path, const char *text, size_t length, gpuconv_error *error);

/* Returns the next line, without its newline, and moves *at behind it. NULL: the text has ended. */
char *gc_text_file_line(char **at);

#endif
