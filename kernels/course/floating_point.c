/*
 * Floating point: what the order of additions and the fusing of a multiplication with an addition do to the last bits.
 *
 *      fused: round(x y + z)     apart: round(round(x y) + z)     (x + y) + z against x + (y + z)
 *
 * Courses: Stahl 4, 7.4.
 */
#include "gpulab/lab.h"

#include <math.h>
#include <stdio.h>

LAB_LAUNCHER(gck_floating_point);

enum { FUSED, APART, LEFT, RIGHT };

static float computed(int kind, float x, float y, float z) {
    switch (kind) {
    case FUSED:
        return fmaf(x, y, z);
    case APART: {
        volatile float product = x * y; /* rounded here, whatever the compiler would rather do */
        return product + z;
    }
    case LEFT: {
        volatile float sum = x + y;
        return sum + z;
    }
    default: {
        volatile float sum = y + z;
        return x + sum;
    }
    }
}

static int loop(const gc_lab_run *run) {
    const float *x = run->buffer[0], *y = run->buffer[1], *z = run->buffer[2];
    float *out = run->buffer[3];
    for (int64_t i = 0; i < run->size[0]; i++)
        out[i] = computed(run->parameter, x[i], y[i], z[i]);
    return 0;
}

static int buffers(const int64_t *size, gc_lab_buffer *buffer) {
    static const char *const names[] = {"x", "y", "z"};
    for (int b = 0; b < 3; b++)
        buffer[b] = (gc_lab_buffer){.name = names[b], .type = LAB_F32, .count = size[0]};
    buffer[3] = (gc_lab_buffer){.name = "out", .role = LAB_OUTPUT, .type = LAB_F32, .count = size[0]};
    return 4;
}

static gc_lab_cost cost(const int64_t *size, const gc_lab_variant *variant) {
    (void)variant;
    return (gc_lab_cost){.bytes = 16.0 * (double)size[0], .operations = 2.0 * (double)size[0]};
}

/* Bit for bit what IEEE 754 says: the CPU and the GPU must both give it. */
static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)buffer;
    return (double)computed(run->parameter, run->in[0][index], run->in[1][index], run->in[2][index]);
}

/* How many results differ in a bit from the other form of the same formula. */
static void tell(const gc_lab_run *run, char *text, size_t room) {
    const float *out = run->host[3];
    int other = run->parameter ^ 1;
    int64_t differ = 0, seen = run->size[0] < 100000 ? run->size[0] : 100000;
    for (int64_t i = 0; i < seen; i++)
        differ += out[i] != computed(other, run->in[0][i], run->in[1][i], run->in[2][i]);
    (void)snprintf(text, room, "%.1f %% of the results differ in a bit from the form %s",
                   100.0 * (double)differ / (double)seen,
                   (const char *const[]){"fused", "apart", "(x + y) + z", "x + (y + z)"}[other]);
}

static const gc_lab_size sizes[] = {
    {{1}, LAB_QUICK}, {{1003}, LAB_QUICK}, {{100003}, LAB_CHECK | LAB_CPU_TIME}, {{1 << 26}, LAB_GPU_TIME}};

#define FORM(what, how, place, kind, function)                                                                         \
    { .name = what, .changed = how, .where = place, .parameter = kind, .tell = tell, .launch = function }

static const gc_lab_variant variants[] = {
    FORM("CPU fused", "fmaf: one rounding", LAB_CPU, FUSED, loop),
    FORM("CPU apart", "a product, rounded, and a sum, rounded", LAB_CPU, APART, loop),
    FORM("CPU (x + y) + z", "from the left", LAB_CPU, LEFT, loop),
    FORM("CPU x + (y + z)", "from the right", LAB_CPU, RIGHT, loop),
    FORM("GPU fused", "what nvcc makes of x * y + z by itself; the same bits as fmaf on the CPU", LAB_GPU, FUSED,
         LAB_ON_GPU(gck_floating_point)),
    FORM("GPU apart", "__fmul_rn and __fadd_rn keep them apart: the same bits as a CPU without FMA", LAB_GPU, APART,
         LAB_ON_GPU(gck_floating_point)),
    FORM("GPU (x + y) + z", "additions are never reordered by the compiler", LAB_GPU, LEFT,
         LAB_ON_GPU(gck_floating_point)),
    FORM("GPU x + (y + z)", "the other order: other bits", LAB_GPU, RIGHT, LAB_ON_GPU(gck_floating_point)),
};

static const gc_lab_effect effects[] = {{"memory hides the second instruction", "GPU apart", "GPU fused", 1.1, 1}};

const gc_lab_module gc_lab_floating_point = {
    .name = "floating-point",
    .title = "Floating point: the same formula, other bits",
    .course = "Stahl 4, 7.4",
    .idea = "Every operation rounds. So addition is not associative, and a sum depends on its order; and a fused "
            "multiply-add, which rounds once, gives other bits than a product and a sum, which round twice - better "
            "ones, mostly.\n\n"
            "Programs that are right on the CPU and a little different on the GPU are usually this: nvcc fuses by "
            "default, a C compiler for plain x86-64 cannot. With fmaf on the CPU both give the same bits, which is "
            "checked here; so do both without fusing.",
    .see = "Every variant agrees with its reference to the last bit, on both processors; the words say how many "
           "results differ between the two forms.",
    .next = "Compile with -fmad=false and look at gpulab ptx floating-point. Then gpulab check reduction, for what "
            "order does to long sums.",
    .dimension = {"elements"},
    .buffers = buffers,
    .cost = cost,
    .reference = reference,
    LAB_TABLES,
};
