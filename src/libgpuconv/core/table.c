/* Divides texts into rows and rows into fields. A row is divided in place, in the buffer of its line; only a row of
 * cells that has several lines is copied. */
#include "table.h"

#include "cancel.h"
#include "error.h"
#include "memory.h"
#include "number.h"
#include "visible.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLE = 1 << 16 /* bytes from which the separator is found */ };

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* ---- Fields ------------------------------------------------------------------------------------------------------ */

/* Removes the quotation marks of a field that begins with one. Returns the text behind the field; NULL: the last mark
 * is missing. */
static char *unquote(char *at) {
    char *to = at;
    for (char *from = at + 1; *from; *to++ = *from++)
        if (*from == '"' && *++from != '"') {
            *to = '\0';
            return from;
        }
    return NULL;
}

/* Removes the escapes and quotation marks of a word; with `keep` the word is only looked through. Returns the text
 * behind the word; NULL: a quotation mark or the character behind a backslash is missing. */
static char *unescape(char *at, bool keep) {
    char *to = at, quote = 0;
    for (; *at && (quote || !is_blank(*at)); at++) {
        const bool escaped = *at == '\\' && quote != '\'';
        if (escaped && !*++at)
            return NULL;
        if (!escaped && (quote ? *at == quote : *at == '"' || *at == '\''))
            quote = quote ? 0 : *at;
        else if (!keep)
            *to++ = *at;
    }
    char *const behind = *at ? at + 1 : at;
    if (!keep)
        *to = '\0';
    return quote ? NULL : behind;
}

/* Returns whether the last field is the rest of the line, with its blanks and without quotation marks. */
static bool is_rest(const gc_table_form *form, char *at) {
    if (!form->escapes)
        return !form->quotes || *at != '"';
    const char *behind = strchr("\"'", *at) ? NULL : unescape(at, true);
    return behind && behind[strspn(behind, " \t")] && behind[strspn(behind, " \t")] != '#';
}

/* Returns the end of a field without quotation marks. */
static char *find_end(const gc_table_form *form, char separator, char *at) {
    if (separator == ' ')
        return at + strcspn(at, " \t");
    if (separator == ',' && form->kind == GC_TABLE_NUMBERS) /* blanks divide numbers as well */
        return at + strcspn(at, " \t,");
    for (const char *begin = at; *at && *at != separator; at++)
        if (form->comments && *at == '#' && (at == begin || is_blank(at[-1])))
            break;
    return at;
}

/* Returns where a comment begins, or the end of the line. */
static char *find_comment(char *at) {
    for (const char *begin = at; *at; at++)
        if (*at == '#' && (at == begin || is_blank(at[-1])))
            break;
    return at;
}

/* Returns whether two tabs stand before the next field. */
static bool has_empty_field(const char *at) {
    int tabs = 0;
    for (; is_blank(*at); at++)
        tabs += *at == '\t';
    return tabs > 1 && *at && *at != '#';
}

/* Ends a field at `end`, or before the blanks there. */
static void end_field(const char *field, char *end) {
    while (end > field && is_blank(end[-1]))
        end--;
    *end = '\0';
}

/* Divides off a field that begins at `at`; *more: another one follows. Returns where it begins; NULL: *wrong is why
 * there is none. */
static char *take_field(const gc_table_form *form, char separator, char *at, bool *more, const char **wrong) {
    char *const begin = at;
    const bool quoted = form->quotes && *at == '"', cells = form->kind == GC_TABLE_CELLS;
    at = form->escapes ? unescape(at, false) : quoted ? unquote(at) : find_end(form, separator, at);
    *wrong = !at ? "a quotation mark without its pair" : NULL;
    if (!at)
        return NULL;
    *more = *at != '\0';
    if (form->escapes)
        return at;
    if (form->kind == GC_TABLE_ROUTES && separator == ' ' && has_empty_field(at))
        *wrong = "an empty field between two tabs; write one tab, or blanks";
    char *const end = at;
    const bool blanks = separator == ' ' || (separator == ',' && form->kind == GC_TABLE_NUMBERS); /* that divide */
    if (!cells && (quoted || blanks))
        at += strspn(at, separator == '\t' ? " " : " \t");
    if (quoted && *at && *at != separator && !(blanks && at > end) && !(form->comments && *at == '#'))
        *wrong = "text behind a quotation mark";
    *more = *at == separator || (blanks && *at && !(form->comments && *at == '#'));
    at += *at == separator;
    if (cells && !quoted)
        *end = '\0';
    else if (!quoted)
        end_field(begin, end);
    return *wrong ? NULL : at;
}

