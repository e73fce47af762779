/*
 * Reconvergence: the 32 threads of a warp pass a region that only one may be in at a time, and count themselves.
 *
 * Course: Filipovic.
 */
#include "gpulab/lab.h"

#include <stdio.h>

LAB_LAUNCHER(gck_region_in_turn);
LAB_LAUNCHER(gck_region_released_inside);
LAB_LAUNCHER(gck_region_spinning);
LAB_LAUNCHER(gck_region_together);

static int loop(const gc_lab_run *run) {
    int32_t *count = run->buffer[0], *order = run->buffer[1];
    for (int64_t warp = 0; warp < run->size[0]; warp++) {
        count[warp] = 32;
        for (int thread = 0; thread < 32; thread++)
            order[32 * warp + thread] = thread;
    }
    return 0;
}

static int buffers(const int64_t *size, gc_lab_buffer *buffer) {
    buffer[0] = (gc_lab_buffer){.name = "count", .role = LAB_OUTPUT, .type = LAB_I32, .count = size[0]};
    buffer[1] = (gc_lab_buffer){.name = "order", .role = LAB_MEASURED, .type = LAB_I32, .count = 32 * size[0]};
    return 2;
}

static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)run, (void)buffer, (void)index;
    return 32;
}

/* In which order the threads of the first warp came. */
static void tell(const gc_lab_run *run, char *text, size_t room) {
    const int32_t *order = run->host[1];
    size_t used = (size_t)snprintf(text, room, "in:");
    for (int k = 0; k < 32 && used + 4 < room; k++)
        used += (size_t)snprintf(text + used, room - used, " %d", order[k]);
}

static const gc_lab_size sizes[] = {
    {{1}, LAB_QUICK}, {{7}, LAB_QUICK}, {{1000}, LAB_CHECK}, {{10000}, LAB_GPU_TIME | LAB_CPU_TIME}};

static const gc_lab_variant variants[] = {
    {.name = "CPU", .changed = "one thread, no lock", .launch = loop, .tell = tell},
    {.name = "in turn",
     .changed = "a loop over the lanes, and a branch for the one whose turn it is: no lock at all",
     .where = LAB_GPU,
     .tell = tell,
     .launch = LAB_ON_GPU(gck_region_in_turn)},
    {.name = "released inside the branch",
     .changed = "a lock; who gets it does the work and releases it before the warp joins again: safe on every GPU",
     .where = LAB_GPU,
     .tell = tell,
     .launch = LAB_ON_GPU(gck_region_released_inside)},
    {.name = "spinning for the lock",
     .changed =
         "threads wait in a loop for one of their own warp: it ends only where threads are scheduled independently",
     .where = LAB_GPU,
     .tell = tell,
     .needs =
         "before compute capability 7.0 this never ends: the waiting threads keep the one with the lock from running",
     .launch = LAB_ON_GPU(gck_region_spinning)},
    {.name = "counted together",
     .changed = "__syncwarp brings all threads together, one vote counts them: no region needed",
     .where = LAB_GPU,
     .tell = tell,
     .launch = LAB_ON_GPU(gck_region_together)},
};

static const gc_lab_effect effects[] = {
    {"a lock is slower than taking turns", "released inside the branch", "in turn", 1.0, 0},
    {"a vote is faster than any turn", "in turn", "counted together", 1.2, 0},
};

const gc_lab_module gc_lab_reconvergence = {
    .name = "reconvergence",
    .title = "Reconvergence: a region for one thread at a time, inside a warp",
    .course = "Filipovic",
    .idea = "Threads of a warp that took different ways come together again behind the branch. Up to Pascal the warp "
            "had one program counter: it ran one side to its end, then the other. A thread that waits in a loop for "
            "another thread of its own warp then waits for ever, because the loop never lets the other one run.\n\n"
            "Since Volta every thread has a program counter, and the scheduler lets all sides make progress. The loop "
            "ends. In exchange nothing promises that threads have come together where the source lets it look so: "
            "__syncwarp says it.",
    .see = "All forms count 32 in every warp; the order in which threads went in is told. A vote needs no region.",
    .next = "gpulab show divergence is about the price of parting, this about coming together.",
    .dimension = {"warps"},
    .buffers = buffers,
    .reference = reference,
    LAB_TABLES,
};
