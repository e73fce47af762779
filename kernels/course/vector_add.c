/*
 * Module vector-add: c[i] = a[i] + b[i] for arrays of floats. Each element needs two reads, one write and one addition,
 * so that memory bandwidth decides the speed. Thread i computes element i, and neighbouring threads access neighbouring
 * elements.
 *
 * Courses: Stahl 1.3, Khunjush, CUDA tutorial 3.
 */
#include "gpulab/lab.h"

LAB_LAUNCHER(gck_vector_add_simple);
LAB_LAUNCHER(gck_vector_add_few);
LAB_LAUNCHER(gck_vector_add_stride);
LAB_LAUNCHER(gck_vector_add_float4);
LAB_LAUNCHER(gck_vector_add_copies);

static int sequential(const gc_lab_run *run) {
    const float *a = run->buffer[0], *b = run->buffer[1];
    float *c = run->buffer[2];
    for (int64_t i = 0; i < run->size[0]; i++)
        c[i] = a[i] + b[i];
    return 0;
}

static int all_cores(const gc_lab_run *run) {
    const float *a = run->buffer[0], *b = run->buffer[1];
    float *c = run->buffer[2];
#pragma omp parallel for simd
    for (int64_t i = 0; i < run->size[0]; i++)
        c[i] = a[i] + b[i];
    return 0;
}

static int buffers(const int64_t *size, gc_lab_buffer *buffer) {
    buffer[0] = (gc_lab_buffer){.name = "a", .type = LAB_F32, .count = size[0]};
    buffer[1] = (gc_lab_buffer){.name = "b", .type = LAB_F32, .count = size[0]};
    buffer[2] = (gc_lab_buffer){.name = "c", .role = LAB_OUTPUT, .type = LAB_F32, .count = size[0]};
    return 3;
}

static gc_lab_cost cost(const int64_t *size, const gc_lab_variant *variant) {
    (void)variant;
    return (gc_lab_cost){
        .bytes = 12.0 * (double)size[0], .written = 4.0 * (double)size[0], .operations = (double)size[0]};
}

static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)buffer;
    return (double)run->in[0][index] + (double)run->in[1][index];
}

static const gc_lab_size sizes[] = {
    {{1}, LAB_QUICK},          {{100003}, LAB_QUICK},
    {{1 << 20}, LAB_CHECK},    {{10000000}, LAB_GPU_TIME | LAB_CPU_TIME | LAB_SLOW_TIME},
    {{1 << 27}, LAB_GPU_TIME},
};

