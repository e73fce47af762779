/*
 * Module rooms: the response of a room of 5 x 4 x 3 m by image sources. Walls are mirrors: image (i, j, k) of the
 * source arrives after d / c with the amplitude 0.9^(|i| + |j| + |k|) / d, between two frames, and is interpolated by a
 * windowed sinc of 48 frames. Half a second has 352 000 images, which fall in any order on 8000 frames.
 *
 * Sources: Allen and Berkley, Image method for efficiently simulating small-room acoustics (1979); Diaz-Guerra, Miguel
 * and Beltran, gpuRIR (2018).
 */
#include "gpulab/lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { REACH = 24, STEPS = 6, HALF = 152, TAPS = 306, DESIGN = 1024 };
static const double pi = 3.14159265358979323846, size_of[3] = {5, 4, 3}, wall = 0.9, per_metre = 16000 / 343.2;

LAB_LAUNCHER(gck_rooms_global);
LAB_LAUNCHER(gck_rooms_shared);
LAB_LAUNCHER(gck_rooms_steps);
LAB_LAUNCHER(gck_rooms_integers);
LAB_LAUNCHER(gck_rooms_rows);

static double kernel(double x) {
    return fabs(x) >= REACH ? 0 : (fabs(x) < 1e-9 ? 1 : sin(pi * x) / (pi * x)) * (0.5 + 0.5 * cos(pi * x / REACH));
}

/* Adds the images of response r. Image n of an axis is at n L + s for even n, (n + 1) L - s for odd n. */
static void add_images(const gc_lab_run *run, int64_t r) {
    const float *place = (const float *)run->buffer[0] + 6 * r;
    const int64_t frames = run->size[1];
    const double far = (double)(frames + REACH) / per_metre;
    float *out = (float *)run->buffer[2] + r * frames;
    memset(out, 0, (size_t)frames * sizeof *out);
    int most[3], n[3];
    for (int a = 0; a < 3; a++)
        most[a] = (int)(far / size_of[a]) + 2;
    for (n[0] = -most[0]; n[0] <= most[0]; n[0]++)
        for (n[1] = -most[1]; n[1] <= most[1]; n[1]++)
            for (n[2] = -most[2]; n[2] <= most[2]; n[2]++) {
                double square = 0, gain = 1;
                for (int a = 0; a < 3; a++) {
                    const double s = (double)place[a], at = n[a] % 2 ? (n[a] + 1) - s : n[a] + s;
                    square += pow((at - (double)place[3 + a]) * size_of[a], 2);
                    gain *= pow(wall, abs(n[a]));
                }
                const double d = sqrt(square), t = d * per_metre;
                for (int64_t m = (int64_t)fmax(ceil(t - REACH), 0); m < frames && (double)m < t + REACH; m++)
                    out[m] += (float)(gain / d * kernel((double)m - t));
            }
}

static int sequential(const gc_lab_run *run) {
    for (int64_t r = 0; r < run->size[0]; r++)
        add_images(run, r);
    return 0;
}

/* Fills the filter that makes frames of an accumulator with six steps a frame, in which an image is a cubic B-spline of
 * four steps: the spectrum of the windowed sinc divided by that of the spline. */
static void fill_taps(const int64_t *size, void *elements, int64_t count) {
    (void)size;
    for (int64_t j = 0; j < count; j++) {
        double tap = 0;
        for (int k = 0; k <= DESIGN / 2; k++) {
            const double turn = 2 * pi * k / DESIGN, half = turn / 2, spline = k ? pow(sin(half) / half, 4) : 1;
            static double spectrum[DESIGN / 2 + 1];
            if (j == 0) {
                spectrum[k] = 1;
                for (int i = 1; i < REACH * STEPS; i++)
                    spectrum[k] += 2 * kernel((double)i / STEPS) * cos(turn * i);
            }
            tap += (k == 0 || k == DESIGN / 2 ? 1 : 2) * spectrum[k] / spline * cos(turn * (double)(j - HALF));
        }
        ((float *)elements)[j] = j > 2 * HALF ? 0 : (float)(tap / DESIGN);
    }
}

static int buffers(const int64_t *size, gc_lab_buffer *buffer) {
    buffer[0] = (gc_lab_buffer){.name = "places", .type = LAB_F32, .count = 6 * size[0], .low = 0.1, .high = 0.9};
    buffer[1] = (gc_lab_buffer){.name = "taps", .type = LAB_F32, .count = TAPS, .fill = fill_taps};
    buffer[2] = (gc_lab_buffer){.name = "responses", .role = LAB_OUTPUT, .type = LAB_F32, .count = size[0] * size[1]};
    return 3;
}

static gc_lab_cost cost(const int64_t *size, const gc_lab_variant *variant) {
    const double images = 4 * pi / 3 * pow((double)size[1] / per_metre, 3) / 60;
    (void)variant;
    return (gc_lab_cost){.bytes = 4 * (double)(size[0] * size[1]),
                         .written = 4 * (double)(size[0] * size[1]),
                         .operations = 40 * images * (double)size[0]};
}

