/*
 * Write, wait, read: thread t of a block writes its number into place t of shared memory, which held zero, and reads
 * place 1023 - t, which another warp writes. The barrier between makes sure that it is there.
 *
 * Courses: Stahl 9, 9.1.
 */
#include "gpulab/lab.h"

#include <stdio.h>

LAB_LAUNCHER(gck_shared_waits);
LAB_LAUNCHER(gck_shared_races);

enum { BLOCK = 1024 };

static int loop(const gc_lab_run *run) {
    int32_t *out = run->buffer[0], *counts = run->buffer[1];
    for (int64_t i = 0; i < run->size[0] * BLOCK; i++)
        out[i] = (int32_t)(i / BLOCK * BLOCK + BLOCK - i % BLOCK);
    counts[0] = (int32_t)(run->size[0] * BLOCK);
    counts[1] = counts[2] = 0;
    return 0;
}

static int buffers(const int64_t *size, gc_lab_buffer *buffer) {
    buffer[0] = (gc_lab_buffer){.name = "out", .role = LAB_OUTPUT, .type = LAB_I32, .count = size[0] * BLOCK};
    buffer[1] = (gc_lab_buffer){.name = "counts", .role = LAB_MEASURED, .type = LAB_I32, .count = 3};
    return 2;
}

/* Thread t of block b writes b 1024 + t + 1, which is never zero. */
static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)run, (void)buffer;
    return (double)(index / BLOCK * BLOCK + BLOCK - index % BLOCK);
}

static double right(const gc_lab_run *run) {
    const int32_t *counts = run->host[1];
    return 100.0 * counts[0] / ((double)counts[0] + counts[1] + counts[2]);
}

static void tell(const gc_lab_run *run, char *text, size_t room) {
    const int32_t *counts = run->host[1];
    (void)snprintf(text, room,
                   "in 20 launches %d reads of what was written, %d of the zero before, %d of anything else", counts[0],
                   counts[1], counts[2]);
}

static const gc_lab_size sizes[] = {{{1}, LAB_QUICK}, {{33}, LAB_CHECK}, {{2000}, LAB_GPU_TIME}};

static const gc_lab_variant variants[] = {
    {.name = "CPU", .changed = "one after the other: nothing to wait for", .launch = loop},
    {.name = "write, barrier, read",
     .changed = "__syncthreads between: nobody reads before all have written",
     .where = LAB_GPU,
     .figure = right,
     .figure_unit = "% of the reads are right",
     .tell = tell,
     .launch = LAB_ON_GPU(gck_shared_waits)},
    {.name = "write, read: the race",
     .changed = "no barrier: a warp may read before another has written",
     .where = LAB_GPU,
     .flags = LAB_RACES,
     .figure = right,
     .figure_unit = "% of the reads are right",
     .tell = tell,
     .launch = LAB_ON_GPU(gck_shared_races)},
};

static const gc_lab_effect effects[] = {
    {"the barrier makes every read right", "write, barrier, read", "write, read: the race", 1, 0}};

const gc_lab_module gc_lab_shared_sync = {
    .name = "shared-sync",
    .title = "Shared memory, and the barrier that it needs",
    .course = "Stahl 9, 9.1",
    .idea =
        "Threads of a block pass numbers to each other through shared memory. The 32 threads of a warp move nearly in "
        "step; the warps do not. A thread that reads what another warp writes must know that it has been written, and "
        "only a barrier tells: __syncthreads lets nobody past before all have come.\n\n"
        "Without it the program is wrong even when its result is right. Sometimes the other warp was faster, sometimes "
        "not; another GPU, another compiler, one more line, and the outcome is another.",
    .see = "With the barrier every read is right. Without it some find the zero that was there before: how many is "
           "different in every run, and nothing is asserted about it.",
    .next =
        "compute-sanitizer --tool racecheck gpulab check shared-sync finds the race without waiting for it to happen.",
    .dimension = {"blocks"},
    .buffers = buffers,
    .reference = reference,
    LAB_TABLES,
};
