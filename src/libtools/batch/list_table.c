/* Parses CSV and TSV with libcsv: our own columns, or metadata.csv with a column file_name and others that are kept.
 * The parser is fed one line of the file at a time, so that each row knows the line on which it begins. */
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "list.h"
#include "place.h"

#include <csv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIELDS_MAX = 256,
    COLUMN_FILE = -1,
    COLUMN_KEPT = -2,
    GROWTH = 65536 /* bytes by which libcsv enlarges its field: with its 128, a long field is copied 100 000 times */
};

typedef struct table {
    gc_builder *b;
    const char *name;
    unsigned char delimiter;
    int column[FIELDS_MAX]; /* of each field: one of column.h, or COLUMN_... */
    int columns;            /* 0: the header has not been read */
    char *header[FIELDS_MAX];
    bool metadata;
    int fields; /* of the row so far */
    gc_row row;
    int64_t line; /* on which the row begins */
    bool row_ended, memory;
    gpuconv_status status;
    gpuconv_error *error;
} table;

static int is_never_space(unsigned char c) {
    (void)c;
    return 0;
}

/* Appends a field to the row's other fields, as CSV. @return false: out of memory */
static bool keep(char **origin, const char *text, size_t length) {
    size_t before = *origin ? strlen(*origin) : 0, room = before + 2 * length + 8;
    char *longer = realloc(*origin, room);
    if (!longer)
        return false;
    *origin = longer;
    if (before > 0)
        longer[before++] = ',';
    size_t n = csv_write(longer + before, room - before - 1, text, length);
    longer[before + n] = '\0';
    return true;
}

/* Sets the input of a row of metadata: the file beside the list, whose name also names the output. */
static bool set_file(table *t, const char *file) {
    char *path = gc_path_beside(t->name, file);
    const char *dot = strrchr(file, '.'), *slash = strrchr(file, '/');
    size_t stem = dot && (!slash || dot > slash + 1) ? (size_t)(dot - file) : strlen(file);
    free(t->row.stem); /* the header may name the column twice */
    t->row.stem = strndup(file, stem);
    bool good =
        path && t->row.stem && gc_row_set(&t->row, GC_COLUMN_INPUT, path) && gc_row_set(&t->row, GC_COLUMN_ID, file);
    free(path);
    return good;
}

/* Stores a field of the header. */
static void add_name(table *t, const char *text) {
    if (t->fields == 0 && strncmp(text, "\xef\xbb\xbf", 3) == 0)
        text += 3; /* the byte order mark that some spreadsheets write */
    if (t->fields >= FIELDS_MAX) {
        t->status = gc_fail(t->error, GPUCONV_ERROR_FORMAT, "%s: has more than %d columns", t->name, (int)FIELDS_MAX);
        return;
    }
    t->header[t->fields] = strdup(text);
    t->memory |= !t->header[t->fields];
    t->metadata |= strcmp(text, "file_name") == 0;
}

static void end_field(void *bytes, size_t length, void *context) {
    table *t = context;
    const char *text = bytes ? bytes : "";
    if (t->status || t->memory)
        return;
    if (t->columns == 0) {
        add_name(t, text);
    } else if (t->fields >= t->columns) {
        t->memory |= !gc_row_refuse(&t->row, "more fields than columns", NULL);
    } else {
        int c = t->column[t->fields];
        if (c == COLUMN_KEPT)
            t->memory |= !keep(&t->row.origin, text, length);
        else if (c == COLUMN_FILE)
            t->memory |= *text && !set_file(t, text);
        else if (*text)
            t->memory |= !gc_row_set(&t->row, c, text);
    }
    t->fields++;
}

