/* Lines of lists: decompressed with zlib while they are read (a file without the magic number of gzip is text), and
 * those of Kaldi and lhotse. */
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/descriptor.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/table.h"
#include "libtools/batch/entry/text.h"
#include "list.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* ---- Texts that gzip may have compressed ---- */

/* Ten million rows of 1.7 kB fit. Manifests are compressed to a tenth, and hardly to a fortieth; deflate can reach
 * 1032. */
#define MOST_BYTES (INT64_C(1) << 34)
enum { PORTION = 1 << 16, FREE_BYTES = 1 << 26, MOST_RATIO = 100, GZIP = 16 };

struct gc_text_file {
    gc_lines lines; /* first: `read` gets it */
    z_stream inflater;
    bool inflating, compressed, member_ended, file_ended;
    int64_t bytes; /* of the file so far */
    unsigned char in[PORTION];
};

/* Reads a portion of the file behind the bytes that are left of the last one. */
static gpuconv_status read_portion(gc_text_file *f, gpuconv_error *error) {
    int64_t got = 0;
    memmove(f->in, f->inflater.next_in, f->inflater.avail_in);
    f->inflater.next_in = f->in;
    const int err =
        gc_read_some(f->lines.fd, f->in + f->inflater.avail_in, PORTION - f->inflater.avail_in, &got, gc_cancel_flag());
    f->inflater.avail_in += (unsigned)got;
    f->bytes += got;
    f->file_ended = !err && got == 0;
    return !err               ? GPUCONV_OK
           : err == ECANCELED ? gc_fail_cancelled(error, f->lines.name)
                              : gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", f->lines.name, strerror(err));
}

/* Decides whether a member of gzip begins here. What follows the last member is ignored, as gzip does. */
static bool begins_member(const gc_text_file *f) {
    return f->inflater.avail_in >= 2 && f->inflater.next_in[0] == 0x1f && f->inflater.next_in[1] == 0x8b;
}

/* Decompresses up to `bytes` bytes; *got 0: the text has ended. */
static gpuconv_status inflate_some(gc_text_file *f, char *to, int64_t bytes, int64_t *got, gpuconv_error *error) {
    z_stream *z = &f->inflater;
    z->next_out = (unsigned char *)to;
    z->avail_out = (unsigned)bytes;
    while (z->avail_out == (unsigned)bytes) {
        if (z->avail_in < 2 && !f->file_ended) {
            gpuconv_status status = read_portion(f, error);
            if (status)
                return status;
            continue;
        }
        if (f->member_ended && !begins_member(f))
            break;
        if (f->member_ended)
            (void)inflateReset(z);
        const int result = inflate(z, Z_NO_FLUSH);
        f->member_ended = result == Z_STREAM_END;
        if (result == Z_MEM_ERROR)
            return gc_fail_memory(error, f->lines.name);
        if ((result != Z_OK && result != Z_STREAM_END) ||
            (f->file_ended && z->avail_in == 0 && !f->member_ended && z->avail_out > 0))
            return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: its compression is damaged or cut off", f->lines.name);
    }
    *got = bytes - z->avail_out;
    if (f->lines.total + *got > FREE_BYTES + MOST_RATIO * f->bytes)
        return gc_fail(
            error, GPUCONV_ERROR_FORMAT,
            "%s: its text is more than %d times as long as the file, so it is no list; decompress it if it is",
            f->lines.name, MOST_RATIO);
    return GPUCONV_OK;
}

static gpuconv_status read_text(gc_lines *lines, char *to, int64_t bytes, int64_t *got, gpuconv_error *error) {
    gc_text_file *f = (gc_text_file *)(void *)lines;
    while (f->inflater.avail_in < 2 && !f->file_ended && !f->compressed) {
        gpuconv_status status = read_portion(f, error);
        if (status)
            return status;
    }
    if (f->bytes > 0 && lines->total == 0)
        f->compressed |= begins_member(f);
    if (f->compressed)
        return inflate_some(f, to, bytes, got, error);
    *got = gc_min(bytes, f->inflater.avail_in);
    memcpy(to, f->inflater.next_in, (size_t)*got);
    f->inflater.next_in += *got;
    f->inflater.avail_in -= (unsigned)*got;
    return GPUCONV_OK;
}

