/*
 * Module constant-memory: a table read through four kinds of memory. out[i] = sum over k < 256 of table[index(i, k)],
 * where the index is
 *
 *      uniform:    the same for all threads of a warp          (7 (i / 32) + 13 k) mod 1024
 *      divergent:  different for each thread                   (37 i + 13 k) mod 1024
 *
 * Courses: Stahl 8, Filipovic.
 */
#include "gpulab/lab.h"

enum { TABLE = 1024, READS = 256, UNIFORM = 0, DIVERGENT = 1 };

LAB_LAUNCHER(gck_table_prepare);
LAB_LAUNCHER(gck_table_global);
LAB_LAUNCHER(gck_table_constant);
LAB_LAUNCHER(gck_table_read_only);
LAB_LAUNCHER(gck_table_shared);

static int64_t table_index(int64_t i, int64_t k, int divergent) {
    return (divergent ? 37 * i + 13 * k : 7 * (i / 32) + 13 * k) % TABLE;
}

static int sequential(const gc_lab_run *run) {
    const float *table = run->buffer[0];
    float *out = run->buffer[1];
    for (int64_t i = 0; i < run->size[0]; i++) {
        float sum = 0.0f;
        for (int k = 0; k < READS; k++)
            sum += table[table_index(i, k, run->parameter)];
        out[i] = sum;
    }
    return 0;
}

static int buffers(const int64_t *size, gc_lab_buffer *buffer) {
    buffer[0] = (gc_lab_buffer){.name = "table", .type = LAB_F32, .count = TABLE, .low = 0, .high = 1};
    buffer[1] = (gc_lab_buffer){.name = "out", .role = LAB_OUTPUT, .type = LAB_F32, .count = size[0]};
    return 2;
}

static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)buffer;
    double sum = 0;
    for (int k = 0; k < READS; k++)
        sum += (double)run->in[0][table_index(index, k, run->parameter)];
    return sum;
}

static const gc_lab_size sizes[] = {
    {{1}, LAB_QUICK}, {{1000}, LAB_QUICK}, {{100003}, LAB_CHECK}, {{1 << 21}, LAB_GPU_TIME}, {{1 << 16}, LAB_CPU_TIME}};

#define READ(title, function, text, kind)                                                                              \
    {                                                                                                                  \
        .name = title, .changed = text, .where = LAB_GPU, .parameter = (kind), .tolerance = 1e-6,                      \
        .prepare = LAB_ON_GPU(gck_table_prepare), LAB_RUNS_ON_GPU(function)                                            \
    }

static const gc_lab_variant variants[] = {
    {.name = "CPU, uniform", .changed = "two loops on one core", LAB_RUNS(sequential), .tolerance = 1e-6},
    {.name = "CPU, divergent",
     .changed = "two loops on one core",
     .parameter = DIVERGENT,
     LAB_RUNS(sequential),
     .tolerance = 1e-6},
    READ("global, uniform", gck_table_global,
         "volatile loads: each one is executed as written, and none may use the read-only path", UNIFORM),
    READ("constant, uniform", gck_table_constant, "the constant cache broadcasts one number to all 32 threads",
         UNIFORM),
    READ("__ldg, uniform", gck_table_read_only,
         "read-only loads through the L1 cache: the data must not change while the kernel runs", UNIFORM),
    READ("shared, uniform", gck_table_shared, "each block first copies the table into shared memory", UNIFORM),
    READ("global, divergent", gck_table_global, "the volatile loads again, now of 32 different elements per warp",
         DIVERGENT),
    READ("constant, divergent", gck_table_constant,
         "32 different numbers: the constant cache delivers them one after the other", DIVERGENT),
    READ("__ldg, divergent", gck_table_read_only, "the read-only loads again", DIVERGENT),
    READ("shared, divergent", gck_table_shared,
         "the stride 37 is odd, so the 32 threads read from 32 different banks: no conflict", DIVERGENT),
};

static const gc_lab_effect effects[] = {
    {"divergent constant reads are serialised", "constant, divergent", "constant, uniform", 4, 0},
    {"a table with a divergent index belongs in shared memory", "constant, divergent", "shared, divergent", 2, 0},
    {"broadcasts from constant memory are no slower than volatile global loads", "global, uniform", "constant, uniform",
     0.95, 0},
};

const gc_lab_module gc_lab_constant_memory = {
    .name = "constant-memory",
    .title = "Constant memory: one number for all threads, or one after the other",
    .course = "Stahl 8; Filipovic",
    .idea =
        "The 64 KB of constant memory have their own cache, which delivers one number at a time to a whole warp. When "
        "all 32 threads want the same number, for example a filter tap, one read serves them all. When they want "
        "different numbers, the reads are serialised: one for each different address.\n\n"
        "Shared memory has 32 banks and can deliver 32 different numbers at a time. The L1 cache is between the two; "
        "__ldg tells the compiler that the data does not change, so that the loads may use it.",
    .see =
        "Compare each memory with a uniform and with a divergent index. Shared memory takes the same time with both. "
        "Constant memory answers one address at a time, so that a warp with many addresses waits for all of them; "
        "volatile global loads, which no cache near the multiprocessor serves, suffer most.\n\nConstant memory is "
        "not the fastest here even when all threads read the same number: the index changes with every read. Its "
        "best case is a kernel in which the index is known at compile time, because the arithmetic instruction then "
        "takes the constant as an operand and needs no load.",
    .next = "gpulab run convolution has filter taps in global and in constant memory. gpulab run bank-conflicts shows "
            "which accesses to shared memory are slow.",
    .dimension = {"threads"},
    .buffers = buffers,
    .reference = reference,
    LAB_TABLES,
};
