/*
 * Reading of manifests from files or patterns of file names. Kinds of lists, all of which may be compressed by gzip:
 *
 *      FILE.csv, FILE.tsv      first line: names of columns (entry.h)
 *      FILE.jsonl, .ndjson     one object per line: our columns; a lhotse recording or cut; or a line of results.jsonl,
 *                              which repeats that entry with the values that were drawn
 *      wav.scp (FILE.scp)      Kaldi: ID PATH per line; segments: ID RECORDING BEGIN END
 *      metadata.csv, .jsonl    file_name and other fields, which are kept
 *      FOLDER                  one that has metadata.csv, metadata.jsonl or wav.scp (with segments, if that exists)
 */
#ifndef GPUCONV_BATCH_LIST_MANIFEST_H
#define GPUCONV_BATCH_LIST_MANIFEST_H

#include "libtools/batch/entry/entry.h"

typedef enum gc_pick { GC_PICK_RANDOM = 0, GC_PICK_ALL, GC_PICK_CYCLE } gc_pick;

/* The values that complete the rows of a list. All zero: none. */
typedef struct gc_manifest_options {
    const gc_entry_texts *defaults; /* texts of columns that a row leaves empty; NULL: none */
    const char *const *responses;   /* patterns or lists, for rows without a response; NULL-terminated, or NULL */
    const char *const *noises;      /* the same for rows without noise */
    const char *rooms;              /* a text (room_set.h) from which the others get responses; NULL: none */
    gc_pick pick;                   /* how responses are combined with rows */
    uint64_t seed;                  /* of all random choices */
    const char *segments;           /* parts of the files of a wav.scp; NULL: none */
} gc_manifest_options;

/* Reads a manifest or list, which may be compressed by gzip; the kinds stand above. An invalid line becomes an entry
 * with a refusal, and so does an output outside the batch's folder or one that an earlier entry names. A missing output
 * is the input's name without folders, as WAV or in the format of the row. `options` may be NULL. Fails with FILE,
 * FORMAT (no columns, no entries, a NUL byte, too long), ARGUMENT (patterns), MEMORY or
 * CANCELLED. */
gpuconv_status gc_manifest_read(const char *path, const gc_manifest_options *options, gc_manifest *manifest,
                                gpuconv_error *error);

/* Creates a manifest of all files that the patterns `inputs` (NULL-terminated) match. Each is combined with a response
 * of options->responses: a random one, drawn from the seed; all of them; or the next one in turn. Names are sorted, so
 * that the same files and seed give the same manifest. Fails with FILE (nothing matches), ARGUMENT (too many
 * alternatives) or MEMORY. */
gpuconv_status gc_manifest_pick(const char *const *inputs, const gc_manifest_options *options, gc_manifest *manifest,
                                gpuconv_error *error);

#endif
