/*
 * Module convolution: direct convolution, out[n] = sum over k < G of h[k] in[n - k], for F outputs.
 *
 * This is 2 F G operations on F + G numbers. An output needs a window of G inputs, and the windows of neighbouring
 * outputs share all inputs but one. The variants differ in how many multiply-adds each load serves:
 *
 *      one output per thread:  a load of in and a load of h for each multiply-add
 *      x outputs per thread:   the window of x inputs stays in registers; a load of in and a load of h serve x
 *                              multiply-adds
 *
 * `in` begins with the history before the first output: G inputs, rounded up to a multiple of 32.
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

static int64_t history_length(const int64_t *size) {
    return (size[1] + 31) / 32 * 32;
}

/* Computes up to 32 outputs from index `first`; their sums stay in registers, as in the last kernels of the ladder. */
static void compute_block(const gc_lab_run *run, int64_t first) {
    enum { BLOCK = 32 };
    const float *in = (const float *)run->buffer[0] + history_length(run->size) + first, *h = run->buffer[1];
    float sum[BLOCK] = {0};
    for (int64_t k = 0; k < run->size[1]; k++)
        for (int r = 0; r < BLOCK; r++)
            sum[r] += h[k] * in[r - k];
    int64_t remaining = run->size[0] - first;
    memcpy((float *)run->buffer[2] + first, sum, sizeof(float) * (size_t)(remaining < BLOCK ? remaining : BLOCK));
}

static int one_core(const gc_lab_run *run) {
    for (int64_t n = 0; n < run->size[0]; n += 32)
        compute_block(run, n);
    return 0;
}

static int all_cores(const gc_lab_run *run) {
#pragma omp parallel for
    for (int64_t n = 0; n < run->size[0]; n += 32)
        compute_block(run, n);
    return 0;
}

/* Fills the taps with decaying noise, followed by zeros up to a multiple of 32 taps. */
static void fill_taps(const int64_t *size, void *elements, int64_t count) {
    float *h = elements;
    uint32_t state = 1;
    for (int64_t k = 0; k < count; k++) {
        state = state * 1664525u + 1013904223u;
        h[k] = k < size[1] ? ((float)(state >> 8) * 0x1p-23f - 1) * expf(-5.0f * (float)k / (float)size[1]) : 0.0f;
    }
}

static int buffers(const int64_t *size, gc_lab_buffer *buffer) {
    buffer[0] = (gc_lab_buffer){.name = "in", .type = LAB_F32, .count = history_length(size) + size[0] + 32};
    buffer[1] = (gc_lab_buffer){.name = "h", .type = LAB_F32, .count = history_length(size), .fill = fill_taps};
    buffer[2] = (gc_lab_buffer){.name = "out", .role = LAB_OUTPUT, .type = LAB_F32, .count = size[0]};
    return 3;
}

static gc_lab_cost cost(const int64_t *size, const gc_lab_variant *variant) {
    double f = (double)size[0], g = (double)size[1];
    return (gc_lab_cost){.bytes = f * (variant->output == LAB_F64 ? 12 : 8) + 4 * g, .operations = 2 * f * g};
}

static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)buffer;
    const float *in = run->in[0] + history_length(run->size) + index, *h = run->in[1];
    double sum = 0;
    for (int64_t k = 0; k < run->size[1]; k++)
        sum += (double)h[k] * (double)in[-k];
    return sum;
}

static const gc_lab_size sizes[] = {
    {{1, 1}, LAB_QUICK},        {{1000, 17}, LAB_QUICK},         {{4099, 512}, LAB_CHECK},
    {{20000, 1000}, LAB_CHECK}, {{1 << 13, 512}, LAB_SLOW_TIME}, {{1 << 23, 512}, LAB_GPU_TIME | LAB_CPU_TIME},
};

/* The parameter of the grid-stride kernels: 2048 x blocks + threads per block; 0: one thread per output. */
enum { ONE_THREAD = 2048 + 1, ONE_BLOCK = 2048 + 1024 };

#define UNROLLED(x, text, why)                                                                                         \
    {                                                                                                                  \
        .name = "register-unrolled, " #x " outputs", .changed = text, .limit = why, .where = LAB_GPU,                  \
        .parameter = (x), .tolerance = 2e-6, .course = "0.83 ms = 10.35 of 14.7 TFLOP/s, the best x",                  \
        .prepare = LAB_ON_GPU(gck_convolution_prepare), .facts = LAB_ON_GPU(gck_convolution_unrolled_facts),           \
        LAB_RUNS_ON_GPU(gck_convolution_unrolled)                                                                      \
    }

