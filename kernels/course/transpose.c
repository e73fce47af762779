/*
 * Transposing a matrix: out[c][r] = in[r][c], row-major. No arithmetic, every element read once and written once, and
 * yet either the reading or the writing goes against the grain of memory - unless a tile turns in shared memory on the
 * way:
 *
 *      in: rows of a tile, coalesced -> shared[row][column] -> out: columns of the tile as rows, coalesced
 *
 * A tile of 32 x 32 floats has all elements of a column in one bank; a row of 33 puts them into 32.
 *
 * Course: Antolin.
 */
#include "gpulab/lab.h"

LAB_LAUNCHER(gck_transpose_copy);
LAB_LAUNCHER(gck_transpose_copy_shared);
LAB_LAUNCHER(gck_transpose_naive);
LAB_LAUNCHER(gck_transpose_tile);
LAB_LAUNCHER(gck_transpose_padded);
LAB_LAUNCHER(gck_transpose_best);

/* The parameter of a variant: what its output is. */
enum { TRANSPOSES = 0, COPIES = 1 };

static int sequential(const gc_lab_run *run) {
    const float *in = run->buffer[0];
    float *out = run->buffer[1];
    int64_t rows = run->size[0], columns = run->size[1];
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            out[c * rows + r] = in[r * columns + c];
    return 0;
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int tiled(const gc_lab_run *run) {
    enum { TILE = 32 };
    const float *in = run->buffer[0];
    float *out = run->buffer[1];
    int64_t rows = run->size[0], columns = run->size[1];
#pragma omp parallel for
    for (int64_t r0 = 0; r0 < rows; r0 += TILE)
        for (int64_t c0 = 0; c0 < columns; c0 += TILE)
            for (int64_t c = c0; c < least(c0 + TILE, columns); c++)
                for (int64_t r = r0; r < least(r0 + TILE, rows); r++)
                    out[c * rows + r] = in[r * columns + c];
    return 0;
}

static int buffers(const int64_t *size, gc_lab_buffer *buffer) {
    buffer[0] = (gc_lab_buffer){.name = "in", .type = LAB_F32, .count = size[0] * size[1]};
    buffer[1] = (gc_lab_buffer){.name = "out", .role = LAB_OUTPUT, .type = LAB_F32, .count = size[0] * size[1]};
    return 2;
}

static gc_lab_cost cost(const int64_t *size, const gc_lab_variant *variant) {
    (void)variant;
    return (gc_lab_cost){.bytes = 8.0 * (double)size[0] * (double)size[1]};
}

static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)buffer;
    int64_t rows = run->size[0], columns = run->size[1];
    if (run->parameter == COPIES)
        return (double)run->in[0][index];
    return (double)run->in[0][index % rows * columns + index / rows];
}

static const gc_lab_size sizes[] = {
    {{1, 1}, LAB_QUICK},      {{33, 65}, LAB_QUICK},        {{1000, 777}, LAB_CHECK},
    {{1024, 512}, LAB_CHECK}, {{2048, 2048}, LAB_CPU_TIME}, {{8192, 8192}, LAB_GPU_TIME},
};

static const gc_lab_variant variants[] = {
    {.name = "CPU", .changed = "two loops: reads along rows, writes down columns", .launch = sequential},
    {.name = "CPU tiled",
     .changed = "tiles that fit the cache, all cores: the cache does by itself what shared memory does on a GPU",
     .launch = tiled},
    {.name = "copy",
     .changed = "no transposition: what the memory gives to the same number of bytes",
     .where = LAB_GPU,
     .parameter = COPIES,
     .course = "105.2 GB/s, M2050; 136.0 GB/s, K20c",
     .launch = LAB_ON_GPU(gck_transpose_copy)},
    {.name = "copy through shared memory",
     .changed = "the same by way of a tile in shared memory: what the detour and the barrier cost",
     .where = LAB_GPU,
     .parameter = COPIES,
     .course = "104.6 GB/s, M2050; 152.3 GB/s, K20c",
     .launch = LAB_ON_GPU(gck_transpose_copy_shared)},
    {.name = "naive",
     .changed = "reads along rows; writes down columns, each thread of a warp into another row: 32 sectors a warp",
     .where = LAB_GPU,
     .course = "18.8 GB/s, M2050; 55.3 GB/s, K20c",
     .launch = LAB_ON_GPU(gck_transpose_naive)},
    {.name = "coalesced through shared memory",
     .changed = "the tile turns in shared memory; both ways through global memory go along rows",
     .where = LAB_GPU,
     .course = "51.3 GB/s, M2050; 97.6 GB/s, K20c",
     .launch = LAB_ON_GPU(gck_transpose_tile)},
    {.name = "padded tile",
     .changed = "rows of 33 floats: the elements of a column lie in 32 different banks",
     .where = LAB_GPU,
     .course = "99.5 GB/s, M2050; 144.3 GB/s, K20c",
     .launch = LAB_ON_GPU(gck_transpose_padded)},
    {.name = "best",
     .changed = "tiles of 64 x 64, 16 bytes a thread each way: more bytes under way, half as many instructions",
     .where = LAB_GPU,
     .launch = LAB_ON_GPU(gck_transpose_best)},
};

static const gc_lab_effect effects[] = {
    {"writing down columns is slower than copying", "naive", "copy", 1.5, 0},
    {"turning a tile in shared memory helps", "naive", "padded tile", 1.3, 0},
    {"32-way bank conflicts cost more than a padded tile", "coalesced through shared memory", "padded tile", 1.02, 0},
    {"the best transposition is nearly a copy", NULL, "best", 0.92, 0},
};

const gc_lab_module gc_lab_transpose = {
    .name = "transpose",
    .title = "Transposing a matrix: corner turning in shared memory",
    .course = "Antolin, MATH-454 lecture 8",
    .idea = "A transposition moves every element and computes nothing, so a copy of the same bytes is its ceiling. "
            "Threads of a warp that read neighbours along a row must write them down a column: 32 addresses a whole "
            "row apart, 32 transactions where one would do.\n\n"
            "Shared memory has no such preference. A block reads a tile along rows, waits at a barrier, and writes it "
            "along the rows of the output; the corner is turned in between.\n\n"
            "Only the banks object: shared memory has 32 of them, four bytes wide, and all elements of a column of a "
            "32 x 32 tile lie in one. A row of 33 shifts each by one bank, and the conflict is gone.",
    .see = "GB/s of each variant, beside the copy. The naive one falls far behind, the tile comes back, the padding "
           "takes the rest.",
    .next = "gpulab run bank-conflicts measures the conflict by itself, gpulab run coalescing the access down columns.",
    .dimension = {"rows", "columns"},
    .buffers = buffers,
    .cost = cost,
    .reference = reference,
    LAB_TABLES,
};
