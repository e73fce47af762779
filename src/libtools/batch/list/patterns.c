/* Lists the files that match a pattern. Braces are expanded here and not by glob, because the alternative that a file
 * belongs to must be known. */
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libtools/batch/entry/text.h"
#include "list.h"

#include <dirent.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { ALTERNATIVES_MAX = 1 << 16 };

typedef struct search {
    const char *pattern;
    size_t fixed;      /* bytes of the pattern's folders before its first wildcard or brace */
    int64_t capacity;  /* of the matches */
    int alternatives;  /* so far */
    gc_matches *found; /* owned by the caller */
    gpuconv_error *error;
} search;

void gc_matches_free(gc_matches *m) {
    for (int64_t i = 0; i < m->count; i++)
        free(m->match[i].path);
    free(m->match);
    *m = (gc_matches){0};
}

/* Counts the components of a path that are not empty. */
static int components(const char *path) {
    int count = 0;
    for (; *path; path += strcspn(path, "/")) {
        path += strspn(path, "/");
        count += *path != '\0';
    }
    return count;
}

/* Returns the part of an alternative after the fixed folders, without a leading slash, ~user/, ./ or ../, which would
 * lead out of the output folder. */
static const char *variable_part(const char *alternative, size_t fixed) {
    const char *at = alternative + fixed;
    if (fixed == 0 && *at == '~')
        at += strcspn(at, "/");
    for (at += strspn(at, "/"); strncmp(at, "./", 2) == 0 || strncmp(at, "../", 3) == 0; at += strspn(at, "/"))
        at += strcspn(at, "/");
    return at;
}

/* Returns the last `count` components of a path. */
static const char *last_components(const char *path, int count) {
    const char *at = path + strlen(path);
    for (; count > 0 && at > path; count--) {
        while (at > path && at[-1] == '/')
            at--;
        while (at > path && at[-1] != '/')
            at--;
    }
    return at;
}

static gpuconv_status add(search *s, const char *path, int kept) {
    gc_matches *m = s->found;
    if (m->count == s->capacity) {
        int64_t capacity = gc_max(64, 2 * s->capacity);
        gc_match *larger = gc_calloc(capacity, sizeof *larger);
        if (!larger)
            return gc_fail_memory(s->error, "file names");
        if (m->count)
            memcpy(larger, m->match, (size_t)m->count * sizeof *larger);
        free(m->match);
        m->match = larger;
        s->capacity = capacity;
    }
    char *copy = strdup(path);
    if (!copy)
        return gc_fail_memory(s->error, "file names");
    m->match[m->count++] = (gc_match){copy, last_components(copy, kept)};
    return GPUCONV_OK;
}

/* Adds the files that match a pattern without braces; `kept` components of each path are kept. */
static gpuconv_status find_by_glob(search *s, const char *pattern, int kept) {
    glob_t found = {0};
    int err = glob(pattern, GLOB_TILDE, NULL, &found);
    gpuconv_status status = err == GLOB_NOSPACE ? gc_fail_memory(s->error, "file names") : GPUCONV_OK;
    if (!status && gc_cancelled())
        status = gc_fail_cancelled(s->error, s->pattern);
    for (size_t i = 0; i < found.gl_pathc && !status && !err; i++)
        status = add(s, found.gl_pathv[i], kept);
    globfree(&found);
    return status;
}

/* Returns the first ** of a pattern that is a whole component, or NULL. */
static const char *find_deep(const char *pattern) {
    for (const char *at = strstr(pattern, "**"); at; at = strstr(at + 1, "**"))
        if ((at == pattern || at[-1] == '/') && at[2] == '/')
            return at;
    return NULL;
}

/* Returns "FOLDER/REST" with the wildcards in the folder's name quoted, to be freed. */
static char *join_quoted(const char *folder, const char *rest) {
    char *made = gc_calloc(2 * (int64_t)strlen(folder) + (int64_t)strlen(rest) + 2, 1), *to = made;
    for (; made && *folder; *to++ = *folder++)
        if (strchr("*?[\\", *folder))
            *to++ = '\\';
    if (made && to > made && to[-1] != '/')
        *to++ = '/';
    if (made)
        memcpy(to, rest, strlen(rest) + 1);
    return made;
}

/* Matches the rest of a pattern in a folder and in the folders below it, in the order of their names. Links to folders
 * are not followed, so that the search ends. `folder`: "" or a path. */