int gc_table_split(const gc_table_form *form, char separator, char *at, char **field, const char **wrong) {
    const char *const blanks = form->kind == GC_TABLE_CELLS ? "" : separator == '\t' ? " " : " \t";
    int count = 0;
    for (bool more = true; more;) {
        at += strspn(at, blanks);
        if (form->comments && *at == '#')
            *at = '\0';
        if (!*at && (separator == ' ' || count == 0))
            break;
        *wrong = count == form->most ? "too many fields" : NULL;
        if (*wrong)
            return -1;
        field[count++] = at;
        if (count == form->last && is_rest(form, at)) {
            end_field(at, form->escapes ? find_comment(at) : at + strlen(at));
            break;
        }
        at = take_field(form, separator, at, &more, wrong);
        if (!at)
            return -1;
    }
    return count;
}

/* ---- Separators -------------------------------------------------------------------------------------------------- */

/* Returns whether a line of a table of numbers is a row: it begins with a number, or with an empty field. */
static bool is_row(const char *line, char separator) {
    line += strspn(line, " \t");
    line += *line == '"';
    line += *line == '+' || *line == '-';
    return is_digit(*line) || *line == ',' || (*line == '.' && is_digit(line[1])) || (*line == ';' && separator == ';');
}

/* The separators and decimal signs of rows of numbers. */
typedef struct signs {
    bool semicolon, tab, blank, point;
    bool tight, spaced, loose; /* commas between two digits, with a blank on one side, and others */
    bool bare;                 /* a word, between blanks, that has not one comma */
} signs;

/* Adds the signs of a row, up to a comment. */
static void find_signs(const char *row, signs *s) {
    int commas = 0;
    bool quoted = false;
    for (const char *c = row + strspn(row, " \t"), *word = c; *c && *c != '#'; c++) {
        quoted ^= *c == '"';
        if (quoted)
            continue;
        const size_t blanks = strspn(c, " \t");
        if (blanks > 0 && c[blanks] && c[blanks] != '#') {
            const bool tab = memchr(c, '\t', blanks) != NULL;
            s->tab |= tab;
            s->blank |= !tab && !strchr(",;", c[-1]) && !strchr(",;", c[blanks]);
            s->bare |= commas != 1;
            commas = 0;
            word = c + blanks;
        }
        if (blanks > 0) {
            c += blanks - 1;
            continue;
        }
        s->semicolon |= *c == ';';
        s->point |= *c == '.';
        if (*c == ',') {
            commas++;
            const bool spaced = c == word || is_blank(c[1]), tight = !spaced && is_digit(c[-1]) && is_digit(c[1]);
            s->spaced |= spaced;
            s->tight |= tight;
            s->loose |= !spaced && !tight;
        }
    }
    s->bare |= commas != 1;
}

/* Finds what divides the numbers of a sample. Returns 0 if it can be read in two ways: "0 30,5", "20,00, -6,50". */
static char choose_separator(const signs *s) {
    if (s->semicolon || s->tab)
        return s->semicolon ? ';' : '\t';
    if (!s->tight && !s->spaced && !s->loose)
        return ' ';
    if (s->point || !s->tight || (s->loose && !s->spaced) || (!s->blank && !s->spaced))
        return ',';
    return s->spaced || s->bare ? 0 : ' '; /* 20,00 -6,50 */
}

