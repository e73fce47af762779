/* Parses Kaldi's wav.scp, with or without segments. */
#include "kaldi.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "list.h"
#include "text_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A recording of a wav.scp; `id` is owned, and `path` stands in the same memory. */
typedef struct recording {
    char *id;
    const char *path;
} recording;

/* The recordings of a wav.scp that has segments. */
typedef struct recordings {
    recording *list;
    int64_t count, capacity;
} recordings;

static bool add_recording(recordings *r, const char *id, const char *path) {
    const size_t length = strlen(id) + 1, room = length + strlen(path) + 1;
    if (r->count == r->capacity) {
        recording *larger = realloc(r->list, (size_t)(r->capacity = gc_max(64, 2 * r->capacity)) * sizeof *larger);
        if (!larger)
            return false;
        r->list = larger;
    }
    char *copy = malloc(room);
    if (copy) {
        memcpy(copy, id, length);
        memcpy(copy + length, path, room - length);
        r->list[r->count++] = (recording){copy, copy + length};
    }
    return copy != NULL;
}

static int compare(const void *a, const void *b) {
    return strcmp(((const recording *)a)->id, ((const recording *)b)->id);
}

/* Fills in a row for an utterance. @return false: out of memory */
static bool fill(gc_row *row, const char *id, const char *path) {
    const char *why = gc_kaldi_refusal(path);
    if (why)
        return gc_row_set(row, GC_COLUMN_ID, id) && gc_row_refuse(row, why, path);
    row->stem = strdup(id);
    return row->stem && gc_row_set(row, GC_COLUMN_ID, id) && gc_row_set(row, GC_COLUMN_INPUT, path);
}

/* Sets the part of the recording from the texts of its begin and end in seconds. @return false: out of memory */
static bool fill_part(gc_row *row, const char *begin, const char *end) {
    double from, to;
    char length[GC_NUMBER_TEXT];
    if (!begin || !end || !gc_number_parse(begin, &from) || !gc_number_parse(end, &to) || from < 0)
        return gc_row_refuse(row, "a segment needs ID RECORDING BEGIN END, in seconds, not", begin ? begin : "");
    if (to == -1)
        return gc_row_set(row, GC_COLUMN_OFFSET, begin);
    if (!(to > from))
        return gc_row_refuse(row, "a segment must end after it begins, not at", end);
    (void)gc_format(length, sizeof length, "%.9g", to - from);
    return gc_row_set(row, GC_COLUMN_OFFSET, begin) && gc_row_set(row, GC_COLUMN_LENGTH, length);
}

/* Fills in a row from a line of segments. @return false: out of memory */
static bool fill_segment(gc_row *row, char *id, char *rest, const recordings *r) {
    char *key = strtok_r(rest, GC_KALDI_BLANKS, &rest), *begin = strtok_r(rest, GC_KALDI_BLANKS, &rest),
         *end = strtok_r(rest, GC_KALDI_BLANKS, &rest);
    static char none[] = "";
    const recording wanted = {key ? key : none, NULL};
    const recording *found = r->count ? bsearch(&wanted, r->list, (size_t)r->count, sizeof wanted, compare) : NULL;
    return found ? fill(row, id, found->path) && fill_part(row, begin, end)
                 : gc_row_refuse(row, "the segment names a recording that wav.scp does not have:", wanted.id);
}

/* Adds a row for each segment. */
static gpuconv_status add_segments(gc_builder *b, recordings *r, gpuconv_error *error) {
    gc_text_file *file;
    char *line;
    gpuconv_status status = gc_text_file_open(b->options.segments, &file, error);
    if (r->count > 0)
        qsort(r->list, (size_t)r->count, sizeof *r->list, compare);
    while (!status && !(status = gc_lines_next(gc_text_file_lines(file), &line, error)) && line) {
        gc_row row = {.stem = NULL};
        char *rest = line, *id = strtok_r(rest, GC_KALDI_BLANKS, &rest);
        if (!id)
            continue;
        status = fill_segment(&row, id, rest, r) ? gc_builder_add(b, &row, gc_text_file_lines(file)->number, error)
                                                 : gc_fail_memory(error, b->options.segments);
        gc_row_clear(&row);
    }
    gc_text_file_close(file);
    return status;
}

/* Adds the file of a line, as a recording if there are segments. */
static gpuconv_status add_line(gc_builder *b, recordings *r, gc_lines *lines, char *line, gpuconv_error *error) {
    gc_row row = {.stem = NULL};
    char *id, *path;
    const bool split = gc_kaldi_split(line, &id, &path);
    bool good;
    gpuconv_status status = GPUCONV_OK;
    if (split && b->options.segments) {
        good = add_recording(r, id, path);
    } else {
        good = split ? fill(&row, id, path) : gc_row_refuse(&row, "a line needs an identifier and a file, not", line);
        if (good)
            status = gc_builder_add(b, &row, lines->number, error);
    }
    gc_row_clear(&row);
    return good ? status : gc_fail_memory(error, lines->name);
}

gpuconv_status gc_list_parse_kaldi(gc_lines *lines, gc_builder *b, gpuconv_error *error) {
    recordings r = {NULL, 0, 0};
    char *line;
    gpuconv_status status = GPUCONV_OK;
    b->manifest->kind = GC_LIST_KALDI;
    while (!status && !(status = gc_lines_next(lines, &line, error)) && line)
        if (line[strspn(line, GC_KALDI_BLANKS)])
            status = add_line(b, &r, lines, line, error);
    if (!status && b->options.segments)
        status = add_segments(b, &r, error);
    for (int64_t i = 0; i < r.count; i++)
        free(r.list[i].id);
    free(r.list);
    return status;
}
