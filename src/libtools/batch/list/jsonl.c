/* Parses JSON Lines: our own columns, lhotse's manifests, metadata.jsonl, and the results of an earlier batch. */
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/map.h"
#include "libgpuconv/core/number.h"
#include "libtools/batch/entry/text.h"
#include "list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_path(int column) {
    return column <= GC_COLUMN_OUTPUT || column == GC_COLUMN_NOISE || column == GC_COLUMN_NOISE_RESPONSE ||
           column == GC_COLUMN_EARLY;
}

/* Returns a scalar as text, in `room` if it is a number. NULL: it is neither a string nor a number. */
static const char *scalar_text(const json_t *value, char room[GC_NUMBER_TEXT]) {
    if (json_is_string(value))
        return json_string_value(value);
    if (json_is_boolean(value))
        return json_is_true(value) ? "1" : "0";
    if (json_is_integer(value))
        (void)snprintf(room, GC_NUMBER_TEXT, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        (void)gc_format(room, GC_NUMBER_TEXT, "%.17g", json_real_value(value));
    return json_is_number(value) ? room : NULL;
}

/* Sets a column. @return false: out of memory */
static bool set_field(gc_entry_texts *row, const char *name, const json_t *value) {
    char number[GC_NUMBER_TEXT];
    size_t index;
    const json_t *element;
    int c = gc_column_find(name);
    if (c < 0)
        return gc_texts_refuse(row, "unknown field:", name);
    if (json_is_null(value))
        return true;
    if (json_is_array(value) && !is_path(c)) {
        bool good = true;
        json_array_foreach(value, index, element) {
            const char *text = scalar_text(element, number);
            good = good && (text ? gc_texts_append(row, c, text)
                                 : gc_texts_refuse(row, "not a list of texts or numbers:", name));
        }
        return good;
    }
    const char *text = scalar_text(value, number);
    if (!text || (is_path(c) && !json_is_string(value)))
        return gc_texts_refuse(row, "neither a string nor a number:", name);
    return gc_texts_set(row, c, text);
}

/* Sets a column of a line of results.jsonl, or its exact bytes. @return false: out of memory */
static bool set_result(gc_entry_texts *row, const char *name, const json_t *value) {
    static const char suffix[] = "_bytes";
    size_t length = strlen(name), end = sizeof suffix - 1;
    const char *text = json_string_value(value);
    if (!text || length <= end || strcmp(name + length - end, suffix) != 0)
        return set_field(row, name, value);
    char *column = strndup(name, length - end), *bytes = gc_text_unhex(text);
    int c = column ? gc_column_find(column) : -1;
    bool good = column && bytes && (c < 0 || gc_texts_set(row, c, bytes));
    free(column);
    free(bytes);
    return good;
}

/* Fills in a row from a "done" line of results.jsonl; its columns have the values that were drawn. */
static bool fill_result(gc_entry_texts *row, const json_t *object) {
    static const char *const names[] = {"input", "response", "output", "input_bytes", "response_bytes", "output_bytes"};
    const char *name;
    json_t *value;
    bool good = true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((value = json_object_get(object, names[i])))
            good = good && set_result(row, names[i], value);
    json_object_foreach(json_object_get(object, "columns"), name, value) good = good && set_result(row, name, value);
    return good;
}

/* Fills in a row of metadata.jsonl, whose other fields are kept. */
static bool fill_metadata(gc_entry_texts *row, const char *list, json_t *object) {
    const char *file = json_string_value(json_object_get(object, "file_name"));
    if (!file || !*file)
        return gc_texts_refuse(row, "file_name must be a text", NULL);
    const bool good = gc_texts_set_file(row, list, file);
    (void)json_object_del(object, "file_name");
    row->origin = json_dumps(object, JSON_COMPACT | JSON_PRESERVE_ORDER);
    return good && row->origin;
}

/* Fills in a row from one line. *skipped: the line is no entry. @return false: out of memory */
static bool fill(gc_entry_texts *row, const char *list, const char *line, gc_list_kind *kind, bool *results,
                 bool *skipped) {
    json_error_t why;
    json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, &why), *value;
    const char *name, *status = json_string_value(json_object_get(object, "status"));
    bool good = true;
    *skipped = false;
    if (!json_is_object(object)) {
        good = gc_texts_refuse(row, "not a JSON object:", object ? "another JSON value" : why.text);
    } else if (gc_lhotse_is(object)) {
        good = gc_lhotse_fill(row, object, kind);
    } else if (json_object_get(object, "file_name")) {
        *kind = GC_LIST_METADATA_JSONL;
        good = fill_metadata(row, list, object);
    } else if (status && json_object_get(object, "seconds")) {
        *results = true;
        *skipped = strcmp(status, "done") != 0;
        good = *skipped || fill_result(row, object);
    } else {
        json_object_foreach(object, name, value) good = good && set_field(row, name, value);
    }
    json_decref(object);
    return good;
}

/* Keeps only the last of several results of one output. @return false: out of memory */
static bool keep_last(gc_manifest *m) {
    gc_map later = {0};
    int64_t kept = 0;
    bool good = true;
    for (int64_t i = m->entries - 1; i >= 0 && good; i--) {
        gc_entry *e = &m->entry[i];
        void **known = e->output ? gc_map_put(&later, e->output, strlen(e->output)) : NULL;
        good = !e->output || known;
        if (known && *known) {
            gc_entry_clear(e);
            e->line = 0;
        } else if (known) {
            *known = e;
        }
    }
    gc_map_free(&later);
    for (int64_t i = 0; i < m->entries; i++)
        if (m->entry[i].line > 0)
            m->entry[kept++] = m->entry[i];
    m->entries = kept;
    return good;
}

gpuconv_status gc_list_parse_jsonl(gc_lines *lines, gc_builder *b, gpuconv_error *error) {
    char *line;
    bool results = false, skipped;
    gpuconv_status status;
    while (!(status = gc_lines_next(lines, &line, error)) && line) {
        gc_entry_texts row = {.stem = NULL};
        if (!line[strspn(line, " \t\r")])
            continue;
        if (!fill(&row, lines->name, line, &b->manifest->kind, &results, &skipped))
            status = gc_fail_memory(error, lines->name);
        else if (!skipped)
            status = gc_builder_add(b, &row, lines->number, error);
        gc_texts_clear(&row);
        if (status)
            return status;
    }
    if (!status && results && !keep_last(b->manifest))
        status = gc_fail_memory(error, lines->name);
    return status;
}