/* Finds the separator of a table of numbers from a sample of its text, a copy that it changes. Fails with FORMAT. */
static gpuconv_status find_in_numbers(gc_table *t, char *sample, gpuconv_error *error) {
    signs s = {0};
    char *rest = NULL;
    for (char *line = strtok_r(sample, "\r\n", &rest); line; line = strtok_r(NULL, "\r\n", &rest))
        if (is_row(line, 0))
            find_signs(line, &s);
    t->separator = choose_separator(&s);
    t->no_point = t->separator == ',' && !s.point;
    return t->separator
               ? GPUCONV_OK
               : gc_fail(error, GPUCONV_ERROR_FORMAT,
                         "%s: commas and blanks between the numbers, and a comma may be a decimal comma or divide "
                         "them; write semicolons between the numbers, or decimal points",
                         t->lines->name);
}

/* Finds the separator behind the first word of a table of routes, or the first one of a table of cells. */
static char find_behind_first(const gc_table *t, char *sample) {
    const bool cells = t->form.kind == GC_TABLE_CELLS;
    char *rest = NULL;
    for (char *line = strtok_r(sample, "\r\n", &rest); line; line = strtok_r(NULL, "\r\n", &rest)) {
        const char *c = line + strspn(line, " \t");
        bool quoted = false;
        if (!cells && (!*c || *c == '#'))
            continue;
        for (; cells && *c && (quoted || !strchr("\t;,", *c)); c++)
            quoted ^= *c == '"';
        if (!cells) {
            c += strcspn(c, " \t,;");
            c += strspn(c, " \t");
        }
        return *c && strchr("\t;,", *c) ? *c : cells ? ',' : ' ';
    }
    return cells ? ',' : ' ';
}

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

gpuconv_status gc_table_open(gc_table *t, const gc_table_form *form, gc_lines *lines, gpuconv_error *error) {
    const char *text;
    int64_t length;
    *t = (gc_table){.form = *form, .lines = lines, .separator = ' '};
    gpuconv_status status = gc_lines_peek(lines, SAMPLE, &text, &length, error);
    if (status)
        return status;
    const bool cut = length > SAMPLE; /* in a line that does not count */
    length = gc_min(length, SAMPLE);
    while (cut && length > 0 && !strchr("\r\n", text[length - 1]))
        length--;
    t->field = gc_calloc(form->most, sizeof *t->field);
    char *sample = gc_calloc(length + 1, 1);
    if (!t->field || !sample)
        status = gc_fail_memory(error, lines->name);
    else if (length > 0)
        memcpy(sample, text, (size_t)length);
    if (!status && form->kind == GC_TABLE_NUMBERS)
        status = find_in_numbers(t, sample, error);
    else if (!status && form->kind != GC_TABLE_WORDS)
        t->separator = find_behind_first(t, sample);
    free(sample);
    return status;
}

void gc_table_close(gc_table *t) {
    free((void *)t->field);
    free(t->joined.bytes);
    *t = (gc_table){0};
}

void gc_table_describe(int64_t rows, int64_t others, char *to, size_t room) {
    char more[64] = "";
    if (others)
        (void)snprintf(more, sizeof more, ", %lld other line%s", (long long)others, others == 1 ? "" : "s");
    (void)snprintf(to, room, "%lld row%s%s", (long long)rows, rows == 1 ? "" : "s", more);
}

gpuconv_status gc_table_fail(const gc_table *t, gpuconv_error *error, const char *format, ...) {
    char text[320];
    va_list args;
    va_start(args, format);
    gc_visible_print(text, sizeof text, format, args);
    va_end(args);
    return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s, line %lld: '%s': %s%s", t->lines->name, (long long)t->line,
                   t->shown, text, t->mixed ? " (decimal commas and decimal points)" : "");
}

bool gc_table_number(gc_table *t, int field, double *value) {
    char text[64];
    const size_t length = strlen(t->field[field]);
    const bool comma = strchr(t->field[field], ',') != NULL, point = strchr(t->field[field], '.') != NULL;
    if (length >= sizeof text)
        return false;
    memcpy(text, t->field[field], length + 1);
    if (comma)
        *strchr(text, ',') = '.';
    t->mixed = (comma && (point || t->decimal == '.')) || (point && t->decimal == ',');
    if (t->mixed || !gc_number_parse(text, value))
        return false;
    t->decimal = comma ? ',' : point ? '.' : t->decimal;
    return true;
}

