/* The list of a folder in the plug-in's window. */
#include "window.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

static bool looks_like_a_response(const char *name) {
    static const char *const endings[] = {".wav", ".flac", ".aif",  ".aiff", ".ogg",  ".opus",   ".mp3",
                                          ".caf", ".w64",  ".rf64", ".au",   ".conf", ".matrix", ".txt"};
    const char *ending = strrchr(name, '.');
    for (size_t i = 0; ending && i < sizeof endings / sizeof *endings; i++)
        if (strcasecmp(ending, endings[i]) == 0)
            return true;
    return false;
}

static int compare(const void *a, const void *b) {
    const folder_entry *l = a, *r = b;
    if (l->is_folder != r->is_folder)
        return l->is_folder ? -1 : 1;
    return strcmp(l->name, r->name); /* ".." precedes names that are not hidden */
}

void folder_free(folder *f) {
    for (int i = 0; i < f->count; i++)
        free(f->entry[i].name);
    free(f->entry);
    f->entry = NULL;
    f->count = 0;
}

static bool add(folder *f, const char *name, bool is_folder) {
    if (f->count % 64 == 0) {
        folder_entry *larger = realloc(f->entry, (size_t)(f->count + 64) * sizeof *larger);
        if (!larger)
            return false;
        f->entry = larger;
    }
    char *copy = strdup(name);
    if (!copy)
        return false;
    f->entry[f->count++] = (folder_entry){copy, is_folder};
    return true;
}

bool folder_read(folder *f, const char *path) {
    enum { MOST = 20000 };
    char real[WINDOW_PATH_MOST];
    (void)snprintf(real, sizeof real, "%s", path); /* `path` may be f->path */
    folder_free(f);
    (void)snprintf(f->path, sizeof f->path, "%s", real);
    bool good = strcmp(real, "/") == 0 || add(f, "..", true);
    DIR *d = opendir(real);
    for (struct dirent *e; d && good && f->count < MOST && (e = readdir(d));) {
        char full[WINDOW_PATH_MOST + sizeof e->d_name];
        struct stat s;
        (void)snprintf(full, sizeof full, "%s/%s", real, e->d_name);
        if (*e->d_name == '.' || stat(full, &s) != 0)
            continue;
        if (S_ISDIR(s.st_mode) || (S_ISREG(s.st_mode) && looks_like_a_response(e->d_name)))
            good = add(f, e->d_name, S_ISDIR(s.st_mode));
    }
    if (d)
        closedir(d);
    if (f->count)
        qsort(f->entry, (size_t)f->count, sizeof *f->entry, compare);
    return good;
}
