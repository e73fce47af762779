/*
 * Module histogram: counts[v] = how many of the bytes have the value v, for 256 values. Each byte needs one read and
 * one addition, but the address of the addition depends on the data: threads meet at the same count, and how often they
 * do depends on how the values are distributed. So the module counts two kinds of data: values that are spread evenly,
 * and data in which most bytes have one value, like a picture of the night sky.
 *
 * Sources: Podlozhnyuk, Histogram calculation in CUDA (2007); Gomez-Luna et al., An optimized approach to histogram
 * computation on GPU (2013); Kirk and Hwu, Programming Massively Parallel Processors, chapter 9 (privatisation,
 * coarsening, aggregation).
 */
#include "gpulab/lab.h"

#include <string.h>

enum { VALUES = 256 };

LAB_LAUNCHER(gck_histogram_global);
LAB_LAUNCHER(gck_histogram_shared);
LAB_LAUNCHER(gck_histogram_warps);
LAB_LAUNCHER(gck_histogram_runs);
LAB_LAUNCHER(gck_histogram_lanes);
LAB_LAUNCHER(gck_histogram_cub);

static int sequential(const gc_lab_run *run) {
    const uint8_t *data = run->buffer[0];
    int32_t *counts = run->buffer[1];
    memset(counts, 0, VALUES * sizeof *counts);
    for (int64_t i = 0; i < run->size[0]; i++)
        counts[data[i]]++;
    return 0;
}

static int all_cores(const gc_lab_run *run) {
    const uint8_t *data = run->buffer[0];
    int32_t *counts = run->buffer[1];
    memset(counts, 0, VALUES * sizeof *counts);
#pragma omp parallel for reduction(+ : counts[:VALUES])
    for (int64_t i = 0; i < run->size[0]; i++)
        counts[data[i]]++;
    return 0;
}

/* The data repeat after a prime number of bytes, so that the reference counts one period. `percent` of them are 0. */
enum { PERIOD = 65537 };

static uint8_t byte_at(int64_t i, int64_t percent) {
    const uint64_t hash = (uint64_t)(i % PERIOD + 1) * UINT64_C(0x9E3779B97F4A7C15);
    return (int64_t)((hash >> 24) % 100) < percent ? 0 : (uint8_t)(hash >> 48);
}

static void fill(const int64_t *size, void *elements, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        ((uint8_t *)elements)[i] = i < PERIOD ? byte_at(i, size[1]) : ((uint8_t *)elements)[i - PERIOD];
}

static int buffers(const int64_t *size, gc_lab_buffer *buffer) {
    buffer[0] = (gc_lab_buffer){.name = "data", .type = LAB_U8, .count = size[0], .fill = fill};
    buffer[1] = (gc_lab_buffer){.name = "counts", .role = LAB_OUTPUT, .type = LAB_I32, .count = VALUES};
    return 2;
}

static gc_lab_cost cost(const int64_t *size, const gc_lab_variant *variant) {
    (void)variant;
    return (gc_lab_cost){.bytes = (double)size[0] + 4 * VALUES, .written = 4 * VALUES, .operations = (double)size[0]};
}

static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)buffer;
    const int64_t n = run->size[0];
    int64_t count = 0;
    for (int64_t i = 0; i < PERIOD && i < n; i++)
        if (byte_at(i, run->size[1]) == index)
            count += (n - i + PERIOD - 1) / PERIOD;
    return (double)count;
}

static const gc_lab_size sizes[] = {
    {{1, 1}, LAB_QUICK},
    {{1000, 1}, LAB_QUICK},
    {{100003, 90}, LAB_QUICK},
    {{3000001, 1}, LAB_CHECK},
    {{10000000, 1}, LAB_CPU_TIME | LAB_SLOW_TIME},
    {{10000000, 95}, LAB_CPU_TIME | LAB_SLOW_TIME},
    {{1 << 29, 1}, LAB_GPU_TIME},
    {{1 << 29, 95}, LAB_GPU_TIME},
};

