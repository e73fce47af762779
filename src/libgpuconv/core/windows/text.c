/* Strings, locales and the machine's name of posix.h, by means of Windows. */
#include "posix.h"

#include "paths.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

char *gc_windows_strndup(const char *text, size_t length) {
    length = strnlen(text, length);
    char *copy = malloc(length + 1);
    if (copy) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

void *gc_windows_memmem(const void *bytes, size_t count, const void *part, size_t part_count) {
    const char *at = bytes;
    for (size_t i = 0; part_count <= count && i <= count - part_count; i++)
        if (memcmp(at + i, part, part_count) == 0)
            return (void *)(at + i);
    return NULL;
}

char *gc_windows_strcasestr(const char *text, const char *part) {
    for (; *text; text++)
        if (_strnicmp(text, part, strlen(part)) == 0)
            return (char *)text;
    return *part ? NULL : (char *)text;
}

/* The locale before is kept for each thread; a thread that has "C" already, which is usual, keeps it. */
locale_t gc_windows_uselocale(locale_t locale) {
    static _Thread_local locale_t current;
    static _Thread_local char before[128];
    static _Thread_local int was_per_thread;
    const locale_t old = current;
    if (locale && !old) {
        const char *name = setlocale(LC_ALL, NULL);
        if (!name || strcmp(name, "C") == 0 || strlen(name) >= sizeof before) {
            *before = '\0';
        } else {
            memcpy(before, name, strlen(name) + 1);
            was_per_thread = _configthreadlocale(_ENABLE_PER_THREAD_LOCALE);
            (void)setlocale(LC_ALL, "C");
        }
    } else if (!locale && old && *before) {
        (void)setlocale(LC_ALL, before);
        (void)_configthreadlocale(was_per_thread);
    }
    current = locale;
    return old;
}

size_t gc_windows_mbrtowc(wchar_t *c, const char *text, size_t count) {
    const unsigned char first = (unsigned char)*text;
    const size_t length = first < 0x80   ? 1
                          : first < 0xc2 ? 0
                          : first < 0xe0 ? 2
                          : first < 0xf0 ? 3
                          : first < 0xf5 ? 4
                                         : 0;
    wchar_t wide[2];
    const int units = length == 0 || length > count
                          ? 0
                          : MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, (int)length, wide, 2);
    if (units == 0)
        return (size_t)-1;
    *c = units == 2 ? L'\x4e00' : wide[0]; /* beyond the first plane: mostly as wide as an ideograph */
    return first ? length : 0;
}

/* Unicode's wide blocks have two columns, combining marks none. */
int gc_windows_wcwidth(wchar_t c) {
    WORD type = 0;
    if (c < 0x20 || (c >= 0x7f && c < 0xa0))
        return -1;
    if (GetStringTypeW(CT_CTYPE3, &c, 1, &type) && type & (C3_NONSPACING | C3_DIACRITIC) && c >= 0x300 && c < 0x370)
        return 0;
    return (c >= 0x1100 && c < 0x1160) || (c >= 0x2e80 && c < 0xa4d0) || (c >= 0xac00 && c < 0xd7a4) ||
                   (c >= 0xf900 && c < 0xfb00) || (c >= 0xfe30 && c < 0xfe70) || (c >= 0xff00 && c < 0xff61)
               ? 2
               : 1;
}

int gc_windows_gethostname(char *name, int room) {
    wchar_t wide[256];
    DWORD length = 256;
    return GetComputerNameW(wide, &length) && gc_windows_text(wide, name, (size_t)room) ? 0 : -1;
}
