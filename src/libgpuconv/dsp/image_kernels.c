/* Loops of image sources; compiled once for each instruction set, with GC_IMAGE_SET as the name of their table. */
#include "image_kernels.h"

#include "libgpuconv/core/random.h"
#include "vector.h"

#include <math.h>

typedef float four __attribute__((vector_size(16), aligned(4), may_alias));
typedef float eight __attribute__((vector_size(32), aligned(4), may_alias));

/* A block of images: the element of the accumulator, the amplitude, and the weights of four steps, side by side. */
typedef struct block {
    int32_t at[GC_IMAGE_BLOCK];
    float amplitude[GC_IMAGE_BLOCK];
    float weight[4][GC_IMAGE_BLOCK];
} block;

/* Computes images first .. first + count - 1. Distances are doubles: a delay of 10^6 frames has to be right to 10^-5
 * of a frame. */
ALWAYS_INLINE void place_images(const gc_image_row *row, int64_t first, int count, block *b) {
    double step[GC_IMAGE_BLOCK];
    float energy[GC_IMAGE_BLOCK], inverse[GC_IMAGE_BLOCK];
    const double *along = row->along + first, scale = row->scale, origin = row->origin, limit = row->limit;
    const double across = row->across, reach = row->reach, fade = row->fade;
    for (int i = 0; i < count; i++) { /* separate loops, each of which becomes vector instructions */
        const double d = sqrt(across + along[i] * along[i]), left = (reach - d) * fade;
        step[i] = d * scale + origin;
        energy[i] = (float)(left < 1 ? left : 1);
        inverse[i] = 1 / (float)d;
    }
    for (int i = 0; i < count && row->head; i++)
        step[i] += row->shift[first + i];
    for (int i = 0; i < count; i++)
        energy[i] = step[i] < limit && step[i] > 0 && energy[i] > 0 ? energy[i] : 0;
    for (int i = 0; i < count; i++)
        step[i] = energy[i] > 0 ? step[i] : 0;
    for (int i = 0; i < count; i++) {
        const int32_t whole = (int32_t)step[i];
        const float f = (float)(step[i] - whole), g = 1 - f;
        b->at[i] = whole;
        b->weight[0][i] = g * g * g * (1 / 6.F);
        b->weight[1][i] = 2 / 3.F - f * f * (1 - 0.5F * f);
        b->weight[2][i] = 2 / 3.F - g * g * (1 - 0.5F * g);
        b->weight[3][i] = f * f * f * (1 / 6.F);
        b->amplitude[i] = sqrtf(energy[i]) * inverse[i];
    }
    for (int k = 0; k < 2; k++)
        if (row->pattern[k].along)
            for (int i = 0; i < count; i++)
                b->amplitude[i] *=
                    row->pattern[k].omni + (row->pattern[k].across + row->pattern[k].along[first + i]) * inverse[i];
}

/* Adds image i of a block, times `scale`. */
ALWAYS_INLINE void add_image(const gc_image_row *row, const block *b, int i, const float *gain, float scale,
                             float *to) {
    const int lanes = row->lanes;
    const float amplitude = b->amplitude[i] * scale;
    if (lanes == 1) {
        const four w = {b->weight[0][i], b->weight[1][i], b->weight[2][i], b->weight[3][i]};
        *(four *)to += amplitude * row->outer[0] * gain[0] * w;
        return;
    }
    for (int k = 0; k < lanes; k += 8) {
        const eight a = *(const eight *)(row->outer + k) * *(const eight *)(gain + k) * amplitude;
        *(eight *)(to + k) += a * b->weight[0][i];
        *(eight *)(to + lanes + k) += a * b->weight[1][i];
        *(eight *)(to + 2 * lanes + k) += a * b->weight[2][i];
        *(eight *)(to + 3 * lanes + k) += a * b->weight[3][i];
    }
}

