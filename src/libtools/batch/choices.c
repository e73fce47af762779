/* Lists responses and noises, from patterns and from lists of files. */
#include "choices.h"

#include "kaldi.h"
#include "lhotse.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/random.h"
#include "patterns.h"
#include "text_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct listing {
    gc_manifest *manifest;
    gc_choices *choices;
    double *weight;
    int64_t capacity;
} listing;

static gpuconv_status add(listing *l, const char *path, double weight, gpuconv_error *error) {
    gc_choices *c = l->choices;
    if (c->count == l->capacity) {
        int64_t capacity = gc_max(64, 2 * l->capacity);
        char **paths = realloc((void *)c->path, (size_t)capacity * sizeof *paths);
        double *weights = paths ? realloc(l->weight, (size_t)capacity * sizeof *weights) : NULL;
        c->path = paths ? paths : c->path;
        l->weight = weights ? weights : l->weight;
        if (!weights)
            return gc_fail_memory(error, "file names");
        l->capacity = capacity;
    }
    l->weight[c->count] = weight;
    c->path[c->count] = strdup(path);
    return c->path[c->count] ? (c->count++, GPUCONV_OK) : gc_fail_memory(error, "file names");
}

static bool ends_in(const char *path, const char *end) {
    size_t p = strlen(path), e = strlen(end);
    return p >= e && strcmp(path + p - e, end) == 0;
}

/* Decides whether a file is a list: by its name, or because it begins with the option of a Kaldi list. */
static bool is_list(const char *path) {
    char head[2] = "";
    if (ends_in(path, ".scp") || ends_in(path, ".jsonl") || ends_in(path, ".jsonl.gz"))
        return true;
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) /* a pipe can be read only once */
        return false;
    FILE *f = fopen(path, "re");
    bool is = f && fread(head, 1, 2, f) == 2 && head[0] == '-' && head[1] == '-';
    if (f)
        (void)fclose(f); /* opened for reading */
    return is;
}

/* Adds the files of one line of a list. */
static gpuconv_status add_line(listing *l, const char *list, int64_t number, char *line, gpuconv_error *error) {
    char *path = NULL;
    const char *why = NULL;
    double weight = 1;
    if (ends_in(list, ".jsonl") || ends_in(list, ".jsonl.gz"))
        path = gc_lhotse_path(line, &why);
    else
        path = gc_kaldi_path(line, &weight, &why);
    if (!path)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: line %lld: %s", list, (long long)number,
                       why ? why : "out of memory");
    gpuconv_status status = add(l, path, weight, error);
    free(path);
    return status;
}

static gpuconv_status add_list(listing *l, const char *path, gpuconv_error *error) {
    gc_text_file *file;
    char *line;
    gpuconv_status status = gc_text_file_open(path, &file, error);
    if (!status && !gc_manifest_add_list(l->manifest, path))
        status = gc_fail_memory(error, path);
    while (!status && !(status = gc_lines_next(gc_text_file_lines(file), &line, error)) && line)
        if (line[strspn(line, " \t\r")])
            status = add_line(l, path, gc_text_file_lines(file)->number, line, error);
    gc_text_file_close(file);
    return status;
}

gpuconv_status gc_choices_find(const char *const *patterns, gc_manifest *m, gc_choices *c, gpuconv_error *error) {
    listing l = {.manifest = m, .choices = c};
    gpuconv_status status = GPUCONV_OK;
    bool weighted = false;
    *c = (gc_choices){NULL, NULL, 0};
    for (; *patterns && !status; patterns++) {
        gc_matches found = {0};
        status = gc_match_files(*patterns, &found, error);
        for (int64_t i = 0; i < found.count && !status; i++)
            status = found.count == 1 && is_list(found.match[i].path) ? add_list(&l, found.match[i].path, error)
                                                                      : add(&l, found.match[i].path, 1, error);
        gc_matches_free(&found);
    }
    if (!status && c->count == 0)
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: names no files", patterns[-1]);
    double sum = 0;
    for (int64_t i = 0; i < c->count; i++)
        weighted |= l.weight[i] != l.weight[0];
    for (int64_t i = 0; i < c->count; i++)
        l.weight[i] = sum += l.weight[i];
    if (!status && weighted && !(sum > 0))
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: the probabilities add up to 0", patterns[-1]);
    if (weighted && !status)
        c->sum = l.weight;
    else
        free(l.weight);
    if (status)
        gc_choices_free(c);
    return status;
}

int64_t gc_choices_draw(const gc_choices *c, uint64_t *state) {
    const uint64_t drawn = gc_random_bits(state);
    if (!c->sum)
        return (int64_t)(drawn % (uint64_t)c->count);
    const double at = (double)(drawn >> 11) * 0x1p-53 * c->sum[c->count - 1];
    int64_t low = 0, high = c->count - 1;
    while (low < high) { /* the first whose sum is above */
        int64_t middle = (low + high) / 2;
        if (c->sum[middle] > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

void gc_choices_free(gc_choices *c) {
    for (int64_t i = 0; i < c->count; i++)
        free(c->path[i]);
    free((void *)c->path);
    free(c->sum);
    *c = (gc_choices){NULL, NULL, 0};
}
