/* results.jsonl: the list of outcomes, one line per entry. Each line is one JSON object in UTF-8:
 *
 *      line                      of the manifest
 *      input, response, output   as in the manifest; bytes that are not UTF-8 become U+FFFD, and the exact name is in
 *                                input_bytes, response_bytes, output_bytes as hexadecimal digits
 *      status                    done or failed
 *      reason                    why it failed
 *      where, audio, clipped     "cpu" or "cuda 0"; seconds of input; clipped output samples
 *      not_finite, note          input samples that were NaN or infinite and count as 0; how the encoding changed
 *      seconds                   time that the entry took
 *      rate, channels, frames    of the output
 *      columns                   all other columns of the entry as texts (column.h), with the values that were drawn; a
 *                                list of these lines is a manifest that gives the same bytes
 *      settings, version         the entry's settings, and gpuconv's version, which determine the output too
 *      input_was, response_was   the states (state.h) of the files before they were read; noise_was likewise
 *      output_size               in bytes; early_size: of the second output
 */
/* Groups the failures of a batch by reason. Messages that differ only in file names, numbers and quoted values have the
 * same reason. */
#ifndef GPUCONV_BATCH_OUTPUT_RESULTS_H
#define GPUCONV_BATCH_OUTPUT_RESULTS_H

#include "libtools/batch/entry/entry.h"
#include "state.h"

#include <stddef.h>
#include <stdint.h>

typedef struct gc_outcome {
    gpuconv_status status;
    const char *where;               /* "cpu" or "cuda 0" */
    double seconds, audio;           /* time taken; duration of the input */
    int64_t clipped, not_finite;     /* samples: of the output; of the input, replaced by 0, and of the output */
    char reason[512];                /* why it failed; "" */
    char note[400];                  /* parts of the input that are missing or not read, and the changed encoding; "" */
    gc_state input, response, noise; /* before they were read */
    int64_t output_size;             /* bytes */
    int rate, channels;              /* of the output */
    int64_t frames, early_size;      /* early_size -1: there is no second output */
    double offset, noise_offset;     /* seconds, as they were drawn */
    bool shortened;                  /* the input ends before the part that was asked for */
} gc_outcome;

/* Returns one line of JSON, newline included, to be freed. NULL: out of memory. */
char *gc_result_line(const gc_entry *entry, const gc_outcome *outcome);

/* Returns the settings of an entry, which determine its output together with the files; to be freed. NULL: out of
 * memory. */
char *gc_settings_of(const gc_entry *entry);

typedef struct gc_results gc_results;

/* Opens the file for appending, or replaces it by an empty one. Fails with FILE or MEMORY. */
gpuconv_status gc_results_open(const char *path, bool append, gc_results **results, gpuconv_error *error);

/* Repairs a file that was cut off: truncates it to `bytes`, and appends a newline if `newline`. Fails with FILE. */
gpuconv_status gc_results_repair(gc_results *results, int64_t bytes, bool newline, gpuconv_error *error);

/* Appends complete lines. If the disk is full, removes an incomplete last line if possible. Fails with FILE. */
gpuconv_status gc_results_write(gc_results *results, const char *lines, size_t bytes, gpuconv_error *error);
gpuconv_status gc_results_close(gc_results *results, gpuconv_error *error);

enum { GC_FAILURES_GROUPS = 24, GC_FAILURE_BYTES = 512 };

typedef struct gc_failures {
    struct {
        int64_t count;
        char reason[GC_FAILURE_BYTES]; /* without what differs */
        char example[GC_FAILURE_BYTES];
    } group[GC_FAILURES_GROUPS]; /* the last one gets all further reasons */
    int count;
} gc_failures;

void gc_failures_add(gc_failures *failures, const char *message);

/* Adds the failures of lines of results.jsonl. */
void gc_failures_add_lines(gc_failures *failures, const char *lines, size_t bytes);

/* Sorts by count, the largest first. */
void gc_failures_sort(gc_failures *failures);

/* ---- Lists of outputs, of the same kind as the list of inputs (lists.c) ---- */

/* How the outputs are named in lists. */
typedef struct gc_list_output {
    const char *folder;    /* of the outputs */
    bool absolute;         /* paths begin with / */
    const char *id_suffix; /* UTF-8, follows the identifiers of lhotse's recordings, cuts and supervisions */
    int64_t shard_size;    /* of the batch */
} gc_list_output;

/* Writes the list of the outputs that FOLDER/results.jsonl records as done: wav.scp and the other files of a data
 * folder of Kaldi, recordings.jsonl.gz, cuts.jsonl.gz, metadata.csv or metadata.jsonl. Does nothing for other
 * manifests. *count: lines of the list; -1: none was written. Fails with FILE or MEMORY. */
gpuconv_status gc_list_write(const gc_manifest *manifest, const gc_list_output *output, int64_t *count,
                             gpuconv_error *error);

/* Writes the names of the files beside the wav.scp `list` that the folder of the outputs does not get into `text`.
 * @return whether there are any */
bool gc_list_left_out_kaldi(const char *list, char *text, size_t room);

#endif