gpuconv_status gc_text_file_open(const char *path, gc_text_file **file, gpuconv_error *error) {
    gc_text_file *f = calloc(1, sizeof *f);
    *file = NULL;
    if (!f)
        return gc_fail_memory(error, path);
    gpuconv_status status = gc_lines_open(&f->lines, path, GC_TEXT_LINE, MOST_BYTES, error);
    if (!status) {
        f->lines.read = read_text;
        f->inflater.next_in = f->in;
        f->inflating = inflateInit2(&f->inflater, MAX_WBITS + GZIP) == Z_OK;
        status = f->inflating ? GPUCONV_OK : gc_fail_memory(error, path);
    }
    if (status) {
        gc_text_file_close(f);
        return status;
    }
    *file = f;
    return GPUCONV_OK;
}

gc_lines *gc_text_file_lines(gc_text_file *f) {
    return &f->lines;
}

void gc_text_file_close(gc_text_file *f) {
    if (!f)
        return;
    if (f->inflating)
        (void)inflateEnd(&f->inflater);
    gc_lines_close(&f->lines);
    free(f);
}

/* ---- Kaldi ---- */

enum { WORDS = 64 };

bool gc_kaldi_split(char *line, char **id, char **rest) {
    static const gc_table_form form = {.kind = GC_TABLE_WORDS, .most = 2, .last = 2};
    char *field[2];
    const char *wrong;
    const int fields = gc_table_split(&form, ' ', line, field, &wrong);
    *id = fields > 0 ? field[0] : line + strlen(line);
    *rest = fields > 1 ? field[1] : line + strlen(line);
    return fields > 1;
}