static gpuconv_status find_below(search *s, const char *folder, const char *rest, int kept) {
    struct dirent **list = NULL;
    char *pattern = join_quoted(folder, rest);
    gpuconv_status status = pattern ? find_by_glob(s, pattern, kept) : gc_fail_memory(s->error, "file names");
    int count = status ? 0 : scandir(*folder ? folder : ".", &list, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        const char *name = list[i]->d_name;
        const char *divider = *folder && folder[strlen(folder) - 1] != '/' ? "/" : "";
        char *path = *name == '.' || status ? NULL : gc_text_of("%s%s%s", folder, divider, name);
        struct stat st;
        if (path && lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
            status = find_below(s, path, rest, kept + 1);
        free(path);
        free(list[i]);
    }
    free((void *)list);
    free(pattern);
    return status;
}

static bool is_file(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

bool gc_is_pattern(const char *text) {
    return (*text == '~' || text[strcspn(text, "*?[{\\")]) && !is_file(text);
}

/* Adds the files that match one alternative. The component ** stands for any number of folders, none among them. */
static gpuconv_status find_files(search *s, const char *alternative) {
    if (++s->alternatives > ALTERNATIVES_MAX)
        return gc_fail(s->error, GPUCONV_ERROR_ARGUMENT, "%s: the braces have more than %d alternatives", s->pattern,
                       ALTERNATIVES_MAX);
    const int kept = components(variable_part(alternative, s->fixed));
    if (is_file(alternative)) /* a name that exists is no pattern */
        return add(s, alternative, kept > 0 ? kept : 1);
    const char *deep = find_deep(alternative);
    if (!deep)
        return find_by_glob(s, alternative, kept);
    char *base = strndup(alternative, (size_t)(deep - alternative));
    glob_t found = {0};
    if (!base)
        return gc_fail_memory(s->error, "file names");
    int err = *base ? glob(base, GLOB_TILDE, NULL, &found) : 0;
    gpuconv_status status = err == GLOB_NOSPACE ? gc_fail_memory(s->error, "file names") : GPUCONV_OK;
    if (!*base)
        status = find_below(s, "", deep + 3, kept - 1);
    for (size_t i = 0; *base && i < found.gl_pathc && !status && !err; i++)
        status = find_below(s, found.gl_pathv[i], deep + 3, kept - 1);
    globfree(&found);
    free(base);
    return status;
}

/* Returns the first character of `ends` outside nested braces, or the end of the text. */
static const char *find_outside_braces(const char *at, const char *ends) {
    for (int depth = 0; *at; at++) {
        if (*at == '\\' && at[1])
            at++;
        else if (depth == 0 && strchr(ends, *at))
            return at;
        else
            depth += (*at == '{') - (*at == '}');
    }
    return at;
}

/* Expands the first braces of a text, or adds its files if it has none or is the name of a file. An opening brace
 * without a closing one is an ordinary character. */
static gpuconv_status expand(search *s, const char *text) {
    const char *open = find_outside_braces(text, "{"), *close = *open ? find_outside_braces(open + 1, "}") : open;
    if (!*close || is_file(text))
        return find_files(s, text);
    gpuconv_status status = GPUCONV_OK;
    for (const char *from = open + 1; from <= close && !status;) {
        const char *to = find_outside_braces(from, ",}");
        char *chosen = gc_text_of("%.*s%.*s%s", (int)(open - text), text, (int)(to - from), from, close + 1);
        if (!chosen)
            return gc_fail_memory(s->error, "file names");
        status = expand(s, chosen);
        free(chosen);
        from = to + 1;
    }
    return status;
}

gpuconv_status gc_match_files(const char *pattern, gc_matches *matches, gpuconv_error *error) {
    size_t wild = gc_is_pattern(pattern) ? strcspn(pattern, "*?[{") : strlen(pattern);
    search s = {.pattern = pattern, .found = matches, .error = error};
    *matches = (gc_matches){0};
    for (size_t i = 0; i < wild; i++)
        if (pattern[i] == '/')
            s.fixed = i + 1;
    const locale_t before = gc_locale_enter(); /* glob and alphasort sort by bytes, so that seeds pick the same files */
    gpuconv_status status = expand(&s, pattern);
    gc_locale_leave(before);
    if (!status && matches->count == 0)
        status = gc_fail(error, GPUCONV_ERROR_FILE, "%s: no file matches", pattern);
    if (status)
        gc_matches_free(matches);
    return status;
}
