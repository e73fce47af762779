/* Responses from texts, and headers of arrays. Whatever a heading or header states is checked against the file. */
#include "numbers.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/limits.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/table.h"
#include "object.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SAMPLE = 1 << 16,      /* bytes at the beginning of a text in which headings stand */
    LONGEST_ROW = 1 << 24, /* bytes of a row, which may have all frames of a channel */
    MAX_COLUMNS = 1 << 20
};
static const int64_t most_text = INT64_C(1) << 32;

/* ---- Headings ---------------------------------------------------------------------------------------------------- */

/* Returns whether the first three words of a line, which it divides, are numbers: those of a row of routes are not. */
static bool has_numbers(char *line) {
    char *rest = NULL;
    double number;
    for (int i = 0; i < 3; i++) {
        const char *word = strtok_r(i ? NULL : line, " \t,;", &rest);
        if (!word || *word == '#' || strncmp(word, "//", 2) == 0)
            return true;
        if (!gc_number_parse(word, &number))
            return false;
    }
    return true;
}

/* Returns whether the first row of a text consists of numbers. Changes the text. */
static bool begins_with_numbers(char *text) {
    char *rest = NULL;
    for (char *line = strtok_r(text, "\r\n", &rest); line; line = strtok_r(NULL, "\r\n", &rest)) {
        line += strspn(line, " \t");
        const bool row = strncmp(line, "row", 3) == 0 && line[3] && strchr(" \t,;", line[3]);
        const char *digit = line + (*line == '-' || *line == '+');
        digit += *digit == '.';
        if (row || (*digit >= '0' && *digit <= '9'))
            return !row && has_numbers(line);
    }
    return false;
}

bool gc_is_text_of_taps(const char *path) {
    const int ending = gc_ending_find(path, "txt|csv|tsv|dat|asc");
    if (ending != 0)
        return ending > 0;
    gc_lines lines;
    const char *text;
    char *copy = NULL;
    int64_t length = 0;
    if (!gc_lines_open_regular(&lines, path, SAMPLE, most_text, NULL) &&
        !gc_lines_peek(&lines, SAMPLE, &text, &length, NULL))
        copy = length > 0 ? strndup(text, (size_t)length) : NULL;
    gc_lines_close(&lines);
    const bool is = copy && begins_with_numbers(copy);
    free(copy);
    return is;
}

/* Returns the number at the beginning of a text, behind blanks and signs such as ":" and "="; 0: there is none. */
static double number_behind(const char *text) {
    char digits[GC_NUMBER_TEXT];
    double value = 0;
    text += strspn(text, " \t:=,;\"([hz])_-");
    const size_t length = strspn(text, "0123456789.e+-");
    if (length == 0 || length >= sizeof digits)
        return 0;
    memcpy(digits, text, length);
    digits[length] = '\0';
    text += length;
    const double unit = strncmp(text + strspn(text, " \t"), "khz", 3) == 0 ? 1000 : 1;
    return gc_number_parse(digits, &value) ? value * unit : 0;
}

/* Rounds a rate that was printed as an interval with few digits: to a whole number, or to a multiple of 25 Hz. */
static double round_rate(double rate) {
    const double whole = round(rate), step = 25 * round(rate / 25);
    return fabs(rate - whole) <= 1e-6 * rate ? whole : fabs(rate - step) <= 2e-4 * rate ? step : rate;
}

/* Returns the sampling rate that a line of small letters states; 0: none. */
static double find_rate(const char *line) {
    static const char *const names[] = {"sample rate",      "sampling rate", "samplerate", "sampling frequency",
                                        "sample frequency", "sample_rate",   "fs"};
    if (strstr(line, "// sample interval"))
        return number_behind(line) > 0 ? round_rate(1 / number_behind(line)) : 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *at = strstr(line, names[i]);
        const double rate =
            at && (at == line || !isalpha((unsigned char)at[-1])) ? number_behind(at + strlen(names[i])) : 0;
        if (gc_is_rate(rate))
            return rate;
    }
    return 0;
}

/* Finds what stands above the numbers. *skipped: lines up to "* Data start", which REW writes; *rate stays unless a
 * line states one. Fails as gc_lines_peek; MEMORY. */
