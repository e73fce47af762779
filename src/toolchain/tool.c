/*
 * Runs compilers and other programs in a folder of their own.
 *
 * A program is the leader of a process group, which is killed as a whole: nvcc starts other programs.
 */
#include "tool.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { POLL_INTERVAL = 5 * 1000 * 1000 /* ns */, MAX_WORDS = 64 };

/* Adds the actions for the standard streams. Returns 0 or an errno value. */
static int add_actions(const gc_process_request *request, posix_spawn_file_actions_t *actions) {
    int err = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
    if (!err && request->output)
        err = posix_spawn_file_actions_addopen(actions, 1, request->output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    else if (!err)
        err = posix_spawn_file_actions_adddup2(actions, 2, 1);
    if (!err && request->output)
        err = posix_spawn_file_actions_adddup2(actions, 1, 2);
    return err;
}

/* Starts the program, in a folder through the shell: posix_spawn has no action for it before glibc 2.29. */
static int start(const gc_process_request *request, pid_t *child) {
    const char *words[MAX_WORDS] = {"/bin/sh", "-c", "cd \"$0\" && exec \"$@\"", request->folder};
    size_t count = request->folder ? 4 : 0;
    for (const char *const *word = request->arguments; *word; word++) {
        if (count + 1 == MAX_WORDS)
            return E2BIG;
        words[count++] = *word;
    }
    words[count] = NULL;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int err = posix_spawn_file_actions_init(&actions);
    if (err)
        return err;
    err = add_actions(request, &actions);
    if (!err && (err = posix_spawnattr_init(&attributes)) == 0) {
        (void)posix_spawnattr_setsigdefault(&attributes, &all);
        (void)posix_spawnattr_setsigmask(&attributes, &none);
        (void)posix_spawnattr_setpgroup(&attributes, 0);
        (void)posix_spawnattr_setflags(&attributes,
                                       POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
        err = posix_spawn(child, words[0], &actions, &attributes, (char *const *)words, environ);
        (void)posix_spawnattr_destroy(&attributes);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return err;
}

gpuconv_status gc_process_run(const gc_process_request *request, gc_process_result *result, gpuconv_error *error) {
    const struct timespec interval = {0, POLL_INTERVAL};
    pid_t child, ended;
    int status = 0;
    bool cancelled = false;
    *result = (gc_process_result){.status = -1};
    int err = start(request, &child);
    if (err)
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: cannot be started: %s", request->arguments[0], strerror(err));
    double end = gc_now() + request->seconds;
    while ((ended = waitpid(child, &status, WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
        cancelled = cancelled || gc_cancelled();
        result->timed_out = result->timed_out || gc_now() > end;
        if (cancelled || result->timed_out)
            (void)kill(-child, SIGKILL);
        (void)nanosleep(&interval, NULL);
    }
    if (cancelled)
        return gc_fail(error, GPUCONV_ERROR_CANCELLED, "%s: interrupted", request->arguments[0]);
    if (ended == child && WIFEXITED(status))
        result->status = WEXITSTATUS(status);
    if (ended == child && WIFSIGNALED(status))
        result->signal = WTERMSIG(status);
    return GPUCONV_OK;
}

/* Writes FOLDER/NAME and returns whether it can be executed. */
static bool is_program(const char *folder, size_t length, const char *name, char *path, size_t room) {
    int written = snprintf(path, room, "%.*s/%s", (int)length, folder, name);
    return written > 0 && (size_t)written < room && access(path, X_OK) == 0;
}

bool gc_process_find(const char *name, const char *variable, const char *folder, char *path, size_t room) {
    const char *given = variable ? getenv(variable) : NULL, *at = getenv("PATH");
    if (given && strchr(given, '/') && access(given, X_OK) == 0 && strlen(given) < room) {
        (void)snprintf(path, room, "%s", given);
        return true;
    }
    while (at && *at) {
        size_t length = strcspn(at, ":");
        if (length > 0 && at[0] == '/' && is_program(at, length, name, path, room))
            return true;
        at += length + (at[length] == ':');
    }
    return folder && is_program(folder, strlen(folder), name, path, room);
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
    ssize_t length = readlink("/proc/self/exe", program, sizeof program);
    while (length > 0 && program[length - 1] != '/')
        length--;
    for (int i = 0; !found && length > 0 && i < 2; i++) {
        (void)snprintf(folder, sizeof folder, "%.*s%s", (int)length, program, packages[i]);
        found = gc_process_find("nvcc", NULL, folder, path, room);
    }
    return found;
}
