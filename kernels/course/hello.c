/*
 * Module hello: the first kernel launch. Every thread of a grid writes the index of its block and its own index.
 *
 *      ids[2 i] = block, ids[2 i + 1] = thread, with i = block x (threads per block) + thread
 *
 * Course: Stahl 1.2.
 */
#include "gpulab/lab.h"

#include <stdio.h>

LAB_LAUNCHER(gck_hello);

static int nested_loops(const gc_lab_run *run) {
    int32_t *ids = run->buffer[0];
    for (int64_t block = 0, i = 0; block < run->size[0]; block++)
        for (int64_t thread = 0; thread < run->size[1]; thread++, i++) {
            ids[2 * i] = (int32_t)block;
            ids[2 * i + 1] = (int32_t)thread;
        }
    return 0;
}

static int buffers(const int64_t *size, gc_lab_buffer *buffer) {
    buffer[0] = (gc_lab_buffer){.name = "ids", .role = LAB_OUTPUT, .type = LAB_I32, .count = 2 * size[0] * size[1]};
    return 1;
}

static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)buffer;
    int64_t i = index / 2;
    return (double)(index % 2 ? i % run->size[1] : i / run->size[1]);
}

/* Writes the pairs of block and thread, in the order of the output, until `text` is full. */
static void print_ids(const gc_lab_run *run, char *text, size_t room) {
    const int32_t *ids = run->host[0];
    size_t used = 0;
    for (int64_t i = 0; i < run->size[0] * run->size[1] && used + 40 < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%sblock %d thread %d", i ? ", " : "", ids[2 * i],
                                 ids[2 * i + 1]);
}

static const gc_lab_size sizes[] = {{{2, 3}, LAB_QUICK | LAB_GPU_TIME | LAB_CPU_TIME},
                                    {{1, 1}, LAB_QUICK},
                                    {{7, 64}, LAB_CHECK},
                                    {{1000, 1024}, LAB_CHECK}};

static const gc_lab_variant variants[] = {
    {.name = "two loops",
     .changed = "the work of the launch, done by one CPU thread: a loop over blocks and a loop over threads",
     LAB_RUNS(nested_loops),
     .describe = print_ids},
    {.name = "a grid",
     .changed = "one launch of 2 blocks with 3 threads each; the order in which the threads run is not defined",
     .limit = "Six threads do nothing that takes time: this is the launch itself, which is why a kernel must have much "
              "more work than this.",
     .where = LAB_GPU,
     .describe = print_ids,
     .course = "6 threads, every pair once",
     LAB_RUNS_ON_GPU(gck_hello)},
};

static const gc_lab_effect effects[] = {{"six threads are too little work for a GPU", "a grid", "two loops", 1, 0}};

const gc_lab_module gc_lab_hello = {
    .name = "hello",
    .title = "The first launch: blocks and threads",
    .course = "Stahl 1.2",
    .idea =
        "A kernel is a function that many threads run at the same time. The threads are grouped into blocks, and the "
        "blocks form a grid. A thread finds its position with blockIdx and threadIdx, and computes from them which "
        "part of the work it does.\n\n"
        "The GPU assigns blocks to its multiprocessors in any order, and a block cannot rely on another block having "
        "run. This is why the same grid runs on a small GPU and on a large one.",
    .see =
        "The output has six pairs of block and thread, each of them once. Look at the time too: the launch takes the "
        "time of an empty launch, microseconds, while the CPU needs a few nanoseconds for six pairs.",
    .next = "gpulab run hello --size 1000x1024 starts a million threads: compare its time with that of six threads. "
            "gpulab show vector-add gives every thread some work.",
    .dimension = {"blocks", "threads"},
    .buffers = buffers,
    .reference = reference,
    LAB_TABLES,
};
