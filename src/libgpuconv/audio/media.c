/* Loads the module that decodes what libsndfile does not read. */
#include "media.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/module.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/os.h"
#include "pipe_source.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static gc_media_decode_function *module;

static void load(void) {
    char why[400];
    *(void **)&module = gc_module_load("gpuconv-media", GC_MEDIA_DECODE, why, sizeof why);
}

/* Decides whether a file with this name is probably one that needs the module. */
static bool is_likely(const char *path) {
    static const char *const extensions[] = {"m4a", "m4b", "mp4", "aac", "wma", "webm",
                                             "mka", "amr", "ac3", "ape", "mov"};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof extensions / sizeof *extensions; i++)
        if (gc_same_word(dot + 1, extensions[i]))
            return true;
    return false;
}

gpuconv_status gc_media_spool(int from, int64_t size, const char *path, const volatile int *cancel, gc_media *media,
                              int *fd, gpuconv_error *error) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    char folder[4096];
    *fd = -1;
    *media = (gc_media){.frames = 0};
    pthread_once(&once, load);
    if (!module && is_likely(path))
        (void)snprintf(media->why, sizeof media->why, "%s",
                       "; M4A, AAC, WMA and others need the module gpuconv-media, which is built with libavformat-dev");
    if (!module)
        return GPUCONV_OK;
    int spool = gc_os_spool_file(folder, sizeof folder);
    if (spool < 0)
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: cannot create a temporary file in %s: %s", path, folder,
                       strerror(errno));
    if (module(from, size, spool, cancel, media) && lseek(spool, 0, SEEK_SET) == 0) {
        *fd = spool;
        return GPUCONV_OK;
    }
    close(spool);
    if (cancel && *cancel)
        return gc_fail(error, GPUCONV_ERROR_CANCELLED, "%s: interrupted", path);
    if (media->recognised)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: not readable as audio: %s", path, media->why);
    *media->why = '\0';
    return GPUCONV_OK;
}
