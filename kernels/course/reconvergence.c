/*
 * Module reconvergence: the 32 threads of a warp enter a critical section, in which only one thread may be at a time,
 * and count themselves there.
 *
 * Course: Filipovic.
 */
#include "gpulab/lab.h"

#include <stdio.h>

LAB_LAUNCHER(gck_critical_in_turn);
LAB_LAUNCHER(gck_critical_released_inside);
LAB_LAUNCHER(gck_critical_spinning);
LAB_LAUNCHER(gck_critical_vote);

static int sequential(const gc_lab_run *run) {
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

/* Writes the order in which the threads of the first warp entered the critical section. */
static void print_order(const gc_lab_run *run, char *text, size_t room) {
    const int32_t *order = run->host[1];
    size_t used = (size_t)snprintf(text, room, "order:");
    for (int k = 0; k < 32 && used + 4 < room; k++)
        used += (size_t)snprintf(text + used, room - used, " %d", order[k]);
}

static const gc_lab_size sizes[] = {
    {{1}, LAB_QUICK}, {{7}, LAB_QUICK}, {{1000}, LAB_CHECK}, {{10000}, LAB_GPU_TIME | LAB_CPU_TIME}};

static const gc_lab_variant variants[] = {
    {.name = "CPU", .changed = "one thread, no lock", LAB_RUNS(sequential), .describe = print_order},
    {.name = "in turn",
     .changed = "a loop over the lanes, with a branch for one lane in each pass: no lock",
     .where = LAB_GPU,
     .describe = print_order,
     LAB_RUNS_ON_GPU(gck_critical_in_turn)},
    {.name = "released inside the branch",
     .changed = "a lock; the thread that gets it does its work and releases it inside the same branch, before the warp "
                "reconverges: safe on every GPU",
     .where = LAB_GPU,
     .describe = print_order,
     LAB_RUNS_ON_GPU(gck_critical_released_inside)},
    {.name = "spinning for the lock",
     .changed = "threads spin in a loop until another thread of their warp releases the lock: this ends only with "
                "independent thread scheduling",
     .where = LAB_GPU,
     .describe = print_order,
     .needs = "before compute capability 7.0 this never ends: the spinning threads keep the thread with the lock from "
              "running",
     LAB_RUNS_ON_GPU(gck_critical_spinning)},
    {.name = "counted together",
     .changed = "__syncwarp makes all threads converge, and one vote counts them: no critical section",
     .where = LAB_GPU,
     .describe = print_order,
     LAB_RUNS_ON_GPU(gck_critical_vote)},
};

static const gc_lab_effect effects[] = {
    {"a lock is slower than taking turns", "released inside the branch", "in turn", 1.0, 0},
    {"a vote is faster than taking turns", "in turn", "counted together", 1.2, 0},
};

const gc_lab_module gc_lab_reconvergence = {
    .name = "reconvergence",
    .title = "Reconvergence: a critical section inside a warp",
    .course = "Filipovic",
    .idea =
        "Threads of a warp that took different branches continue together after the branch: they reconverge. Up to "
        "the Pascal architecture a warp had one program counter, and executed one side of a branch to its end before "
        "the other. A thread that waited in a loop for another thread of its own warp then waited forever, because "
        "the other thread could not run until the loop ended.\n\n"
        "Since Volta every thread has its own program counter, and the scheduler lets all sides make progress: the "
        "loop ends. In return, threads need not be converged at a point where the source code suggests it. __syncwarp "
        "guarantees it.",
    .see = "All variants count 32 threads in every warp, and print the order in which the threads of the first warp "
           "entered: lane 0 to lane 31 in all of them on an H200. The locks take longest, taking turns less, and the "
           "vote least.",
    .next = "gpulab show divergence measures the cost of taking different branches.",
    .dimension = {"warps"},
    .buffers = buffers,
    .reference = reference,
    LAB_TABLES,
};
