/*
 * Streams: queues of work that need not wait for one another. A piece of data is copied to the device, worked on and
 * copied back; while one piece is worked on, the next comes and the last goes.
 *
 *      one stream:    copy copy copy copy | work work work work | back back back back
 *      four streams:  copy | copy work | copy work back | copy work back | work back | back
 *
 * The work: v = 0.999 v + 0.001, WORK times, a chain that no compiler shortens. Course: Stahl 12.
 */
#include "gpulab/lab.h"

enum { WORK = 1500 };

/* The parameter of the copying variants is the number of streams; of the others, whether they have two. */
LAB_LAUNCHER(gck_streams_pieces);
LAB_LAUNCHER(gck_streams_three);

static float work(float v) {
    for (int k = 0; k < WORK; k++)
        v = v * 0.999f + 0.001f;
    return v;
}

static int loop(const gc_lab_run *run) {
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

#define IN_STREAMS(n, where_from, kind, how)                                                                           \
    {                                                                                                                  \
        .name = where_from ", " #n, .changed = how, .where = LAB_GPU, .parameter = (n), .memory = (kind),              \
        .flags = LAB_HOST_CLOCK, .tolerance = 1e-4, .launch = LAB_ON_GPU(gck_streams_pieces)                           \
    }

static const gc_lab_variant variants[] = {
    {.name = "CPU OpenMP", .changed = "the work on all cores", .launch = loop, .tolerance = 1e-4},
    {.name = "three kernels, one stream",
     .changed = "three kernels, each too small for the whole device, one after the other",
     .where = LAB_GPU,
     .parameter = 1,
     .flags = LAB_HOST_CLOCK,
     .tolerance = 1e-4,
     .launch = LAB_ON_GPU(gck_streams_three)},
    {.name = "three kernels, two streams",
     .changed = "the second in a stream of its own: it runs beside the first",
     .where = LAB_GPU,
     .parameter = 2,
     .flags = LAB_HOST_CLOCK,
     .tolerance = 1e-4,
     .launch = LAB_ON_GPU(gck_streams_three)},
    IN_STREAMS(1, "pinned, streams", LAB_PINNED, "copy, kernel, copy: each waits for the one before"),
    IN_STREAMS(2, "pinned, streams", LAB_PINNED, "halves in two streams"),
    IN_STREAMS(3, "pinned, streams", LAB_PINNED, "thirds in three streams: one comes, one is worked on, one goes"),
    IN_STREAMS(4, "pinned, streams", LAB_PINNED, "quarters in four streams"),
    IN_STREAMS(8, "pinned, streams", LAB_PINNED, "eighths in eight streams: less time at the beginning and at the end"),
    IN_STREAMS(1, "pageable, streams", LAB_PAGEABLE,
               "from memory that the system may move: the copies go through a buffer"),
    IN_STREAMS(4, "pageable, streams", LAB_PAGEABLE,
               "four streams do not help: such a copy holds up whoever asks for it"),
};

static const gc_lab_effect effects[] = {
    {"small kernels overlap in two streams", "three kernels, one stream", "three kernels, two streams", 1.2, 0},
    {"four streams overlap copies and work", "pinned, streams, 1", "pinned, streams, 4", 1.3, 0},
    {"pageable copies are slower", "pageable, streams, 4", "pinned, streams, 4", 1.3, 0},
};

const gc_lab_module gc_lab_streams = {
    .name = "streams",
    .title = "Streams: copies and kernels at the same time",
    .course = "Stahl 12",
    .idea =
        "A stream is a queue: what is in it runs in order. What is in different streams may run at the same time, and "
        "a GPU has engines to copy in, to copy out, and to compute.\n\n"
        "So data is cut into pieces, each with its copy in, its kernel and its copy out in a stream of its own. After "
        "the first piece has arrived, all three engines are busy, and the time falls from the sum of the parts towards "
        "the longest of them.\n\n"
        "Only pinned memory can be copied while the program goes on. Memory that the system may move must go through a "
        "buffer of the driver, and the call waits.",
    .see = "The time falls from one stream to three, and little from there on. With pageable memory it hardly falls at "
           "all.",
    .next = "gpuconv --report json shows the same overlap for real files: a timeline of what was read, copied, "
            "computed and written when.",
    .dimension = {"elements"},
    .buffers = buffers,
    .cost = cost,
    .reference = reference,
    LAB_TABLES,
};
