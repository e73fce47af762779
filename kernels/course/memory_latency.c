/*
 * Module memory-latency: the latency of each kind of memory. A single thread follows a chain, index = chain[index], so
 * that every read depends on the one before, and counts the cycles.
 *
 * Lines of a chain have 128 bytes. Line l leads to line (a l + 1) mod L with a = 4 (L / 16) + 5; for L = 2^k lines the
 * chain visits each of them once. A chain of 16 KB fits in the L1 cache, one of 2 MB in the L2 cache, one of 512 MB in
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

enum { STEPS = 1024, LINE_WORDS = 32, SMALL_LINES = 128, MIDDLE_LINES = 1 << 14 };

/* A variant's parameter: the buffer with the chain that it follows. */
enum { NO_CHAIN = -1, SMALL_CHAIN = 0, MIDDLE_CHAIN = 1, LARGE_CHAIN = 2 };

static int64_t next_line(int64_t line, int64_t lines) {
    return ((4 * (lines / 16) + 5) * line + 1) % lines;
}

static void fill_chain(const int64_t *size, void *elements, int64_t count) {
    (void)size;
    int32_t *next = elements;
    int64_t lines = count / LINE_WORDS;
    for (int64_t line = 0; line < lines; line++)
        for (int w = 0; w < LINE_WORDS; w++)
            next[line * LINE_WORDS + w] = (int32_t)(next_line(line, lines) * LINE_WORDS);
}

static int buffers(const int64_t *size, gc_lab_buffer *buffer) {
    buffer[0] =
        (gc_lab_buffer){.name = "small", .type = LAB_I32, .count = SMALL_LINES * LINE_WORDS, .fill = fill_chain};
    buffer[1] =
        (gc_lab_buffer){.name = "middle", .type = LAB_I32, .count = MIDDLE_LINES * LINE_WORDS, .fill = fill_chain};
    buffer[2] = (gc_lab_buffer){.name = "large", .type = LAB_I32, .count = size[0] * LINE_WORDS, .fill = fill_chain};
    buffer[3] = (gc_lab_buffer){.name = "end", .role = LAB_OUTPUT, .type = LAB_I32, .count = 1};
    buffer[4] = (gc_lab_buffer){.name = "cycles", .role = LAB_MEASURED, .type = LAB_I32, .count = 1};
    return 5;
}

/* Returns the index after STEPS steps; for the variant without a chain, the sum of its additions. */
static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)buffer, (void)index;
    if (run->parameter == NO_CHAIN)
        return STEPS;
    int64_t lines = run->count[run->parameter] / LINE_WORDS, line = 0;
    for (int k = 0; k < STEPS; k++)
        line = next_line(line, lines);
    return (double)(line * LINE_WORDS);
}

static int follow_chain(const gc_lab_run *run) {
    const int32_t *next = run->buffer[run->parameter];
    int32_t index = 0;
    for (int k = 0; k < STEPS; k++)
        index = next[index];
    *(int32_t *)run->buffer[3] = index;
    *(int32_t *)run->buffer[4] = 0;
    return 0;
}

static double cycles_per_step(const gc_lab_run *run) {
    return (double)*(const int32_t *)run->host[4] / STEPS;
}

static const gc_lab_size sizes[] = {
    {{1 << 12}, LAB_QUICK}, {{1 << 16}, LAB_CHECK}, {{1 << 22}, LAB_GPU_TIME | LAB_CPU_TIME}};

#define LATENCY(title, text, chain, figures, function)                                                                 \
    {                                                                                                                  \
        .name = title, .changed = text, .where = LAB_GPU, .parameter = (chain), .flags = LAB_ONCE,                     \
        .figure = cycles_per_step, .figure_unit = "cycles", .course = figures,                                         \
        .prepare = LAB_ON_GPU(gck_latency_prepare), LAB_RUNS_ON_GPU(function)                                          \
    }

static const gc_lab_variant variants[] = {
    {.name = "CPU, 16 KB",
     .changed = "1024 steps in the L1 cache; the time is that of all steps",
     LAB_RUNS(follow_chain)},
    {.name = "CPU, 512 MB",
     .changed =
         "1024 steps along the large chain; they touch only 1024 lines, which stay in a cache when the run is repeated",
     .parameter = LARGE_CHAIN,
     LAB_RUNS(follow_chain)},
    LATENCY("registers", "no memory: a chain of dependent additions", NO_CHAIN, "1 cycle", gck_latency_registers),
    LATENCY("shared", "a chain in shared memory", SMALL_CHAIN, NULL, gck_latency_shared),
    LATENCY("constant cache", "a chain of 16 KB in constant memory", SMALL_CHAIN, "20 to 40 cycles",
            gck_latency_constant),
    LATENCY("L1", "16 KB of global memory, read once before", SMALL_CHAIN, "20 to 40 cycles", gck_latency_l1),
    LATENCY("L2", "2 MB of global memory, read once before; the loads bypass the L1 cache", MIDDLE_CHAIN,
            "200 to 300 cycles", gck_latency_l2),
    LATENCY("global", "512 MB of global memory, after other data has replaced the contents of both caches", LARGE_CHAIN,
            "400 to 800 cycles", gck_latency_global),
};

static const gc_lab_effect effects[] = {
    {"the L1 cache has a higher latency than registers", "L1", "registers", 3, 0},
    {"the L2 cache has a higher latency than the L1 cache", "L2", "L1", 2, 0},
    {"device memory has a higher latency than the L2 cache", "global", "L2", 1.3, 0},
};

const gc_lab_module gc_lab_memory_latency = {
    .name = "memory-latency",
    .title = "The latency of each kind of memory",
    .course = "Stahl 2.2",
    .idea =
        "The faster a memory, the smaller it is: registers, shared memory and L1 cache belong to one multiprocessor, "
        "the L2 cache serves all of them, and device memory is the largest. A chain of reads, in which each read "
        "needs the result of the one before, measures the latency of a single read when no other work is "
        "available.\n\n"
        "A GPU does not shorten this latency, it hides it: with up to 64 warps on a multiprocessor, another warp is "
        "usually ready to run. Latency times bandwidth is the number of bytes that must be in flight to keep a memory "
        "busy.",
    .see = "Compare the cycles per step with the course's table. An addition takes more than the 1 cycle in the table: "
           "an instruction can start in every cycle, but a dependent one waits for the result.\n\nThe constant cache "
           "takes more than the 20 to 40 cycles in the table. A likely reason is that 16 KB are more than the first "
           "level of the constant cache holds.",
    .next =
        "Multiply the latency of device memory by the bandwidth of the copy. This is the number of bytes that must "
        "be in flight; divide it by the number of multiprocessors. Compare this with the eight loads of 16 bytes per "
        "thread in the best variant of the module reduction. Then shorten the small chain to 1 KB (SMALL_LINES in "
        "memory_latency.c to 8, WORDS in memory_latency.cu to 8 * 32) and measure the constant cache again.",
    .dimension = {"lines"},
    .buffers = buffers,
    .reference = reference,
    LAB_TABLES,
};
