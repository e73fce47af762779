/* Manifests: the list of entries that a batch is to convolve, from a CSV or JSON Lines file or from patterns of file
 * names. */
#ifndef GPUCONV_BATCH_MANIFEST_H
#define GPUCONV_BATCH_MANIFEST_H

#include "gpuconv.h"

#include <stdio.h>

typedef struct gc_entry {
    int64_t line;                    /* in the manifest, from 1 */
    char *input, *response, *output; /* paths; the output's is relative to the batch's folder */
    double gain, wet, dry;           /* dB; dry -INFINITY: no dry signal */
    double offset, length;           /* of the part of the input, in seconds; length -1: to the end */
    bool random_offset;              /* the offset is drawn from `seed`, such that `length` fits */
    uint64_t seed;
    bool shared;   /* other entries name the same response */
    char *refusal; /* why the entry cannot be processed; NULL: it can */
} gc_entry;

typedef struct gc_manifest {
    gc_entry *entry;
    int64_t entries;
} gc_manifest;

/* Reads a manifest. CSV: the first line names the columns input, response, output, gain, wet, dry, offset, length,
 * seed; the last seven may be missing or empty. JSON Lines, if the file's name ends in .jsonl, .ndjson or .json: one
 * object with these names per line. An invalid line becomes an entry with a refusal, and so does an output outside the
 * batch's folder or one that an earlier entry names. A missing output is the input's name without folders, as WAV.
 * Fails with FILE, FORMAT (no columns, no entries, a NUL byte) or MEMORY. */
gpuconv_status gc_manifest_read(const char *path, gc_manifest *manifest, gpuconv_error *error);

/* Parses a text of `length` bytes like gc_manifest_read. The text is changed and must have room for one more byte.
 * `name` is the file's name: it is used in messages, and its extension selects CSV or JSON Lines. */
gpuconv_status gc_manifest_parse(const char *name, char *text, size_t length, gc_manifest *manifest,
                                 gpuconv_error *error);

typedef enum gc_pick { GC_PICK_RANDOM = 0, GC_PICK_ALL, GC_PICK_CYCLE } gc_pick;

/* Creates a manifest of all files that the pattern `inputs` matches. Each is combined with a response that `responses`
 * matches: a random one, drawn from `seed`; all of them; or the next one in turn. Names are sorted, so that the same
 * files and seed give the same manifest. Fails with FILE (nothing matches), ARGUMENT (too many alternatives) or MEMORY.
 */
gpuconv_status gc_manifest_pick(const char *inputs, const char *responses, gc_pick pick, uint64_t seed,
                                gc_manifest *manifest, gpuconv_error *error);

/* Writes the manifest as CSV with all columns; gc_manifest_parse reads equal entries from it. @return false: writing
 * failed, errno has the reason */
bool gc_manifest_print(const gc_manifest *manifest, FILE *file);

/* Writes the manifest to a file like gc_manifest_print, and creates the folders of its path. Fails with FILE or MEMORY.
 */
gpuconv_status gc_manifest_write(const gc_manifest *manifest, const char *path, gpuconv_error *error);

void gc_manifest_free(gc_manifest *manifest);

/* Refuses an entry, unless it is refused already. `what`: the reason; `value`: the invalid value, or NULL. @return
 * false: out of memory */
bool gc_entry_refuse(gc_entry *entry, const char *what, const char *value);

#endif
