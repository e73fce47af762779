/* The list of a folder in the plug-in's window. */
#include "window.h"

#include <ctype.h>
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

/* Compares names without case; a number is compared by its value, so that "hall 2" precedes "hall 10". */
static int compare_names(const char *a, const char *b) {
    while (*a && *b) {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            a += strspn(a, "0");
            b += strspn(b, "0");
            size_t l = strspn(a, "0123456789"), r = strspn(b, "0123456789");
            int order = l != r ? (l < r ? -1 : 1) : strncmp(a, b, l);
            if (order)
                return order;
            a += l;
            b += r;
        } else {
            int order = tolower((unsigned char)*a++) - tolower((unsigned char)*b++);
            if (order)
                return order;
        }
    }
    return (unsigned char)*a - (unsigned char)*b;
}

static int compare(const void *a, const void *b) {
    const folder_entry *l = a, *r = b;
    if (l->is_folder != r->is_folder)
        return l->is_folder ? -1 : 1;
    if (strcmp(l->name, "..") == 0 || strcmp(r->name, "..") == 0)
        return strcmp(l->name, "..") == 0 ? -1 : 1;
    int order = compare_names(l->name, r->name);
    return order ? order : strcmp(l->name, r->name);
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

/* ---- The folder of the last window ------------------------------------------------------------------------------- */

/* Writes the path of the file in which it is stored, and makes its folders if `make`. @return false: there is none */
static bool find_store(char store[WINDOW_PATH_MOST], bool make) {
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    const bool given = state && *state == '/';
    if (!given && (!home || *home != '/'))
        return false;
    int length =
        snprintf(store, WINDOW_PATH_MOST, "%s%s/gpuconv/folder", given ? state : home, given ? "" : "/.local/state");
    if (length < 0 || length >= WINDOW_PATH_MOST)
        return false;
    for (char *slash = strchr(store + 1, '/'); make && slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(store, 0700); /* most of them exist; opening the file tells */
        *slash = '/';
    }
    return true;
}

void folder_remember(const char *path) {
    char store[WINDOW_PATH_MOST];
    FILE *file = find_store(store, true) ? fopen(store, "w") : NULL;
    if (!file)
        return;
    const size_t length = strlen(path);
    bool good = fwrite(path, 1, length, file) == length;
    if (fclose(file) != 0 || !good)
        (void)remove(store);
}

bool folder_recall(char path[WINDOW_PATH_MOST]) {
    char store[WINDOW_PATH_MOST];
    struct stat s;
    FILE *file = find_store(store, false) ? fopen(store, "r") : NULL;
    if (!file)
        return false;
    size_t length = fread(path, 1, WINDOW_PATH_MOST - 1, file);
    path[length] = '\0';
    (void)fclose(file);
    return *path == '/' && strlen(path) == length && stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}
