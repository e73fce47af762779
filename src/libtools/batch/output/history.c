/* Parses results.jsonl and compares it with the existing files. */
#include "history.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/map.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/pool.h"
#include "libtools/batch/entry/text.h"
#include "results.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct gc_history {
    const gc_manifest *manifest;
    gc_past_line *past;
    gc_map outputs; /* from an output to its entry */

    /* The line that is being read. */
    gc_buffer line;
    bool too_long;
    int64_t parsed, complete; /* bytes; complete: up to the end of the last line */

    /* Used by gc_history_judge. */
    const char *folder;
    const gc_packer *packer;
    unsigned char *done;
    gc_map shared; /* from the path of a response that several entries share to its state */
    pthread_mutex_t lock;
};

gc_history *gc_history_new(const gc_manifest *m) {
    gc_history *h = gc_calloc(1, sizeof *h);
    if (!h)
        return NULL;
    *h = (gc_history){.manifest = m};
    pthread_mutex_init(&h->lock, NULL);
    h->past = gc_calloc(gc_max(1, m->entries), sizeof *h->past);
    bool good = h->past != NULL;
    for (int64_t i = 0; i < m->entries && good; i++) {
        gc_entry *e = &m->entry[i];
        void **first = e->refusal ? NULL : gc_map_put(&h->outputs, e->output, strlen(e->output));
        good = e->refusal || first;
        if (first && !*first)
            *first = e;
    }
    if (good)
        return h;
    gc_history_free(h);
    return NULL;
}

void gc_history_free(gc_history *h) {
    if (!h)
        return;
    pthread_mutex_destroy(&h->lock);
    free(h->past);
    gc_map_free(&h->outputs);
    free(h->line.bytes);
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

/* Finds the entry with the output that a line names. *entry NULL: none. @return false: out of memory */
static bool find_entry(const gc_history *h, const json_t *object, const gc_entry **entry) {
    const char *output = json_string_value(json_object_get(object, "output"));
    const char *hex = json_string_value(json_object_get(object, "output_bytes"));
    char *path = !output ? NULL : hex ? gc_text_unhex(hex) : strdup(output);
    *entry = NULL;
    if (!path)
        return !output;
    gc_path_normalise(path);
    *entry = gc_map_get(&h->outputs, path, strlen(path));
    free(path);
    return true;
}

static bool parse_state(const json_t *object, const char *name, gc_state *state) {
    const char *text = json_string_value(json_object_get(object, name));
    *state = (gc_state){.size = -1};
    return text && gc_state_parse(text, state);
}

/* Fills *p from a "done" line. */
static void parse_past_line(gc_past_line *p, const gc_entry *e, const json_t *object) {
    char *settings = gc_settings_of(e);
    const char *given = json_string_value(json_object_get(object, "settings"));
    const char *version = json_string_value(json_object_get(object, "version"));
    const char *where = json_string_value(json_object_get(object, "where"));
    const json_t *size = json_object_get(object, "output_size"), *early = json_object_get(object, "early_size");
    *p = (gc_past_line){.known = true, .done = true, .output_size = -1};
    p->on_gpu = where && strncmp(where, "cuda", strlen("cuda")) == 0;
    p->same_input_name = has_name(object, "input", "input_bytes", e->input);
    p->same_response_name = has_name(object, "response", "response_bytes", e->response);
    p->same_settings = given && settings && strcmp(given, settings) == 0;
    free(settings);
    p->same_version = version && strcmp(version, gpuconv_version()) == 0;
    (void)parse_state(object, "input_was", &p->input);
    (void)parse_state(object, "response_was", &p->response);
    (void)parse_state(object, "noise_was", &p->noise);
    if (json_is_integer(size))
        p->output_size = json_integer_value(size);
    p->audio = json_number_value(json_object_get(object, "audio"));
    p->rate = (int)json_integer_value(json_object_get(object, "rate"));
    p->channels = (int)json_integer_value(json_object_get(object, "channels"));
    p->frames = json_integer_value(json_object_get(object, "frames"));
    p->early_size = json_is_integer(early) ? json_integer_value(early) : -1;
}

/* Parses a line. *understood: it is a JSON object. @return false: out of memory */
static bool parse_line(gc_history *h, const char *line, size_t length, bool *understood) {
    const gc_entry *e;
    json_error_t why;
    json_t *object = json_loadb(line, length, 0, &why);
    if (!object && json_error_code(&why) == json_error_out_of_memory)
        return false;
    const char *status = json_string_value(json_object_get(object, "status"));
    *understood = json_is_object(object);
    bool good = find_entry(h, object, &e);
    if (good && e && status) {
        gc_past_line *p = &h->past[e - h->manifest->entry];
        if (strcmp(status, "done") == 0)
            parse_past_line(p, e, object);
        else if (json_integer_value(json_object_get(object, "line")) == e->line)
            p->done = false; /* a line of another entry was refused, because this one has the output */
    }
    json_decref(object);
    return good;
}

/* Appends bytes to the line that is being read, unless it becomes too long. @return false: out of memory */
static bool append(gc_history *h, const char *bytes, size_t count) {
    h->too_long |= h->line.length + count > GC_TEXT_LINE;
    if (h->too_long)
        return true;
    return gc_buffer_append(&h->line, bytes, count);
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
        if (!h->too_long && !parse_line(h, h->line.bytes, h->line.length, &understood))
            return false;
        h->line.length = 0;
        h->too_long = false;
        h->complete = h->parsed;
    }
    return true;
}

