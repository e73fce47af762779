/*
 * The matrix product: C = A B, A of M x K, B of K x N, all row-major.
 *
 *      c[m][n] = sum over k of a[m][k] b[k][n]
 *
 * 2 M N K operations on M K + K N + M N numbers: the one computation of the course that has enough to do to keep a
 * GPU's arithmetic busy - if every number that comes from memory is used often enough. The ladder is that reuse, from
 * cache through shared memory into registers, and then arithmetic units that multiply whole tiles.
 *
 * Courses: Stahl 13 to 15, Khunjush, CUDA tutorial 7, Filipovic, Antolin.
 */
#include "gpulab/lab.h"

LAB_LAUNCHER(gck_matmul_one_block);
LAB_LAUNCHER(gck_matmul_one_block_coarse);
LAB_LAUNCHER(gck_matmul_naive);
LAB_LAUNCHER(gck_matmul_coarse);
LAB_LAUNCHER(gck_matmul_tiled);
LAB_LAUNCHER(gck_matmul_registers);
LAB_LAUNCHER(gck_matmul_wmma_f16);
LAB_LAUNCHER(gck_matmul_wmma_bf16);
LAB_LAUNCHER(gck_matmul_wmma_tf32);
LAB_LAUNCHER(gck_matmul_wgmma);
LAB_LAUNCHER(gck_matmul_wgmma_pair);
LAB_FACTS(gck_matmul_registers_facts);

/* ---- On the CPU -------------------------------------------------------------------------------------------------- */

static int naive(const gc_lab_run *run) {
    const float *a = run->buffer[0], *b = run->buffer[1];
    float *c = run->buffer[2];
    int64_t m = run->size[0], n = run->size[1], k = run->size[2];
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0.0f;
            for (int64_t q = 0; q < k; q++)
                sum += a[i * k + q] * b[q * n + j];
            c[i * n + j] = sum;
        }
    return 0;
}

static int64_t least(int64_t x, int64_t y) {
    return x < y ? x : y;
}

/* Rows from..to of C, tile by tile: the innermost loop runs along rows of B and C, which stay in the cache. */
static void tile_rows(const gc_lab_run *run, int64_t from, int64_t to) {
    enum { DEPTH = 64, WIDTH = 512 };
    const float *a = run->buffer[0], *b = run->buffer[1];
    float *c = run->buffer[2];
    int64_t n = run->size[1], k = run->size[2];
    for (int64_t i = from * n; i < to * n; i++)
        c[i] = 0.0f;
    for (int64_t q0 = 0; q0 < k; q0 += DEPTH)
        for (int64_t j0 = 0; j0 < n; j0 += WIDTH)
            for (int64_t i = from; i < to; i++)
                for (int64_t q = q0; q < least(q0 + DEPTH, k); q++) {
                    float factor = a[i * k + q];
                    for (int64_t j = j0; j < least(j0 + WIDTH, n); j++)
                        c[i * n + j] += factor * b[q * n + j];
                }
}

static int tiled(const gc_lab_run *run) {
    tile_rows(run, 0, run->size[0]);
    return 0;
}

static int all_cores(const gc_lab_run *run) {
    enum { ROWS = 16 };
#pragma omp parallel for schedule(dynamic)
    for (int64_t i = 0; i < run->size[0]; i += ROWS)
        tile_rows(run, i, least(i + ROWS, run->size[0]));
    return 0;
}

/* ---- Through cuBLAS ---------------------------------------------------------------------------------------------- */

static int cublas(const gc_lab_run *run) {
    return gc_lab_blas_multiply(run, (gc_lab_blas)run->parameter, run->buffer[0], run->buffer[1], run->buffer[2], 0);
}

static int cublas_halves(const gc_lab_run *run) {
    return gc_lab_blas_multiply(run, (gc_lab_blas)run->parameter, run->buffer[0], run->buffer[1], run->buffer[2], 1);
}

