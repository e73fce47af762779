/* Conversion of texts of any bytes, such as file names, into valid UTF-8 or hexadecimal digits; paths. */
#ifndef GPUCONV_BATCH_ENTRY_TEXT_H
#define GPUCONV_BATCH_ENTRY_TEXT_H

#include <stdbool.h>

enum { GC_TEXT_LINE = 1 << 24 }; /* bytes: the longest line of a list, and of results.jsonl */

/* Decides whether a text is valid UTF-8. */
bool gc_text_is_utf8(const char *text);

/* Returns a copy, to be freed, in which U+FFFD replaces every byte that is not part of a UTF-8 character; *changed:
 * there were such bytes. NULL: out of memory. */
char *gc_text_utf8(const char *text, bool *changed);

/* Returns the bytes as hexadecimal digits, to be freed. NULL: out of memory. */
char *gc_text_hex(const char *text);

/* Returns the bytes of hexadecimal digits, to be freed; other characters end the text. NULL: out of memory. */
char *gc_text_unhex(const char *hex);

/* Appends to a text that the caller frees; *text may be NULL. @return false: out of memory, and *text is freed and NULL
 */
bool gc_text_append(char **text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Formats a text, to be freed. NULL: out of memory. */
char *gc_text_of(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Compares a text with hexadecimal digits that gc_text_hex returned. */
bool gc_text_is_hex_of(const char *hex, const char *text);

/* Removes `.` components and doubled slashes, in place. */
void gc_path_normalise(char *path);

/* Returns the path of a name in the folder of `path`, to be freed; a name that is absolute stays as it is. NULL: out of
 * memory. */
char *gc_path_beside(const char *path, const char *name);

#endif
