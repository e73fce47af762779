/* The list of a folder in the plug-in's window. */
#include "window.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static bool looks_like_a_response(const folder *f, const char *name) {
    static const char *const endings[] = {".wav",  ".flac", ".aif", ".aiff", ".ogg", ".opus",   ".mp3", ".caf", ".w64",
                                          ".rf64", ".au",   ".npy", ".conf", ".txt", ".matrix", ".csv", ".dat", ".tsv"};
    const char *ending = strrchr(name, '.');
    if (f->sets)
        return ending && strcasecmp(ending, ".sofa") == 0;
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

static bool is_below(const folder_entry *e) {
    return *e->name != '/' && strchr(e->name, '/');
}

static int compare(const void *a, const void *b) {
    const folder_entry *l = a, *r = b;
    if (is_below(l) != is_below(r))
        return is_below(l) ? 1 : -1;
    if (l->is_folder != r->is_folder)
        return l->is_folder ? -1 : 1;
    if (strcmp(l->name, "..") == 0 || strcmp(r->name, "..") == 0)
        return strcmp(l->name, "..") == 0 ? -1 : 1;
    int order = compare_names(l->name, r->name);
    return order ? order : strcmp(l->name, r->name);
}

void folder_free(folder *f) {
    for (int i = 0; i < f->total; i++)
        free(f->entry[i].name);
    free(f->entry);
    f->entry = NULL;
    f->total = f->count = f->seen = 0;
    f->is_deep = false;
}

static bool add(folder *f, const char *name, bool is_folder) {
    if (f->total % 64 == 0) {
        folder_entry *larger = realloc(f->entry, (size_t)(f->total + 64) * sizeof *larger);
        if (!larger)
            return false;
        f->entry = larger;
    }
    char *copy = strdup(name);
    if (!copy)
        return false;
    f->entry[f->total++] = (folder_entry){copy, is_folder, 0};
    return true;
}

const folder_entry *folder_at(const folder *f, int row) {
    return &f->entry[f->entry[row].shown];
}

bool folder_path_of(const folder *f, const folder_entry *e, char path[WINDOW_PATH_MOST]) {
    const bool whole = *e->name == '/';
    const int length = snprintf(path, WINDOW_PATH_MOST, "%s%s%s", whole ? "" : f->path,
                                whole || strcmp(f->path, "/") == 0 ? "" : "/", e->name);
    return length >= 0 && length < WINDOW_PATH_MOST;
}

/* Adds the entries of a folder. @param below the path from the list's folder to it, with a slash at its end; "": the
 * list's folder itself. @return false: out of memory */
static bool add_level(folder *f, const char *below) {
    enum { MOST = 20000 }; /* entries that are looked at */
    char name[WINDOW_PATH_MOST + 2 * sizeof((struct dirent *)NULL)->d_name], full[2 * sizeof name];
    struct stat s;
    bool good = true;
    (void)snprintf(full, sizeof full, "%s/%s", f->path, below);
    DIR *d = opendir(full);
    for (struct dirent *e; d && good && f->seen < MOST && (e = readdir(d)); f->seen++) {
        (void)snprintf(name, sizeof name, "%s%s", below, e->d_name);
        (void)snprintf(full, sizeof full, "%s/%s", f->path, name);
        if (*e->d_name == '.' || stat(full, &s) != 0)
            continue;
        if (S_ISDIR(s.st_mode) || (S_ISREG(s.st_mode) && looks_like_a_response(f, e->d_name)))
            good = add(f, name, S_ISDIR(s.st_mode));
    }
    if (d)
        closedir(d);
    return good;
}

/* Adds the contents of the folders in the list, down to DEEPEST levels. Links are not followed. */
static void add_below(folder *f) {
    enum { DEEPEST = 5 };
    char path[WINDOW_PATH_MOST];
    struct stat s;
    bool good = true;
    for (int i = 0; i < f->total && good; i++) { /* grows meanwhile */
        int level = 1;
        for (const char *c = f->entry[i].name; *c; c++)
            level += *c == '/';
        if (!f->entry[i].is_folder || level > DEEPEST || strcmp(f->entry[i].name, "..") == 0 ||
            !folder_path_of(f, &f->entry[i], path) || lstat(path, &s) != 0 || S_ISLNK(s.st_mode))
            continue;
        (void)snprintf(path, sizeof path, "%s/", f->entry[i].name);
        good = add_level(f, path);
    }
    f->is_deep = true;
    qsort(f->entry, (size_t)f->total, sizeof *f->entry, compare);
}

