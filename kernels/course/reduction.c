/*
 * Module reduction: sum = a[0] + a[1] + ... + a[n - 1]. Each element needs one read and one addition, and the result is
 * one number, so all threads would have to write to one address. The variants differ in how often they do:
 *
 *      elements -> threads (registers) -> warps (shuffles) -> blocks (shared memory) -> one atomic addition per block
 *
 * Courses: CUDA tutorial 8, Filipovic.
 */
#include "gpulab/lab.h"

LAB_LAUNCHER(gck_reduction_race);
LAB_LAUNCHER(gck_reduction_atomic);
LAB_LAUNCHER(gck_reduction_shared);
LAB_LAUNCHER(gck_reduction_shuffle);
LAB_LAUNCHER(gck_reduction_float4);
LAB_LAUNCHER(gck_reduction_cub);

static int sequential(const gc_lab_run *run) {
    const float *a = run->buffer[0];
    double sum = 0;
    for (int64_t i = 0; i < run->size[0]; i++)
        sum += (double)a[i];
    *(float *)run->buffer[1] = (float)sum;
    return 0;
}

static int all_cores(const gc_lab_run *run) {
    const float *a = run->buffer[0];
    double sum = 0;
#pragma omp parallel for simd reduction(+ : sum)
    for (int64_t i = 0; i < run->size[0]; i++)
        sum += (double)a[i];
    *(float *)run->buffer[1] = (float)sum;
    return 0;
}

static int buffers(const int64_t *size, gc_lab_buffer *buffer) {
    buffer[0] = (gc_lab_buffer){.name = "a", .type = LAB_F32, .count = size[0], .low = 0, .high = 1};
    buffer[1] = (gc_lab_buffer){.name = "sum", .role = LAB_OUTPUT, .type = LAB_F32, .count = 1};
    return 2;
}

static gc_lab_cost cost(const int64_t *size, const gc_lab_variant *variant) {
    (void)variant;
    return (gc_lab_cost){.bytes = 4.0 * (double)size[0], .written = 4, .operations = (double)size[0]};
}

static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)buffer, (void)index;
    double sum = 0;
    for (int64_t i = 0; i < run->size[0]; i++)
        sum += (double)run->in[0][i];
    return sum;
}

/* Returns the share of the sum that remains when threads overwrite each other's results. */
static double share_kept(const gc_lab_run *run) {
    return (double)*(const float *)run->host[1] / reference(run, 1, 0);
}

static const gc_lab_size sizes[] = {
    {{1}, LAB_QUICK},          {{1000}, LAB_CHECK},
    {{100003}, LAB_QUICK},     {{10000000}, LAB_GPU_TIME | LAB_CPU_TIME | LAB_SLOW_TIME},
    {{1 << 28}, LAB_GPU_TIME},
};

