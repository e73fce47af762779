/* Parses results.jsonl and compares it with the existing files. */
#include "history.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/hash.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/pool.h"
#include "place.h"
#include "results.h"
#include "text.h"
#include "text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The state of a response that several entries share. */
typedef struct shared {
    const char *path; /* NULL: a free slot */
    gc_state state;
} shared;

struct gc_history {
    const gc_manifest *manifest;
    gc_past_line *past;
    int64_t *slot; /* hash table from an output to the index of its entry, plus 1; 0: a free slot */
    uint64_t mask;

    /* The line that is being read. */
    char *line;
    size_t used, capacity;
    bool too_long;
    int64_t parsed, complete; /* bytes; complete: up to the end of the last line */

    /* Used by gc_history_judge. */
    const char *folder;
    const gc_packer *packer;
    unsigned char *verdict;
    shared *shared; /* hash table by path, as many as slots */
    pthread_mutex_t lock;
};

gc_history *gc_history_new(const gc_manifest *m) {
    gc_history *h = gc_calloc(1, sizeof *h);
    if (!h)
        return NULL;
    int64_t slots = gc_power_of_two(gc_max(64, 2 * m->entries));
    *h = (gc_history){.manifest = m, .mask = (uint64_t)slots - 1};
    pthread_mutex_init(&h->lock, NULL);
    h->past = gc_calloc(gc_max(1, m->entries), sizeof *h->past);
    h->slot = gc_calloc(slots, sizeof *h->slot);
    if (!h->past || !h->slot) {
        gc_history_free(h);
        return NULL;
    }
    for (int64_t i = 0; i < m->entries; i++) {
        if (m->entry[i].refusal)
            continue;
        uint64_t at = gc_hash(m->entry[i].output);
        while (h->slot[at & h->mask])
            at++;
        h->slot[at & h->mask] = i + 1;
    }
    return h;
}

void gc_history_free(gc_history *h) {
    if (!h)
        return;
    pthread_mutex_destroy(&h->lock);
    free(h->past);
    free(h->slot);
    free(h->line);
    free(h);
}

const gc_past_line *gc_history_last_line(const gc_history *h, int64_t entry) {
    return &h->past[entry];
}

/* ---- Lines ------------------------------------------------------------------------------------------------------- */

/* Compares a name in a line, or its exact bytes if they are given, with an entry's. */
static bool has_name(const json_t *object, const char *name, const char *exact, const char *text) {
    const char *hex = json_string_value(json_object_get(object, exact));
    const char *given = json_string_value(json_object_get(object, name));
    return hex ? gc_text_is_hex_of(hex, text) : given && strcmp(given, text) == 0;
}

/* Finds the entry with the output that a line names. *index -1: none. @return false: out of memory */
static bool find_entry(const gc_history *h, const json_t *object, int64_t *index) {
    const char *output = json_string_value(json_object_get(object, "output"));
    const char *hex = json_string_value(json_object_get(object, "output_bytes"));
    size_t digits = hex ? strlen(hex) : 0;
    char *path = !output ? NULL : hex ? gc_calloc((int64_t)digits / 2 + 1, 1) : strdup(output);
    *index = -1;
    if (!path)
        return !output;
    for (size_t i = 0; i + 1 < digits; i += 2) {
        const char pair[3] = {hex[i], hex[i + 1], '\0'};
        path[i / 2] = (char)strtol(pair, NULL, 16);
    }
    gc_path_normalise(path);
    for (uint64_t at = gc_hash(path); h->slot[at & h->mask]; at++)
        if (strcmp(h->manifest->entry[h->slot[at & h->mask] - 1].output, path) == 0) {
            *index = h->slot[at & h->mask] - 1;
            break;
        }
    free(path);
    return true;
}

static bool parse_state(const json_t *object, const char *name, gc_state *state) {
    const char *text = json_string_value(json_object_get(object, name));
    *state = (gc_state){.size = -1};
    return text && gc_state_parse(text, state);
}

/* Returns a number of the line's columns; 0 if it has none. */
static double column_number(const json_t *object, const char *name) {
    const char *text = json_string_value(json_object_get(json_object_get(object, "columns"), name));
    double value = 0;
    return text && gc_number_parse(text, &value) ? value : 0;
}

