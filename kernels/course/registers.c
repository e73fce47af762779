/*
 * Module registers: registers per thread against threads per multiprocessor. A thread keeps 80 numbers and mixes them
 * in 64 rounds. __launch_bounds__ states how many blocks of 256 threads a multiprocessor shall hold, which limits the
 * registers of a thread; numbers that do not fit are spilled to local memory, which is part of device memory.
 *
 *      x[j] = 0.5 x[j] + 0.25 x[j + 1] + 0.25 x[j + 7]   (indices mod 80, one after the other), x[j] = in (j + 1) / 80
 *
 * The second part is Khunjush's question: an image of 64 x 48 pixels in blocks of 1024 or of 64 threads uses 3 or 48
 * multiprocessors.
 *
 * Courses: Stahl 10, Khunjush.
 */
#include "gpulab/lab.h"

enum { NUMBERS = 80, ROUNDS = 64, CHAIN = 20000 };

/* A variant's parameter is the number of blocks per multiprocessor, or for the image minus the threads per block. */
enum { IMAGE_1024 = -1024, IMAGE_64 = -64 };

LAB_LAUNCHER(gck_registers_mix);
LAB_LAUNCHER(gck_registers_image);
LAB_FACTS(gck_registers_facts);

static double mix(double in) {
    double x[NUMBERS], sum = 0;
    for (int j = 0; j < NUMBERS; j++)
        x[j] = in * (j + 1) / NUMBERS;
    for (int r = 0; r < ROUNDS; r++)
        for (int j = 0; j < NUMBERS; j++)
            x[j] = 0.5 * x[j] + 0.25 * x[(j + 1) % NUMBERS] + 0.25 * x[(j + 7) % NUMBERS];
    for (int j = 0; j < NUMBERS; j++)
        sum += x[j];
    return sum;
}

/* The value of an image's pixel: a long chain of multiply-adds, which converges to 1. */
static double multiply_add_chain(double in) {
    for (int k = 0; k < CHAIN; k++)
        in = in * 0.999 + 0.001;
    return in;
}

static int sequential(const gc_lab_run *run) {
    const float *in = run->buffer[0];
    float *out = run->buffer[1];
    for (int64_t i = 0; i < run->size[0]; i++)
        out[i] = (float)mix((double)in[i]);
    return 0;
}

static int buffers(const int64_t *size, gc_lab_buffer *buffer) {
    buffer[0] = (gc_lab_buffer){.name = "in", .type = LAB_F32, .count = size[0], .low = 0.5, .high = 1};
    buffer[1] = (gc_lab_buffer){.name = "out", .role = LAB_OUTPUT, .type = LAB_F32, .count = size[0]};
    return 2;
}

static gc_lab_cost cost(const int64_t *size, const gc_lab_variant *variant) {
    double each = variant->parameter < 0 ? 2.0 * CHAIN : 5.0 * NUMBERS * ROUNDS;
    return (gc_lab_cost){.bytes = 8.0 * (double)size[0], .operations = each * (double)size[0]};
}

static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)buffer;
    double in = (double)run->in[0][index];
    return run->parameter < 0 ? multiply_add_chain(in) : mix(in);
}

static const gc_lab_size sizes[] = {{{1}, LAB_QUICK},
                                    {{1000}, LAB_QUICK},
                                    {{64 * 48}, LAB_CHECK | LAB_SLOW_TIME | LAB_CPU_TIME},
                                    {{1 << 21}, LAB_GPU_TIME}};

#define BOUNDS(n, text, why)                                                                                           \
    {                                                                                                                  \
        .name = "bounds of " #n, .changed = text, .limit = why, .where = LAB_GPU, .parameter = (n), .tolerance = 1e-5, \
        .facts = LAB_ON_GPU(gck_registers_facts), LAB_RUNS_ON_GPU(gck_registers_mix)                                   \
    }

