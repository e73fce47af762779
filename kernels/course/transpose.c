/*
 * Module transpose: out[c][r] = in[r][c], row-major. There is no arithmetic, and each element is read once and written
 * once. Either the reads or the writes go down columns, unless a tile is transposed in shared memory:
 *
 *      in: rows of a tile, coalesced -> shared[row][column] -> out: columns of the tile as rows, coalesced
 *
 * In a tile of 32 x 32 floats all elements of a column are in one bank; with rows of 33 floats they are in 32 banks.
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

/* A variant's parameter: whether its output is the transposed matrix or a copy. */
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

static int64_t min64(int64_t a, int64_t b) {
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
            for (int64_t c = c0; c < min64(c0 + TILE, columns); c++)
                for (int64_t r = r0; r < min64(r0 + TILE, rows); r++)
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
    {.name = "CPU", .changed = "two loops: reads along rows, writes down columns", LAB_RUNS(sequential)},
    {.name = "CPU tiled",
     .changed = "tiles that fit in the cache, and all cores: the cache does the work of shared memory on a GPU",
     LAB_RUNS(tiled)},
    {.name = "copy",
     .changed = "no transposition: the time that memory needs for the same number of bytes",
     .limit =
         "One load of 4 bytes after the other for each thread: the compiler must keep the order of loads and stores, "
         "because in and out could overlap.",
     .where = LAB_GPU,
     .parameter = COPIES,
     .course = "105.2 GB/s, M2050; 136.0 GB/s, K20c",
     LAB_RUNS_ON_GPU(gck_transpose_copy)},
    {.name = "copy through shared memory",
     .changed = "the same copy through a tile in shared memory: the cost of the tile and its barrier",
     .limit = "All loads of a thread come before the barrier, so that four are in flight at once.",
     .where = LAB_GPU,
     .parameter = COPIES,
     .course = "104.6 GB/s, M2050; 152.3 GB/s, K20c",
     LAB_RUNS_ON_GPU(gck_transpose_copy_shared)},
    {.name = "naive",
     .changed = "reads along rows; writes down columns, each thread of a warp to a different row: 32 sectors per warp",
     .limit =
         "The stores of a warp go to 32 rows: 32 sectors for 128 bytes, so eight times the bytes are written: (1 + 8) "
         "/ 2 = 4.5 times those of the copy, at best 22 % of the limit; partly filled sectors cost more. Next: make "
         "both sides rows, with a tile in shared memory.",
     .where = LAB_GPU,
     .course = "18.8 GB/s, M2050; 55.3 GB/s, K20c",
     LAB_RUNS_ON_GPU(gck_transpose_naive)},
    {.name = "coalesced through shared memory",
     .changed = "the tile is transposed in shared memory; reads and writes of global memory go along rows",
     .limit =
         "The lanes read a column of the tile. Its elements are 32 floats apart, all in one bank: 32 turns. 8192^2 "
         "elements are 15 900 warps on each of 132 multiprocessors, 32 cycles each are 0.26 ms of the 0.32. Next: "
         "move the columns to different banks.",
     .where = LAB_GPU,
     .course = "51.3 GB/s, M2050; 97.6 GB/s, K20c",
     LAB_RUNS_ON_GPU(gck_transpose_tile)},
    {.name = "padded tile",
     .changed = "rows of 33 floats: the elements of a column are in 32 different banks",
     .limit =
         "Rows of 33 floats: one turn instead of 32. The block loads, waits, stores and ends, and while it stores it "
         "has no load in flight. Next: more bytes for each thread, larger loads.",
     .where = LAB_GPU,
     .course = "99.5 GB/s, M2050; 144.3 GB/s, K20c",
     LAB_RUNS_ON_GPU(gck_transpose_padded)},
    {.name = "best",
     .changed = "tiles of 64 x 64 and 16 bytes per load and store: more bytes in flight, fewer instructions",
     .limit =
         "Tiles of 64 x 64 with loads and stores of 16 bytes: four times as many bytes in flight for the same threads.",
     .where = LAB_GPU,
     LAB_RUNS_ON_GPU(gck_transpose_best)},
};

static const gc_lab_effect effects[] = {
    {"writing down columns is slower than copying", "naive", "copy", 1.5, 0},
    {"transposing a tile in shared memory helps", "naive", "padded tile", 1.3, 0},
    {"32-way bank conflicts cost more than a padded tile", "coalesced through shared memory", "padded tile", 1.02, 0},
    {"the best transposition is nearly as fast as a copy", NULL, "best", 0.92, 0},
};

const gc_lab_module gc_lab_transpose = {
    .name = "transpose",
    .title = "Transposing a matrix: corner turning in shared memory",
    .course = "Antolin, MATH-454 lecture 8",
    .idea =
        "A transposition moves every element and computes nothing, so a copy of the same bytes is its ceiling. "
        "Threads of a warp that read neighbouring elements of a row must write them down a column: to 32 addresses in "
        "32 different rows, which takes 32 sectors where four would be enough.\n\n"
        "Shared memory does not need neighbouring addresses. A block reads a tile along rows, waits at a barrier, and "
        "writes it along the rows of the output; the transposition takes place between the two, in shared memory.\n\n"
        "Only bank conflicts remain: shared memory has 32 banks of four-byte words, and all elements of a column of a "
        "32 x 32 tile are in one bank. With rows of 33 floats each row is shifted by one bank, and there is no "
        "conflict.",
    .see =
        "Compare the GB/s of each variant with the copy. The naive transposition is far from it, the tile takes it a "
        "part of the way, and the padding the rest. The best variant is faster than the plain copy, and close to the "
        "copy that the lab measures as the ceiling.\n\nThe copy through shared memory is faster than the plain copy: "
        "all loads of a thread are in flight before the barrier, while in the plain copy each load waits for the "
        "store before it, since the compiler cannot exclude that in and out overlap.",
    .next = "gpulab run bank-conflicts measures the conflict alone, and gpulab run coalescing the access down columns.",
    .dimension = {"rows", "columns"},
    .buffers = buffers,
    .cost = cost,
    .reference = reference,
    LAB_TABLES,
};
