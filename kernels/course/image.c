/*
 * Module image: two filters on an image, with two-dimensional blocks of threads. The image is stored row by row: pixel
 * (x, y) is at index y width + x.
 *
 *      fade:   out = 0.5 in                                          one pixel read for one pixel written
 *      blur:   out = (1 2 1, 2 4 2, 1 2 1) / 16 around each pixel    nine pixels read, shared with the neighbours
 *
 * Outside the image, the nearest pixel of the border is used. Course: Khunjush.
 */
#include "gpulab/lab.h"

enum { BLUR = 0, FADE = 1 };

LAB_LAUNCHER(gck_image_fade);
LAB_LAUNCHER(gck_image_blur);
LAB_LAUNCHER(gck_image_blur_tile);
LAB_LAUNCHER(gck_image_blur_registers);

static int64_t clamp_index(int64_t i, int64_t n) {
    return i < 0 ? 0 : i < n ? i : n - 1;
}

static void blur_row(const gc_lab_run *run, int64_t y) {
    const float *in = run->buffer[0];
    float *out = run->buffer[1];
    int64_t width = run->size[0], height = run->size[1];
    const float *above = in + clamp_index(y - 1, height) * width, *middle = in + y * width,
                *below = in + clamp_index(y + 1, height) * width;
    for (int64_t x = 0; x < width; x++) {
        int64_t left = clamp_index(x - 1, width), right = clamp_index(x + 1, width);
        float sum = above[left] + 2 * above[x] + above[right] + 2 * (middle[left] + 2 * middle[x] + middle[right]) +
                    below[left] + 2 * below[x] + below[right];
        out[y * width + x] = sum * 0.0625f;
    }
}

static int sequential(const gc_lab_run *run) {
    for (int64_t y = 0; y < run->size[1]; y++)
        blur_row(run, y);
    return 0;
}

static int all_cores(const gc_lab_run *run) {
#pragma omp parallel for
    for (int64_t y = 0; y < run->size[1]; y++)
        blur_row(run, y);
    return 0;
}

static int buffers(const int64_t *size, gc_lab_buffer *buffer) {
    buffer[0] = (gc_lab_buffer){.name = "in", .type = LAB_F32, .count = size[0] * size[1], .low = 0, .high = 1};
    buffer[1] = (gc_lab_buffer){.name = "out", .role = LAB_OUTPUT, .type = LAB_F32, .count = size[0] * size[1]};
    return 2;
}

static gc_lab_cost cost(const int64_t *size, const gc_lab_variant *variant) {
    double n = (double)size[0] * (double)size[1];
    return (gc_lab_cost){.bytes = 8 * n, .operations = (variant->parameter == FADE ? 1 : 17) * n};
}

static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)buffer;
    static const double weight[3] = {0.25, 0.5, 0.25};
    int64_t width = run->size[0], x = index % width, y = index / width;
    if (run->parameter == FADE)
        return 0.5 * (double)run->in[0][index];
    double sum = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++)
            sum += weight[dx + 1] * weight[dy + 1] *
                   (double)run->in[0][clamp_index(y + dy, run->size[1]) * width + clamp_index(x + dx, width)];
    return sum;
}

static const gc_lab_size sizes[] = {
    {{1, 1}, LAB_QUICK},      {{33, 17}, LAB_QUICK},        {{64, 48}, LAB_CHECK},
    {{1000, 701}, LAB_CHECK}, {{2048, 1024}, LAB_CPU_TIME}, {{16384, 8192}, LAB_GPU_TIME},
};