static int cublas_lt(const gc_lab_run *run) {
    return gc_lab_blas_lt(run, (gc_lab_blas)run->parameter, run->buffer[0], run->buffer[1], run->buffer[2]);
}

/* ---- The descriptor ---------------------------------------------------------------------------------------------- */

static int buffers(const int64_t *size, gc_lab_buffer *buffer) {
    buffer[0] = (gc_lab_buffer){.name = "a", .type = LAB_F32, .count = size[0] * size[2]};
    buffer[1] = (gc_lab_buffer){.name = "b", .type = LAB_F32, .count = size[2] * size[1]};
    buffer[2] = (gc_lab_buffer){.name = "c", .role = LAB_OUTPUT, .type = LAB_F32, .count = size[0] * size[1]};
    return 3;
}

static gc_lab_cost cost(const int64_t *size, const gc_lab_variant *variant) {
    double m = (double)size[0], n = (double)size[1], k = (double)size[2];
    double in = variant->input == LAB_F16 || variant->input == LAB_BF16 ? 2 : 4;
    return (gc_lab_cost){.bytes = in * (m * k + k * n) + 4 * m * n, .operations = 2 * m * n * k};
}

static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)buffer;
    int64_t n = run->size[1], k = run->size[2];
    const float *row = run->in[0] + index / n * k, *column = run->in[1] + index % n;
    double sum = 0;
    for (int64_t q = 0; q < k; q++)
        sum += (double)row[q] * (double)column[q * n];
    return sum;
}

static const gc_lab_size sizes[] = {
    {{1, 1, 1}, LAB_QUICK},
    {{33, 65, 17}, LAB_QUICK},
    {{129, 264, 200}, LAB_QUICK},
    {{256, 512, 128}, LAB_CHECK},
    {{300, 513, 511}, LAB_CHECK},
    {{640, 520, 1032}, LAB_CHECK},
    {{512, 512, 512}, LAB_CPU_TIME},
    {{1024, 1024, 1024}, LAB_SLOW_TIME},
    {{4096, 4096, 4096}, LAB_MIDDLE_TIME},
    {{8192, 8192, 8192}, LAB_GPU_TIME},
};

static const char hopper[] = "needs a GPU of compute capability 9.0, and a build for sm_90a";