static const gc_lab_variant variants[] = {
    {.name = "CPU", .changed = "one core, in double precision", LAB_RUNS(sequential), .tolerance = 1e-6},
    BOUNDS(1, "at least one block of 256 threads per multiprocessor: up to 255 registers per thread", NULL),
    BOUNDS(2, "at least two blocks: at most 128 registers per thread", NULL),
    BOUNDS(4, "four blocks: 64 registers per thread, so 80 numbers no longer fit",
           "65536 registers / (4 x 256 threads) = 64 for each thread, and it needs 96: what does not fit goes to local "
           "memory, which is a store and a load through the L1 cache for each use."),
    BOUNDS(
        6, "six blocks: 40 registers per thread",
        "65536 / (6 x 256) = 42, given out in eights: 40 registers. More is spilled, and three times as many threads "
        "share the L1 cache that holds the spills."),
    BOUNDS(8, "eight blocks, the largest number of threads: 32 registers per thread, and spills in every round",
           "32 registers: nearly every value is loaded before its use and stored after it. Occupancy is full, and the "
           "time is that of the spills."),
    {.name = "64 x 48, blocks of 1024",
     .changed = "the image in three blocks, for three multiprocessors",
     .limit =
         "Three blocks, so three of 132 multiprocessors work. Each has 32 warps on 4 schedulers: 8 warps a scheduler "
         "start one multiply-add in turn, so a step of the chain takes 8 cycles.",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME,
     .parameter = IMAGE_1024,
     .tolerance = 1e-4,
     LAB_RUNS_ON_GPU(gck_registers_image)},
    {.name = "64 x 48, blocks of 64",
     .changed = "the same image in 48 blocks, for 48 multiprocessors",
     .limit =
         "48 blocks on 48 multiprocessors, 2 warps each: nothing to wait for but the chain itself, 20000 steps of 4 "
         "cycles, 40 microseconds.",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME,
     .parameter = IMAGE_64,
     .tolerance = 1e-4,
     LAB_RUNS_ON_GPU(gck_registers_image)},
};

static const gc_lab_effect effects[] = {
    {"spilled registers cost more time than occupancy saves", "bounds of 8", "bounds of 2", 1.1, 0},
    {"three blocks leave most of the GPU idle", "64 x 48, blocks of 1024", "64 x 48, blocks of 64", 1.3, 0},
};

const gc_lab_module gc_lab_registers = {
    .name = "registers",
    .title = "Registers, spills and occupancy",
    .course = "Stahl 10; Khunjush",
    .idea =
        "A multiprocessor of an H200 has 65536 registers and room for 2048 threads: it can hold all of them only if "
        "each uses at most 32 registers. __launch_bounds__(threads, blocks) tells the compiler how many blocks shall "
        "fit. The compiler then uses only as many registers as this leaves for each thread, and spills further values "
        "to local memory if it must.\n\n"
        "More threads hide more latency; more registers keep more values close to the arithmetic. High occupancy is "
        "not a goal in itself: the register-tiled matrix product of this lab runs with an eighth of the possible "
        "threads.\n\n"
        "The second part shows that blocks are assigned whole. An image of 3072 pixels in blocks of 1024 threads has "
        "three blocks, for three multiprocessors; in blocks of 64 threads it has 48.",
    .see =
        "The variants with bounds print their registers, bytes of local memory and blocks per multiprocessor. On an "
        "H200 bounds of 1 and of 2 give the same kernel, with 96 registers and no spills. From bounds of 4 on the "
        "compiler spills, and the time rises although occupancy rises too.\n\nCompare the image in blocks of 1024 "
        "and in blocks of 64. 16 times as many multiprocessors make it only about twice as fast, because every pixel "
        "is a chain of 20000 dependent multiply-adds of about 4 cycles, or 40 microseconds. With 32 warps on a "
        "multiprocessor its four schedulers need 8 cycles for each step instead.",
    .next = "gpulab device --threads 256 --registers 40 computes the occupancy of any launch.",
    .dimension = {"threads"},
    .buffers = buffers,
    .cost = cost,
    .reference = reference,
    LAB_TABLES,
};