static void add(const gc_image_row *row, float *sums) {
    block b;
    const int lanes = row->lanes;
    for (int64_t first = 0; first < row->count; first += GC_IMAGE_BLOCK) {
        const int count = row->count - first < GC_IMAGE_BLOCK ? (int)(row->count - first) : GC_IMAGE_BLOCK;
        place_images(row, first, count, &b);
        for (int i = 0; i < count; i++) {
            const float *gain = row->gain + (first + i) * row->stride;
            float *to = sums + (int64_t)b.at[i] * lanes;
            if (!row->head)
                add_image(row, &b, i, gain, 1, to);
            for (int k = 0; k < row->taps && row->head && b.amplitude[i] != 0; k++)
                add_image(row, &b, i, gain, row->head[first + i][k], to + (int64_t)k * GC_IMAGE_STEPS * lanes);
        }
    }
}

/* Returns a number below 2^52 as a double; instruction sets before AVX-512 have no such conversion in vectors. */
ALWAYS_INLINE double to_double(uint64_t number) {
    const uint64_t bits = number | UINT64_C(0x4330000000000000); /* 2^52 + number */
    double value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value - 0x1p52;
}

/* Makes directions and distances from the first receiver; the sign of an amplitude is that of `sign`. */
ALWAYS_INLINE void draw_places(const gc_image_field *f, uint64_t seed, int64_t first, int count, double *far,
                               double *sign, double direction[3][GC_IMAGE_BLOCK]) {
    double turn[GC_IMAGE_BLOCK];
    for (int i = 0; i < count; i++) {
        uint64_t state = gc_mix_bits(seed + (uint64_t)(first + i));
        const uint64_t a = gc_random_bits(&state), b = gc_random_bits(&state);
        const double part = to_double(a >> 32) * 0x1p-32 + to_double(a >> 11 & 0x1fffff) * 0x1p-53;
        far[i] = (to_double((uint64_t)(first + i)) + part) * f->shell;
        sign[i] = a & 1 ? -1 : 1;
        direction[2][i] = to_double(b >> 32) * 0x1p-31 - 1;
        turn[i] = to_double(b & 0xffffffff) * 0x1p-32;
    }
    for (int i = 0; i < count; i++) { /* sine and cosine of a turn, by their series within an eighth of one */
        const int quarter = (int)(turn[i] * 4 + 0.5);
        const double x = (turn[i] - 0.25 * quarter) * 6.283185307179586, y = x * x;
        const double s =
            x *
            (1 - (y * (1 / 6.0)) * (1 - (y * (1 / 20.0)) *
                                            (1 - (y * (1 / 42.0)) * (1 - (y * (1 / 72.0)) * (1 - (y * (1 / 110.0)))))));
        const double c =
            1 - (y * (1 / 2.0)) *
                    (1 - (y * (1 / 12.0)) *
                             (1 - (y * (1 / 30.0)) *
                                      (1 - (y * (1 / 56.0)) * (1 - (y * (1 / 90.0)) * (1 - (y * (1 / 132.0)))))));
        const double z = direction[2][i], flat = sqrt(1 - z * z), odd = quarter & 1;
        const double cosine = c + odd * (s - c), sine = s + odd * (c - s);
        direction[0][i] = flat * cosine * (1 - ((quarter + 1) & 2));
        direction[1][i] = flat * sine * (1 - (quarter & 2));
    }
}

static void draw(const gc_image_field *f, uint64_t seed, int64_t first, int count, gc_image_drawn *to) {
    double far[GC_IMAGE_BLOCK], sign[GC_IMAGE_BLOCK], square[GC_IMAGE_BLOCK], part[2][GC_IMAGE_BLOCK];
    int order[GC_IMAGE_BLOCK];
    for (int i = 0; i < count; i++)
        square[i] = part[0][i] = part[1][i] = order[i] = 0;
    draw_places(f, seed, first, count, far, sign, to->direction);
    for (int a = 0; a < 3; a++) {
        const double origin = f->first[a], per_size = f->per_size[a], moved = f->moved[a], receiver = f->receiver[a];
        const double facing = f->facing[0][a], facing_source = f->facing[1][a];
        const int most = f->most[a];
        double *direction = to->direction[a];
        int *cells = to->cell[a];
        for (int i = 0; i < count; i++) {
            const double place = origin + far[i] * direction[i], at = place * per_size;
            const int below = (int)at - (at < 0), low = below < -most ? -most : below, cell = low > most ? most : low;
            const double mirror = 1 - 2 * (cell & 1), d = place + mirror * moved - receiver;
            direction[i] = d;
            square[i] += d * d;
            part[0][i] += facing * d;
            part[1][i] -= mirror * facing_source * d;
            order[i] += cell < 0 ? -cell : cell;
            cells[i] = cell;
        }
    }
    for (int i = 0; i < count; i++) {
        const double whole = sqrt(square[i]), distance = whole > 0.01 ? whole : 0.01;
        const double left = (f->reach - distance) * f->fade;
        const double kept = left < 0 ? 0 : left > 1 ? 1 : left;
        const double energy = distance < f->nearest ? 0 : order[i] > f->order ? 1 : 1 - kept;
        to->amplitude[i] = (float)(sign[i] * far[i]) * sqrtf((float)(energy * f->power));
        to->distance[i] = distance;
        to->pattern[0][i] = (float)part[0][i];
        to->pattern[1][i] = (float)part[1][i];
    }
}