static const gc_lab_variant variants[] = {
    {.name = "CPU core",
     .changed = "one core, which computes 32 outputs at a time",
     LAB_RUNS(one_core),
     .tolerance = 2e-6,
     .course = "367 ms"},
    {.name = "CPU OpenMP", .changed = "all cores", LAB_RUNS(all_cores), .tolerance = 2e-6},
    {.name = "one thread, taps global",
     .changed = "a single thread of the GPU, which has no other work while it waits for a load",
     .limit =
         "4.2 million multiply-adds in 25.6 ms are 12 cycles each. Both operands are loaded; a load from the L1 cache "
         "takes 40 cycles, and the unrolled loop has a few of them in flight. Next: more threads.",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME,
     .parameter = ONE_THREAD,
     .tolerance = 2e-6,
     .course = "17433 ms for 2^23 outputs: 17.0 ms for 2^13",
     LAB_RUNS_ON_GPU(gck_convolution_global)},
    {.name = "one thread, taps constant",
     .changed = "the taps from constant memory, which does not help a single thread",
     .limit =
         "15 cycles for each multiply-add instead of 12: the constant cache answers no sooner than the L1 cache, and a "
         "load of it is an instruction of its own here, because the address changes from tap to tap. It pays where all "
         "threads of a warp read the same tap. Next: more threads.",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME,
     .parameter = ONE_THREAD,
     .tolerance = 2e-6,
     .course = "22438 ms for 2^23 outputs: 21.9 ms for 2^13",
     .prepare = LAB_ON_GPU(gck_convolution_prepare),
     LAB_RUNS_ON_GPU(gck_convolution_constant)},
    {.name = "one block, taps global",
     .changed = "1024 threads on one multiprocessor: while one warp waits, another one computes",
     .limit =
         "32 warps hide each other's latency, and the multiprocessor is now limited by its L1 cache, which serves one "
         "request of a warp in a cycle. Two loads for each multiply-add: 4096 x 32 warps x 2 requests are 262 000 "
         "cycles, 0.132 ms of the 0.144. Next: fewer loads.",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME,
     .parameter = ONE_BLOCK,
     .tolerance = 2e-6,
     .course = "224 ms for 2^23 outputs: 0.219 ms for 2^13",
     LAB_RUNS_ON_GPU(gck_convolution_global)},
    {.name = "one block, taps constant",
     .changed = "all threads of a warp need the same tap, and constant memory broadcasts it",
     .limit =
         "The taps come by another way, the constant cache: 131 000 requests, 0.066 ms, are left for the L1 cache. "
         "Next: all multiprocessors.",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME,
     .parameter = ONE_BLOCK,
     .tolerance = 2e-6,
     .course = "120 ms for 2^23 outputs: 0.117 ms for 2^13",
     .prepare = LAB_ON_GPU(gck_convolution_prepare),
     LAB_RUNS_ON_GPU(gck_convolution_constant)},
    {.name = "taps global",
     .changed = "one thread per output, on all multiprocessors",
     .limit =
         "2^23 x 512 multiply-adds are 1.02 million instructions of a warp on each of 132 multiprocessors. With two "
         "requests each the L1 cache takes 2.03 million cycles, 1.03 ms of 1.15, while the arithmetic, four in a "
         "cycle, would take 0.13 ms. Next: as before, the taps from constant memory.",
     .where = LAB_GPU,
     .tolerance = 2e-6,
     .course = "5 ms",
     LAB_RUNS_ON_GPU(gck_convolution_global)},
    {.name = "taps constant",
     .changed = "the taps from constant memory",
     .limit =
         "Half of the requests: 0.51 ms for the L1 cache. The constant cache gives one tap to a warp at a time, and "
         "both must wait for each other.",
     .where = LAB_GPU,
     .tolerance = 2e-6,
     .prepare = LAB_ON_GPU(gck_convolution_prepare),
     LAB_RUNS_ON_GPU(gck_convolution_constant)},
    {.name = "tile in shared memory",
     .changed =
         "a block reads its inputs and the taps once into shared memory; each multiply-add still needs more than one "
         "load",
     .limit =
         "The inputs are read from memory once for a block, but the L1 cache had saved that already. Shared memory "
         "serves one request of a warp in a cycle like the L1 cache, and gpulab ptx convolution counts 25 reads for "
         "20 multiply-adds: 0.64 ms of 0.80. A tile does not reduce the reads for each multiply-add. Next: use every "
         "value that is read for several multiply-adds.",
     .where = LAB_GPU,
     .tolerance = 2e-6,
     LAB_RUNS_ON_GPU(gck_convolution_tile)},
    {.name = "double precision",
     .changed = "the kernel with constant taps, computing in double precision",
     .limit =
         "A multiprocessor of an H200 has half as many units for fp64 as for fp32, and a request of a warp for 8-byte "
         "values takes two cycles instead of one: 1.03 ms for the loads alone. A consumer GPU has one 64th of the "
         "units.",
     .where = LAB_GPU,
     .unit = LAB_FP64,
     .output = LAB_F64,
     .tolerance = 1e-13,
     .prepare = LAB_ON_GPU(gck_convolution_prepare),
     LAB_RUNS_ON_GPU(gck_convolution_double)},
    UNROLLED(
        4, "four outputs per thread: the window of inputs stays in registers, and a load serves four multiply-adds",
        "One load of 16 bytes a thread, 4 cycles for the warp, for 4 taps and 16 multiply-adds, which take 4 cycles "
        "too: 0.13 ms for loads and 0.13 ms for arithmetic, which do not overlap well enough. Next: more outputs, so "
        "that a tap and an input serve more multiply-adds."),
    UNROLLED(
        8, "eight outputs per thread",
        "Neighbouring threads now read addresses 32 bytes apart, so that each load of 16 bytes uses half of the lines "
        "that it touches. The compiler also does not unroll this loop further, while it repeats that of the 4 outputs "
        "five times before it jumps: gpulab ptx convolution counts 64 and 80 multiply-adds."),
    UNROLLED(
        16, "sixteen outputs per thread",
        "16 taps for 256 multiply-adds: nine of ten instructions in the loop are arithmetic. 58 registers leave room "
        "for 4 blocks, 32 warps on a multiprocessor, which is enough. Next: still more outputs?"),
    UNROLLED(
        32, "32 outputs per thread: more reuse, more registers, fewer threads",
        "80 registers a thread: 3 blocks, 24 warps instead of 32, and one line of 128 bytes for each thread and load. "
        "The best number lies between, and only measuring tells."),
};

