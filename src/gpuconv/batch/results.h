/* results.jsonl: a line for every entry that was dealt with. Each line is one JSON object in UTF-8:
 *
 *      line                      of the manifest
 *      input, response, output   as the manifest has them; bytes that are no UTF-8 are U+FFFD, and the exact name is in
 *                                input_bytes, response_bytes, output_bytes as hexadecimal digits
 *      status                    done, failed, or replacing: see history.h
 *      reason                    of a failure
 *      where, audio, clipped     "cpu" or "cuda 0"; seconds of input; samples
 *      seconds                   that the entry took
 *      settings, version         what else decided the output: all numbers of the entry; gpuconv's version
 *      input_was, response_was   the states (state.h) of both files before they were read
 *      output_size               in bytes
 *      output_was                only if the output replaced the input or the response: its state, place and digest
 */
#ifndef GPUCONV_BATCH_RESULTS_H
#define GPUCONV_BATCH_RESULTS_H

#include "manifest.h"
#include "state.h"

typedef struct gc_outcome {
    gpuconv_status status;
    const char *where;                /* "cpu", "cuda 0" */
    double seconds, audio;            /* that it took, and of its input */
    int64_t clipped, not_finite;      /* samples: of the output; of the input, taken as silence */
    char reason[512];                 /* why it failed; "" */
    char note[256];                   /* what became of the input's encoding; "" */
    gc_state input, response, output; /* before they were read; as the output was written */
    bool in_place;                    /* the output is the input or the response */
    bool replacing;                   /* it is about to take its name */
} gc_outcome;

/* Returns one line of JSON with its end; to be freed. NULL: no memory. */
char *gc_result_line(const gc_entry *entry, const gc_outcome *outcome);

/* Writes the numbers of an entry that decide its output. */
enum { GC_SETTINGS_TEXT = 240 };
void gc_settings_of(const gc_entry *entry, char text[GC_SETTINGS_TEXT]);

typedef struct gc_results gc_results;

/* Appends to the file, or begins it anew. Lines are written whole. FILE, MEMORY. */
gpuconv_status gc_results_open(const char *path, bool append, gc_results **results, gpuconv_error *error);

/* Ends the file at `bytes`, if it is longer, and completes its last line if `newline`. FILE. */
gpuconv_status gc_results_mend(gc_results *results, int64_t bytes, bool newline, gpuconv_error *error);

/* Appends lines. After a failure the file ends with the last whole line, as far as the system allows. FILE. */
gpuconv_status gc_results_write(gc_results *results, const char *lines, size_t bytes, gpuconv_error *error);
gpuconv_status gc_results_close(gc_results *results, gpuconv_error *error);

#endif
