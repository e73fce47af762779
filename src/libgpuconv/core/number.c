/* Numbers from text. */
#include "number.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool gc_number_parse(const char *text, double *value) {
    /* strtod also takes white space, nan, inf and hexadecimal; none of them is made of these characters alone. */
    if (!*text || text[strspn(text, "0123456789.eE+-")])
        return false;
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!plain)
        return false;
    char *end;
    double read = strtod_l(text, &end, plain);
    freelocale(plain);
    if (end == text || *end || !isfinite(read))
        return false;
    *value = read + 0.0; /* -0 + 0 is 0 */
    return true;
}

bool gc_integer_parse(const char *text, int64_t *value) {
    if (!*text || text[strspn(text, "0123456789+-")])
        return false;
    char *end;
    errno = 0;
    long long read = strtoll(text, &end, 10);
    if (end == text || *end || errno)
        return false;
    *value = read;
    return true;
}
