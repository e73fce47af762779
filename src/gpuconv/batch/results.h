/* results.jsonl: a line for every entry that was dealt with, and what earlier lines say. */
#ifndef GPUCONV_BATCH_RESULTS_H
#define GPUCONV_BATCH_RESULTS_H

#include "manifest.h"

typedef struct gc_outcome {
    gpuconv_status status;
    const char *where;     /* "cpu", "cuda 0" */
    double seconds, audio; /* that it took, and of its input */
    int64_t clipped;
    char reason[512]; /* why it failed; "" */
} gc_outcome;

/* One line of JSON with its end; to be freed. NULL: no memory. */
char *gc_result_line(const gc_entry *entry, const gc_outcome *outcome);

typedef struct gc_results gc_results;

/* Appends to the file, or begins it anew. Lines are written whole. FILE, MEMORY. */
gpuconv_status gc_results_open(const char *path, bool append, gc_results **results, gpuconv_error *error);
gpuconv_status gc_results_write(gc_results *results, const char *lines, size_t bytes, gpuconv_error *error);
gpuconv_status gc_results_close(gc_results *results, gpuconv_error *error);

#endif