/* Allen and Berkley's images: u mirrors the source, l repeats the room. Looks only at those of this frame. */
static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)buffer;
    const float *place = run->in[0] + 6 * (index / run->size[1]);
    const double frame = (double)(index % run->size[1]);
    const double low = fmax(frame - REACH, 0) / per_metre, far = (frame + REACH) / per_metre;
    double sum = 0, at[3];
    for (int u = 0; u < 8; u++)
        for (int x = -(int)(far / 10) - 2; x <= (int)(far / 10) + 2; x++)
            for (int y = -(int)(far / 8) - 2; y <= (int)(far / 8) + 2; y++)
                for (int z = -(int)(far / 6) - 2; z <= (int)(far / 6) + 2; z++) {
                    const int l[3] = {x, y, z};
                    int hits = 0;
                    for (int a = 0; a < 3; a++) {
                        const int mirrored = u >> a & 1;
                        at[a] = ((mirrored ? -1 : 1) * (double)place[a] + 2 * l[a] - (double)place[3 + a]) * size_of[a];
                        hits += abs(l[a] - mirrored) + abs(l[a]);
                    }
                    const double d = sqrt(at[0] * at[0] + at[1] * at[1] + at[2] * at[2]);
                    if (d > low && d < far)
                        sum += pow(wall, hits) / d * kernel(frame - d * per_metre);
                }
    return sum;
}

static const gc_lab_size sizes[] = {
    {{1, 1}, LAB_QUICK},          {{2, 300}, LAB_QUICK},
    {{3, 1111}, LAB_CHECK},       {{1, 8000}, LAB_CPU_TIME | LAB_SLOW_TIME},
    {{1024, 8000}, LAB_GPU_TIME},
};

static const gc_lab_variant variants[] = {
    {.name = "CPU sequential",
     .changed = "image after image, 48 frames of each",
     .tolerance = 1e-3,
     LAB_RUNS(sequential)},
    {.name = "global atomics",
     .changed =
         "a thread for each image of a box around all of them, and an atomicAdd in device memory for each of its "
         "48 frames",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME | LAB_GPU_TIME,
     .tolerance = 1e-3,
     .limit = "352 000 images have 17 million additions in the L2 cache and as many sines and cosines. Half of the "
              "threads have images beyond the end, because a ball has half of its box. Next: sums on the chip.",
     LAB_RUNS_ON_GPU(gck_rooms_global)},
    {.name = "sums in shared memory",
     .changed = "a block has a segment of a response in shared memory; a thread takes a row of images along z, and of "
                "it only those of the segment",
     .where = LAB_GPU,
     .at = LAB_SLOW_TIME | LAB_GPU_TIME,
     .tolerance = 1e-3,
     .limit = "Still 48 additions an image, and shared memory has no addition of floats: the compiler makes a loop "
              "that compares and swaps until no other thread came between. Next: fewer additions.",
     LAB_RUNS_ON_GPU(gck_rooms_shared)},
    {.name = "four steps for an image",
     .changed =
         "an accumulator with six steps a frame: an image is a cubic spline of four steps, and one filter of 305 "
         "taps makes frames of all images",
     .where = LAB_GPU,
     .tolerance = 1e-3,
     .limit = "4 additions instead of 48, no sine. The filter has 305 multiply-adds a frame, which is less than 2 % of "
              "the work. Next: additions that the hardware has.",
     LAB_RUNS_ON_GPU(gck_rooms_steps)},
    {.name = "integers",
     .changed = "the accumulator has integers in units of 2^-24",
     .where = LAB_GPU,
     .tolerance = 1e-3,
     .limit = "ATOMS.ADD is one instruction, and a sum of integers does not depend on the order, so that the bytes are "
              "the same every time. Rows of a segment have different lengths: a warp takes as long as its longest "
              "row. Next: no idle lanes.",
     LAB_RUNS_ON_GPU(gck_rooms_integers)},
    {.name = "rows in order",
     .changed = "a warp finds the ends of 32 rows at once, and takes their images in order, 32 at a time",
     .where = LAB_GPU,
     .tolerance = 1e-3,
     .limit =
         "Finding the row of an image takes a few reads of shared memory, and no lane is idle. An image takes some "
         "100 instructions and 4 additions; of the 32 banks of an addition the fullest serves 3 or 4 lanes. The "
         "kernel in use does the same, with distances of two floats.",
     LAB_RUNS_ON_GPU(gck_rooms_rows)},
};

static const gc_lab_effect effects[] = {
    {"sums on the chip are faster than sums in device memory", "global atomics", "four steps for an image", 3, 0},
    {"integers are added faster than floats in shared memory", "four steps for an image", "integers", 1.1, 0},
};

const gc_lab_module gc_lab_rooms = {
    .name = "rooms",
    .title = "Rooms: many small sums at places that the data choose",
    .course = "Allen and Berkley 1979; gpuRIR 2018; Kirk and Hwu 9 (privatisation)",
    .idea = "The walls of a room are mirrors, and a sound source is heard as often as it is seen in them. Each image "
            "adds a short pulse to the response, at a time that follows from its distance. It is a histogram whose "
            "entries are 48 frames wide.\n\n"
            "The ladder makes the entry narrow, by a finer grid and one filter at its end; the sum near, in shared "
            "memory; the addition cheap, by integers; and the lanes busy, by taking rows of different lengths in "
            "order.",
    .see = "Each step removes what limited the one before: additions in the L2 cache, sines, loops that compare and "
           "swap, idle lanes.",
    .next = "Change STEPS in rooms.cu and rooms.c from 6 to 4: the accumulator becomes smaller, and the repetition of "
            "the spline's spectrum louder. gpulab show histogram has narrow entries.",
    .dimension = {"responses", "frames"},
    .buffers = buffers,
    .cost = cost,
    .reference = reference,
    LAB_TABLES,
};
