/* Makes text safe for a terminal or an SVG drawing: one line of valid UTF-8 without control characters. */
#ifndef GC_CORE_VISIBLE_H
#define GC_CORE_VISIBLE_H

#include <stdarg.h>
#include <stddef.h>

/* Copies `from` into `to` and replaces characters that a terminal interprets or cannot show by escapes:
 *
 *   control characters (C0, DEL, C1)                     \n \t \r \x1b \u0085
 *   bytes that are not UTF-8                             \xff
 *   controls of writing direction, line separators       \u202e \u2028
 *   noncharacters, which XML refuses                     \uffff
 *
 * All other characters, including the backslash, are copied unchanged. A text that does not fit is shortened in the
 * middle, which becomes "...": a third of the room is for its beginning and the rest for its end. Characters and
 * escapes are never split.
 * @param to    `room` bytes, which must not overlap `from`; terminated by a zero byte if room > 0
 * @return      `to` */
char *gc_visible(char *to, size_t room, const char *from);

/* Returns the last name of a path; all of one that ends with a slash. */
const char *gc_file_name(const char *path);

/* Returns the length of a path without its ending, such as ".wav": all of one whose last name has none. */
size_t gc_stem_length(const char *path);

/* Returns the entity that stands for a character in HTML and XML, NULL if the character stands for itself. */
const char *gc_entity(char c);

/* Formats like vsnprintf and passes the result through gc_visible. The arguments may point into `to`. */
void gc_visible_print(char *to, size_t room, const char *format, va_list args) __attribute__((format(printf, 3, 0)));

#endif
