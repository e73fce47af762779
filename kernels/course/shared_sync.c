/*
 * Module shared-sync: threads of a block exchange numbers through shared memory, with and without a barrier. Thread t
 * writes its number into slot t, which contained zero, and reads slot 1023 - t, which another warp writes. The barrier
 * between the two guarantees that the number has been written.
 *
 * Courses: Stahl 9, 9.1.
 */
#include "gpulab/lab.h"

#include <stdio.h>

LAB_LAUNCHER(gck_shared_barrier);
LAB_LAUNCHER(gck_shared_race);

enum { BLOCK = 1024 };

static int sequential(const gc_lab_run *run) {
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

/* Thread t of block b writes 1024 b + t + 1, which is never zero, and reads what thread 1023 - t has written. */
static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)run, (void)buffer;
    return (double)(index / BLOCK * BLOCK + BLOCK - index % BLOCK);
}

static double percent_right(const gc_lab_run *run) {
    const int32_t *counts = run->host[1];
    return 100.0 * counts[0] / ((double)counts[0] + counts[1] + counts[2]);
}

static void print_counts(const gc_lab_run *run, char *text, size_t room) {
    const int32_t *counts = run->host[1];
    (void)snprintf(text, room,
                   "in 20 launches, %d reads of the written number, %d reads of the zero before it, %d other reads",
                   counts[0], counts[1], counts[2]);
}

static const gc_lab_size sizes[] = {{{1}, LAB_QUICK}, {{33}, LAB_CHECK}, {{2000}, LAB_GPU_TIME}};

static const gc_lab_variant variants[] = {
    {.name = "CPU",
     .changed = "one thread, which writes first and reads later: no barrier needed",
     LAB_RUNS(sequential)},
    {.name = "write, barrier, read",
     .changed = "__syncthreads between write and read: no thread reads before all threads have written",
     .where = LAB_GPU,
     .figure = percent_right,
     .figure_unit = "% of the reads are right",
     .describe = print_counts,
     LAB_RUNS_ON_GPU(gck_shared_barrier)},
    {.name = "write, read: the race",
     .changed = "no barrier: a warp may read before another warp has written",
     .where = LAB_GPU,
     .flags = LAB_RACES,
     .figure = percent_right,
     .figure_unit = "% of the reads are right",
     .describe = print_counts,
     LAB_RUNS_ON_GPU(gck_shared_race)},
};

static const gc_lab_effect effects[] = {
    {"the barrier makes every read right", "write, barrier, read", "write, read: the race", 1, 0}};

const gc_lab_module gc_lab_shared_sync = {
    .name = "shared-sync",
    .title = "Shared memory, and the barrier that it needs",
    .course = "Stahl 9, 9.1",
    .idea =
        "Threads of a block exchange numbers through shared memory. The warps of a block run independently of each "
        "other. A thread that reads a number which another warp writes must know that it has been written, and only a "
        "barrier guarantees it: no thread passes __syncthreads before all threads of the block have reached it.\n\n"
        "Without the barrier the program is wrong even when its result is right. The result depends on which warp was "
        "faster, and may differ on another GPU, with another compiler, or after a small change of the code.",
    .see = "With the barrier every read is right. Without it some reads return the zero that was there before: the "
           "share differs from run to run, and the lab does not check it.",
    .next =
        "compute-sanitizer --tool racecheck gpulab check shared-sync finds the race even in a run in which all reads "
        "are right.",
    .dimension = {"blocks"},
    .buffers = buffers,
    .reference = reference,
    LAB_TABLES,
};