static const gc_lab_variant variants[] = {
    {.name = "CPU blur", .changed = "one core, row by row and pixel by pixel", LAB_RUNS(sequential), .tolerance = 1e-6},
    {.name = "CPU blur, OpenMP",
     .changed = "the rows are divided among all cores",
     LAB_RUNS(all_cores),
     .tolerance = 1e-6},
    {.name = "fade, 2-D blocks",
     .changed = "blocks of 32 x 8 threads cover the image; a bounds check stops the threads beyond its border",
     .limit =
         "A thread has one load of 4 bytes in flight: 2048 threads are 8 KB on a multiprocessor, and 11 KB would be "
         "needed (module memory-latency). At most 73 % of the limit, less the starts and ends of threads.",
     .where = LAB_GPU,
     .parameter = FADE,
     .tolerance = 1e-6,
     LAB_RUNS_ON_GPU(gck_image_fade)},
    {.name = "blur from global memory",
     .changed = "nine loads per pixel; the pixels that neighbouring threads load too come from the cache",
     .limit =
         "Nine loads a pixel, eight of them from the L1 cache, which serves one line of 128 bytes in a cycle. A row "
         "of a warp that begins one pixel aside touches two lines, so three rows of three take 15 cycles: 2^27 pixels "
         "are 31 800 warps on each of 132 multiprocessors, 0.24 ms. With the wait for the one load that misses this "
         "is far from the limit. Next: is shared memory faster?",
     .where = LAB_GPU,
     .tolerance = 1e-6,
     LAB_RUNS_ON_GPU(gck_image_blur)},
    {.name = "blur tiled with halo",
     .changed = "a block loads its tile and a halo of one pixel into shared memory once, and computes from there",
     .limit =
         "One write to shared memory, a barrier, and nine reads of it: 10 cycles instead of 15, but the whole block "
         "waits at the barrier for its slowest load, and has no load in flight while it computes. Shared memory is no "
         "faster than an L1 cache that hits. Next: fewer reads, not other ones.",
     .where = LAB_GPU,
     .tolerance = 1e-6,
     LAB_RUNS_ON_GPU(gck_image_blur_tile)},
    {.name = "blur in registers",
     .changed =
         "a thread computes 4 x 8 pixels from registers: 16 bytes per load, and the horizontal sum of a row is used "
         "for three rows of output",
     .limit =
         "A thread computes 4 x 8 pixels from 10 rows of one float4 and two floats: 30 loads for 32 pixels instead of "
         "288, and all of them are under way before the first value is used. The memory is the limit.",
     .where = LAB_GPU,
     .tolerance = 1e-6,
     LAB_RUNS_ON_GPU(gck_image_blur_registers)},
};

static const gc_lab_effect effects[] = {
    {"nine loads per pixel are slower than one", "blur from global memory", "blur in registers", 1.05, 0},
    {"the best blur moves bytes nearly as fast as a copy", NULL, "blur in registers", 0.85, 0},
};

const gc_lab_module gc_lab_image = {
    .name = "image",
    .title = "Images: two-dimensional blocks, ragged borders, and data reuse",
    .course = "Khunjush",
    .idea =
        "An image is stored row by row, and a block of 32 x 8 threads covers a rectangle of it. A warp is one row of "
        "the block, so its pixels are neighbours in memory. At the right and the lower border, blocks extend beyond "
        "the image, and a bounds check stops their extra threads.\n\n"
        "Fading reads one pixel for each pixel that it writes. A blur reads nine, and each pixel is read for nine "
        "outputs. Written as in the formula, the kernel depends on the cache for this reuse. A tile in shared memory "
        "makes the reuse explicit: a block loads its pixels with a halo of one pixel, waits at a barrier, and "
        "computes from shared memory. A thread that computes several pixels can keep their inputs in registers, and "
        "needs even fewer loads.",
    .see = "Look at the share of the copy's speed. Fading does not reach it, because a thread has only one load of 4 "
           "bytes in flight. For the blur from global memory the cache serves eight of nine loads. The tile in shared "
           "memory is slower: it adds a barrier and the way through shared memory, and saves only loads that hit the "
           "cache. The blur in registers nearly reaches it, with about one load per pixel.",
    .next =
        "Widen the blur to 5 x 5 weights in all three kernels: 25 loads per pixel. Is the tile still slower than the "
        "cache? gpulab run registers has Khunjush's image of 64 x 48 pixels, which shows how blocks are assigned to "
        "multiprocessors.",
    .dimension = {"width", "height"},
    .buffers = buffers,
    .cost = cost,
    .reference = reference,
    LAB_TABLES,
};
