/*
 * What earlier runs of a batch did, from its results.jsonl, for --resume.
 *
 * An entry counts as done if its last line says "done", with the same input, response and settings as now, written by
 * this version, and input, response and output are still the files that the line describes: size and time of the last
 * change of what was read, size of what was written.
 *
 * In place - the output is the entry's own input or response - the file that was read is gone once the output has its
 * name. Whether that has happened is told as follows. When the output is whole but still has no name, a line with the
 * status "replacing" is written, which describes it: place, size, time and a digest of its bytes. Then the output takes
 * its name, then follows the "done" line. A process that is killed at any moment leaves one of these:
 *
 *      before the "replacing" line       no line describes the file that is there: it is the input, and is convolved
 *      after it, before the new name     the line describes another file: as above
 *      after the new name                the line describes the file that is there: it is the output; the line is
 *                                        repeated as "done", and the file is not convolved again
 *
 * A line that was cut short is the last one, and no output has its name because of it: it is removed. Lines go to the
 * system in this order but not to the disk, so a loss of power may still confuse the two files.
 *
 * If the output of an earlier run is there in place but settings, response or input differ now, its input no longer
 * exists: the entry is refused, since it can be neither repeated nor left as it is.
 */
#ifndef GPUCONV_BATCH_HISTORY_H
#define GPUCONV_BATCH_HISTORY_H

#include "manifest.h"
#include "state.h"

/* What the lines say about one entry. */
typedef struct gc_past {
    bool known; /* an output was written, or was about to be: the rest is about that line */
    bool done;  /* and the last line says so */
    bool in_place;
    bool input_named, response_named, set, version; /* as they are now */
    gc_state input, response, output;
    char where[16];
    double seconds, audio;
    int64_t clipped;
} gc_past;

typedef struct gc_history gc_history;

/* @param manifest  must stay as it is. @return NULL: no memory */
gc_history *gc_history_new(const gc_manifest *manifest);
void gc_history_free(gc_history *history);

/* Takes the next bytes of results.jsonl, from its beginning, however they are split. Lines that are not understood are
 * passed over. @return false: no memory */
bool gc_history_take(gc_history *history, const char *bytes, size_t count);

/* Ends the input. *whole: where the last line that is whole ends; *newline: that line has no newline.
 * @return false: no memory */
bool gc_history_end(gc_history *history, int64_t *whole, bool *newline);

/* Does both for a file; a missing one is empty. FILE (also: not a regular file), MEMORY. */
gpuconv_status gc_history_read(gc_history *history, const char *path, int64_t *whole, bool *newline,
                               gpuconv_error *error);

/* What was read about an entry. */
const gc_past *gc_history_of(const gc_history *history, int64_t entry);

typedef enum gc_verdict {
    GC_VERDICT_DO,
    GC_VERDICT_DONE,
    GC_VERDICT_UNTOLD, /* done, but the last line does not say so */
    GC_VERDICT_LOST    /* in place by other settings: cannot be done */
} gc_verdict;

/* Compares what was read with the files that are there now, with several threads. verdict[entry]. MEMORY. */
gpuconv_status gc_history_judge(gc_history *history, const char *folder, int threads, unsigned char *verdict,
                                gpuconv_error *error);

#endif
