/*
 * Direct convolution, the study of the whole course: out[n] = sum over k < G of h[k] in[n - k], for F outputs.
 *
 * 2 F G operations on F + G numbers. The inputs that an output needs are a window of G, and neighbours' windows overlap
 * in all but one: everything here is about how often a number is fetched for how many multiply-adds.
 *
 *      one output a thread:  a load of in and a load of h for each multiply-add
 *      x outputs a thread:   the window of x inputs stays in registers; one load of in and one of h serve x
 * multiply-adds
 *
 * `in` begins with the history before the first output: the largest multiple of 32 that G needs.
 *
 * Course: Stahl 11.
 */
#include "gpulab/lab.h"

#include <math.h>
#include <string.h>

LAB_LAUNCHER(gck_convolution_prepare);
LAB_LAUNCHER(gck_convolution_global);
LAB_LAUNCHER(gck_convolution_constant);
LAB_LAUNCHER(gck_convolution_tile);
LAB_LAUNCHER(gck_convolution_double);
LAB_LAUNCHER(gck_convolution_unrolled);
LAB_FACTS(gck_convolution_unrolled_facts);

static int64_t history(const int64_t *size) {
    return (size[1] + 31) / 32 * 32;
}

/* A block of outputs at a time stays in registers, as in the last kernels of the ladder. */
static void outputs(const gc_lab_run *run, int64_t from) {
    enum { BLOCK = 32 };
    const float *in = (const float *)run->buffer[0] + history(run->size) + from, *h = run->buffer[1];
    float sum[BLOCK] = {0};
    for (int64_t k = 0; k < run->size[1]; k++)
        for (int r = 0; r < BLOCK; r++)
            sum[r] += h[k] * in[r - k];
    int64_t left = run->size[0] - from;
    memcpy((float *)run->buffer[2] + from, sum, sizeof(float) * (size_t)(left < BLOCK ? left : BLOCK));
}

static int core(const gc_lab_run *run) {
    for (int64_t n = 0; n < run->size[0]; n += 32)
        outputs(run, n);
    return 0;
}

static int all_cores(const gc_lab_run *run) {
#pragma omp parallel for
    for (int64_t n = 0; n < run->size[0]; n += 32)
        outputs(run, n);
    return 0;
}

/* A decaying response, and zeros up to a multiple of 32 taps. */
static void response(const int64_t *size, void *elements, int64_t count) {
    float *h = elements;
    uint32_t state = 1;
    for (int64_t k = 0; k < count; k++) {
        state = state * 1664525u + 1013904223u;
        h[k] = k < size[1] ? ((float)(state >> 8) * 0x1p-23f - 1) * expf(-5.0f * (float)k / (float)size[1]) : 0.0f;
    }
}

static int buffers(const int64_t *size, gc_lab_buffer *buffer) {
    buffer[0] = (gc_lab_buffer){.name = "in", .type = LAB_F32, .count = history(size) + size[0] + 32};
    buffer[1] = (gc_lab_buffer){.name = "h", .type = LAB_F32, .count = history(size), .fill = response};
    buffer[2] = (gc_lab_buffer){.name = "out", .role = LAB_OUTPUT, .type = LAB_F32, .count = size[0]};
    return 3;
}

static gc_lab_cost cost(const int64_t *size, const gc_lab_variant *variant) {
    double f = (double)size[0], g = (double)size[1];
    return (gc_lab_cost){.bytes = f * (variant->output == LAB_F64 ? 12 : 8) + 4 * g, .operations = 2 * f * g};
}

static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)buffer;
    const float *in = run->in[0] + history(run->size) + index, *h = run->in[1];
    double sum = 0;
    for (int64_t k = 0; k < run->size[1]; k++)
        sum += (double)h[k] * (double)in[-k];
    return sum;
}

static const gc_lab_size sizes[] = {
    {{1, 1}, LAB_QUICK},        {{1000, 17}, LAB_QUICK},         {{4099, 512}, LAB_CHECK},
    {{20000, 1000}, LAB_CHECK}, {{1 << 13, 512}, LAB_SLOW_TIME}, {{1 << 23, 512}, LAB_GPU_TIME | LAB_CPU_TIME},
};

/* The parameter of the strided kernels: blocks x 2048 + threads; 0: a thread an output. */
enum { ONE_THREAD = 2048 + 1, ONE_BLOCK = 2048 + 1024 };

#define UNROLLED(x, said)                                                                                              \
    {                                                                                                                  \
        .name = "register-unrolled, " #x " outputs", .changed = said, .where = LAB_GPU, .parameter = (x),              \
        .tolerance = 2e-6, .course = "0.83 ms = 10.35 of 14.7 TFLOP/s, the best x",                                    \
        .prepare = LAB_ON_GPU(gck_convolution_prepare), .facts = LAB_ON_GPU(gck_convolution_unrolled_facts),           \
        .launch = LAB_ON_GPU(gck_convolution_unrolled)                                                                 \
    }

