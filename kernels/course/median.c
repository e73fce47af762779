/*
 * Module median: out[i] = median of in[i - 1], in[i] and in[i + 1]; the first and the last element are copied. A block
 * keeps its elements and one more on each side in dynamic shared memory, whose size is an argument of the launch.
 *
 * Course: Stahl 9.2.
 */
#include "gpulab/lab.h"

#include <math.h>

LAB_LAUNCHER(gck_median_dynamic);
LAB_LAUNCHER(gck_median_large);
LAB_LAUNCHER(gck_median_carveout);
LAB_FACTS(gck_median_facts);

static float median3(float a, float b, float c) {
    float low = a < b ? a : b, high = a < b ? b : a;
    return c < low ? low : c > high ? high : c;
}

static int sequential(const gc_lab_run *run) {
    const float *in = run->buffer[0];
    float *out = run->buffer[1];
    int64_t n = run->size[0];
    for (int64_t i = 0; i < n; i++)
        out[i] = i == 0 || i == n - 1 ? in[i] : median3(in[i - 1], in[i], in[i + 1]);
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
    {.name = "CPU", .changed = "one loop on one core", LAB_RUNS(sequential)},
    {.name = "dynamic shared memory",
     .changed = "1024 elements per block, and two neighbours; the launch passes the number of bytes",
     .limit =
         "Each block loads 4 KB, waits at a barrier, computes, and ends. Two blocks fit on a multiprocessor, so there "
         "are at most 8 KB in flight, and none while both compute: 11 KB would be needed all the time. Next: more "
         "loads before the barrier.",
     .where = LAB_GPU,
     .course = "equal to the CPU's",
     .facts = LAB_ON_GPU(gck_median_facts),
     LAB_RUNS_ON_GPU(gck_median_dynamic)},
    {.name = "above 48 KB",
     .changed =
         "16384 elements per block: a kernel gets more than 48 KB only after cudaFuncSetAttribute has raised its limit",
     .limit =
         "16 loads a thread before the barrier: 64 KB in flight for each block, one start and one barrier for 16 "
         "times as many outputs. The loads still stop while a block computes; the other block fills this gap only in "
         "part.",
     .where = LAB_GPU,
     .parameter = 1,
     .needs = "needs more than 64 KB of shared memory a block",
     .facts = LAB_ON_GPU(gck_median_facts),
     LAB_RUNS_ON_GPU(gck_median_large)},
    {.name = "with a preferred carve-out",
     .changed =
         "1024 elements per block again; the kernel asks for a tenth of the largest shared memory, which leaves the "
         "rest to the L1 cache",
     .limit =
         "The same time: the inputs are read once, so that a larger L1 cache has nothing to keep, and two blocks with "
         "4 KB each fit into a tenth of the shared memory too.",
     .where = LAB_GPU,
     .parameter = 2,
     LAB_RUNS_ON_GPU(gck_median_carveout)},
};

static const gc_lab_effect effects[] = {{"a preferred carve-out that is large enough changes nothing",
                                         "with a preferred carve-out", "dynamic shared memory", 1.15, 1}};

const gc_lab_module gc_lab_median = {
    .name = "median",
    .title = "A median filter: shared memory whose size the launch decides",
    .course = "Stahl 9.2",
    .idea =
        "Each output needs three neighbouring inputs. A block copies its elements, and one more on each side, into "
        "shared memory, waits at a barrier, and computes from there. The number of bytes depends on the number of "
        "elements per block, which only the launch knows: the array is declared extern, and its size is the third "
        "argument between the triple brackets.\n\n"
        "A kernel can use up to 48 KB without further steps. For more, its attribute "
        "cudaFuncAttributeMaxDynamicSharedMemorySize must be raised; the more a block uses, the fewer blocks fit on a "
        "multiprocessor at a time. Shared memory and L1 cache share the same on-chip memory; the preferred carve-out "
        "tells the driver how a kernel would like it to be divided.",
    .see =
        "The three kernels write the same bytes as the CPU. On an H200 a multiprocessor holds two blocks with 4 KB "
        "and also two blocks with 64 KB: 2048 threads are its limit in both cases, and not the shared memory. With "
        "16384 elements per block each thread computes 16 outputs for one barrier, and the time falls. The carve-out "
        "changes nothing.",
    .next =
        "gpulab device --threads 1024 --shared 65544 computes this occupancy. Increase --shared until only one block "
        "fits.",
    .dimension = {"elements"},
    .buffers = buffers,
    .cost = cost,
    .reference = reference,
    LAB_TABLES,
};
