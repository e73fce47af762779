/* Finds out which kind of list a file is and reads it, or creates a manifest from patterns. A table of cells
 * (core/table.h) has our own columns, or is a metadata.csv with a column file_name and others that are kept. */
#include "list.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/table.h"
#include "libtools/batch/entry/entry.h"
#include "libtools/batch/entry/text.h"
#include "libtools/batch/output/shards.h"

#include <csv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Tables ---- */

enum { FIELDS_MAX = 256, COLUMN_FILE = -1, COLUMN_KEPT = -2 };

typedef struct table_rows {
    gc_builder *b;
    const char *name;
    gc_table table;
    int column[FIELDS_MAX]; /* of each field: one of entry.h, or COLUMN_... */
    int columns;
    bool metadata;
    gc_entry_texts row;
} table_rows;

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
static bool take_field(table_rows *t, int field) {
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
static gpuconv_status take_row(table_rows *t, gpuconv_error *error) {
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
static gpuconv_status find_column(table_rows *t, int field, bool named[GC_COLUMNS], gpuconv_error *error) {
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
static gpuconv_status find_columns(table_rows *t, gpuconv_error *error) {
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

/* Parse lines into entries. Fail as gc_lines_next and gc_builder_add do, with FILE (segments) or FORMAT (columns). */
static gpuconv_status parse_table(gc_lines *lines, gc_builder *b, gpuconv_error *error) {
    static const gc_table_form form = {.kind = GC_TABLE_CELLS, .most = FIELDS_MAX, .quotes = true};
    const char *name = lines->name;
    table_rows *t = gc_calloc(1, sizeof *t);
    if (!t)
        return gc_fail_memory(error, name);
    t->b = b;
    t->name = name;
    gpuconv_status status = gc_table_open(&t->table, &form, lines, error);
    if (is_tsv(name))
        t->table.separator = '\t';
    while (gc_table_next(&t->table, &status, error))
        status = t->columns ? take_row(t, error) : find_columns(t, error);
    if (!status && t->columns == 0)
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: the manifest has no entries", name);
    gc_table_close(&t->table);
    free(t);
    return status;
}

/* ---- Lists ---- */

static gpuconv_status list_find(const char *path, char **list, char **segments, gpuconv_error *error) {
    static const char *const names[] = {"metadata.csv", "metadata.jsonl", "wav.scp"};
    struct stat st;
    *segments = NULL;
    *list = NULL;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
        *list = strdup(path);
        return *list ? GPUCONV_OK : gc_fail_memory(error, path);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names && !*list; i++) {
        *list = gc_text_of("%s/%s", path, names[i]);
        if (!*list)
            return gc_fail_memory(error, path);
        if (access(*list, F_OK) == 0)
            break;
        free(*list);
        *list = NULL;
    }
    if (!*list)
        return gc_fail(error, GPUCONV_ERROR_FILE,
                       "%s: is a folder without metadata.csv, metadata.jsonl or wav.scp; name a list, or use --inputs "
                       "'%s/**/*.flac'",
                       path, path);
    *segments = gc_text_of("%s/%s", path, "segments");
    if (!*segments || access(*segments, F_OK) != 0) {
        free(*segments);
        *segments = NULL;
    }
    return GPUCONV_OK;
}

/* Decides whether a name ends in an extension, with or without .gz behind it. */
static bool has_extension(const char *name, const char *extension) {
    size_t n = strlen(name), e = strlen(extension);
    if (n > 3 && strcmp(name + n - 3, ".gz") == 0)
        n -= 3;
    return n >= e && strncmp(name + n - e, extension, e) == 0;
}

/* Parses lines, whose name tells the kind, into entries. Fails as gc_lines_next and gc_builder_add do, with FILE
 * (segments) or FORMAT (columns). */
static gpuconv_status list_parse(gc_lines *lines, gc_builder *b, gpuconv_error *error) {
    const char *name = lines->name;
    if (has_extension(name, ".jsonl") || has_extension(name, ".ndjson") || has_extension(name, ".json"))
        return gc_list_parse_jsonl(lines, b, error);
    if (has_extension(name, ".scp"))
        return gc_list_parse_kaldi(lines, b, error);
    return parse_table(lines, b, error);
}

/* ---- Manifests ---- */

static bool has_response(const gc_manifest *m) {
    bool has = false;
    for (int64_t i = 0; i < m->entries && !has; i++)
        has = m->entry[i].response && *m->entry[i].response;
    return has;
}

gpuconv_status gc_manifest_read(const char *path, const gc_manifest_options *options, gc_manifest *m,
                                gpuconv_error *error) {
    gc_manifest_options found = options ? *options : (gc_manifest_options){.pick = GC_PICK_RANDOM};
    char *list = NULL, *segments = NULL;
    gc_text_file *file = NULL;
    gc_builder b;
    *m = (gc_manifest){0};
    gpuconv_status status = list_find(path, &list, &segments, error);
    if (!status)
        status = gc_text_file_open(list, &file, error);
    if (!status) {
        if (!found.segments)
            found.segments = segments;
        status = gc_builder_begin(&b, &found, m, error);
        if (!status)
            status = list_parse(gc_text_file_lines(file), &b, error);
        if (!status && (!gc_manifest_add_list(m, list) || (found.segments && !gc_manifest_add_list(m, found.segments))))
            status = gc_fail_memory(error, list);
        status = gc_builder_end(&b, list, status, error);
    }
    if (!status && m->kind != GC_LIST_TABLE && !found.responses && !found.rooms && !has_response(m)) {
        status = gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s: names no responses; add --irs or --rooms", path);
        gc_manifest_free(m);
    }
    gc_text_file_close(file);
    free(list);
    free(segments);
    return status;
}

/* Adds the entries of an input. The output keeps the folders that the pattern matched. `refusal`: why it cannot be
 * read; NULL: it can. */
static gpuconv_status add_input(gc_builder *b, const gc_match *input, const char *refusal, gpuconv_error *error) {
    gc_entry_texts row = {.stem = NULL};
    const char *name;
    int length;
    gc_path_stem(input->path, &name, &length);
    int folders = input->kept < name ? (int)(name - input->kept) : 0;
    row.stem = gc_text_of("%.*s%.*s", folders, input->kept, length, name);
    const bool good = row.stem && gc_texts_set(&row, GC_COLUMN_INPUT, input->path) &&
                      (!refusal || gc_texts_refuse(&row, refusal, NULL));
    gpuconv_status status = good ? gc_builder_add(b, &row, 0, error) : gc_fail_memory(error, "the manifest");
    gc_texts_clear(&row);
    return status;
}

/* Returns the bytes of the folders that all paths have in common. 0: a path is a pattern, or there is only one. */
static size_t common_folders(const char *const *paths) {
    size_t common = 0;
    for (size_t i = 0; paths[i]; i++) {
        size_t same = 0;
        if (gc_is_pattern(paths[i]))
            return 0;
        while (i > 0 && same < common && paths[i][same] == paths[0][same])
            same++;
        common = i > 0 ? same : strlen(paths[0]);
    }
    while (common > 0 && paths[0][common - 1] != '/')
        common--;
    return paths[0] && paths[1] ? common : 0;
}

/* A shard whose members are added. */
typedef struct shard {
    gc_builder *b;
    const char *path;
    gpuconv_error error;
} shard;

/* Adds the entries of an audio file in a shard; the output has the member's name. @return false: s->error */
static bool add_member(void *context, const char *member) {
    shard *s = context;
    if (!gc_shard_is_audio(member))
        return true;
    gc_match input = {.path = gc_text_of("%s/%s", s->path, member)};
    if (!input.path)
        return gc_fail_memory(&s->error, s->path) == GPUCONV_OK;
    input.kept = input.path + strlen(s->path) + 1;
    const bool good = add_input(s->b, &input, NULL, &s->error) == GPUCONV_OK;
    free(input.path);
    return good;
}

/* Adds the entries of a shard's members. If it cannot be read, or not to its end, an entry that fails stands for what
 * is lost. */
static gpuconv_status add_shard(gc_builder *b, const gc_match *match, gpuconv_error *error) {
    shard s = {b, match->path, {GPUCONV_OK, ""}};
    gpuconv_error why = {0};
    char text[600];
    gpuconv_status status = gc_shard_list(match->path, add_member, &s, &why);
    if (s.error.status || (status != GPUCONV_ERROR_FORMAT && status != GPUCONV_ERROR_FILE)) {
        *error = s.error.status ? s.error : why;
        return error->status;
    }
    (void)snprintf(text, sizeof text, "the rest of the shard is lost: %s", why.message);
    return add_input(b, match, text, error);
}

/* Adds the entries of a file that a pattern matched. */
static gpuconv_status add_match(gc_builder *b, const gc_match *match, gpuconv_error *error) {
    const size_t length = strlen(match->path);
    struct stat st;
    if (length > 4 && strcmp(match->path + length - 4, ".tar") == 0 && stat(match->path, &st) == 0 &&
        S_ISREG(st.st_mode))
        return add_shard(b, match, error);
    return add_input(b, match, NULL, error);
}

gpuconv_status gc_manifest_pick(const char *const *inputs, const gc_manifest_options *options, gc_manifest *m,
                                gpuconv_error *error) {
    const char *first = *inputs;
    const size_t common = common_folders(inputs); /* a pattern that the shell has expanded keeps its folders */
    gc_builder b;
    gpuconv_status status = gc_builder_begin(&b, options, m, error);
    for (; *inputs && !status; inputs++) {
        gc_matches x = {0};
        status = gc_match_files(*inputs, &x, error);
        for (int64_t i = 0; i < x.count && !status; i++)
            status =
                add_match(&b, &(gc_match){x.match[i].path, common ? x.match[i].path + common : x.match[i].kept}, error);
        gc_matches_free(&x);
    }
    return gc_builder_end(&b, first, status, error);
}
