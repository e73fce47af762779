/* Making folders. */
#include "folder.h"

#include "error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

gpuconv_status gc_make_folders(const char *path, gpuconv_error *error) {
    char *part = strdup(path);
    if (!part)
        return gc_fail_memory(error, path);
    gpuconv_status status = GPUCONV_OK;
    /* The nearest first: most often it is there. */
    char *slash = strrchr(part, '/');
    if (slash && slash != part) {
        *slash = '\0';
        struct stat st;
        bool there = stat(part, &st) == 0 && S_ISDIR(st.st_mode);
        *slash = '/';
        for (char *at = strchr(part + 1, '/'); at && !there && !status; at = strchr(at + 1, '/')) {
            *at = '\0';
            if (mkdir(part, 0777) != 0 && errno != EEXIST)
                status = gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", path, strerror(errno));
            *at = '/';
        }
    }
    free(part);
    return status;
}
