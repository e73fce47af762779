/* Reads numbers from text: one meaning for options, matrix files and lists. */
#ifndef GC_CORE_NUMBER_H
#define GC_CORE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Reads a decimal number such as -3.5 or 1e-3. Every locale has the point as decimal separator. The whole text is the
 * number: empty text, white space, hexadecimal, nan, inf and numbers beyond a double are refused; -0 becomes 0.
 * @return whether *value was set. */
bool gc_number_parse(const char *text, double *value);

/* Reads a whole decimal number of 64 bits in the same way, without a point or an exponent.
 * @return whether *value was set. */
bool gc_integer_parse(const char *text, int64_t *value);

#endif
