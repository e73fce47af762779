/* Reads tables of cells (core/table.h): our own columns, or metadata.csv with a column file_name and others that are
 * kept. */
#include "libgpuconv/core/table.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "list.h"

#include <csv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS_MAX = 256, COLUMN_FILE = -1, COLUMN_KEPT = -2 };

typedef struct list {
    gc_builder *b;
    const char *name;
    gc_table table;
    int column[FIELDS_MAX]; /* of each field: one of column.h, or COLUMN_... */
    int columns;
    bool metadata;
    gc_entry_texts row;
} list;

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

/* Decides whether a column has numbers. */
static bool has_numbers(int column) {
    static const int names[] = {GC_COLUMN_INPUT,         GC_COLUMN_INPUTS,    GC_COLUMN_RESPONSE, GC_COLUMN_RESPONSES,
                                GC_COLUMN_OUTPUT,        GC_COLUMN_NOISE,     GC_COLUMN_EARLY,    GC_COLUMN_ID,
                                GC_COLUMN_SERIES,        GC_COLUMN_IR_LAYOUT, GC_COLUMN_FORMAT,   GC_COLUMN_ENCODING,
                                GC_COLUMN_NOISE_RESPONSE};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i] == column)
            return false;
    return true;
}

/* Stores a field. @return false: out of memory */
static bool take_field(list *t, int field) {
    char *text = t->table.field[field];
    const int c = t->column[field];
    if (c == COLUMN_KEPT)
        return keep(&t->row.origin, text, strlen(text));
    if (!*text)
        return true;
    if (c == COLUMN_FILE)
        return gc_texts_set_file(&t->row, t->name, text);
    if (t->table.separator != ',' && has_numbers(c) && !strchr(text, '.'))
        for (char *comma = text; (comma = strchr(comma, ',')); comma++)
            *comma = '.'; /* a decimal comma */
    return gc_texts_set(&t->row, c, text);
}

/* Adds the entry of a row. */
static gpuconv_status take_row(list *t, gpuconv_error *error) {
    bool good = true;
    for (int i = 0; i < t->table.fields && i < t->columns && good; i++)
        good = take_field(t, i);
    if (t->table.wrong)
        good = good && gc_texts_refuse(&t->row, t->table.wrong, NULL);
    else if (t->table.fields > t->columns)
        good = good && gc_texts_refuse(&t->row, "more fields than columns", NULL);
    gpuconv_status status = good ? gc_builder_add(t->b, &t->row, t->table.line, error) : gc_fail_memory(error, t->name);
    gc_texts_clear(&t->row);
    return status;
}

/* Finds a column of a table that is no metadata. named[c]: a field before has it. */
static gpuconv_status find_column(list *t, int field, bool named[GC_COLUMNS], gpuconv_error *error) {
    const int c = t->column[field] = gc_column_find(t->table.field[field]);
    if (c < 0 || named[c])
        return gc_fail(
            error, GPUCONV_ERROR_FORMAT,
            "%s: '%s' is not a column, or is named twice; the columns are input, response, output, gain, wet, "
            "dry, offset, length, seed and those that the manual lists",
            t->name, t->table.field[field]);
    named[c] = true;
    return GPUCONV_OK;
}

/* Finds the columns that the header names. */
static gpuconv_status find_columns(list *t, gpuconv_error *error) {
    bool named[GC_COLUMNS] = {false};
    gpuconv_status status = GPUCONV_OK;
    if (t->table.wrong)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: the first line: %s", t->name, t->table.wrong);
    t->columns = t->table.fields;
    for (int i = 0; i < t->columns; i++)
        t->metadata |= strcmp(t->table.field[i], "file_name") == 0;
    t->b->manifest->kind = t->metadata ? GC_LIST_METADATA_CSV : GC_LIST_TABLE;
    for (int i = 0; i < t->columns && !status; i++) {
        const char *name = t->table.field[i];
        if (!t->metadata) {
            status = find_column(t, i, named, error);
            continue;
        }
        t->column[i] = strcmp(name, "file_name") == 0 ? COLUMN_FILE : COLUMN_KEPT;
        if (t->column[i] == COLUMN_KEPT && !keep(&t->b->manifest->header, name, strlen(name)))
            status = gc_fail_memory(error, t->name);
    }
    const gc_entry_texts *d = t->b->options.defaults;
    const bool input = t->metadata || named[GC_COLUMN_INPUT] || named[GC_COLUMN_INPUTS];
    const bool response = named[GC_COLUMN_RESPONSE] || named[GC_COLUMN_RESPONSES] || t->b->responses.count > 0 ||
                          t->metadata || (d && (d->text[GC_COLUMN_RESPONSE] || d->text[GC_COLUMN_RESPONSES]));
    if (!status && !(input && response))
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: the first line must name the columns input and response",
                         t->name);
    return status;
}

/* Decides whether a file is TSV by its name. */
static bool is_tsv(const char *name) {
    const size_t n = strlen(name);
    return (n > 4 && strcmp(name + n - 4, ".tsv") == 0) || (n > 7 && strcmp(name + n - 7, ".tsv.gz") == 0);
}

gpuconv_status gc_list_parse_table(gc_lines *lines, gc_builder *b, gpuconv_error *error) {
    static const gc_table_form form = {.kind = GC_TABLE_CELLS, .most = FIELDS_MAX, .quotes = true};
    const char *name = lines->name;
    list *t = gc_calloc(1, sizeof *t);
    if (!t)
        return gc_fail_memory(error, name);
    t->b = b;
    t->name = name;
    gpuconv_status status = gc_table_open(&t->table, &form, lines, error);
    if (is_tsv(name))
        t->table.separator = '\t';
    for (bool more = true; more && !status;) {
        status = gc_table_next(&t->table, &more, error);
        if (!status && more)
            status = t->columns ? take_row(t, error) : find_columns(t, error);
    }
    if (!status && t->columns == 0)
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: the manifest has no entries", name);
    gc_table_close(&t->table);
    free(t);
    return status;
}
