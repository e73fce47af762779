/*
 * Matrices of responses. A text becomes a list of entries and a list of files. Then each file is read once, on all
 * cores, and the entries are summed into routes. The text is in one of three languages: gpuconv's own matrix files,
 * jconvolver's configuration (its routes), or BruteFIR's configuration (its plain convolutions).
 */
#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/files.h"
#include "libgpuconv/core/map.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/pool.h"
#include "libgpuconv/core/table.h"
#include "libgpuconv/core/visible.h"
#include "libgpuconv/dsp/finite.h"
#include "numbers.h"
#include "object.h"
#include "prepare.h"
#include "read_files.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_FILES = 16384, MAX_FOLDER = 4096 };

/* A part of a channel of a file, a single tap or a Hilbert transform that is added to a route. */
typedef struct matrix_entry {
    int input, output; /* from 0 */
    int file;          /* index of the file; -1: a single tap (dirac), or with a length a Hilbert transform */
    int channel;       /* of the file, from 0 */
    int line;          /* of the text */
    double factor;     /* gain */
    double delay, offset, length; /* frames (offset and length of the file), or seconds with `in_seconds`; length 0: to
                                     the end */
    bool in_seconds;
} matrix_entry;

/* A route that follows another one. */
typedef struct matrix_copy {
    int input, output, from_input, from_output, line;
} matrix_copy;

typedef struct matrix_file {
    char *path;
    gpuconv_ir *ir; /* NULL: not read yet */
    int line;       /* of its first use */
} matrix_file;

/* A part of a file of another rate than the matrix, converted, or a Hilbert transform. */
typedef struct matrix_part {
    int file;             /* -1: a Hilbert transform */
    int64_t from, frames; /* of the file */
    gpuconv_ir *ir;
} matrix_part;

typedef struct matrix {
    const char *path;
    char *home;   /* the folder of the text; ends with a slash; "": the current folder */
    char *folder; /* files are relative to it; in the same form */
    matrix_entry *entry;
    int64_t entries, capacity;
    matrix_copy *copy; /* in the order of the text */
    int64_t copies, copy_capacity;
    matrix_file file[MAX_FILES];
    gc_map by_path; /* from a path to its file */
    int files, inputs, outputs;
    matrix_part *part;
    int64_t parts, part_capacity;
    int64_t hilbert_frames;    /* of all Hilbert transforms among them */
    bool resampled;            /* a part is of another rate */
    char ignored[400];         /* settings that do not change the samples, with ", " before each */
    int line;                  /* current line of the text, for messages */
    int64_t max_frames;        /* of a route; 0: no limit */
    double rate;               /* of the files; 0: not known yet */
    double rate_without_files; /* of the response if no file has one */
    double file_rate;          /* of files that state none; 0: these are refused */
} matrix;

/* Enlarges the matrix, if it is smaller, to contain an input and an output (from 0). */
static void matrix_grow(matrix *m, int input, int output) {
    m->inputs = input >= m->inputs ? input + 1 : m->inputs;
    m->outputs = output >= m->outputs ? output + 1 : m->outputs;
}

/* ---- Entries ----------------------------------------------------------------------------------------------------- */

enum { MAX_ENTRIES = 1 << 16 };

/* Fails with FORMAT; the message begins with the path and the current line. */
__attribute__((format(printf, 3, 4))) static gpuconv_status matrix_fail(const matrix *m, gpuconv_error *error,
                                                                        const char *format, ...) {
    char text[384];
    va_list args;
    va_start(args, format);
    gc_visible_print(text, sizeof text, format, args);
    va_end(args);
    return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s, line %d: %s", m->path, m->line, text);
}

/* Notes that a setting was ignored, once. */
static void matrix_ignore(matrix *m, const char *setting) {
    char listed[64];
    (void)snprintf(listed, sizeof listed, ", %s", setting);
    if (!strstr(m->ignored, listed))
        gc_append(m->ignored, sizeof m->ignored, "%s", listed);
}

/* Makes room for one more element. Returns the elements, moved or where they were; NULL without memory. */
static void *grow(void *elements, int64_t count, int64_t *capacity, int64_t size) {
    if (count < *capacity)
        return elements;
    const int64_t larger = *capacity ? 2 * *capacity : 64;
    void *made = gc_calloc(larger, size);
    if (!made)
        return NULL;
    if (count)
        memcpy(made, elements, (size_t)(count * size));
    free(elements);
    *capacity = larger;
    return made;
}

/* Appends an entry of the current line. Returns FORMAT (too many), MEMORY. */
static gpuconv_status matrix_add(matrix *m, const matrix_entry *e, gpuconv_error *error) {
    if (m->entries == MAX_ENTRIES)
        return matrix_fail(m, error, "more than %d routes", MAX_ENTRIES);
    matrix_entry *room = grow(m->entry, m->entries, &m->capacity, sizeof *room);
    if (!room)
        return gc_fail_memory(error, m->path);
    m->entry = room;
    m->entry[m->entries] = *e;
    m->entry[m->entries++].line = m->line;
    return GPUCONV_OK;
}

/* Notes that a route follows another one. Returns FORMAT (too many), MEMORY. */
static gpuconv_status matrix_add_copy(matrix *m, const matrix_copy *c, gpuconv_error *error) {
    if (m->copies == MAX_ENTRIES)
        return matrix_fail(m, error, "more than %d copies", MAX_ENTRIES);
    matrix_copy *room = grow(m->copy, m->copies, &m->copy_capacity, sizeof *room);
    if (!room)
        return gc_fail_memory(error, m->path);
    m->copy = room;
    m->copy[m->copies++] = *c;
    return GPUCONV_OK;
}

/* ---- Copies ------------------------------------------------------------------------------------------------------ */

/* Compares entries by output, input and line, for qsort. */
static int matrix_compare(const void *a, const void *b) {
    const matrix_entry *x = a, *y = b;
    return x->output != y->output ? x->output - y->output
           : x->input != y->input ? x->input - y->input
                                  : x->line - y->line;
}

/* Compares copies by the route that they make. */
static int compare_copies(const void *a, const void *b) {
    const matrix_copy *x = a, *y = b;
    return x->output != y->output ? x->output - y->output : x->input - y->input;
}

static int compare_copies_and_lines(const void *a, const void *b) {
    const int order = compare_copies(a, b);
    return order ? order : ((const matrix_copy *)a)->line - ((const matrix_copy *)b)->line;
}

/* Returns the copy that makes a route; NULL: none does. */
static const matrix_copy *find_copy(const matrix *m, int input, int output) {
    const matrix_copy key = {.input = input, .output = output};
    return bsearch(&key, m->copy, (size_t)m->copies, sizeof key, compare_copies);
}

/* Removes the entries that a copy replaces. Fails with FORMAT if one stands behind the copy. */
static gpuconv_status remove_replaced(matrix *m, gpuconv_error *error) {
    int64_t kept = 0;
    for (int64_t i = 0; i < m->entries; i++) {
        const matrix_entry *e = &m->entry[i];
        const matrix_copy *c = find_copy(m, e->input, e->output);
        m->line = e->line;
        if (c && e->line > c->line)
            return matrix_fail(m, error,
                               "the route %d to %d is a copy (line %d), to which jconvolver adds nothing; remove the "
                               "line",
                               e->input + 1, e->output + 1, c->line);
        if (!c)
            m->entry[kept++] = *e;
    }
    m->entries = kept;
    return GPUCONV_OK;
}

