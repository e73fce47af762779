/*
 * Module pinned-memory: copies between host and device by the kind of host memory: pageable, pinned, portable (pinned
 * for every context), write-combined and mapped; in both directions and for several sizes. The output of a variant is a
 * copy of its input.
 *
 * Courses: Filipovic, Stahl 12.1.
 */
#include "gpulab/lab.h"

#include <string.h>

LAB_LAUNCHER(gck_pinned_fill_device);
LAB_LAUNCHER(gck_pinned_to_device);
LAB_LAUNCHER(gck_pinned_from_device);
LAB_LAUNCHER(gck_pinned_mapped);

static int host_copy(const gc_lab_run *run) {
    memcpy(run->buffer[1], run->buffer[0], sizeof(float) * (size_t)run->size[0]);
    return 0;
}

static int buffers(const int64_t *size, gc_lab_buffer *buffer) {
    buffer[0] = (gc_lab_buffer){.name = "from", .type = LAB_F32, .count = size[0]};
    buffer[1] = (gc_lab_buffer){.name = "to", .role = LAB_OUTPUT, .type = LAB_F32, .count = size[0]};
    return 2;
}

/* Counts the bytes that cross the bus; a mapped variant uses both directions. */
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

#define TO_DEVICE(kind, title, text)                                                                                   \
    {                                                                                                                  \
        .name = title " to the device", .changed = text, .where = LAB_GPU, .memory = (kind), .flags = LAB_ON_DEVICE,   \
        LAB_RUNS_ON_GPU(gck_pinned_to_device)                                                                          \
    }
#define FROM_DEVICE(kind, title, text)                                                                                 \
    {                                                                                                                  \
        .name = title " from the device", .changed = text, .where = LAB_GPU, .memory = (kind),                         \
        .prepare = LAB_ON_GPU(gck_pinned_fill_device), LAB_RUNS_ON_GPU(gck_pinned_from_device)                         \
    }

static const gc_lab_variant variants[] = {
    {.name = "CPU memcpy", .changed = "from host memory to host memory, without the device", LAB_RUNS(host_copy)},
    TO_DEVICE(LAB_PAGEABLE, "pageable", "memory from malloc: the driver copies it through its own pinned buffer"),
    TO_DEVICE(LAB_PINNED, "pinned", "memory from cudaHostAlloc: the copy engine reads it directly"),
    TO_DEVICE(LAB_PORTABLE, "portable", "pinned for every context, and as fast"),
    TO_DEVICE(
        LAB_COMBINED, "write-combined",
        "not cached on the host: the CPU writes it fast and reads it slowly; the transfer need not check the CPU's "
        "caches"),
    FROM_DEVICE(LAB_PAGEABLE, "pageable", "the other direction, through the driver's buffer"),
    FROM_DEVICE(LAB_PINNED, "pinned", "the other direction without the buffer"),
    FROM_DEVICE(LAB_PORTABLE, "portable", "pinned for every context, and as fast"),
    {.name = "mapped, both ways",
     .changed = "no copy: a kernel reads and writes host memory across the bus",
     .limit =
         "Each byte crosses the bus when the kernel asks for it, in requests of 32 to 128 bytes that the threads wait "
         "for, in both directions at once. It saves the copies' own start, which decides for small arrays only, and "
         "the memory on the device. A byte that is read twice crosses twice.",
     .where = LAB_GPU,
     .memory = LAB_MAPPED,
     LAB_RUNS_ON_GPU(gck_pinned_mapped),
     .needs = "this device cannot map the host's memory"},
};

static const gc_lab_effect effects[] = {
    {"copies to the device are faster from pinned memory", "pageable to the device", "pinned to the device", 1.2, 0},
    {"copies from the device are faster to pinned memory", "pageable from the device", "pinned from the device", 1.2,
     0},
    {"portable memory is as fast as pinned memory", "portable to the device", "pinned to the device", 1.2, 1},
};

const gc_lab_module gc_lab_pinned_memory = {
    .name = "pinned-memory",
    .title = "Pinned memory: copies between host and device",
    .course = "Filipovic; Stahl 12.1",
    .idea =
        "A copy engine accesses host memory by physical addresses, but the system may move a page of ordinary, "
        "pageable memory at any time. A copy of pageable memory therefore goes through a buffer that the driver has "
        "pinned: the data is copied twice, and the call blocks.\n\n"
        "Pinned memory is read and written directly, at the rate of the bus, while the program continues. Portable "
        "memory is pinned for every context. Write-combined memory is not cached on the host: fast to write, slow to "
        "read. Mapped memory has an address on the device, so that a kernel can access it without any copy.\n\n"
        "Pinning is slow, and pinned memory cannot be used for anything else: pin buffers once, use them often, and "
        "do not pin more than needed.",
    .see =
        "With 64 MB, copies of pinned memory run at the rate of the bus in both directions. Pageable memory is "
        "copied twice, first by the processor into pinned memory: its rate is that of the host, differs from machine "
        "to machine and between the directions. Portable and write-combined memory are as fast as pinned memory, and "
        "the mapped variant uses both directions of the bus at once.\n\nWith 64 KB the rates are lower, because the "
        "fixed cost of a call weighs more than the bytes.",
    .next = "gpulab run streams hides these copies behind kernels; gpuconv does the same with files.",
    .dimension = {"elements"},
    .buffers = buffers,
    .cost = cost,
    .reference = reference,
    LAB_TABLES,
};
