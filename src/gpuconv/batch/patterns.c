/* Lists the files that match a pattern. Braces are expanded here and not by glob, because the alternative that a file
 * belongs to must be known. */
#include "patterns.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Adds the files that match one alternative. */
static gpuconv_status find_files(search *s, const char *alternative) {
    glob_t found = {0};
    if (++s->alternatives > ALTERNATIVES_MAX)
        return gc_fail(s->error, GPUCONV_ERROR_ARGUMENT, "%s: the braces have more than %d alternatives", s->pattern,
                       ALTERNATIVES_MAX);
    int err = glob(alternative, GLOB_TILDE, NULL, &found); /* the "C" locale sorts by bytes */
    gpuconv_status status = err == GLOB_NOSPACE ? gc_fail_memory(s->error, "file names") : GPUCONV_OK;
    int kept = components(variable_part(alternative, s->fixed));
    for (size_t i = 0; i < found.gl_pathc && !status && !err; i++)
        status = add(s, found.gl_pathv[i], kept);
    globfree(&found);
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

/* Expands the first braces of a text, or adds its files if it has none. An opening brace without a closing one is an
 * ordinary character. */
static gpuconv_status expand(search *s, const char *text) {
    const char *open = find_outside_braces(text, "{"), *close = *open ? find_outside_braces(open + 1, "}") : open;
    if (!*close)
        return find_files(s, text);
    gpuconv_status status = GPUCONV_OK;
    for (const char *from = open + 1; from <= close && !status;) {
        const char *to = find_outside_braces(from, ",}");
        size_t room = strlen(text) + 1;
        char *chosen = gc_calloc((int64_t)room, 1);
        if (!chosen)
            return gc_fail_memory(s->error, "file names");
        (void)snprintf(chosen, room, "%.*s%.*s%s", (int)(open - text), text, (int)(to - from), from, close + 1);
        status = expand(s, chosen);
        free(chosen);
        from = to + 1;
    }
    return status;
}

gpuconv_status gc_match_files(const char *pattern, gc_matches *matches, gpuconv_error *error) {
    size_t wild = strcspn(pattern, "*?[{");
    search s = {.pattern = pattern, .found = matches, .error = error};
    *matches = (gc_matches){0};
    for (size_t i = 0; i < wild; i++)
        if (pattern[i] == '/')
            s.fixed = i + 1;
    gpuconv_status status = expand(&s, pattern);
    if (!status && matches->count == 0)
        status = gc_fail(error, GPUCONV_ERROR_FILE, "%s: no file matches", pattern);
    if (status)
        gc_matches_free(matches);
    return status;
}