/* Fills *p from a "done" or "replacing" line. */
static void parse_past_line(gc_past_line *p, const gc_entry *e, const json_t *object, bool replacing) {
    char *settings = gc_settings_of(e);
    const char *given = json_string_value(json_object_get(object, "settings"));
    const char *version = json_string_value(json_object_get(object, "version"));
    const json_t *size = json_object_get(object, "output_size"), *early = json_object_get(object, "early_size");
    const char *where = json_string_value(json_object_get(object, "where"));
    *p = (gc_past_line){.known = true, .done = !replacing};
    p->same_input_name = has_name(object, "input", "input_bytes", e->input);
    p->same_response_name = has_name(object, "response", "response_bytes", e->response);
    p->same_settings = given && settings && strcmp(given, settings) == 0;
    free(settings);
    p->same_version = version && strcmp(version, gpuconv_version()) == 0;
    (void)parse_state(object, "input_was", &p->input);
    (void)parse_state(object, "response_was", &p->response);
    (void)parse_state(object, "noise_was", &p->noise);
    p->in_place = parse_state(object, "output_was", &p->output);
    if (!p->in_place && json_is_integer(size))
        p->output.size = json_integer_value(size);
    (void)snprintf(p->where, sizeof p->where, "%s", where && strlen(where) < sizeof p->where ? where : "");
    p->seconds = json_number_value(json_object_get(object, "seconds"));
    p->audio = json_number_value(json_object_get(object, "audio"));
    p->clipped = json_integer_value(json_object_get(object, "clipped"));
    p->rate = (int)json_integer_value(json_object_get(object, "rate"));
    p->channels = (int)json_integer_value(json_object_get(object, "channels"));
    p->frames = json_integer_value(json_object_get(object, "frames"));
    p->early_size = json_is_integer(early) ? json_integer_value(early) : -1;
    p->offset = column_number(object, "offset");
    p->noise_offset = column_number(object, "noise_offset");
}

/* Parses a line. *understood: it is a JSON object. @return false: out of memory */
static bool parse_line(gc_history *h, const char *line, size_t length, bool *understood) {
    int64_t i;
    json_error_t why;
    json_t *object = json_loadb(line, length, 0, &why);
    if (!object && json_error_code(&why) == json_error_out_of_memory)
        return false;
    const char *status = json_string_value(json_object_get(object, "status"));
    *understood = json_is_object(object);
    bool good = find_entry(h, object, &i);
    if (good && i >= 0 && status) {
        gc_past_line *p = &h->past[i];
        bool replacing = strcmp(status, "replacing") == 0;
        if (replacing || strcmp(status, "done") == 0)
            parse_past_line(p, &h->manifest->entry[i], object, replacing);
        else if (json_integer_value(json_object_get(object, "line")) == h->manifest->entry[i].line)
            p->done = false; /* a line of another entry was refused, because this one has the output */
    }
    json_decref(object);
    return good;
}

/* Appends bytes to the line that is being read, unless it becomes too long. @return false: out of memory */
static bool append(gc_history *h, const char *bytes, size_t count) {
    h->too_long |= h->used + count > GC_TEXT_LINE;
    if (h->too_long)
        return true;
    if (h->used + count >= h->capacity) {
        size_t capacity = (size_t)gc_power_of_two((int64_t)(h->used + count) + 1);
        char *larger = realloc(h->line, capacity);
        if (!larger)
            return false;
        h->line = larger;
        h->capacity = capacity;
    }
    memcpy(h->line + h->used, bytes, count);
    h->used += count;
    h->line[h->used] = '\0';
    return true;
}

bool gc_history_parse(gc_history *h, const char *bytes, size_t count) {
    bool understood;
    while (count > 0) {
        const char *end = memchr(bytes, '\n', count);
        size_t n = end ? (size_t)(end - bytes) : count;
        if (!append(h, bytes, n))
            return false;
        n += end != NULL;
        h->parsed += (int64_t)n;
        bytes += n;
        count -= n;
        if (!end)
            break;
        if (!h->too_long && !parse_line(h, h->line, h->used, &understood))
            return false;
        h->used = 0;
        h->too_long = false;
        h->complete = h->parsed;
    }
    return true;
}

bool gc_history_end(gc_history *h, int64_t *complete_bytes, bool *newline) {
    bool understood = false;
    bool good = h->used == 0 || h->too_long || parse_line(h, h->line, h->used, &understood);
    *newline = understood;
    *complete_bytes = understood ? h->parsed : h->complete;
    h->used = 0;
    return good;
}

gpuconv_status gc_history_read(gc_history *h, const char *path, int64_t *complete_bytes, bool *newline,
                               gpuconv_error *error) {
    char bytes[1 << 14];
    struct stat st;
    *complete_bytes = 0;
    *newline = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not block */
    if (fd < 0 && errno == ENOENT)
        return GPUCONV_OK;
    if (fd < 0)
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", path, strerror(errno));
    gpuconv_status status = GPUCONV_OK;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        status = gc_fail(error, GPUCONV_ERROR_FILE, "%s: is not a regular file, so --resume cannot read it", path);
    for (ssize_t n = 1; n != 0 && !status;) {
        n = read(fd, bytes, sizeof bytes);
        if (n < 0 && errno != EINTR)
            status = gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", path, strerror(errno));
        else if (n > 0 && !gc_history_parse(h, bytes, (size_t)n))
            status = gc_fail_memory(error, path);
    }
    close(fd);
    if (!status && !gc_history_end(h, complete_bytes, newline))
        status = gc_fail_memory(error, path);
    return status;
}

/* ---- Files ------------------------------------------------------------------------------------------------------- */