/* Returns whether a quotation mark is open at the end of a line of cells, which begins within one if `open`. */
static bool ends_open(const char *line, char separator, bool open) {
    for (bool begins = true; *line; line++) {
        if (open && *line == '"' && line[1] == '"')
            line++;
        else if (*line == '"' && (open || begins))
            open = !open;
        begins = !open && *line == separator;
    }
    return open;
}

/* Appends to the row of several lines. Fails with MEMORY, FORMAT. */
static gpuconv_status join(gc_table *t, const char *text, gpuconv_error *error) {
    const size_t length = strlen(text);
    if ((int64_t)(t->joined.length + length) > t->lines->longest)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s, line %lld: a row longer than %lld bytes; is a quote open?",
                       t->lines->name, (long long)t->line, (long long)t->lines->longest);
    return gc_buffer_append(&t->joined, text, length) ? GPUCONV_OK : gc_fail_memory(error, t->lines->name);
}

/* Appends the further lines of a row of cells, whose first line ends within quotation marks. */
static gpuconv_status join_lines(gc_table *t, char **line, gpuconv_error *error) {
    t->joined.length = 0;
    gpuconv_status status = join(t, *line, error);
    for (bool open = true; open && !status;) {
        const char *ending = t->lines->ending;
        char *next;
        if ((status = gc_lines_next(t->lines, &next, error)) || !next)
            break;
        open = ends_open(next, t->separator, true);
        status = join(t, ending, error);
        if (!status)
            status = join(t, next, error);
    }
    *line = t->joined.bytes;
    return status;
}

/* Returns whether a line is a row, and not empty, a heading or a comment. */
static bool takes(const gc_table *t, const char *line) {
    const char first = line[strspn(line, " \t")];
    const bool numbers = t->form.kind == GC_TABLE_NUMBERS;
    if (t->form.kind == GC_TABLE_CELLS)
        return *line != '\0';
    if (!first || (t->form.comments && first == '#') ||
        (numbers && (first == '*' || (first == ';' && t->separator != ';'))))
        return false;
    return !numbers || t->rows > 0 || is_row(line, t->separator);
}

/* Divides the row, and checks the number of its fields. */
static void divide(gc_table *t, char *line) {
    t->wrong = NULL;
    t->fields = gc_table_split(&t->form, t->separator, line, t->field, &t->wrong);
    if (t->form.kind != GC_TABLE_NUMBERS || t->wrong)
        return;
    while (t->fields > 1 && !*t->field[t->fields - 1])
        t->fields--;
    t->width = t->width ? t->width : t->fields;
    if (t->no_point && t->fields != t->width)
        t->wrong =
            "has more or fewer fields than the first row; if a comma is a decimal comma, write semicolons between "
            "the numbers";
}

bool gc_table_next(gc_table *t, gpuconv_status *status, gpuconv_error *error) {
    char *line = NULL;
    while (!*status && !(*status = gc_lines_next(t->lines, &line, error)) && line && !takes(t, line))
        t->others += line[strspn(line, " \t")] != '\0';
    if (!*status && gc_cancelled())
        *status = gc_fail_cancelled(error, t->lines->name);
    if (*status || !line)
        return false;
    t->line = t->lines->number;
    const size_t shown = strnlen(line, sizeof t->shown - 1);
    memcpy(t->shown, line, shown);
    t->shown[shown] = '\0';
    if (t->form.kind == GC_TABLE_CELLS && ends_open(line, t->separator, false))
        *status = join_lines(t, &line, error);
    if (*status)
        return false;
    divide(t, line);
    t->rows++;
    if (t->wrong && t->form.kind != GC_TABLE_CELLS)
        *status = gc_table_fail(t, error, "%s", t->wrong);
    return !*status;
}
