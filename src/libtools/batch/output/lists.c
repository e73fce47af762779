/* Writes lists of outputs: data folders of Kaldi, recordings and cuts of lhotse, metadata. */
#include "folder.h"
#include "history.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/files.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libtools/batch/entry/entry.h"
#include "libtools/batch/entry/text.h"
#include "results.h"

#include <csv.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

/* ---- Names of outputs ---- */

static char *list_path(const gc_list_output *o, const gc_entry *e, int64_t index) {
    char shard[GC_OWN_SHARD] = "";
    if (o->shard_size > 0)
        gc_own_shard(index / o->shard_size, shard);
    return gc_text_of("%s/%s%s%s", o->folder, shard, *shard ? "/" : "", e->output);
}

static const char *list_id(const gc_entry *e) {
    return e->extra && e->extra->id ? e->extra->id : e->output;
}

/* ---- Files ---- */

/* Writes a file into the folder of the outputs, compressed if its name says so. gzip's header has no time, so the same
 * outputs give the same bytes. */
static gpuconv_status write_file(const gc_list_output *o, const char *name, bool (*put_lines)(void *context, gzFile f),
                                 void *context, gpuconv_error *error) {
    char path[GC_OWN_PATH];
    gc_output_file *file = NULL;
    const bool compressed = strcmp(name + strlen(name) - 3, ".gz") == 0;
    gpuconv_status status = gc_own_path(o->folder, name, path, error);
    if (!status)
        status = gc_output_file_new(path, GC_OUTPUT_PROGRAM_PATH, NULL, &file, error);
    if (!status) {
        errno = 0;
        const int copy = dup(gc_output_file_descriptor(file));
        gzFile f = copy < 0 ? NULL : gzdopen(copy, compressed ? "wb6" : "wbT"); /* T: not compressed */
        const bool good = f && put_lines(context, f);
        if (!f && copy >= 0)
            close(copy);
        status = f && gzclose(f) == Z_OK && good
                     ? gc_output_file_commit(file, error)
                     : gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", path, errno ? strerror(errno) : "out of memory");
    }
    gc_output_file_free(file);
    return status;
}

static bool put(gzFile f, const char *text, size_t length) {
    return length == 0 || gzwrite(f, text, (unsigned)length) == (int)length;
}

static bool put_text(gzFile f, const char *text) {
    return put(f, text, strlen(text));
}

/* ---- Kaldi ---- */

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
        char *path = list_path(o, e, i);
        if (!path)
            return false;
        const int length = (int)strcspn(e->extra->origin, " ");
        u->list[u->count++] = (utterance){.id = list_id(e),
                                          .speaker = e->extra->origin,
                                          .speaker_length = length,
                                          .text = e->extra->origin + length + 1,
                                          .path = path,
                                          .seconds = p->rate > 0 ? (double)p->frames / p->rate : 0};
    }
    return u->list != NULL;
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

/* A file of the folder. */
typedef struct folder_file {
    const utterances *u;
    kind kind;
} folder_file;

static bool put_utterances(void *context, gzFile f) {
    const folder_file *file = context;
    const utterances *u = file->u;
    bool good = true;
    for (int64_t i = 0; i < u->count && good; i++)
        good = put_one(f, file->kind, &u->list[i], i == 0, i + 1 == u->count);
    return good;
}

/* Writes wav.scp, utt2spk and spk2utt, and text and segments if the folder of the inputs has them: sorted as Kaldi's
 * validate_data_dir.sh demands. Each utterance is the whole of its recording, which has the same name. As
 * gc_list_write. */
