/*
 * Reduction: sum = a[0] + a[1] + ... + a[n - 1]. One read and one addition an element, one number out: all threads want
 * to write to one place, and the ladder is about how often they have to.
 *
 *      elements -> threads (registers) -> warps (shuffles) -> blocks (shared memory) -> one atomic addition a block
 *
 * Courses: CUDA tutorial 8, Filipovic.
 */
#include "gpulab/lab.h"

LAB_LAUNCHER(gck_reduction_race);
LAB_LAUNCHER(gck_reduction_atomic);
LAB_LAUNCHER(gck_reduction_shared);
LAB_LAUNCHER(gck_reduction_shuffle);
LAB_LAUNCHER(gck_reduction_vector);
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
    return (gc_lab_cost){.bytes = 4.0 * (double)size[0], .operations = (double)size[0]};
}

static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)buffer, (void)index;
    double sum = 0;
    for (int64_t i = 0; i < run->size[0]; i++)
        sum += (double)run->in[0][i];
    return sum;
}

/* What is left of the sum when threads overwrite one another. */
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
     .changed = "one core, summed in double precision",
     .launch = sequential,
     .tolerance = 1e-6},
    {.name = "CPU OpenMP",
     .changed = "all cores: each sums a part, then the parts are summed",
     .launch = all_cores,
     .tolerance = 1e-6},
    {.name = "the race",
     .changed = "a thread an element, each adding to one place with a plain read, add and write: updates are lost",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME,
     .flags = LAB_RACES,
     .figure = share_kept,
     .figure_unit = "of the sum is kept",
     .launch = LAB_ON_GPU(gck_reduction_race)},
    {.name = "one atomicAdd an element",
     .changed = "the addition is one indivisible operation: right, and all queue for one address",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME,
     .tolerance = 1e-3,
     .launch = LAB_ON_GPU(gck_reduction_atomic)},
    {.name = "privatised in shared memory",
     .changed = "each block sums into a place of its own in shared memory, then adds once to the global one",
     .where = LAB_GPU,
     .tolerance = 1e-4,
     .launch = LAB_ON_GPU(gck_reduction_shared)},
    {.name = "warp shuffles",
     .changed =
         "each thread sums many elements in a register, a warp adds by shuffling, a block by one warp: no atomics but "
         "one a block",
     .where = LAB_GPU,
     .tolerance = 1e-4,
     .launch = LAB_ON_GPU(gck_reduction_shuffle)},
    {.name = "float4, eight under way",
     .changed = "16 bytes a load and eight loads under way a thread: enough to keep the memory busy",
     .where = LAB_GPU,
     .tolerance = 1e-4,
     .launch = LAB_ON_GPU(gck_reduction_vector)},
    {.name = "CUB",
     .changed = "NVIDIA's own library, tuned for each device",
     .flags = LAB_LIBRARY,
     .where = LAB_GPU,
     .tolerance = 1e-4,
     .launch = LAB_ON_GPU(gck_reduction_cub)},
};

static const gc_lab_effect effects[] = {
    {"an atomic addition an element is slower than one a block", "one atomicAdd an element",
     "privatised in shared memory", 1.05, 0},
    {"atomics in shared memory are slower than registers and shuffles", "privatised in shared memory", "warp shuffles",
     1.2, 0},
    {"our best is as fast as CUB", "CUB", "float4, eight under way", 0.97, 0},
};

const gc_lab_module gc_lab_reduction = {
    .name = "reduction",
    .title = "Reduction: from many numbers to one",
    .course = "CUDA tutorial 8; Filipovic",
    .idea =
        "The sum of an array is one number, and a million threads cannot all write to it. Without care they read the "
        "same old value, each adds its own element, and the last to write wins: a race, and a wrong sum, a different "
        "one each time.\n\n"
        "An atomic addition is right and slow, for all additions to one address go one after the other. So the sum is "
        "made in levels, each with memory of its own: a thread in its register, a warp through shuffles, a block "
        "through shared memory, and only then one atomic addition a block.\n\n"
        "A single accumulator in single precision also rounds at every step: after ten million additions of numbers "
        "around one half the atomic version has lost about four digits. Sums in levels lose almost none.",
    .see = "The race keeps a tiny share of the sum. From one atomic an element to one a block the speed rises by "
           "orders of magnitude, and the last two variants run at the speed of memory.",
    .next = "Compare the errors in gpulab check reduction. Then see gpulab show floating-point for why they differ.",
    .dimension = {"elements"},
    .buffers = buffers,
    .cost = cost,
    .reference = reference,
    LAB_TABLES,
};
