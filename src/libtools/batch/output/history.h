/*
 * History of a batch: decides, from the results.jsonl of earlier runs, what --resume has to do.
 *
 * An entry counts as done if its last line says "done", with the same input, response and settings as now, written by
 * this version, and input, response and output are still the files that the line describes: size and time of the last
 * change of what was read, size of what was written.
 *
 * Only the last line can be incomplete; its output has no name yet, so the line is removed.
 */
#ifndef GPUCONV_BATCH_OUTPUT_HISTORY_H
#define GPUCONV_BATCH_OUTPUT_HISTORY_H

#include "libtools/batch/entry/entry.h"
#include "shards.h"
#include "state.h"

/* The last line about an entry's output. */
typedef struct gc_past_line {
    bool known;  /* there is a line with the status "done"; it gives all other fields */
    bool on_gpu; /* a GPU computed it */
    bool done;   /* the entry's last line is "done" */
    bool same_input_name, same_response_name, same_settings, same_version; /* as in this run */
    gc_state input, response, noise;
    double audio;
    int64_t output_size, frames, early_size;
    int rate, channels;
} gc_past_line;

typedef struct gc_history gc_history;

/* Creates an empty history. `manifest` must not change while it exists. NULL: out of memory. */
gc_history *gc_history_new(const gc_manifest *manifest);
void gc_history_free(gc_history *history);

/* Parses the next bytes of results.jsonl, in portions of any size. Lines that are not understood are skipped.
 * @return false: out of memory */
bool gc_history_parse(gc_history *history, const char *bytes, size_t count);

/* Parses the end of the input. *complete_bytes: where the last complete line ends; *newline: that line has no newline.
 * @return false: out of memory */
bool gc_history_end(gc_history *history, int64_t *complete_bytes, bool *newline);

/* Parses a file; a missing file counts as empty. Fails with FILE (also if it is not a regular file) or MEMORY. */
gpuconv_status gc_history_read(gc_history *history, const char *path, int64_t *complete_bytes, bool *newline,
                               gpuconv_error *error);

/* Returns the last line about an entry. */
const gc_past_line *gc_history_last_line(const gc_history *history, int64_t entry);

/* Compares the lines with the existing files, using several threads; done[entry] gets whether it is done. `packer`:
 * outputs may be in its shards; NULL: none are. Fails with MEMORY or CANCELLED. */
gpuconv_status gc_history_judge(gc_history *history, const char *folder, const gc_packer *packer, int threads,
                                unsigned char *done, gpuconv_error *error);

#endif
