/* Runs compilers and other programs in a folder of their own. */
#include "tool.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_WORDS = 64 };

static const double poll_interval = 5e-3; /* seconds */

/* Starts the program, in a folder through the shell. Returns 0 or an errno value. */
static int start(const gc_process_request *request, pid_t *child) {
    const char *words[MAX_WORDS] = {"/bin/sh", "-c", "cd \"$0\" && exec \"$@\"", request->folder};
    size_t count = request->folder ? 4 : 0;
    for (const char *const *word = request->arguments; *word; word++) {
        if (count + 1 == MAX_WORDS)
            return E2BIG;
        words[count++] = *word;
    }
    words[count] = NULL;
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC),
              output = request->output ? open(request->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : 2;
    int err = nothing < 0 || output < 0 ? errno : 0;
    if (!err)
        err = gc_os_start(words[0], (char *const *)words, environ, (const int[]){nothing, output, output}, child);
    if (nothing >= 0)
        close(nothing);
    if (request->output && output >= 0)
        close(output);
    return err;
}

gpuconv_status gc_process_run(const gc_process_request *request, gc_process_result *result, gpuconv_error *error) {
    pid_t child;
    int status = 0;
    bool cancelled = false;
    *result = (gc_process_result){.status = -1};
    int err = start(request, &child);
    if (err)
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: cannot be started: %s", request->arguments[0], strerror(err));
    double end = gc_now() + request->seconds;
    while (!gc_os_wait(child, poll_interval, cancelled || result->timed_out, &status)) {
        cancelled = cancelled || gc_cancelled();
        result->timed_out = result->timed_out || gc_now() > end;
    }
    if (cancelled)
        return gc_fail(error, GPUCONV_ERROR_CANCELLED, "%s: interrupted", request->arguments[0]);
    if (status < 0)
        result->signal = -status;
    else
        result->status = status;
    return GPUCONV_OK;
}

bool gc_process_find(const char *name, const char *variable, const char *folder, char *path, size_t room) {
    const char *given = variable ? getenv(variable) : NULL;
    if (given && strchr(given, '/') && access(given, X_OK) == 0 && strlen(given) < room) {
        (void)snprintf(path, room, "%s", given);
        return true;
    }
    return gc_os_find_program(name, path, room) ||
           (folder && snprintf(path, room, "%s/%s", folder, name) < (int)room && access(path, X_OK) == 0);
}

/* ---- The folder -------------------------------------------------------------------------------------------------- */

gpuconv_status gc_work_folder_new(gc_work_folder *folder, gpuconv_error *error) {
    const char *parent = getenv("TMPDIR");
    int length =
        snprintf(folder->path, sizeof folder->path, "%s/gpulab-XXXXXX", parent && *parent == '/' ? parent : "/tmp");
    if (length >= (int)sizeof folder->path - 100) {
        folder->path[0] = '\0';
        return gc_fail(error, GPUCONV_ERROR_FILE, "TMPDIR is too long");
    }
    if (!mkdtemp(folder->path)) {
        gc_fail(error, GPUCONV_ERROR_FILE, "%s: cannot create a folder: %s", folder->path, strerror(errno));
        folder->path[0] = '\0';
        return GPUCONV_ERROR_FILE;
    }
    return GPUCONV_OK;
}

void gc_work_folder_remove(gc_work_folder *folder) {
    DIR *entries = folder->path[0] ? opendir(folder->path) : NULL;
    const struct dirent *entry;
    while (entries && (entry = readdir(entries)) != NULL) /* links are removed, not followed; there are no folders */
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            (void)unlinkat(dirfd(entries), entry->d_name, 0);
    if (entries) {
        (void)closedir(entries);
        (void)rmdir(folder->path);
    }
    folder->path[0] = '\0';
}

const char *gc_work_path(const gc_work_folder *folder, const char *name, char *path, size_t room) {
    (void)snprintf(path, room, "%s/%s", folder->path, name);
    return path;
}

gpuconv_status gc_work_write(const gc_work_folder *folder, const char *name, const char *text, gpuconv_error *error) {
    char path[4200];
    FILE *to = fopen(gc_work_path(folder, name, path, sizeof path), "w");
    bool bad = !to || fputs(text, to) == EOF;
    if (to && fclose(to) != 0)
        bad = true;
    return bad ? gc_fail(error, GPUCONV_ERROR_FILE, "%s: cannot be written: %s", path, strerror(errno)) : GPUCONV_OK;
}

char *gc_work_read(const gc_work_folder *folder, const char *name, size_t most) {
    char path[4200];
    FILE *from = fopen(gc_work_path(folder, name, path, sizeof path), "r");
    char *text = from ? gc_calloc((int64_t)most + 1, 1) : NULL;
    if (text)
        text[fread(text, 1, most, from)] = '\0';
    if (from)
        (void)fclose(from);
    return text;
}

/* ---- Compilers --------------------------------------------------------------------------------------------------- */

gpuconv_status gc_work_compile(const gc_work_folder *folder, const char *const *arguments, double seconds,
                               bool *compiled, gpuconv_error *error) {
    char path[4200];
    gc_process_result result;
    gpuconv_status err =
        gc_process_run(&(gc_process_request){arguments, folder->path,
                                             gc_work_path(folder, "messages.txt", path, sizeof path), seconds},
                       &result, error);
    if (!err && result.timed_out)
        err = gc_fail(error, GPUCONV_ERROR_FILE, "the compiler did not end within %.0f s", seconds);
    *compiled = !err && result.status == 0;
    return err;
}

/* Beside the folder of the program are Python's packages, or in a checkout the folder that scripts/cuda-compiler makes.
 */
bool gc_find_nvcc(char *path, size_t room) {
    static const char *const packages[] = {"../nvidia/cu13/bin", "../cuda/nvidia/cu13/bin"};
    char folder[4200], program[4000];
    const char *root = getenv("CUDA_PATH");
    (void)snprintf(folder, sizeof folder, "%s/bin", root && *root ? root : "/usr/local/cuda");
    bool found = gc_process_find("nvcc", "CUDACXX", folder, path, room);
    char *slash = gc_os_program_path(program, sizeof program) ? strrchr(program, '/') : NULL;
    for (int i = 0; !found && slash && i < 2; i++) {
        (void)snprintf(folder, sizeof folder, "%.*s%s", (int)(slash + 1 - program), program, packages[i]);
        found = gc_process_find("nvcc", NULL, folder, path, room);
    }
    return found;
}
