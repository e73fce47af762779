/*
 * Module matmul: the matrix product C = A B, with A of M x K, B of K x N, all row-major.
 *
 *      c[m][n] = sum over k of a[m][k] b[k][n]
 *
 * 2 M N K operations on M K + K N + M N numbers: this computation has enough arithmetic to keep a GPU busy, provided
 * that each number loaded from memory is used often enough. The variants increase this reuse step by step, from the
 * cache through shared memory to registers, and then use units that multiply whole tiles.
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

static int64_t min64(int64_t x, int64_t y) {
    return x < y ? x : y;
}

/* Computes the rows first to end - 1 of C, tile by tile. The innermost loop runs along rows of B and C, which stay in
 * the cache. */
static void multiply_rows(const gc_lab_run *run, int64_t first, int64_t end) {
    enum { DEPTH = 64, WIDTH = 512 };
    const float *a = run->buffer[0], *b = run->buffer[1];
    float *c = run->buffer[2];
    int64_t n = run->size[1], k = run->size[2];
    for (int64_t i = first * n; i < end * n; i++)
        c[i] = 0.0f;
    for (int64_t q0 = 0; q0 < k; q0 += DEPTH)
        for (int64_t j0 = 0; j0 < n; j0 += WIDTH)
            for (int64_t i = first; i < end; i++)
                for (int64_t q = q0; q < min64(q0 + DEPTH, k); q++) {
                    float factor = a[i * k + q];
                    for (int64_t j = j0; j < min64(j0 + WIDTH, n); j++)
                        c[i * n + j] += factor * b[q * n + j];
                }
}

static int tiled(const gc_lab_run *run) {
    multiply_rows(run, 0, run->size[0]);
    return 0;
}