static const gc_lab_variant variants[] = {
    {.name = "CPU sequential",
     .changed = "one core and one loop, which the compiler turns into vector instructions",
     LAB_RUNS(sequential),
     .course = "37 ms (10 M elements)"},
    {.name = "CPU OpenMP",
     .changed = "one more line: the loop is divided among all cores, which share one memory",
     LAB_RUNS(all_cores),
     .course = "24 ms (10 M elements)"},
    {.name = "few threads",
     .changed = "on a GPU, with the course's first grid: 20 blocks of 32 threads, each thread striding over the data",
     .limit =
         "Little's law: bytes in flight = rate x latency. 640 threads with two loads of 4 bytes each and a latency of "
         "about 700 cycles, 0.35 microseconds at 1.98 GHz, read at most 640 x 8 / 0.35 us = 15 GB/s. Next: enough "
         "threads to keep a thousand times as many bytes in flight.",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME,
     LAB_RUNS_ON_GPU(gck_vector_add_few)},
    {.name = "one thread an element",
     .changed =
         "as many threads as elements; the last block may extend beyond the data, so each thread checks its index",
     .limit =
         "2048 threads on a multiprocessor with 8 bytes each have 16 KB in flight, more than the 11 KB that the "
         "module memory-latency asks for, but a thread also starts, computes its index and ends for 12 bytes, and in "
         "that time has no load in flight. Next: threads that stay.",
     .where = LAB_GPU,
     LAB_RUNS_ON_GPU(gck_vector_add_simple),
     .course = "0.6 ms, Tesla T4 (10 M elements)"},
    {.name = "grid-stride",
     .changed =
         "eight blocks of 256 threads per multiprocessor; each thread continues with a stride of the whole grid until "
         "the data ends",
     .limit = "No more starts, but a thread still waits for the two loads of a step before it begins those of the next "
              "one. Next: more bytes in each load.",
     .where = LAB_GPU,
     LAB_RUNS_ON_GPU(gck_vector_add_stride)},
    {.name = "float4",
     .changed = "16 bytes per load, and eight loads in flight in each thread before the first value is used",
     .limit = "48 bytes a thread and step instead of 12: the memory is the limit, and the same additions in fewer "
              "instructions leave it busy.",
     .where = LAB_GPU,
     LAB_RUNS_ON_GPU(gck_vector_add_float4)},
    {.name = "explicit copies",
     .changed =
         "with the transfers: both inputs are copied to the device, added, and the result is copied back; the host "
         "memory is pageable",
     .limit =
         "80 MB to the device and 40 MB back through the bus, at the rates that the module pinned-memory measures "
         "for pageable memory. The kernel, which was so much work, is less than a hundredth. Next: memory that the "
         "copy engine reads itself.",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME,
     .memory = LAB_PAGEABLE,
     .flags = LAB_HOST_CLOCK,
     LAB_RUNS_ON_GPU(gck_vector_add_copies)},
    {.name = "pinned copies",
     .changed = "the same copies from pinned memory, which the copy engine reads directly",
     .limit =
         "120 MB at the rate that the module pinned-memory measures: all of it is the bus. Next: both directions of "
         "the bus at the same time.",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME,
     .memory = LAB_PINNED,
     .flags = LAB_HOST_CLOCK,
     LAB_RUNS_ON_GPU(gck_vector_add_copies)},
    {.name = "mapped memory",
     .changed = "no copies: the kernel itself reads and writes host memory across the bus",
     .limit =
         "The kernel reads and writes the host's memory while it runs: 80 MB at the rate of the bus, and the 40 MB "
         "of results travel in the other direction at the same time.",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME,
     .memory = LAB_MAPPED,
     .flags = LAB_HOST_CLOCK,
     LAB_RUNS_ON_GPU(gck_vector_add_simple)},
    {.name = "managed memory",
     .changed = "one pointer for host and device; a page moves to the side that touches it and stays there",
     .limit = "The warm-up has moved the pages to the device, so that this is the kernel alone: what the first touch "
              "costs, a "
              "fault for each page, is not in the table. It pays where data stay on one side.",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME,
     .memory = LAB_MANAGED,
     .flags = LAB_HOST_CLOCK,
     LAB_RUNS_ON_GPU(gck_vector_add_simple)},
};

static const gc_lab_effect effects[] = {
    {"640 threads cannot fill a GPU", "few threads", "one thread an element", 3, 0},
    {"copying takes longer than adding", "pinned copies", "one thread an element", 3, 0},
    {"copies from pageable memory are slower than from pinned memory", "explicit copies", "pinned copies", 1.2, 0},
    {"the best addition moves bytes as fast as a copy", NULL, "float4", 0.95, 0},
    {"one core is slower than a GPU that holds the data", "CPU sequential", "one thread an element", 10, 0},
};

const gc_lab_module gc_lab_vector_add = {
    .name = "vector-add",
    .title = "Vector addition: the first kernel, and the cost of moving data",
    .course = "Stahl 1.3; Khunjush; CUDA tutorial 3",
    .idea =
        "Every element of c is the sum of two numbers, and no element depends on another: each one gets its own "
        "thread. All blocks have the same size, so the last block has threads beyond the end of the data, and a "
        "bounds check keeps them from writing.\n\n"
        "An element costs 12 bytes of memory traffic and one addition. An H200 could execute about 90 times as many "
        "additions as its memory can feed, so memory bandwidth decides the speed of the kernel, and the best version "
        "is the one that keeps most bytes in flight.\n\n"
        "Before the first addition the data must be on the device. Copying ten million elements over the bus takes "
        "many times as long as adding them: the copies, not the kernel, limit the speed of the whole program. This is "
        "Amdahl's law.",
    .see =
        "Compare the kernels with the memory limit, which counts that two of three bytes are read: at 2^27 elements "
        "the variants with loads of 4 bytes fall short of it, and float4 reaches it.\n\nWith 10 million elements the "
        "transfers decide: pageable memory takes longest, pinned memory less, and mapped memory, whose two "
        "directions run at the same time, less again. Managed memory takes the kernel's time only because the "
        "warm-up has moved its pages to the device, where they stay.",
    .next = "gpulab amdahl computes from these times the largest speedup of a whole program. gpulab run pinned-memory "
            "measures the copies alone, and gpulab run streams shows how to hide them.",
    .dimension = {"elements"},
    .buffers = buffers,
    .cost = cost,
    .reference = reference,
    LAB_TABLES,
};
