/* Words of a BruteFIR configuration, and its coefficients: text files with a number a line, and raw samples. */
#include "brutefir.h"

#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TAPS = 1 << 24 };

/* Goes to the next character that is no blank and no comment. *end: the text has ended. Returns as gc_lines_next. */
static gpuconv_status skip_blanks(gc_brutefir *b, bool *end, gpuconv_error *error) {
    for (*end = false;;) {
        if (b->at)
            b->at += strspn(b->at, " \t\v\f");
        if (b->at && *b->at && *b->at != '#')
            return GPUCONV_OK;
        char *line;
        gpuconv_status status = gc_lines_next(b->lines, &line, error);
        *end = status || !line;
        if (*end)
            return status;
        b->matrix->line = (int)b->lines->number;
        b->at = line;
    }
}

gpuconv_status gc_brutefir_next(gc_brutefir *b, gpuconv_error *error) {
    static const char signs[] = "{}:;,/";
    gc_brutefir_word *w = &b->word;
    bool end;
    gpuconv_status status = skip_blanks(b, &end, error);
    *w = (gc_brutefir_word){.end = end};
    if (end)
        return status;
    if (strchr(signs, *b->at)) {
        w->sign = *b->at++;
        return GPUCONV_OK;
    }
    w->quoted = *b->at == '"';
    b->at += w->quoted;
    const size_t length = strcspn(b->at, w->quoted ? "\"" : " \t\v\f#\"{}:;,/");
    if (length >= sizeof w->text || (w->quoted && !b->at[length]))
        return gc_matrix_fail(b->matrix, error,
                              "a word longer than %d bytes, or a quotation mark without its pair in the line",
                              (int)sizeof w->text - 1);
    memcpy(w->text, b->at, length);
    b->at += length + w->quoted;
    return GPUCONV_OK;
}

gpuconv_status gc_brutefir_expect(gc_brutefir *b, char sign, gpuconv_error *error) {
    if (b->word.end)
        return gc_matrix_fail(b->matrix, error, "'%c' is missing before the end", sign);
    if (!gc_brutefir_is(b, sign))
        return gc_matrix_fail(b->matrix, error, "'%c' is missing before '%.40s%c'", sign, b->word.text,
                              b->word.sign ? b->word.sign : ' ');
    return gc_brutefir_next(b, error);
}

gpuconv_status gc_brutefir_number(gc_brutefir *b, double *value, gpuconv_error *error) {
    if (b->word.sign || b->word.end || !gc_number_parse(b->word.text, value) || !(fabs(*value) <= 1e12))
        return gc_matrix_fail(b->matrix, error, "'%.40s' is not a number", b->word.text);
    return gc_brutefir_next(b, error);
}

gpuconv_status gc_brutefir_integer(gc_brutefir *b, const char *what, int64_t least, int64_t most, int64_t *value,
                                   gpuconv_error *error) {
    double number = 0;
    gpuconv_status status = gc_brutefir_number(b, &number, error);
    if (!status && !(number >= (double)least && number <= (double)most && number == floor(number)))
        status = gc_matrix_fail(b->matrix, error, "%s: %g is not an integer from %lld to %lld", what, number,
                                (long long)least, (long long)most);
    if (!status)
        *value = (int64_t)number;
    return status;
}

/* ---- Coefficients ------------------------------------------------------------------------------------------------ */

/* Taps that are read. */
typedef struct tap_list {
    float *tap;
    int64_t count, capacity;
} tap_list;

/* Appends a tap. Returns MEMORY. */
static gpuconv_status append(tap_list *t, double value, const char *path, gpuconv_error *error) {
    if (t->count == t->capacity) {
        const int64_t capacity = gc_max(4096, 2 * t->capacity);
        float *larger = realloc(t->tap, (size_t)capacity * sizeof *larger);
        if (!larger)
            return gc_fail_memory(error, path);
        t->tap = larger;
        t->capacity = capacity;
    }
    t->tap[t->count++] = (float)value;
    return GPUCONV_OK;
}

