/*
 * Module bank-conflicts: the latency of shared memory with different strides. Thread t of one warp reads word
 * (t stride) mod 1056 of shared memory 512 times; each read depends on the one before, and the multiprocessor's clock
 * counts the cycles.
 *
 *      bank of word w = w mod 32; reads of different words in the same bank are executed one after the other
 *
 * Courses: Stahl 9.3, Antolin.
 */
#include "gpulab/lab.h"

LAB_LAUNCHER(gck_bank_conflicts);

enum { READS = 512 };

static int buffers(const int64_t *size, gc_lab_buffer *buffer) {
    buffer[0] = (gc_lab_buffer){.name = "sum", .role = LAB_OUTPUT, .type = LAB_I32, .count = 32 * size[0]};
    buffer[1] = (gc_lab_buffer){.name = "cycles", .role = LAB_MEASURED, .type = LAB_I32, .count = size[0]};
    return 2;
}

/* Every word of the table is zero, so the sum that thread t writes is t. */
static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)run, (void)buffer;
    return (double)(index % 32);
}

static int expected_sums(const gc_lab_run *run) {
    for (int64_t i = 0; i < 32 * run->size[0]; i++)
        ((int32_t *)run->buffer[0])[i] = (int32_t)(i % 32);
    for (int64_t b = 0; b < run->size[0]; b++)
        ((int32_t *)run->buffer[1])[b] = 0;
    return 0;
}

static double cycles_per_read(const gc_lab_run *run) {
    return (double)((const int32_t *)run->host[1])[0] / READS;
}

static const gc_lab_size sizes[] = {{{1}, LAB_QUICK | LAB_GPU_TIME}, {{7}, LAB_CHECK}};

#define STRIDE(n, text)                                                                                                \
    {                                                                                                                  \
        .name = "stride " #n, .changed = text, .where = LAB_GPU, .parameter = (n), .flags = LAB_ONCE,                  \
        .figure = cycles_per_read, .figure_unit = "cycles a read", LAB_RUNS_ON_GPU(gck_bank_conflicts)                 \
    }

static const gc_lab_variant variants[] = {
    {.name = "CPU", .changed = "writes the expected sums; a CPU has no banks to measure", LAB_RUNS(expected_sums)},
    {.name = "broadcast",
     .changed = "all threads read the same word, which one access delivers to all of them",
     .where = LAB_GPU,
     .parameter = 0,
     .flags = LAB_ONCE,
     .figure = cycles_per_read,
     .figure_unit = "cycles a read",
     LAB_RUNS_ON_GPU(gck_bank_conflicts)},
    STRIDE(1, "neighbouring words: each thread reads from a different bank"),
    STRIDE(2, "every second word: two threads per bank"),
    STRIDE(4, "four threads per bank"),
    STRIDE(8, "eight threads per bank"),
    STRIDE(16, "sixteen threads per bank"),
    STRIDE(32, "all 32 threads read from the same bank, one after the other"),
    STRIDE(33, "one word more than 32: each thread reads from a different bank again"),
};

static const gc_lab_effect effects[] = {
    {"32-way conflicts are slower than no conflict", "stride 32", "stride 1", 1.8, 0},
    {"32-way conflicts are slower than 8-way conflicts", "stride 32", "stride 8", 1.2, 0},
    {"one word of padding removes the conflicts", "stride 33", "stride 1", 1.1, 1},
    {"a broadcast causes no conflict", "broadcast", "stride 1", 1.1, 1},
};

const gc_lab_module gc_lab_bank_conflicts = {
    .name = "bank-conflicts",
    .title = "Banks of shared memory, in cycles",
    .course = "Stahl 9.3; Antolin",
    .idea =
        "Shared memory has 32 banks of four-byte words; word w is in bank w mod 32. Each bank delivers one word at a "
        "time. The 32 reads of a warp are executed together when they use 32 different banks, or the same word. When "
        "n threads read different words of the same bank, there is an n-way bank conflict, and the n reads are "
        "executed one after the other.\n\n"
        "The stride between neighbouring threads decides: 1 causes no conflict, 2 makes two threads share a bank, 32 "
        "puts all threads on one bank. With 33 there is no conflict again, because each thread reads one bank further "
        "than its neighbour. This is the reason for the padding of a tile in the module transpose.",
    .see = "Cycles per read: broadcast, stride 1 and stride 33 take the latency without conflicts, and the time grows "
           "with every doubling of the stride. Each further thread of a warp on the same bank adds the same number of "
           "cycles.",
    .next = "gpulab run transpose shows the gain from the padding in a real kernel.",
    .dimension = {"warps"},
    .buffers = buffers,
    .reference = reference,
    LAB_TABLES,
};
