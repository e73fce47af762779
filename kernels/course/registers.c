/*
 * Registers against threads: a thread keeps 80 numbers and mixes them, 64 rounds. __launch_bounds__ says how many
 * blocks of 256 threads a multiprocessor shall hold, and so how many registers a thread may have; what does not fit is
 * spilled to local memory, which is memory.
 *
 *      x[j] = 0.5 x[j] + 0.25 x[j + 1] + 0.25 x[j + 7]   (indices mod 80, one after the other), x[j] = in (j + 1) / 80
 *
 * And Khunjush's question: an image of 64 x 48 pixels, in blocks of 1024 threads or of 64. Three blocks occupy three
 * multiprocessors, 48 occupy 48.
 *
 * Courses: Stahl 10, Khunjush.
 */
#include "gpulab/lab.h"

enum { NUMBERS = 80, ROUNDS = 64, CHAIN = 20000 };

/* The parameter: blocks a multiprocessor, or the negative number of threads a block for the image. */
enum { IMAGE_1024 = -1024, IMAGE_64 = -64 };

LAB_LAUNCHER(gck_registers_mix);
LAB_LAUNCHER(gck_registers_image);
LAB_FACTS(gck_registers_facts);

static double mixed(double in) {
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

/* What an image's pixel is worth: a long chain of multiply-adds towards 1. */
static double chained(double in) {
    for (int k = 0; k < CHAIN; k++)
        in = in * 0.999 + 0.001;
    return in;
}

static int loop(const gc_lab_run *run) {
    const float *in = run->buffer[0];
    float *out = run->buffer[1];
    for (int64_t i = 0; i < run->size[0]; i++)
        out[i] = (float)mixed((double)in[i]);
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
    return run->parameter < 0 ? chained(in) : mixed(in);
}

static const gc_lab_size sizes[] = {{{1}, LAB_QUICK},
                                    {{1000}, LAB_QUICK},
                                    {{64 * 48}, LAB_CHECK | LAB_SLOW_TIME | LAB_CPU_TIME},
                                    {{1 << 21}, LAB_GPU_TIME}};

#define BOUNDS(n, said)                                                                                                \
    {                                                                                                                  \
        .name = "bounds of " #n, .changed = said, .where = LAB_GPU, .parameter = (n), .tolerance = 1e-5,               \
        .facts = LAB_ON_GPU(gck_registers_facts), .launch = LAB_ON_GPU(gck_registers_mix)                              \
    }

static const gc_lab_variant variants[] = {
    {.name = "CPU", .changed = "in double precision", .launch = loop, .tolerance = 1e-6},
    BOUNDS(1, "at least one block of 256 a multiprocessor: as many registers as the compiler likes"),
    BOUNDS(2, "two blocks"),
    BOUNDS(4, "four blocks: 64 registers a thread, and 80 numbers no longer fit"),
    BOUNDS(6, "six blocks: 40 registers"),
    BOUNDS(8, "eight blocks, all the threads there can be: 32 registers, spills in every round"),
    {.name = "64 x 48, blocks of 1024",
     .changed = "an image in three blocks: three multiprocessors work",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME,
     .parameter = IMAGE_1024,
     .tolerance = 1e-4,
     .launch = LAB_ON_GPU(gck_registers_image)},
    {.name = "64 x 48, blocks of 64",
     .changed = "the same image in 48 blocks: 48 multiprocessors work",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME,
     .parameter = IMAGE_64,
     .tolerance = 1e-4,
     .launch = LAB_ON_GPU(gck_registers_image)},
};

static const gc_lab_effect effects[] = {
    {"spilled registers cost more than occupancy brings", "bounds of 8", "bounds of 2", 1.1, 0},
    {"three blocks leave most of the GPU idle", "64 x 48, blocks of 1024", "64 x 48, blocks of 64", 1.3, 0},
};

const gc_lab_module gc_lab_registers = {
    .name = "registers",
    .title = "Registers, spills and occupancy",
    .course = "Stahl 10; Khunjush",
    .idea =
        "A multiprocessor has 65536 registers and room for 2048 threads: with more than 32 registers a thread not all "
        "can be there. __launch_bounds__(threads, blocks) tells the compiler how many blocks shall fit, and it does "
        "with the registers that leaves - by spilling the rest to local memory if it must.\n\n"
        "More threads hide more waiting; more registers keep more numbers near. Occupancy is a means, not an end: the "
        "best kernels of this lab, the products, run with an eighth of the threads.\n\n"
        "And blocks are dealt whole. An image of 3072 pixels in blocks of 1024 is three blocks, for three "
        "multiprocessors; in blocks of 64 it is 48.",
    .see = "The facts of each variant: registers, bytes of local memory, blocks a multiprocessor; and the time, which "
           "falls and rises again where spills begin.",
    .next = "gpulab device --threads 256 --registers 40 gives the occupancy of any launch.",
    .dimension = {"threads"},
    .buffers = buffers,
    .cost = cost,
    .reference = reference,
    LAB_TABLES,
};
