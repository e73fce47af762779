/*
 * The way between host and device, by the kind of the host's memory: pageable, pinned, pinned for every context
 * (portable), write-combined, mapped; each way and each size. The result of a copy is a copy.
 *
 * Courses: Filipovic, Stahl 12.1.
 */
#include "../../src/lab/lab.h"

#include <string.h>

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

/* What crosses the bus, which is not the device's memory: no share of its ceiling. */
static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)buffer;
    return (double)run->in[0][index];
}

static double rate(const gc_lab_run *run);

static const gc_lab_size sizes[] = {
    {{1}, LAB_QUICK},           {{1003}, LAB_QUICK},         {{1 << 14}, LAB_CHECK | LAB_GPU_TIME},
    {{1 << 18}, LAB_GPU_TIME}, {{1 << 24}, LAB_GPU_TIME | LAB_CPU_TIME},
};