int gc_kaldi_words(char *line, char **word, int most) {
    const gc_table_form form = {.kind = GC_TABLE_WORDS, .most = most};
    const char *wrong;
    return gc_table_split(&form, ' ', line, word, &wrong);
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
    char *word = NULL, *path = NULL;
    *weight = 1;
    *why = NULL;
    if (line[strspn(line, GC_KALDI_BLANKS)] != '-') {
        if (!gc_kaldi_split(line, &word, &path))
            *why = "needs an identifier and a file";
    } else {
        char *words[WORDS];
        const int count = gc_kaldi_words(line, words, WORDS);
        const char *name = NULL;
        *why = count < 0 ? "has too many words" : NULL;
        for (int i = 0; i < count; i++, name = *word == '-' && !name ? word : NULL) {
            word = words[i];
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

/* ---- lhotse, as lhotse 1.x writes ---- */

/* The advice for cuts that lhotse computes when it loads them. */
#define GC_LHOTSE_SAVE "write files first, by cuts.save_audios(FOLDER), and use what it returns"

/* Returns the path of a recording that is one file. NULL: *why is the reason. */
static const char *path_of(const json_t *recording, const char **why) {
    const json_t *sources = json_object_get(recording, "sources"), *source = json_array_get(sources, 0);
    const char *type = json_string_value(json_object_get(source, "type"));
    const char *path = json_string_value(json_object_get(source, "source"));
    *why = NULL;
    if (json_array_size(sources) != 1)
        *why = "the recording must have one source; " GC_LHOTSE_SAVE;
    else if (!type || strcmp(type, "file") != 0)
        *why = "the recording's source is a command, an address or memory, and only files are read; " GC_LHOTSE_SAVE;
    else if (!path || !*path)
        *why = "the recording's source has no path";
    else if (json_array_size(json_object_get(recording, "transforms")) > 0)
        *why = "lhotse changes the recording when it loads (speed, volume, reverb); " GC_LHOTSE_SAVE;
    return *why ? NULL : path;
}

char *gc_lhotse_path(const char *line, const char **why) {
    json_error_t error;
    json_t *object = json_loads(line, 0, &error);
    const char *path = object ? path_of(object, why) : NULL;
    char *copy = path ? strdup(path) : NULL;
    if (!object)
        *why = "is not JSON";
    json_decref(object);
    return copy;
}

static bool is_type(const json_t *object, const char *type) {
    const char *own = json_string_value(json_object_get(object, "type"));
    return own && strcmp(own, type) == 0;
}

bool gc_lhotse_is(const json_t *object) {
    return json_object_get(object, "sources") || json_object_get(object, "recording") ||
           json_object_get(object, "tracks") || is_type(object, "PaddingCut") || is_type(object, "MonoCut");
}

/* Sets the part of its recording that a cut is. @return false: out of memory */
static bool fill_part(gc_entry_texts *row, const json_t *cut, const json_t *recording) {
    char text[GC_NUMBER_TEXT];
    double start = json_number_value(json_object_get(cut, "start"));
    double duration = json_number_value(json_object_get(cut, "duration"));
    const json_t *channel = json_object_get(cut, "channel");
    size_t channels =
        json_array_size(json_object_get(json_array_get(json_object_get(recording, "sources"), 0), "channels"));
    if (channel && (json_is_array(channel) ? json_array_size(channel) : 1) < channels)
        return gc_texts_refuse(row, "the cut has only some channels of its recording; " GC_LHOTSE_SAVE ":",
                               json_string_value(json_object_get(cut, "id")));
    if (start < 0 || !(duration > 0))
        return gc_texts_refuse(row, "a cut needs a start from 0 up and a duration", NULL);
    if (start > 0) {
        (void)gc_format(text, sizeof text, "%.17g", start);
        if (!gc_texts_set(row, GC_COLUMN_OFFSET, text))
            return false;
    }
    double whole = json_number_value(json_object_get(recording, "duration"));
    if (start == 0 && duration == whole)
        return true;
    (void)gc_format(text, sizeof text, "%.17g", duration);
    return gc_texts_set(row, GC_COLUMN_LENGTH, text);
}

/* Keeps the fields of the object that stay true for the output. @return false: out of memory */
static bool keep(gc_entry_texts *row, json_t *object) {
    static const char *const dropped[] = {"recording",     "features",    "start",      "duration",
                                          "channel",       "sources",     "transforms", "num_samples",
                                          "sampling_rate", "channel_ids", "id"};
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
        (void)json_object_del(object, dropped[i]);
    if (json_object_size(object) > 0)
        row->origin = json_dumps(object, JSON_COMPACT | JSON_PRESERVE_ORDER);
    return json_object_size(object) == 0 || row->origin;
}

bool gc_lhotse_fill(gc_entry_texts *row, json_t *object, gc_list_kind *kind) {
    const json_t *recording = json_object_get(object, "recording");
    const char *id = json_string_value(json_object_get(object, "id")), *why;
    *kind = recording || json_object_get(object, "tracks") ? GC_LIST_CUTS : GC_LIST_RECORDINGS;
    if (!id || !*id)
        return gc_texts_refuse(row, "the recording or cut has no id", NULL);
    if (json_object_get(object, "tracks"))
        return gc_texts_refuse(row, "the cut is mixed or padded; " GC_LHOTSE_SAVE ":", id);
    if (!recording && !json_object_get(object, "sources"))
        return gc_texts_refuse(row, "the cut has no recording:", id);
    const char *path = path_of(recording ? recording : object, &why);
    if (!path) {
        char reason[200];
        (void)snprintf(reason, sizeof reason, "%s:", why);
        return gc_texts_refuse(row, reason, id);
    }
    row->stem = strdup(id);
    return row->stem && gc_texts_set(row, GC_COLUMN_ID, id) && gc_texts_set(row, GC_COLUMN_INPUT, path) &&
           (!recording || fill_part(row, object, recording)) && keep(row, object);
}