static gpuconv_status read_headings(gc_lines *lines, int *skipped, double *rate, gpuconv_error *error) {
    const char *text;
    int64_t length = 0;
    gpuconv_status status = gc_lines_peek(lines, SAMPLE, &text, &length, error);
    if (status || length == 0)
        return status;
    char *copy = strndup(text, (size_t)gc_min(length, SAMPLE)), *at = copy;
    if (!copy)
        return gc_fail_memory(error, lines->name);
    for (int number = 1; *at; number++) {
        char *const line = at;
        const size_t bytes = strcspn(at, "\r\n");
        at += bytes + (at[bytes] != '\0') + (at[bytes] == '\r' && at[bytes + 1] == '\n');
        line[bytes] = '\0';
        for (char *c = line; *c; c++)
            *c = (char)tolower((unsigned char)*c);
        if (strstr(line, "* data start"))
            *skipped = number;
        const double stated = strpbrk(line, "sf") ? find_rate(line) : 0;
        *rate = gc_is_rate(stated) ? stated : *rate;
    }
    free(copy);
    return GPUCONV_OK;
}

/* ---- Texts ------------------------------------------------------------------------------------------------------- */

/* The numbers of a text, row by row. */
typedef struct numbers {
    float *value;
    int64_t rows, count, capacity;
    int columns;
    double first, last, step; /* of the first column */
    double uneven;            /* the largest difference of one of its steps from the first one */
} numbers;

/* Follows the first column, whose numbers may be rounded to few digits. */
static void follow_first(numbers *n, double value) {
    if (n->rows == 0)
        n->first = value;
    else if (n->rows == 1)
        n->step = value - n->first;
    else
        n->uneven = fmax(n->uneven, fabs(value - n->last - n->step));
    n->last = value;
}

/* Adds the row that was read. Fails with FORMAT, MEMORY. */
static gpuconv_status add_row(gc_table *t, numbers *n, gpuconv_error *error) {
    if (n->rows == 0)
        n->columns = t->fields;
    if (t->fields != n->columns)
        return gc_table_fail(t, error, "%d numbers, and %d in the rows above; write one row for each frame", t->fields,
                             n->columns);
    if (n->count + n->columns > n->capacity) {
        const int64_t capacity = gc_max(4096, 2 * (n->count + n->columns));
        float *larger = gc_alloc(capacity, sizeof *larger);
        if (!larger)
            return gc_fail_memory(error, t->lines->name);
        if (n->count > 0)
            memcpy(larger, n->value, (size_t)n->count * sizeof *larger);
        free(n->value);
        n->value = larger;
        n->capacity = capacity;
    }
    for (int i = 0; i < n->columns; i++) {
        double value;
        if (!gc_table_number(t, i, &value) || !(fabs(value) <= 1e30))
            return gc_table_fail(t, error, "'%.32s' is not a number of -1e30 to 1e30", t->field[i]);
        if (i == 0)
            follow_first(n, value);
        n->value[n->count++] = (float)value;
    }
    n->rows++;
    return GPUCONV_OK;
}

/* Reads all rows. Fails with FILE, FORMAT, MEMORY, CANCELLED. */
static gpuconv_status read_rows(gc_table *t, numbers *n, gpuconv_error *error) {
    gpuconv_status status = GPUCONV_OK;
    while (gc_table_next(t, &status, error))
        status = add_row(t, n, error);
    if (!status && n->rows == 0)
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: contains no coefficient", t->lines->name);
    if (!status && t->no_point && n->columns == 2)
        status = gc_fail(error, GPUCONV_ERROR_FORMAT,
                         "%s: the comma may be a decimal comma or divide two channels; write decimal points, or "
                         "semicolons between the channels",
                         t->lines->name);
    return status;
}