static int all_cores(const gc_lab_run *run) {
    enum { ROWS = 16 };
#pragma omp parallel for schedule(dynamic)
    for (int64_t i = 0; i < run->size[0]; i += ROWS)
        multiply_rows(run, i, min64(i + ROWS, run->size[0]));
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

static const char needs_hopper[] = "needs a GPU of compute capability 9.0, and a build for sm_90a";

static const gc_lab_variant variants[] = {
    {.name = "CPU naive",
     .changed = "three loops as in the formula; the innermost one goes down a column of B",
     LAB_RUNS(naive),
     .tolerance = 2e-5},
    {.name = "CPU tiled",
     .changed = "the loops exchanged and tiled: the innermost loop runs along rows, and its data stays in the cache",
     LAB_RUNS(tiled),
     .tolerance = 2e-5},
    {.name = "CPU OpenMP",
     .changed = "the same on all cores, 16 rows at a time",
     LAB_RUNS(all_cores),
     .tolerance = 2e-5},
    {.name = "one block",
     .changed = "a single block of 1024 threads, which uses one multiprocessor",
     .limit =
         "10^9 multiply-adds on one multiprocessor with 128 units would take 4.2 ms at 1.98 GHz. Each of them needs "
         "two loads, and the 1024 threads of one block cannot hide that the columns of b come from the L2 cache. "
         "Next: more work for each load.",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME,
     .tolerance = 2e-5,
     LAB_RUNS_ON_GPU(gck_matmul_one_block)},
    {.name = "one block, coarsened",
     .changed = "each thread computes 4 x 4 elements: 8 loads serve 16 multiply-adds, instead of 2 loads for one",
     .limit = "A value that a thread has loaded serves several products: a third of the time. Next: the other "
              "multiprocessors.",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME,
     .tolerance = 2e-5,
     LAB_RUNS_ON_GPU(gck_matmul_one_block_coarse)},
    {.name = "naive",
     .changed = "one thread per element, blocks of 16 x 16 threads over the whole of C",
     .limit =
         "4096^3 multiply-adds are 16.3 million warps on each of 132 multiprocessors. Two requests each take 32.5 "
         "million cycles of the L1 cache, 16 ms. The rest is the wait for the L2 cache: a block of 16 x 16 reads 32 "
         "rows and columns for 256 results. Next: more results for each value that is read.",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME | LAB_MIDDLE_TIME,
     .tolerance = 2e-5,
     .course = "36.6 GFLOP/s, GTX 280",
     LAB_RUNS_ON_GPU(gck_matmul_naive)},
    {.name = "coarsened blocks",
     .changed = "each thread computes 4 x 4 elements that are 16 apart, with all loads from global memory",
     .limit =
         "4 x 4 results a thread need 8 loads for 16 multiply-adds: half a request each, 4 ms of the L1 cache. A "
         "block of 64 x 64 results also asks the L2 cache for a quarter of the bytes. Next: shared memory, so that "
         "each value is asked for once.",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME | LAB_MIDDLE_TIME,
     .tolerance = 2e-5,
     LAB_RUNS_ON_GPU(gck_matmul_coarse)},
    {.name = "tiled in shared memory",
     .changed = "one thread per element again, but a block loads each tile of A and B once, into shared memory",
     .limit =
         "One result a thread again, and two reads of shared memory for each multiply-add: 32.5 million cycles, 16.4 "
         "ms, nearly all of its time for 4096 x 4096 x 4096. The tile has removed the traffic to the L2 cache and "
         "left that within the multiprocessor. Next: both, the tile and several results a thread.",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME | LAB_MIDDLE_TIME,
     .tolerance = 2e-5,
     .course = "198 of 622 GFLOP/s, GTX 280",
     LAB_RUNS_ON_GPU(gck_matmul_tiled)},
    {.name = "register-tiled",
     .changed = "tiles of 128 x 128 with 8 x 16 elements per thread in registers; the next tiles are copied while the "
                "present ones are multiplied",
     .limit =
         "A thread has 8 x 16 results: 6 reads of 16 bytes for 128 multiply-adds, while the next tile is copied in "
         "the background. 207 registers leave 8 warps on a multiprocessor, two for each scheduler. It is within a few "
         "per cent of cuBLAS; the multiply-add loop has no loads, no barriers and no ends of tiles.",
     .where = LAB_GPU,
     .at = LAB_MIDDLE_TIME | LAB_GPU_TIME,
     .tolerance = 2e-5,
     .facts = LAB_ON_GPU(gck_matmul_registers_facts),
     LAB_RUNS_ON_GPU(gck_matmul_registers)},
    {.name = "cuBLAS pedantic fp32",
     .changed = "NVIDIA's library, restricted to plain single precision",
     .where = LAB_GPU,
     .at = LAB_MIDDLE_TIME | LAB_GPU_TIME,
     .parameter = LAB_BLAS_PEDANTIC,
     .tolerance = 2e-5,
     .needs = "needs cuBLAS, which was not found",
     .flags = LAB_LIBRARY,
     LAB_RUNS(cublas)},
    {.name = "cuBLAS default fp32",
     .changed = "the library's default arithmetic for fp32",
     .where = LAB_GPU,
     .parameter = LAB_BLAS_DEFAULT,
     .tolerance = 2e-5,
     .needs = "needs cuBLAS, which was not found",
     .flags = LAB_LIBRARY,
     LAB_RUNS(cublas)},
    {.name = "cuBLASLt fp32, heuristic",
     .changed = "the library's lower layer with a workspace, and the algorithm that its heuristic proposes",
     .where = LAB_GPU,
     .parameter = LAB_BLAS_DEFAULT,
     .tolerance = 2e-5,
     .needs = "needs cuBLAS, which was not found",
     .flags = LAB_LIBRARY,
     LAB_RUNS(cublas_lt)},
    {.name = "two cuBLAS handles",
     .changed = "two streams with half of the rows each: no gain where one product already fills the device",
     .where = LAB_GPU,
     .parameter = LAB_BLAS_DEFAULT,
     .flags = LAB_HOST_CLOCK | LAB_LIBRARY,
     .tolerance = 2e-5,
     .needs = "needs cuBLAS, which was not found",
     LAB_RUNS(cublas_halves)},
    {.name = "WMMA tf32",
     .changed = "tensor cores: a warp multiplies tiles of 16 x 16 x 8, with inputs rounded to 11 significant bits",
     .limit = "A quarter of cuBLAS's rate. An instruction of the tensor cores does 4096 operations, so that the other "
              "instructions take most of the time: for each product a warp loads two fragments from shared memory, 4 "
              "bytes an "
              "element, and rounds each element to tf32. Next: elements of two bytes.",
     .where = LAB_GPU,
     .unit = LAB_TENSOR_TF32,
     .tolerance = 2e-3,
     .needs = "needs tensor cores with tf32, compute capability 8.0 or higher",
     LAB_RUNS_ON_GPU(gck_matmul_wmma_tf32)},
    {.name = "cuBLAS tf32",
     .changed = "the library with the same rounding",
     .where = LAB_GPU,
     .unit = LAB_TENSOR_TF32,
     .parameter = LAB_BLAS_TF32,
     .tolerance = 2e-3,
     .needs = "needs cuBLAS, which was not found",
     .flags = LAB_LIBRARY,
     LAB_RUNS(cublas)},
    {.name = "WMMA bf16",
     .changed = "16-bit inputs with the range of float and 8 significant bits; the sums are floats",
     .limit =
         "Half the bytes an element and twice the operations an instruction: less than half of the time for 8192 x "
         "8192 x 8192. At a third of cuBLAS's rate the fragments' way through shared memory still decides. Next: the "
         "other format of 16 bits.",
     .where = LAB_GPU,
     .unit = LAB_TENSOR_16,
     .input = LAB_BF16,
     .tolerance = 2e-4,
     .needs = "needs tensor cores with bf16, compute capability 8.0 or higher",
     LAB_RUNS_ON_GPU(gck_matmul_wmma_bf16)},
    {.name = "WMMA fp16",
     .changed =
         "16-bit inputs with 11 significant bits; tiles of 128 x 128 per block and 64 x 64 per warp, four stages of "
         "asynchronous copies",
     .limit =
         "Tensor cores do the arithmetic, so everything else decides: each fragment is loaded from shared memory by "
         "instructions of the warp, in the same order as it is used. Next: let the tensor cores read shared memory "
         "themselves.",
     .where = LAB_GPU,
     .unit = LAB_TENSOR_16,
     .input = LAB_F16,
     .tolerance = 2e-4,
     .needs = "needs tensor cores and asynchronous copies, compute capability 8.0 or higher",
     LAB_RUNS_ON_GPU(gck_matmul_wmma_f16)},
    {.name = "wgmma fp16",
     .changed =
         "Hopper's own instructions: two groups of four warps multiply operands in shared memory, which one thread of "
         "a third group loads with the tensor memory accelerator",
     .limit = "The operands come from shared memory without passing through registers, and copies are made by the TMA "
              "unit: no thread computes addresses. The ceiling is cuBLAS's own rate, so about 100 % means as fast as "
              "cuBLAS.",
     .where = LAB_GPU,
     .unit = LAB_TENSOR_16,
     .input = LAB_F16,
     .tolerance = 2e-4,
     .needs = needs_hopper,
     LAB_RUNS_ON_HOPPER(gck_matmul_wgmma)},
    {.name = "wgmma fp16, clusters of two",
     .changed = "two neighbouring blocks share the tiles of B: each block loads half, and the copy goes to both",
     .limit =
         "A stage has 16 KB of A and 32 KB of B; sharing B takes a third off the 12.9 GB that the L2 cache delivers. "
         "And yet it takes longer: the L2 cache was not the limit, for the kernel before was as fast as cuBLAS. A "
         "stage is free again only when both blocks have used it, so that each waits for the slower one at every "
         "stage. Sharing pays where the bytes are the limit.",
     .where = LAB_GPU,
     .unit = LAB_TENSOR_16,
     .input = LAB_F16,
     .tolerance = 2e-4,
     .needs = needs_hopper,
     LAB_RUNS_ON_HOPPER(gck_matmul_wgmma_pair)},
    {.name = "cuBLAS fp16",
     .changed = "the library with the same types of inputs and sums",
     .where = LAB_GPU,
     .unit = LAB_TENSOR_16,
     .input = LAB_F16,
     .parameter = LAB_BLAS_F16,
     .tolerance = 2e-4,
     .needs = "needs cuBLAS, which was not found",
     .flags = LAB_LIBRARY,
     LAB_RUNS(cublas)},
};

static const gc_lab_effect effects[] = {
    {"one multiprocessor is slower than all", "one block", "naive", 8, 0},
    {"more elements per thread reuse the loaded values", "one block", "one block, coarsened", 1.2, 0},
    {"the same with all blocks", "naive", "coarsened blocks", 1.2, 0},
    {"shared memory saves global loads", "naive", "tiled in shared memory", 1.2, 0},
    {"registers save loads from shared memory", "tiled in shared memory", "register-tiled", 2, 0},
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
        "Each element of C is a row of A times a column of B. Written as in the formula, every multiply-add needs two "
        "numbers from memory, and the arithmetic waits for them. But each number of A is used N times and each number "
        "of B M times: with enough reuse, memory bandwidth no longer limits the speed.\n\n"
        "A tile in shared memory is loaded from global memory once and used by a whole block. In the register-tiled "
        "kernel, a thread loads 8 numbers of A and 16 of B from shared memory and uses them for 128 multiply-adds. "
        "The next tiles are copied while the present ones are multiplied, so that the arithmetic does not wait.\n\n"
        "Tensor cores apply the same idea in hardware: one instruction multiplies whole tiles of short numbers and "
        "sums in floats. WMMA makes them available to a warp. Hopper's wgmma lets a group of four warps multiply "
        "operands directly from shared memory, which a copy engine fills.\n\n"
        "C is divided into tiles, and the tiles are assigned to the multiprocessors. A size that is not a multiple of "
        "the tile leaves part of a tile unused, and a number of tiles that is not a multiple of what the device holds "
        "at a time leaves multiprocessors idle. This is tile and wave quantisation, which gpulab sweep matmul size "
        "shows.",
    .see =
        "Compare the TFLOP/s of the variants, and the share of each variant's ceiling: the multiply-add loop for "
        "fp32, cuBLAS's rate for tensor cores. For 4096 x 4096 x 4096 the step to register tiles is the largest, and "
        "comes close to cuBLAS. For 8192 x 8192 x 8192 compare WMMA with tf32, bf16 and fp16; wgmma is about as fast "
        "as cuBLAS. Clusters of two are slower, probably because the two blocks wait for each other in every "
        "stage.\n\ngpulab run matmul --json contains the relative errors as rms: at this size 3e-4 with tf32, "
        "against 2e-6 in plain fp32. The 16-bit variants get inputs that are rounded already, so that their errors "
        "of 1e-5 do not include this rounding.",
    .next = "gpulab sweep matmul size draws the steps of quantisation: the register-tiled kernel falls beyond 2048, "
            "where 256 tiles fit on an H100 or H200 at a time. gpulab ptx matmul counts fma against ld.shared in each "
            "kernel. gpulab show flash-attention builds attention from two products.",
    .dimension = {"M", "N", "K"},
    .buffers = buffers,
    .cost = cost,
    .reference = reference,
    LAB_TABLES,
};