static const gc_lab_variant variants[] = {
    {.name = "CPU naive",
     .changed = "three loops as the formula stands; the innermost one walks down a column of B",
     .launch = naive,
     .tolerance = 2e-5},
    {.name = "CPU tiled",
     .changed = "loops exchanged and cut: the innermost runs along rows, and what it needs stays in the cache",
     .launch = tiled,
     .tolerance = 2e-5},
    {.name = "CPU OpenMP",
     .changed = "the same on all cores, 16 rows at a time",
     .launch = all_cores,
     .tolerance = 2e-5},
    {.name = "one block",
     .changed = "a single block of 1024 threads: one multiprocessor of many",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME,
     .tolerance = 2e-5,
     .launch = LAB_ON_GPU(gck_matmul_one_block)},
    {.name = "one block, coarsened",
     .changed = "each thread makes 4 x 4 elements: 8 loads serve 16 multiply-adds instead of 2 serving one",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME,
     .tolerance = 2e-5,
     .launch = LAB_ON_GPU(gck_matmul_one_block_coarse)},
    {.name = "naive",
     .changed = "a thread an element, blocks of 16 x 16 over the whole of C",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME | LAB_MIDDLE_TIME,
     .tolerance = 2e-5,
     .course = "36.6 GFLOP/s, GTX 280",
     .launch = LAB_ON_GPU(gck_matmul_naive)},
    {.name = "coarsened blocks",
     .changed = "each thread makes 4 x 4 elements, neighbours 16 apart, all from global memory",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME | LAB_MIDDLE_TIME,
     .tolerance = 2e-5,
     .launch = LAB_ON_GPU(gck_matmul_coarse)},
    {.name = "tiled in shared memory",
     .changed = "a thread an element again, but tiles of A and B are read once a block, into shared memory",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME | LAB_MIDDLE_TIME,
     .tolerance = 2e-5,
     .course = "198 of 622 GFLOP/s, GTX 280",
     .launch = LAB_ON_GPU(gck_matmul_tiled)},
    {.name = "register-tiled",
     .changed = "tiles of 128 x 128, 8 x 16 elements a thread in registers, the next tiles copied while this one is "
                "multiplied",
     .where = LAB_GPU,
     .at = LAB_MIDDLE_TIME | LAB_GPU_TIME,
     .tolerance = 2e-5,
     .facts = LAB_ON_GPU(gck_matmul_registers_facts),
     .launch = LAB_ON_GPU(gck_matmul_registers)},
    {.name = "cuBLAS pedantic fp32",
     .changed = "NVIDIA's library, held to plain single precision",
     .where = LAB_GPU,
     .at = LAB_MIDDLE_TIME | LAB_GPU_TIME,
     .parameter = LAB_BLAS_PEDANTIC,
     .tolerance = 2e-5,
     .needs = "cuBLAS is not here",
     .flags = LAB_LIBRARY,
     .launch = cublas},
    {.name = "cuBLAS default fp32",
     .changed = "the library chooses the arithmetic within fp32",
     .where = LAB_GPU,
     .parameter = LAB_BLAS_DEFAULT,
     .tolerance = 2e-5,
     .needs = "cuBLAS is not here",
     .flags = LAB_LIBRARY,
     .launch = cublas},
    {.name = "cuBLASLt fp32, heuristic",
     .changed = "the library's lower layer: asked for its best algorithm, with workspace",
     .where = LAB_GPU,
     .parameter = LAB_BLAS_DEFAULT,
     .tolerance = 2e-5,
     .needs = "cuBLAS is not here",
     .flags = LAB_LIBRARY,
     .launch = cublas_lt},
    {.name = "two cuBLAS handles",
     .changed = "two streams, each with half of the rows: nothing to gain where one product fills the device",
     .where = LAB_GPU,
     .parameter = LAB_BLAS_DEFAULT,
     .flags = LAB_HOST_CLOCK | LAB_LIBRARY,
     .tolerance = 2e-5,
     .needs = "cuBLAS is not here",
     .launch = cublas_halves},
    {.name = "WMMA tf32",
     .changed = "tensor cores: a warp multiplies tiles of 16 x 16 x 8, inputs rounded to 11 significant bits",
     .where = LAB_GPU,
     .unit = LAB_TENSOR_TF32,
     .tolerance = 2e-3,
     .needs = "needs tensor cores with tf32, compute capability 8.0 or higher",
     .launch = LAB_ON_GPU(gck_matmul_wmma_tf32)},
    {.name = "cuBLAS tf32",
     .changed = "the library with the same rounding",
     .where = LAB_GPU,
     .unit = LAB_TENSOR_TF32,
     .parameter = LAB_BLAS_TF32,
     .tolerance = 2e-3,
     .needs = "cuBLAS is not here",
     .flags = LAB_LIBRARY,
     .launch = cublas},
    {.name = "WMMA bf16",
     .changed = "inputs of 16 bits with the range of floats and 8 significant bits; sums in floats",
     .where = LAB_GPU,
     .unit = LAB_TENSOR_16,
     .input = LAB_BF16,
     .tolerance = 2e-4,
     .needs = "needs tensor cores with bf16, compute capability 8.0 or higher",
     .launch = LAB_ON_GPU(gck_matmul_wmma_bf16)},
    {.name = "WMMA fp16",
     .changed = "inputs of 16 bits with 11 significant ones; tiles of 128 x 128, 64 x 64 a warp, four stages of copies",
     .where = LAB_GPU,
     .unit = LAB_TENSOR_16,
     .input = LAB_F16,
     .tolerance = 2e-4,
     .needs = "needs tensor cores and asynchronous copies, compute capability 8.0 or higher",
     .launch = LAB_ON_GPU(gck_matmul_wmma_f16)},
    {.name = "wgmma fp16",
     .changed =
         "Hopper's own instructions: four warps multiply out of shared memory, a fifth role only fetches, by the "
         "tensor memory accelerator",
     .where = LAB_GPU,
     .unit = LAB_TENSOR_16,
     .input = LAB_F16,
     .tolerance = 2e-4,
     .needs = hopper,
     .launch = LAB_ON_HOPPER(gck_matmul_wgmma)},
    {.name = "wgmma fp16, clusters of two",
     .changed = "two blocks side by side share the tiles of B: each fetches half, the copy goes to both",
     .where = LAB_GPU,
     .unit = LAB_TENSOR_16,
     .input = LAB_F16,
     .tolerance = 2e-4,
     .needs = hopper,
     .launch = LAB_ON_HOPPER(gck_matmul_wgmma_pair)},
    {.name = "cuBLAS fp16",
     .changed = "the library with the same inputs and sums",
     .where = LAB_GPU,
     .unit = LAB_TENSOR_16,
     .input = LAB_F16,
     .parameter = LAB_BLAS_F16,
     .tolerance = 2e-4,
     .needs = "cuBLAS is not here",
     .flags = LAB_LIBRARY,
     .launch = cublas},
};

