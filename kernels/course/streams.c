/*
 * Module streams: copies and kernels at the same time. A stream is a queue of work; different streams need not wait for
 * each other. Each part of the data is copied to the device, processed by a kernel, and copied back; while one part is
 * processed, the next one is copied in and the last one is copied back.
 *
 *      one stream:    copy copy copy copy | work work work work | back back back back
 *      four streams:  copy | copy work | copy work back | copy work back | work back | back
 *
 * The kernel computes v = 0.999 v + 0.001, WORK times: a dependent chain that the compiler cannot shorten.
 * Course: Stahl 12.
 */
#include "gpulab/lab.h"

enum { WORK = 1500 };

/* A variant's parameter is its number of streams. */
LAB_LAUNCHER(gck_streams_parts);
LAB_LAUNCHER(gck_streams_three_kernels);

static float work(float v) {
    for (int k = 0; k < WORK; k++)
        v = v * 0.999f + 0.001f;
    return v;
}

static int all_cores(const gc_lab_run *run) {
    const float *in = run->buffer[0];
    float *out = run->buffer[1];
#pragma omp parallel for
    for (int64_t i = 0; i < run->size[0]; i++)
        out[i] = work(in[i]);
    return 0;
}

static int buffers(const int64_t *size, gc_lab_buffer *buffer) {
    buffer[0] = (gc_lab_buffer){.name = "in", .type = LAB_F32, .count = size[0], .low = 0, .high = 1};
    buffer[1] = (gc_lab_buffer){.name = "out", .role = LAB_OUTPUT, .type = LAB_F32, .count = size[0]};
    return 2;
}

static gc_lab_cost cost(const int64_t *size, const gc_lab_variant *variant) {
    (void)variant;
    return (gc_lab_cost){.bytes = 8.0 * (double)size[0], .operations = 2.0 * WORK * (double)size[0]};
}

static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)buffer;
    double v = (double)run->in[0][index];
    for (int k = 0; k < WORK; k++)
        v = v * (double)0.999f + (double)0.001f;
    return v;
}

static const gc_lab_size sizes[] = {
    {{1}, LAB_QUICK}, {{1003}, LAB_QUICK}, {{20011}, LAB_CHECK}, {{1 << 17}, LAB_CPU_TIME}, {{1 << 24}, LAB_GPU_TIME}};

#define IN_STREAMS(n, title, kind, text)                                                                               \
    {                                                                                                                  \
        .name = title ", " #n, .changed = text, .where = LAB_GPU, .parameter = (n), .memory = (kind),                  \
        .flags = LAB_HOST_CLOCK, .tolerance = 1e-4, LAB_RUNS_ON_GPU(gck_streams_parts)                                 \
    }

static const gc_lab_variant variants[] = {
    {.name = "CPU OpenMP", .changed = "the same work on all cores", LAB_RUNS(all_cores), .tolerance = 1e-4},
    {.name = "three kernels, one stream",
     .changed = "three kernels, each too small for the whole device, one after the other",
     .limit =
         "Each kernel has a third as many blocks as there are multiprocessors, and they run one after the other: two "
         "thirds of the GPU have nothing to do.",
     .where = LAB_GPU,
     .parameter = 1,
     .flags = LAB_HOST_CLOCK,
     .tolerance = 1e-4,
     LAB_RUNS_ON_GPU(gck_streams_three_kernels)},
    {.name = "three kernels, two streams",
     .changed = "the second kernel in its own stream: it runs at the same time as the first",
     .limit = "Two of the three kernels run side by side: two rounds instead of three, 2 / 3 of the time.",
     .where = LAB_GPU,
     .parameter = 2,
     .flags = LAB_HOST_CLOCK,
     .tolerance = 1e-4,
     LAB_RUNS_ON_GPU(gck_streams_three_kernels)},
    IN_STREAMS(1, "pinned, streams", LAB_PINNED, "copy in, kernel, copy back: each waits for the one before"),
    IN_STREAMS(2, "pinned, streams", LAB_PINNED, "halves of the data in two streams"),
    IN_STREAMS(3, "pinned, streams", LAB_PINNED,
               "thirds in three streams: one is copied in, one processed, one copied back"),
    IN_STREAMS(4, "pinned, streams", LAB_PINNED, "quarters in four streams"),
    IN_STREAMS(
        8, "pinned, streams", LAB_PINNED,
        "eighths in eight streams: the first copy in and the last copy back, which nothing overlaps, are shorter"),
    IN_STREAMS(1, "pageable, streams", LAB_PAGEABLE, "pageable memory: the copies go through a buffer of the driver"),
    IN_STREAMS(4, "pageable, streams", LAB_PAGEABLE,
               "four streams do not help: a copy from or to pageable memory blocks the calling thread"),
};

static const gc_lab_effect effects[] = {
    {"small kernels overlap in two streams", "three kernels, one stream", "three kernels, two streams", 1.2, 0},
    {"four streams overlap copies and kernels", "pinned, streams, 1", "pinned, streams, 4", 1.3, 0},
    {"copies of pageable memory are slower", "pageable, streams, 4", "pinned, streams, 4", 1.3, 0},
};

const gc_lab_module gc_lab_streams = {
    .name = "streams",
    .title = "Streams: copies and kernels at the same time",
    .course = "Stahl 12",
    .idea =
        "A stream is a queue whose work runs in order. Work in different streams may run at the same time, and a GPU "
        "has separate engines for copies to the device, for copies from it, and for kernels.\n\n"
        "The data is therefore divided into parts, each with its copy in, its kernel and its copy back in its own "
        "stream. After the first part has arrived, all three engines are busy, and the total time falls from the sum "
        "of the three steps towards the longest of them.\n\n"
        "Only pinned memory can be copied while the program continues. Pageable memory, which the system may move, "
        "must go through a buffer of the driver, and the call blocks meanwhile.",
    .see = "Three small kernels take a third less time in two streams than in one: the first two run at the same time. "
           "With copies of pinned memory the time falls with the number of streams, but not below the longest step, a "
           "copy of 64 MB in one direction. From pageable memory more streams do not help and may take longer: the "
           "processor copies each piece into pinned memory first, and the call returns only then.",
    .next =
        "gpuconv --report json shows the same overlap for real files: a timeline of reading, copying, computing and "
        "writing.",
    .dimension = {"elements"},
    .buffers = buffers,
    .cost = cost,
    .reference = reference,
    LAB_TABLES,
};
