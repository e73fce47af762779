/* Formats and writes the lines of results.jsonl, and groups failures by reason. */
#include "results.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/files.h"
#include "libgpuconv/core/memory.h"
#include "libtools/batch/entry/entry.h"
#include "libtools/batch/entry/text.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Reasons of failures ---- */

/* Copies a message without its file name (the text before the first ": "), its numbers and its quoted values. */
static void find_reason(const char *message, char reason[GC_FAILURE_BYTES]) {
    const char *from = strstr(message, ": ");
    size_t used = 0;
    from = from ? from + 2 : message;
    while (*from && used + 1 < GC_FAILURE_BYTES) {
        const char *end = *from == '\'' ? strrchr(from + 1, '\'') : NULL;
        if (end) {
            from = end + 1;
        } else if (isdigit((unsigned char)*from)) {
            reason[used++] = '#';
            from += strspn(from, "0123456789.e+-");
        } else {
            reason[used++] = *from++;
        }
    }
    reason[used] = '\0';
}

void gc_failures_add(gc_failures *f, const char *message) {
    char reason[GC_FAILURE_BYTES];
    int i = 0;
    find_reason(message, reason);
    while (i < f->count && i < GC_FAILURES_GROUPS - 1 && strcmp(f->group[i].reason, reason) != 0)
        i++;
    if (i == f->count) {
        f->count++;
        memcpy(f->group[i].reason, reason, sizeof reason);
        (void)snprintf(f->group[i].example, sizeof f->group[i].example, "%s", message);
    }
    f->group[i].count++;
}

void gc_failures_add_lines(gc_failures *f, const char *lines, size_t bytes) {
    while (bytes > 0) {
        const char *end = memchr(lines, '\n', bytes);
        const size_t length = end ? (size_t)(end - lines) + 1 : bytes;
        json_error_t why;
        json_t *line = json_loadb(lines, length, 0, &why);
        const char *status = json_string_value(json_object_get(line, "status"));
        const char *reason = json_string_value(json_object_get(line, "reason"));
        if (status && reason && strcmp(status, "failed") == 0)
            gc_failures_add(f, reason);
        json_decref(line);
        lines += length;
        bytes -= length;
    }
}

void gc_failures_sort(gc_failures *f) {
    for (int i = 1; i < f->count; i++)
        for (int k = i; k > 0 && f->group[k].count > f->group[k - 1].count; k--) {
            __typeof__(f->group[0]) other = f->group[k];
            f->group[k] = f->group[k - 1];
            f->group[k - 1] = other;
        }
}

/* ---- Lines and the file ---- */

struct gc_results {
    int fd;
    char *path;
};

static bool put(json_t *object, const char *name, json_t *value) {
    return json_object_set_new(object, name, value) == 0;
}

/* Adds a text of any bytes; *changed: some were not UTF-8. */
static bool put_text(json_t *object, const char *name, const char *text, bool *changed) {
    char *valid = gc_text_utf8(text, changed);
    bool good = valid && put(object, name, json_string(valid));
    free(valid);
    return good;
}

/* Adds a text, and its exact bytes as NAME_bytes if they are not UTF-8. */
static bool put_exact(json_t *object, const char *name, const char *text) {
    char exact[40];
    bool changed = false, good = !text || put_text(object, name, text, &changed);
    char *hex = good && changed ? gc_text_hex(text) : NULL;
    (void)snprintf(exact, sizeof exact, "%s_bytes", name);
    good = good && (!changed || (hex && put(object, exact, json_string(hex))));
    free(hex);
    return good;
}

static bool put_state(json_t *object, const char *name, const gc_state *state) {
    char text[GC_STATE_TEXT];
    if (state->size < 0)
        return true;
    gc_state_print(state, text);
    return put(object, name, json_string(text));
}