static gpuconv_status write_kaldi(const gc_manifest *m, const gc_list_output *o, const gc_history *history,
                                  int64_t *count, gpuconv_error *error) {
    static const char *const names[] = {"wav.scp", GC_OWN_TEXT, GC_OWN_SEGMENTS, GC_OWN_SPEAKERS, GC_OWN_UTTERANCES};
    const bool wanted[] = {true, m->has_text, m->has_segments, true, true};
    utterances u = {NULL, 0};
    gpuconv_status status = collect(m, o, history, &u) ? GPUCONV_OK : gc_fail_memory(error, o->folder);
    for (kind k = PATHS; k <= UTTERANCES && !status; k++) {
        if (k == PATHS || k == UTTERANCES)
            qsort(u.list, (size_t)u.count, sizeof *u.list, k == PATHS ? compare_ids : compare_speakers);
        if (wanted[k])
            status = write_file(o, names[k], put_utterances, &(folder_file){&u, k}, error);
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

/* ---- Lists of one file ---- */

/* The list that is being written. */
typedef struct list {
    gzFile file;
    const gc_manifest *manifest;
    const gc_list_output *output;
    const gc_history *history;
    int64_t count; /* of its lines */
    bool bad;
} list;

static void append(list *l, const char *text) {
    l->bad |= !put_text(l->file, text);
}

/* Writes an object as a line; NULL: it could not be made. */
static void put_json(list *l, const json_t *object) {
    char *text = object ? json_dumps(object, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
    l->bad |= !text;
    if (text) {
        append(l, text);
        append(l, "\n");
    }
    free(text);
}

/* Writes a field of CSV. */
static void put_csv(list *l, const char *text) {
    const size_t room = 2 * strlen(text) + 3;
    char *quoted = malloc(room);
    l->bad |= !quoted;
    if (quoted) {
        const bool plain = !text[strcspn(text, ",\"\n\r")];
        quoted[plain ? 0 : csv_write(quoted, room - 1, text, strlen(text))] = '\0';
        append(l, plain ? text : quoted);
    }
    free(quoted);
}

/* Makes lhotse's description of an output file. */
static json_t *make_recording(const char *id, const char *path, const gc_past_line *p) {
    json_t *channels = json_array();
    for (int c = 0; channels && c < p->channels; c++)
        (void)json_array_append_new(channels, json_integer(c));
    json_t *recording =
        json_pack("{s:s, s:[{s:s, s:O, s:s}], s:i, s:I, s:f, s:O}", "id", id, "sources", "type", "file", "channels",
                  channels, "source", path, "sampling_rate", p->rate, "num_samples", (json_int_t)p->frames, "duration",
                  (double)p->frames / p->rate, "channel_ids", channels);
    json_decref(channels);
    return recording;
}

/* Ends the supervisions with the input, if it has less than the length that was asked for. @return false: out of memory
 */
static bool end_supervisions(const gc_entry *e, json_t *supervisions, double audio) {
    size_t i;
    json_t *supervision;
    bool good = true;
    for (i = json_array_size(supervisions); e->length > audio && i-- > 0;) {
        supervision = json_array_get(supervisions, i);
        const double start = json_number_value(json_object_get(supervision, "start"));
        const double duration = json_number_value(json_object_get(supervision, "duration"));
        if (start >= audio)
            (void)json_array_remove(supervisions, i);
        else if (start + duration > audio)
            good = json_object_set_new(supervision, "duration", json_real(audio - start)) == 0 && good;
    }
    return good;
}

/* Lets the supervisions belong to the recording of the output. Their identifiers get what the recording's got. */
static bool move_supervisions(const list *l, const gc_entry *e, json_t *supervisions, const char *recording,
                              json_t *channel) {
    size_t i;
    json_t *supervision;
    const char *name = "";
    int length = 0;
    bool good = true;
    if (l->manifest->every_response)
        gc_path_stem(e->response, &name, &length);
    json_array_foreach(supervisions, i, supervision) {
        const char *id = json_string_value(json_object_get(supervision, "id"));
        char *made = NULL;
        good =
            good &&
            gc_text_append(&made, "%s%s%.*s%s", id ? id : "", length ? "-" : "", length, name, l->output->id_suffix) &&
            (!id || json_object_set_new(supervision, "id", json_string(made)) == 0) &&
            json_object_set_new(supervision, "recording_id", json_string(recording)) == 0 &&
            json_object_set(supervision, "channel", channel) == 0;
        free(made);
    }
    return good;
}

/* Makes lhotse's cut of a whole output, with the fields that the input's cut had. */
static json_t *make_cut(const list *l, const gc_entry *e, const char *id, json_t *recording, const gc_past_line *p) {
    json_error_t why;
    json_t *cut = e->extra && e->extra->origin ? json_loads(e->extra->origin, 0, &why) : json_object();
    json_t *channel = p->channels == 1 ? json_integer(0) : json_incref(json_object_get(recording, "channel_ids"));
    bool good = json_object_set_new(cut, "id", json_string(id)) == 0 &&
                end_supervisions(e, json_object_get(cut, "supervisions"), p->audio) &&
                move_supervisions(l, e, json_object_get(cut, "supervisions"), id, channel) &&
                json_object_set_new(cut, "start", json_real(0)) == 0 &&
                json_object_set_new(cut, "duration", json_real((double)p->frames / p->rate)) == 0 &&
                json_object_set_new(cut, "channel", channel) == 0 &&
                json_object_set(cut, "recording", recording) == 0 &&
                json_object_set_new(cut, "type", json_string(p->channels == 1 ? "MonoCut" : "MultiCut")) == 0;
    if (!json_object_get(cut, "supervisions"))
        good = good && json_object_set_new(cut, "supervisions", json_array()) == 0;
    if (!good) {
        json_decref(cut);
        return NULL;
    }
    return cut;
}

/* Writes a line of lhotse's recordings or cuts. */
static void put_lhotse(list *l, const gc_entry *e, const char *path, const gc_past_line *p, bool cuts) {
    char *id = p->rate > 0 ? gc_text_of("%s%s", list_id(e), l->output->id_suffix) : NULL;
    json_t *recording = id ? make_recording(id, path, p) : NULL;
    json_t *object = recording && cuts ? make_cut(l, e, id, recording, p) : json_incref(recording);
    put_json(l, object);
    free(id);
    json_decref(object);
    json_decref(recording);
}

/* Writes a line of metadata.jsonl. */
static void put_metadata(list *l, const gc_entry *e) {
    json_error_t why;
    json_t *object = json_object(), *rest = e->extra && e->extra->origin ? json_loads(e->extra->origin, 0, &why) : NULL;
    bool good = json_object_set_new(object, "file_name", json_string(e->output)) == 0 &&
                (!rest || json_object_update(object, rest) == 0);
    put_json(l, good ? object : NULL);
    json_decref(object);
    json_decref(rest);
}

static void put_entry(list *l, int64_t i, const gc_past_line *p) {
    const gc_manifest *m = l->manifest;
    const gc_entry *e = &m->entry[i];
    char *path = list_path(l->output, e, i);
    l->bad |= !path;
    if (!path)
        return;
    if (m->kind == GC_LIST_METADATA_CSV) {
        put_csv(l, e->output);
        if (m->header) {
            append(l, ",");
            append(l, e->extra && e->extra->origin ? e->extra->origin : "");
        }
        append(l, "\n");
    } else if (m->kind == GC_LIST_METADATA_JSONL) {
        put_metadata(l, e);
    } else {
        put_lhotse(l, e, path, p, m->kind == GC_LIST_CUTS);
    }
    free(path);
}

static bool put_list(void *context, gzFile f) {
    list *l = context;
    const gc_manifest *m = l->manifest;
    l->file = f;
    if (m->kind == GC_LIST_METADATA_CSV) {
        append(l, "file_name");
        append(l, m->header ? "," : "");
        append(l, m->header ? m->header : "");
        append(l, "\n");
    }
    for (int64_t i = 0; i < m->entries && !l->bad; i++) {
        const gc_past_line *p = gc_history_last_line(l->history, i);
        if (m->entry[i].refusal || !p->done)
            continue;
        put_entry(l, i, p);
        l->count++;
    }
    return !l->bad;
}

gpuconv_status gc_list_write(const gc_manifest *m, const gc_list_output *output, int64_t *count, gpuconv_error *error) {
    char results[GC_OWN_PATH], *absolute = NULL;
    gc_list_output o = *output;
    int64_t complete;
    bool newline;
    *count = -1;
    if (!gc_own_list(m->kind))
        return GPUCONV_OK;
    if (o.absolute && !(absolute = realpath(o.folder, NULL)))
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", o.folder, strerror(errno));
    o.folder = absolute ? absolute : o.folder;
    gc_history *history = gc_history_new(m);
    gpuconv_status status =
        history ? gc_own_path(o.folder, GC_OWN_RESULTS, results, error) : gc_fail_memory(error, o.folder);
    if (!status)
        status = gc_history_read(history, results, &complete, &newline, error);
    if (!status && m->kind == GC_LIST_KALDI) {
        status = write_kaldi(m, &o, history, count, error);
    } else if (!status) {
        list l = {.manifest = m, .output = &o, .history = history};
        status = write_file(&o, gc_own_list(m->kind), put_list, &l, error);
        *count = status ? -1 : l.count;
    }
    gc_history_free(history);
    free(absolute);
    return status;
}
