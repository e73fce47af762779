/* Words of a BruteFIR configuration, and its coefficients: text files with a number a line, and raw samples. */
#include "brutefir.h"

#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/lines.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TAPS = 1 << 24, MAX_NUMBER = 128 };

/* Skips blanks and comments. Returns the next character, or EOF. */
static int skip_blanks(gc_brutefir *b) {
    bool comment = false;
    int c;
    while ((c = getc_unlocked(b->file)) != EOF) {
        if (c == '\n')
            b->matrix->line++;
        comment = c == '#' || (comment && c != '\n');
        if (!comment && !isspace(c))
            break;
    }
    return c;
}

gpuconv_status gc_brutefir_next(gc_brutefir *b, gpuconv_error *error) {
    gc_brutefir_word *w = &b->word;
    int c = skip_blanks(b);
    size_t length = 0;
    *w = (gc_brutefir_word){.end = c == EOF};
    if (ferror(b->file))
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", b->matrix->path, strerror(errno));
    if (w->end)
        return GPUCONV_OK;
    if (strchr("{}:;,/", c) && c) {
        w->sign = (char)c;
        return GPUCONV_OK;
    }
    w->quoted = c == '"';
    if (!w->quoted)
        (void)ungetc(c, b->file);
    while ((c = getc_unlocked(b->file)) != EOF && (w->quoted ? c != '"' : !isspace(c) && !strchr("{}:;,/#\"", c))) {
        if (c == '\0' || c == '\n' || length == sizeof w->text - 1)
            return gc_matrix_fail(b->matrix, error, "a word with a zero byte or a line break, or longer than %d bytes",
                                  (int)sizeof w->text - 1);
        w->text[length++] = (char)c;
    }
    if (w->quoted && c == EOF)
        return gc_matrix_fail(b->matrix, error, "a quotation mark without its pair");
    if (!w->quoted && c != EOF)
        (void)ungetc(c, b->file);
    return length || w->quoted ? GPUCONV_OK : gc_matrix_fail(b->matrix, error, "a character that does not belong here");
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

/* ---- Coefficients ------------------------------------------------------------------------------------------------ */

/* Reads the numbers of a text file. Returns FILE, FORMAT, MEMORY. */
static gpuconv_status read_text(const gc_brutefir *b, const char *path, gpuconv_ir **ir, gpuconv_error *error) {
    gc_lines lines;
    char *line;
    int64_t count = 0, capacity = 4096;
    float *taps = gc_calloc(capacity, sizeof *taps);
    gpuconv_error why = {0};
    gpuconv_status status = gc_lines_open_regular(&lines, path, MAX_NUMBER, (int64_t)MAX_NUMBER * MAX_TAPS, &why);
    if (status)
        gc_matrix_fail(b->matrix, error, "%s", why.message);
    else if (!taps)
        status = gc_fail_memory(error, path);
    while (!status && !(status = gc_lines_next(&lines, &line, error)) && line) {
        double value;
        line[strcspn(line, " \t\r\n")] = '\0';
        if (!gc_number_parse(line, &value) || !(fabs(value) <= 1e30) || count == MAX_TAPS)
            status = gc_matrix_fail(b->matrix, error, "%s, line %lld: '%.40s' is not a number, or one of more than %d",
                                    path, (long long)count + 1, line, MAX_TAPS);
        if (!status && count == capacity) {
            float *larger = gc_calloc(2 * capacity, sizeof *larger);
            if (larger)
                memcpy(larger, taps, (size_t)count * sizeof *taps);
            else
                status = gc_fail_memory(error, path);
            if (larger) {
                free(taps);
                taps = larger;
                capacity *= 2;
            }
        }
        if (!status)
            taps[count++] = (float)value;
    }
    gc_lines_close(&lines);
    if (!status && count == 0)
        status = gc_matrix_fail(b->matrix, error, "%s: contains no coefficient", path);
    const float *planes[] = {taps};
    if (!status)
        status = gpuconv_ir_new(planes, 1, count, b->rate, ir, error);
    free(taps);
    return status;
}

/* Returns the encoding of raw samples for a format of BruteFIR; NULL: it is not read. */
static const char *raw_encoding(const char *format) {
    static const char *const known[][2] = {
        {"FLOAT_LE", "float"}, {"FLOAT64_LE", "double"}, {"S16_LE", "s16"}, {"S24_LE", "s24"}, {"S32_LE", "s32"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(format, known[i][0]) == 0)
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
    if (!*c->file || (!encoding && *c->format && strcmp(c->format, "text") != 0))
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