static const gc_lab_effect effects[] = {
    {"1024 threads hide the latency that one thread waits for", "one thread, taps global", "one block, taps global", 20,
     0},
    {"taps from constant memory are faster for whole warps", "one block, taps global", "one block, taps constant", 1.05,
     0},
    {"the window in registers saves loads", "taps constant", "register-unrolled, 8 outputs", 1.5, 0},
    {"four outputs per thread are too few", "register-unrolled, 4 outputs", "register-unrolled, 16 outputs", 1.02, 0},
    {"double precision is slower than single", "double precision", "taps constant", 1.2, 0},
    {"one CPU core is slower than the GPU", "CPU core", "register-unrolled, 8 outputs", 100, 0},
};

const gc_lab_module gc_lab_convolution = {
    .name = "convolution",
    .title = "Convolution: one kernel, from a single thread to 70 % of the peak arithmetic rate",
    .course = "Stahl 11",
    .idea =
        "Every output is a sum over G taps, and each output gets a thread: 2^23 outputs and 512 taps are 8.6 thousand "
        "million operations. A single thread of an H200 would need 26 seconds, because it waits for each of its loads "
        "and has no other work. A thousand threads on one multiprocessor hide each other's latency, and more than a "
        "hundred multiprocessors work at the same time.\n\n"
        "Then the loads limit the speed. All threads of a warp need the same tap: constant memory broadcasts it to "
        "all 32 of them. The inputs differ, but a thread that computes x neighbouring outputs needs only one new "
        "input for x multiply-adds if it keeps the last x inputs in registers. From one tap to the next this window "
        "moves by one input. When the loop is unrolled x times, the compiler knows the role of every register, and no "
        "value has to be moved.\n\n"
        "Most of the remaining instructions are multiply-adds, so the rate of the multiply-add loop is the ceiling.",
    .see = "Compare one thread with one block of 1024 threads at 2^13 outputs. Taps from constant memory slow the "
           "single thread down and speed the block up.\n\nFor 2^23 outputs compare one CPU core with the first kernel "
           "on the whole GPU, and the register-unrolled kernels with the multiply-add loop. The share does not simply "
           "grow with the outputs per thread: 8 are worse than 4, and 32 worse than 16. The course's best kernel "
           "reached 70 % of its card.",
    .next =
        "gpulab sweep convolution threads and gpulab sweep convolution blocks draw the course's two plots for your "
        "GPU: 1 to 1024 threads on one multiprocessor, and 1 to 16384 blocks, with a peak at every multiple of the "
        "number of multiprocessors. Then compare the kernels for 4, 8 and 16 outputs with gpulab ptx convolution, and "
        "their stall reasons with NVIDIA's profiler: ncu -k regex:unrolled gpulab run convolution.",
    .dimension = {"outputs", "taps"},
    .buffers = buffers,
    .cost = cost,
    .reference = reference,
    LAB_TABLES,
};
