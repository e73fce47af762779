/*
 * Entries of a batch and what they consist of. A row of a list has texts by column (gc_entry_texts); gc_entry_fill
 * turns it into an entry, the only place that knows what a column means, and gc_entry_text turns an entry back into
 * texts. The settings that many entries have in common are a recipe, and equal recipes are stored once. A manifest is
 * the array of all entries. The command and the Python package include this header for the options of a batch, which
 * are a row of defaults.
 */
#ifndef GPUCONV_BATCH_ENTRY_ENTRY_H
#define GPUCONV_BATCH_ENTRY_ENTRY_H

#include "gpuconv.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/ir/settings.h"

#include <stdbool.h>
#include <stdio.h>

/* The columns that are no settings: id, name. */
#define GC_ENTRY_COLUMNS(X)                                                                                            \
    X(INPUT, "input")                                                                                                  \
    X(RESPONSE, "response")                                                                                            \
    X(OUTPUT, "output")                                                                                                \
    X(GAIN, "gain")                                                                                                    \
    X(WET, "wet")                                                                                                      \
    X(DRY, "dry")                                                                                                      \
    X(OFFSET, "offset")                                                                                                \
    X(LENGTH, "length")                                                                                                \
    X(SEED, "seed")                                                                                                    \
    X(INPUTS, "inputs")                                                                                                \
    X(RESPONSES, "responses")                                                                                          \
    X(GAINS, "gains")                                                                                                  \
    X(STARTS, "starts")                                                                                                \
    X(NOISE, "noise")                                                                                                  \
    X(SNR, "snr")                                                                                                      \
    X(NOISE_OFFSET, "noise_offset")                                                                                    \
    X(NOISE_RESPONSE, "noise_response")                                                                                \
    X(EARLY, "early")                                                                                                  \
    X(ID, "id")

#define GC_COLUMN_OF(id, ...) GC_COLUMN_##id,
enum {
    GC_ENTRY_COLUMNS(GC_COLUMN_OF)
        GC_SETTINGS_OF_RECIPE(GC_COLUMN_OF) /* the first settings of ir/settings.h, in its order */
    GC_COLUMNS,
    GC_COLUMNS_ALWAYS = GC_COLUMN_SEED + 1, /* the columns before are written into every manifest */
    GC_COLUMN_RECIPE = GC_COLUMN_IR_LAYOUT, /* the columns from here on are a recipe's */
    GC_RECIPE_COLUMNS = GC_COLUMNS - GC_COLUMN_RECIPE
};

/* The columns' names. */
extern const char *const gc_columns[GC_COLUMNS];

/* Returns the column with a name, in which - counts as _; -1: there is none. */
int gc_column_find(const char *name);

/* ---- Recipes ---- */

typedef struct gc_recipe {
    gc_settings settings; /* gain, wet and dry are the entry's */
    char *series_text;    /* owned names of preparation.series, each terminated by a zero byte */
    /* The canonical text of each column of a recipe; NULL: the default. Owned. format and encoding point here. */
    char *text[GC_RECIPE_COLUMNS];
    struct gc_recipe *next;
} gc_recipe;

/* A list of recipes that are all different. */
typedef struct gc_recipes {
    gc_recipe *first;
} gc_recipes;

/* Returns the recipe without settings. */
const gc_recipe *gc_recipe_default(void);

/* Returns the recipe with these texts, one for each column of a recipe, NULL or empty where it is the default.
 * *recipe is NULL if a text is invalid: *column is its column then. @return false: out of memory */
bool gc_recipes_find(gc_recipes *recipes, const char *const text[GC_RECIPE_COLUMNS], const gc_recipe **recipe,
                     int *column);

void gc_recipes_free(gc_recipes *recipes);

/* Returns the extension for outputs of the recipe without an output name: "wav" or that of the format. */
const char *gc_recipe_extension(const gc_recipe *recipe);

/* ---- Entries and manifests ---- */

/* Returns the number of parts of a list with | between them; 0 for NULL. */
int gc_parts_count(const char *list);

/* A further source of an entry: its convolution is added to that of the entry's own input and response. */
typedef struct gc_source {
    char *input, *response;
    double gain, start; /* dB; seconds after the beginning of the output */
} gc_source;

/* The rare values of an entry. */
typedef struct gc_extra {
    gc_source *source; /* further sources */
    int sources;
    double gain, start; /* of the entry's own input, as in gc_source */
    char *noise;        /* added to the output; NULL: none */
    double snr;         /* dB: mean power of the output without noise over that of the noise */
    double noise_offset;
    bool noise_random;    /* noise_offset is drawn from the seed */
    char *noise_response; /* through which the noise sounds; NULL: as it is */
    char *early;          /* path of the second output, with the early reflections only; NULL: none */
    char *id;             /* in the list that named the entry; NULL: none */
    char *origin;         /* the list's line, for the list of the outputs: other fields of CSV, JSON, or
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
    const gc_recipe *recipe; /* the common settings of entries; NULL: gc_recipe_default() */
    gc_extra *extra;         /* NULL: one source, nothing else */
    char *refusal;           /* why the entry cannot be processed; NULL: it can */
} gc_entry;

/* The kind of the list of the entries, which is also that of the list of outputs. */
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

/* ---- Rows ---- */

/* The texts of one row, all owned; NULL or empty: not given. */
typedef struct gc_entry_texts {
    char *text[GC_COLUMNS];
    char *stem;   /* of the output without extension; NULL: from the input */
    char *origin; /* see gc_extra */
    char *refusal;
} gc_entry_texts;

/* Replaces the text of a column by a copy. @return false: out of memory */
bool gc_texts_set(gc_entry_texts *row, int column, const char *text);

/* Sets the input to a file beside a list; its name is the identifier and names the output, too. @return false: out of
 * memory */
bool gc_texts_set_file(gc_entry_texts *row, const char *list, const char *file);

/* Appends to a list of texts, separated by |. @return false: out of memory */
bool gc_texts_append(gc_entry_texts *row, int column, const char *text);

/* Stores why the row is invalid, unless it has a reason already; as gc_entry_refuse. @return false: out of memory */
bool gc_texts_refuse(gc_entry_texts *row, const char *what, const char *value);
void gc_texts_clear(gc_entry_texts *row);

/* Fills in a blank entry from a row, with the texts of `defaults` (may be NULL) where the row has none. An invalid row
 * gives a refused entry. @return false: out of memory */
bool gc_entry_fill(gc_entry *entry, const gc_entry_texts *row, const gc_entry_texts *defaults, gc_recipes *recipes);

/* Checks the values that entries get from a row of defaults, with an entry of no other use. *reason is NULL if they are
 * valid. Else it is to be freed, and *column is the column of the invalid value, which must be *reason, or -1 if
 * *reason is a sentence of its own.
 * @return false: out of memory */
bool gc_texts_check(const gc_entry_texts *defaults, int *column, char **reason);

/* Returns the text of a column of an entry, from which gc_entry_fill makes the same value; NULL: the default, or the
 * column cannot be expressed (a name with | in a list). `room`: of GC_NUMBER_TEXT bytes for a number; `list`: receives
 * a text to be freed, or NULL. */
const char *gc_entry_text(const gc_entry *entry, int column, char room[GC_NUMBER_TEXT], char **list);

/* Finds a file's name without folders and extension. */
void gc_path_stem(const char *path, const char **from, int *length);

/* Refuses every entry whose output an earlier entry names, and marks the entries that share a response. Fails with
 * MEMORY. */
gpuconv_status gc_find_duplicates(gc_manifest *manifest, gpuconv_error *error);

#endif
