/* Writes lists of outputs. */
#include "list_write.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/output_file.h"
#include "own_files.h"
#include "row.h"
#include "text.h"

#include <csv.h>
#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

/* The list that is being written. gzip's header has no time, so the same outputs give the same bytes. */
typedef struct list {
    gzFile file;
    const gc_list_output *output;
    bool every_response;
    bool bad;
} list;

static void put(list *l, const char *text) {
    const size_t length = strlen(text);
    l->bad |= length > 0 && gzwrite(l->file, text, (unsigned)length) != (int)length;
}

/* Writes an object as a line; NULL: it could not be made. */
static void put_json(list *l, const json_t *object) {
    char *text = object ? json_dumps(object, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
    l->bad |= !text;
    if (text) {
        put(l, text);
        put(l, "\n");
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
        put(l, plain ? text : quoted);
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
    if (l->every_response)
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
    char *id = NULL;
    const bool good = p->rate > 0 && gc_text_append(&id, "%s%s", gc_list_id(e), l->output->id_suffix);
    json_t *recording = good ? make_recording(id, path, p) : NULL;
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

static void put_entry(list *l, const gc_manifest *m, int64_t i, const gc_past_line *p) {
    const gc_entry *e = &m->entry[i];
    char *path = gc_list_path(l->output, e, i);
    l->bad |= !path;
    if (!path)
        return;
    if (m->kind == GC_LIST_METADATA_CSV) {
        put_csv(l, e->output);
        if (m->header) {
            put(l, ",");
            put(l, e->extra && e->extra->origin ? e->extra->origin : "");
        }
        put(l, "\n");
    } else if (m->kind == GC_LIST_METADATA_JSONL) {
        put_metadata(l, e);
    } else {
        put_lhotse(l, e, path, p, m->kind == GC_LIST_CUTS);
    }
    free(path);
}

/* Writes all lines to a descriptor. @return false: errno has the reason */
static bool write_list(list *l, const gc_manifest *m, const gc_history *history, int fd, int64_t *count) {
    const char *name = gc_own_list(m->kind);
    const bool compressed = strcmp(name + strlen(name) - 3, ".gz") == 0;
    int copy = dup(fd);
    l->file = copy < 0 ? NULL : gzdopen(copy, compressed ? "wb6" : "wbT");
    if (!l->file) {
        if (copy >= 0)
            close(copy);
        return false;
    }
    if (m->kind == GC_LIST_METADATA_CSV) {
        put(l, "file_name");
        put(l, m->header ? "," : "");
        put(l, m->header ? m->header : "");
        put(l, "\n");
    }
    for (int64_t i = 0; i < m->entries && !l->bad; i++) {
        const gc_past_line *p = gc_history_last_line(history, i);
        if (m->entry[i].refusal || !p->done)
            continue;
        put_entry(l, m, i, p);
        ++*count;
    }
    return gzclose(l->file) == Z_OK && !l->bad;
}

/* Writes a list of one file. */
static gpuconv_status write_file(const gc_manifest *m, const gc_list_output *o, const gc_history *history,
                                 int64_t *count, gpuconv_error *error) {
    char path[GC_OWN_PATH];
    gc_output_file *file = NULL;
    list l = {.output = o, .every_response = m->every_response};
    gpuconv_status status = gc_own_path(o->folder, gc_own_list(m->kind), path, error);
    if (!status)
        status = gc_output_file_new(path, GC_OUTPUT_PROGRAM_PATH, NULL, &file, error);
    if (!status) {
        errno = 0;
        *count = 0;
        status = write_list(&l, m, history, gc_output_file_descriptor(file), count)
                     ? gc_output_file_commit(file, error)
                     : gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", path, errno ? strerror(errno) : "out of memory");
    }
    gc_output_file_free(file);
    return status;
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
    if (!status)
        status = m->kind == GC_LIST_KALDI ? gc_list_write_kaldi(m, &o, history, count, error)
                                          : write_file(m, &o, history, count, error);
    gc_history_free(history);
    free(absolute);
    return status;
}
