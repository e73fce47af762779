/* Parses Kaldi's wav.scp, with or without segments, and the transcripts and speakers beside it: tables that say
 * something of each identifier. */
#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/map.h"
#include "libgpuconv/core/number.h"
#include "libtools/batch/entry/text.h"
#include "list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Tables ---- */

/* Adds a value. A key and its value stand in the same memory, which the table owns. @return false: out of memory */
static bool kaldi_table_add(gc_map *t, const char *id, const char *value) {
    const size_t length = strlen(id) + 1, room = length + strlen(value) + 1;
    char *copy = malloc(room);
    void **place = NULL;
    if (copy) {
        memcpy(copy, id, length);
        memcpy(copy + length, value, room - length);
        place = gc_map_put(t, copy, length - 1);
    }
    if (!place || *place) /* of several lines with an identifier the first one counts */
        free(copy);
    else
        *place = copy + length;
    return place != NULL;
}

/* Adds the lines of a file; *exists false: there is no such file. Fails as gc_text_file_open and gc_lines_next do. */
static gpuconv_status kaldi_table_read(gc_map *t, const char *path, bool *exists, gpuconv_error *error) {
    static char empty[] = "";
    gc_text_file *file;
    char *line, *id, *value;
    *exists = access(path, F_OK) == 0;
    if (!*exists)
        return GPUCONV_OK;
    gpuconv_status status = gc_text_file_open(path, &file, error);
    while (!status && !(status = gc_lines_next(gc_text_file_lines(file), &line, error)) && line) {
        if (!gc_kaldi_split(line, &id, &value)) { /* an utterance without words */
            id[strcspn(id, GC_KALDI_BLANKS)] = '\0';
            value = empty;
        }
        if (*id && !kaldi_table_add(t, id, value))
            status = gc_fail_memory(error, path);
    }
    gc_text_file_close(file);
    return status;
}

/* Returns the value of an identifier; NULL: the table does not have it. */
static const char *kaldi_table_find(const gc_map *t, const char *id) {
    return gc_map_get(t, id, strlen(id));
}

static void kaldi_table_free(gc_map *t) {
    for (int64_t i = 0; i < t->slots; i++)
        free((char *)t->slot[i].key);
    gc_map_free(t);
}

/* ---- A folder ---- */

/* A folder of Kaldi: the recordings of a wav.scp that has segments, and the transcripts and speakers beside it. */
typedef struct folder {
    gc_map recordings, text, speakers;
    bool has_text, has_speakers;
    const char *counted; /* the recording whose channels were counted last */
    int channels;
} folder;

/* Keeps the speaker and the transcript of an utterance, as "SPEAKER TEXT". An utterance without speaker is its own, as
 * in Kaldi's recipes. @return false: out of memory */
static bool keep_words(gc_entry_texts *row, const char *id, const folder *f) {
    const char *text = kaldi_table_find(&f->text, id), *speaker = kaldi_table_find(&f->speakers, id);
    if (f->has_text && !text)
        return gc_texts_refuse(row, "text has no line for the utterance (utils/fix_data_dir.sh repairs a folder):", id);
    if (f->has_speakers && !(speaker && *speaker && !strpbrk(speaker, GC_KALDI_BLANKS)))
        return gc_texts_refuse(
            row, "utt2spk has no line with one speaker for (utils/fix_data_dir.sh repairs a folder):", id);
    return gc_text_append(&row->origin, "%s %s", speaker ? speaker : id, text ? text : "");
}

/* Fills in a row for an utterance. @return false: out of memory */
static bool fill(gc_entry_texts *row, const char *id, const char *path, const folder *f) {
    const char *why = gc_kaldi_refusal(path);
    if (why)
        return gc_texts_set(row, GC_COLUMN_ID, id) && gc_texts_refuse(row, why, path);
    row->stem = strdup(id);
    return row->stem && gc_texts_set(row, GC_COLUMN_ID, id) && gc_texts_set(row, GC_COLUMN_INPUT, path) &&
           keep_words(row, id, f);
}

/* Sets the part of the recording from the texts of its begin and end in seconds. @return false: out of memory */
static bool fill_part(gc_entry_texts *row, const char *begin, const char *end) {
    double from, to;
    char length[GC_NUMBER_TEXT];
    if (!begin || !end || !gc_number_parse(begin, &from) || !gc_number_parse(end, &to) || from < 0)
        return gc_texts_refuse(row, "a segment needs ID RECORDING BEGIN END, in seconds, not", begin ? begin : "");
    if (to == -1)
        return gc_texts_set(row, GC_COLUMN_OFFSET, begin);
    if (!(to > from))
        return gc_texts_refuse(row, "a segment must end after it begins, not at", end);
    (void)gc_format(length, sizeof length, "%.9g", to - from);
    return gc_texts_set(row, GC_COLUMN_OFFSET, begin) && gc_texts_set(row, GC_COLUMN_LENGTH, length);
}

