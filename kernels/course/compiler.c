/*
 * What the compiler makes of a loop: a filter of 32 taps and a formula, each with and without the hint that helps.
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

static int loop(const gc_lab_run *run) {
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

#define ON_GPU(what, how, function, kind, bound)                                                                       \
    {                                                                                                                  \
        .name = what, .changed = how, .where = LAB_GPU, .parameter = kind, .tolerance = bound,                         \
        .launch = LAB_ON_GPU(function)                                                                                 \
    }

static const gc_lab_variant variants[] = {
    {.name = "CPU filter",
     .changed = "the compiler of the CPU unrolls and vectorises",
     .tolerance = 1e-6,
     .launch = loop},
    {.name = "CPU formula", .changed = "by the C library", .parameter = FORMULA, .tolerance = 1e-6, .launch = formula},
    ON_GPU("unroll 1", "#pragma unroll 1: a counter, a comparison and a jump for every tap", gck_compiler_rolled,
           FILTER, 1e-6),
    ON_GPU("unrolled", "#pragma unroll: 32 loads, 32 multiply-adds, nothing else", gck_compiler_unrolled, FILTER, 1e-6),
    ON_GPU("without __restrict__", "y might be x: every tap's sum is stored before the next load", gck_compiler_aliased,
           FILTER, 1e-6),
    ON_GPU("with __restrict__", "y is not x: the sum stays in a register", gck_compiler_restrict, FILTER, 1e-6),
    ON_GPU("sinf, expf", "exact to the last bits, for any argument", gck_compiler_exact, FORMULA, 1e-6),
    ON_GPU("__sinf, __expf", "what -use_fast_math makes of them: the special-function unit", gck_compiler_fast, FORMULA,
           1e-5),
};

static const gc_lab_effect effects[] = {
    {"unrolling saves the loop", "unroll 1", "unrolled", 1.02, 0},
    {"a possible alias costs stores", "without __restrict__", "with __restrict__", 1.05, 0},
    {"fast functions are no slower", "sinf, expf", "__sinf, __expf", 0.95, 0},
};

const gc_lab_module gc_lab_compiler = {
    .name = "compiler",
    .title = "What the compiler makes of it: unrolling, aliases, fast functions",
    .course = "Stahl 7; CUDA tutorial",
    .idea =
        "A loop with a known count can be written out: no counter, no jump, and every address a constant. #pragma "
        "unroll asks for it; registers and instruction cache set the limit.\n\n"
        "Two pointers may point to the same place. Then a store through one may change what the other loads, and "
        "nothing may stay in a register across the store. __restrict__ promises that it is not so, and lets loads go "
        "through the read-only cache.\n\n"
        "Exact sinf reduces any argument and costs dozens of instructions. The special-function unit does it in one, "
        "with an absolute error of 2^-21: enough for a picture, not for everything.",
    .see = "gpulab ptx compiler counts loads, stores and multiply-adds of every form: 32 ld.global and 32 fma.rn.f32 "
           "written out, against one of each in the loop.",
    .next = "Change TAPS to 256 and look when unrolling stops to pay.",
    .dimension = {"outputs"},
    .buffers = buffers,
    .cost = cost,
    .reference = reference,
    LAB_TABLES,
};
