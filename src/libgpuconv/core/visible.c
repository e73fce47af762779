/* Decodes UTF-8 one character at a time and copies each character or writes its escape. */
#include "visible.h"
#include "number.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNIT = 8, STACK = 2048 };

/* Decodes one character of UTF-8 (RFC 3629: no overlong forms, no surrogates, at most U+10FFFF).
 * @return the character's length in bytes, or 0 if `s` does not begin with a valid character */
static size_t decode(const unsigned char *s, uint32_t *code) {
    if (s[0] < 0x80) {
        *code = s[0];
        return 1;
    }
    size_t length = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    uint32_t value = s[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80) /* the terminating zero byte ends here too */
            return 0;
        value = value << 6 | (s[i] & 0x3fu);
    }
    *code = value;
    return value < least[length] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000) ? 0 : length;
}

static int is_hidden(uint32_t code) {
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e || code == 0x200f ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || (code & 0xfffe) == 0xfffe;
}

/* Writes the first character of `s` or its escape to `unit`, with a terminating zero byte.
 * @param taken  receives the bytes of `s` that were decoded
 * @return       the length of `unit` in bytes */
static size_t next_unit(const char *s, char unit[UNIT + 4], size_t *taken) {
    uint32_t code;
    *taken = decode((const unsigned char *)s, &code);
    if (*taken && !is_hidden(code)) {
        memcpy(unit, s, *taken);
        unit[*taken] = '\0';
        return *taken;
    }
    int length;
    if (!*taken) {
        *taken = 1;
        length = snprintf(unit, UNIT + 4, "\\x%02x", (unsigned char)*s);
    } else if (code == '\n' || code == '\t' || code == '\r') {
        length = snprintf(unit, UNIT + 4, "\\%c", code == '\n' ? 'n' : code == '\t' ? 't' : 'r');
    } else {
        length = snprintf(unit, UNIT + 4, code < 0x80 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%06x", code);
    }
    return length > 0 ? (size_t)length : 0;
}

static size_t visible_length(const char *from) {
    char unit[UNIT + 4];
    size_t all = 0;
    for (size_t taken; *from; from += taken)
        all += next_unit(from, unit, &taken);
    return all;
}

char *gc_visible(char *to, size_t room, const char *from) {
    static const char dots[] = "...";
    char unit[UNIT + 4];
    if (room == 0)
        return to;
    size_t all = visible_length(from), most = room - 1, used = 0, passed = 0, taken;
    int whole = all <= most, cut = 0;
    size_t head = most / 3, tail = most > head + 3 ? most - head - 3 : 0;
    for (; *from; from += taken) {
        size_t length = next_unit(from, unit, &taken);
        /* Keeps the first units that fit into the head and the last ones that fit into the tail. */
        int in_head = !cut && passed + length <= head, in_tail = all - passed <= tail;
        if (whole || in_head || in_tail) {
            memcpy(to + used, unit, length);
            used += length;
        } else if (!cut) {
            size_t room_left = most - used < 3 ? most - used : 3;
            memcpy(to + used, dots, room_left);
            used += room_left;
            cut = 1;
        }
        passed += length;
    }
    to[used] = '\0';
    return to;
}

void gc_visible_print(char *to, size_t room, const char *format, va_list args) {
    char small[STACK], *text = small;
    va_list again;
    va_copy(again, args);
    int length = gc_vformat(small, sizeof small, format, args);
    if (length >= STACK) {
        /* Paths have no length limit and the reason follows them. If this allocation fails, the end is lost. */
        char *large = malloc((size_t)length + 1);
        if (large && gc_vformat(large, (size_t)length + 1, format, again) >= 0)
            text = large;
        else
            free(large);
    }
    va_end(again);
    gc_visible(to, room, length < 0 ? "" : text);
    if (text != small)
        free(text);
}

const char *gc_file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

size_t gc_stem_length(const char *path) {
    const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
    return dot && (!slash || dot > slash + 1) ? (size_t)(dot - path) : strlen(path);
}

const char *gc_entity(char c) {
    switch (c) {
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '&':
        return "&amp;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}