/* Returns the number of the first entry, which are sorted, of a route, or of what would follow it. */
static int64_t find_route(const matrix *m, int64_t entries, int input, int output) {
    const matrix_entry key = {.input = input, .output = output, .line = 0};
    int64_t low = 0, high = entries;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (matrix_compare(&m->entry[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Adds the entries of the route that a copy follows, also through other copies. */
static gpuconv_status fill_copy(matrix *m, int64_t entries, const matrix_copy *c, gpuconv_error *error) {
    const matrix_copy *root = c, *next;
    m->line = c->line;
    for (int64_t steps = 0; (next = find_copy(m, root->from_input, root->from_output)) && steps <= m->copies; steps++)
        root = next;
    const int64_t first = find_route(m, entries, root->from_input, root->from_output);
    bool found = false;
    for (int64_t i = first; i < entries; i++) {
        matrix_entry copy = m->entry[i];
        if (copy.input != root->from_input || copy.output != root->from_output)
            break;
        found = true;
        copy.input = c->input;
        copy.output = c->output;
        gpuconv_status status = matrix_add(m, &copy, error);
        if (status)
            return status;
        m->entry[m->entries - 1].line = copy.line;
    }
    return found ? GPUCONV_OK
                 : matrix_fail(m, error, "there is no route from %d to %d to copy", c->from_input + 1,
                               c->from_output + 1);
}

/* Gives the routes that follow another one its entries, instead of those before the copy. Returns FORMAT (nothing to
 * copy, entries behind the copy, too many), MEMORY. */
static gpuconv_status matrix_resolve_copies(matrix *m, gpuconv_error *error) {
    int64_t kept = 0;
    if (m->copies == 0)
        return GPUCONV_OK;
    qsort(m->copy, (size_t)m->copies, sizeof *m->copy, compare_copies_and_lines);
    for (int64_t i = 0; i < m->copies; i++) { /* the last copy to a route holds */
        if (kept > 0 && compare_copies(&m->copy[kept - 1], &m->copy[i]) == 0)
            kept--;
        m->copy[kept++] = m->copy[i];
    }
    m->copies = kept;
    gpuconv_status status = remove_replaced(m, error);
    const int64_t entries = m->entries;
    if (entries)
        qsort(m->entry, (size_t)entries, sizeof *m->entry, matrix_compare);
    for (int64_t i = 0; i < m->copies && !status; i++)
        status = fill_copy(m, entries, &m->copy[i], error);
    return status;
}

/* ---- Files ------------------------------------------------------------------------------------------------------- */

enum { MAX_HILBERT = 1 << 24 };

/* Joins folder, name and suffix; an absolute name ignores the folder. Returns NULL without memory; the caller frees it.
 */
static char *matrix_join_path(const char *folder, const char *name, const char *suffix) {
    size_t size = strlen(folder) + strlen(name) + strlen(suffix) + 1;
    char *path = gc_calloc((int64_t)size, 1);
    if (path)
        (void)snprintf(path, size, "%s%s%s", *name == '/' ? "" : folder, name, suffix);
    return path;
}

/* Lists a file and stores its index in *index; takes `path` and `ir` (NULL: not read yet) over, also on failure.
 * Returns FORMAT (too many), MEMORY. */
static gpuconv_status list_file(matrix *m, char *path, gpuconv_ir *ir, int *index, gpuconv_error *error) {
    gpuconv_status status = path ? GPUCONV_OK : gc_fail_memory(error, m->path);
    if (!status && m->files == MAX_FILES)
        status = matrix_fail(m, error, "more than %d files", MAX_FILES);
    void **known = status ? NULL : gc_map_put(&m->by_path, path, strlen(path));
    if (!known) {
        free(path);
        gpuconv_ir_free(ir);
        return status ? status : gc_fail_memory(error, m->path);
    }
    m->file[m->files] = (matrix_file){path, ir, m->line};
    *known = &m->file[m->files];
    *index = m->files++;
    return GPUCONV_OK;
}

/* Stores the index of a file in *index; lists the file at its first use. Returns FORMAT (too many), MEMORY. */
static gpuconv_status matrix_find_file(matrix *m, const char *name, int *index, gpuconv_error *error) {
    char *path = matrix_join_path(m->folder, name, "");
    const matrix_file *known = path ? gc_map_get(&m->by_path, path, strlen(path)) : NULL;
    if (!known)
        return list_file(m, path, NULL, index, error);
    free(path);
    *index = (int)(known - m->file);
    return GPUCONV_OK;
}

/* A file's response, or why there is none. */
typedef struct loaded {
    gpuconv_status status;
    gpuconv_error error;
} loaded;

typedef struct loading {
    matrix *matrix;
    const int *file; /* the files to read */
    loaded *result;
} loading;

static void load(void *context, int64_t index, int worker) {
    (void)worker;
    const loading *l = context;
    matrix_file *file = &l->matrix->file[l->file[index]];
    const gc_ir_form form = {.kind = GC_INPUT_REGULAR, .rate = l->matrix->file_rate};
    l->result[index].status = gc_ir_load_from(file->path, &form, &file->ir, &l->result[index].error);
}

/* Reads `count` files. Returns the error of the first one that fails. */
static gpuconv_status load_files(matrix *m, const int *file, int count, gpuconv_error *error) {
    loaded *result = gc_calloc(count, sizeof *result);
    gc_pool *pool = result ? gc_pool_new((int)gc_min(count, gc_processor_count())) : NULL;
    gpuconv_status status = pool ? GPUCONV_OK : gc_fail_memory(error, m->path);
    loading l = {m, file, result};
    if (pool)
        gc_pool_run(pool, load, &l, count);
    gc_pool_free(pool);
    for (int i = 0; i < count && !status; i++) {
        status = result[i].status;
        m->line = m->file[file[i]].line; /* for messages */
        if (status == GPUCONV_ERROR_MEMORY)
            gc_fail_memory(error, m->path);
        else if (status)
            gc_fail(error, status, "%s, line %d: %s", m->path, m->line, result[i].error.message);
    }
    free(result);
    return !status && gc_cancelled() ? gc_fail_cancelled(error, m->path) : status;
}

/* Reads all listed files that have not been read, on all cores. The rate of a matrix that has none is that of the first
 * file. Returns the errors of reading, MEMORY, CANCELLED. */
static gpuconv_status matrix_load_files(matrix *m, gpuconv_error *error) {
    int *file = gc_calloc(m->files, sizeof *file), count = 0;
    if (!file)
        return gc_fail_memory(error, m->path);
    for (int i = 0; i < m->files; i++)
        if (!m->file[i].ir)
            file[count++] = i;
    gpuconv_status status = count > 0 ? load_files(m, file, count, error) : GPUCONV_OK;
    free(file);
    if (!status && m->rate <= 0 && m->files > 0)
        m->rate = m->file[0].ir->rate;
    return status;
}

/* Returns a part; NULL: it was not made yet. The search begins with the newest part, which neighbouring entries share.
 */
static const gpuconv_ir *find_part(const matrix *m, int file, int64_t from, int64_t frames) {
    for (int64_t i = m->parts - 1; i >= 0; i--) {
        const matrix_part *p = &m->part[i];
        if (p->file == file && p->from == from && p->frames == frames)
            return p->ir;
    }
    return NULL;
}

/* Adds a part, which belongs to the matrix then, also after a failure. Returns MEMORY. */
static gpuconv_status add_part(matrix *m, const matrix_part *part, gpuconv_error *error) {
    matrix_part *room = grow(m->part, m->parts, &m->part_capacity, sizeof *room);
    if (!room) {
        gpuconv_ir_free(part->ir);
        return gc_fail_memory(error, m->path);
    }
    m->part = room;
    m->part[m->parts++] = *part;
    return GPUCONV_OK;
}

/* Cutting comes first, because resampling mixes a frame with its neighbours. */
static gpuconv_status matrix_convert_part(matrix *m, int file, int64_t from, int64_t frames, const gpuconv_ir **part,
                                          gpuconv_error *error) {
    if ((*part = find_part(m, file, from, frames)))
        return GPUCONV_OK;
    gpuconv_error inner = {0};
    gpuconv_ir *cut, *converted = NULL;
    gpuconv_status status = gpuconv_ir_cut(m->file[file].ir, from, frames, &cut, &inner);
    if (!status)
        status = gpuconv_ir_resample(cut, m->rate, &converted, &inner);
    gpuconv_ir_free(cut);
    if (status)
        return gc_fail(error, status, "%s, line %d: %s", m->path, m->line, inner.message);
    *part = converted;
    m->resampled = true;
    return add_part(m, &(matrix_part){file, from, frames, converted}, error);
}

/* The taps are -2 / (pi i) for odd i from the middle on, times a raised cosine. */
static gpuconv_status matrix_make_hilbert(matrix *m, int64_t frames, const gpuconv_ir **part, gpuconv_error *error) {
    if ((*part = find_part(m, -1, 0, frames)))
        return GPUCONV_OK;
    if ((m->hilbert_frames += frames) > MAX_HILBERT)
        return matrix_fail(m, error, "Hilbert transforms of more than %d frames in all", MAX_HILBERT);
    float *taps = gc_calloc(frames, sizeof *taps);
    const int64_t half = frames / 2;
    for (int64_t i = 1; taps && i < half; i += 2) {
        const double tap = 2 / (M_PI * (double)i) * (0.43 + 0.57 * cos((double)i * M_PI / (double)half));
        taps[half + i] = (float)-tap;
        taps[half - i] = (float)tap;
    }
    const float *const planes[] = {taps};
    gpuconv_ir *made = NULL;
    gpuconv_status status =
        taps ? gpuconv_ir_new(planes, 1, frames, m->rate, &made, error) : gc_fail_memory(error, m->path);
    free(taps);
    *part = made;
    return status ? status : add_part(m, &(matrix_part){-1, 0, frames, made}, error);
}

/* Frees the files and the parts of them. */
static void matrix_free_files(matrix *m) {
    for (int i = 0; i < m->files; i++) {
        free(m->file[i].path);
        gpuconv_ir_free(m->file[i].ir);
    }
    for (int64_t i = 0; i < m->parts; i++)
        gpuconv_ir_free(m->part[i].ir);
    free(m->part);
    gc_map_free(&m->by_path);
}

/* ---- BruteFIR --------------------------------------------------------------------------------------------------- */

/*
 * BruteFIR's configuration; only plain convolutions are supported:
 *
 *      input "left", "right" { channels: 8/5,4; mute: false, true; };
 *      coeff "name" { filename: "file"; format: "text"; attenuation: 6.0; blocks: 4; };
 *      filter "name" { inputs: "left"/6.0; outputs: 0, 1//0.5; coeff: "name"; };
 *
 * A filter leads from each of its inputs to each of its outputs; filters to one output are summed. Attenuations are in
 * decibels, factors behind a second slash are multipliers. The channels of the devices are those of the matrix, and a
 * response ends at filter_length. Settings that do not change the samples, except their rounding, are noted as ignored,
 * and any other is refused.
 */
enum { NAME_ROOM = 64, KEY_ROOM = 32, MOST = 1024 /* coefficients, channels */ };

/* A word of the text: a name or number, a string in quotation marks, one of the signs {}:;,/ or the end. */
typedef struct config_word {
    char text[1024];
    bool quoted;
    char sign; /* 0: text */
    bool end;
} config_word;

typedef struct coefficient {
    char name[NAME_ROOM];
    char file[1024], format[32]; /* file "": not given */
    double factor;
    int64_t blocks; /* 0 or less: all */
    int index;      /* of the response in the matrix; -1: a single tap */
    int line;
} coefficient;

/* A channel that input or output names. */
typedef struct named_channel {
    char name[NAME_ROOM];
    int device; /* number of the channel of all devices, from 0 */
    bool muted;
} named_channel;

/* The inputs or the outputs. */
typedef struct side {
    named_channel *channel;
    int count, open; /* names, and channels of the devices */
} side;

typedef struct brutefir {
    matrix *matrix;
    gc_lines *lines;
    const char *at;   /* the rest of the current line; NULL: the first line was not read yet */
    config_word word; /* the current one */
    side input, output;
    coefficient *coeff;
    int coeffs;
    double rate;
    int64_t block, blocks; /* of filter_length: frames and their number; 0: not given */
} brutefir;

/* Returns whether the current word is a sign. */
static inline bool is_sign(const brutefir *b, char sign) {
    return b->word.sign == sign;
}

/* ---- Words ------------------------------------------------------------------------------------------------------- */

/* Goes to the next character that is no blank and no comment. *end: the text has ended. Returns as gc_lines_next. */
static gpuconv_status skip_blanks(brutefir *b, bool *end, gpuconv_error *error) {
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

/* Reads the next word into b->word. Returns FILE, FORMAT. */
static gpuconv_status next_word(brutefir *b, gpuconv_error *error) {
    static const char signs[] = "{}:;,/";
    config_word *w = &b->word;
    bool end;
    gpuconv_status status = skip_blanks(b, &end, error);
    *w = (config_word){.end = end};
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
        return matrix_fail(b->matrix, error,
                           "a word longer than %d bytes, or a quotation mark without its pair in the line",
                           (int)sizeof w->text - 1);
    memcpy(w->text, b->at, length);
    b->at += length + w->quoted;
    return GPUCONV_OK;
}

/* Fails unless the current word is `sign`, then reads the next one. */
static gpuconv_status expect(brutefir *b, char sign, gpuconv_error *error) {
    if (b->word.end)
        return matrix_fail(b->matrix, error, "'%c' is missing before the end", sign);
    if (!is_sign(b, sign))
        return matrix_fail(b->matrix, error, "'%c' is missing before '%.40s%c'", sign, b->word.text,
                           b->word.sign ? b->word.sign : ' ');
    return next_word(b, error);
}

/* Reads a number and the word behind it. */
static gpuconv_status read_number(brutefir *b, double *value, gpuconv_error *error) {
    if (b->word.sign || b->word.end || !gc_number_parse(b->word.text, value) || !(fabs(*value) <= 1e12))
        return matrix_fail(b->matrix, error, "'%.40s' is not a number", b->word.text);
    return next_word(b, error);
}

/* Reads an integer in a range and the word behind it. `what` names it in messages. */
static gpuconv_status read_integer(brutefir *b, const char *what, int64_t least, int64_t most, int64_t *value,
                                   gpuconv_error *error) {
    double number = 0;
    gpuconv_status status = read_number(b, &number, error);
    if (!status && !(number >= (double)least && number <= (double)most && number == floor(number)))
        status = matrix_fail(b->matrix, error, "%s: %g is not an integer from %lld to %lld", what, number,
                             (long long)least, (long long)most);
    if (!status)
        *value = (int64_t)number;
    return status;
}

/* ---- Coefficients ------------------------------------------------------------------------------------------------ */

/* Returns the encoding of raw samples for a format of BruteFIR; NULL: it is not read. */
static const char *raw_encoding(const char *format) {
    static const char *const known[][2] = {
        {"FLOAT_LE", "float"}, {"FLOAT64_LE", "double"}, {"S16_LE", "s16"}, {"S24_LE", "s24"}, {"S32_LE", "s32"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (gc_same_word(format, known[i][0]))
            return known[i][1];
    return NULL;
}

/* Reads the response of a coefficient into the matrix. Returns the errors of reading. */
static gpuconv_status load_coeff(brutefir *b, coefficient *c, gpuconv_error *error) {
    matrix *m = b->matrix;
    gpuconv_ir *ir = NULL;
    gpuconv_status status;
    m->line = c->line;
    c->index = -1;
    if (strcmp(c->file, "dirac pulse") == 0)
        return GPUCONV_OK;
    const char *encoding = raw_encoding(c->format);
    if (!*c->file || (!encoding && *c->format && !gc_same_word(c->format, "text")))
        return matrix_fail(m, error,
                           "coefficient '%.40s': a filename and a format text, FLOAT_LE, FLOAT64_LE, S16_LE, S24_LE "
                           "or S32_LE are needed, not '%.40s'",
                           c->name, c->format);
    char *path = matrix_join_path(m->folder, c->file, "");
    if (!path)
        return gc_fail_memory(error, m->path);
    char raw[64] = "";
    gpuconv_error inner = {0};
    if (encoding)
        (void)gc_format(raw, sizeof raw, "%.0f,1,%s", b->rate, encoding);
    status = encoding ? gc_ir_load_from(path, &(gc_ir_form){GC_INPUT_REGULAR, raw, 0}, &ir, &inner)
                      : gc_ir_read_text(path, b->rate, &ir, &inner);
    if (!status && ir->planes > 1) {
        status = matrix_fail(m, error, "%s: %d numbers in a row; a coefficient has one", path, ir->planes);
        gpuconv_ir_free(ir);
    } else if (status)
        status = status == GPUCONV_ERROR_MEMORY ? gc_fail_memory(error, m->path)
                                                : matrix_fail(m, error, "%s", inner.message);
    if (!status)
        return list_file(m, path, ir, &c->index, error);
    free(path);
    return status;
}

/* ---- Blocks and settings ----------------------------------------------------------------------------------------- */

/* Skips the value of a setting, up to its semicolon, and notes so. Values with braces are skipped whole. */
static gpuconv_status skip_value(brutefir *b, const char *key, gpuconv_error *error) {
    gpuconv_status status = GPUCONV_OK;
    matrix_ignore(b->matrix, key);
    for (int depth = 0; !status && !b->word.end && (depth > 0 || !is_sign(b, ';')); status = next_word(b, error)) {
        depth += is_sign(b, '{') ? 1 : is_sign(b, '}') ? -1 : 0;
        if (depth < 0)
            return matrix_fail(b->matrix, error, "';' is missing before '}'");
    }
    return status ? status : expect(b, ';', error);
}

/* Goes on to the next element of a list. Returns false behind its end, a semicolon, and after an error, in *status. */
static bool next_element(brutefir *b, gpuconv_status *status, gpuconv_error *error) {
    const bool more = !*status && is_sign(b, ',');
    if (!*status)
        *status = more ? next_word(b, error) : expect(b, ';', error);
    return more && !*status;
}

/* Fails unless all numbers of a list are 0. */
static gpuconv_status expect_no_delay(brutefir *b, gpuconv_error *error) {
    gpuconv_status status;
    do {
        double value = 0;
        status = read_number(b, &value, error);
        if (!status && value != 0)
            status =
                matrix_fail(b->matrix, error, "a delay of %g is not read; put the delay into the coefficients", value);
    } while (next_element(b, &status, error));
    return status;
}

/* Copies a name. Returns FORMAT if it is too long. */
static gpuconv_status copy_name(brutefir *b, char *name, size_t size, gpuconv_error *error) {
    if (b->word.sign || b->word.end || strlen(b->word.text) >= size)
        return matrix_fail(b->matrix, error, "'%.40s' is not a name of at most %d bytes", b->word.text, (int)size - 1);
    memcpy(name, b->word.text, strlen(b->word.text) + 1);
    return next_word(b, error);
}

/* Reads the key of the next setting of a block, and the colon behind it. Returns false behind the last one, and after
 * an error, in *status. */
static bool next_setting(brutefir *b, char key[KEY_ROOM], gpuconv_status *status, gpuconv_error *error) {
    if (*status || b->word.end || is_sign(b, '}'))
        return false;
    *status = copy_name(b, key, KEY_ROOM, error);
    if (!*status)
        *status = expect(b, ':', error);
    return !*status;
}

/* Reads the integers of a list, up to the semicolon. *count: how many. */
static gpuconv_status read_integers(brutefir *b, const char *what, int64_t most, int64_t *number, int *count,
                                    gpuconv_error *error) {
    gpuconv_status status;
    *count = 0;
    do {
        if (*count == MOST)
            return matrix_fail(b->matrix, error, "%s: more than %d channels", what, MOST);
        status = read_integer(b, what, 0, most, &number[(*count)++], error);
    } while (next_element(b, &status, error));
    return status;
}

/* The lines of a block of channels about its device. */
typedef struct device {
    int64_t open, used[MOST], mapping[MOST];
    int uses, mappings; /* numbers in the lists */
} device;

/* channels: OPEN[/CHANNEL, CHANNEL ...]; */
static gpuconv_status read_device_channels(brutefir *b, device *d, gpuconv_error *error) {
    gpuconv_status status = read_integer(b, "channels", 1, MOST, &d->open, error);
    for (d->uses = 0; d->uses < d->open && !status; d->uses++)
        d->used[d->uses] = d->uses;
    if (status || !is_sign(b, '/'))
        return status ? status : expect(b, ';', error);
    status = next_word(b, error);
    return status ? status : read_integers(b, "channels", d->open - 1, d->used, &d->uses, error);
}

/* mute: true, false ...; for the channels from `first` on. */
static gpuconv_status read_mutes(brutefir *b, side *s, int first, gpuconv_error *error) {
    gpuconv_status status;
    int i = first;
    do {
        const bool is = strcmp(b->word.text, "true") == 0;
        if (i == s->count || (!is && strcmp(b->word.text, "false") != 0))
            return matrix_fail(b->matrix, error, "mute: '%.40s' is neither true nor false, or one too many",
                               b->word.text);
        s->channel[i++].muted = is;
        status = next_word(b, error);
    } while (next_element(b, &status, error));
    return status;
}

/* Reads a setting, `key`, of the channels from `first` on. */
static gpuconv_status read_channel_setting(brutefir *b, const char *key, side *s, int first, device *d,
                                           gpuconv_error *error) {
    static const char skipped[] = "device|sample|maxdelay|individual_maxdelay|dither|merge";
    if (strcmp(key, "channels") == 0)
        return read_device_channels(b, d, error);
    if (strcmp(key, "mapping") == 0)
        return read_integers(b, key, MOST - 1, d->mapping, &d->mappings, error);
    if (strcmp(key, "mute") == 0)
        return read_mutes(b, s, first, error);
    if (strcmp(key, "delay") == 0 || strcmp(key, "subdelay") == 0)
        return expect_no_delay(b, error);
    return gc_word_find(key, strlen(key), skipped) >= 0
               ? skip_value(b, key, error)
               : matrix_fail(b->matrix, error, "unknown setting '%s' of channels", key);
}

/* Finds the channels of the device for the names from `first` on. */
static gpuconv_status map_channels(brutefir *b, side *s, int first, const device *d, gpuconv_error *error) {
    if (s->open + d->open > GC_MAX_CHANNELS)
        return matrix_fail(b->matrix, error, "more than %d channels of devices", GC_MAX_CHANNELS);
    for (int i = first; i < s->count; i++) {
        const int64_t use = d->mappings == 0 ? i - first : i - first < d->mappings ? d->mapping[i - first] : d->uses;
        if (use >= d->uses)
            return matrix_fail(b->matrix, error, "'%s' has no channel of the device; see channels and mapping",
                               s->channel[i].name);
        s->channel[i].device = s->open + (int)d->used[use];
    }
    s->open += (int)d->open;
    return GPUCONV_OK;
}

/* Adds a name of a channel. */
static gpuconv_status add_name(brutefir *b, side *s, gpuconv_error *error) {
    if (s->count == MOST)
        return matrix_fail(b->matrix, error, "more than %d channels", MOST);
    named_channel *c = &s->channel[s->count];
    gpuconv_status status = copy_name(b, c->name, sizeof c->name, error);
    for (int i = 0; i < s->count && !status; i++)
        if (strcmp(s->channel[i].name, c->name) == 0)
            status = matrix_fail(b->matrix, error, "'%s' is declared twice", c->name);
    s->count++;
    return status;
}

/* input or output NAME, NAME ... { settings }; adds the names. */
static gpuconv_status read_channels(brutefir *b, side *s, gpuconv_error *error) {
    const int first = s->count;
    gpuconv_status status = add_name(b, s, error);
    while (!status && is_sign(b, ',')) {
        status = next_word(b, error);
        if (!status)
            status = add_name(b, s, error);
    }
    if (status)
        return status;
    device *d = gc_calloc(1, sizeof *d);
    if (!d)
        return gc_fail_memory(error, b->matrix->path);
    for (d->open = d->uses = s->count - first; d->mappings < d->uses; d->mappings++)
        d->used[d->mappings] = d->mappings;
    d->mappings = 0;
    status = expect(b, '{', error);
    for (char key[KEY_ROOM]; next_setting(b, key, &status, error);)
        status = read_channel_setting(b, key, s, first, d, error);
    if (!status)
        status = map_channels(b, s, first, d, error);
    free(d);
    return status ? status : expect(b, '}', error);
}

/* coeff NAME { settings } */
static gpuconv_status read_coeff(brutefir *b, gpuconv_error *error) {
    coefficient *c = &b->coeff[b->coeffs];
    if (b->coeffs == MOST)
        return matrix_fail(b->matrix, error, "more than %d coefficients", MOST);
    *c = (coefficient){.factor = 1, .line = b->matrix->line};
    gpuconv_status status = copy_name(b, c->name, sizeof c->name, error);
    if (!status)
        status = expect(b, '{', error);
    for (char key[KEY_ROOM]; next_setting(b, key, &status, error);) {
        double number = 0;
        if (strcmp(key, "filename") == 0)
            status = copy_name(b, c->file, sizeof c->file, error);
        else if (strcmp(key, "format") == 0)
            status = copy_name(b, c->format, sizeof c->format, error);
        else if (strcmp(key, "attenuation") == 0) {
            status = read_number(b, &number, error);
            c->factor = pow(10, -fmax(-400, fmin(400, number)) / 20);
        } else if (strcmp(key, "blocks") == 0)
            status = read_integer(b, key, -1, 1 << 24, &c->blocks, error);
        else if (strcmp(key, "skip") == 0) {
            status = read_number(b, &number, error);
            if (!status && number != 0)
                status = matrix_fail(b->matrix, error, "skip: %g is not read; cut the beginning off the file", number);
        } else if (strcmp(key, "shared_mem") != 0)
            status = matrix_fail(b->matrix, error, "unknown setting '%s' of coefficients", key);
        if (!status)
            status = strcmp(key, "shared_mem") == 0 ? skip_value(b, key, error) : expect(b, ';', error);
    }
    for (int i = 0; i < b->coeffs && !status; i++)
        if (strcmp(b->coeff[i].name, c->name) == 0)
            status = matrix_fail(b->matrix, error, "'%s' is declared twice", c->name);
    b->coeffs++;
    return status ? status : expect(b, '}', error);
}

/* A channel of a filter, with its factor. */
typedef struct end {
    int channel;
    double factor;
} end;

/* Finds a channel by name, or by number from 0 on. Returns -1 if there is none. */
static int find_name(const config_word *w, const side *s) {
    for (int i = 0; i < s->count; i++)
        if (strcmp(s->channel[i].name, w->text) == 0)
            return i;
    int64_t number;
    return !w->quoted && gc_integer_parse(w->text, &number) && number >= 0 && number < s->count ? (int)number : -1;
}

/* Reads CHANNEL[/[ATTENUATION][/MULTIPLIER]], ... ; */
static gpuconv_status read_ends(brutefir *b, const side *s, end *ends, int *count, gpuconv_error *error) {
    gpuconv_status status;
    *count = 0;
    do {
        const int channel = b->word.sign ? -1 : find_name(&b->word, s);
        if (channel < 0 || *count == MOST)
            return matrix_fail(b->matrix, error, "'%.40s' is no input or output that is declared above", b->word.text);
        ends[*count] = (end){s->channel[channel].device, s->channel[channel].muted ? 0 : 1};
        status = next_word(b, error);
        for (int part = 0; part < 2 && !status && is_sign(b, '/'); part++) {
            double number = 0;
            status = next_word(b, error);
            if (status || is_sign(b, '/'))
                continue;
            status = read_number(b, &number, error);
            ends[*count].factor *= part ? number : pow(10, -fmax(-400, fmin(400, number)) / 20);
        }
        (*count)++;
    } while (next_element(b, &status, error));
    return status;
}

/* Adds the routes of a filter. Returns FORMAT, MEMORY. */
static gpuconv_status add_filter(brutefir *b, const end *in, int inputs, const end *out, int outputs,
                                 const coefficient *c, gpuconv_error *error) {
    gpuconv_status status = GPUCONV_OK;
    for (int i = 0; i < inputs; i++)
        for (int o = 0; o < outputs && !status; o++) {
            matrix_entry e = {.input = in[i].channel,
                              .output = out[o].channel,
                              .file = c ? c->index : -1,
                              .factor = in[i].factor * out[o].factor * (c ? c->factor : 1)};
            if (c && c->blocks > 0 && c->index >= 0)
                e.length = (double)(c->blocks * b->block);
            status = matrix_add(b->matrix, &e, error);
        }
    return status;
}

/* Reads the coefficient of a filter: a name, a number from 0 on, or -1 for none. *coeff is NULL for none. */
static gpuconv_status read_filter_coeff(brutefir *b, const coefficient **coeff, gpuconv_error *error) {
    *coeff = NULL;
    if (b->word.quoted || strcmp(b->word.text, "-1") != 0) {
        int64_t number = -1;
        const bool by_number = !b->word.quoted && gc_integer_parse(b->word.text, &number);
        for (int i = 0; i < b->coeffs; i++)
            if (by_number ? number == i : b->word.quoted && strcmp(b->coeff[i].name, b->word.text) == 0)
                *coeff = &b->coeff[i];
        if (b->word.sign || !*coeff)
            return matrix_fail(b->matrix, error, "'%.40s' is no coefficient that is declared above", b->word.text);
        if ((*coeff)->blocks > 0 && b->block == 0)
            return matrix_fail(b->matrix, error,
                               "coefficient '%.40s' is counted in blocks, and no filter_length says "
                               "how long they are",
                               (*coeff)->name);
    }
    gpuconv_status status = next_word(b, error);
    return status ? status : expect(b, ';', error);
}

/* filter NAME { settings }, with room for the channels in `ends`. */
static gpuconv_status read_filter(brutefir *b, end *ends, gpuconv_error *error) {
    end *in = ends, *out = ends + MOST + 1;
    int inputs = 0, outputs = 0;
    bool has_coeff = false;
    const coefficient *coeff = NULL;
    gpuconv_status status = next_word(b, error); /* the name */
    if (!status)
        status = expect(b, '{', error);
    for (char key[KEY_ROOM]; next_setting(b, key, &status, error);) {
        if (strcmp(key, "inputs") == 0 || strcmp(key, "from_inputs") == 0)
            status = read_ends(b, &b->input, in, &inputs, error);
        else if (strcmp(key, "outputs") == 0 || strcmp(key, "to_outputs") == 0)
            status = read_ends(b, &b->output, out, &outputs, error);
        else if (strcmp(key, "coeff") == 0) {
            status = read_filter_coeff(b, &coeff, error);
            has_coeff = true;
        } else if (strcmp(key, "delay") == 0)
            status = expect_no_delay(b, error);
        else if (strcmp(key, "from_filters") == 0 || strcmp(key, "to_filters") == 0)
            status = matrix_fail(b->matrix, error,
                                 "%s: filters behind filters are not read; convolve their coefficients into one", key);
        else if (strcmp(key, "process") == 0 || strcmp(key, "crossfade") == 0)
            status = skip_value(b, key, error);
        else
            status = matrix_fail(b->matrix, error, "unknown setting '%s' of a filter", key);
    }
    if (!status && (!inputs || !outputs || !has_coeff))
        status = matrix_fail(b->matrix, error, "a filter needs inputs, outputs and coeff");
    if (!status)
        status = add_filter(b, in, inputs, out, outputs, coeff, error);
    return status ? status : expect(b, '}', error);
}

/* logic: "MODULE" { parameters }, ...; a module that only listens for commands is ignored. */
static gpuconv_status read_logic(brutefir *b, gpuconv_error *error) {
    gpuconv_status status;
    matrix_ignore(b->matrix, "logic");
    do {
        if (strcmp(b->word.text, "cli") != 0)
            return matrix_fail(b->matrix, error, "the module '%.40s' of logic changes coefficients and is not read",
                               b->word.text);
        status = next_word(b, error);
        for (int depth = 0; !status && !b->word.end && (depth > 0 || is_sign(b, '{'));) {
            depth += is_sign(b, '{') ? 1 : is_sign(b, '}') ? -1 : 0;
            if (strcmp(b->word.text, "script") == 0 && !b->word.quoted)
                return matrix_fail(b->matrix, error, "a script of the module 'cli' is not run");
            status = next_word(b, error);
        }
    } while (next_element(b, &status, error));
    return status;
}

/* Reads a setting of the program. */
static gpuconv_status read_setting(brutefir *b, const char *key, gpuconv_error *error) {
    static const char skipped[] =
        "allow_poll_mode|benchmark|config_file|convolver_config|debug|float_bits|lock_memory|max_dither_table_size|"
        "modules_path|monitor_rate|n_processors|powersave|overflow_warnings|safety_limit|sdf_length|show_progress";
    gpuconv_status status = expect(b, ':', error);
    if (status)
        return status;
    if (strcmp(key, "logic") == 0)
        return read_logic(b, error);
    double level = 0; /* dB: BruteFIR mutes quieter signals (powersave), or ends at louder ones (safety_limit) */
    if ((strcmp(key, "powersave") == 0 || strcmp(key, "safety_limit") == 0) && gc_number_parse(b->word.text, &level) &&
        level != 0)
        return matrix_fail(b->matrix, error, "%s: a level of %g dB, which changes samples, is not read; remove it", key,
                           level);
    if (gc_word_find(key, strlen(key), skipped) >= 0)
        return skip_value(b, key, error);
    if (strcmp(key, "sampling_rate") == 0) {
        status = read_number(b, &b->rate, error);
        if (!status && !gc_is_rate(b->rate))
            status = matrix_fail(b->matrix, error, "a sampling rate of %g Hz", b->rate);
    } else if (strcmp(key, "filter_length") == 0) {
        status = read_integer(b, key, 1, 1 << 30, &b->block, error);
        b->blocks = 1;
        if (!status && is_sign(b, ',')) {
            status = next_word(b, error);
            if (!status)
                status = read_integer(b, key, 1, 1 << 20, &b->blocks, error);
        }
    } else {
        return matrix_fail(b->matrix, error, "unknown setting '%s'", key);
    }
    return status ? status : expect(b, ';', error);
}

/* Reads one block or setting. */
static gpuconv_status read_item(brutefir *b, end *ends, gpuconv_error *error) {
    char key[KEY_ROOM] = "";
    gpuconv_status status = copy_name(b, key, sizeof key, error);
    if (status)
        return status;
    if (strcmp(key, "input") == 0)
        status = read_channels(b, &b->input, error);
    else if (strcmp(key, "output") == 0)
        status = read_channels(b, &b->output, error);
    else if (strcmp(key, "coeff") == 0)
        status = read_coeff(b, error);
    else if (strcmp(key, "filter") == 0)
        status = read_filter(b, ends, error);
    else
        return read_setting(b, key, error);
    return status ? status : expect(b, ';', error);
}

/* Reads the coefficients and filters of a configuration of BruteFIR. Returns FILE, FORMAT, MEMORY, CANCELLED. */
static gpuconv_status matrix_read_brutefir(matrix *m, gc_lines *lines, gpuconv_error *error) {
    brutefir *b = gc_calloc(1, sizeof *b);
    end *ends = gc_calloc(2 * (MOST + 1), sizeof *ends);
    gpuconv_status status = GPUCONV_OK;
    if (b) {
        b->input.channel = gc_calloc(MOST + 1, sizeof *b->input.channel);
        b->output.channel = gc_calloc(MOST + 1, sizeof *b->output.channel);
        b->coeff = gc_calloc(MOST + 1, sizeof *b->coeff);
    }
    if (!b || !ends || !b->input.channel || !b->output.channel || !b->coeff)
        status = gc_fail_memory(error, m->path);
    if (!status) {
        b->matrix = m;
        b->lines = lines;
        b->rate = m->rate_without_files;
        status = next_word(b, error);
    }
    for (int read = 0; !status && !b->word.end;) {
        status = read_item(b, ends, error);
        const int line = m->line;
        while (!status && read < b->coeffs)
            status = load_coeff(b, &b->coeff[read++], error);
        if (!status)
            m->line = line;
    }
    if (!status) {
        m->inputs = b->input.open;
        m->outputs = b->output.open;
        m->max_frames = b->block * b->blocks;
    }
    if (b) {
        free(b->input.channel);
        free(b->output.channel);
        free(b->coeff);
    }
    free(b);
    free(ends);
    return status;
}

/* ---- Text -------------------------------------------------------------------------------------------------------- */

enum { MAX_WORDS = 12 };

/* Parses a channel number 1..1024 and stores it from 0 on. */
static bool parse_channel(const char *word, int *channel) {
    double value;
    if (!gc_number_parse(word, &value) || !(value >= 1 && value <= GC_MAX_CHANNELS) || value != floor(value))
        return false;
    *channel = (int)value - 1;
    return true;
}

/* Returns whether a time, in seconds or frames, is in its range. */
static bool is_time(double time) {
    return time >= 0 && time <= 1e12;
}

/* Parses a time in frames. */
static bool parse_time(const char *word, double *value) {
    return gc_number_parse(word, value) && is_time(*value);
}

/* Returns whether a row has a field that is not empty. */
static bool has(const gc_table *t, int field) {
    return field < t->fields && *t->field[field];
}

/* Reads a line of the own format: INPUT OUTPUT FILE [CHANNEL [GAIN [DELAY [OFFSET [LENGTH]]]]]; an empty field at the
 * end or in the middle has its default. */
static gpuconv_status read_own_line(matrix *m, gc_table *t, gpuconv_error *error) {
    matrix_entry e = {.file = -1, .factor = 1, .in_seconds = true};
    double gain = 0;
    char **word = t->field;
    if (!has(t, 0) || !has(t, 1) || !has(t, 2) || t->fields > 8)
        return matrix_fail(m, error, "a line is INPUT OUTPUT FILE [CHANNEL [GAIN [DELAY [OFFSET [LENGTH]]]]]");
    if (!parse_channel(word[0], &e.input) || !parse_channel(word[1], &e.output))
        return matrix_fail(m, error, "inputs and outputs are numbers from 1 to %d", GC_MAX_CHANNELS);
    if (has(t, 3) && !parse_channel(word[3], &e.channel))
        return matrix_fail(m, error, "'%s' is not a channel; channels are numbered from 1", word[3]);
    if (has(t, 4) && !(gc_table_number(t, 4, &gain) && gc_is_gain(gain)))
        return matrix_fail(m, error, "'%s' is not a gain of -%d to %d dB", word[4], GC_MAX_DECIBELS, GC_MAX_DECIBELS);
    double *const times[] = {&e.delay, &e.offset, &e.length};
    for (int i = 5; i < t->fields; i++)
        if (has(t, i) && !(gc_table_number(t, i, times[i - 5]) && is_time(*times[i - 5])))
            return matrix_fail(m, error, "'%s' is not a time in seconds", word[i]);
    e.factor = gc_level_factor(gain);
    matrix_grow(m, e.input, e.output);
    gpuconv_status status = strcmp(word[2], "dirac") == 0 ? GPUCONV_OK : matrix_find_file(m, word[2], &e.file, error);
    return status ? status : matrix_add(m, &e, error);
}

/* Reads a line of gains to an output, such as a row of an ambisonic decoder: row OUTPUT FACTOR FACTOR... with a factor
 * for each input. */
static gpuconv_status read_row(matrix *m, gc_table *t, gpuconv_error *error) {
    matrix_entry e = {.file = -1};
    if (!has(t, 1) || !parse_channel(t->field[1], &e.output))
        return matrix_fail(m, error, "a row of gains is: row OUTPUT FACTOR FACTOR..., with a factor for each input");
    for (int i = 2; i < t->fields; i++, e.input++) {
        if (e.input == GC_MAX_CHANNELS || !gc_table_number(t, i, &e.factor) || !(fabs(e.factor) <= 1e10))
            return matrix_fail(m, error, "'%.40s' is not a factor of -1e10 to 1e10, or one of more than %d",
                               t->field[i], GC_MAX_CHANNELS);
        matrix_grow(m, e.input, e.output);
        gpuconv_status status = e.factor != 0 ? matrix_add(m, &e, error) : GPUCONV_OK;
        if (status)
            return status;
    }
    return e.input ? GPUCONV_OK : matrix_fail(m, error, "a row without factors");
}

/* ---- jconvolver -------------------------------------------------------------------------------------------------- */

/* Parses input and output of a route that /convolver/new declares. Without that command, as in configurations of mcfx,
 * the matrix grows with its routes. */
static gpuconv_status parse_route(matrix *m, char **word, matrix_entry *e, gpuconv_error *error) {
    bool parsed = parse_channel(word[0], &e->input) && parse_channel(word[1], &e->output);
    if (parsed && m->max_frames == 0)
        matrix_grow(m, e->input, e->output);
    if (!parsed || e->input >= m->inputs || e->output >= m->outputs)
        return matrix_fail(m, error, "%s to %s is not a route of %d inputs and %d outputs", word[0], word[1], m->inputs,
                           m->outputs);
    return GPUCONV_OK;
}

/* /convolver/new INPUTS OUTPUTS PARTITION LENGTH [DENSITY] */
static gpuconv_status conf_new(matrix *m, char **word, int words, gpuconv_error *error) {
    int inputs, outputs;
    double partition, max_frames;
    if (words < 4 || words > 5 || !parse_channel(word[0], &inputs) || !parse_channel(word[1], &outputs) ||
        !gc_number_parse(word[2], &partition) || !gc_number_parse(word[3], &max_frames) ||
        !(max_frames >= 1 && max_frames <= 1e10))
        return matrix_fail(m, error,
                           "/convolver/new needs inputs, outputs, a partition and the longest response's frames");
    if (m->max_frames > 0)
        return matrix_fail(m, error, "/convolver/new is allowed once only");
    if (m->entries > 0)
        return matrix_fail(m, error, "/convolver/new must come before the first route");
    m->inputs = inputs + 1;
    m->outputs = outputs + 1;
    m->max_frames = (int64_t)max_frames;
    return GPUCONV_OK;
}

/* /impulse/read INPUT OUTPUT GAIN DELAY OFFSET LENGTH CHANNEL FILE */
static gpuconv_status conf_read(matrix *m, char **word, int words, gpuconv_error *error) {
    matrix_entry e = {.file = -1};
    if (words != 8 || !gc_number_parse(word[2], &e.factor) || !parse_time(word[3], &e.delay) ||
        !parse_time(word[4], &e.offset) || !parse_time(word[5], &e.length) || !parse_channel(word[6], &e.channel))
        return matrix_fail(m, error,
                           "/impulse/read needs input, output, gain, delay, offset, length, channel and file");
    gpuconv_status status = parse_route(m, word, &e, error);
    if (!status)
        status = matrix_find_file(m, word[7], &e.file, error);
    return status ? status : matrix_add(m, &e, error);
}

/* /impulse/dirac INPUT OUTPUT GAIN DELAY */
static gpuconv_status conf_dirac(matrix *m, char **word, int words, gpuconv_error *error) {
    matrix_entry e = {.file = -1};
    if (words != 4 || !gc_number_parse(word[2], &e.factor) || !parse_time(word[3], &e.delay))
        return matrix_fail(m, error, "/impulse/dirac needs input, output, gain and delay");
    gpuconv_status status = parse_route(m, word, &e, error);
    return status ? status : matrix_add(m, &e, error);
}

/* /impulse/hilbert INPUT OUTPUT GAIN DELAY LENGTH; the delay is that of the middle. */
static gpuconv_status conf_hilbert(matrix *m, char **word, int words, gpuconv_error *error) {
    matrix_entry e = {.file = -1};
    if (words != 5 || !gc_number_parse(word[2], &e.factor) || !parse_time(word[3], &e.delay) ||
        !parse_time(word[4], &e.length) || !(e.length >= 64 && e.length <= 65536))
        return matrix_fail(m, error,
                           "/impulse/hilbert needs input, output, gain, delay and a length of 64 to 65536 frames");
    e.delay -= floor(e.length / 2);
    if (e.delay < 0)
        return matrix_fail(m, error, "the delay of /impulse/hilbert is at least half its length of %g", e.length);
    gpuconv_status status = parse_route(m, word, &e, error);
    return status ? status : matrix_add(m, &e, error);
}

/* /impulse/copy INPUT OUTPUT FROM-INPUT FROM-OUTPUT */
static gpuconv_status conf_copy(matrix *m, char **word, int words, gpuconv_error *error) {
    matrix_entry to = {0}, from = {0};
    if (words != 4)
        return matrix_fail(m, error, "/impulse/copy needs input and output, and input and output of the route to copy");
    gpuconv_status status = parse_route(m, word, &to, error);
    if (!status)
        status = parse_route(m, word + 2, &from, error);
    if (!status && to.input == from.input && to.output == from.output)
        return matrix_fail(m, error, "a route is not copied to itself");
    return status ? status
                  : matrix_add_copy(m, &(matrix_copy){to.input, to.output, from.input, from.output, m->line}, error);
}

/* /impulse/packedmatrix INPUTS GAIN DELAY OFFSET LENGTH FILE, of mcfx: channel o of the file holds the responses from
 * all inputs to output o, one after the other, each as long as the file divided by INPUTS. */
static gpuconv_status conf_packed(matrix *m, char **word, int words, gpuconv_error *error) {
    matrix_entry e = {.file = -1};
    int inputs;
    if (words != 6 || !parse_channel(word[0], &inputs) || !gc_number_parse(word[1], &e.factor) ||
        !parse_time(word[2], &e.delay) || !parse_time(word[3], &e.offset) || !parse_time(word[4], &e.length))
        return matrix_fail(m, error, "/impulse/packedmatrix needs inputs, gain, delay, offset, length and file");
    gpuconv_status status = matrix_find_file(m, word[5], &e.file, error);
    if (!status)
        status = matrix_load_files(m, error);
    if (status)
        return status;
    const gpuconv_ir *ir = m->file[e.file].ir;
    const int64_t section = ir->frames / ++inputs;
    const double offset = e.offset, length = e.length > 0 ? e.length : (double)section - offset;
    if (ir->frames % inputs)
        return matrix_fail(m, error, "%s has %lld frames, which %d inputs do not divide evenly", m->file[e.file].path,
                           (long long)ir->frames, inputs);
    if (!(length > 0 && offset + length <= (double)section))
        return matrix_fail(m, error, "%s has %lld frames for each input, not %.0f from frame %.0f on",
                           m->file[e.file].path, (long long)section, length, offset);
    for (int i = 0; i < inputs && !status; i++)
        for (int o = 0; o < ir->planes && !status; o++) {
            char number[2][16];
            char *route[2] = {number[0], number[1]};
            (void)snprintf(number[0], sizeof number[0], "%d", i + 1);
            (void)snprintf(number[1], sizeof number[1], "%d", o + 1);
            status = parse_route(m, route, &e, error);
            e.channel = o;
            e.offset = offset + (double)(i * section);
            e.length = length;
            if (!status)
                status = matrix_add(m, &e, error);
        }
    return status;
}

/* /cd [FOLDER], from the folder of the configuration; without one, as mcfx writes it, the folder stays. */
static gpuconv_status conf_folder(matrix *m, char **word, int words, gpuconv_error *error) {
    if (words == 0)
        return GPUCONV_OK;
    if ((*word[0] == '/' ? 0 : strlen(m->home)) + strlen(word[0]) + 2 > MAX_FOLDER)
        return matrix_fail(m, error, "/cd makes the folder's path longer than %d bytes; use an absolute path",
                           MAX_FOLDER - 1);
    char *folder = matrix_join_path(m->home, word[0], "/");
    if (!folder)
        return gc_fail_memory(error, m->path);
    free(m->folder);
    m->folder = folder;
    return GPUCONV_OK;
}

/* Reads a line of a jconvolver configuration: a command and the rest of the line. */
static gpuconv_status read_jconvolver_line(matrix *m, char **line, int fields, gpuconv_error *error) {
    static const struct {
        const char *name;
        int last; /* the word, from 1, that is a name of a file or a folder; with mcfx it may have blanks */
        gpuconv_status (*read)(matrix *m, char **word, int words, gpuconv_error *error);
    } known[] = {{"/convolver/new", 0, conf_new},
                 {"/impulse/read", 8, conf_read},
                 {"/impulse/dirac", 0, conf_dirac},
                 {"/impulse/hilbert", 0, conf_hilbert},
                 {"/impulse/copy", 0, conf_copy},
                 {"/impulse/packedmatrix", 6, conf_packed},
                 {"/cd", 1, conf_folder}};
    static const char *const ports[] = {"/input/name", "/output/name", "/jack/"};
    char none[] = "", *word[MAX_WORDS];
    const char *wrong;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(line[0], known[i].name) == 0) {
            const gc_table_form form = {
                .kind = GC_TABLE_WORDS, .most = MAX_WORDS, .last = known[i].last, .comments = true, .escapes = true};
            const int words = gc_table_split(&form, ' ', fields > 1 ? line[1] : none, word, &wrong);
            return words < 0 ? matrix_fail(m, error, "%s", wrong) : known[i].read(m, word, words, error);
        }
    for (size_t i = 0; i < sizeof ports / sizeof *ports; i++)
        if (strncmp(line[0], ports[i], strlen(ports[i])) == 0) {
            matrix_ignore(m, i < 2 ? "names of ports" : "settings of JACK");
            return GPUCONV_OK;
        }
    return matrix_fail(m, error,
                       "unknown command '%s'; known are /cd, /convolver/new, /impulse/read, /impulse/dirac, "
                       "/impulse/hilbert, /impulse/copy and /impulse/packedmatrix",
                       line[0]);
}

/* Reads the entries of a text; `jconvolver` selects the grammar. Returns FILE, FORMAT, MEMORY, CANCELLED. */
static gpuconv_status matrix_read_text(matrix *m, gc_lines *lines, bool jconvolver, gpuconv_error *error) {
    static const gc_table_form conf = {.kind = GC_TABLE_WORDS, .most = 2, .last = 2, .comments = true},
                               own = {.kind = GC_TABLE_ROUTES,
                                      .most = 3 + GC_MAX_CHANNELS,
                                      .comments = true,
                                      .quotes = true};
    gc_table t;
    gpuconv_status status = gc_table_open(&t, jconvolver ? &conf : &own, lines, error);
    while (gc_table_next(&t, &status, error)) {
        m->line = (int)t.line;
        if (jconvolver)
            status = read_jconvolver_line(m, t.field, t.fields, error);
        else
            status = strcmp(t.field[0], "row") == 0 ? read_row(m, &t, error) : read_own_line(m, &t, error);
    }
    gc_table_close(&t);
    return status ? status : matrix_resolve_copies(m, error);
}

enum {
    MAX_DELAY = 1 << 28 /* frames, 1.5 hours at 48 kHz: a delay takes memory, of which a short text must not ask for any
                           amount */
};

/* ---- From entries to a response ---------------------------------------------------------------------------------- */

/* The taps of an entry, and the frame of its route to which the first of them is added. */
typedef struct placement {
    const float *taps;
    int64_t at, frames; /* at may be negative: before time zero */
    int64_t ring;       /* frames of these that resampling appended, which may lie behind the declared length */
    int64_t cut;        /* frames behind the declared length, which are left out */
} placement;

/* Finds the taps of an entry with a file. Times in frames are those of the file, whose rate may be another. Returns
 * FORMAT, MEMORY, CANCELLED, ARGUMENT. */
static gpuconv_status place_file(matrix *m, const matrix_entry *e, placement *p, gpuconv_error *error) {
    const matrix_file *file = &m->file[e->file];
    const gpuconv_ir *ir = file->ir;
    const double unit = e->in_seconds ? ir->rate : 1;
    if (e->offset * unit > 0x1p40 || e->length * unit > 0x1p40)
        return matrix_fail(m, error, "offset or length is longer than any response");
    int64_t from = llrint(e->offset * unit);
    if (e->channel >= ir->planes)
        return matrix_fail(m, error, "%s has %d channel%s, not %d", file->path, ir->planes, ir->planes == 1 ? "" : "s",
                           e->channel + 1);
    if (from >= ir->frames)
        return matrix_fail(m, error, "%s has only %lld frames; the offset is %lld", file->path, (long long)ir->frames,
                           (long long)from);
    p->frames = llrint(e->length * unit);
    p->frames = p->frames ? gc_min(p->frames, ir->frames - from) : ir->frames - from;
    if (ir->rate != m->rate) {
        gpuconv_status status = matrix_convert_part(m, e->file, from, p->frames, &ir, error);
        if (status)
            return status;
        from = 0;
        p->frames = ir->frames;
        p->ring = ir->ring;
    }
    p->taps = gc_ir_plane(ir, e->channel) + from;
    p->at -= ir->lead;
    return GPUCONV_OK;
}

/* Places an entry and checks its times against its file and the declared length. Returns as place_file. */
static gpuconv_status place_entry(matrix *m, const matrix_entry *e, placement *p, gpuconv_error *error) {
    static const float one = 1;
    const double delay = e->delay * (e->in_seconds ? m->rate : 1);
    m->line = e->line; /* for messages */
    if (delay > MAX_DELAY)
        return matrix_fail(m, error, "a delay of %.0f frames is more than %d", delay, MAX_DELAY);
    *p = (placement){&one, llrint(delay), 1, 0, 0};
    if (m->max_frames && p->at >= m->max_frames)
        return matrix_fail(
            m, error,
            "a delay of %lld frames lies behind the %lld frames of /convolver/new; declare more frames or "
            "remove the line",
            (long long)p->at, (long long)m->max_frames);
    gpuconv_status status = GPUCONV_OK;
    const gpuconv_ir *hilbert;
    if (e->file >= 0) {
        status = place_file(m, e, p, error);
    } else if (e->length > 0) {
        status = matrix_make_hilbert(m, (int64_t)e->length, &hilbert, error);
        p->frames = (int64_t)e->length;
        p->taps = status ? NULL : gc_ir_plane(hilbert, 0);
    }
    if (!status && m->max_frames && p->frames - p->ring > m->max_frames - p->at) {
        p->cut = p->frames - p->ring - (m->max_frames - p->at);
        p->frames = m->max_frames - p->at;
    }
    return status;
}

/* The routes of a matrix while their taps are summed. */
typedef struct summing {
    const matrix *matrix;
    const placement *place; /* of each entry */
    const int64_t *first;   /* the first entry of each route, and the number of entries */
    gpuconv_ir *made;
    atomic_bool infinite; /* a sum is beyond the range of floats */
} summing;

/* Writes the frames of an entry to the taps from `to` on; with `add`, adds them to these taps. */
static void place_taps(const placement *p, double factor, bool add, float *to) {
    if (add)
        for (int64_t k = 0; k < p->frames; k++)
            to[k] += (float)(factor * (double)p->taps[k]);
    else
        for (int64_t k = 0; k < p->frames; k++)
            to[k] = (float)(factor * (double)p->taps[k]);
}

/* Sums the entries of one route. */
static void sum_route(void *context, int64_t route, int worker) {
    (void)worker;
    summing *s = context;
    const int64_t frames = s->made->frames, first = s->first[route];
    float *to = s->made->taps + route * frames;
    for (int64_t i = first; i < s->first[route + 1]; i++) {
        const placement *p = &s->place[i];
        const int64_t at = s->made->lead + p->at;
        if (i == first) {
            memset(to, 0, (size_t)at * sizeof *to);
            memset(to + at + p->frames, 0, (size_t)(frames - at - p->frames) * sizeof *to);
        }
        place_taps(p, s->matrix->entry[i].factor, i > first, to + at);
        if (!gc_all_finite(to + at, p->frames))
            atomic_store(&s->infinite, true);
    }
}

/* Sums all routes on all cores. Returns FORMAT, MEMORY, CANCELLED. */
static gpuconv_status sum_routes(summing *s, gpuconv_error *error) {
    const matrix *m = s->matrix;
    const bool small = (double)s->made->routes * (double)s->made->frames < 1 << 20;
    gc_pool *pool = gc_pool_new(small ? 1 : (int)gc_min(s->made->routes, gc_processor_count()));
    if (!pool)
        return gc_fail_memory(error, m->path);
    gc_pool_run(pool, sum_route, s, s->made->routes);
    gc_pool_free(pool);
    if (gc_cancelled())
        return gc_fail_cancelled(error, m->path);
    return !s->infinite ? GPUCONV_OK
                        : gc_fail(error, GPUCONV_ERROR_FORMAT,
                                  "%s: its gains take a response beyond the range of floats", m->path);
}

/* Places the entries, which are sorted, and lists their routes: `first` and `place` of *s are filled, and *made is a
 * response with the routes and without taps. *cut: frames that the declared length leaves out. Returns as place_file.
 */
static gpuconv_status place_entries(matrix *m, placement *place, int64_t *first, gpuconv_ir **made, int64_t *cut,
                                    gpuconv_error *error) {
    int64_t lead = 0, last = 1;
    int routes = 0;
    for (int64_t i = 0; i < m->entries; i++) {
        const matrix_entry *e = &m->entry[i];
        gpuconv_status status = place_entry(m, e, &place[i], error);
        if (status)
            return status;
        lead = gc_max(lead, -place[i].at);
        last = gc_max(last, place[i].at + place[i].frames);
        *cut = gc_max(*cut, place[i].cut);
        if (i == 0 || e->input != e[-1].input || e->output != e[-1].output)
            first[routes++] = i;
    }
    first[routes] = m->entries;
    gpuconv_error inner;
    if (gc_ir_check_memory(routes, (double)(lead + last), 0, &inner))
        return gc_fail(error, GPUCONV_ERROR_MEMORY, "%s: %s", m->path, inner.message);
    *made = gc_ir_unfilled(m->inputs, m->outputs, routes, routes, lead + last, m->rate);
    if (!*made)
        return gc_fail_memory(error, m->path);
    (*made)->lead = lead;
    (*made)->routed = true;
    for (int r = 0; r < routes; r++)
        (*made)->route[r] = (gc_route){m->entry[first[r]].input, m->entry[first[r]].output, r};
    return GPUCONV_OK;
}

/* Sums the entries into a routed response. Returns as place_file. */
static gpuconv_status build(matrix *m, gpuconv_ir **ir, gpuconv_error *error) {
    if (m->entries == 0)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: contains no route", m->path);
    qsort(m->entry, (size_t)m->entries, sizeof *m->entry, matrix_compare);
    placement *place = gc_calloc(m->entries, sizeof *place);
    int64_t *first = gc_calloc(m->entries + 1, sizeof *first), cut = 0;
    summing s = {.matrix = m, .place = place, .first = first};
    gpuconv_status status =
        place && first ? place_entries(m, place, first, &s.made, &cut, error) : gc_fail_memory(error, m->path);
    if (!status)
        status = sum_routes(&s, error);
    free(place);
    free(first);
    if (status) {
        gpuconv_ir_free(s.made);
        return status;
    }
    char converted[64] = "", left_out[96] = "";
    if (m->resampled)
        gc_format(converted, sizeof converted, ", files of other rates resampled to %g Hz", m->rate);
    if (cut)
        (void)snprintf(left_out, sizeof left_out, ", up to %lld frames beyond the %lld declared left out",
                       (long long)cut, (long long)m->max_frames);
    return gc_ir_finish(s.made, ir, error, "%d inputs x %d outputs, %d routes%s%s%s%s", m->inputs, m->outputs,
                        s.made->routes, converted, left_out, *m->ignored ? "; ignored:" : "",
                        *m->ignored ? m->ignored + 1 : "");
}

/* Returns whether a configuration is one of BruteFIR: its first word is not a command of jconvolver, which begins with
 * a slash. */
static bool is_brutefir(const char *text, int64_t length) {
    bool comment = false;
    for (int64_t i = 0; i < length; i++) {
        comment = text[i] == '#' || (comment && !strchr("\r\n", text[i]));
        if (!comment && !strchr(" \t\r\n", text[i]))
            return isalpha((unsigned char)text[i]) || text[i] == '"';
    }
    return false;
}

/* Reads the entries of the file in any of its three formats. */
static gpuconv_status read_entries(matrix *m, gpuconv_error *error) {
    gc_lines lines;
    const char *text = NULL;
    const bool conf = gc_ending_find(m->path, "conf") == 0;
    int64_t length = 0;
    gpuconv_status status = gc_lines_open_regular(&lines, m->path, GC_TEXT_LONGEST, GC_TEXT_MOST, error);
    if (!status && conf)
        status = gc_lines_peek(&lines, GC_TEXT_LONGEST, &text, &length, error);
    if (!status)
        status = is_brutefir(text, length) ? matrix_read_brutefir(m, &lines, error)
                                           : matrix_read_text(m, &lines, conf, error);
    gc_lines_close(&lines);
    return status;
}

/* Reads the text of a matrix. `rate` is that of a response without files. The caller frees *made, also after a
 * failure. Returns FILE, FORMAT, MEMORY, CANCELLED. */
static gpuconv_status read_matrix(const char *path, double rate, double file_rate, matrix **made,
                                  gpuconv_error *error) {
    matrix *m = *made = gc_calloc(1, sizeof *m);
    const char *slash = strrchr(path, '/');
    if (m) {
        m->home = strndup(path, slash ? (size_t)(slash - path) + 1 : 0);
        m->folder = m->home ? strdup(m->home) : NULL;
    }
    gpuconv_status status = m && m->folder ? GPUCONV_OK : gc_fail_memory(error, path);
    if (!status) {
        m->path = path;
        m->rate_without_files = rate;
        m->file_rate = file_rate;
        status = read_entries(m, error);
    }
    return status;
}

static void free_matrix(matrix *m) {
    if (!m)
        return;
    matrix_free_files(m);
    free(m->home);
    free(m->folder);
    free(m->entry);
    free(m->copy);
    free(m);
}

gpuconv_status gpuconv_ir_load_matrix(const char *path, double rate, gpuconv_ir **ir, gpuconv_error *error) {
    if (!gc_begin(ir, path, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    if (!gc_is_rate(rate))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a response has a rate of 1 to %d Hz, not %g", GC_MAX_RATE, rate);
    return gc_matrix_load(path, rate, 0, ir, error);
}

gpuconv_status gc_matrix_load(const char *path, double rate, double file_rate, gpuconv_ir **ir, gpuconv_error *error) {
    matrix *m;
    gpuconv_status status = read_matrix(path, rate, file_rate, &m, error);
    if (!status)
        status = matrix_load_files(m, error);
    if (!status) {
        m->rate = m->rate > 0 ? m->rate : rate;
        status = build(m, ir, error);
    }
    free_matrix(m);
    return status;
}

/* ---- Files that a response is read from -------------------------------------------------------------------------- */

bool gc_is_matrix(const char *path) {
    return gc_ending_find(path, "conf|matrix|txt") >= 0 && !gc_is_text_of_taps(path);
}

void gc_ir_visit_files(const char *path, gc_file_visit *visit, void *context) {
    struct stat st;
    matrix *m;
    gpuconv_error ignored;
    visit(context, path);
    if (!gc_is_matrix(path) || stat(path, &st) != 0 || !S_ISREG(st.st_mode)) /* a pipe can be read only once */
        return;
    (void)read_matrix(path, 1, 1, &m, &ignored);
    for (int i = 0; m && i < m->files; i++)
        visit(context, m->file[i].path);
    free_matrix(m);
}

typedef struct comparison {
    const char *output;
    bool same;
} comparison;

static void compare(void *context, const char *path) {
    comparison *c = context;
    c->same = c->same || gc_is_same_file(c->output, path);
}

bool gc_ir_reads_file(const char *path, const char *output) {
    struct stat st;
    comparison c = {output, false};
    if (stat(output, &st) == 0 && S_ISREG(st.st_mode))
        gc_ir_visit_files(path, compare, &c);
    return c.same;
}

gpuconv_status gc_ir_keep_files(const char *output, const char *const *kept, int count, gpuconv_error *error) {
    for (int i = 0; i < count; i++)
        if (kept[i] && (strcmp(kept[i], output) == 0 || gc_ir_reads_file(kept[i], output)))
            return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                           "%s: would replace a file of the same job; give it another name", output);
    return GPUCONV_OK;
}
