/* Creating folders. */
#include "folder.h"

#include "error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

gpuconv_status gc_create_parent_folders(const char *path, gpuconv_error *error) {
    char *folder = strdup(path);
    if (!folder)
        return gc_fail_memory(error, path);
    gpuconv_status status = GPUCONV_OK;
    /* Checks the innermost folder first: usually it exists already. */
    char *slash = strrchr(folder, '/');
    if (slash && slash != folder) {
        *slash = '\0';
        struct stat st;
        bool exists = stat(folder, &st) == 0 && S_ISDIR(st.st_mode);
        *slash = '/';
        for (char *at = strchr(folder + 1, '/'); at && !exists && !status; at = strchr(at + 1, '/')) {
            *at = '\0';
            if (mkdir(folder, 0777) != 0 && errno != EEXIST)
                status = gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", path, strerror(errno));
            *at = '/';
        }
    }
    free(folder);
    return status;
}
