/* Widths on a terminal. */
#include "terminal.h"

#include "libgpuconv/core/number.h"

#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <wchar.h>

enum { COLUMNS_USUAL = 80, COLUMNS_MOST = 4096, NAME_LEAST = 12 };

int gc_terminal_columns(int descriptor) {
    struct winsize window;
    int64_t columns;
    if (ioctl(descriptor, TIOCGWINSZ, &window) == 0 && window.ws_col > 0)
        return window.ws_col;
    const char *told = getenv("COLUMNS");
    return told && gc_integer_parse(told, &columns) && columns > 0 && columns <= COLUMNS_MOST ? (int)columns
                                                                                              : COLUMNS_USUAL;
}

/* Takes the character at `text`, which is not its end. Returns its bytes; *columns is its width, -1 when it cannot be
 * shown. UTF-8 is set for this thread by the callers. */
static size_t next(const char *text, int *columns) {
    mbstate_t state = {0};
    wchar_t c;
    size_t bytes = mbrtowc(&c, text, strlen(text), &state);
    if (bytes == 0 || bytes > MB_LEN_MAX) {
        *columns = -1;
        return 1;
    }
    *columns = wcwidth(c);
    return bytes;
}

/* Sets UTF-8 for this thread, whatever the environment says. Both are given back to leave_utf8. */
static locale_t enter_utf8(locale_t *before) {
    locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    *before = uselocale(utf8); /* without it bytes beyond ASCII are shown as '?' */
    return utf8;
}

static void leave_utf8(locale_t utf8, locale_t before) {
    (void)uselocale(before);
    if (utf8)
        freelocale(utf8);
}

int gc_display_columns(const char *text) {
    locale_t before, utf8 = enter_utf8(&before);
    int total = 0;
    while (*text) {
        int columns;
        text += next(text, &columns);
        total += columns < 0 ? 1 : columns;
    }
    leave_utf8(utf8, before);
    return total;
}

typedef struct copy {
    char *to;
    size_t used, room;
} copy;

static void put(copy *c, const char *bytes, size_t count) {
    if (c->used + count < c->room) {
        memcpy(c->to + c->used, bytes, count);
        c->used += count;
    }
}

/* Copies the characters that lie before column `end` and from column `begin` on. */
static void copy_columns(copy *c, const char *text, int begin, int end) {
    for (int at = 0; *text;) {
        int columns;
        size_t bytes = next(text, &columns);
        int wide = columns < 0 ? 1 : columns;
        if (at >= begin && at + wide <= end)
            put(c, columns < 0 ? "?" : text, columns < 0 ? 1 : bytes);
        at += wide;
        text += bytes;
    }
}

void gc_shorten(const char *text, int columns, char *to, size_t room) {
    copy c = {to, 0, room};
    int all = gc_display_columns(text);
    locale_t before, utf8 = enter_utf8(&before);
    if (columns < 0)
        columns = 0;
    if (all <= columns) {
        copy_columns(&c, text, 0, INT_MAX);
    } else if (columns <= 3) {
        put(&c, "...", (size_t)columns);
    } else {
        int head = (columns - 3) / 2, tail = columns - 3 - head; /* the end of a name says more than its beginning */
        copy_columns(&c, text, 0, head);
        put(&c, "...", 3);
        copy_columns(&c, text, all - tail, INT_MAX);
    }
    to[c.used] = '\0';
    leave_utf8(utf8, before);
}

/* ---- Lines made of parts -------------------------------------------------------------------------------------------
 */

void gc_status_part(gc_status_line *line, int rank, const char *format, ...) {
    if (line->count == GC_PARTS_MOST)
        return;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line->part[line->count].text, GC_PART_BYTES, format, args);
    va_end(args);
    line->part[line->count++].rank = rank;
}

void gc_status_time(gc_status_line *line, int rank, const char *before, double seconds, const char *after) {
    long long s = seconds > 0 ? llrint(fmin(seconds, 1e15)) : 0;
    if (s >= 3600)
        gc_status_part(line, rank, "%s%lld:%02lld:%02lld%s", before, s / 3600, s / 60 % 60, s % 60, after);
    else
        gc_status_part(line, rank, "%s%lld:%02lld%s", before, s / 60, s % 60, after);
}

void gc_status_name(gc_status_line *line, const char *name) {
    line->name = name;
    line->name_at = line->count;
}

/* Chooses the parts that stay; returns the columns that they take. */
static int choose_parts(const gc_status_line *line, int columns, bool *stays) {
    int total = 0, name = line->name ? gc_display_columns(line->name) : 0;
    int width[GC_PARTS_MOST];
    name = name < NAME_LEAST ? name : NAME_LEAST;
    for (int i = 0; i < line->count; i++) {
        width[i] = gc_display_columns(line->part[i].text);
        stays[i] = true;
        total += width[i];
    }
    while (total + name > columns) {
        int worst = -1;
        for (int i = 0; i < line->count; i++)
            if (stays[i] && line->part[i].rank > 0 && (worst < 0 || line->part[i].rank >= line->part[worst].rank))
                worst = i;
        if (worst < 0)
            break;
        stays[worst] = false;
        total -= width[worst];
    }
    return total;
}

void gc_status_write(const gc_status_line *line, int columns, char *text, size_t room) {
    bool stays[GC_PARTS_MOST];
    char all[GC_PARTS_MOST * GC_PART_BYTES + 1024], name[1024];
    copy c = {all, 0, sizeof all};
    if (columns <= 0)
        columns = INT_MAX / 2;
    int left = columns - choose_parts(line, columns, stays);
    for (int i = 0; i <= line->count; i++) {
        if (line->name && i == line->name_at) {
            gc_shorten(line->name, left, name, sizeof name);
            put(&c, name, strlen(name));
        }
        if (i < line->count && stays[i])
            put(&c, line->part[i].text, strlen(line->part[i].text));
    }
    all[c.used] = '\0';
    gc_shorten(all, columns, text, room);
}