/* Finds the columns that the header names. */
static void find_columns(table *t) {
    bool named[GC_COLUMNS] = {false};
    t->columns = t->fields;
    t->b->manifest->kind = t->metadata ? GC_LIST_METADATA_CSV : GC_LIST_TABLE;
    for (int i = 0; i < t->columns && !t->status; i++) {
        int c = gc_column_find(t->header[i]);
        t->column[i] = t->metadata ? (strcmp(t->header[i], "file_name") == 0 ? COLUMN_FILE : COLUMN_KEPT) : c;
        if (t->metadata && t->column[i] == COLUMN_KEPT)
            t->memory |= !keep(&t->b->manifest->header, t->header[i], strlen(t->header[i]));
        if (t->metadata)
            continue;
        if (c < 0 || named[c])
            t->status = gc_fail(t->error, GPUCONV_ERROR_FORMAT,
                                "%s: '%s' is not a column, or is named twice; the columns are input, response, output, "
                                "gain, wet, dry, offset, length, seed and those that the manual lists",
                                t->name, t->header[i]);
        else
            named[c] = true;
    }
    const gc_row *d = t->b->options.defaults;
    bool response = named[GC_COLUMN_RESPONSE] || named[GC_COLUMN_RESPONSES] || t->b->responses.count > 0 ||
                    t->metadata || (d && (d->text[GC_COLUMN_RESPONSE] || d->text[GC_COLUMN_RESPONSES]));
    if (!t->status && !t->metadata && !(named[GC_COLUMN_INPUT] || named[GC_COLUMN_INPUTS]))
        response = false;
    if (!t->status && !response)
        t->status = gc_fail(t->error, GPUCONV_ERROR_FORMAT,
                            "%s: the first line must name the columns input and response", t->name);
}

static void end_row(int terminator, void *context) {
    table *t = context;
    (void)terminator;
    t->row_ended = true;
    if (t->status || t->memory)
        return;
    if (t->columns == 0)
        find_columns(t);
    else
        t->status = gc_builder_add(t->b, &t->row, t->line, t->error);
    t->fields = 0;
}

/* Chooses the character between fields: tab for .tsv, or if the first line has tabs and no commas. */
static unsigned char delimiter_of(const char *name, const char *first) {
    size_t n = strlen(name);
    bool tsv = (n > 4 && strcmp(name + n - 4, ".tsv") == 0) || (n > 7 && strcmp(name + n - 7, ".tsv.gz") == 0);
    return tsv || (strchr(first, '\t') && !strchr(first, ',')) ? CSV_TAB : CSV_COMMA;
}

/* Feeds the lines to libcsv. A field in quotes may have several. */
static gpuconv_status feed(table *t, struct csv_parser *parser, gc_lines *lines) {
    char *line;
    int64_t row_bytes = 0;
    gpuconv_status status;
    t->row_ended = true;
    while (!(status = gc_lines_next(lines, &line, t->error)) && line) {
        const size_t length = strlen(line);
        if (lines->number == 1)
            csv_set_delim(parser, delimiter_of(t->name, line));
        if (t->row_ended) {
            t->line = lines->number;
            row_bytes = 0;
        }
        row_bytes += (int64_t)length + 1;
        if (row_bytes > lines->longest)
            return gc_fail(t->error, GPUCONV_ERROR_FORMAT,
                           "%s, line %lld: a row longer than %lld bytes; is a quote open?", t->name, (long long)t->line,
                           (long long)lines->longest);
        t->row_ended = *line == '\0' || *line == '\r';
        if (csv_parse(parser, line, length, end_field, end_row, t) != length ||
            (*lines->ending && csv_parse(parser, "\n", 1, end_field, end_row, t) != 1) || t->memory)
            return gc_fail_memory(t->error, t->name);
        if (t->status)
            return t->status;
    }
    return status;
}

/* Ends the last row. */
static gpuconv_status finish(table *t, struct csv_parser *parser) {
    if (csv_fini(parser, end_field, end_row, t) == 0)
        return t->memory ? gc_fail_memory(t->error, t->name) : t->status;
    if (t->columns == 0)
        return gc_fail(t->error, GPUCONV_ERROR_FORMAT, "%s: a quote in the first line is not closed", t->name);
    if (!gc_row_refuse(&t->row, "a quote is not closed", NULL))
        return gc_fail_memory(t->error, t->name);
    return gc_builder_add(t->b, &t->row, t->line, t->error);
}

gpuconv_status gc_list_parse_table(gc_lines *lines, gc_builder *b, gpuconv_error *error) {
    struct csv_parser parser;
    const char *name = lines->name;
    table *t = gc_calloc(1, sizeof *t);
    if (!t || csv_init(&parser, CSV_APPEND_NULL | CSV_STRICT_FINI) != 0) {
        free(t);
        return gc_fail_memory(error, name);
    }
    t->b = b;
    t->name = name;
    t->error = error;
    csv_set_space_func(&parser, is_never_space);
    csv_set_blk_size(&parser, GROWTH);
    gpuconv_status status = feed(t, &parser, lines);
    if (!status)
        status = finish(t, &parser);
    csv_free(&parser);
    gc_row_clear(&t->row);
    for (int i = 0; i < FIELDS_MAX; i++)
        free(t->header[i]);
    if (!status && t->columns == 0)
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: the manifest has no entries", name);
    free(t);
    return status;
}
