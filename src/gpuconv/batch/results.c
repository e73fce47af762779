/* The list of results. */
#include "results.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct gc_results {
    int fd;
    char *path;
};

static bool put(json_t *object, const char *name, json_t *value) {
    return json_object_set_new(object, name, value) == 0;
}

char *gc_result_line(const gc_entry *e, const gc_outcome *o) {
    json_t *object = json_object();
    bool good = put(object, "line", json_integer(e->line));
    const char *texts[] = {e->input, e->response, e->output}, *names[] = {"input", "response", "output"};
    for (int i = 0; i < 3; i++) /* a name that is no UTF-8 is left out of the list, not made up */
        if (texts[i] && json_object_set_new(object, names[i], json_string(texts[i])) != 0)
            (void)put(object, names[i], json_null());
    good = good && put(object, "status", json_string(o->status == GPUCONV_OK ? "done" : "failed"));
    if (o->status) {
        json_t *reason = json_string(o->reason);
        good = good && put(object, "reason", reason ? reason : json_string("a reason that is no UTF-8"));
    } else {
        good = good && put(object, "where", json_string(o->where)) && put(object, "audio", json_real(o->audio)) &&
               put(object, "clipped", json_integer(o->clipped));
    }
    good = good && put(object, "seconds", json_real(o->seconds));
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

gpuconv_status gc_results_open(const char *path, bool append, gc_results **results, gpuconv_error *error) {
    *results = NULL;
    gc_results *r = gc_calloc(1, sizeof *r);
    if (!r || !(r->path = strdup(path))) {
        free(r);
        return gc_fail_memory(error, path);
    }
    r->fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND | (append ? 0 : O_TRUNC), 0666);
    if (r->fd < 0) {
        gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", path, strerror(errno));
        free(r->path);
        free(r);
        return GPUCONV_ERROR_FILE;
    }
    *results = r;
    return GPUCONV_OK;
}

gpuconv_status gc_results_write(gc_results *r, const char *lines, size_t bytes, gpuconv_error *error) {
    while (bytes > 0) {
        ssize_t n = write(r->fd, lines, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", r->path, strerror(errno));
        lines += n;
        bytes -= (size_t)n;
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
