/* Saves and restores the LV2 plug-in's state: the paths of its responses. A path that cannot be loaded is saved again.
 */
#include "plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the data of a host feature; NULL: not supported. */
static void *find_feature(const LV2_Feature *const *features, const char *uri) {
    for (; features && *features; features++)
        if (strcmp((*features)->URI, uri) == 0)
            return (*features)->data;
    return NULL;
}

/* Frees a path that the host allocated. */
static void free_path(const LV2_Feature *const *features, char *path) {
    const LV2_State_Free_Path *host = find_feature(features, LV2_STATE__freePath);
    if (host)
        host->free_path(host->handle, path);
    else
        free(path);
}

/* Stores the path of a response. If there is no second response, stores an empty string for it: an empty path is not
 * possible, because hosts take it for the path of a folder. */
static LV2_State_Status save_slot(plugin *p, int s, LV2_State_Store_Function store, LV2_State_Handle to,
                                  const LV2_Feature *const *features) {
    LV2_State_Map_Path *map = find_feature(features, LV2_STATE__mapPath);
    char path[PATH_MOST];
    pthread_mutex_lock(&p->path_lock);
    memcpy(path, *p->slot[s].missing ? p->slot[s].missing : p->slot[s].path, sizeof path);
    pthread_mutex_unlock(&p->path_lock);
    if (!*path)
        return s == 0 || p->form.is_space
                   ? LV2_STATE_SUCCESS
                   : store(to, p->uri.response[s], path, 1, p->uri.string, LV2_STATE_IS_POD | LV2_STATE_IS_PORTABLE);
    char *mapped = map ? map->abstract_path(map->handle, path) : NULL;
    const char *stored = mapped ? mapped : path;
    LV2_State_Status status = store(to, p->uri.response[s], stored, strlen(stored) + 1, p->uri.path,
                                    LV2_STATE_IS_POD | (map ? LV2_STATE_IS_PORTABLE : 0));
    if (mapped)
        free_path(features, mapped);
    return status;
}

static LV2_State_Status save(LV2_Handle handle, LV2_State_Store_Function store, LV2_State_Handle to, uint32_t flags,
                             const LV2_Feature *const *features) {
    plugin *p = handle;
    LV2_State_Status status = p->map ? LV2_STATE_SUCCESS : LV2_STATE_ERR_NO_FEATURE;
    (void)flags;
    for (int s = 0; s < SLOTS && status == LV2_STATE_SUCCESS; s++)
        status = save_slot(p, s, store, to, features);
    return status;
}

/* Loads a saved response, or unloads the second one if the state says that there was none. */
static LV2_State_Status restore_slot(plugin *p, int s, LV2_State_Retrieve_Function retrieve, LV2_State_Handle from,
                                     const LV2_Feature *const *features) {
    size_t size = 0;
    uint32_t type = 0, stored_flags = 0;
    LV2_State_Map_Path *map = find_feature(features, LV2_STATE__mapPath);
    gpuconv_error error = {GPUCONV_OK, ""};
    const char *stored = p->map ? retrieve(from, p->uri.response[s], &size, &type, &stored_flags) : NULL;
    if (!stored)
        return LV2_STATE_SUCCESS; /* a state without a response keeps the current one */
    const bool none = s == 1 && type == p->uri.string && size == 1 && !*stored;
    if (!none &&
        (type != p->uri.path || size < 2 || size > PATH_MOST || memchr(stored, '\0', size) != stored + size - 1)) {
        gc_lv2_log_error(p, "the response in the saved state is not a path of 1 to 4095 bytes");
        return LV2_STATE_ERR_BAD_TYPE;
    }
    char *mapped = map && !none ? map->absolute_path(map->handle, stored) : NULL;
    load l = {.slot = s, .path = mapped ? mapped : stored, .keep = !none};
    bool good = strlen(l.path) < PATH_MOST;
    if (!good)
        (void)snprintf(error.message, sizeof error.message,
                       "the path of the response in the saved state is longer than 4095 bytes");
    good = good && gc_lv2_load(p, &l, &error);
    if (good) {
        (void)snprintf(p->slot[s].announced_path, sizeof p->slot[s].announced_path, "%s", l.path);
        p->slot[s].emptied = none;
    } else {
        gc_lv2_log_error(p, error.message);
        (void)snprintf(p->error, sizeof p->error, "%.400s%s", error.message,
                       atomic_load(&p->slot[s].is_missing) ? "; the session keeps it, and it is loaded when it is back"
                                                           : "");
    }
    if (mapped)
        free_path(features, mapped);
    return good ? LV2_STATE_SUCCESS : LV2_STATE_ERR_UNKNOWN;
}

/* Loads the saved responses. Hosts do not call run meanwhile, so the audio thread's members may be written. */
static LV2_State_Status restore(LV2_Handle handle, LV2_State_Retrieve_Function retrieve, LV2_State_Handle from,
                                uint32_t flags, const LV2_Feature *const *features) {
    plugin *p = handle;
    LV2_State_Status status = LV2_STATE_SUCCESS;
    (void)flags;
    *p->error = '\0';
    p->announce = true;
    for (int s = 0; s < (p->form.is_space ? 1 : SLOTS); s++) {
        const LV2_State_Status now = restore_slot(p, s, retrieve, from, features);
        status = status == LV2_STATE_SUCCESS ? now : status;
    }
    return status;
}

const LV2_State_Interface gc_lv2_state = {save, restore};
