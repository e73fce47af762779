/* Parses Kaldi's wav.scp, with or without segments, and its lists of responses and noises. */
#include "kaldi.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "list.h"
#include "text_file.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char blanks[] = " \t\r";

bool gc_kaldi_split(char *line, char **id, char **rest) {
    line += strspn(line, blanks);
    size_t length = strcspn(line, blanks), behind = strspn(line + length, blanks);
    *id = line;
    *rest = line + length + behind;
    for (size_t n = strlen(*rest); n > 0 && strchr(blanks, (*rest)[n - 1]); n--)
        (*rest)[n - 1] = '\0';
    if (length == 0 || behind == 0 || !**rest)
        return false;
    line[length] = '\0';
    return true;
}

const char *gc_kaldi_refusal(const char *path) {
    size_t n = strlen(path);
    const char *colon = strrchr(path, ':');
    if (n > 0 && (path[n - 1] == '|' || *path == '|'))
        return "is a command, and gpuconv runs no commands; run it once and list the file that it writes:";
    if (colon && colon - path > 4 && strncmp(colon - 4, ".ark", 4) == 0 && isdigit((unsigned char)colon[1]))
        return "is a place in an archive; list audio files:";
    return NULL;
}

char *gc_kaldi_path(char *line, double *weight, const char **why) {
    char *word = NULL, *path = NULL, *rest = line;
    *weight = 1;
    *why = NULL;
    if (line[strspn(line, blanks)] != '-') {
        if (!gc_kaldi_split(line, &word, &path))
            *why = "needs an identifier and a file";
    } else {
        for (char *name = NULL; (word = strtok_r(rest, blanks, &rest)); name = *word == '-' && !name ? word : NULL) {
            if (name && strcmp(name, "--probability") == 0 && (!gc_number_parse(word, weight) || *weight < 0))
                *why = "--probability must be a number from 0 up";
            path = name || *word == '-' ? path : word;
        }
        if (!path && !*why)
            *why = "names no file behind its options";
    }
    if (!*why && gc_kaldi_refusal(path))
        *why = "is a command or a place in an archive; list audio files";
    return *why ? NULL : strdup(path);
}

/* A recording of a wav.scp. */
typedef struct recording {
    const char *id, *path;
} recording;

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

/* Adds a row for each segment. */
static gpuconv_status add_segments(gc_builder *b, const recording *list, int64_t count, gpuconv_error *error) {
    size_t length;
    const char *name = b->options.segments;
    char *text = gc_text_file_read(name, &length, error), *at = text, *line;
    gpuconv_status status = text ? GPUCONV_OK : error->status;
    for (int64_t number = 1; !status && (line = gc_text_file_line(&at)); number++) {
        gc_row row = {.stem = NULL};
        char *rest = line, *id = strtok_r(rest, blanks, &rest), *key = strtok_r(rest, blanks, &rest);
        char *begin = strtok_r(rest, blanks, &rest), *end = strtok_r(rest, blanks, &rest);
        if (!id)
            continue;
        const recording wanted = {key ? key : "", NULL};
        const recording *found = count ? bsearch(&wanted, list, (size_t)count, sizeof *list, compare) : NULL;
        bool good = found ? fill(&row, id, found->path) && fill_part(&row, begin, end)
                          : gc_row_refuse(&row, "the segment names a recording that wav.scp does not have:", wanted.id);
        if (!good || !gc_builder_add(b, &row, number))
            status = gc_fail_memory(error, name);
        gc_row_clear(&row);
    }
    free(text);
    return status;
}

gpuconv_status gc_list_parse_kaldi(const char *name, char *text, gc_builder *b, gpuconv_error *error) {
    recording *list = NULL;
    int64_t count = 0, capacity = 0, number = 0;
    char *at = text, *line, *id, *path;
    gpuconv_status status = GPUCONV_OK;
    b->manifest->kind = GC_LIST_KALDI;
    while (!status && (line = gc_text_file_line(&at))) {
        gc_row row = {.stem = NULL};
        number++;
        if (!line[strspn(line, blanks)])
            continue;
        bool split = gc_kaldi_split(line, &id, &path), good = true;
        if (split && b->options.segments) {
            if (count == capacity) {
                recording *larger = realloc(list, (size_t)(capacity = gc_max(64, 2 * capacity)) * sizeof *list);
                list = (good = larger != NULL) ? larger : list;
            }
            if (good)
                list[count++] = (recording){id, path};
        } else {
            good =
                split ? fill(&row, id, path) : gc_row_refuse(&row, "a line needs an identifier and a file, not", line);
            good = good && gc_builder_add(b, &row, number);
        }
        if (!good)
            status = gc_fail_memory(error, name);
        gc_row_clear(&row);
    }
    if (!status && b->options.segments) {
        if (count > 0)
            qsort(list, (size_t)count, sizeof *list, compare);
        status = add_segments(b, list, count, error);
    }
    free(list);
    return status;
}
