/* Parses and prints numbers in the "C" locale, which is set for the calling thread meanwhile. */
#include "number.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static locale_t c_locale;

static void make_c_locale(void) {
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* a constant of glibc and musl: cannot fail, is not freed */
}

locale_t gc_locale_enter(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, make_c_locale);
    return uselocale(c_locale);
}

void gc_locale_leave(locale_t before) {
    (void)uselocale(before);
}

bool gc_same_word(const char *a, const char *b) {
    const locale_t before = gc_locale_enter();
    const bool same = strcasecmp(a, b) == 0;
    gc_locale_leave(before);
    return same;
}

bool gc_begins_with(const char *text, const char *word) {
    const locale_t before = gc_locale_enter();
    const bool begins = strncasecmp(text, word, strlen(word)) == 0;
    gc_locale_leave(before);
    return begins;
}

int gc_word_find(const char *word, size_t length, const char *list) {
    for (int i = 0; list; i++) {
        const size_t n = strcspn(list, "|");
        if (n == length && strncmp(list, word, n) == 0)
            return i;
        list = list[n] ? list + n + 1 : NULL;
    }
    return -1;
}

int gc_ending_find(const char *path, const char *list) {
    char small[8] = "";
    const char *dot = strrchr(path, '.');
    const size_t length = dot ? strlen(dot + 1) : sizeof small;
    for (size_t i = 0; i < length && length < sizeof small; i++)
        small[i] = (char)(dot[i + 1] >= 'A' && dot[i + 1] <= 'Z' ? dot[i + 1] | 0x20 : dot[i + 1]);
    return length < sizeof small ? gc_word_find(small, length, list) : -1;
}

void gc_word_list(const char *list, char *text, size_t room) {
    size_t used = 0;
    for (const char *at = list; *at && used + 5 < room; at++) {
        const char *put = *at != '|' ? (char[2]){*at, '\0'} : strchr(at + 1, '|') ? ", " : " or ";
        used += (size_t)snprintf(text + used, room - used, "%s", put);
    }
}

bool gc_number_parse(const char *text, double *value) {
    /* strtod also accepts white space, nan, inf and hexadecimal; all of these need other characters. */
    if (!*text || text[strspn(text, "0123456789.eE+-")])
        return false;
    char *end;
    const locale_t before = gc_locale_enter();
    double parsed = strtod(text, &end);
    gc_locale_leave(before);
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

int gc_numbers_parse(const char *text, const char *dividers, double *value, int most) {
    for (int count = 0; count < most;) {
        char word[32];
        const size_t length = strcspn(text, dividers);
        if (length >= sizeof word)
            return 0;
        memcpy(word, text, length);
        word[length] = '\0';
        if (!gc_number_parse(word, &value[count++]))
            return 0;
        if (!text[length])
            return count;
        text += length + 1;
    }
    return 0;
}

void gc_number_print(double value, char text[GC_NUMBER_TEXT]) {
    const locale_t before = gc_locale_enter();
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, GC_NUMBER_TEXT, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    gc_locale_leave(before);
}

int gc_vformat(char *to, size_t room, const char *format, va_list args) {
    const locale_t before = gc_locale_enter();
    const int length = vsnprintf(to, room, format, args);
    gc_locale_leave(before);
    return length;
}

int gc_format(char *to, size_t room, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const int length = gc_vformat(to, room, format, args);
    va_end(args);
    return length;
}

void gc_append(char *text, size_t room, const char *format, ...) {
    const size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    (void)gc_vformat(text + used, room - used, format, args);
    va_end(args);
}

int gc_print(FILE *to, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const locale_t before = gc_locale_enter();
    const int length = vfprintf(to, format, args);
    gc_locale_leave(before);
    va_end(args);
    return length;
}
