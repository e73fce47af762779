/* Text for a terminal or a drawing: one line of valid UTF-8 without control characters. */
#ifndef GC_CORE_VISIBLE_H
#define GC_CORE_VISIBLE_H

#include <stdarg.h>
#include <stddef.h>

/* Copies `from` into `to` and replaces what a terminal would obey or cannot show by an escape:
 *
 *   control characters (C0, DEL, C1)                     \n \t \r \x1b \u0085
 *   bytes that are not UTF-8                             \xff
 *   controls of writing direction, line separators       \u202e \u2028
 *   noncharacters, which XML refuses                     \uffff
 *
 * Every other character, the backslash too, stays as it is. A text that does not fit is shortened in the middle, where
 * it gets "...": a third of the room goes to its beginning and the rest to its end, and no character or escape is cut.
 * @param to    `room` bytes, which must not overlap `from`; always ends in a zero byte if room > 0
 * @return      `to` */
char *gc_visible(char *to, size_t room, const char *from);

/* Formats like vsnprintf and makes the result visible, with gc_visible's shortening. Arguments may point into `to`. */
void gc_visible_print(char *to, size_t room, const char *format, va_list args) __attribute__((format(printf, 3, 0)));

#endif
