/*
 * The way between host and device, by the kind of the host's memory: pageable, pinned, pinned for every context
 * (portable), write-combined, mapped; each way and each size. The result of a copy is a copy.
 *
 * Courses: Filipovic, Stahl 12.1.
 */
#include "gpulab/lab.h"

#include <string.h>

LAB_LAUNCHER(gck_pinned_fill);
LAB_LAUNCHER(gck_pinned_to);
LAB_LAUNCHER(gck_pinned_from);
LAB_LAUNCHER(gck_pinned_mapped);

static int copy(const gc_lab_run *run) {
    memcpy(run->buffer[1], run->buffer[0], sizeof(float) * (size_t)run->size[0]);
    return 0;
}

static int buffers(const int64_t *size, gc_lab_buffer *buffer) {
    buffer[0] = (gc_lab_buffer){.name = "from", .type = LAB_F32, .count = size[0]};
    buffer[1] = (gc_lab_buffer){.name = "to", .role = LAB_OUTPUT, .type = LAB_F32, .count = size[0]};
    return 2;
}

/* What crosses the bus, each way that a variant uses. */
static gc_lab_cost cost(const int64_t *size, const gc_lab_variant *variant) {
    return (gc_lab_cost){.bytes = (variant->memory == LAB_MAPPED ? 8.0 : 4.0) * (double)size[0]};
}

static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)buffer;
    return (double)run->in[0][index];
}

static const gc_lab_size sizes[] = {
    {{1}, LAB_QUICK},
    {{1003}, LAB_QUICK},
    {{1 << 14}, LAB_CHECK | LAB_GPU_TIME},
    {{1 << 18}, LAB_GPU_TIME},
    {{1 << 24}, LAB_GPU_TIME | LAB_CPU_TIME},
};

#define WAY_IN(kind, what, how)                                                                                        \
    {                                                                                                                  \
        .name = what " to the device", .changed = how, .where = LAB_GPU, .memory = (kind), .flags = LAB_ON_DEVICE,     \
        .launch = LAB_ON_GPU(gck_pinned_to)                                                                            \
    }
#define WAY_OUT(kind, what, how)                                                                                       \
    {                                                                                                                  \
        .name = what " from the device", .changed = how, .where = LAB_GPU, .memory = (kind),                           \
        .prepare = LAB_ON_GPU(gck_pinned_fill), .launch = LAB_ON_GPU(gck_pinned_from)                                  \
    }

static const gc_lab_variant variants[] = {
    {.name = "CPU memcpy", .changed = "from memory to memory, no device", .launch = copy},
    WAY_IN(LAB_PAGEABLE, "pageable", "malloc: the driver copies through a pinned buffer of its own"),
    WAY_IN(LAB_PINNED, "pinned", "cudaHostAlloc: the copy engine reads it where it lies"),
    WAY_IN(LAB_PORTABLE, "portable", "pinned for every context: as fast"),
    WAY_IN(LAB_COMBINED, "write-combined",
           "not cached: the CPU writes it well and reads it badly, the bus need not ask"),
    WAY_OUT(LAB_PAGEABLE, "pageable", "the way back, through the driver's buffer"),
    WAY_OUT(LAB_PINNED, "pinned", "the way back without it"),
    WAY_OUT(LAB_PORTABLE, "portable", "pinned for every context: as fast"),
    {.name = "mapped, both ways",
     .changed = "no copy at all: a kernel reads and writes the host's memory over the bus",
     .where = LAB_GPU,
     .memory = LAB_MAPPED,
     .launch = LAB_ON_GPU(gck_pinned_mapped),
     .needs = "this device cannot map the host's memory"},
};

static const gc_lab_effect effects[] = {
    {"pinned memory goes in faster", "pageable to the device", "pinned to the device", 1.2, 0},
    {"pinned memory comes back faster", "pageable from the device", "pinned from the device", 1.2, 0},
    {"portable costs nothing", "portable to the device", "pinned to the device", 1.2, 1},
};

const gc_lab_module gc_lab_pinned_memory = {
    .name = "pinned-memory",
    .title = "Pinned memory: the way between host and device",
    .course = "Filipovic; Stahl 12.1",
    .idea = "A copy engine reads host memory by physical addresses, and the system may move a page at any time. So a "
            "copy from ordinary, pageable memory goes through a buffer that the driver has pinned: two copies, and the "
            "call waits.\n\n"
            "Memory that was pinned once is read and written where it lies, at the rate of the bus, while the program "
            "goes on. Portable means pinned for every context. Write-combined is not cached on the host: good to "
            "write, bad to read. Mapped memory has an address on the device, so that a kernel can use it without any "
            "copy.\n\n"
            "Pinning itself is slow and takes memory from everybody else: pin once, use often, and not all there is.",
    .see = "At 64 MB pinned copies run at the rate of the bus, pageable ones far below it. At 64 KB all are alike: "
           "there the call costs more than the bytes.",
    .next = "gpulab run streams hides these copies behind work; gpuconv does so with files.",
    .dimension = {"elements"},
    .buffers = buffers,
    .cost = cost,
    .reference = reference,
    LAB_TABLES,
};
