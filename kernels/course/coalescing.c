/*
 * Coalescing: the same doubling of every element of a matrix, by threads that meet the elements in different orders.
 *
 *      out[i] = 2 in[i];     thread t takes element  t | (t mod rows) columns + t / rows | (t mod n/s) s + t / (n/s) |
 * t + k
 *
 * Courses: T 6, Antolin.
 */
#include "gpulab/lab.h"

LAB_LAUNCHER(gck_coalescing_across);
LAB_LAUNCHER(gck_coalescing_down);
LAB_LAUNCHER(gck_coalescing_turned);
LAB_LAUNCHER(gck_coalescing_strided);
LAB_LAUNCHER(gck_coalescing_shifted);
LAB_LAUNCHER(gck_coalescing_three);
LAB_LAUNCHER(gck_coalescing_four);

static int across(const gc_lab_run *run) {
    const float *in = run->buffer[0];
    float *out = run->buffer[1];
    for (int64_t i = 0; i < run->size[0] * run->size[1]; i++)
        out[i] = 2.0f * in[i];
    return 0;
}

static int down(const gc_lab_run *run) {
    const float *in = run->buffer[0];
    float *out = run->buffer[1];
    for (int64_t column = 0; column < run->size[1]; column++)
        for (int64_t row = 0; row < run->size[0]; row++)
            out[row * run->size[1] + column] = 2.0f * in[row * run->size[1] + column];
    return 0;
}

static int buffers(const int64_t *size, gc_lab_buffer *buffer) {
    buffer[0] = (gc_lab_buffer){.name = "in", .type = LAB_F32, .count = size[0] * size[1]};
    buffer[1] = (gc_lab_buffer){.name = "out", .role = LAB_OUTPUT, .type = LAB_F32, .count = size[0] * size[1]};
    return 2;
}

static gc_lab_cost cost(const int64_t *size, const gc_lab_variant *variant) {
    (void)variant;
    return (gc_lab_cost){.bytes = 8.0 * (double)size[0] * (double)size[1],
                         .operations = (double)size[0] * (double)size[1]};
}

static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)buffer;
    return 2.0 * (double)run->in[0][index];
}

static const gc_lab_size sizes[] = {{{1, 1}, LAB_QUICK},          {{3, 1003}, LAB_QUICK},
                                    {{129, 67}, LAB_QUICK},       {{1021, 997}, LAB_CHECK},
                                    {{2048, 2048}, LAB_CPU_TIME}, {{8192, 8192}, LAB_GPU_TIME}};

#define ON_GPU(what, how, function, value)                                                                             \
    { .name = what, .changed = how, .where = LAB_GPU, .parameter = (value), .launch = LAB_ON_GPU(function) }

static const gc_lab_variant variants[] = {
    {.name = "CPU along rows", .changed = "the cache brings whole lines, and all of a line is used", .launch = across},
    {.name = "CPU down columns", .changed = "of each line one element is used before it is gone", .launch = down},
    ON_GPU("horizontal", "neighbouring threads take neighbouring elements: 128 bytes a warp, in one request",
           gck_coalescing_across, 0),
    ON_GPU("vertical", "neighbouring threads take neighbouring rows: 32 requests of 32 bytes for 4 each",
           gck_coalescing_down, 0),
    ON_GPU("corner turned", "the vertical order, but tiles come and go through shared memory, along rows",
           gck_coalescing_turned, 0),
    ON_GPU("stride 1", "the yardstick of the strides", gck_coalescing_strided, 1),
    ON_GPU("stride 2", "half of every request is used", gck_coalescing_strided, 2),
    ON_GPU("stride 4", "a quarter", gck_coalescing_strided, 4),
    ON_GPU("stride 8", "an eighth: from here on every thread has a sector of 32 bytes to itself",
           gck_coalescing_strided, 8),
    ON_GPU("stride 16", "no worse for the bytes", gck_coalescing_strided, 16),
    ON_GPU("stride 32", "every thread a line of its own", gck_coalescing_strided, 32),
    ON_GPU("offset 1", "warps begin 4 bytes late and touch one sector more", gck_coalescing_shifted, 1),
    ON_GPU("offset 16", "half a line late", gck_coalescing_shifted, 16),
    ON_GPU("offset 32", "a whole line late: aligned again", gck_coalescing_shifted, 32),
    ON_GPU("float3", "three floats a thread: three loads, 12 bytes apart", gck_coalescing_three, 0),
    ON_GPU("float4", "four floats a thread in one load of 16 bytes", gck_coalescing_four, 0),
};

static const gc_lab_effect effects[] = {
    {"down columns is slower than along rows", "vertical", "horizontal", 1.5, 0},
    {"shared memory turns the corner", "vertical", "corner turned", 1.5, 0},
    {"stride 2 wastes half of the bytes", "stride 2", "stride 1", 1.05, 0},
    {"stride 8 wastes more", "stride 8", "stride 2", 1.2, 0},
    {"a misaligned start costs little on a GPU with caches", "offset 1", "offset 32", 1.2, 1},
    {"16-byte loads are no slower than 12", "float3", "float4", 0.97, 0},
};

const gc_lab_module gc_lab_coalescing = {
    .name = "coalescing",
    .title = "Coalescing: how a warp meets memory",
    .course = "CUDA tutorial 6; Antolin",
    .idea =
        "Memory comes in sectors of 32 bytes, four to a line. A warp's load is one instruction: the hardware gathers "
        "its 32 addresses and asks for every sector that any of them touches, once. Neighbouring threads at "
        "neighbouring floats touch four sectors and use all of them. Threads a row apart touch 32 and use an eighth of "
        "each.\n\n"
        "Where the algorithm wants the other order, shared memory turns the corner: a block fetches a tile along rows, "
        "its threads meet it down columns there, where that costs nothing, and results leave along rows again.\n\n"
        "A misaligned start costs a sector more a warp, which the neighbour's request brings into the cache anyway.",
    .see = "Vertical access takes several times as long for the same bytes; the corner-turned form gets nearly all of "
           "it back. Time grows with the stride up to 8, where every sector is used for one float.",
    .next = "gpulab run transpose does the same with a matrix that must really be turned.",
    .dimension = {"rows", "columns"},
    .buffers = buffers,
    .cost = cost,
    .reference = reference,
    LAB_TABLES,
};