bool gc_history_end(gc_history *h, int64_t *complete_bytes, bool *newline) {
    bool understood = false;
    bool good = h->line.length == 0 || h->too_long || parse_line(h, h->line.bytes, h->line.length, &understood);
    *newline = understood;
    *complete_bytes = understood ? h->parsed : h->complete;
    h->line.length = 0;
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

/* Returns the state of a response; that of a shared one is determined once. */
static gc_state response_state(gc_history *h, const char *path, bool is_shared) {
    if (!is_shared)
        return gc_state_of_response(path);
    pthread_mutex_lock(&h->lock);
    void **known = gc_map_put(&h->shared, path, strlen(path));
    if (known && !*known && (*known = malloc(sizeof(gc_state))))
        *(gc_state *)*known = gc_state_of_response(path);
    const gc_state state = known && *known ? *(gc_state *)*known : (gc_state){.size = -1};
    pthread_mutex_unlock(&h->lock);
    return state;
}

/* Returns the joined state of all responses or inputs of an entry. */
static gc_state sources_state(gc_history *h, const gc_entry *e, bool responses) {
    gc_state joined = {.size = -1};
    for (int i = 0; i < gc_entry_sources(e); i++) {
        const gc_source s = gc_entry_source(e, i);
        const gc_state state =
            responses ? response_state(h, s.response, i == 0 && e->shared) : gc_state_of_path(s.input);
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
        gc_state state = gc_state_of_path(noise), other;
        if (e->extra->noise_response) {
            other = gc_state_of_response(e->extra->noise_response);
            state = gc_state_join(&state, &other);
        }
        if (!gc_state_same(&p->noise, &state))
            return false;
    }
    return !early || packed ||
           (snprintf(path, sizeof path, "%s/%s", h->folder, early) < (int)sizeof path && stat(path, &st) == 0 &&
            S_ISREG(st.st_mode) && st.st_size == p->early_size);
}

/* Decides whether an entry is done whose output exists and has `bytes` bytes. */
static bool is_done(gc_history *h, const gc_past_line *p, const gc_entry *e, int64_t bytes, bool packed) {
    if (!(p->done && p->same_version && p->same_settings && p->output_size == bytes && p->same_input_name &&
          p->same_response_name))
        return false;
    const gc_state input = sources_state(h, e, false), response = sources_state(h, e, true);
    return gc_state_same(&p->input, &input) && gc_state_same(&p->response, &response) && same_rest(h, p, e, packed);
}

static void judge_entry(void *context, int64_t i, int worker) {
    gc_history *h = context;
    const gc_entry *e = &h->manifest->entry[i];
    const gc_past_line *p = &h->past[i];
    struct stat st;
    char path[8192];
    int64_t bytes;
    (void)worker;
    h->done[i] = false;
    if (e->refusal || !p->known || snprintf(path, sizeof path, "%s/%s", h->folder, e->output) >= (int)sizeof path)
        return;
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
        h->done[i] = is_done(h, p, e, st.st_size, false);
    else if (h->packer && gc_packer_has(h->packer, i, &bytes))
        h->done[i] = is_done(h, p, e, bytes, true);
}

gpuconv_status gc_history_judge(gc_history *h, const char *folder, const gc_packer *packer, int threads,
                                unsigned char *done, gpuconv_error *error) {
    h->folder = folder;
    h->packer = packer;
    h->done = done;
    gc_pool *pool = gc_pool_new(h->manifest->entries < 64 ? 1 : threads);
    if (!pool)
        return gc_fail_memory(error, "the results of earlier runs");
    gc_pool_run(pool, judge_entry, h, h->manifest->entries);
    gc_pool_free(pool);
    for (int64_t i = 0; i < h->shared.slots; i++)
        free(h->shared.slot[i].value);
    gc_map_free(&h->shared);
    return gc_cancelled() ? gc_fail_cancelled(error, "the results of earlier runs") : GPUCONV_OK;
}
