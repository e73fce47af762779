/*
 * Module divergence: Cartesian to polar coordinates, where the computation of the angle depends on the quadrant.
 *
 *      r = sqrt(x^2 + y^2),  a = atan2(y, x) in 0 .. 2 pi
 *
 * Course: CUDA tutorial 5.
 */
#include "gpulab/lab.h"

#include <math.h>

LAB_LAUNCHER(gck_polar_branches);
LAB_LAUNCHER(gck_polar_branchless);
LAB_LAUNCHER(gck_polar_fast);
LAB_LAUNCHER(gck_polar_two_points);

static const double two_pi = 6.283185307179586;

static int all_cores(const gc_lab_run *run) {
    const float *in = run->buffer[0];
    float *out = run->buffer[1];
#pragma omp parallel for
    for (int64_t i = 0; i < run->size[0]; i++) {
        float x = in[2 * i], y = in[2 * i + 1], a = atan2f(y, x);
        out[2 * i] = sqrtf(x * x + y * y);
        out[2 * i + 1] = a < 0 ? a + (float)two_pi : a;
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
    return a < 0 ? a + two_pi : a;
}

static const gc_lab_size sizes[] = {{{1}, LAB_QUICK},
                                    {{1003}, LAB_QUICK},
                                    {{100003}, LAB_CHECK},
                                    {{10000000}, LAB_GPU_TIME | LAB_CPU_TIME},
                                    {{1 << 26}, LAB_GPU_TIME}};

static const gc_lab_variant variants[] = {
    {.name = "CPU OpenMP", .changed = "all cores", .tolerance = 1e-6, LAB_RUNS(all_cores)},
    {.name = "branch a quadrant",
     .changed =
         "each quadrant has its own branch: a warp with points in all four quadrants executes four branches, one "
         "after the other",
     .limit =
         "With random points a warp has all four quadrants, and runs all four branches one after the other, each for "
         "a part of its lanes. Next: one formula for all.",
     .where = LAB_GPU,
     .tolerance = 1e-6,
     .course = "1.38 ms, T4, 10 M points",
     LAB_RUNS_ON_GPU(gck_polar_branches)},
    {.name = "no branch",
     .changed = "the same instructions for all quadrants; a select corrects the angle",
     .limit =
         "Every lane runs the same instructions. The precise functions are long sequences of instructions, but the "
         "memory takes nearly as long. Next: shorter functions.",
     .where = LAB_GPU,
     .tolerance = 1e-6,
     .course = "1.10 ms, T4, 10 M points",
     LAB_RUNS_ON_GPU(gck_polar_branchless)},
    {.name = "float2, fast intrinsics",
     .changed =
         "one load of 8 bytes per point; reciprocal and square root from the special-function unit, a polynomial for "
         "the angle",
     .limit = "Fewer instructions, and one load of 8 bytes instead of two of 4: little is left but the memory.",
     .where = LAB_GPU,
     .tolerance = 1e-5,
     .course = "0.97 ms, T4, 10 M points",
     LAB_RUNS_ON_GPU(gck_polar_fast)},
    {.name = "two points a thread",
     .changed = "16 bytes per load, twice the bytes in flight: now only the memory limits the speed",
     .limit = "16 bytes a load: the limit.",
     .where = LAB_GPU,
     .tolerance = 1e-5,
     LAB_RUNS_ON_GPU(gck_polar_two_points)},
};

static const gc_lab_effect effects[] = {
    {"four branches take longer than one path", "branch a quadrant", "no branch", 1.05, 0},
    {"fewer instructions are no slower", "no branch", "float2, fast intrinsics", 0.97, 0},
    {"without divergence the memory limits the speed", NULL, "two points a thread", 0.9, 0},
};

const gc_lab_module gc_lab_divergence = {
    .name = "divergence",
    .title = "Divergence: when the threads of a warp take different branches",
    .course = "CUDA tutorial 5",
    .idea =
        "A warp executes one instruction at a time for all its threads. When the threads take different sides of a "
        "branch, the warp executes one side while the other threads wait, and then the other side: the times add up. "
        "Different warps do not affect each other, so a condition that is the same for a whole warp costs almost "
        "nothing.\n\n"
        "Often the branch can be avoided: compute the part that all sides share, and use a sign, a minimum or a "
        "select for the difference. For short branches the compiler does this itself, with predicated instructions.",
    .see = "The points are random, so nearly every warp has points in all four quadrants. Compare the kernel with "
           "branches with the one without: a warp runs through all four branches, one after the other. The kernel "
           "without branches comes close to the copy's speed, fast intrinsics closer, and two points per thread reach "
           "it.",
    .next = "Fill the input with points that are sorted by quadrant: the kernel with branches becomes faster, because "
            "each warp takes only one branch. Then read gpulab show reconvergence.",
    .dimension = {"points"},
    .buffers = buffers,
    .cost = cost,
    .reference = reference,
    LAB_TABLES,
};
