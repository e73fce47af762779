/*
 * Divergence: Cartesian to polar coordinates, where the angle depends on the quadrant.
 *
 *      r = sqrt(x^2 + y^2),  a = atan2(y, x) in 0 .. 2 pi
 *
 * Course: T 5.
 */
#include "gpulab/lab.h"

#include <math.h>

LAB_LAUNCHER(gck_polar_branches);
LAB_LAUNCHER(gck_polar_straight);
LAB_LAUNCHER(gck_polar_fast);
LAB_LAUNCHER(gck_polar_two_points);

static const double turn = 6.283185307179586;

static int loop(const gc_lab_run *run) {
    const float *in = run->buffer[0];
    float *out = run->buffer[1];
#pragma omp parallel for
    for (int64_t i = 0; i < run->size[0]; i++) {
        float x = in[2 * i], y = in[2 * i + 1], a = atan2f(y, x);
        out[2 * i] = sqrtf(x * x + y * y);
        out[2 * i + 1] = a < 0 ? a + (float)turn : a;
    }
    return 0;
}

static int buffers(const int64_t *size, gc_lab_buffer *buffer) {
    buffer[0] = (gc_lab_buffer){.name = "points", .type = LAB_F32, .count = 2 * size[0]};
    buffer[1] = (gc_lab_buffer){.name = "polar", .role = LAB_OUTPUT, .type = LAB_F32, .count = 2 * size[0]};
    return 2;
}

static gc_lab_cost cost(const int64_t *size, const gc_lab_variant *variant) {
    (void)variant;
    return (gc_lab_cost){.bytes = 16.0 * (double)size[0], .operations = 5.0 * (double)size[0]};
}

static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)buffer;
    double x = (double)run->in[0][index / 2 * 2], y = (double)run->in[0][index / 2 * 2 + 1];
    if (index % 2 == 0)
        return sqrt(x * x + y * y);
    double a = atan2(y, x);
    return a < 0 ? a + turn : a;
}

static const gc_lab_size sizes[] = {{{1}, LAB_QUICK},
                                    {{1003}, LAB_QUICK},
                                    {{100003}, LAB_CHECK},
                                    {{10000000}, LAB_GPU_TIME | LAB_CPU_TIME},
                                    {{1 << 26}, LAB_GPU_TIME}};

static const gc_lab_variant variants[] = {
    {.name = "CPU OpenMP", .changed = "all cores", .tolerance = 1e-6, .launch = loop},
    {.name = "branch a quadrant",
     .changed = "each quadrant has its own way: a warp with points in all four goes four ways, one after the other",
     .where = LAB_GPU,
     .tolerance = 1e-6,
     .course = "1.38 ms, T4, 10 M points",
     .launch = LAB_ON_GPU(gck_polar_branches)},
    {.name = "no branch",
     .changed = "one way for all quadrants, signs by arithmetic",
     .where = LAB_GPU,
     .tolerance = 1e-6,
     .course = "1.10 ms, T4, 10 M points",
     .launch = LAB_ON_GPU(gck_polar_straight)},
    {.name = "float2, fast intrinsics",
     .changed =
         "a point is one load of 8 bytes; reciprocal and root by the special-function unit, a polynomial for the angle",
     .where = LAB_GPU,
     .tolerance = 1e-5,
     .course = "0.97 ms, T4, 10 M points",
     .launch = LAB_ON_GPU(gck_polar_fast)},
    {.name = "two points a thread",
     .changed = "twice the bytes under way: what is left to wait for is memory",
     .where = LAB_GPU,
     .tolerance = 1e-5,
     .launch = LAB_ON_GPU(gck_polar_two_points)},
};

static const gc_lab_effect effects[] = {
    {"four ways take longer than one", "branch a quadrant", "no branch", 1.05, 0},
    {"fewer instructions are no slower", "no branch", "float2, fast intrinsics", 0.97, 0},
    {"without divergence memory decides", NULL, "two points a thread", 0.9, 0},
};

const gc_lab_module gc_lab_divergence = {
    .name = "divergence",
    .title = "Divergence: when the threads of a warp part",
    .course = "CUDA tutorial 5",
    .idea = "A warp has one instruction at a time. Where its threads take different sides of a branch, it goes one "
            "side with the others waiting, then the other side: the times add up. Warps do not mind each other: a "
            "condition that is the same for a whole warp costs nothing.\n\n"
            "Often the branch can go: compute what all sides share, and let a sign, a minimum or a select choose. The "
            "compiler does so for short sides by itself, with predicates.",
    .see = "Random points fall into all four quadrants in every warp, so that the branching form computes four times. "
           "Without branches the kernel runs at the speed of memory.",
    .next = "Sort the points by quadrant first, by hand: the branching form becomes fast. Then see gpulab show "
            "reconvergence.",
    .dimension = {"points"},
    .buffers = buffers,
    .cost = cost,
    .reference = reference,
    LAB_TABLES,
};
