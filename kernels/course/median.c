/*
 * The median of three: out[i] = median of in[i - 1], in[i], in[i + 1]; the first and the last element stay as they are.
 * A block's elements and one on either side lie in dynamic shared memory, whose size is an argument of the launch.
 *
 * Course: Stahl 9.2.
 */
#include "gpulab/lab.h"

#include <math.h>

LAB_LAUNCHER(gck_median_dynamic);
LAB_LAUNCHER(gck_median_large);
LAB_LAUNCHER(gck_median_carved);
LAB_FACTS(gck_median_facts);

static float middle(float a, float b, float c) {
    float low = a < b ? a : b, high = a < b ? b : a;
    return c < low ? low : c > high ? high : c;
}

static int loop(const gc_lab_run *run) {
    const float *in = run->buffer[0];
    float *out = run->buffer[1];
    int64_t n = run->size[0];
    for (int64_t i = 0; i < n; i++)
        out[i] = i == 0 || i == n - 1 ? in[i] : middle(in[i - 1], in[i], in[i + 1]);
    return 0;
}

static int buffers(const int64_t *size, gc_lab_buffer *buffer) {
    buffer[0] = (gc_lab_buffer){.name = "in", .type = LAB_F32, .count = size[0]};
    buffer[1] = (gc_lab_buffer){.name = "out", .role = LAB_OUTPUT, .type = LAB_F32, .count = size[0]};
    return 2;
}

static gc_lab_cost cost(const int64_t *size, const gc_lab_variant *variant) {
    (void)variant;
    return (gc_lab_cost){.bytes = 8.0 * (double)size[0]};
}

static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)buffer;
    const float *in = run->in[0];
    if (index == 0 || index == run->size[0] - 1)
        return (double)in[index];
    double a = (double)in[index - 1], b = (double)in[index], c = (double)in[index + 1];
    return fmax(fmin(a, b), fmin(fmax(a, b), c));
}

static const gc_lab_size sizes[] = {{{1}, LAB_QUICK},      {{2}, LAB_CHECK},          {{1000}, LAB_QUICK},
                                    {{100003}, LAB_CHECK}, {{1 << 26}, LAB_GPU_TIME}, {{1 << 22}, LAB_CPU_TIME}};

static const gc_lab_variant variants[] = {
    {.name = "CPU", .changed = "the loop", .launch = loop},
    {.name = "dynamic shared memory",
     .changed = "1024 elements and two more a block; the launch says how many bytes",
     .where = LAB_GPU,
     .course = "equal to the CPU's",
     .facts = LAB_ON_GPU(gck_median_facts),
     .launch = LAB_ON_GPU(gck_median_dynamic)},
    {.name = "above 48 KB",
     .changed = "16384 elements a block: more than 48 KB must be asked for, by an attribute of the kernel",
     .where = LAB_GPU,
     .parameter = 1,
     .needs = "needs more than 64 KB of shared memory a block",
     .facts = LAB_ON_GPU(gck_median_facts),
     .launch = LAB_ON_GPU(gck_median_large)},
    {.name = "with a preferred carve-out",
     .changed = "1024 elements again, with a tenth of the on-chip memory wished for as shared and the rest as cache",
     .where = LAB_GPU,
     .parameter = 2,
     .launch = LAB_ON_GPU(gck_median_carved)},
};

static const gc_lab_effect effects[] = {{"a preferred carve-out that is enough changes nothing",
                                         "with a preferred carve-out", "dynamic shared memory", 1.15, 1}};

const gc_lab_module gc_lab_median = {
    .name = "median",
    .title = "A median filter: shared memory whose size the launch decides",
    .course = "Stahl 9.2",
    .idea =
        "Each output needs three neighbours. A block copies its elements, and one on either side, into shared memory, "
        "waits, and computes from there. How much that is follows from the block's size, which only the launch knows: "
        "so the array is declared extern, and its bytes are the third argument between the triple brackets.\n\n"
        "Up to 48 KB come without asking. More is given to a kernel that raised its attribute - and then fewer blocks "
        "fit a multiprocessor at a time. Shared memory and first-level cache are one memory; the carve-out says how a "
        "kernel would like it divided.",
    .see = "The three kernels give the same bytes. The facts show how many blocks a multiprocessor holds of each.",
    .next = "gpulab device --threads 1024 --shared 65544 computes the same occupancy by hand.",
    .dimension = {"elements"},
    .buffers = buffers,
    .cost = cost,
    .reference = reference,
    LAB_TABLES,
};
