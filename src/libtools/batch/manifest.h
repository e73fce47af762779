/* Manifests: the list of entries that a batch is to convolve, from a file (list.h has the kinds) or from patterns of
 * file names. */
#ifndef GPUCONV_BATCH_MANIFEST_H
#define GPUCONV_BATCH_MANIFEST_H

#include "gpuconv.h"
#include "recipe.h"

#include <stdio.h>

/* A further source of an entry: its convolution is added to that of the entry's own input and response. */
typedef struct gc_source {
    char *input, *response;
    double gain, start; /* dB; seconds after the beginning of the output */
} gc_source;

/* What few entries have. */
typedef struct gc_extra {
    gc_source *source; /* further sources */
    int sources;
    double gain, start; /* of the entry's own input, as in gc_source */
    char *noise;        /* added to the output; NULL: none */
    double snr;         /* dB: mean power of the output without noise over that of the noise */
    double noise_offset;
    bool noise_random; /* noise_offset is drawn from the seed */
    char *early;       /* path of the second output, with the early reflections only; NULL: none */
    char *id;          /* in the list that named the entry; NULL: none */
    char *origin;      /* the list's line, for the list of the outputs: other fields of CSV, JSON, or
                        * "SPEAKER TEXT" of Kaldi; NULL: none */
} gc_extra;

/* The files and numbers that determine an output. Texts are owned by the entry, the recipe by the manifest. */
typedef struct gc_entry {
    int64_t line;                    /* in the manifest, from 1 */
    char *input, *response, *output; /* paths; the output's is relative to the batch's folder */
    double gain, wet, dry;           /* dB; gain: of the whole output; dry -INFINITY: no dry signal */
    double offset, length;           /* of the part of the input, in seconds; length -1: to the end */
    bool random_offset;              /* the offset is drawn from `seed`, such that `length` fits */
    bool shared;                     /* other entries name the same response */
    uint64_t seed;
    const gc_recipe *recipe; /* what entries have in common; NULL: gc_recipe_default() */
    gc_extra *extra;         /* NULL: one source, nothing else */
    char *refusal;           /* why the entry cannot be processed; NULL: it can */
} gc_entry;

/* What kind of list the entries come from, which is also the kind of the list of outputs. */
typedef enum gc_list_kind {
    GC_LIST_TABLE = 0,    /* columns of our own; no list of outputs besides results.jsonl */
    GC_LIST_KALDI,        /* wav.scp */
    GC_LIST_RECORDINGS,   /* lhotse RecordingSet */
    GC_LIST_CUTS,         /* lhotse CutSet */
    GC_LIST_METADATA_CSV, /* metadata.csv of a folder of audio files: column file_name */
    GC_LIST_METADATA_JSONL
} gc_list_kind;

typedef struct gc_manifest {
    gc_entry *entry;
    int64_t entries;
    gc_recipes recipes;
    gc_list_kind kind;
    bool every_response; /* GC_PICK_ALL: identifiers end in "-NAME" of the response */
    bool has_text;       /* of Kaldi's folder: it has transcripts */
    bool has_segments;   /* of Kaldi's folder: utterances are parts of recordings */
    char *header;        /* of metadata.csv: names of the other columns, as CSV; NULL: none */
    char **list;         /* the files that entries and choices were read from */
    int lists;
} gc_manifest;

typedef enum gc_pick { GC_PICK_RANDOM = 0, GC_PICK_ALL, GC_PICK_CYCLE } gc_pick;

struct gc_row;

/* What completes the rows of a list. All zero: nothing. */
typedef struct gc_manifest_options {
    const struct gc_row *defaults; /* texts of columns that a row leaves empty; NULL: none */
    const char *const *responses;  /* patterns or lists, for rows without a response; NULL-terminated, or NULL */
    const char *const *noises;     /* the same for rows without noise */
    gc_pick pick;                  /* how responses are combined with rows */
    uint64_t seed;                 /* of all random choices */
    const char *segments;          /* parts of the files of a wav.scp; NULL: none */
} gc_manifest_options;

/* Reads a manifest or list, which may be compressed by gzip; list.h has the kinds. An invalid line becomes an entry
 * with a refusal, and so does an output outside the batch's folder or one that an earlier entry names. A missing output
 * is the input's name without folders, as WAV or in the format of the row. `options` may be NULL. Fails with FILE,
 * FORMAT (no columns, no entries, a NUL byte, too long: text_file.h, builder.h), ARGUMENT (patterns), MEMORY or
 * CANCELLED. */
gpuconv_status gc_manifest_read(const char *path, const gc_manifest_options *options, gc_manifest *manifest,
                                gpuconv_error *error);

/* Creates a manifest of all files that the patterns `inputs` (NULL-terminated) match. Each is combined with a response
 * of options->responses: a random one, drawn from the seed; all of them; or the next one in turn. Names are sorted, so
 * that the same files and seed give the same manifest. Fails with FILE (nothing matches), ARGUMENT (too many
 * alternatives) or MEMORY. */
gpuconv_status gc_manifest_pick(const char *const *inputs, const gc_manifest_options *options, gc_manifest *manifest,
                                gpuconv_error *error);

/* Writes the manifest as CSV with all columns that are used; gc_manifest_read reads equal entries from it. @return
 * false: writing failed, errno has the reason */
bool gc_manifest_print(const gc_manifest *manifest, FILE *file);

/* Writes the manifest to a file like gc_manifest_print, and creates the folders of its path. Fails with FILE or MEMORY.
 */
gpuconv_status gc_manifest_write(const gc_manifest *manifest, const char *path, gpuconv_error *error);

/* Adds a file to manifest->list. @return false: out of memory */
bool gc_manifest_add_list(gc_manifest *manifest, const char *path);

void gc_manifest_free(gc_manifest *manifest);

/* Frees what an entry owns. */
void gc_entry_clear(gc_entry *entry);

/* Refuses an entry, unless it is refused already. `what`: the reason; `value`: the invalid value, or NULL. @return
 * false: out of memory */
bool gc_entry_refuse(gc_entry *entry, const char *what, const char *value);

/* Returns the entry's recipe, or the default one. */
const gc_recipe *gc_entry_recipe(const gc_entry *entry);

/* Returns the number of sources, and the files of one of them; source 0 is the entry's own. */
int gc_entry_sources(const gc_entry *entry);
gc_source gc_entry_source(const gc_entry *entry, int index);

/* Return paths that the entry has or NULL. */
const char *gc_entry_noise(const gc_entry *entry);
const char *gc_entry_early(const gc_entry *entry);

#endif
