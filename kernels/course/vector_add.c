/*
 * Vector addition: c[i] = a[i] + b[i]. Two reads, one write and one addition an element, so that nothing but memory
 * counts. a, b and c are plain arrays of floats; thread i takes element i, neighbours take neighbours.
 *
 * Courses: Stahl 1.3, Khunjush, the CUDA tutorial 3.
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
    return (gc_lab_cost){.bytes = 12.0 * (double)size[0], .operations = (double)size[0]};
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
     .changed = "one core, one loop, which the compiler turns into vector instructions",
     .launch = sequential,
     .course = "37 ms (10 M elements)"},
    {.name = "CPU OpenMP",
     .changed = "all cores, one line more; they share one memory",
     .launch = all_cores,
     .course = "24 ms (10 M elements)"},
    {.name = "few threads",
     .changed = "a GPU, and the course's first grid: 20 blocks of 32 threads, each striding over the data",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME,
     .launch = LAB_ON_GPU(gck_vector_add_few)},
    {.name = "one thread an element",
     .changed = "as many threads as elements, and a bounds check because blocks are whole",
     .where = LAB_GPU,
     .launch = LAB_ON_GPU(gck_vector_add_simple),
     .course = "0.6 ms, Tesla T4 (10 M elements)"},
    {.name = "grid-stride",
     .changed = "as many blocks as the device can hold; each thread strides on until the data ends",
     .where = LAB_GPU,
     .launch = LAB_ON_GPU(gck_vector_add_stride)},
    {.name = "float4",
     .changed = "16 bytes a load, eight loads under way in each thread before the first is used",
     .where = LAB_GPU,
     .launch = LAB_ON_GPU(gck_vector_add_float4)},
    {.name = "explicit copies",
     .changed = "the whole way: inputs copied to the device, added, copied back; the host's memory is pageable",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME,
     .memory = LAB_PAGEABLE,
     .flags = LAB_HOST_CLOCK,
     .launch = LAB_ON_GPU(gck_vector_add_copies)},
    {.name = "pinned copies",
     .changed = "the same from pinned memory, which the copy engine reads without help",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME,
     .memory = LAB_PINNED,
     .flags = LAB_HOST_CLOCK,
     .launch = LAB_ON_GPU(gck_vector_add_copies)},
    {.name = "mapped memory",
     .changed = "no copies: the kernel itself reads and writes the host's memory across the bus",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME,
     .memory = LAB_MAPPED,
     .flags = LAB_HOST_CLOCK,
     .launch = LAB_ON_GPU(gck_vector_add_simple)},
    {.name = "managed memory",
     .changed = "one pointer for both sides; pages move when they are touched, and then stay",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME,
     .memory = LAB_MANAGED,
     .flags = LAB_HOST_CLOCK,
     .launch = LAB_ON_GPU(gck_vector_add_simple)},
};

static const gc_lab_effect effects[] = {
    {"640 threads cannot fill a GPU", "few threads", "one thread an element", 3, 0},
    {"copying costs more than adding", "pinned copies", "one thread an element", 3, 0},
    {"pageable memory is copied slower than pinned", "explicit copies", "pinned copies", 1.2, 0},
    {"the best addition moves bytes as fast as a copy", NULL, "float4", 0.95, 0},
    {"one core is slower than a GPU that has the data", "CPU sequential", "one thread an element", 10, 0},
};

const gc_lab_module gc_lab_vector_add = {
    .name = "vector-add",
    .title = "Vector addition: the first kernel, and the price of moving data",
    .course = "Stahl 1.3; Khunjush; CUDA tutorial 3",
    .idea =
        "Every element of c is the sum of two others, and none depends on another: a thread an element. The grid is "
        "made of whole blocks, so the last block has threads past the end, and a bounds check keeps them out.\n\n"
        "An element costs 12 bytes and one addition. A GPU adds hundreds of times faster than its memory delivers, so "
        "the kernel's speed is the memory's, and the best version is the one that keeps most bytes under way.\n\n"
        "And before the first addition the data must be there. Copied over the bus, ten million additions cost many "
        "times what the kernel takes - the first lesson of Amdahl's law.",
    .see = "The kernel's GB/s beside the copy's: the share of the ceiling. The four variants with copies take far "
           "longer than the kernel, and pinned memory roughly doubles the speed of the copies.",
    .next = "gpulab amdahl turns these times into the speedup that a whole program can reach. gpulab run pinned-memory "
            "shows the copies by themselves, gpulab run streams how to hide them.",
    .dimension = {"elements"},
    .buffers = buffers,
    .cost = cost,
    .reference = reference,
    LAB_TABLES,
};
