/*
 * Attention: O = softmax(Q K' / sqrt(d)) V for each head, with d = 128. Q, K, V and O are heads x tokens x d,
 * row-major.
 *
 *      s[i][j] = q[i] . k[j] / sqrt(d)      p[i][j] = exp(s[i][j]) / sum over j of exp(s[i][j])      o[i] = sum of
 * p[i][j] v[j]
 *
 * Written as it stands the scores s are tokens x tokens numbers that go out to memory and come back. The online softmax
 * needs none of them kept: with a running maximum m and a running sum l, a block of keys is folded in by
 *
 *      m' = max(m, max s)      l' = l exp(m - m') + sum exp(s - m')      o' = o exp(m - m') + sum exp(s - m') v
 *
 * and o / l at the end is the result.
 *
 * Course: CUDA tutorial 9. Milakov and Gimelshein, Online normalizer calculation for softmax (2018); Dao et al.,
 * FlashAttention (2022).
 */
#include "gpulab/lab.h"

#include <math.h>

enum { D = 128 };

/* A variant's parameter: whether the scores go through memory. */
enum { KEPT_ON_CHIP = 0, THROUGH_MEMORY = 1 };

LAB_LAUNCHER(gck_attention_three);
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

/* One row of a head: keys are folded in one by one. */
static void online_row(const float *q, const float *k, const float *v, int64_t tokens, float *o) {
    float most = -INFINITY, sum = 0.0f;
    for (int e = 0; e < D; e++)
        o[e] = 0.0f;
    for (int64_t j = 0; j < tokens; j++) {
        float s = dot(q, k + j * D) * 0.08838834764831845f; /* 1 / sqrt(128) */
        if (s > most) {
            float fade = expf(most - s);
            sum *= fade;
            for (int e = 0; e < D; e++)
                o[e] *= fade;
            most = s;
        }
        float p = expf(s - most);
        sum += p;
        for (int e = 0; e < D; e++)
            o[e] += p * v[j * D + e];
    }
    for (int e = 0; e < D; e++)
        o[e] /= sum;
}

static void rows(const gc_lab_run *run, int64_t row) {
    int64_t tokens = run->size[0], head = row / tokens * tokens * D;
    const float *q = run->buffer[0], *k = run->buffer[1], *v = run->buffer[2];
    online_row(q + row * D, k + head, v + head, tokens, (float *)run->buffer[3] + row * D);
}

static int sequential(const gc_lab_run *run) {
    for (int64_t row = 0; row < run->size[0] * run->size[1]; row++)
        rows(run, row);
    return 0;
}

static int all_cores(const gc_lab_run *run) {
#pragma omp parallel for schedule(dynamic, 16)
    for (int64_t row = 0; row < run->size[0] * run->size[1]; row++)
        rows(run, row);
    return 0;
}

/* ---- The descriptor ---------------------------------------------------------------------------------------------- */

static int buffers(const int64_t *size, gc_lab_buffer *buffer) {
    int64_t count = size[0] * size[1] * D;
    buffer[0] = (gc_lab_buffer){.name = "q", .type = LAB_F32, .count = count};
    buffer[1] = (gc_lab_buffer){.name = "k", .type = LAB_F32, .count = count};
    buffer[2] = (gc_lab_buffer){.name = "v", .type = LAB_F32, .count = count};
    buffer[3] = (gc_lab_buffer){.name = "o", .role = LAB_OUTPUT, .type = LAB_F32, .count = count};
    buffer[4] = (gc_lab_buffer){.name = "scores", .role = LAB_SCRATCH, .type = LAB_F32, .count = size[0] * size[0]};
    return 5;
}

static gc_lab_cost cost(const int64_t *size, const gc_lab_variant *variant) {
    double n = (double)size[0], heads = (double)size[1], in = variant->input == LAB_F16 ? 2 : 4;
    double scores = variant->parameter == THROUGH_MEMORY ? 4 * 4 * n * n : 0; /* out, in, out, in */
    return (gc_lab_cost){.bytes = heads * (n * D * (3 * in + 4) + scores), .operations = heads * 4 * n * n * D};
}

