/* Collects the responses that are played: files, and the files of folders. */
#include "play_files.h"

#include "cli/cli.h"
#include "libgpuconv/core/number.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int add(gc_play_files *files, char *path) {
    if (!path)
        return gc_print_error(GC_EXIT_FAILED, "out of memory");
    if (files->count == GC_PLAY_RESPONSES_MOST) {
        free(path);
        return gc_print_error(GC_EXIT_USAGE, "more than %d responses; name fewer, or a smaller folder; try --help",
                              GC_PLAY_RESPONSES_MOST);
    }
    files->path[files->count++] = path;
    return GC_EXIT_DONE;
}

static int is_response(const struct dirent *entry) {
    static const char *const endings[] = {".wav", ".flac", ".aif",  ".aiff", ".ogg",  ".opus",  ".mp3",
                                          ".caf", ".w64",  ".rf64", ".au",   ".conf", ".matrix"};
    const char *ending = strrchr(entry->d_name, '.');
    for (size_t i = 0;
         ending && ending != entry->d_name && *entry->d_name != '.' && i < sizeof endings / sizeof *endings; i++)
        if (gc_same_word(ending, endings[i]))
            return 1;
    return 0;
}

static int compare(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int add_folder(gc_play_files *files, const char *folder) {
    struct dirent **list;
    int n = scandir(folder, &list, is_response, compare), result = GC_EXIT_DONE;
    if (n < 0)
        return gc_print_error(GC_EXIT_FAILED, "%s: %s", folder, strerror(errno));
    for (int i = 0; i < n; i++) {
        char *path = NULL;
        if (result == GC_EXIT_DONE)
            result = add(files, asprintf(&path, "%s/%s", folder, list[i]->d_name) < 0 ? NULL : path);
        free(list[i]);
    }
    free(list);
    if (n == 0)
        return gc_print_error(GC_EXIT_FAILED,
                              "%s: the folder has no response; responses end in .wav, .flac or the like", folder);
    return result;
}

int gc_play_files_collect(gc_play_files *files, const char *const *paths, int count) {
    int result = GC_EXIT_DONE;
    files->count = 0;
    for (int i = 0; i < count && result == GC_EXIT_DONE; i++) {
        struct stat s;
        if (stat(paths[i], &s) == 0 && S_ISDIR(s.st_mode))
            result = add_folder(files, paths[i]);
        else
            result = add(files, strdup(paths[i]));
    }
    return result;
}

void gc_play_files_free(gc_play_files *files) {
    for (int i = 0; i < files->count; i++)
        free(files->path[i]);
    files->count = 0;
}
