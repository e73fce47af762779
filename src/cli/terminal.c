/* The width of text on a terminal, and status lines. */
#include "terminal.h"

#include "libgpuconv/core/number.h"
#include "libgpuconv/core/os.h"

#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

enum { COLUMNS_USUAL = 80, COLUMNS_MOST = 4096, NAME_LEAST = 12 };

int gc_terminal_columns(int descriptor) {
    int64_t columns = gc_os_terminal_columns(descriptor);
    if (columns > 0)
        return (int)columns;
    const char *text = getenv("COLUMNS");
    return text && gc_integer_parse(text, &columns) && columns > 0 && columns <= COLUMNS_MOST ? (int)columns
                                                                                              : COLUMNS_USUAL;
}

/* Decodes the character at `text`, which must not be empty. Returns its length in bytes; *columns is its width, or -1
 * if it is not printable. The caller has set UTF-8 for this thread. */
static size_t decode_character(const char *text, int *columns) {
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

/* Sets UTF-8 for this thread, independently of the environment. leave_utf8 takes the result and *before. */
static locale_t enter_utf8(locale_t *before) {
    locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    *before = uselocale(utf8); /* if newlocale failed, bytes beyond ASCII are shown as '?' */
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
        text += decode_character(text, &columns);
        total += columns < 0 ? 1 : columns;
    }
    leave_utf8(utf8, before);
    return total;
}

typedef struct copy {
    char *to;
    size_t used, room;
} copy;

static void append_bytes(copy *c, const char *bytes, size_t count) {
    if (c->used + count < c->room) {
        memcpy(c->to + c->used, bytes, count);
        c->used += count;
    }
}

/* Copies the characters in columns `begin` to `end`, `end` excluded. */
static void copy_columns(copy *c, const char *text, int begin, int end) {
    for (int at = 0; *text;) {
        int columns;
        size_t bytes = decode_character(text, &columns);
        int wide = columns < 0 ? 1 : columns;
        if (at >= begin && at + wide <= end)
            append_bytes(c, columns < 0 ? "?" : text, columns < 0 ? 1 : bytes);
        at += wide;
        text += bytes;
    }
}

/* As gc_shorten; a longer text keeps its first `head` columns. */
static void shorten_after(const char *text, int head, int columns, char *to, size_t size) {
    copy c = {to, 0, size};
    int all = gc_display_columns(text);
    locale_t before, utf8 = enter_utf8(&before);
    if (columns < 0)
        columns = 0;
    if (all <= columns) {
        copy_columns(&c, text, 0, INT_MAX);
    } else if (columns <= 3) {
        append_bytes(&c, "...", (size_t)columns);
    } else {
        copy_columns(&c, text, 0, head);
        append_bytes(&c, "...", 3);
        copy_columns(&c, text, all - (columns - 3 - head), INT_MAX);
    }
    to[c.used] = '\0';
    leave_utf8(utf8, before);
}

void gc_shorten(const char *text, int columns, char *to, size_t size) {
    shorten_after(text, (columns - 3) / 2, columns, to, size); /* the end is longer: it has the file name */
}

/* Returns how many bytes at the beginning of all names are equal and end between characters; with `folders` only whole
 * names of folders count. */
static size_t common_bytes(const gc_names *n, bool folders) {
    const char *first = n->name[0];
    size_t equal = strlen(first);
    for (int i = 1; i < n->count; i++) {
        size_t same = 0;
        while (same < equal && n->name[i][same] == first[same])
            same++;
        equal = same;
    }
    while (equal > 0 && (folders ? first[equal - 1] != '/' : ((unsigned char)first[equal] & 0xc0) == 0x80))
        equal--;
    return equal;
}

/* Returns whether the shown text fits another name too: it begins with the text before the gap and ends with the text
 * behind it. The first `skip` bytes of every name are left out. */
static bool looks_like_another(const gc_names *n, size_t skip, const char *shown) {
    const char *gap = strstr(shown, "..."), *own = n->name[n->shown];
    if (!gap)
        return false;
    size_t head = (size_t)(gap - shown), tail = strlen(gap + 3);
    for (int i = 0; i < n->count; i++) {
        const char *other = n->name[i] + skip;
        size_t length = strlen(other);
        if (strcmp(n->name[i], own) != 0 && length >= head + tail && memcmp(other, shown, head) == 0 &&
            strcmp(other + length - tail, gap + 3) == 0)
            return true;
    }
    return false;
}

/* Shortens the name from byte `skip` on. The gap moves away from the middle until no other name looks like this one.
 * @return whether there is such a gap */
