/* Parsing numbers, with the same syntax in options, matrix files and lists. */
#ifndef GC_CORE_NUMBER_H
#define GC_CORE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Parses a decimal number such as -3.5 or 1e-3, with a decimal point in every locale. The number must be the whole
 * text: empty text, white space, hexadecimal, nan, inf and numbers outside the range of double are refused; -0 becomes
 * 0.
 * @return true if *value was set */
bool gc_number_parse(const char *text, double *value);

/* Parses a 64-bit decimal integer in the same way. @return true if *value was set */
bool gc_integer_parse(const char *text, int64_t *value);

#endif