static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)buffer;
    int64_t tokens = run->size[0], row = index / D, head = row / tokens * tokens * D;
    const float *q = run->in[0] + row * D, *k = run->in[1] + head, *v = run->in[2] + head + index % D;
    double sum = 0, out = 0; /* inputs within 1: no score exceeds sqrt(128), so no maximum is needed in double */
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
    {{1, 1}, LAB_QUICK},      {{17, 2}, LAB_QUICK},       {{130, 2}, LAB_CHECK},      {{257, 1}, LAB_CHECK},
    {{512, 2}, LAB_CPU_TIME}, {{2048, 16}, LAB_GPU_TIME}, {{8192, 16}, LAB_GPU_TIME},
};

static const gc_lab_variant variants[] = {
    {.name = "CPU", .changed = "one core, online softmax, a key at a time", .launch = sequential, .tolerance = 1e-5},
    {.name = "CPU OpenMP", .changed = "all cores, a row at a time", .launch = all_cores, .tolerance = 1e-5},
    {.name = "three kernels",
     .changed = "scores, softmax, product: three kernels a head, and tokens x tokens scores in memory between them",
     .where = LAB_GPU,
     .parameter = THROUGH_MEMORY,
     .tolerance = 2e-5,
     .launch = LAB_ON_GPU(gck_attention_three)},
    {.name = "online softmax, fp32",
     .changed = "one kernel: a block keeps 64 queries and folds in 64 keys at a time; no score leaves the chip",
     .where = LAB_GPU,
     .tolerance = 2e-5,
     .launch = LAB_ON_GPU(gck_attention_online)},
    {.name = "tensor cores",
     .changed =
         "both products by mma, 16 bits in and floats out; the scores of the first are, in the same registers, the "
         "input of the second",
     .where = LAB_GPU,
     .unit = LAB_TENSOR_16,
     .input = LAB_F16,
     .tolerance = 2e-3,
     .needs = "needs tensor cores and asynchronous copies, compute capability 8.0 or higher",
     .facts = LAB_ON_GPU(gck_attention_tensor_facts),
     .launch = LAB_ON_GPU(gck_attention_tensor)},
    {.name = "wgmma",
     .changed = "Hopper's own instructions: one warp fetches, eight multiply out of shared memory; the softmax of one "
                "block of keys runs while the tensor cores multiply the one before",
     .where = LAB_GPU,
     .unit = LAB_TENSOR_16,
     .input = LAB_F16,
     .tolerance = 2e-3,
     .needs = "needs a GPU of compute capability 9.0, and a build for sm_90a",
     .launch = LAB_ON_HOPPER(gck_attention_wgmma)},
};

static const gc_lab_effect effects[] = {
    {"scores kept on the chip save time", "three kernels", "online softmax, fp32", 1.2, 0},
    {"tensor cores beat fp32", "online softmax, fp32", "tensor cores", 3, 0},
    {"tensor cores reach three tenths of cuBLAS's fp16 rate", NULL, "tensor cores", 0.3, 0},
    {"Hopper's instructions beat mma", "tensor cores", "wgmma", 1.0, 0},
};

const gc_lab_module gc_lab_flash_attention = {
    .name = "flash-attention",
    .title = "Attention without a matrix of scores",
    .course = "CUDA tutorial 9",
    .idea =
        "Attention compares every token with every other: tokens x tokens scores, a softmax along each row, and a "
        "weighted sum of values. Three kernels write the scores to memory, read and normalise them, and read them "
        "again: for 8192 tokens 256 MiB a head, out and in twice, and memory grows with the square of the length.\n\n"
        "The softmax seems to need a whole row before its first result, for the maximum and the sum. It does not: both "
        "can run along, and what was summed under an old maximum is multiplied by exp(old - new) when a larger score "
        "comes. So a block of queries stays on the chip, blocks of keys and values pass by, and nothing else is ever "
        "written: memory grows with the length alone.\n\n"
        "What is left are two matrix products with a little arithmetic between them, and that is what tensor cores are "
        "for. The accumulators of the first product lie in the registers of a warp just as the second wants its input, "
        "so the scores never even reach shared memory.",
    .see = "Time and TFLOP/s of the four kernels; GB/s of the three kernels, which is memory traffic that the others "
           "do not have. The error against double precision: 16-bit scores cost three digits.",
    .next =
        "Run at 2048 and at 8192 tokens: the time grows with the square, the memory of the online kernels does not. "
        "gpulab show matmul explains the products.",
    .dimension = {"tokens", "heads"},
    .buffers = buffers,
    .cost = cost,
    .reference = reference,
    LAB_TABLES,
};
