/* Loads responses for the LV2 plug-in on the host's worker thread. */
#include "plugin.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const double fade_seconds = 0.05;

/* The message to the worker and its response. Only `length` + 1 bytes of the path are sent. */
typedef struct message {
    uint32_t load_number; /* set by the worker */
    uint32_t length;
    char path[PATH_MOST];
} message;

void gc_lv2_log_error(plugin *p, const char *text) {
    lv2_log_error(&p->log, "gpuconv: %s\n", text);
}

/* Copies a mono response to both outputs. Frees `mono`. */
static gpuconv_status widen(const plugin *p, gpuconv_ir *mono, gpuconv_ir **ir, gpuconv_error *error) {
    const float *taps[] = {gpuconv_ir_taps(mono, 0, 0), gpuconv_ir_taps(mono, 0, 0)};
    gpuconv_ir *stereo = NULL;
    gpuconv_status status = gpuconv_ir_new(taps, 2, gpuconv_ir_frames(mono), p->rate, &stereo, error);
    if (!status)
        status = gpuconv_ir_route(stereo, 1, ir, error);
    gpuconv_ir_free(stereo);
    gpuconv_ir_free(mono);
    return status;
}

/* Reads a response and prepares it for the plug-in's channels. With one input, a mono response goes to both outputs. */
static gpuconv_status prepare(const plugin *p, const char *path, gpuconv_ir **ir, gpuconv_error *error) {
    gpuconv_preparation preparation = gpuconv_preparation_default();
    gpuconv_ir *prepared;
    gpuconv_status status = gpuconv_ir_prepare(path, &preparation, p->inputs, p->rate, &prepared, error);
    if (status || gpuconv_ir_outputs(prepared) == OUTPUTS) {
        *ir = prepared;
        return status;
    }
    if (gpuconv_ir_outputs(prepared) == 1)
        return widen(p, prepared, ir, error);
    gpuconv_ir_free(prepared);
    error->status = GPUCONV_ERROR_TOPOLOGY;
    (void)snprintf(error->message, sizeof error->message,
                   "%.400s: the response must have 1 or 2 channels, or 4 for stereo input", path);
    return error->status;
}

/* Loads a response; the caller holds `loading`. */
static bool load_locked(plugin *p, const char *path, uint32_t *number, gpuconv_error *error) {
    gpuconv_ir *ir;
    gpuconv_status status = prepare(p, path, &ir, error);
    if (status)
        return false;
    if (p->realtime) {
        status = gpuconv_realtime_swap(p->realtime, ir, fade_seconds, error);
    } else {
        gpuconv_realtime_config config = {.size = sizeof config, .rate = p->rate, .block = CHUNK};
        status = gpuconv_realtime_new(ir, &config, &p->realtime, error);
    }
    if (!status) {
        atomic_store(&p->lead, (double)gpuconv_ir_lead(ir));
        pthread_mutex_lock(&p->path_lock);
        (void)snprintf(p->path, sizeof p->path, "%s", path);
        pthread_mutex_unlock(&p->path_lock);
        *number = atomic_fetch_add(&p->load_count, 1) + 1;
    }
    gpuconv_ir_free(ir);
    return !status;
}

bool gc_lv2_load(plugin *p, const char *path, uint32_t *number, gpuconv_error *error) {
    pthread_mutex_lock(&p->loading);
    bool good = load_locked(p, path, number, error);
    pthread_mutex_unlock(&p->loading);
    return good;
}

static uint32_t message_size(const message *m) {
    return (uint32_t)(offsetof(message, path) + m->length + 1);
}

/* Copies a message from the host's buffer, which may be unaligned. @return false if it is malformed */
static bool copy_message(message *m, uint32_t size, const void *data) {
    if (size <= offsetof(message, path) || size > sizeof *m)
        return false;
    memcpy(m, data, size);
    return m->length < PATH_MOST && message_size(m) == size &&
           memchr(m->path, '\0', m->length + 1) == m->path + m->length;
}

void gc_lv2_schedule_load(const plugin *p, const char *path, size_t length) {
    message m = {.length = (uint32_t)length};
    if (!p->worker || length == 0 || length >= PATH_MOST)
        return;
    memcpy(m.path, path, length);
    m.path[length] = '\0';
    (void)p->worker->schedule_work(p->worker->handle, message_size(&m), &m);
}

/* Loads the response that a message names; runs on the worker thread. */
static LV2_Worker_Status work(LV2_Handle handle, LV2_Worker_Respond_Function respond, LV2_Worker_Respond_Handle to,
                              uint32_t size, const void *data) {
    plugin *p = handle;
    message m;
    gpuconv_error error = {GPUCONV_OK, ""};
    if (!copy_message(&m, size, data))
        return LV2_WORKER_ERR_UNKNOWN;
    if (!gc_lv2_load(p, m.path, &m.load_number, &error)) {
        gc_lv2_log_error(p, error.message);
        return LV2_WORKER_ERR_UNKNOWN;
    }
    return respond(to, message_size(&m), &m);
}

/* Receives the worker's response on the audio thread; the next block announces the path to the host. */
static LV2_Worker_Status work_response(LV2_Handle handle, uint32_t size, const void *data) {
    plugin *p = handle;
    message m;
    if (!copy_message(&m, size, data))
        return LV2_WORKER_ERR_UNKNOWN;
    if (m.load_number == atomic_load(&p->load_count)) { /* otherwise another response has been loaded since */
        memcpy(p->announced_path, m.path, m.length + 1);
        p->announce = true;
    }
    return LV2_WORKER_SUCCESS;
}

const LV2_Worker_Interface gc_lv2_worker = {work, work_response, NULL};