static bool find_gap(const gc_names *n, size_t skip, int columns, char *to, size_t size) {
    const int middle = (columns - 3) / 2;
    for (int step = 0; step <= middle; step++)
        for (int side = -1; side <= 1; side += 2) {
            shorten_after(n->name[n->shown] + skip, middle + side * step, columns, to, size);
            if (!looks_like_another(n, skip, to))
                return true;
        }
    return false;
}

void gc_shorten_among(const gc_names *n, int columns, char *to, size_t size) {
    const char *name = n->name[n->shown];
    if (gc_display_columns(name) <= columns || n->count < 2) {
        gc_shorten(name, columns, to, size);
        return;
    }
    const size_t folders = common_bytes(n, true), equal = common_bytes(n, false);
    if (find_gap(n, folders, columns, to, size))
        return;
    if (equal > folders && columns > 6) { /* they differ only within the gap: begin there */
        (void)snprintf(to, size, "...");
        if (find_gap(n, equal, columns - 3, to + 3, size - 3))
            return;
    }
    gc_shorten(name + folders, columns, to, size);
}

/* ---- Status lines ------------------------------------------------------------------------------------------------ */

void gc_status_part(gc_status_line *line, int rank, const char *format, ...) {
    if (line->count == GC_PARTS_MOST)
        return;
    va_list args;
    va_start(args, format);
    (void)gc_vformat(line->part[line->count].text, GC_PART_BYTES, format, args);
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

void gc_status_name(gc_status_line *line, const gc_names *names) {
    line->names = names;
    line->name_at = line->count;
}

/* Chooses the parts that are shown. Returns the columns that they take. */
static int choose_parts(const gc_status_line *line, int columns, bool *is_shown) {
    int total = 0, name = line->names ? gc_display_columns(line->names->name[line->names->shown]) : 0;
    int width[GC_PARTS_MOST];
    name = name < NAME_LEAST ? name : NAME_LEAST;
    for (int i = 0; i < line->count; i++) {
        width[i] = gc_display_columns(line->part[i].text);
        is_shown[i] = true;
        total += width[i];
    }
    while (total + name > columns) {
        int worst = -1;
        for (int i = 0; i < line->count; i++)
            if (is_shown[i] && line->part[i].rank > 0 && (worst < 0 || line->part[i].rank >= line->part[worst].rank))
                worst = i;
        if (worst < 0)
            break;
        is_shown[worst] = false;
        total -= width[worst];
    }
    return total;
}

void gc_status_write(const gc_status_line *line, int columns, char *text, size_t size) {
    bool is_shown[GC_PARTS_MOST];
    char all[GC_PARTS_MOST * GC_PART_BYTES + 1024], name[1024];
    copy c = {all, 0, sizeof all};
    if (columns <= 0)
        columns = INT_MAX / 2;
    int left = columns - choose_parts(line, columns, is_shown);
    for (int i = 0; i <= line->count; i++) {
        if (line->names && i == line->name_at) {
            gc_shorten_among(line->names, left, name, sizeof name);
            append_bytes(&c, name, strlen(name));
        }
        if (i < line->count && is_shown[i])
            append_bytes(&c, line->part[i].text, strlen(line->part[i].text));
    }
    all[c.used] = '\0';
    gc_shorten(all, columns, text, size);
}

/* ---- Progress ---- */

enum { BAR = 24, LINE = 4096 };

gc_meter gc_meter_begin(bool quiet) {
    return (gc_meter){.quiet = quiet, .terminal = isatty(STDERR_FILENO) != 0};
}

bool gc_meter_due(gc_meter *m, double seconds) {
    if (m->quiet || seconds < m->printed + (m->terminal ? 0.2 : 10))
        return false;
    m->printed = seconds;
    return true;
}

void gc_meter_draw(const gc_status_line *line) {
    char text[LINE];
    int columns = gc_terminal_columns(STDERR_FILENO) - 1; /* some terminals wrap after the last column */
    gc_status_write(line, columns > 0 ? columns : 1, text, sizeof text);
    fprintf(stderr, "\r\033[K%s", text);
}

void gc_meter_print(gc_meter *m, const gc_status_line *line) {
    char text[LINE];
    if (m->terminal) {
        gc_meter_draw(line);
    } else {
        gc_status_write(line, 0, text, sizeof text);
        fprintf(stderr, "gpuconv: %s\n", text);
    }
    m->drawn = m->terminal;
}

void gc_meter_clear(gc_meter *m) {
    if (m->drawn)
        fputs("\r\033[K", stderr);
    m->drawn = false;
}

void gc_meter_bar(gc_status_line *line, int rank, double share) {
    int lit = (int)(fmin(fmax(share, 0), 1) * BAR);
    gc_status_part(line, rank, "[%.*s%*s] ", lit, "########################", BAR - lit, "");
}