/* Makes the response; *rate is that of the heading, or 0. Fails with FORMAT, MEMORY. */
static gpuconv_status make(const char *path, const numbers *n, double stated, double rate, gpuconv_ir **ir,
                           gpuconv_error *error) {
    const double step = n->rows > 1 ? (n->last - n->first) / (double)(n->rows - 1) : 0;
    const bool across = n->columns > n->rows; /* a row is a channel */
    const bool column = !across && n->columns > 1 && n->rows >= 4 && n->step > 0 && n->uneven <= 0.1 * n->step;
    const bool counts = column && fabs(step - 1) < 1e-9;
    const bool seconds = column && step > 0 && step <= 1e-3;
    const int skip = counts || seconds;
    const int64_t channels = across ? n->rows : n->columns - skip, frames = across ? n->columns : n->rows;
    if (!gc_is_rate(stated) && seconds && n->uneven <= 1e-4 * step * (double)(n->rows - 1)) /* enough digits */
        stated = round_rate(1 / step);
    if (gc_is_rate(stated))
        rate = stated;
    if (!gc_is_rate(rate))
        return gc_fail_without_rate(path, error);
    if (channels > GC_MAX_CHANNELS)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: %lld channels; a response has at most %d", path,
                       (long long)channels, GC_MAX_CHANNELS);
    float *taps = gc_alloc(channels * frames, sizeof *taps);
    if (!taps)
        return gc_fail_memory(error, path);
    for (int64_t c = 0; c < channels; c++)
        for (int64_t i = 0; i < frames; i++)
            taps[c * frames + i] = n->value[across ? c * frames + i : i * n->columns + c + skip];
    if (!(*ir = gc_ir_own(taps, (int)channels, frames, rate)))
        return gc_fail_memory(error, path);
    if (!(skip || across) || gc_ir_append_history(*ir, "text of %lld rows%s", (long long)n->rows,
                                                  across   ? ", each a channel"
                                                  : counts ? ", whose first column counts frames"
                                                           : ", whose first column counts seconds"))
        return GPUCONV_OK;
    gpuconv_ir_free(*ir);
    *ir = NULL;
    return gc_fail_memory(error, path);
}

gpuconv_status gc_ir_read_text(const char *path, double rate, gpuconv_ir **ir, gpuconv_error *error) {
    static const gc_table_form form = {.kind = GC_TABLE_NUMBERS, .most = MAX_COLUMNS, .comments = true, .quotes = true};
    gc_lines lines;
    gc_table table = {0};
    numbers n = {0};
    int skipped = 0;
    double stated = 0;
    char *line;
    *ir = NULL;
    gpuconv_status status = gc_lines_open_regular(&lines, path, LONGEST_ROW, most_text, error);
    if (!status)
        status = read_headings(&lines, &skipped, &stated, error);
    for (; skipped > 0 && !status; skipped--)
        status = gc_lines_next(&lines, &line, error);
    if (!status)
        status = gc_table_open(&table, &form, &lines, error);
    if (!status)
        status = read_rows(&table, &n, error);
    if (!status)
        status = make(path, &n, stated, rate, ir, error);
    gc_table_close(&table);
    gc_lines_close(&lines);
    free(n.value);
    return status;
}

gpuconv_status gc_fail_without_rate(const char *path, gpuconv_error *error) {
    return gc_fail(error, GPUCONV_ERROR_FORMAT,
                   "%s: states no sampling rate; give it with --ir-rate, in Python and batches ir_rate", path);
}

/* ---- NumPy ------------------------------------------------------------------------------------------------------- */

/* Returns what stands behind a key of the header, such as 'shape':; NULL: it has no such key. */
static const char *find_value(const char *header, const char *key) {
    const char *at = strstr(header, key);
    at = at ? at + strlen(key) : NULL;
    at = at ? at + strspn(at, " ") : NULL;
    return at && *at == ':' ? at + 1 + strspn(at + 1, " ") : NULL;
}

/* Parses the shape, such as (48000, 2) or (48000,). Returns the number of its dimensions; 0: it has no valid ones. */
static int parse_shape(const char *at, int64_t size[2]) {
    char text[2 * GC_NUMBER_TEXT] = "";
    double number[2] = {1, 1};
    size_t length = 0;
    for (at += *at == '('; *at && *at != ')' && length + 1 < sizeof text; at++)
        if (*at != ' ')
            text[length++] = *at;
    if (length > 0 && text[length - 1] == ',')
        text[--length] = '\0';
    const int count =
        *at == ')' && text[strspn(text, "0123456789,")] == '\0' ? gc_numbers_parse(text, ",", number, 2) : 0;
    for (int i = 0; i < 2; i++)
        size[i] = (int64_t)fmin(number[i], 0x1p60);
    return size[0] >= 1 && size[1] >= 1 ? count : 0;
}