static const gc_lab_variant variants[] = {
    {.name = "CPU sequential", .changed = "one core", LAB_RUNS(sequential)},
    {.name = "CPU OpenMP",
     .changed = "all cores, each with its own counts, which are added at the end",
     LAB_RUNS(all_cores)},
    {.name = "global atomics",
     .changed = "one thread and one atomicAdd in device memory for each byte",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME,
     .limit =
         "256 counts of 4 bytes are 32 sectors of the L2 cache, and all atomic operations of the GPU go there; those "
         "on one count are done one after the other. A byte of data causes 4 bytes of count to be read and written "
         "in the cache. Next: counts nearer to the threads.",
     LAB_RUNS_ON_GPU(gck_histogram_global)},
    {.name = "private in shared memory",
     .changed = "each block counts in its own 1 KB of shared memory, and adds its counts to the global ones at its end",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME | LAB_GPU_TIME,
     .limit =
         "256 additions to the global counts a block instead of one a byte. Now the lanes of a warp meet: 32 random "
         "values fall on 32 banks so that the fullest bank has 3 of them on average, and the warp takes as many "
         "turns. Each "
         "thread also loads only 1 byte at a time. Next: fewer meetings, larger loads.",
     LAB_RUNS_ON_GPU(gck_histogram_shared)},
    {.name = "counts for each warp",
     .changed = "eight copies of the counts in a block, one for each warp, and an int4 of data for each load",
     .where = LAB_GPU,
     .limit =
         "A sixteenth of the loads brings it most of the way to the rate of reading: the loads were the limit, not "
         "the meetings. The machine code (cuobjdump -sass) shows why: atomicAdd of the constant 1 in shared memory, "
         "without use of its result, is the instruction ATOMS.POPC.INC. This counts the lanes that have the same "
         "address, and adds their number once. Next: let a thread join equal neighbours as well.",
     LAB_RUNS_ON_GPU(gck_histogram_warps)},
    {.name = "runs of equal bytes",
     .changed = "a thread adds a run of equal neighbours at once: it keeps the value and the length in registers",
     .where = LAB_GPU,
     .limit =
         "In even data 255 of 256 neighbours differ, so nothing is saved and a comparison a byte is added. With 95 % "
         "of one value a run has 1 / (1 - 0.95^2), about 10 bytes: a tenth of the atomic additions. And yet it takes "
         "longer: a run's length is no constant, so that the addition becomes ATOMS.ADD, which takes a turn for each "
         "lane with the same address. Next: no meetings, whatever is added.",
     LAB_RUNS_ON_GPU(gck_histogram_runs)},
    {.name = "a column for each lane",
     .changed = "32 counts for each value, one for each lane, in the lane's own bank: no two lanes of a warp ever meet",
     .where = LAB_GPU,
     .limit =
         "32 KB a block, shared by 32 warps. A warp's 32 additions always take one turn, because lane l only uses "
         "bank l, so the time is the same for all data. The limit is now one atomic operation of shared memory for "
         "each byte: 2^29 bytes are 2^24 such instructions of a warp, 127 000 on each of 132 multiprocessors.",
     LAB_RUNS_ON_GPU(gck_histogram_lanes)},
    {.name = "CUB",
     .changed = "NVIDIA's library",
     .where = LAB_GPU,
     .flags = LAB_LIBRARY,
     LAB_RUNS_ON_GPU(gck_histogram_cub)},
};

static const gc_lab_effect effects[] = {
    {"atomic additions in device memory are slower than private counts", "global atomics", "private in shared memory",
     1.2, 0},
};

const gc_lab_module gc_lab_histogram = {
    .name = "histogram",
    .title = "Histogram: additions whose address is in the data",
    .course = "Kirk and Hwu 9; Podlozhnyuk 2007; Gomez-Luna et al. 2013",
    .idea =
        "A histogram reads every byte once, so at best it is as fast as reading. But the count to increase is not "
        "known "
        "before the byte has been read, and threads that have read the same value meet at the same count. Atomic "
        "operations make the result right, and one after the other.\n\n"
        "There are three ways to meet less often. Privatisation: every block, warp or lane has its own counts, which "
        "are "
        "added at the end; memory is the price. Aggregation: equal values are counted in a register first and added "
        "together. Coarsening: a thread has many bytes, so that there are fewer private copies to add at the end.\n\n"
        "How much each helps depends on the data, so every variant is measured with both kinds: the second number of "
        "the "
        "size is the percentage of bytes that are zero, 1 for values that are spread evenly and 95 for a picture that "
        "is "
        "nearly black. A histogram that is fast with random numbers only is not fast.",
    .see = "For each variant compare the two kinds of data: the ratio of its times tells how much it depends on the "
           "data. Global atomics take several times as long with equal data, private counts the same time with both, "
           "hundreds of times less. For 2^29 bytes wider loads bring the private counts close to the rate of reading; "
           "columns for each lane are as fast. One would expect more of runs and of columns than they bring: the "
           "hardware already joins the lanes that add 1 to the same count. gpulab try histogram counts the bank "
           "conflicts of your own kernel without a GPU.",
    .next =
        "gpulab run histogram --size 536870912x50 measures data in between. Change the number of lane columns in "
        "histogram.cu from 32 to 16, which halves the shared memory and lets two lanes meet. gpulab show reduction has "
        "the case of one count only.",
    .dimension = {"bytes", "percent"},
    .buffers = buffers,
    .cost = cost,
    .reference = reference,
    LAB_TABLES,
};