static const gc_lab_variant variants[] = {
    {.name = "CPU core",
     .changed = "one core, 32 outputs at a time",
     .launch = core,
     .tolerance = 2e-6,
     .course = "367 ms"},
    {.name = "CPU OpenMP", .changed = "all cores", .launch = all_cores, .tolerance = 2e-6},
    {.name = "one thread, taps global",
     .changed = "one thread of the GPU: one core of one multiprocessor, every load waited for",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME,
     .parameter = ONE_THREAD,
     .tolerance = 2e-6,
     .course = "17433 ms for 2^23 outputs: 17.0 ms for 2^13",
     .launch = LAB_ON_GPU(gck_convolution_global)},
    {.name = "one thread, taps constant",
     .changed = "the taps from constant memory",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME,
     .parameter = ONE_THREAD,
     .tolerance = 2e-6,
     .course = "22438 ms for 2^23 outputs: 21.9 ms for 2^13",
     .prepare = LAB_ON_GPU(gck_convolution_prepare),
     .launch = LAB_ON_GPU(gck_convolution_constant)},
    {.name = "one block, taps global",
     .changed = "1024 threads of one multiprocessor: while one waits, another works",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME,
     .parameter = ONE_BLOCK,
     .tolerance = 2e-6,
     .course = "224 ms for 2^23 outputs: 0.219 ms for 2^13",
     .launch = LAB_ON_GPU(gck_convolution_global)},
    {.name = "one block, taps constant",
     .changed = "a tap is the same for all threads of a warp, and constant memory hands it to all at once",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME,
     .parameter = ONE_BLOCK,
     .tolerance = 2e-6,
     .course = "120 ms for 2^23 outputs: 0.117 ms for 2^13",
     .prepare = LAB_ON_GPU(gck_convolution_prepare),
     .launch = LAB_ON_GPU(gck_convolution_constant)},
    {.name = "taps global",
     .changed = "a thread an output, on all multiprocessors",
     .where = LAB_GPU,
     .tolerance = 2e-6,
     .course = "5 ms",
     .launch = LAB_ON_GPU(gck_convolution_global)},
    {.name = "taps constant",
     .changed = "the taps from constant memory",
     .where = LAB_GPU,
     .tolerance = 2e-6,
     .prepare = LAB_ON_GPU(gck_convolution_prepare),
     .launch = LAB_ON_GPU(gck_convolution_constant)},
    {.name = "tile in shared memory",
     .changed =
         "the inputs and the taps of a block are read once into shared memory; still more than one load for each "
         "multiply-add",
     .where = LAB_GPU,
     .tolerance = 2e-6,
     .launch = LAB_ON_GPU(gck_convolution_tile)},
    {.name = "double precision",
     .changed = "the kernel with constant taps, computing in double",
     .where = LAB_GPU,
     .unit = LAB_FP64,
     .output = LAB_F64,
     .tolerance = 1e-13,
     .prepare = LAB_ON_GPU(gck_convolution_prepare),
     .launch = LAB_ON_GPU(gck_convolution_double)},
    UNROLLED(4, "four outputs a thread: the window of inputs in registers, a load serves four multiply-adds"),
    UNROLLED(8, "eight outputs a thread"),
    UNROLLED(16, "sixteen outputs a thread"),
    UNROLLED(32, "32 outputs a thread: more reuse, more registers, fewer threads"),
};

static const gc_lab_effect effects[] = {
    {"1024 threads hide what one must wait for", "one thread, taps global", "one block, taps global", 20, 0},
    {"taps from constant memory are faster for whole warps", "one block, taps global", "one block, taps constant", 1.05,
     0},
    {"the window in registers saves loads", "taps constant", "register-unrolled, 8 outputs", 1.5, 0},
    {"four outputs a thread are too few", "register-unrolled, 4 outputs", "register-unrolled, 16 outputs", 1.02, 0},
    {"double precision is slower than single", "double precision", "taps constant", 1.2, 0},
    {"one CPU core is slower than the GPU", "CPU core", "register-unrolled, 8 outputs", 100, 0},
};

const gc_lab_module gc_lab_convolution = {
    .name = "convolution",
    .title = "Convolution: one kernel from one thread to all the arithmetic there is",
    .course = "Stahl 11",
    .idea =
        "Every output is a sum over G taps, each output a thread: 2^23 outputs and 512 taps are eight thousand million "
        "operations. A single thread takes seconds, for each load takes hundreds of cycles and it has nothing else to "
        "do. A thousand threads on one multiprocessor hide each other's waiting; a hundred multiprocessors multiply "
        "that.\n\n"
        "Then the loads themselves are in the way. A tap is the same for all threads of a warp: constant memory hands "
        "it to all 32 in one go. The inputs differ, but a thread that makes x neighbouring outputs needs only one new "
        "input for x multiply-adds, if it keeps the last x in registers. From tap to tap the window moves by one; "
        "unrolled x times, every register's role is known when the kernel is compiled, and nothing is moved at all.\n\n"
        "That is the arithmetic's ceiling: what is left is multiply-adds, issued as fast as they can be.",
    .see = "The rate of the register-unrolled kernels beside the multiply-add loop. The speedups of the course: whole "
           "GPU over one core of the CPU, and the best kernel over the first.",
    .next =
        "gpulab sweep convolution threads and gpulab sweep convolution blocks draw the course's two plots on your GPU: "
        "1 to 1024 threads on one multiprocessor, and 1 to 16384 blocks, with a peak at every multiple of the number "
        "of multiprocessors.",
    .dimension = {"outputs", "taps"},
    .buffers = buffers,
    .cost = cost,
    .reference = reference,
    LAB_TABLES,
};
