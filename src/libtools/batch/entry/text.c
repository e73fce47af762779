/* Conversion of texts of any bytes; paths. */
#include "text.h"

#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the number of bytes, 1 to 4, of the UTF-8 character at `text`; 0 if it is not one. Unicode, chapter 3,
 * table 3-7: well-formed sequences. */
static size_t measure_character(const char *text) {
    const unsigned char *c = (const unsigned char *)text;
    unsigned least = c[0] == 0xe0 ? 0xa0 : c[0] == 0xf0 ? 0x90 : 0x80;
    unsigned most = c[0] == 0xed ? 0x9f : c[0] == 0xf4 ? 0x8f : 0xbf;
    if (c[0] > 0 && c[0] < 0x80)
        return 1;
    if (c[0] < 0xc2 || c[0] > 0xf4 || c[1] < least || c[1] > most)
        return 0;
    if (c[0] < 0xe0)
        return 2;
    if ((c[2] & 0xc0) != 0x80)
        return 0;
    if (c[0] < 0xf0)
        return 3;
    return (c[3] & 0xc0) == 0x80 ? 4 : 0;
}

bool gc_text_is_utf8(const char *text) {
    for (size_t length; *text; text += length)
        if (!(length = measure_character(text)))
            return false;
    return true;
}

char *gc_text_utf8(const char *text, bool *changed) {
    static const char unknown[] = "\xef\xbf\xbd";
    char *made = gc_calloc(3 * (int64_t)strlen(text) + 1, 1);
    *changed = false;
    for (char *to = made; made && *text;) {
        size_t length = measure_character(text);
        memcpy(to, length ? text : unknown, length ? length : sizeof unknown - 1);
        to += length ? length : sizeof unknown - 1;
        text += length ? length : 1;
        *changed |= length == 0;
    }
    return made;
}

char *gc_text_hex(const char *text) {
    size_t length = strlen(text);
    char *made = gc_calloc(2 * (int64_t)length + 1, 1);
    for (size_t i = 0; made && i < length; i++)
        (void)snprintf(made + 2 * i, 3, "%02x", (unsigned char)text[i]);
    return made;
}

char *gc_text_unhex(const char *hex) {
    size_t digits = strspn(hex, "0123456789abcdefABCDEF");
    char *made = gc_calloc((int64_t)digits / 2 + 1, 1);
    for (size_t i = 0; made && i + 1 < digits; i += 2) {
        const char pair[3] = {hex[i], hex[i + 1], '\0'};
        made[i / 2] = (char)strtol(pair, NULL, 16);
    }
    return made;
}

/* Appends to a text. @return false: out of memory, and *text is freed and NULL */
static bool append(char **text, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

static bool append(char **text, const char *format, va_list args) {
    va_list again;
    size_t before = *text ? strlen(*text) : 0;
    va_copy(again, args);
    int n = gc_vformat(NULL, 0, format, args);
    char *longer = n < 0 ? NULL : realloc(*text, before + (size_t)n + 1);
    if (longer)
        (void)gc_vformat(longer + before, (size_t)n + 1, format, again);
    else
        free(*text);
    va_end(again);
    *text = longer;
    return longer != NULL;
}

bool gc_text_append(char **text, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const bool good = append(text, format, args);
    va_end(args);
    return good;
}

char *gc_text_of(const char *format, ...) {
    va_list args;
    char *text = NULL;
    va_start(args, format);
    (void)append(&text, format, args);
    va_end(args);
    return text;
}

bool gc_text_is_hex_of(const char *hex, const char *text) {
    char pair[3];
    for (; *text; text++, hex += 2) {
        (void)snprintf(pair, sizeof pair, "%02x", (unsigned char)*text);
        if (strncmp(hex, pair, 2) != 0)
            return false;
    }
    return !*hex;
}

void gc_path_normalise(char *path) {
    char *to = path;
    const char *from = path;
    if (*from == '/')
        *to++ = *from++;
    while (*from) {
        size_t length = strcspn(from, "/");
        bool kept = length > 0 && !(length == 1 && *from == '.');
        if (kept) {
            memmove(to, from, length);
            to += length;
        }
        from += length;
        if (*from == '/') {
            from++;
            if (kept)
                *to++ = '/';
        }
    }
    *to = '\0';
}

char *gc_path_beside(const char *path, const char *name) {
    const char *slash = *name == '/' ? NULL : strrchr(path, '/');
    return gc_text_of("%.*s%s", slash ? (int)(slash - path) + 1 : 0, path, name);
}
