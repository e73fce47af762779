/*
 * Module flash-attention: O = softmax(Q K' / sqrt(d)) V for each head, with d = 128. Q, K, V and O are heads x tokens x
 * d, row-major.
 *
 *      s[i][j] = q[i] . k[j] / sqrt(d)
 *      p[i][j] = exp(s[i][j]) / sum over j of exp(s[i][j])
 *      o[i] = sum over j of p[i][j] v[j]
 *
 * Computed step by step, the scores s are tokens x tokens numbers, which are written to memory and read again. The
 * online softmax keeps none of them. It has a running maximum m and a running sum l for each query, and adds a block of
 * keys by
 *
 *      m' = max(m, max s)      l' = l exp(m - m') + sum exp(s - m')      o' = o exp(m - m') + sum exp(s - m') v
 *
 * The result is o / l after the last block.
 *
 * Course: CUDA tutorial 9. Milakov and Gimelshein, Online normalizer calculation for softmax (2018); Dao et al.,
 * FlashAttention (2022).
 */
#include "gpulab/lab.h"

#include <math.h>

enum { D = 128 };

/* Most scores in memory at a time, 1 GiB: of several heads, or of one. */
static const int64_t scores_max = INT64_C(1) << 28;

/* A variant's parameter: whether the scores are written to memory. */
enum { SCORES_ON_CHIP = 0, SCORES_IN_MEMORY = 1 };

LAB_LAUNCHER(gck_attention_three_kernels);
LAB_LAUNCHER(gck_attention_online);
LAB_LAUNCHER(gck_attention_tensor);
LAB_LAUNCHER(gck_attention_wgmma);
LAB_FACTS(gck_attention_tensor_facts);

/* ---- On the CPU -------------------------------------------------------------------------------------------------- */

static float dot(const float *a, const float *b) {
    float sum = 0.0f;
    for (int e = 0; e < D; e++)
        sum += a[e] * b[e];
    return sum;
}

/* Computes the output of one query with the online softmax, one key at a time. */
static void online_row(const float *q, const float *k, const float *v, int64_t tokens, float *o) {
    float maximum = -INFINITY, sum = 0.0f;
    for (int e = 0; e < D; e++)
        o[e] = 0.0f;
    for (int64_t j = 0; j < tokens; j++) {
        float s = dot(q, k + j * D) * 0.08838834764831845f; /* 1 / sqrt(128) */
        if (s > maximum) {
            float rescale = expf(maximum - s);
            sum *= rescale;
            for (int e = 0; e < D; e++)
                o[e] *= rescale;
            maximum = s;
        }
        float p = expf(s - maximum);
        sum += p;
        for (int e = 0; e < D; e++)
            o[e] += p * v[j * D + e];
    }
    for (int e = 0; e < D; e++)
        o[e] /= sum;
}

static void compute_row(const gc_lab_run *run, int64_t row) {
    int64_t tokens = run->size[0], head = row / tokens * tokens * D;
    const float *q = run->buffer[0], *k = run->buffer[1], *v = run->buffer[2];
    online_row(q + row * D, k + head, v + head, tokens, (float *)run->buffer[3] + row * D);
}

static int sequential(const gc_lab_run *run) {
    for (int64_t row = 0; row < run->size[0] * run->size[1]; row++)
        compute_row(run, row);
    return 0;
}

static int all_cores(const gc_lab_run *run) {
#pragma omp parallel for schedule(dynamic, 16)
    for (int64_t row = 0; row < run->size[0] * run->size[1]; row++)
        compute_row(run, row);
    return 0;
}

/* ---- The descriptor ---------------------------------------------------------------------------------------------- */

static int buffers(const int64_t *size, gc_lab_buffer *buffer) {
    const int64_t count = size[0] * size[1] * D, head = size[0] * size[0], fit = scores_max / head;
    const int64_t heads = fit < 1 ? 1 : fit < size[1] ? fit : size[1];
    buffer[0] = (gc_lab_buffer){.name = "q", .type = LAB_F32, .count = count};
    buffer[1] = (gc_lab_buffer){.name = "k", .type = LAB_F32, .count = count};
    buffer[2] = (gc_lab_buffer){.name = "v", .type = LAB_F32, .count = count};
    buffer[3] = (gc_lab_buffer){.name = "o", .role = LAB_OUTPUT, .type = LAB_F32, .count = count};
    buffer[4] = (gc_lab_buffer){.name = "scores", .role = LAB_SCRATCH, .type = LAB_F32, .count = heads * head};
    return 5;
}

