/* Groups the failures of a batch by reason. Messages that differ only in file names, numbers and quoted values have the
 * same reason. */
#ifndef GPUCONV_BATCH_FAILURES_H
#define GPUCONV_BATCH_FAILURES_H

#include <stddef.h>
#include <stdint.h>

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

#endif
