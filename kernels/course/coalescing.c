/*
 * Module coalescing: every element of a matrix is doubled, by threads that access the elements in different orders.
 *
 *      out[i] = 2 in[i], where thread t computes element
 *
 *      horizontal: i = t                                     vertical: i = (t mod rows) columns + t / rows
 *      stride s:   i = (t mod (n / s)) s + t / (n / s)       offset k: i = (t + k) mod n
 *
 * Courses: CUDA tutorial 6, Antolin.
 */
#include "gpulab/lab.h"

LAB_LAUNCHER(gck_coalescing_horizontal);
LAB_LAUNCHER(gck_coalescing_vertical);
LAB_LAUNCHER(gck_coalescing_corner_turned);
LAB_LAUNCHER(gck_coalescing_strided);
LAB_LAUNCHER(gck_coalescing_offset);
LAB_LAUNCHER(gck_coalescing_float3);
LAB_LAUNCHER(gck_coalescing_float4);

static int along_rows(const gc_lab_run *run) {
    const float *in = run->buffer[0];
    float *out = run->buffer[1];
    for (int64_t i = 0; i < run->size[0] * run->size[1]; i++)
        out[i] = 2.0f * in[i];
    return 0;
}

static int down_columns(const gc_lab_run *run) {
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

#define ON_GPU(title, text, function, value, why)                                                                      \
    { .name = title, .changed = text, .limit = why, .where = LAB_GPU, .parameter = (value), LAB_RUNS_ON_GPU(function) }

static const gc_lab_variant variants[] = {
    {.name = "CPU along rows",
     .changed = "the cache loads whole lines, and every element of a line is used",
     LAB_RUNS(along_rows)},
    {.name = "CPU down columns",
     .changed = "one element of each line is used before the cache replaces the line",
     LAB_RUNS(down_columns)},
    ON_GPU("horizontal", "neighbouring threads access neighbouring elements: a warp reads 128 bytes with one request",
           gck_coalescing_horizontal, 0,
           "One load of 4 bytes in flight a thread, as in the module image. Next: what if the threads are ordered "
           "otherwise?"),
    ON_GPU(
        "vertical",
        "neighbouring threads access neighbouring rows: a warp reads 32 sectors of 32 bytes, and uses 4 bytes of each",
        gck_coalescing_vertical, 0,
        "The lanes of a warp read 32 rows: 32 sectors of 32 bytes for 128 bytes that are used, an eighth. 63 % / 8 = "
        "8 % of the limit. Next: read along rows, and turn in shared memory."),
    ON_GPU("corner turned",
           "the vertical order inside a tile of shared memory; global memory is read and written along rows",
           gck_coalescing_corner_turned, 0,
           "Both the loads and the stores are horizontal; the turn in shared memory costs a write and a read there."),
    ON_GPU("stride 1", "the reference for the other strides", gck_coalescing_strided, 1, NULL),
    ON_GPU(
        "stride 2", "a warp uses half of the bytes of each sector", gck_coalescing_strided, 2,
        "Every sector is used half: twice the bytes. The caches serve the other half only if it is read soon enough."),
    ON_GPU("stride 4", "a quarter", gck_coalescing_strided, 4, NULL),
    ON_GPU("stride 8", "an eighth: each thread of a warp reads a different sector of 32 bytes", gck_coalescing_strided,
           8,
           "8 floats are 32 bytes: each lane has a sector of its own, and an eighth of the bytes that are moved are "
           "used. 45 % / 8 = 6 %; the L2 cache helps a little."),
    ON_GPU("stride 16", "the same number of sectors, but every second one", gck_coalescing_strided, 16, NULL),
    ON_GPU("stride 32", "the same number of sectors, each in a different line of 128 bytes", gck_coalescing_strided, 32,
           NULL),
    ON_GPU(
        "offset 1", "each warp begins 4 bytes after a sector boundary and reads one sector more", gck_coalescing_offset,
        1,
        "A warp's 128 bytes begin one float aside and touch 5 sectors instead of 4, but the next warp uses the other "
        "part of the fifth, from the cache."),
    ON_GPU("offset 16", "each warp begins in the middle of a line, at a sector boundary", gck_coalescing_offset, 16,
           NULL),
    ON_GPU("offset 32", "each warp begins one line later: aligned again", gck_coalescing_offset, 32, NULL),
    ON_GPU("float3", "three floats per thread: three loads, with 12 bytes from thread to thread", gck_coalescing_float3,
           0, NULL),
    ON_GPU(
        "float4", "four floats per thread in one load of 16 bytes", gck_coalescing_float4, 0,
        "512 bytes a warp and request: a quarter of the instructions for the same bytes, and four times as many bytes "
        "in flight."),
};

static const gc_lab_effect effects[] = {
    {"access down columns is slower than along rows", "vertical", "horizontal", 1.5, 0},
    {"a tile in shared memory makes both global accesses coalesced", "vertical", "corner turned", 1.5, 0},
    {"stride 2 wastes half of the bytes", "stride 2", "stride 1", 1.05, 0},
    {"stride 8 wastes more", "stride 8", "stride 2", 1.2, 0},
    {"a misaligned start costs little on a GPU with caches", "offset 1", "offset 32", 1.2, 1},
    {"16-byte loads are no slower than loads of 12 bytes", "float3", "float4", 0.97, 0},
};

const gc_lab_module gc_lab_coalescing = {
    .name = "coalescing",
    .title = "Coalescing: how a warp accesses memory",
    .course = "CUDA tutorial 6; Antolin",
    .idea =
        "Global memory is read in sectors of 32 bytes; four sectors form a line. A load of a warp is one instruction: "
        "the hardware collects its 32 addresses and requests each sector that contains any of them once. Neighbouring "
        "threads that read neighbouring floats need four sectors and use all of their bytes. Threads that read from "
        "neighbouring rows need 32 sectors and use an eighth of each.\n\n"
        "When the algorithm needs the other order, a tile in shared memory solves the problem, which is called corner "
        "turning: a block reads a tile along rows, its threads access it down columns in shared memory, where this "
        "order costs nothing, and the results are written along rows again.\n\n"
        "With a misaligned start a warp needs one sector more. The neighbouring warp needs the same sector, so it is "
        "usually in the cache.",
    .see = "Vertical access takes several times as long as horizontal access for the same bytes. Corner turning takes "
           "no longer than horizontal access, and may take less, probably because each thread has several loads in "
           "flight.\n\nThe time grows with the stride. Beyond stride 8 a warp needs no more sectors, so the further "
           "increase must come from the levels behind the L1 cache. A misaligned start costs little. The wide loads "
           "come closest to the copy.",
    .next = "gpulab run transpose applies corner turning to a matrix whose rows must become columns.",
    .dimension = {"rows", "columns"},
    .buffers = buffers,
    .cost = cost,
    .reference = reference,
    LAB_TABLES,
};
