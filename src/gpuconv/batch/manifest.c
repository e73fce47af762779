/* Reads a manifest, or creates one from patterns. */
#include "manifest.h"

#include "duplicates.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/random.h"
#include "manifest_entry.h"
#include "patterns.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads a file into a text with room for one more byte; to be freed. NULL: *error has the reason. */
static char *read_text(const char *path, size_t *length, gpuconv_error *error) {
    FILE *f = fopen(path, "r");
    size_t size = 1 << 16, used = 0;
    char *text = f ? malloc(size) : NULL;
    if (!f) {
        gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", path, strerror(errno));
        return NULL;
    }
    while (text) {
        used += fread(text + used, 1, size - used - 1, f);
        if (used < size - 1)
            break;
        char *larger = realloc(text, size *= 2);
        if (!larger)
            free(text);
        text = larger;
    }
    if (!text) {
        gc_fail_memory(error, path);
    } else if (ferror(f)) {
        gc_fail(error, GPUCONV_ERROR_FILE, "%s: cannot be read", path);
        free(text);
        text = NULL;
    }
    *length = used;
    (void)fclose(f); /* opened for reading: closing cannot lose data */
    return text;
}

static bool ends_in(const char *path, const char *end) {
    size_t p = strlen(path), e = strlen(end);
    return p >= e && strcmp(path + p - e, end) == 0;
}

gpuconv_status gc_manifest_parse(const char *name, char *text, size_t length, gc_manifest *m, gpuconv_error *error) {
    *m = (gc_manifest){0};
    const char *nul = memchr(text, '\0', length);
    text[length] = '\0';
    if (nul) {
        long long line = 1;
        for (const char *at = text; at < nul; at++)
            line += *at == '\n';
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: line %lld contains a NUL byte; a manifest must be text", name,
                       line);
    }
    bool json = ends_in(name, ".jsonl") || ends_in(name, ".ndjson") || ends_in(name, ".json");
    gpuconv_status status =
        json ? gc_manifest_parse_jsonl(name, text, m, error) : gc_manifest_parse_csv(name, text, m, error);
    if (!status && m->entries == 0)
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: the manifest has no entries", name);
    if (!status)
        status = gc_find_duplicates(m, error);
    if (status)
        gc_manifest_free(m);
    return status;
}

gpuconv_status gc_manifest_read(const char *path, gc_manifest *m, gpuconv_error *error) {
    size_t length;
    *m = (gc_manifest){0};
    char *text = read_text(path, &length, error);
    if (!text)
        return error->status;
    gpuconv_status status = gc_manifest_parse(path, text, length, m, error);
    free(text);
    return status;
}

/* Adds an entry for an input and a response. The output keeps the folders that the pattern matched; `both`: its name
 * has the names of both files. */
static gpuconv_status add_pair(gc_manifest *m, int64_t *capacity, const gc_match *input, const char *response,
                               bool both, gpuconv_error *error) {
    gc_entry *e = gc_manifest_add(m, capacity, m->entries + 2); /* its line in the written manifest, after the header */
    if (!e || !gc_entry_set(e, GC_COLUMN_INPUT, input->path) || !gc_entry_set(e, GC_COLUMN_RESPONSE, response))
        return gc_fail_memory(error, "the manifest");
    const char *x, *h;
    int xs, hs;
    gc_path_stem(input->path, &x, &xs);
    gc_path_stem(response, &h, &hs);
    int folders = input->kept < x ? (int)(x - input->kept) : 0;
    size_t length = (size_t)folders + (size_t)xs + (size_t)hs + sizeof "-.wav";
    if (!(e->output = gc_calloc((int64_t)length, 1)))
        return gc_fail_memory(error, "the manifest");
    (void)snprintf(e->output, length, "%.*s%.*s%s%.*s.wav", folders, input->kept, xs, x, both ? "-" : "", both ? hs : 0,
                   h);
    return gc_entry_complete(e) ? GPUCONV_OK : gc_fail_memory(error, "the manifest");
}

gpuconv_status gc_manifest_pick(const char *inputs, const char *responses, gc_pick pick, uint64_t seed, gc_manifest *m,
                                gpuconv_error *error) {
    gc_matches x = {0}, h = {0};
    int64_t capacity = 0;
    *m = (gc_manifest){0};
    gpuconv_status status = gc_match_files(inputs, &x, error);
    if (!status)
        status = gc_match_files(responses, &h, error);
    for (int64_t i = 0; i < x.count && !status; i++) {
        int64_t first = pick == GC_PICK_RANDOM  ? (int64_t)(gc_random_bits(&seed) % (uint64_t)h.count)
                        : pick == GC_PICK_CYCLE ? i % h.count
                                                : 0;
        int64_t count = pick == GC_PICK_ALL ? h.count : 1;
        for (int64_t k = 0; k < count && !status; k++)
            status = add_pair(m, &capacity, &x.match[i], h.match[first + k].path, pick == GC_PICK_ALL, error);
    }
    gc_matches_free(&x);
    gc_matches_free(&h);
    if (!status)
        status = gc_find_duplicates(m, error);
    if (status)
        gc_manifest_free(m);
    return status;
}
