/*
 * Module compiler: the effect of compiler hints on two loops, a filter of 32 taps and a formula.
 *
 *      filter:  y[i] = sum over k < 32 of h[k] x[i + k]        formula:  y[i] = sin(x[i]) exp(-x[i])
 *
 * Courses: Stahl 7, CUDA tutorial.
 */
#include "gpulab/lab.h"

#include <math.h>

LAB_LAUNCHER(gck_compiler_rolled);
LAB_LAUNCHER(gck_compiler_unrolled);
LAB_LAUNCHER(gck_compiler_aliased);
LAB_LAUNCHER(gck_compiler_restrict);
LAB_LAUNCHER(gck_compiler_exact);
LAB_LAUNCHER(gck_compiler_fast);

enum { TAPS = 32, FILTER = 0, FORMULA };

static int filter(const gc_lab_run *run) {
    const float *x = run->buffer[0], *h = run->buffer[1];
    float *y = run->buffer[2];
#pragma omp parallel for
    for (int64_t i = 0; i < run->size[0]; i++) {
        float sum = 0;
        for (int k = 0; k < TAPS; k++)
            sum += h[k] * x[i + k];
        y[i] = sum;
    }
    return 0;
}

static int formula(const gc_lab_run *run) {
    const float *x = run->buffer[0];
    float *y = run->buffer[2];
#pragma omp parallel for
    for (int64_t i = 0; i < run->size[0]; i++)
        y[i] = sinf(x[i]) * expf(-x[i]);
    return 0;
}

static int buffers(const int64_t *size, gc_lab_buffer *buffer) {
    buffer[0] = (gc_lab_buffer){.name = "x", .type = LAB_F32, .count = size[0] + TAPS};
    buffer[1] = (gc_lab_buffer){.name = "h", .type = LAB_F32, .count = TAPS};
    buffer[2] = (gc_lab_buffer){.name = "y", .role = LAB_OUTPUT, .type = LAB_F32, .count = size[0]};
    return 3;
}

static gc_lab_cost cost(const int64_t *size, const gc_lab_variant *variant) {
    double n = (double)size[0];
    return (gc_lab_cost){.bytes = 8.0 * n, .operations = variant->parameter == FILTER ? 2.0 * TAPS * n : 2 * n};
}

static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)buffer;
    const float *x = run->in[0], *h = run->in[1];
    if (run->parameter == FORMULA)
        return sin((double)x[index]) * exp(-(double)x[index]);
    double sum = 0;
    for (int k = 0; k < TAPS; k++)
        sum += (double)h[k] * (double)x[index + k];
    return sum;
}

static const gc_lab_size sizes[] = {
    {{1}, LAB_QUICK}, {{1003}, LAB_QUICK}, {{100003}, LAB_CHECK}, {{1 << 22}, LAB_CPU_TIME}, {{1 << 26}, LAB_GPU_TIME}};

#define ON_GPU(title, text, function, computation, bound)                                                              \
    {                                                                                                                  \
        .name = title, .changed = text, .where = LAB_GPU, .parameter = computation, .tolerance = bound,                \
        LAB_RUNS_ON_GPU(function)                                                                                      \
    }

static const gc_lab_variant variants[] = {
    {.name = "CPU filter",
     .changed = "the CPU's compiler unrolls and vectorises the loop; all cores",
     .tolerance = 1e-6,
     LAB_RUNS(filter)},
    {.name = "CPU formula",
     .changed = "sinf and expf of the C library; all cores",
     .parameter = FORMULA,
     .tolerance = 1e-6,
     LAB_RUNS(formula)},
    ON_GPU("unroll 1", "#pragma unroll 1: a counter, a comparison and a jump for every tap", gck_compiler_rolled,
           FILTER, 1e-6),
    ON_GPU("unrolled", "#pragma unroll: 64 loads and 32 multiply-adds, with no loop instructions",
           gck_compiler_unrolled, FILTER, 1e-6),
    ON_GPU("without __restrict__", "y may overlap x or h: the sum is stored after every tap, before the next loads",
           gck_compiler_aliased, FILTER, 1e-6),
    ON_GPU("with __restrict__", "y overlaps neither: the sum stays in a register and is stored once",
           gck_compiler_restrict, FILTER, 1e-6),
    ON_GPU("sinf, expf", "accurate to the last bits, for any argument", gck_compiler_exact, FORMULA, 1e-6),
    ON_GPU("__sinf, __expf", "the functions that -use_fast_math selects: they use the special-function unit",
           gck_compiler_fast, FORMULA, 1e-5),
};

static const gc_lab_effect effects[] = {
    {"unrolling saves the loop instructions", "unroll 1", "unrolled", 1.02, 0},
    {"possible aliasing costs stores", "without __restrict__", "with __restrict__", 1.05, 0},
    {"fast functions are no slower", "sinf, expf", "__sinf, __expf", 0.95, 0},
};

const gc_lab_module gc_lab_compiler = {
    .name = "compiler",
    .title = "What the compiler generates: unrolling, aliasing, fast functions",
    .course = "Stahl 7; CUDA tutorial",
    .idea =
        "A loop with a known number of passes can be unrolled: no counter, no jump, and constant address offsets. "
        "#pragma unroll asks for it; the number of registers and the size of the instruction cache limit it.\n\n"
        "Two pointers may point to overlapping memory, which is called aliasing. Then a store through one pointer may "
        "change the values that the other loads, so the compiler must keep every store and every load in order. "
        "__restrict__ promises that there is no overlap: values can stay in registers, and loads can use the "
        "read-only cache.\n\n"
        "The accurate sinf must reduce any argument to a small range and costs many instructions. __sinf uses one "
        "instruction of the special-function unit for the sine itself, with an absolute error of about 2^-21 for "
        "arguments between -pi and pi: enough for a picture, but not for every purpose.",
    .see =
        "gpulab ptx compiler counts loads, stores and multiply-adds of each kernel: 64 ld.global and 32 fma.rn.f32 "
        "in the unrolled kernel, 2 and 1 in the body of the loop; without __restrict__ there are 33 st.global "
        "instead of 1.\n\nCompare the unrolled filter with the loop, and with the kernel without __restrict__, which "
        "stores the sum after every step. The 64 loads are requests of a warp to the L1 cache, which serves one in a "
        "cycle: 2^26 outputs on 132 multiprocessors take 1.02 million cycles, 0.51 ms. The fast functions save "
        "little, because a copy of the same bytes would already take more than half of the time.",
    .next = "Change TAPS from 32 to 256 in compiler.c and compiler.cu, and see whether unrolling still pays.",
    .dimension = {"outputs"},
    .buffers = buffers,
    .cost = cost,
    .reference = reference,
    LAB_TABLES,
};
