/*
 * How long one must wait for each memory: a single thread follows a chain, at = chain[at], so that every read waits for
 * the one before, and counts the cycles.
 *
 * Lines of a chain are 128 bytes; line l leads to line (a l + 1) mod L with a = 4 (L / 16) + 5, which visits each of
 * the L = 2^k lines once. A chain of 16 KB stays in the first-level cache, one of 2 MB in the second, one of 512 MB in
 * neither.
 *
 * Course: Stahl 2.2.
 */
#include "gpulab/lab.h"

LAB_LAUNCHER(gck_latency_prepare);
LAB_LAUNCHER(gck_latency_registers);
LAB_LAUNCHER(gck_latency_shared);
LAB_LAUNCHER(gck_latency_constant);
LAB_LAUNCHER(gck_latency_l1);
LAB_LAUNCHER(gck_latency_l2);
LAB_LAUNCHER(gck_latency_global);

enum {
    STEPS = 1024,
    LINE = 32,
    SMALL = 128,
    MIDDLE = 1 << 14
}; /* steps; words a line; lines of the two short chains */

/* Which chain a variant follows. */
enum { OF_NONE = -1, OF_SMALL = 0, OF_MIDDLE = 1, OF_LARGE = 2 };

static int64_t next_line(int64_t line, int64_t lines) {
    return ((4 * (lines / 16) + 5) * line + 1) % lines;
}

static void chain(const int64_t *size, void *elements, int64_t count) {
    (void)size;
    int32_t *at = elements;
    int64_t lines = count / LINE;
    for (int64_t line = 0; line < lines; line++)
        for (int w = 0; w < LINE; w++)
            at[line * LINE + w] = (int32_t)(next_line(line, lines) * LINE);
}

static int buffers(const int64_t *size, gc_lab_buffer *buffer) {
    buffer[0] = (gc_lab_buffer){.name = "small", .type = LAB_I32, .count = SMALL * LINE, .fill = chain};
    buffer[1] = (gc_lab_buffer){.name = "middle", .type = LAB_I32, .count = MIDDLE * LINE, .fill = chain};
    buffer[2] = (gc_lab_buffer){.name = "large", .type = LAB_I32, .count = size[0] * LINE, .fill = chain};
    buffer[3] = (gc_lab_buffer){.name = "end", .role = LAB_OUTPUT, .type = LAB_I32, .count = 1};
    buffer[4] = (gc_lab_buffer){.name = "cycles", .role = LAB_MEASURED, .type = LAB_I32, .count = 1};
    return 5;
}

/* Where STEPS steps lead; without a chain, what the additions sum up to. */
static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)buffer, (void)index;
    if (run->parameter == OF_NONE)
        return STEPS;
    int64_t lines = run->count[run->parameter] / LINE, line = 0;
    for (int k = 0; k < STEPS; k++)
        line = next_line(line, lines);
    return (double)(line * LINE);
}

static int follow(const gc_lab_run *run) {
    const int32_t *at = run->buffer[run->parameter];
    int32_t here = 0;
    for (int k = 0; k < STEPS; k++)
        here = at[here];
    *(int32_t *)run->buffer[3] = here;
    *(int32_t *)run->buffer[4] = 0;
    return 0;
}

static double cycles(const gc_lab_run *run) {
    return (double)*(const int32_t *)run->host[4] / STEPS;
}

static const gc_lab_size sizes[] = {
    {{1 << 12}, LAB_QUICK}, {{1 << 16}, LAB_CHECK}, {{1 << 22}, LAB_GPU_TIME | LAB_CPU_TIME}};

#define LATENCY(said, how, chain_of, figures, what)                                                                    \
    {                                                                                                                  \
        .name = said, .changed = how, .where = LAB_GPU, .parameter = (chain_of), .flags = LAB_ONCE, .figure = cycles,  \
        .figure_unit = "cycles", .course = figures, .prepare = LAB_ON_GPU(gck_latency_prepare),                        \
        .launch = LAB_ON_GPU(what)                                                                                     \
    }

static const gc_lab_variant variants[] = {
    {.name = "CPU, 16 KB", .changed = "1024 steps in the first-level cache; the time of all", .launch = follow},
    {.name = "CPU, 512 MB",
     .changed = "the same beyond all caches, once it is no longer warm",
     .parameter = OF_LARGE,
     .launch = follow},
    LATENCY("registers", "no memory: additions, each waiting for the one before", OF_NONE, "1 cycle",
            gck_latency_registers),
    LATENCY("shared", "a chain in shared memory", OF_SMALL, NULL, gck_latency_shared),
    LATENCY("constant cache", "a chain in constant memory", OF_SMALL, "20 to 40 cycles", gck_latency_constant),
    LATENCY("L1", "16 KB of global memory, read before", OF_SMALL, "20 to 40 cycles", gck_latency_l1),
    LATENCY("L2", "2 MB, read before, past the first-level cache", OF_MIDDLE, "200 to 300 cycles", gck_latency_l2),
    LATENCY("global", "512 MB, with both caches swept before", OF_LARGE, "400 to 800 cycles", gck_latency_global),
};

static const gc_lab_effect effects[] = {
    {"L1 is further away than a register", "L1", "registers", 3, 0},
    {"L2 is further away than L1", "L2", "L1", 2, 0},
    {"memory is further away than L2", "global", "L2", 1.3, 0},
};

const gc_lab_module gc_lab_memory_latency = {
    .name = "memory-latency",
    .title = "How long one must wait for each memory",
    .course = "Stahl 2.2",
    .idea =
        "The nearer a memory, the smaller: registers, shared memory and first-level cache on the multiprocessor, a "
        "second-level cache for all, and the device's memory. A chain of reads, each needing the result of the one "
        "before, shows how long one takes when there is nothing else to do.\n\n"
        "A GPU does not shorten the wait, it fills it: with 64 warps on a multiprocessor somebody is always ready. The "
        "latency is what must be hidden, and bandwidth times latency is how many bytes must be under way to hide it.",
    .see = "Cycles a step, rising from rung to rung, beside the course's table.",
    .next = "Multiply the latency of global memory by the copy's bandwidth: so many bytes must be under way. Compare "
            "with the eight loads of 16 bytes a thread in the best reduction.",
    .dimension = {"lines"},
    .buffers = buffers,
    .reference = reference,
    LAB_TABLES,
};