/* Parses the text of the header. Fails with FORMAT. */
static gpuconv_status parse_header(const char *header, const char *path, gc_npy *npy, int64_t *bytes,
                                   gpuconv_error *error) {
    static const struct {
        const char *type, *encoding;
        int bytes;
    } known[] = {{"<i2", "s16", 2}, {"<i4", "s32", 4}, {"<f4", "float", 4}, {"<f8", "double", 8}};
    const char *type = find_value(header, "'descr'"), *order = find_value(header, "'fortran_order'"),
               *shape = find_value(header, "'shape'");
    int64_t size[2] = {1, 1};
    for (size_t i = 0; type && i < sizeof known / sizeof *known; i++)
        if (strncmp(type + 1, known[i].type, 3) == 0 && type[4] == *type) {
            npy->encoding = known[i].encoding;
            *bytes = known[i].bytes;
        }
    if (!npy->encoding)
        return gc_fail(error, GPUCONV_ERROR_FORMAT,
                       "%s: an array of type %.*s; use int16, int32, float32 or float64 in little-endian order", path,
                       type ? (int)strcspn(type, ",}\n") : 4, type ? type : "none");
    const int dimensions = shape ? parse_shape(shape, size) : 0;
    if (!order || !dimensions)
        return gc_fail(error, GPUCONV_ERROR_FORMAT,
                       "%s: an array of shape %.*s; use (frames,) or (frames, channels), and at least one frame", path,
                       shape ? (int)gc_min(strcspn(shape, ")\n") + 1, 60) : 4, shape ? shape : "none");
    const bool second = size[1] > size[0]; /* the second dimension is time */
    npy->frames = size[second];
    npy->planar = dimensions == 2 && second != (*order == 'T');
    if (size[!second] > GC_MAX_CHANNELS)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: an array of %lld x %lld; a response has at most %d channels",
                       path, (long long)size[0], (long long)size[1], GC_MAX_CHANNELS);
    npy->channels = (int)size[!second];
    return GPUCONV_OK;
}

gpuconv_status gc_npy_parse(int fd, int64_t size, const char *path, gc_npy *npy, gpuconv_error *error) {
    unsigned char head[12] = {0};
    char header[SAMPLE] = "";
    int64_t bytes = 0, wanted = 0;
    *npy = (gc_npy){0};
    const bool whole = pread(fd, head, sizeof head, 0) == (ssize_t)sizeof head && memcmp(head, "\x93NUMPY", 6) == 0;
    const int version = head[6], begin = version == 1 ? 10 : 12;
    const int64_t length =
        head[8] + 256 * (int64_t)head[9] + (version == 1 ? 0 : 65536 * (head[10] + 256 * (int64_t)head[11]));
    if (!whole || version < 1 || version > 3 || length >= SAMPLE ||
        pread(fd, header, (size_t)length, begin) != (ssize_t)length)
        return gc_fail(
            error, GPUCONV_ERROR_FORMAT,
            "%s: is no file of numpy.save of version 1 to 3, or its header is cut off or longer than %d bytes", path,
            SAMPLE - 1);
    npy->begin = begin + length;
    gpuconv_status status = parse_header(header, path, npy, &bytes, error);
    if (!status && (__builtin_mul_overflow(npy->frames, npy->channels * bytes, &wanted) || wanted != size - npy->begin))
        status =
            gc_fail(error, GPUCONV_ERROR_FORMAT,
                    "%s: damaged or cut off: %lld bytes of samples, and not the %lld frames of %d channels that its "
                    "header states",
                    path, (long long)(size - npy->begin), (long long)npy->frames, npy->channels);
    if (!status && lseek(fd, npy->begin, SEEK_SET) != npy->begin)
        status = gc_fail(error, GPUCONV_ERROR_FILE, "%s: cannot be read at byte %lld", path, (long long)npy->begin);
    return status;
}
