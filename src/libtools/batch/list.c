/* Finds out which kind of list a file is. */
#include "list.h"

#include "libgpuconv/core/error.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

gpuconv_status gc_list_find(const char *path, char **list, char **segments, gpuconv_error *error) {
    static const char *const names[] = {"metadata.csv", "metadata.jsonl", "wav.scp"};
    struct stat st;
    *segments = NULL;
    *list = NULL;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
        *list = strdup(path);
        return *list ? GPUCONV_OK : gc_fail_memory(error, path);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names && !*list; i++) {
        *list = gc_path_in(path, names[i]);
        if (!*list)
            return gc_fail_memory(error, path);
        if (access(*list, F_OK) == 0)
            break;
        free(*list);
        *list = NULL;
    }
    if (!*list)
        return gc_fail(error, GPUCONV_ERROR_FILE,
                       "%s: is a folder without metadata.csv, metadata.jsonl or wav.scp; name a list, or use --inputs "
                       "'%s/**/*.flac'",
                       path, path);
    *segments = gc_path_in(path, "segments");
    if (!*segments || access(*segments, F_OK) != 0) {
        free(*segments);
        *segments = NULL;
    }
    return GPUCONV_OK;
}

/* Decides whether a name ends in an extension, with or without .gz behind it. */
static bool has_extension(const char *name, const char *extension) {
    size_t n = strlen(name), e = strlen(extension);
    if (n > 3 && strcmp(name + n - 3, ".gz") == 0)
        n -= 3;
    return n >= e && strncmp(name + n - e, extension, e) == 0;
}

gpuconv_status gc_list_parse(gc_lines *lines, gc_builder *b, gpuconv_error *error) {
    const char *name = lines->name;
    if (has_extension(name, ".jsonl") || has_extension(name, ".ndjson") || has_extension(name, ".json"))
        return gc_list_parse_jsonl(lines, b, error);
    if (has_extension(name, ".scp"))
        return gc_list_parse_kaldi(lines, b, error);
    return gc_list_parse_table(lines, b, error);
}
