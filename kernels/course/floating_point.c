/*
 * Module floating-point: how the order of additions, and the fusing of a multiplication with an addition, affect the
 * last bits of a result.
 *
 *      fused: round(x y + z)     apart: round(round(x y) + z)     left: (x + y) + z     right: x + (y + z)
 *
 * Courses: Stahl 4, 7.4.
 */
#include "gpulab/lab.h"

#include <math.h>
#include <stdio.h>

LAB_LAUNCHER(gck_floating_point);

enum { FUSED, APART, LEFT, RIGHT };

static float compute(int form, float x, float y, float z) {
    switch (form) {
    case FUSED:
        return fmaf(x, y, z);
    case APART: {
        volatile float product = x * y; /* volatile: rounded here, so that the compiler cannot fuse it */
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

static int sequential(const gc_lab_run *run) {
    const float *x = run->buffer[0], *y = run->buffer[1], *z = run->buffer[2];
    float *out = run->buffer[3];
    for (int64_t i = 0; i < run->size[0]; i++)
        out[i] = compute(run->parameter, x[i], y[i], z[i]);
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
    return (gc_lab_cost){
        .bytes = 16.0 * (double)size[0], .written = 4.0 * (double)size[0], .operations = 2.0 * (double)size[0]};
}

/* Returns the result that IEEE 754 defines. CPU and GPU must match it in every bit. */
static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)buffer;
    return (double)compute(run->parameter, run->in[0][index], run->in[1][index], run->in[2][index]);
}

/* Writes the share of the results that differ from those of the other form of the same formula. */
static void print_differences(const gc_lab_run *run, char *text, size_t room) {
    const float *out = run->host[3];
    int other_form = run->parameter ^ 1;
    int64_t differ = 0, compared = run->size[0] < 100000 ? run->size[0] : 100000;
    for (int64_t i = 0; i < compared; i++)
        differ += out[i] != compute(other_form, run->in[0][i], run->in[1][i], run->in[2][i]);
    const int64_t tenths = (2000 * differ / compared + 1) / 2; /* no decimal comma in any locale */
    (void)snprintf(text, room, "%d.%d %% of the results differ from the form %s", (int)(tenths / 10),
                   (int)(tenths % 10),
                   (const char *const[]){"fused", "apart", "(x + y) + z", "x + (y + z)"}[other_form]);
}

static const gc_lab_size sizes[] = {
    {{1}, LAB_QUICK}, {{1003}, LAB_QUICK}, {{100003}, LAB_CHECK | LAB_CPU_TIME}, {{1 << 26}, LAB_GPU_TIME}};

#define FORM(title, text, processor, form, runs)                                                                       \
    { .name = title, .changed = text, .where = processor, .parameter = form, .describe = print_differences, runs }

static const gc_lab_variant variants[] = {
    FORM("CPU fused", "fmaf: one rounding", LAB_CPU, FUSED, LAB_RUNS(sequential)),
    FORM("CPU apart", "a rounded product and a rounded sum: two roundings", LAB_CPU, APART, LAB_RUNS(sequential)),
    FORM("CPU (x + y) + z", "additions from the left", LAB_CPU, LEFT, LAB_RUNS(sequential)),
    FORM("CPU x + (y + z)", "additions from the right", LAB_CPU, RIGHT, LAB_RUNS(sequential)),
    FORM("GPU fused", "the code that nvcc generates for x * y + z; the same bits as fmaf on the CPU", LAB_GPU, FUSED,
         LAB_RUNS_ON_GPU(gck_floating_point)),
    FORM("GPU apart", "__fmul_rn and __fadd_rn prevent fusing: the same bits as on a CPU without FMA", LAB_GPU, APART,
         LAB_RUNS_ON_GPU(gck_floating_point)),
    FORM("GPU (x + y) + z", "the compiler never changes the order of additions", LAB_GPU, LEFT,
         LAB_RUNS_ON_GPU(gck_floating_point)),
    FORM("GPU x + (y + z)", "the other order, which may give other bits", LAB_GPU, RIGHT,
         LAB_RUNS_ON_GPU(gck_floating_point)),
};

static const gc_lab_effect effects[] = {{"memory hides the second instruction", "GPU apart", "GPU fused", 1.1, 1}};

const gc_lab_module gc_lab_floating_point = {
    .name = "floating-point",
    .title = "Floating point: the same formula with other bits",
    .course = "Stahl 4, 7.4",
    .idea = "Every floating-point operation rounds its result. Therefore addition is not associative, and a sum may "
            "depend on the order of its additions. A fused multiply-add rounds once and may give other bits than a "
            "product and a sum, which round twice; its result is usually the more accurate one.\n\n"
            "When a program gives slightly different results on the CPU and on the GPU, this is often the reason: nvcc "
            "fuses by default, and a C compiler for plain x86-64 cannot. With fmaf on the CPU both give the same bits, "
            "and without fusing they do as well. The lab checks both.",
    .see =
        "Every variant agrees with its reference in every bit, on both processors. Fused and separate operations "
        "differ in 20 % of the results, and take the same time on the GPU, because memory limits the speed.\n\n"
        "The two orders of addition differ in none of the results here: the inputs of the lab are multiples of 2^-23 "
        "between -1 and 1, so the first addition is exact and only the second one rounds.",
    .next =
        "Give the buffers of floating_point.c the limits .low = -3 and .high = 3, and see how many results depend on "
        "the order of additions. Compile with -fmad=false and look at gpulab ptx floating-point. gpulab check "
        "reduction shows the effect of the order on long sums.",
    .dimension = {"elements"},
    .buffers = buffers,
    .cost = cost,
    .reference = reference,
    LAB_TABLES,
};
