/* Numbers as text, with the same syntax in options, matrix files, lists and reports, and with a decimal point in every
 * locale. A program that uses the library may have set any locale; Python and desktop programs do.
 * tests/architecture.sh refuses strtod, vsnprintf, and formats such as %g elsewhere. */
#ifndef GC_CORE_NUMBER_H
#define GC_CORE_NUMBER_H

#include <locale.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { GC_NUMBER_TEXT = 48 }; /* room for a double or a 64-bit integer as text */

/* Parses a decimal number such as -3.5 or 1e-3. The number must be the whole text: empty text, white space,
 * hexadecimal, nan, inf and numbers outside the range of double are refused; -0 becomes 0.
 * @return true if *value was set */
bool gc_number_parse(const char *text, double *value);

/* Parses a 64-bit decimal integer in the same way. @return true if *value was set */
bool gc_integer_parse(const char *text, int64_t *value);

/* Parses numbers with one character of `dividers` between them. @return how many; 0 if a part is no number, or if there
 * are more than `most` */
int gc_numbers_parse(const char *text, const char *dividers, double *value, int most);

/* Writes a number with 15 to 17 digits, the fewest that give the same number again. Writes inf and nan as printf does.
 */
void gc_number_print(double value, char text[GC_NUMBER_TEXT]);

/* Formats as snprintf and vsnprintf do. */
int gc_format(char *to, size_t room, const char *format, ...) __attribute__((format(printf, 3, 4)));
int gc_vformat(char *to, size_t room, const char *format, va_list args) __attribute__((format(printf, 3, 0)));

/* Appends to a text in a buffer of `room` bytes; what does not fit is left out. */
void gc_append(char *text, size_t room, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Formats into a stream as fprintf does. For files that may print (tests/architecture.sh). */
int gc_print(FILE *to, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sets the "C" locale for the calling thread and returns the one before, for gc_locale_leave. Within, numbers have a
 * point, letters are those of ASCII, and texts are sorted by bytes. */
locale_t gc_locale_enter(void);
void gc_locale_leave(locale_t before);

/* Compares two words, such as the extensions of file names; A to Z equal a to z. */
bool gc_same_word(const char *a, const char *b);

/* Decides in the same way whether a text begins with a word. */
bool gc_begins_with(const char *text, const char *word);

/* Returns the index of a word of `length` bytes in a list such as "auto|cpu|cuda"; -1: it is not there. */
int gc_word_find(const char *word, size_t length, const char *list);

/* Returns the index in such a list of what stands behind the last point of a path, A to Z as a to z; -1: it is not
 * there.
 */
int gc_ending_find(const char *path, const char *list);

/* Writes such a list as "auto, cpu or cuda". */
void gc_word_list(const char *list, char *text, size_t room);

#endif