static gc_lab_cost cost(const int64_t *size, const gc_lab_variant *variant) {
    double n = (double)size[0], heads = (double)size[1], in = variant->input == LAB_F16 ? 2 : 4;
    double scores = variant->parameter == SCORES_IN_MEMORY ? 4 * 4 * n * n : 0; /* written, read, written, read */
    return (gc_lab_cost){.bytes = heads * (n * D * (3 * in + 4) + scores), .operations = heads * 4 * n * n * D};
}

static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)buffer;
    int64_t tokens = run->size[0], row = index / D, head = row / tokens * tokens * D;
    const float *q = run->in[0] + row * D, *k = run->in[1] + head, *v = run->in[2] + head + index % D;
    double sum = 0, out = 0; /* inputs are within -1 .. 1, so no score exceeds sqrt(128), and double needs no maximum */
    for (int64_t j = 0; j < tokens; j++) {
        double s = 0;
        for (int e = 0; e < D; e++)
            s += (double)q[e] * (double)k[j * D + e];
        double p = exp(s / sqrt(D));
        sum += p;
        out += p * (double)v[j * D];
    }
    return out / sum;
}

static const gc_lab_size sizes[] = {
    {{1, 1}, LAB_QUICK},      {{17, 2}, LAB_QUICK},      {{130, 2}, LAB_CHECK},      {{257, 1}, LAB_CHECK},
    {{512, 2}, LAB_CPU_TIME}, {{512, 16}, LAB_GPU_TIME}, {{2048, 16}, LAB_GPU_TIME}, {{8192, 16}, LAB_GPU_TIME},
};

static const gc_lab_variant variants[] = {
    {.name = "CPU", .changed = "one core, online softmax, one key at a time", LAB_RUNS(sequential), .tolerance = 1e-5},
    {.name = "CPU OpenMP", .changed = "all cores, each with one row at a time", LAB_RUNS(all_cores), .tolerance = 1e-5},
    {.name = "three kernels",
     .changed =
         "scores, softmax and product: three kernels, with tokens x tokens scores for each head in memory between "
         "them; "
         "a block keeps 64 queries and processes 64 keys at a time, a thread multiplies tiles of 4 x 4 and 4 x 8",
     .limit =
         "4 N^2 d operations a head: 0.55 million million for 8192 tokens and 16 heads, 8.6 ms at the rate of the "
         "multiply-add loop. The scores are written, read, written and read: 16 N^2 bytes, 17.2 GB, 4.1 ms at the "
         "copy's rate, which come on top because the kernels run one after the other. For 512 tokens the scores of "
         "all heads are 16 MB, which fit into the L2 cache: compare this size. Next: do not write them.",
     .where = LAB_GPU,
     .parameter = SCORES_IN_MEMORY,
     .tolerance = 2e-5,
     LAB_RUNS_ON_GPU(gck_attention_three_kernels)},
    {.name = "online softmax, fp32",
     .changed = "one kernel with the same tiles; the scores stay on the chip",
     .limit =
         "The tiles are the same; the 17.2 GB of scores are neither written nor read. This saves less than their 4.1 "
         "ms, because the softmax and its rescaling now run between the products. Reads of shared memory and the "
         "exponential keep both below the "
         "multiply-add loop. Next: faster products.",
     .where = LAB_GPU,
     .tolerance = 2e-5,
     LAB_RUNS_ON_GPU(gck_attention_online)},
    {.name = "tensor cores",
     .changed =
         "both products with mma, from 16-bit inputs to floats; the registers with the result of the first product "
         "are the input of the second",
     .limit =
         "The products take less than a tenth of the time. Now the softmax, which the tensor cores do not do, is a "
         "large part: the warp waits for the product, then the tensor cores wait for its softmax. Next: both at the "
         "same time.",
     .where = LAB_GPU,
     .unit = LAB_TENSOR_16,
     .input = LAB_F16,
     .tolerance = 2e-3,
     .needs = "needs tensor cores and asynchronous copies, compute capability 8.0 or higher",
     .facts = LAB_ON_GPU(gck_attention_tensor_facts),
     LAB_RUNS_ON_GPU(gck_attention_tensor)},
    {.name = "wgmma",
     .changed =
         "Hopper's own instructions: one thread loads tiles, eight warps multiply from shared memory; the softmax of "
         "the next block of keys runs while the tensor cores multiply the weights of the present block with its values",
     .limit =
         "The products are asynchronous: the softmax of one block of keys overlaps with the products of another. What "
         "is left to the limit is the softmax that does not fit behind them.",
     .where = LAB_GPU,
     .unit = LAB_TENSOR_16,
     .input = LAB_F16,
     .tolerance = 2e-3,
     .needs = "needs a GPU of compute capability 9.0, and a build for sm_90a",
     LAB_RUNS_ON_HOPPER(gck_attention_wgmma)},
};