static const gc_lab_variant variants[] = {
    {.name = "CPU sequential",
     .changed = "one core, which sums in double precision",
     LAB_RUNS(sequential),
     .tolerance = 1e-6},
    {.name = "CPU OpenMP",
     .changed = "all cores: each sums a part, then the partial sums are added",
     LAB_RUNS(all_cores),
     .tolerance = 1e-6},
    {.name = "the race",
     .changed =
         "one thread per element; all add to one address with a separate read, addition and write, and most updates "
         "are lost",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME,
     .flags = LAB_RACES,
     .figure = share_kept,
     .figure_unit = "of the sum is kept",
     LAB_RUNS_ON_GPU(gck_reduction_race)},
    {.name = "one atomicAdd an element",
     .changed =
         "the addition is one indivisible operation: the sum is right, but all additions wait for the same address",
     .limit =
         "10 million additions in 17.6 ms are 1.8 nanoseconds each: the L2 cache does those to one address one after "
         "the other, one in 3.5 cycles. Next: another address for each block.",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME,
     .tolerance = 1e-3,
     LAB_RUNS_ON_GPU(gck_reduction_atomic)},
    {.name = "privatised in shared memory",
     .changed = "each block has its own sum in shared memory, which it adds once to the global one",
     .limit =
         "One global addition for each block. Within a block all 256 threads now wait for one address of shared "
         "memory: 75 800 elements on each multiprocessor in 0.51 ms are 13 cycles each, because an atomic "
         "addition of floats in shared memory is a loop: it reads, adds, and stores the sum unless another thread has "
         "changed the value; then it starts again. Next: do not share.",
     .where = LAB_GPU,
     .tolerance = 1e-4,
     LAB_RUNS_ON_GPU(gck_reduction_shared)},
    {.name = "warp shuffles",
     .changed =
         "each thread sums many elements in a register; shuffles add the sums of a warp, one warp adds those of the "
         "block: one atomic addition per block",
     .limit =
         "A thread adds to its own register, 4 cycles and no waiting. One load of 4 bytes a step, 2048 threads, and "
         "several steps in flight because no step waits for the one before: enough for the memory.",
     .where = LAB_GPU,
     .tolerance = 1e-4,
     LAB_RUNS_ON_GPU(gck_reduction_shuffle)},
    {.name = "float4, eight under way",
     .changed = "16 bytes per load, and eight loads per thread in flight: enough to use the full memory bandwidth",
     .limit =
         "128 bytes a thread in flight, so that few threads are enough. For 10 million elements, 40 MB that stay in "
         "the L2 cache, it is slower than the simpler kernel: a block begins with many loads and has only two or "
         "three rounds to do.",
     .where = LAB_GPU,
     .tolerance = 1e-4,
     LAB_RUNS_ON_GPU(gck_reduction_float4)},
    {.name = "CUB",
     .changed = "NVIDIA's library, tuned for each device",
     .flags = LAB_LIBRARY,
     .where = LAB_GPU,
     .tolerance = 1e-4,
     LAB_RUNS_ON_GPU(gck_reduction_cub)},
};

static const gc_lab_effect effects[] = {
    {"an atomic addition per element is slower than one per block", "one atomicAdd an element",
     "privatised in shared memory", 1.05, 0},
    {"atomics in shared memory are slower than registers and shuffles", "privatised in shared memory", "warp shuffles",
     1.2, 0},
    {"our best variant is as fast as CUB", "CUB", "float4, eight under way", 0.97, 0},
};

const gc_lab_module gc_lab_reduction = {
    .name = "reduction",
    .title = "Reduction: from many numbers to one",
    .course = "CUDA tutorial 8; Filipovic",
    .idea =
        "The sum of an array is one number, and a million threads cannot all write to it at the same time. Without "
        "synchronisation they read the same old value, each adds its own element, and the last write replaces the "
        "others: this race gives a wrong sum, and a different one in each run.\n\n"
        "An atomic addition is right but slow, because all additions to one address are executed one after the other. "
        "The sum is therefore computed in levels, each in its own memory: a thread in a register, a warp through "
        "shuffles, a block through shared memory, and only then one atomic addition per block.\n\n"
        "A single accumulator in single precision also rounds at every step, and the errors add up. Sums in levels "
        "add numbers of similar size and lose much less.",
    .see =
        "The race keeps a few millionths of the sum. One atomic addition per element takes longest, a private sum "
        "per block a small part of it, and shuffles a small part of that. For 2^28 elements the last three variants "
        "run at the rate of a kernel that only reads, which is higher than that of a copy. For 10 million elements a "
        "share above 100 % is possible: their 40 MB stay in the L2 cache from one run to the next.\n\nThe atomic "
        "variant has a relative error of 2e-5, at least sixty times that of the sums in levels.",
    .next =
        "gpulab check reduction prints the error of each variant. gpulab show floating-point explains why they differ.",
    .dimension = {"elements"},
    .buffers = buffers,
    .cost = cost,
    .reference = reference,
    LAB_TABLES,
};
