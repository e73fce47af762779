/*
 * Images: rows of pixels, one after the other, pixel (x, y) at y width + x, and blocks of threads in two dimensions
 * laid over them.
 *
 *      fade:   out = 0.5 in                                        one pixel in, one out
 *      blur:   out = (1 2 1, 2 4 2, 1 2 1) / 16 around each pixel  nine pixels in, shared with the neighbours
 *
 * Beyond the border the border's own pixel counts. Course: Khunjush.
 */
#include "gpulab/lab.h"

enum { BLUR = 0, FADE = 1 };

LAB_LAUNCHER(gck_image_fade);
LAB_LAUNCHER(gck_image_blur);
LAB_LAUNCHER(gck_image_blur_tile);
LAB_LAUNCHER(gck_image_blur_rows);

static int64_t inside(int64_t i, int64_t n) {
    return i < 0 ? 0 : i < n ? i : n - 1;
}

static void blur_row(const gc_lab_run *run, int64_t y) {
    const float *in = run->buffer[0];
    float *out = run->buffer[1];
    int64_t width = run->size[0], height = run->size[1];
    const float *above = in + inside(y - 1, height) * width, *here = in + y * width,
                *below = in + inside(y + 1, height) * width;
    for (int64_t x = 0; x < width; x++) {
        int64_t l = inside(x - 1, width), r = inside(x + 1, width);
        float sum = above[l] + 2 * above[x] + above[r] + 2 * (here[l] + 2 * here[x] + here[r]) + below[l] +
                    2 * below[x] + below[r];
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
                   (double)run->in[0][inside(y + dy, run->size[1]) * width + inside(x + dx, width)];
    return sum;
}

static const gc_lab_size sizes[] = {
    {{1, 1}, LAB_QUICK},      {{33, 17}, LAB_QUICK},        {{64, 48}, LAB_CHECK},
    {{1000, 701}, LAB_CHECK}, {{2048, 1024}, LAB_CPU_TIME}, {{16384, 8192}, LAB_GPU_TIME},
};

static const gc_lab_variant variants[] = {
    {.name = "CPU blur", .changed = "row by row, pixel by pixel", .launch = sequential, .tolerance = 1e-6},
    {.name = "CPU blur, OpenMP", .changed = "rows dealt to all cores", .launch = all_cores, .tolerance = 1e-6},
    {.name = "fade, 2-D blocks",
     .changed = "blocks of 32 x 8 threads over the image, a bounds check at its ragged borders",
     .where = LAB_GPU,
     .parameter = FADE,
     .tolerance = 1e-6,
     .launch = LAB_ON_GPU(gck_image_fade)},
    {.name = "blur from global memory",
     .changed = "nine loads a pixel; what neighbours load too comes from the cache",
     .where = LAB_GPU,
     .tolerance = 1e-6,
     .launch = LAB_ON_GPU(gck_image_blur)},
    {.name = "blur tiled with halo",
     .changed = "a block loads its tile and one pixel around it into shared memory, once",
     .where = LAB_GPU,
     .tolerance = 1e-6,
     .launch = LAB_ON_GPU(gck_image_blur_tile)},
    {.name = "blur in registers",
     .changed = "a thread takes 4 x 8 pixels: 16 bytes a load, rows summed across once and used three times",
     .where = LAB_GPU,
     .tolerance = 1e-6,
     .launch = LAB_ON_GPU(gck_image_blur_rows)},
};

static const gc_lab_effect effects[] = {
    {"nine loads a pixel are slower than one and a half", "blur from global memory", "blur in registers", 1.05, 0},
    {"the best blur moves bytes nearly as fast as a copy", NULL, "blur in registers", 0.85, 0},
};

const gc_lab_module gc_lab_image = {
    .name = "image",
    .title = "Images: two-dimensional blocks, ragged borders, and reuse",
    .course = "Khunjush",
    .idea =
        "An image is rows of pixels, one behind the other; a block of 32 x 8 threads covers a patch of it. A warp is a "
        "row of the block, so that its pixels are neighbours in memory. At the right and lower border blocks reach "
        "over the edge, and a bounds check keeps their threads out.\n\n"
        "Fading needs one pixel for one. A blur needs nine, and each pixel is needed by nine: loaded as the formula "
        "stands, caches must save what can be saved. A tile in shared memory makes the reuse explicit: a block loads "
        "its patch with a halo of one pixel, waits, and computes from there. Larger patches a thread, held in "
        "registers, need fewer loads still.",
    .see = "The share of the copy's speed: fading reaches it easily; each blur after the first comes closer.",
    .next = "Widen the blur: with 5 x 5 weights the tile wins by more. gpulab run registers has Khunjush's 64 x 48 "
            "image, which shows how blocks are dealt to multiprocessors.",
    .dimension = {"width", "height"},
    .buffers = buffers,
    .cost = cost,
    .reference = reference,
    LAB_TABLES,
};
