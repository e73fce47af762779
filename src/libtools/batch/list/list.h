/* The parts that the parsers of lists share: the builder of entries, patterns, lines of text and of other programs. */
#ifndef GPUCONV_BATCH_LIST_LIST_H
#define GPUCONV_BATCH_LIST_LIST_H

#include "gpuconv.h"
#include "libgpuconv/core/lines.h"
#include "manifest.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- Builder: rows become entries ---- */

/* The responses or noises from which a batch picks, with their probabilities. */
typedef struct gc_choices {
    char **path;
    double *sum; /* of the weights up to and including each path; NULL: all weigh the same */
    int64_t count;
} gc_choices;

typedef struct gc_builder {
    gc_manifest *manifest;
    int64_t capacity;
    gc_manifest_options options;
    gc_choices responses, noises;
    struct gc_room_set *rooms, *room;        /* to draw from, and what was drawn; NULL: no rooms */
    uint64_t state, noise_state, seed_state; /* of the three sequences of draws */
    int64_t rows, refused;                   /* refused: entries */
} gc_builder;

/* Begins an empty manifest and lists the choices. Fails as gc_choices_find. */
gpuconv_status gc_builder_begin(gc_builder *builder, const gc_manifest_options *options, gc_manifest *manifest,
                                gpuconv_error *error);

/* Adds one entry, or with GC_PICK_ALL one for each response, and clears the row. line 0: the entry's line in the
 * manifest that gc_manifest_print will write. Fails with FORMAT (too many rows, or too many that are refused) or
 * MEMORY. */
gpuconv_status gc_builder_add(gc_builder *builder, gc_entry_texts *row, int64_t line, gpuconv_error *error);

/* Frees the choices. On success, refuses doubled outputs; after a failure `status`, frees the manifest. `name`: of the
 * list, in messages. @return `status`, FORMAT (no entries) or MEMORY */
gpuconv_status gc_builder_end(gc_builder *builder, const char *name, gpuconv_status status, gpuconv_error *error);

/* ---- Patterns ---- */

typedef struct gc_match {
    char *path;
    const char *kept; /* in path: the part after the folders that precede the pattern's first wildcard or brace */
} gc_match;

typedef struct gc_matches {
    gc_match *match;
    int64_t count;
} gc_matches;

/* Returns whether a text has wildcards, braces, a backslash or a leading ~, and is not the name of a file. */
bool gc_is_pattern(const char *text);

/* Lists the files that match a pattern of glob(3), with {a,b}, a leading ~, and ** for any number of folders. A name of
 * a file is that file, whatever characters it has. The alternatives of braces keep their order; the files of each are
 * sorted by name. Fails with FILE (nothing matches), ARGUMENT (too many alternatives) or MEMORY. */
gpuconv_status gc_match_files(const char *pattern, gc_matches *matches, gpuconv_error *error);
void gc_matches_free(gc_matches *matches);

/* ---- Lines ---- */

typedef struct gc_text_file gc_text_file;

/* Opens a list. Fails with FILE, FORMAT or MEMORY. Its lines fail as gc_lines_next does, and with FORMAT if compression
 * is damaged, or so good that the text cannot be a list. */
gpuconv_status gc_text_file_open(const char *path, gc_text_file **file, gpuconv_error *error);
gc_lines *gc_text_file_lines(gc_text_file *file);
void gc_text_file_close(gc_text_file *file);

#define GC_KALDI_BLANKS " \t" /* between the parts of a line */

/* Splits a line "ID REST" in place. @return false: it has no two parts */
bool gc_kaldi_split(char *line, char **id, char **rest);

/* Divides a line at its blanks, in place. @return the number of words; -1: there are more than `most` */
int gc_kaldi_words(char *line, char **word, int most);

/* Returns why a path of a list is not a file name - a command that ends in |, a place in an archive - or NULL. */
const char *gc_kaldi_refusal(const char *path);

/* Returns the path of a line of a RIR or noise list, or of a wav.scp, to be freed. *weight: its --probability, or 1.
 * NULL: *why is the reason, or NULL if memory is out. */
char *gc_kaldi_path(char *line, double *weight, const char **why);

/* Returns the file of a line that describes a recording, to be freed. NULL: *why is the reason, or NULL if memory is
 * out. */
char *gc_lhotse_path(const char *line, const char **why);

/* Decides whether an object is a recording or a cut. */
bool gc_lhotse_is(const json_t *object);

/* Fills in a row from a recording or cut; *kind: which one it is. @return false: out of memory */
bool gc_lhotse_fill(gc_entry_texts *row, json_t *object, gc_list_kind *kind);

/* ---- Parsers of each kind ---- */

/* Parse lines into entries. Fail as gc_lines_next and gc_builder_add do, or with FILE (segments). */
gpuconv_status gc_list_parse_jsonl(gc_lines *lines, gc_builder *builder, gpuconv_error *error);
gpuconv_status gc_list_parse_kaldi(gc_lines *lines, gc_builder *builder, gpuconv_error *error);

#endif