static const gc_lab_effect effects[] = {
    {"one multiprocessor is slower than all", "one block", "naive", 8, 0},
    {"more elements a thread reuse what was loaded", "one block", "one block, coarsened", 1.2, 0},
    {"the same with all blocks", "naive", "coarsened blocks", 1.2, 0},
    {"shared memory saves global reads", "naive", "tiled in shared memory", 1.2, 0},
    {"registers save shared memory's", "tiled in shared memory", "register-tiled", 2, 0},
    {"register tiles reach nine tenths of cuBLAS", "cuBLAS pedantic fp32", "register-tiled", 0.9, 0},
    {"tensor cores beat fp32", "register-tiled", "WMMA fp16", 3, 0},
    {"WMMA reaches two fifths of cuBLAS", "cuBLAS fp16", "WMMA fp16", 0.4, 0},
    {"Hopper's own instructions reach four fifths of cuBLAS", "cuBLAS fp16", "wgmma fp16", 0.8, 0},
};

const gc_lab_module gc_lab_matmul = {
    .name = "matmul",
    .title = "The matrix product: reuse, from cache to tensor cores",
    .course = "Stahl 13-15; Khunjush; CUDA tutorial 7; Filipovic; Antolin",
    .idea =
        "Each element of C is a row of A times a column of B. Done as it stands, every multiply-add wants two numbers "
        "from memory, and the arithmetic waits. But each number of A is wanted N times, each of B M times: with enough "
        "reuse the memory hardly matters.\n\n"
        "A tile in shared memory is read from global memory once and used by a whole block. A tile in registers is "
        "read from shared memory once and used eight times. The next tiles are copied while this one is multiplied, so "
        "that nobody waits.\n\n"
        "Tensor cores do the same again in hardware: one instruction multiplies whole tiles of short numbers and sums "
        "in floats. WMMA shows them to a warp; Hopper's wgmma lets four warps multiply straight out of shared memory, "
        "which a copy engine fills.\n\n"
        "C is cut into tiles and the tiles are dealt to the multiprocessors. A size that is no multiple of the tile, "
        "or a number of tiles that is no multiple of the multiprocessors, leaves work half done or units idle: tile "
        "and wave quantisation, which gpulab sweep matmul size shows.",
    .see = "TFLOP/s from rung to rung, and the share of each variant's own ceiling: the fp32 ladder against the "
           "multiply-add loop, the tensor variants against cuBLAS. The error column shows what tf32 costs.",
    .next =
        "gpulab sweep matmul size draws the steps of quantisation. gpulab ptx matmul counts fma against ld.shared in "
        "each kernel. Then build attention from two products: gpulab show flash-attention.",
    .dimension = {"M", "N", "K"},
    .buffers = buffers,
    .cost = cost,
    .reference = reference,
    LAB_TABLES,
};