/* Reads the rows of a text file: a number in each. Returns FILE, FORMAT, MEMORY, CANCELLED. */
static gpuconv_status read_rows(gc_lines *lines, tap_list *taps, gpuconv_error *error) {
    static const gc_table_form form = {.kind = GC_TABLE_WORDS, .most = 2};
    gc_table t;
    double value;
    gpuconv_status status = gc_table_open(&t, &form, lines, error);
    for (bool more = true; more && !status;) {
        status = gc_table_next(&t, &more, error);
        if (status || !more)
            continue;
        if (t.fields != 1 || !gc_table_number(&t, 0, &value) || !(fabs(value) <= 1e30) || taps->count == MAX_TAPS)
            status = gc_table_fail(&t, error, "is not one number, or one of more than %d", MAX_TAPS);
        else
            status = append(taps, value, lines->name, error);
    }
    gc_table_close(&t);
    return status;
}

/* Reads the numbers of a text file. Returns FORMAT, MEMORY, CANCELLED. */
static gpuconv_status read_text(const gc_brutefir *b, const char *path, gpuconv_ir **ir, gpuconv_error *error) {
    gc_lines lines;
    tap_list taps = {0};
    gpuconv_error why = {0};
    gpuconv_status status = gc_lines_open_regular(&lines, path, GC_TEXT_LONGEST, INT64_C(128) * MAX_TAPS, &why);
    if (!status)
        status = read_rows(&lines, &taps, &why);
    gc_lines_close(&lines);
    if (status == GPUCONV_ERROR_MEMORY || status == GPUCONV_ERROR_CANCELLED)
        gc_fail(error, status, "%s", why.message);
    else if (status)
        status = gc_matrix_fail(b->matrix, error, "%s", why.message);
    else if (taps.count == 0)
        status = gc_matrix_fail(b->matrix, error, "%s: contains no coefficient", path);
    const float *planes[] = {taps.tap};
    if (!status)
        status = gpuconv_ir_new(planes, 1, taps.count, b->rate, ir, error);
    free(taps.tap);
    return status;
}

/* Returns the encoding of raw samples for a format of BruteFIR; NULL: it is not read. */
static const char *raw_encoding(const char *format) {
    static const char *const known[][2] = {
        {"FLOAT_LE", "float"}, {"FLOAT64_LE", "double"}, {"S16_LE", "s16"}, {"S24_LE", "s24"}, {"S32_LE", "s32"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (gc_same_word(format, known[i][0]))
            return known[i][1];
    return NULL;
}

gpuconv_status gc_brutefir_load(gc_brutefir *b, gc_brutefir_coeff *c, gpuconv_error *error) {
    gc_matrix *m = b->matrix;
    gpuconv_ir *ir = NULL;
    gpuconv_status status;
    m->line = c->line;
    c->index = -1;
    if (strcmp(c->file, "dirac pulse") == 0)
        return GPUCONV_OK;
    const char *encoding = raw_encoding(c->format);
    if (!*c->file || (!encoding && *c->format && !gc_same_word(c->format, "text")))
        return gc_matrix_fail(m, error,
                              "coefficient '%.40s': a filename and a format text, FLOAT_LE, FLOAT64_LE, S16_LE, S24_LE "
                              "or S32_LE are needed, not '%.40s'",
                              c->name, c->format);
    char *path = gc_matrix_join_path(m->folder, c->file, "");
    if (!path)
        return gc_fail_memory(error, m->path);
    if (encoding) {
        char raw[64];
        gpuconv_error inner = {0};
        (void)gc_format(raw, sizeof raw, "%.0f,1,%s", b->rate, encoding);
        status = gc_ir_load_from(path, GC_INPUT_REGULAR, raw, &ir, &inner);
        if (status)
            status = status == GPUCONV_ERROR_MEMORY ? gc_fail_memory(error, m->path)
                                                    : gc_matrix_fail(m, error, "%s", inner.message);
    } else {
        status = read_text(b, path, &ir, error);
    }
    if (!status)
        status = gc_matrix_add_response(m, path, ir, &c->index, error);
    free(path);
    return status;
}
