/*
 * Banks of shared memory: thread t of one warp reads word (t stride) mod 1056 of shared memory, again and again, each
 * read waiting for the one before; the warp's own clock counts the cycles.
 *
 *      bank of word w = w mod 32; threads of a warp that want different words of one bank wait for each other
 *
 * Courses: Stahl 9.3, Antolin.
 */
#include "gpulab/lab.h"

LAB_LAUNCHER(gck_banks);

enum { READS = 512 };

static int buffers(const int64_t *size, gc_lab_buffer *buffer) {
    buffer[0] = (gc_lab_buffer){.name = "sum", .role = LAB_OUTPUT, .type = LAB_I32, .count = 32 * size[0]};
    buffer[1] = (gc_lab_buffer){.name = "cycles", .role = LAB_MEASURED, .type = LAB_I32, .count = size[0]};
    return 2;
}

/* Every word is zero but for the offset that the reads are chained by: the sum of thread t is t. */
static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)run, (void)buffer;
    return (double)(index % 32);
}

static int by_hand(const gc_lab_run *run) {
    for (int64_t i = 0; i < 32 * run->size[0]; i++)
        ((int32_t *)run->buffer[0])[i] = (int32_t)(i % 32);
    for (int64_t b = 0; b < run->size[0]; b++)
        ((int32_t *)run->buffer[1])[b] = 0;
    return 0;
}

static double cycles(const gc_lab_run *run) {
    return (double)((const int32_t *)run->host[1])[0] / READS;
}

static const gc_lab_size sizes[] = {{{1}, LAB_QUICK | LAB_GPU_TIME}, {{7}, LAB_CHECK}};

#define STRIDE(n, said)                                                                                                \
    {                                                                                                                  \
        .name = "stride " #n, .changed = said, .where = LAB_GPU, .parameter = (n), .flags = LAB_ONCE,                  \
        .figure = cycles, .figure_unit = "cycles a read", .launch = LAB_ON_GPU(gck_banks)                              \
    }

static const gc_lab_variant variants[] = {
    {.name = "CPU", .changed = "what the sums must be; a CPU has no banks to show", .launch = by_hand},
    {.name = "broadcast",
     .changed = "all threads the same word: it is handed to all at once",
     .where = LAB_GPU,
     .parameter = 0,
     .flags = LAB_ONCE,
     .figure = cycles,
     .figure_unit = "cycles a read",
     .launch = LAB_ON_GPU(gck_banks)},
    STRIDE(1, "neighbours: a bank each"),
    STRIDE(2, "every other word: two threads a bank"),
    STRIDE(4, "four threads a bank"),
    STRIDE(8, "eight threads a bank"),
    STRIDE(16, "sixteen threads a bank"),
    STRIDE(32, "all threads one bank: one after the other"),
    STRIDE(33, "one word further: a bank each again"),
};

static const gc_lab_effect effects[] = {
    {"32-way conflicts are slower than none", "stride 32", "stride 1", 1.8, 0},
    {"32-way conflicts are slower than 8-way", "stride 32", "stride 8", 1.2, 0},
    {"one word of padding removes them", "stride 33", "stride 1", 1.1, 1},
    {"broadcast is no conflict", "broadcast", "stride 1", 1.1, 1},
};

const gc_lab_module gc_lab_bank_conflicts = {
    .name = "bank-conflicts",
    .title = "Banks of shared memory, in cycles",
    .course = "Stahl 9.3; Antolin",
    .idea =
        "Shared memory has 32 banks, each four bytes wide and each good for one word a cycle; word w lies in bank w "
        "mod 32. A warp's 32 reads go at once when they fall into 32 banks, or on the same word. When n threads want "
        "different words of one bank, it takes n turns.\n\n"
        "The stride between neighbours decides: 1 is free, 2 makes pairs, 32 puts all threads on one bank. 33 is free "
        "again, since each thread is one bank further: that is the padding of the transposed tile.",
    .see = "Cycles a read: a plain latency for broadcast, 1 and 33, and more for every doubling of the stride.",
    .next = "gpulab run transpose shows what the padding is worth in a real kernel.",
    .dimension = {"warps"},
    .buffers = buffers,
    .reference = reference,
    LAB_TABLES,
};
