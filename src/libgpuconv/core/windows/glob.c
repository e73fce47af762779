/* glob, one component of the pattern after the other: a component without wildcards is appended to every path, another
 * one is compared with the names in every folder. */
#include "glob.h"

#include "posix.h"

#include <stdbool.h>

/* Matches a set such as [a-z] or [!x]; *pattern is behind its bracket and moves behind the set. */
static bool match_set(const char **pattern, unsigned char c) {
    const unsigned char *at = (const unsigned char *)*pattern;
    const bool negated = *at == '!' || *at == '^';
    bool found = false;
    at += negated;
    for (bool first = true; *at && (first || *at != ']'); first = false) {
        const unsigned char low = *at++;
        unsigned char high = low;
        if (at[0] == '-' && at[1] && at[1] != ']') {
            high = at[1];
            at += 2;
        }
        found |= c >= low && c <= high;
    }
    *pattern = (const char *)at + (*at == ']');
    return found != negated;
}

static bool match(const char *pattern, const char *name) {
    const char *star = NULL, *star_name = NULL;
    while (*name) {
        const char *next = pattern;
        bool same = false;
        if (*pattern == '*') {
            star = ++pattern;
            star_name = name;
            continue;
        }
        if (*pattern == '[') {
            next++;
            same = match_set(&next, (unsigned char)*name);
        } else if (*pattern) {
            next += *pattern == '\\' && pattern[1] ? 2 : 1;
            same = *pattern == '?' || next[-1] == *name;
        }
        if (same) {
            pattern = next;
            name++;
        } else if (star) {
            pattern = star;
            name = ++star_name;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}

static bool has_wildcard(const char *text, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (strchr("*?[", text[i]))
            return true;
        else if (text[i] == '\\')
            i++;
    return false;
}

/* Appends the path FOLDER + NAME. @return false without memory */
static bool append(glob_t *paths, const char *folder, const char *name) {
    const size_t room = strlen(folder) + strlen(name) + 1;
    char *path = malloc(room), **larger;
    if (!path)
        return false;
    (void)snprintf(path, room, "%s%s", folder, name);
    if ((paths->gl_pathc & (paths->gl_pathc - 1)) == 0) {
        larger = realloc((void *)paths->gl_pathv, 2 * (paths->gl_pathc + 1) * sizeof *larger);
        if (!larger) {
            free(path);
            return false;
        }
        paths->gl_pathv = larger;
    }
    paths->gl_pathv[paths->gl_pathc++] = path;
    return true;
}

/* Appends a component without wildcards, whose backslashes quote, to a path, if the file exists or `more` follows. */
static bool append_plain(glob_t *next, const char *folder, const char *component, bool more) {
    char name[GC_WINDOWS_PATH], path[2 * GC_WINDOWS_PATH];
    struct stat st;
    size_t n = 0;
    for (; *component && n < sizeof name - 1; component++)
        if (*component != '\\' || !component[1])
            name[n++] = *component;
    name[n] = '\0';
    (void)snprintf(path, sizeof path, "%s%s", folder, name);
    return (!more && *name && stat(path, &st) != 0) || append(next, folder, name);
}

/* Appends the names in a folder that match. */
static bool append_matches(glob_t *next, const char *folder, const char *component, bool more) {
    struct dirent **list;
    struct stat st;
    char path[2 * GC_WINDOWS_PATH];
    bool good = true;
    const size_t slash = strcspn(component, "/");
    char pattern[GC_WINDOWS_PATH];
    (void)snprintf(pattern, sizeof pattern, "%.*s", (int)slash, component);
    const int count = scandir(*folder ? folder : ".", &list, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        const char *name = list[i]->d_name;
        (void)snprintf(path, sizeof path, "%s%s%s", folder, name, more ? "/" : "");
        if (good && (*name != '.' || *pattern == '.') && match(pattern, name) && (!more || stat(path, &st) == 0))
            good = append(next, "", path);
        free(list[i]);
    }
    if (count >= 0)
        free((void *)list);
    return good;
}

/* Extends every path by one component. @return false without memory */
static bool extend(glob_t *paths, const char *component, size_t length, bool more) {
    glob_t next = {0};
    char text[GC_WINDOWS_PATH];
    bool good = true;
    (void)snprintf(text, sizeof text, "%.*s%s", (int)length, component, more ? "/" : "");
    for (size_t i = 0; i < paths->gl_pathc && good; i++)
        good = has_wildcard(component, length) ? append_matches(&next, paths->gl_pathv[i], text, more)
                                               : append_plain(&next, paths->gl_pathv[i], text, more);
    gc_windows_globfree(paths);
    *paths = next;
    return good;
}

static int compare(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int gc_windows_glob(const char *pattern, glob_t *found) {
    const char *home = getenv("USERPROFILE");
    const bool tilde = home && pattern[0] == '~' && (pattern[1] == '/' || !pattern[1]);
    *found = (glob_t){0};
    bool good = append(found, "", tilde ? home : "");
    for (pattern += tilde; good && *pattern;) {
        const size_t length = strcspn(pattern, "/");
        const bool more = pattern[length] == '/';
        good = extend(found, pattern, length, more);
        pattern += length + more;
    }
    if (!good) {
        gc_windows_globfree(found);
        return GLOB_NOSPACE;
    }
    if (found->gl_pathc > 1)
        qsort((void *)found->gl_pathv, found->gl_pathc, sizeof *found->gl_pathv, compare);
    return found->gl_pathc > 0 ? 0 : GLOB_NOMATCH;
}

void gc_windows_globfree(glob_t *found) {
    for (size_t i = 0; i < found->gl_pathc; i++)
        free(found->gl_pathv[i]);
    free((void *)found->gl_pathv);
    *found = (glob_t){0};
}