/* Returns the state of a response or noise; that of a shared one is determined once. */
static gc_state shared_state(gc_history *h, const char *path, bool is_shared) {
    if (!is_shared)
        return gc_state_of_response(path);
    pthread_mutex_lock(&h->lock);
    uint64_t at = gc_hash(path);
    while (h->shared[at & h->mask].path && strcmp(h->shared[at & h->mask].path, path) != 0)
        at++;
    shared *s = &h->shared[at & h->mask];
    if (!s->path)
        *s = (shared){path, gc_state_of_response(path)};
    gc_state state = s->state;
    pthread_mutex_unlock(&h->lock);
    return state;
}

/* Returns the joined state of all responses or inputs of an entry. */
static gc_state sources_state(gc_history *h, const gc_entry *e, bool responses) {
    gc_state joined = {.size = -1};
    for (int i = 0; i < gc_entry_sources(e); i++) {
        const gc_source s = gc_entry_source(e, i);
        const gc_state state =
            responses ? shared_state(h, s.response, i == 0 && e->shared && h->shared) : gc_state_of_path(s.input);
        joined = i ? gc_state_join(&joined, &state) : state;
    }
    return joined;
}

/* Compares what an entry needs besides input and response: noise, and the second output. */
static bool same_rest(const gc_history *h, const gc_past_line *p, const gc_entry *e, bool packed) {
    const char *noise = gc_entry_noise(e), *early = gc_entry_early(e);
    char path[8192];
    struct stat st;
    if (noise) {
        const gc_state state = gc_state_of_path(noise);
        if (!gc_state_same(&p->noise, &state))
            return false;
    }
    return !early || packed ||
           (snprintf(path, sizeof path, "%s/%s", h->folder, early) < (int)sizeof path && stat(path, &st) == 0 &&
            S_ISREG(st.st_mode) && st.st_size == p->early_size);
}

static bool is_same_file(const gc_state *state, const struct stat *st) {
    return state->size >= 0 && state->device == (uint64_t)st->st_dev && state->inode == st->st_ino;
}

/* Judges an entry whose output exists as the regular file with the status `st`. */
static gc_verdict judge_file(gc_history *h, const gc_past_line *p, const gc_entry *e, const char *output,
                             const struct stat *st) {
    const gc_state input = sources_state(h, e, false);
    const bool replaced = p->in_place && is_same_file(&input, st);
    if (p->in_place && !gc_state_is_at(&p->output, output))
        return GC_VERDICT_DO;
    if (!p->in_place && !(p->done && p->same_version && p->output.size >= 0 && st->st_size == p->output.size))
        return GC_VERDICT_DO;
    const gc_state response = sources_state(h, e, true);
    const bool same = p->same_settings && same_rest(h, p, e, false) &&
                      (replaced || (p->same_input_name && gc_state_same(&p->input, &input))) && p->same_response_name &&
                      gc_state_same(&p->response, &response);
    if (same)
        return p->done ? GC_VERDICT_DONE : GC_VERDICT_UNRECORDED;
    return replaced ? GC_VERDICT_INPUT_REPLACED : GC_VERDICT_DO;
}

/* Judges an entry whose output, of `bytes` bytes, is in a shard. */
static gc_verdict judge_packed(gc_history *h, const gc_past_line *p, const gc_entry *e, int64_t bytes) {
    const gc_state input = sources_state(h, e, false), response = sources_state(h, e, true);
    bool same = p->done && p->same_version && p->same_settings && p->output.size == bytes && p->same_input_name &&
                p->same_response_name && gc_state_same(&p->input, &input) && gc_state_same(&p->response, &response) &&
                same_rest(h, p, e, true);
    return same ? GC_VERDICT_DONE : GC_VERDICT_DO;
}

static void judge_entry(void *context, int64_t i, int worker) {
    gc_history *h = context;
    const gc_entry *e = &h->manifest->entry[i];
    const gc_past_line *p = &h->past[i];
    struct stat st;
    char path[8192];
    int64_t bytes;
    (void)worker;
    h->verdict[i] = GC_VERDICT_DO;
    if (e->refusal || !p->known || snprintf(path, sizeof path, "%s/%s", h->folder, e->output) >= (int)sizeof path)
        return;
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
        h->verdict[i] = (unsigned char)judge_file(h, p, e, path, &st);
    else if (h->packer && gc_packer_has(h->packer, i, &bytes))
        h->verdict[i] = (unsigned char)judge_packed(h, p, e, bytes);
}

gpuconv_status gc_history_judge(gc_history *h, const char *folder, const gc_packer *packer, int threads,
                                unsigned char *verdict, gpuconv_error *error) {
    h->folder = folder;
    h->packer = packer;
    h->verdict = verdict;
    h->shared = gc_calloc((int64_t)h->mask + 1, sizeof *h->shared);
    gc_pool *pool = gc_pool_new(h->manifest->entries < 64 ? 1 : threads);
    bool good = h->shared && pool;
    if (good)
        gc_pool_run(pool, judge_entry, h, h->manifest->entries);
    gc_pool_free(pool);
    free(h->shared);
    h->shared = NULL;
    if (good && gc_cancelled()) /* the pool has skipped entries */
        return gc_fail_cancelled(error, "the results of earlier runs");
    return good ? GPUCONV_OK : gc_fail_memory(error, "the results of earlier runs");
}