static const gc_lab_effect effects[] = {
    {"scores that stay on the chip save time, with the same tiles", "three kernels", "online softmax, fp32", 1.0, 0},
    {"tensor cores beat fp32", "online softmax, fp32", "tensor cores", 3, 0},
    {"tensor cores reach three tenths of cuBLAS's fp16 rate", NULL, "tensor cores", 0.3, 0},
    {"Hopper's own instructions beat mma", "tensor cores", "wgmma", 1.0, 0},
};

const gc_lab_module gc_lab_flash_attention = {
    .name = "flash-attention",
    .title = "Attention without a matrix of scores",
    .course = "CUDA tutorial 9",
    .idea =
        "Attention compares every token with every other token: tokens x tokens scores, a softmax along each row, and "
        "a weighted sum of values. Three kernels write the scores to memory, read and normalise them, and read them "
        "again. For 8192 tokens the scores of a head are 256 MiB, which are written twice and read twice, and this "
        "memory grows with the square of the number of tokens. The three kernels of this module multiply in the same "
        "tiles as the kernel that follows, so that the step between them shows what the scores in memory cost, and "
        "not what larger tiles save; gpulab show matmul shows that.\n\n"
        "The softmax seems to need a whole row before its first result, for the maximum and the sum. It does not: "
        "both can be updated step by step, and when a larger score arrives, the sums so far are multiplied by exp(old "
        "maximum - new maximum). So a block of queries stays on the chip while blocks of keys and values are loaded "
        "one after the other, and only the result is written: memory grows in proportion to the number of tokens.\n\n"
        "Two matrix products with a little arithmetic between them remain, which is work for tensor cores. In a warp, "
        "the registers with the result of the first product have the layout that the second product needs for its "
        "input, so that the scores do not even pass through shared memory.",
    .see =
        "Compare the three kernels and the online softmax: they have the same tiles, so the difference is what "
        "fusing alone brings. It grows with the number of tokens. Divide the 17 GB of scores for 8192 tokens by the "
        "copy's rate: the two products take the rest of both. What the online softmax saves first is memory, which "
        "no longer grows with the square of the number of tokens. For 512 tokens the scores of all heads are 16 MB "
        "and fit into the L2 cache.\n\nWith tensor cores the products are so fast that scores in memory would "
        "decide: their way through memory would take longer than either of the last two kernels takes for all of its "
        "work.\n\nThe limit of the last two kernels is cuBLAS's fp16 rate. wgmma comes much closer to it than mma, "
        "because the softmax runs while the tensor cores multiply.\n\ngpulab run flash-attention --json contains the "
        "relative error against double precision as rms: with 16-bit weights it is 2e-4, about a hundred times that "
        "of fp32.",
    .next =
        "Compare 2048 and 8192 tokens: the time grows with the square of the number of tokens, but the memory of the "
        "online kernels does not. gpulab show matmul explains the products.",
    .dimension = {"tokens", "heads"},
    .buffers = buffers,
    .cost = cost,
    .reference = reference,
    LAB_TABLES,
};