void folder_search(folder *f, const char *text) {
    if (*text && !f->is_deep && !f->is_recent && f->total)
        add_below(f);
    f->count = 0;
    for (int i = 0; i < f->total; i++) {
        const char *slash = strrchr(f->entry[i].name, '/');
        if (*text ? strcasestr(slash ? slash : f->entry[i].name, text) != NULL : !is_below(&f->entry[i]))
            f->entry[f->count++].shown = i;
    }
}

bool folder_read(folder *f, const char *path) {
    char real[WINDOW_PATH_MOST];
    (void)snprintf(real, sizeof real, "%s", path); /* `path` may be f->path */
    folder_free(f);
    f->is_recent = false;
    (void)snprintf(f->path, sizeof f->path, "%s", real);
    const bool good = (strcmp(real, "/") == 0 || add(f, "..", true)) && add_level(f, "");
    if (f->total)
        qsort(f->entry, (size_t)f->total, sizeof *f->entry, compare);
    folder_search(f, "");
    return good;
}

/* ---- Recent files ------------------------------------------------------------------------------------------------ */

/* Opens the file in which they are stored, one a line, the newest first; for writing with its folders. @return NULL if
 * it cannot be opened */
static FILE *open_store(bool writes) {
    char store[WINDOW_PATH_MOST];
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    const bool given = state && *state == '/';
    if (!given && (!home || *home != '/'))
        return NULL;
    const int length =
        snprintf(store, sizeof store, "%s%s/gpuconv/recent", given ? state : home, given ? "" : "/.local/state");
    if (length < 0 || length >= (int)sizeof store)
        return NULL;
    for (char *slash = strchr(store + 1, '/'); writes && slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(store, 0700); /* most of them exist; opening the file tells */
        *slash = '/';
    }
    return fopen(store, writes ? "w" : "r");
}

/* Adds the files of the store that exist and are of this kind, or all. @return false: out of memory */
static bool add_recent(folder *f, bool all) {
    enum { MOST = 30 };
    char line[WINDOW_PATH_MOST + 1];
    FILE *file = open_store(false);
    bool good = true;
    while (file && good && f->total < MOST && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        if (*line == '/' && (all || (looks_like_a_response(f, line) && access(line, R_OK) == 0)))
            good = add(f, line, false);
    }
    if (file)
        (void)fclose(file);
    return good;
}

bool folder_read_recent(folder *f) {
    folder_free(f);
    f->is_recent = true;
    *f->path = '\0';
    const bool good = add_recent(f, false);
    folder_search(f, "");
    return good;
}

static bool write_line(FILE *file, const char *text) {
    const size_t length = strlen(text);
    return fwrite(text, 1, length, file) == length && fwrite("\n", 1, 1, file) == 1;
}

void folder_remember(const char *path) {
    folder old = {.total = 0};
    if (*path != '/' || strchr(path, '\n') || !add_recent(&old, true)) {
        folder_free(&old);
        return;
    }
    FILE *file = open_store(true);
    bool good = file && write_line(file, path);
    for (int i = 0; i < old.total && good; i++)
        good = strcmp(old.entry[i].name, path) == 0 || write_line(file, old.entry[i].name);
    if (file)
        (void)fclose(file); /* a file that ends early has fewer names */
    folder_free(&old);
}

bool folder_recall(const folder *f, char path[WINDOW_PATH_MOST]) {
    folder recent = {.sets = f->sets};
    const bool found = add_recent(&recent, false) && recent.total > 0;
    if (found) {
        (void)snprintf(path, WINDOW_PATH_MOST, "%s", recent.entry[0].name);
        char *slash = strrchr(path, '/');
        slash[slash == path] = '\0';
    }
    folder_free(&recent);
    return found;
}
