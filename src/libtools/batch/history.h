/*
 * History of a batch: decides, from the results.jsonl of earlier runs, what --resume has to do.
 *
 * An entry counts as done if its last line says "done", with the same input, response and settings as now, written by
 * this version, and input, response and output are still the files that the line describes: size and time of the last
 * change of what was read, size of what was written.
 *
 * If an output replaces the entry's own input ("in place"), the file that was read no longer exists once the output has
 * its name. The following protocol shows whether that has happened. When the output is complete but has
 * no name yet, a line with the status "replacing" is written, which describes it: device, inode, size, time and a
 * digest of its bytes. Then the output gets its name, then the "done" line is written. A process that is killed leaves
 * one of these states:
 *
 *      before the "replacing" line       no line describes the existing file: it is the input, and is convolved
 *      after it, before the new name     the line describes another file: as above
 *      after the new name                the line describes the existing file: it is the output; the line is repeated
 *                                        as "done", and the file is not convolved again
 *
 * Only the last line can be incomplete; its output has no name yet, so the line is removed. Lines and names reach the
 * kernel in this order but not the disk, so after a power failure the two files may still be confused.
 *
 * If an earlier run replaced the input and settings, response or input differ now, the entry is refused: its input no
 * longer exists, so it cannot be repeated, and its output is not the requested one.
 */
#ifndef GPUCONV_BATCH_HISTORY_H
#define GPUCONV_BATCH_HISTORY_H

#include "manifest.h"
#include "shard_out.h"
#include "state.h"

/* The last line about an entry's output. */
typedef struct gc_past_line {
    bool known; /* there is a line with the status "done" or "replacing"; it gives all other fields */
    bool done;  /* the entry's last line is "done" */
    bool in_place;
    bool same_input_name, same_response_name, same_settings, same_version; /* as in this run */
    gc_state input, response, noise, output;
    char where[16];
    double seconds, audio, offset, noise_offset;
    int64_t clipped, frames, early_size;
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

typedef enum gc_verdict {
    GC_VERDICT_DO,
    GC_VERDICT_DONE,
    GC_VERDICT_UNRECORDED,    /* done, but the "done" line is missing */
    GC_VERDICT_INPUT_REPLACED /* an earlier run with other settings replaced the input: cannot be done */
} gc_verdict;

/* Compares the lines with the existing files, using several threads; fills in verdict[entry]. `packer`: outputs
 * may be in its shards; NULL: none are. Fails with MEMORY. */
gpuconv_status gc_history_judge(gc_history *history, const char *folder, const gc_packer *packer, int threads,
                                unsigned char *verdict, gpuconv_error *error);

#endif