/* Adds the columns besides the three names, with drawn values in place of "random". */
static bool put_columns(json_t *object, const gc_entry *e, const gc_outcome *o) {
    json_t *columns = json_object();
    bool good = columns != NULL;
    for (int c = GC_COLUMN_GAIN; c < GC_COLUMNS && good; c++) {
        char room[GC_NUMBER_TEXT], *list;
        const char *text = gc_entry_text(e, c, room, &list);
        const bool drawn = (c == GC_COLUMN_OFFSET && e->random_offset) ||
                           (c == GC_COLUMN_NOISE_OFFSET && e->extra && e->extra->noise_random);
        if (drawn)
            gc_number_print(c == GC_COLUMN_OFFSET ? o->offset : o->noise_offset, room);
        good = put_exact(columns, gc_columns[c], text && drawn ? room : text);
        free(list);
    }
    if (good && json_object_size(columns) > 0)
        return put(object, "columns", columns);
    json_decref(columns);
    return good;
}

/* Adds the fields that --resume compares; see history.h. */
static bool put_history(json_t *object, const gc_entry *e, const gc_outcome *o) {
    char *settings = gc_settings_of(e);
    bool good = settings && put(object, "settings", json_string(settings)) &&
                put(object, "version", json_string(gpuconv_version()));
    free(settings);
    return good && put_state(object, "input_was", &o->input) && put_state(object, "response_was", &o->response) &&
           put_state(object, "noise_was", &o->noise) && put(object, "output_size", json_integer(o->output_size)) &&
           (o->early_size < 0 || put(object, "early_size", json_integer(o->early_size)));
}

/* Returns the object as a line and releases it. NULL: out of memory, now or, with `good` false, before. */
static char *as_line(json_t *object, bool good) {
    char *text = good ? json_dumps(object, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(6)) : NULL;
    json_decref(object);
    size_t length = text ? strlen(text) : 0;
    char *line = text ? realloc(text, length + 2) : NULL;
    if (!line) {
        free(text);
        return NULL;
    }
    memcpy(line + length, "\n", 2);
    return line;
}

/* Appends the columns that only some entries have. @return false: out of memory */
static bool append_columns(const gc_entry *e, char **text) {
    bool good = true;
    for (int c = e->extra ? GC_COLUMNS_ALWAYS : GC_COLUMN_RECIPE; c < GC_COLUMNS && good; c++) {
        char room[GC_NUMBER_TEXT], *list;
        const char *value = gc_entry_text(e, c, room, &list);
        good = !value || c == GC_COLUMN_ID || gc_text_append(text, " %s=%s", gc_columns[c], value);
        free(list);
    }
    return good;
}

/* Appends "NAME=NUMBER". @return false: out of memory */
static bool append_number(char **text, const char *name, double value) {
    char room[GC_NUMBER_TEXT];
    gc_number_print(value, room);
    return gc_text_append(text, "%s=%s", name, room);
}

char *gc_settings_of(const gc_entry *e) {
    char *text = NULL;
    bool changed, good = append_number(&text, "gain", e->gain) && append_number(&text, " wet", e->wet) &&
                         append_number(&text, " dry", e->dry);
    if (good && e->random_offset)
        good = gc_text_append(&text, " offset=random seed=%llu", (unsigned long long)e->seed);
    else
        good = good && append_number(&text, " offset", e->offset);
    if (good && e->length >= 0)
        good = append_number(&text, " length", e->length);
    else
        good = good && gc_text_append(&text, " length=all");
    if (good && e->extra && e->extra->noise_random && !e->random_offset)
        good = gc_text_append(&text, " seed=%llu", (unsigned long long)e->seed);
    good = good && append_columns(e, &text);
    char *valid = good ? gc_text_utf8(text, &changed) : NULL; /* as results.jsonl stores it */
    free(text);
    return valid;
}

