/*
 * Four ways to read a table: out[i] = sum over k < 256 of table[index(i, k)], where the index is
 *
 *      uniform:    the same for all threads of a warp          (7 (i / 32) + 13 k) mod 1024
 *      divergent:  different for each                          (37 i + 13 k) mod 1024
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

static int64_t index_of(int64_t i, int64_t k, int divergent) {
    return (divergent ? 37 * i + 13 * k : 7 * (i / 32) + 13 * k) % TABLE;
}

static int loop(const gc_lab_run *run) {
    const float *table = run->buffer[0];
    float *out = run->buffer[1];
    for (int64_t i = 0; i < run->size[0]; i++) {
        float sum = 0.0f;
        for (int k = 0; k < READS; k++)
            sum += table[index_of(i, k, run->parameter)];
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
        sum += (double)run->in[0][index_of(index, k, run->parameter)];
    return sum;
}

static const gc_lab_size sizes[] = {
    {{1}, LAB_QUICK}, {{1000}, LAB_QUICK}, {{100003}, LAB_CHECK}, {{1 << 21}, LAB_GPU_TIME}, {{1 << 16}, LAB_CPU_TIME}};

#define READ(said, reads, how, kind)                                                                                   \
    {                                                                                                                  \
        .name = said, .changed = how, .where = LAB_GPU, .parameter = (kind), .tolerance = 1e-6,                        \
        .prepare = LAB_ON_GPU(gck_table_prepare), .launch = LAB_ON_GPU(reads)                                          \
    }

static const gc_lab_variant variants[] = {
    {.name = "CPU, uniform", .changed = "the loops", .launch = loop, .tolerance = 1e-6},
    {.name = "CPU, divergent", .changed = "the loops", .parameter = DIVERGENT, .launch = loop, .tolerance = 1e-6},
    READ("global, uniform", gck_table_global, "plain loads; a line serves the whole warp", UNIFORM),
    READ("constant, uniform", gck_table_constant, "the constant cache hands one number to all 32 threads", UNIFORM),
    READ("__ldg, uniform", gck_table_read_only, "loads that promise that nobody writes", UNIFORM),
    READ("shared, uniform", gck_table_shared, "the table copied into shared memory first", UNIFORM),
    READ("global, divergent", gck_table_global, "each thread another element, from the first-level cache", DIVERGENT),
    READ("constant, divergent", gck_table_constant, "32 different numbers: the constant cache gives them one by one",
         DIVERGENT),
    READ("__ldg, divergent", gck_table_read_only, "the read-only loads again", DIVERGENT),
    READ("shared, divergent", gck_table_shared, "a bank each, as 37 is odd: no conflicts", DIVERGENT),
};

static const gc_lab_effect effects[] = {
    {"divergent constant reads come one by one", "constant, divergent", "constant, uniform", 4, 0},
    {"a divergent index belongs into shared memory", "constant, divergent", "shared, divergent", 2, 0},
    {"broadcast from constant memory is no slower than from the cache", "global, uniform", "constant, uniform", 0.95,
     0},
};

const gc_lab_module gc_lab_constant_memory = {
    .name = "constant-memory",
    .title = "Constant memory: one number for all, or one by one",
    .course = "Stahl 8; Filipovic",
    .idea =
        "64 KB of constants have a cache of their own, which hands one number a time to a whole warp. If all 32 "
        "threads want the same - a tap of a filter, a weight, a limit - nothing is faster. If they want different "
        "ones, it needs as many turns as there are different numbers.\n\n"
        "Shared memory is the other way round: 32 banks, 32 different numbers at a time. The first-level cache lies "
        "between them; __ldg tells it that the data never changes.",
    .see = "With a uniform index the four are close. With a divergent one constant memory falls far behind, shared "
           "memory does not.",
    .next = "gpulab run convolution shows the taps moving from global to constant memory. gpulab run bank-conflicts "
            "shows what shared memory does not like.",
    .dimension = {"threads"},
    .buffers = buffers,
    .reference = reference,
    LAB_TABLES,
};
