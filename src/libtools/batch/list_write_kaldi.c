/* Writes a data folder of Kaldi for the outputs. */
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/output_file.h"
#include "list_write.h"
#include "own_files.h"
#include "text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

/* An output that is done. The texts are the manifest's, but for the path, which is owned. */
typedef struct utterance {
    const char *id, *speaker, *text;
    int speaker_length;
    char *path;
    double seconds;
} utterance;

typedef struct utterances {
    utterance *list;
    int64_t count;
} utterances;

static int compare_ids(const void *a, const void *b) {
    return strcmp(((const utterance *)a)->id, ((const utterance *)b)->id);
}

static bool same_speaker(const utterance *a, const utterance *b) {
    return a->speaker_length == b->speaker_length && memcmp(a->speaker, b->speaker, (size_t)a->speaker_length) == 0;
}

/* Compares speakers, then identifiers. */
static int compare_speakers(const void *a, const void *b) {
    const utterance *x = a, *y = b;
    const int shorter = x->speaker_length < y->speaker_length ? x->speaker_length : y->speaker_length;
    int order = memcmp(x->speaker, y->speaker, (size_t)shorter);
    order = order ? order : x->speaker_length - y->speaker_length;
    return order ? order : compare_ids(a, b);
}

/* Lists the outputs that are done. @return false: out of memory */
static bool collect(const gc_manifest *m, const gc_list_output *o, const gc_history *history, utterances *u) {
    u->list = gc_calloc(gc_max(1, m->entries), sizeof *u->list);
    for (int64_t i = 0; i < m->entries && u->list; i++) {
        const gc_past_line *p = gc_history_last_line(history, i);
        const gc_entry *e = &m->entry[i];
        if (e->refusal || !p->done || !e->extra || !e->extra->origin)
            continue;
        char *path = gc_list_path(o, e, i);
        if (!path)
            return false;
        const int length = (int)strcspn(e->extra->origin, " ");
        u->list[u->count++] = (utterance){.id = gc_list_id(e),
                                          .speaker = e->extra->origin,
                                          .speaker_length = length,
                                          .text = e->extra->origin + length + 1,
                                          .path = path,
                                          .seconds = p->rate > 0 ? (double)p->frames / p->rate : 0};
    }
    return u->list != NULL;
}

static bool put(gzFile f, const char *text, size_t length) {
    return length == 0 || gzwrite(f, text, (unsigned)length) == (int)length;
}

static bool put_text(gzFile f, const char *text) {
    return put(f, text, strlen(text));
}

static bool put_speaker(gzFile f, const utterance *u) {
    return put(f, u->speaker, (size_t)u->speaker_length);
}

/* The files of a folder. */
typedef enum kind { PATHS, TEXT, SEGMENTS, SPEAKERS, UTTERANCES } kind;

/* Writes what one utterance adds to a file: a line, or a word of its speaker's line. */
static bool put_one(gzFile f, kind file, const utterance *u, bool first, bool last) {
    char seconds[GC_NUMBER_TEXT];
    if (file == UTTERANCES) {
        const bool begins = first || !same_speaker(u, u - 1), ends = last || !same_speaker(u, u + 1);
        return (!begins || put_speaker(f, u)) && put_text(f, " ") && put_text(f, u->id) && (!ends || put_text(f, "\n"));
    }
    bool good = put_text(f, u->id) && put_text(f, " ");
    if (file == SPEAKERS) {
        good = good && put_speaker(f, u);
    } else if (file == SEGMENTS) {
        gc_number_print(u->seconds, seconds);
        good = good && put_text(f, u->id) && put_text(f, " 0 ") && put_text(f, seconds);
    } else {
        good = good && put_text(f, file == PATHS ? u->path : u->text);
    }
    return good && put_text(f, "\n");
}

/* Writes all lines to a descriptor. @return false: errno has the reason */
static bool write_lines(const utterances *u, kind file, int fd) {
    const int copy = dup(fd);
    gzFile plain = copy < 0 ? NULL : gzdopen(copy, "wbT"); /* T: not compressed */
    bool good = plain != NULL;
    if (!plain && copy >= 0)
        close(copy);
    for (int64_t i = 0; i < u->count && good; i++)
        good = put_one(plain, file, &u->list[i], i == 0, i + 1 == u->count);
    return plain && gzclose(plain) == Z_OK && good;
}

/* Writes one file of the folder. */
static gpuconv_status write_file(const gc_list_output *o, const utterances *u, kind file, gpuconv_error *error) {
    char path[GC_OWN_PATH];
    gc_output_file *out = NULL;
    static const char *const names[] = {"wav.scp", GC_OWN_TEXT, GC_OWN_SEGMENTS, GC_OWN_SPEAKERS, GC_OWN_UTTERANCES};
    errno = 0;
    gpuconv_status status = gc_own_path(o->folder, names[file], path, error);
    if (!status)
        status = gc_output_file_new(path, GC_OUTPUT_PROGRAM_PATH, NULL, &out, error);
    if (!status)
        status = write_lines(u, file, gc_output_file_descriptor(out))
                     ? gc_output_file_commit(out, error)
                     : gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", path, errno ? strerror(errno) : "out of memory");
    gc_output_file_free(out);
    return status;
}

gpuconv_status gc_list_write_kaldi(const gc_manifest *m, const gc_list_output *o, const gc_history *history,
                                   int64_t *count, gpuconv_error *error) {
    utterances u = {NULL, 0};
    gpuconv_status status = collect(m, o, history, &u) ? GPUCONV_OK : gc_fail_memory(error, o->folder);
    if (!status) {
        qsort(u.list, (size_t)u.count, sizeof *u.list, compare_ids);
        status = write_file(o, &u, PATHS, error);
    }
    if (!status && m->has_text)
        status = write_file(o, &u, TEXT, error);
    if (!status && m->has_segments)
        status = write_file(o, &u, SEGMENTS, error);
    if (!status)
        status = write_file(o, &u, SPEAKERS, error);
    if (!status) {
        qsort(u.list, (size_t)u.count, sizeof *u.list, compare_speakers);
        status = write_file(o, &u, UTTERANCES, error);
    }
    *count = status ? -1 : u.count;
    for (int64_t i = 0; i < u.count; i++)
        free(u.list[i].path);
    free(u.list);
    return status;
}

bool gc_list_left_out_kaldi(const char *list, char *text, size_t room) {
    static const char *const names[] = {
        "spk2gender", "spk2age",  "utt2lang",   "utt2dur", "utt2num_frames",        "utt2uniq",
        "reco2dur",   "ctm",      "stm",        "glm",     "reco2file_and_channel", "feats.scp",
        "vad.scp",    "cmvn.scp", "frame_shift"};
    size_t length = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *path = gc_path_beside(list, names[i]);
        if (path && access(path, F_OK) == 0 && length < room)
            length += (size_t)snprintf(text + length, room - length, "%s%s", length ? ", " : "", names[i]);
        free(path);
    }
    return length > 0;
}
