/*
 * The first launch: a grid of blocks of threads, each writing who it is.
 *
 *      seen[2 i] = block, seen[2 i + 1] = thread, with i = block x threads a block + thread
 *
 * Course: Stahl 1.2.
 */
#include "gpulab/lab.h"

#include <stdio.h>

LAB_LAUNCHER(gck_hello);

static int loops(const gc_lab_run *run) {
    int32_t *seen = run->buffer[0];
    for (int64_t block = 0, i = 0; block < run->size[0]; block++)
        for (int64_t thread = 0; thread < run->size[1]; thread++, i++) {
            seen[2 * i] = (int32_t)block;
            seen[2 * i + 1] = (int32_t)thread;
        }
    return 0;
}

static int buffers(const int64_t *size, gc_lab_buffer *buffer) {
    buffer[0] = (gc_lab_buffer){.name = "seen", .role = LAB_OUTPUT, .type = LAB_I32, .count = 2 * size[0] * size[1]};
    return 1;
}

static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)buffer;
    int64_t i = index / 2;
    return (double)(index % 2 ? i % run->size[1] : i / run->size[1]);
}

static void tell(const gc_lab_run *run, char *text, size_t room) {
    const int32_t *seen = run->host[0];
    size_t used = 0;
    for (int64_t i = 0; i < run->size[0] * run->size[1] && used + 40 < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%sblock %d thread %d", i ? ", " : "", seen[2 * i],
                                 seen[2 * i + 1]);
}

static const gc_lab_size sizes[] = {{{2, 3}, LAB_QUICK | LAB_GPU_TIME | LAB_CPU_TIME},
                                    {{1, 1}, LAB_QUICK},
                                    {{7, 64}, LAB_CHECK},
                                    {{1000, 1024}, LAB_CHECK}};

static const gc_lab_variant variants[] = {
    {.name = "two loops", .changed = "what the launch stands for, one after the other", .launch = loops, .tell = tell},
    {.name = "a grid",
     .changed = "2 blocks of 3 threads, all at once; nothing says who comes first",
     .where = LAB_GPU,
     .tell = tell,
     .course = "6 threads, every pair once",
     .launch = LAB_ON_GPU(gck_hello)},
};

static const gc_lab_effect effects[] = {{"six threads are no work for a GPU", "a grid", "two loops", 1, 0}};

const gc_lab_module gc_lab_hello = {
    .name = "hello",
    .title = "The first launch: blocks and threads",
    .course = "Stahl 1.2",
    .idea = "A kernel is a function that many threads run at the same time. They come in blocks, the blocks in a grid; "
            "a thread knows its place by blockIdx and threadIdx, and from them computes which part of the work is its "
            "own.\n\n"
            "Blocks are dealt to the multiprocessors in any order and know nothing of one another. That is why the "
            "same grid runs on a small GPU and on a large one.",
    .see =
        "Six pairs of block and thread, every one once. And the time: a launch takes microseconds, whatever it does.",
    .next = "gpulab run hello --size 1000x1024 starts a million threads in nearly the same time. Then gpulab show "
            "vector-add gives each of them something to do.",
    .dimension = {"blocks", "threads"},
    .buffers = buffers,
    .reference = reference,
    LAB_TABLES,
};
