/* Parsing of numbers with strtod and strtoll. */
#include "number.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool gc_number_parse(const char *text, double *value) {
    /* strtod also accepts white space, nan, inf and hexadecimal; all of these need other characters. */
    if (!*text || text[strspn(text, "0123456789.eE+-")])
        return false;
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c_locale)
        return false;
    char *end;
    double parsed = strtod_l(text, &end, c_locale);
    freelocale(c_locale);
    if (end == text || *end || !isfinite(parsed))
        return false;
    *value = parsed + 0.0; /* -0 + 0 is 0 */
    return true;
}

bool gc_integer_parse(const char *text, int64_t *value) {
    if (!*text || text[strspn(text, "0123456789+-")])
        return false;
    char *end;
    errno = 0;
    long long parsed = strtoll(text, &end, 10);
    if (end == text || *end || errno)
        return false;
    *value = parsed;
    return true;
}