/* Returns the channels of a recording; 1 if it is no audio file, which its entry reports. */
static int count_channels(folder *f, const char *path) {
    gpuconv_error ignored;
    gc_reader *reader;
    struct stat st;
    if (path == f->counted)
        return f->channels;
    f->counted = path;
    f->channels = 1;
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && gc_reader_new(path, &reader, &ignored) == GPUCONV_OK) {
        f->channels = gc_reader_info(reader)->channels;
        gc_reader_free(reader);
    }
    return f->channels;
}

/* Refuses a segment of one channel of several. @return false: out of memory */
static bool check_channel(gc_entry_texts *row, const char *path, const char *channel, folder *f) {
    int64_t number;
    if (!channel || strcmp(channel, "-1") == 0)
        return true;
    if (!gc_integer_parse(channel, &number) || number < 0)
        return gc_texts_refuse(row, "the channel of a segment is a number from 0, or -1, not", channel);
    return (number == 0 && count_channels(f, path) == 1) ||
           gc_texts_refuse(
               row,
               "a segment of one channel of a recording is not read; write the channels to files of their own "
               "(sox FILE OUT remix 1); channel",
               channel);
}

enum { ID, RECORDING, BEGIN, END, CHANNEL, FIELDS }; /* of a line of segments */

/* Fills in a row from a line of segments; fields that it lacks are NULL. @return false: out of memory */
static bool fill_segment(gc_entry_texts *row, char *const field[FIELDS], folder *f) {
    const char *key = field[RECORDING], *path = key ? kaldi_table_find(&f->recordings, key) : NULL;
    return path ? fill(row, field[ID], path, f) && fill_part(row, field[BEGIN], field[END]) &&
                      check_channel(row, path, field[CHANNEL], f)
                : gc_texts_refuse(row, "the segment names a recording that wav.scp does not have:", key ? key : "");
}

/* Adds a row for each segment. */
static gpuconv_status add_segments(gc_builder *b, folder *f, gpuconv_error *error) {
    gc_text_file *file;
    char *line;
    gpuconv_status status = gc_text_file_open(b->options.segments, &file, error);
    while (!status && !(status = gc_lines_next(gc_text_file_lines(file), &line, error)) && line) {
        gc_entry_texts row = {.stem = NULL};
        char *field[FIELDS] = {NULL};
        const int fields = gc_kaldi_words(line, field, FIELDS);
        if (fields == 0)
            continue;
        const bool good =
            fields > 0
                ? fill_segment(&row, field, f)
                : gc_texts_refuse(&row, "a segment has more fields than ID RECORDING BEGIN END CHANNEL:", field[ID]);
        status = good ? gc_builder_add(b, &row, gc_text_file_lines(file)->number, error)
                      : gc_fail_memory(error, b->options.segments);
        gc_texts_clear(&row);
    }
    gc_text_file_close(file);
    return status;
}

/* Adds the file of a line, as a recording if there are segments. */
static gpuconv_status add_line(gc_builder *b, folder *f, gc_lines *lines, char *line, gpuconv_error *error) {
    gc_entry_texts row = {.stem = NULL};
    char *id, *path;
    const bool split = gc_kaldi_split(line, &id, &path);
    bool good;
    gpuconv_status status = GPUCONV_OK;
    if (split && b->options.segments) {
        good = kaldi_table_add(&f->recordings, id, path);
    } else {
        good =
            split ? fill(&row, id, path, f) : gc_texts_refuse(&row, "a line needs an identifier and a file, not", line);
        if (good)
            status = gc_builder_add(b, &row, lines->number, error);
    }
    gc_texts_clear(&row);
    return good ? status : gc_fail_memory(error, lines->name);
}

/* Reads a table beside the wav.scp `list`, if it is there, and names it as a list that was read. */
static gpuconv_status read_beside(gc_map *t, const char *list, const char *name, gc_manifest *m, bool *exists,
                                  gpuconv_error *error) {
    char *path = gc_path_beside(list, name);
    gpuconv_status status = path ? kaldi_table_read(t, path, exists, error) : gc_fail_memory(error, list);
    if (!status && *exists && !gc_manifest_add_list(m, path))
        status = gc_fail_memory(error, path);
    free(path);
    return status;
}

gpuconv_status gc_list_parse_kaldi(gc_lines *lines, gc_builder *b, gpuconv_error *error) {
    folder f = {.has_text = false};
    char *line;
    gc_manifest *m = b->manifest;
    m->kind = GC_LIST_KALDI;
    gpuconv_status status = read_beside(&f.text, lines->name, "text", m, &f.has_text, error);
    if (!status)
        status = read_beside(&f.speakers, lines->name, "utt2spk", m, &f.has_speakers, error);
    m->has_text = f.has_text;
    m->has_segments = b->options.segments != NULL;
    while (!status && !(status = gc_lines_next(lines, &line, error)) && line)
        if (line[strspn(line, GC_KALDI_BLANKS)])
            status = add_line(b, &f, lines, line, error);
    if (!status && b->options.segments)
        status = add_segments(b, &f, error);
    kaldi_table_free(&f.recordings);
    kaldi_table_free(&f.text);
    kaldi_table_free(&f.speakers);
    return status;
}