char *gc_result_line(const gc_entry *e, const gc_outcome *o) {
    json_t *object = json_object();
    bool changed;
    bool good = put(object, "line", json_integer(e->line)) && put_exact(object, "input", e->input) &&
                put_exact(object, "response", e->response) && put_exact(object, "output", e->output);
    good = good && put(object, "status", json_string(o->status ? "failed" : "done"));
    if (o->status)
        good = good && put_text(object, "reason", o->reason, &changed);
    else
        good = good && put(object, "where", json_string(o->where)) && put(object, "audio", json_real(o->audio)) &&
               put(object, "clipped", json_integer(o->clipped)) &&
               put(object, "not_finite", json_integer(o->not_finite)) &&
               (!*o->note || put_text(object, "note", o->note, &changed));
    good = good && put(object, "seconds", json_real(o->seconds));
    if (!o->status)
        good = good && put(object, "rate", json_integer(o->rate)) &&
               put(object, "channels", json_integer(o->channels)) && put(object, "frames", json_integer(o->frames)) &&
               put_columns(object, e, o);
    if (!o->status)
        good = good && put_history(object, e, o);
    return as_line(object, good);
}

/* Replaces an older file by an empty one. It is not truncated in place, so that it survives if this fails. */
static gpuconv_status replace_file(const char *path, int *fd, gpuconv_error *error) {
    gc_output_file *file;
    gpuconv_status status = gc_output_file_new(path, GC_OUTPUT_PROGRAM_PATH, NULL, &file, error);
    if (!status)
        status = gc_output_file_release(file, fd, error);
    gc_output_file_free(file);
    return status;
}

gpuconv_status gc_results_open(const char *path, bool append, gc_results **results, gpuconv_error *error) {
    *results = NULL;
    gc_results *r = gc_calloc(1, sizeof *r);
    if (!r || !(r->path = strdup(path))) {
        free(r);
        return gc_fail_memory(error, path);
    }
    gpuconv_status status = GPUCONV_OK;
    if (!append)
        status = replace_file(path, &r->fd, error);
    else if ((r->fd = gc_output_file_append(path, error)) < 0)
        status = GPUCONV_ERROR_FILE;
    if (status) {
        free(r->path);
        free(r);
        return status;
    }
    *results = r;
    return GPUCONV_OK;
}

gpuconv_status gc_results_repair(gc_results *r, int64_t bytes, bool newline, gpuconv_error *error) {
    struct stat st;
    bool err = fstat(r->fd, &st) != 0 || (st.st_size > bytes && ftruncate(r->fd, bytes) != 0);
    if (err)
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", r->path, strerror(errno));
    return newline ? gc_results_write(r, "\n", 1, error) : GPUCONV_OK;
}

/* Removes the written part of an incomplete line. If that fails, --resume removes it. */
static void remove_incomplete_line(const gc_results *r, const char *lines, size_t written) {
    struct stat st;
    size_t part = 0;
    while (part < written && lines[written - 1 - part] != '\n')
        part++;
    if (part > 0 && fstat(r->fd, &st) == 0 && st.st_size >= (off_t)part)
        (void)!ftruncate(r->fd, st.st_size - (off_t)part);
}

gpuconv_status gc_results_write(gc_results *r, const char *lines, size_t bytes, gpuconv_error *error) {
    for (size_t done = 0; done < bytes;) {
        ssize_t n = write(r->fd, lines + done, bytes - done);
        if (n > 0) {
            done += (size_t)n;
        } else if (n == 0 || errno != EINTR) {
            gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", r->path, strerror(errno));
            remove_incomplete_line(r, lines, done);
            return GPUCONV_ERROR_FILE;
        }
    }
    return GPUCONV_OK;
}

gpuconv_status gc_results_close(gc_results *r, gpuconv_error *error) {
    if (!r)
        return GPUCONV_OK;
    gpuconv_status status =
        close(r->fd) == 0 ? GPUCONV_OK : gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", r->path, strerror(errno));
    free(r->path);
    free(r);
    return status;
}