enum { TOGETHER = 4 /* frames whose sums share the loads of the accumulator */ };

/* Reduces TOGETHER frames of eight lanes; the taps have enough zeros on both sides. */
ALWAYS_INLINE void reduce_eight(const float *sums, const float *taps, int lanes, float *to) {
    eight sum[TOGETHER] = {{0}};
    for (int j = 0; j < GC_IMAGE_TAPS + (TOGETHER - 1) * GC_IMAGE_STEPS; j++) {
        const eight x = *(const eight *)(sums + (int64_t)j * lanes);
#pragma GCC unroll 4
        for (int n = 0; n < TOGETHER; n++)
            sum[n] += x * taps[j - n * GC_IMAGE_STEPS];
    }
    for (int n = 0; n < TOGETHER; n++)
        *(eight *)(to + (int64_t)n * lanes) = sum[n];
}

/* Frames of one lane that share a window of the accumulator. */
enum { SHARERS = 8, WINDOW = 368 };

/* Reduces SHARERS frames of one lane: the taps of each are shifted instead of the accumulator, so that a load of it
 * serves all of them and none straddles two cache lines. */
ALWAYS_INLINE void reduce_one(const float *sums, const float (*taps)[WINDOW], float *to) {
    vec sum[SHARERS] = {{0}};
    float part[SHARERS][LANES];
    for (int j = 0; j < WINDOW; j += LANES) {
        const vec x = load(sums + j);
        for (int n = 0; n < SHARERS; n++)
            sum[n] += x * load(taps[n] + j);
    }
    for (int n = 0; n < SHARERS; n++)
        store(part[n], sum[n]);
    for (int width = LANES / 2; width >= 1; width /= 2)
        for (int n = 0; n < SHARERS; n++)
            for (int k = 0; k < width; k++)
                part[n][k] += part[n][k + width];
    for (int n = 0; n < SHARERS; n++)
        to[n] = part[n][0];
}

static void reduce_lane(const float *sums, const float *taps, int64_t frames, float *to) {
    float shifted[SHARERS][WINDOW] __attribute__((aligned(64))) = {{0}};
    for (int n = 0; n < SHARERS; n++)
        for (int j = 0; j < GC_IMAGE_TAPS; j++)
            shifted[n][1 + n * GC_IMAGE_STEPS + j] = taps[j];
    for (int64_t n = 0; n < frames; n += SHARERS)
        reduce_one(sums + n * GC_IMAGE_STEPS, (const float(*)[WINDOW])shifted, to + n);
}

static void reduce(const float *sums, const float *taps, int lanes, int64_t frames, float *to) {
    if (lanes == 1) {
        reduce_lane(sums, taps, frames, to);
        return;
    }
    float wide[GC_IMAGE_TAPS + 2 * (TOGETHER - 1) * GC_IMAGE_STEPS] = {0};
    float *middle = wide + (TOGETHER - 1) * GC_IMAGE_STEPS;
    for (int j = 0; j < GC_IMAGE_TAPS; j++)
        middle[j] = taps[j];
    sums += lanes;
    for (int64_t n = 0; n < frames; n += TOGETHER)
        for (int k = 0; k < lanes; k += 8)
            reduce_eight(sums + n * GC_IMAGE_STEPS * lanes + k, middle, lanes, to + n * lanes + k);
}

const gc_image_kernels GC_IMAGE_SET = {add, draw, reduce};
