/*
 * Rooms by image sources: what conv/cpu/cpu_rooms.c computes on the CPU (formulas and coordinates are told there).
 *
 *      images    a block has a segment of a response in one band and channel. It finds the images that arrive in its
 *                segment, adds each as a cubic B-spline of four steps to an accumulator in shared memory, and makes
 *                frames of it by one filter
 *      prepare   the losses of the walls from decay times, a warp for each room
 *      filter    a biquad, a block for each row
 *
 * An image lies at the sum of three coordinates, one of each axis, and its loss is the sum of three losses. A row of
 * images along the shortest side of the room lies in a segment with two ends, a hole between them. A warp finds the
 * ends of 32 rows, one for each lane, and takes their images in order, 32 at a time, so that no lane is idle.
 *
 * Before ears an image is added once for each tap of the response of its direction, which a lane finds by comparing
 * all: rooms of many images take as much longer as a response has taps.
 *
 * Sums do not depend on the order of their terms, because the accumulator has integers. Its unit follows from the
 * largest image that the segment may have, of which it holds 64 and many more late in a small room. Distances are sums
 * of two floats (48 bits), because 1e-5 of a frame after 10^6 frames is beyond a float; double precision would take
 * 32 times as long on most devices.
 *
 * Operations: 163 instructions an image, with 4 atomic additions, whose lanes take 3.5 cycles of shared memory; 305
 * multiply-adds a frame. Memory: 4 bytes a frame are written. 352 000 images are 57 million instructions: 0.53 million
 * responses a second where 132 multiprocessors issue four warps in every cycle; measured are 0.44 million (83 %).
 * Contracts of the launchers: rooms.h.
 */
#include "kernels.h"
#include "launch.cuh"

#include <climits>

namespace {

enum { STEPS = GCK_ROOM_STEPS, HALF = GCK_ROOM_HALF, TAPS = GCK_ROOM_TAPS, BANDS = GCK_ROOM_BANDS };
enum {
    THREADS = 384,
    WARPS = THREADS / 32,
    TOGETHER = 17,            /* frames that a thread makes of the accumulator: TAPS = 3 x 17 x STEPS */
    SEGMENT = TOGETHER * 108, /* most frames of a block, whose memory is below 64 KB */
    MARGIN = 6,               /* of the accumulator, for images at its ends */
    KERNEL = 24,              /* frames of the interpolation on each side */
    GRID = 8,                 /* directions of an octant in each coordinate */
    MOST = 1 << 24            /* images of an axis on each side */
};
const float pi = 3.14159265358979f, log2e = 1.44269504088896f, no_fade = 1e30f;
const float NEPERS_60DB = 13.815510558f, LOSS_ALL = 200.0f; /* a wall that absorbs everything */

__device__ __forceinline__ float inverse_root(float x) {
    float y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ float power_of_two(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* A number as the sum of two floats. */
struct wide {
    float high, low;
};

__device__ wide widen(double x) {
    const float high = (float)x;
    return {high, (float)(x - (double)high)};
}

__device__ __forceinline__ wide add(wide a, wide b) {
    const float sum = __fadd_rn(a.high, b.high), part = __fsub_rn(sum, a.high);
    const float lost = __fadd_rn(__fsub_rn(a.high, __fsub_rn(sum, part)), __fsub_rn(b.high, part));
    return {sum, lost + (a.low + b.low)};
}

__device__ __forceinline__ wide square(wide a) {
    const float product = __fmul_rn(a.high, a.high);
    return {product, fmaf(2.0f * a.high, a.low, fmaf(a.high, a.high, -product))};
}

/* ---- The geometry of a block ------------------------------------------------------------------------------------- */

/* What a response reads. */
struct input {
    const double *size, *source, *receiver, *first_source, *first_receiver;
    const gck_walls *walls;
    int band;
    uint64_t seed;
};

struct axis {
    int side;
    wide size, even, odd;    /* image n lies at n size + even or odd from the receiver */
    float loss, skew;        /* log2 of amplitude: of a reflection; half the difference of the walls */
    float at, cells;         /* the receiver; rooms a step */
    float facing, turned[3]; /* of the source's axis; of the receiver's axes */
};

struct scene {
    axis of[3]; /* the shortest side first */
    float omni[2];
    int directed[2], noisy; /* receiver and source; whether there is noise */
    int degree, order;      /* of the channel's harmonic */
    float factor;
    int ear;                       /* of a set: the channel */
    float damping;                 /* log2 of amplitude a step, by the air */
    int begin[2], count[2], limit; /* rows of images; most reflections */
    int base, places;              /* distance of the accumulator's first element; its elements for images */
    float nearest, farthest;       /* squares of the distances of the segment */
    float direct, reach, fade;     /* as on the CPU */
    float scale, unit,
        largest;       /* in the accumulator: the amplitude 1, an image 1 step away, the limit of a noise image */
    float crowd, mean; /* images in a frame over the square of their distance; log2 a step of a diffuse field */
};

__device__ __forceinline__ wide coordinate(const axis &a, int n) {
    const float x = (float)n, product = __fmul_rn(x, a.size.high);
    const wide whole = {product, fmaf(x, a.size.low, fmaf(x, a.size.high, -product))};
    return add(whole, n & 1 ? a.odd : a.even);
}

__device__ __forceinline__ float loss_of(const axis &a, int n) {
    return fmaf(fabsf((float)n), a.loss, n & 1 ? (n < 0 ? -a.skew : a.skew) : 0.0f);
}

/* Fills an axis of the scene. */
__device__ void set_axis(const gck_rooms &r, axis *a, int side, const input &in) {
    const double size = in.size[side] * r.per_metre, at = in.receiver[side] * r.per_metre;
    const double from = in.source[side] * r.per_metre;
    const float low = in.walls->loss[2 * side][in.band], high = in.walls->loss[2 * side + 1][in.band];
    *a = {side, widen(size), widen(from - at), widen(size - from - at)};
    a->loss = (low + high) * (log2e / 4);
    a->skew = (high - low) * (log2e / 4);
    a->at = (float)at;
    a->cells = (float)(1 / size);
    for (int point = 0; point < 2; point++) {
        const double *p = point ? in.source : in.receiver;
        const float part = !point && (r.channels > 1 || r.ears.taps) ? 1.0f : 1.0f - (float)p[5];
        float c, sine, up, ce;
        sincospif((float)(p[3] / 180), &sine, &c);
        sincospif((float)(p[4] / 180), &up, &ce);
        const float front = part * (side == 0 ? ce * c : side == 1 ? ce * sine : up);
        if (point) {
            a->facing = front;
            continue;
        }
        a->turned[0] = front;
        a->turned[1] = side == 0 ? -sine : side == 1 ? c : 0.0f;
        a->turned[2] = side == 0 ? -up * c : side == 1 ? -up * sine : ce;
    }
}

__device__ bool is_valid(const double *p, const double *size) {
    bool valid = fabs(p[3]) <= 360 && fabs(p[4]) <= 90 && p[5] >= 0 && p[5] <= 1;
    for (int k = 0; k < 3; k++)
        valid = valid && p[k] > 0 && p[k] < size[k];
    return valid;
}

/* Returns the rows of an axis that may be nearer than `far`. */
__device__ void set_rows(const axis &a, float far, int limit, int *begin, int *count) {
    const float first = floorf((a.at - far) * a.cells), last = floorf((a.at + far) * a.cells);
    *begin = max((int)fmaxf(first, -MOST), -limit);
    *count = max(min((int)fminf(last, MOST), limit) - *begin + 1, 0);
}

/* Sets the unit of the accumulator: the largest amplitude, and how many of its size may meet in a step. */
__device__ void set_unit(const gck_rooms &r, scene *s, float distance, float volume) {
    const float end = fmaxf((float)(s->base + s->places) + r.ears.early, 0.0f), density = 4 * pi * end * (end / volume);
    float meeting = 64.0f + 16.0f * end * s->of[0].cells, before = 64.0f * density;
    float slowest = HUGE_VALF, apart = 0.0f;
    s->crowd = 4 * pi * STEPS / volume;
    s->mean = 0.0f;
    for (int k = 0; k < 3; k++) {
        s->mean += s->of[k].loss * s->of[k].cells / 2;
        slowest = fminf(slowest, s->of[k].loss * s->of[k].cells);
        apart += s->of[k].loss + fabsf(s->of[k].skew);
    }
    float lost = fmaxf(slowest * distance - apart, 0.0f);
    if (r.ears.taps) {
        meeting *= r.ears.peak; /* images at once, and those of which other taps meet them */
        before *= r.ears.sum;
        lost += s->damping * distance;
    }
    meeting += before;
    const float bits = 31.0f - log2f(meeting) - log2f((float)r.per_metre / distance) + lost;
    s->scale = exp2f(fminf(floorf(bits), 100.0f));
    s->unit = s->scale * (float)r.per_metre;
    s->largest = exp2f(31) / meeting * (16.0f + density);
}

/* Fills what does not belong to an axis. `begin` is the segment's first frame, `frames` their number. */
__device__ void set_scene(const gck_rooms &r, scene *s, const input &in, int channel, int64_t begin, int frames) {
    double direct = 0, volume = 1;
    for (int k = 0; k < 3; k++) {
        direct += (in.source[k] - in.receiver[k]) * (in.source[k] - in.receiver[k]);
        volume *= in.size[k] * r.per_metre;
    }
    const bool valid =
        in.walls->valid && is_valid(in.source, in.size) && is_valid(in.receiver, in.size) && direct >= 0.999e-6;
    direct = sqrt(direct) * r.per_metre;
    s->omni[0] = (float)in.receiver[5];
    s->omni[1] = (float)in.source[5];
    s->directed[0] = r.channels == 1 && !r.ears.taps && in.receiver[5] < 1;
    s->directed[1] = in.source[5] < 1;
    s->ear = channel;
    s->damping = r.air ? log2e * r.damping[in.band] : 0.0f;
    s->degree = r.ears.taps ? 0 : (int)sqrtf((float)channel + 0.5f);
    s->order = channel - s->degree * s->degree - s->degree;
    s->factor = s->order ? 2.0f : 1.0f;
    for (int k = s->degree - abs(s->order) + 1; k <= s->degree + abs(s->order); k++)
        s->factor /= (float)k;
    s->factor = sqrtf(s->factor);
    s->limit = r.order < 0 ? MOST : r.order;
    const double base = (double)(begin - r.origin) * STEPS - HALF, near = fmax(base - MARGIN - r.ears.late, 0.0);
    const double end = fmax((double)(r.frames + KERNEL + 2 - r.origin) * STEPS + r.ears.early, (double)STEPS),
                 reach = in.walls->reach;
    s->base = (int)base - 2;
    s->places = STEPS * (frames - 1) + 2 * HALF + 4;
    s->direct = (float)direct;
    s->reach = (float)fmin(fmax(reach, direct * (1 + 1e-6)), end);
    s->fade = no_fade;
    if (r.tail && reach < end) {
        s->reach = (float)fmax(reach, direct / 0.9);
        s->fade = 10 / s->reach;
    }
    s->noisy = valid && r.tail && (reach < end || r.order >= 0);
    const double far = fmin(base + s->places + MARGIN + r.ears.early, (double)s->reach);
    s->nearest = (float)(near * near * (1 - 1e-6));
    s->farthest = far > 0 && valid ? (float)(far * far * (1 + 1e-6)) : 0.0f;
    for (int k = 0; k < 2; k++)
        set_rows(s->of[k + 1], sqrtf(s->farthest), s->limit, &s->begin[k], &s->count[k]);
    if (!(s->farthest > 0))
        s->count[0] = 0;
    set_unit(r, s, valid ? (float)fmax(near, direct) : 1.0f, (float)volume);
}

/* ---- Images ------------------------------------------------------------------------------------------------------ */

/* Adds an image whose distance is d + more to the accumulator. */
__device__ __forceinline__ void deposit(const scene &s, int *sums, float d, float more, float amplitude) {
    const int whole = __float2int_rd(d + more), at = whole - s.base;
    const float f = (d - (float)whole) + more, g = 1.0f - f, sixth = amplitude * (1 / 6.0f),
                third = amplitude * (2 / 3.0f);
    if ((unsigned)at >= (unsigned)s.places)
        return;
    atomicAdd(sums + at, __float2int_rn(sixth * (g * g * g)));
    atomicAdd(sums + at + 1, __float2int_rn(fmaf(-amplitude * (f * f), fmaf(-0.5f, f, 1.0f), third)));
    atomicAdd(sums + at + 2, __float2int_rn(fmaf(-amplitude * (g * g), fmaf(-0.5f, g, 1.0f), third)));
    atomicAdd(sums + at + 3, __float2int_rn(sixth * (f * f * f)));
}

/* Returns the harmonic of the channel in a direction of length 1 (recursions of ir/ambisonic.c). */
__device__ float harmonic(const scene &s, float x, float y, float z) {
    const int m = abs(s.order);
    float re = 1.0f, im = 0.0f, legendre = 1.0f, before = 0.0f;
#pragma unroll 1
    for (int k = 0; k < m; k++) {
        const float turned = re * x - im * y;
        im = re * y + im * x;
        re = turned;
        legendre *= (float)(2 * k + 1);
    }
#pragma unroll 1
    for (int n = m; n < s.degree; n++) {
        const float next = ((float)(2 * n + 1) * z * legendre - (float)(n + m) * before) / (float)(n - m + 1);
        before = legendre;
        legendre = next;
    }
    return s.factor * legendre * (s.order < 0 ? im : re);
}

/* Returns the patterns of a source and a receiver. facing: the direction along the source's axis; turned: along the
 * receiver's. */
__device__ __forceinline__ float pattern(const scene &s, float facing, const float turned[3], float inverse) {
    float amplitude = s.directed[1] ? fmaf(facing, inverse, s.omni[1]) : 1.0f;
    if (s.directed[0])
        amplitude *= fmaf(turned[0], inverse, s.omni[0]);
    if (s.degree > 0)
        amplitude *= harmonic(s, turned[0] * inverse, turned[1] * inverse, turned[2] * inverse);
    return amplitude;
}

/* Returns the direction of the set that is nearest to an image `d` away, as gc_sofa_nearest does in double precision:
 * on the shell of the nearest distance, and of directions that are the same the nearest in distance. */
__device__ int nearest_direction(const gck_ears &e, float d, const float turned[3]) {
    const float same = 4e-7f * d;
    float best = -2 * d, off = 0.0f;
    int shell = 0, found = 0;
    for (int i = 1; i < e.shells; i++)
        if (fabsf(e.shell[i].distance - d) < fabsf(e.shell[shell].distance - d))
            shell = i;
    for (int i = e.shell[shell].begin; i < e.shell[shell].end; i++) {
        const float4 at = e.direction[i];
        const float along = fmaf(at.x, turned[0], fmaf(at.y, turned[1], at.z * turned[2])), apart = fabsf(at.w - d);
        if (along > best + same || (along > best - same && apart < off)) {
            best = along;
            off = apart;
            found = i;
        }
    }
    return found;
}

/* Adds an image through the response of the nearest direction. Its amplitude is that behind the air, because the taps
 * are not farther away. */
__device__ void deposit_response(const gck_rooms &r, const scene &s, int *sums, wide d, float amplitude,
                                 const float turned[3]) {
    const int64_t response = (int64_t)nearest_direction(r.ears, d.high, turned) * r.channels + s.ear;
    const float *taps = r.ears.taps + response * r.ears.frames;
    wide at = add(d, {r.ears.offset[response], 0.0f});
#pragma unroll 1
    for (int k = 0; k < r.ears.frames; k++) {
        deposit(s, sums, at.high, at.low, amplitude * taps[k]);
        at = add(at, {(float)STEPS, 0.0f});
    }
}

/* Images that differ in the first axis only. */
struct alignas(16) row {
    int start, first, hole_at, hole; /* number of the first image among those of 32 rows; its n; a gap in the row */
    wide across;                     /* square of the distance in the other axes */
    float loss, facing;
    float turned[3], unused;
};

/* Makes row q. Returns its number of images. */
__device__ int make_row(const scene &s, int q, row *to) {
    const int i = s.begin[0] + q / s.count[1], j = s.begin[1] + q % s.count[1], left = s.limit - abs(i) - abs(j);
    const wide x = coordinate(s.of[1], i), y = coordinate(s.of[2], j);
    const axis &z = s.of[0];
    to->across = add(square(x), square(y));
    const float outer = s.farthest - to->across.high, inner = s.nearest - to->across.high;
    if (!(outer > 0) || left < 0 || q >= s.count[0] * s.count[1])
        return 0;
    const float far = sqrtf(outer), near = sqrtf(fmaxf(inner, 0.0f));
    int last;
    set_rows(z, far, left, &to->first, &last);
    last += to->first - 1;
    const int open = max((int)ceilf((z.at - near) * z.cells), to->first);
    const int close = min((int)floorf((z.at + near) * z.cells) - 1, last);
    to->hole = inner > 0 ? max(close - open + 1, 0) : 0;
    to->hole_at = open - to->first;
    to->loss = loss_of(s.of[1], i) + loss_of(s.of[2], j);
    to->facing = (i & 1 ? x.high : -x.high) * s.of[1].facing + (j & 1 ? y.high : -y.high) * s.of[2].facing;
    for (int k = 0; k < 3; k++)
        to->turned[k] = x.high * s.of[1].turned[k] + y.high * s.of[2].turned[k];
    return max(last - to->first + 1 - to->hole, 0);
}

/* Adds image k of a row. */
template <bool DIRECTED>
__device__ __forceinline__ void add_image(const gck_rooms &r, const scene &s, const row &from, int k, int *sums) {
    const axis &a = s.of[0];
    const int n = from.first + k + (k >= from.hole_at ? from.hole : 0);
    const wide z = coordinate(a, n), whole = add(from.across, square(z));
    const float inverse = inverse_root(whole.high), d = __fmul_rn(whole.high, inverse);
    const float more = (fmaf(-d, d, whole.high) + whole.low) * (0.5f * inverse);
    float amplitude = s.unit * inverse * power_of_two(-from.loss - loss_of(a, n));
    const float left = (s.reach - d) * s.fade;
    if (left < 1.0f)
        amplitude *= sqrtf(fmaxf(left, 0.0f));
    if (DIRECTED) {
        float turned[3];
        for (int c = 0; c < 3; c++)
            turned[c] = fmaf(z.high, a.turned[c], from.turned[c]);
        amplitude *= pattern(s, fmaf(n & 1 ? z.high : -z.high, a.facing, from.facing), turned, inverse);
        if (r.ears.taps) {
            deposit_response(r, s, sums, {d, more}, amplitude * power_of_two(-s.damping * d), turned);
            return;
        }
    }
    deposit(s, sums, d, more, amplitude);
}

template <bool DIRECTED>
__device__ __forceinline__ void add_images(const gck_rooms &r, const scene &s, row *rows, int *sums) {
    const int lane = threadIdx.x % 32, all = (int)min((int64_t)s.count[0] * s.count[1], INT64_C(1) << 30);
    for (int q = threadIdx.x - lane; q < all; q += THREADS) {
        row made;
        const int count = make_row(s, q + lane, &made);
        int end = count;
#pragma unroll
        for (int k = 1; k < 32; k *= 2) {
            const int before = __shfl_up_sync(0xffffffffu, end, k);
            end += lane >= k ? before : 0;
        }
        made.start = end - count;
        const int total = __shfl_sync(0xffffffffu, end, 31);
        rows[lane] = made;
        __syncwarp();
        for (int at = 0, next = 0; at < total; at += 32) {
            int mine = next;
            while (next < 31 &&
                   rows[next + 1].start < at + 32) /* the rows that begin before the last of these images */
                mine += rows[++next].start <= at + lane;
            if (at + lane < total)
                add_image<DIRECTED>(r, s, rows[mine], at + lane - rows[mine].start, sums);
        }
        __syncwarp();
    }
}

/* ---- Noise ------------------------------------------------------------------------------------------------------- */

__device__ uint64_t mix_bits(uint64_t z) {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Adds the image at random of frame `slot` (draw_image of cpu_rooms.c). Not inlined, for its registers. */
__device__ __noinline__ void add_noise_image(const gck_rooms &r, const scene &s, const input &in, int64_t slot,
                                             int *sums) {
    const uint64_t step = 0x9e3779b97f4a7c15u, state = mix_bits(in.seed + (uint64_t)slot);
    const uint64_t a = mix_bits(state + step), b = mix_bits(state + 2 * step);
    const double far = ((double)slot + (double)(a >> 11) * 0x1p-53) * STEPS, up = (double)(b >> 32) * 0x1p-31 - 1;
    double sine, cosine, squares = 0;
    float loss = 0.0f, facing = 0.0f, turned[3] = {0.0f, 0.0f, 0.0f};
    int order = 0;
    sincospi((double)(b & 0xffffffff) * 0x1p-31, &sine, &cosine);
#pragma unroll 1
    for (int i = 0; i < 3; i++) {
        const axis &x = s.of[i];
        const int k = x.side;
        const double n = k == 2 ? up : sqrt(fmax(0.0, 1 - up * up)) * (k ? sine : cosine);
        const double place = in.first_receiver[k] * r.per_metre + far * n;
        const int cell = (int)floor(place / (in.size[k] * r.per_metre));
        const double moved = in.source[k] - in.first_source[k], mirror = cell & 1 ? -1 : 1;
        const double d = place + (mirror * moved - in.receiver[k]) * r.per_metre;
        squares += d * d;
        facing -= (float)(mirror * d) * x.facing;
        for (int c = 0; c < 3; c++)
            turned[c] = fmaf((float)d, x.turned[c], turned[c]);
        loss += loss_of(x, cell);
        order += abs(cell);
    }
    const double distance = fmax(sqrt(squares), 0.01 * r.per_metre);
    const float d = (float)distance, kept = fminf(fmaxf((s.reach - d) * s.fade, 0.0f), 1.0f);
    const float energy = order > s.limit ? 1.0f : 1.0f - kept;
    if (!(energy > 0.0f) || d < s.direct)
        return;
    float amplitude = s.unit * (float)far / d * sqrtf(energy * s.crowd);
    loss = (r.diffuse ? s.mean * d : loss) + (r.ears.taps ? s.damping * d : 0.0f);
    amplitude *= power_of_two(-loss) * pattern(s, facing, turned, 1 / d);
    amplitude = fminf(amplitude, s.largest);
    amplitude = a & 1 ? -amplitude : amplitude;
    const wide at = widen(distance);
    if (r.ears.taps)
        deposit_response(r, s, sums, at, amplitude, turned);
    else
        deposit(s, sums, at.high, at.low, amplitude);
}

__device__ void add_noise(const gck_rooms &r, const scene &s, const input &in, int *sums) {
    double apart = 0; /* more than the difference of the distances of an image */
    for (int k = 0; k < 3; k++)
        apart += fabs(in.receiver[k] - in.first_receiver[k]) + fabs(in.source[k] - in.first_source[k]);
    apart = apart * r.per_metre + STEPS;
    const double begin = r.order < 0 ? s.reach - 1 / s.fade : s.direct;
    const int64_t first = (int64_t)(fmax(fmax((double)s.base - r.ears.late, begin) - apart, 0.0) / STEPS);
    const int64_t end = (int64_t)(((double)s.base + s.places + r.ears.early + apart) / STEPS) + 1;
#pragma unroll 1
    for (int64_t slot = first + threadIdx.x; slot < end; slot += THREADS)
        add_noise_image(r, s, in, slot, sums);
}

/* ---- From the accumulator to frames ------------------------------------------------------------------------------ */

/* Makes floats of the accumulator, with the absorption of air over the distance of each step. */
__device__ void convert(const gck_rooms &r, const scene &s, int *sums, int count) {
    const float damping = r.ears.taps ? 0.0f : -s.damping, one = 1 / s.scale;
    for (int i = threadIdx.x; i < count; i += THREADS)
        sums[i] = __float_as_int((float)sums[i] * one * power_of_two(damping * fmaxf((float)(s.base + i - 1), 0.0f)));
}

/* Writes frames: frame n is the sum over j of taps[j] sums[STEPS n + j]. */
__device__ void reduce(const float *sums, const float *taps, int frames, float *out) {
    const int first = threadIdx.x * TOGETHER;
    const float *from = sums + STEPS * first;
    float sum[TOGETHER] = {};
    if (first >= frames)
        return;
#pragma unroll 1
    for (int phase = 0; phase < STEPS; phase++) {
        float x[TOGETHER];
#pragma unroll
        for (int n = 0; n < TOGETHER - 1; n++)
            x[n] = from[STEPS * n + phase];
#pragma unroll 1
        for (int q = 0; q < TAPS / STEPS; q += TOGETHER) {
#pragma unroll
            for (int k = 0; k < TOGETHER; k++) {
                const float tap = taps[STEPS * (q + k) + phase];
                x[(k + TOGETHER - 1) % TOGETHER] = from[STEPS * (q + k + TOGETHER - 1) + phase];
#pragma unroll
                for (int n = 0; n < TOGETHER; n++)
                    sum[n] = fmaf(tap, x[(k + n) % TOGETHER], sum[n]);
            }
        }
    }
#pragma unroll
    for (int n = 0; n < TOGETHER; n++)
        if (first + n < frames)
            out[first + n] = sum[n];
}

/* Returns the segments of a response, and the frames of one in *frames. They do not depend on the batch, so that a
 * response has the same bytes in any. */
__host__ __device__ int64_t cut(int64_t all, int *frames) {
    const int64_t segments = (all + SEGMENT - 1) / SEGMENT;
    *frames = (int)(((all + segments - 1) / segments + TOGETHER - 1) / TOGETHER * TOGETHER);
    return (all + *frames - 1) / *frames;
}

/* Elements of the accumulator of a segment. */
__host__ __device__ int places_of(int frames) {
    return (STEPS * (frames + TAPS / STEPS) + 2 * MARGIN) / 4 * 4;
}

/* block.x: segments, the last ones first, which have the most images, x channels x bands. */
__global__ void __launch_bounds__(THREADS, 2)
    images(const __grid_constant__ gck_rooms r, int64_t first, int64_t count, float *out) {
    extern __shared__ int sums[];
    __shared__ scene s;
    __shared__ input in;
    int frames;
    const int64_t segments = cut(r.frames, &frames), lane = blockIdx.x % (count * r.bands);
    const int64_t index = first + lane / r.bands, response = index / r.channels,
                  begin = (segments - 1 - blockIdx.x / (count * r.bands)) * frames;
    const int64_t room = response / (r.sources * r.receivers), each = GCK_ROOM_POINT;
    const int places = places_of(frames);
    row *rows = (row *)(sums + places) + threadIdx.x / 32 * 32;
    float *taps = (float *)((row *)(sums + places) + THREADS);
    if (threadIdx.x == 0)
        in = {r.room + room * GCK_ROOM_DOUBLES,
              r.source + response / r.receivers * each,
              r.receiver + (room * r.receivers + response % r.receivers) * each,
              r.source + room * r.sources * each,
              r.receiver + room * r.receivers * each,
              r.walls + room,
              (int)(lane % r.bands),
              mix_bits(r.seeds ? r.seeds[room] : r.seed + (uint64_t)room * 0x9e3779b97f4a7c15u)};
    __syncthreads();
    if (threadIdx.x < 3) {
        int shortest = 0;
        for (int k = 1; k < 3; k++)
            shortest = in.size[k] < in.size[shortest] ? k : shortest;
        set_axis(r, &s.of[threadIdx.x], (shortest + threadIdx.x) % 3, in);
    }
    for (int i = threadIdx.x; i < places; i += THREADS)
        sums[i] = 0;
    for (int i = threadIdx.x; i < TAPS; i += THREADS)
        taps[i] = r.taps[i];
    __syncthreads();
    if (threadIdx.x == 0)
        set_scene(r, &s, in, (int)(index % r.channels), begin, frames);
    __syncthreads();
    if (s.directed[0] || s.directed[1] || r.channels > 1 || r.ears.taps)
        add_images<true>(r, s, rows, sums);
    else
        add_images<false>(r, s, rows, sums);
    if (s.noisy)
        add_noise(r, s, in, sums);
    __syncthreads();
    convert(r, s, sums, places);
    __syncthreads(); /* the filter begins behind what the first images have before its steps */
    reduce((const float *)sums + 3, taps, (int)min((int64_t)frames, r.frames - begin), out + lane * r.frames + begin);
}

int shared_of(int frames) {
    return places_of(frames) * (int)sizeof(int) + THREADS * (int)sizeof(row) + TAPS * (int)sizeof(float);
}

/* ---- Losses from decay times ------------------------------------------------------------------------------------- */

/* The directions of an octant, two for each lane: Gauss and Legendre's points in the height and in the azimuth. */
struct directions {
    float rate[2], weight[2]; /* nepers of energy a metre */
};

__constant__ float point[] = {0.1834346424956498f, 0.5255324099163290f, 0.7966664774136267f, 0.9602898564975363f};
__constant__ float weight[] = {0.3626837833783620f, 0.3137066458778873f, 0.2223810344533745f, 0.1012285362903763f};

__device__ directions directions_of(const double *size, const float loss[6]) {
    directions d;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int u = threadIdx.x / GRID + i * (32 / GRID), v = threadIdx.x % GRID;
        const float z = 0.5f + (u % 2 ? 0.5f : -0.5f) * point[u / 2], flat = sqrtf(1.0f - z * z);
        const float angle = 0.25f + (v % 2 ? 0.25f : -0.25f) * point[v / 2];
        d.weight[i] = weight[u / 2] * weight[v / 2] / 4;
        d.rate[i] = flat * cospif(angle) * (loss[0] + loss[1]) / (2 * (float)size[0]) +
                    flat * sinpif(angle) * (loss[2] + loss[3]) / (2 * (float)size[1]) +
                    z * (loss[4] + loss[5]) / (2 * (float)size[2]);
    }
    return d;
}

/* These three are those of conv/rooms.c, for the lanes of a warp together. */
__device__ float energy_at(const directions &d, float metres, bool to_come, float *slope) {
    float sum = 0.0f, fall = 0.0f;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const float energy = d.weight[i] * expf(-d.rate[i] * metres);
        sum += to_come ? energy / d.rate[i] : energy;
        fall += to_come ? energy : energy * d.rate[i];
    }
#pragma unroll
    for (int k = 16; k > 0; k /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, k);
        fall += __shfl_xor_sync(0xffffffffu, fall, k);
    }
    *slope = fall;
    return sum;
}

__device__ float fall(const directions &d, float nepers, bool to_come) {
    float at = 0.0f, slope, off = nepers;
    const float whole = energy_at(d, 0.0f, to_come, &slope);
    for (int step = 0; step < 60 && off > 1e-4f * nepers; step++) {
        const float energy = energy_at(d, at, to_come, &slope);
        off = logf(energy / whole) + nepers;
        at += off * energy / slope;
    }
    return at;
}

__device__ float decay_of(const directions &d) {
    const int points = 16;
    const float ten = 2.302585093f, from = fall(d, 0.5f * ten, true), to = fall(d, 3.5f * ten, true);
    float covariance = 0.0f, variance = 0.0f, slope;
    for (int i = 0; i < points; i++) {
        const float off = (float)i / (float)(points - 1) - 0.5f;
        covariance += off * logf(energy_at(d, from + (off + 0.5f) * (to - from), true, &slope));
        variance += off * off;
    }
    return NEPERS_60DB * (to - from) * variance / -covariance;
}

/* Scales the losses of a band to its decay time. A wall absorbs at most 99 %. `unit`: the T30 with the losses as they
 * are, in metres. */
__device__ void set_losses(const gck_rooms &r, const double *size, float rt60, float unit, float loss[6]) {
    const float volume = (float)(size[0] * size[1] * size[2]);
    const bool sabine = r.formula == 2;
    float weight = 0.0f, most = 0.0f;
#pragma unroll
    for (int w = 0; w < 6; w++) {
        weight += loss[w] * volume / (float)size[w / 2];
        most = fmaxf(most, loss[w]);
    }
    const float asked =
        r.formula == 0 ? unit / ((float)r.speed * rt60) : 4 * volume * NEPERS_60DB / ((float)r.speed * rt60 * weight);
    const float scale = fminf(asked, (sabine ? 0.99f : 4.605170186f) / most);
#pragma unroll
    for (int w = 0; w < 6; w++)
        loss[w] = sabine ? -log1pf(-scale * loss[w]) : scale * loss[w];
}

/* One warp for each room. */
__global__ void __launch_bounds__(32) prepare(const gck_rooms r) {
    const double *size = r.room + (int64_t)blockIdx.x * GCK_ROOM_DOUBLES, *absorption = size + 3;
    const double *rt60 = absorption + 6 * BANDS;
    const int lane = threadIdx.x;
    gck_walls *to = r.walls + blockIdx.x;
    bool valid = lane >= 3 || (size[lane % 3] >= 0.1 && size[lane % 3] <= 1000), none = true;
    for (int i = lane; i < 6 * BANDS; i += 32) {
        valid = valid && absorption[i] >= 0 && absorption[i] <= 1;
        none = none && !(absorption[i] > 0);
    }
    const double time = lane < BANDS ? rt60[lane] : rt60[0];
    const bool asked = __any_sync(0xffffffffu, time != 0);
    none = __all_sync(0xffffffffu, none);
    valid = valid && (!asked || (time >= 0.01 && time <= 1000));
    float before[6] = {}, unit = 0.0f, slowest = HUGE_VALF,
          reach = r.seconds > 0 ? (float)(r.seconds * r.speed) : HUGE_VALF;
    directions slow = {};
    for (int band = 0; band < r.bands; band++) {
        float loss[6], sum = 0.0f;
        bool same = band > 0;
#pragma unroll
        for (int w = 0; w < 6; w++) {
            const double a = absorption[w * BANDS + band];
            loss[w] = fminf(a < 0.5 ? -log1pf(-(float)a) : -logf((float)(1 - a)), LOSS_ALL);
            loss[w] = asked && none ? 1.0f : loss[w];
            same = same && loss[w] == before[w];
            before[w] = loss[w];
            sum += loss[w];
        }
        if (asked) {
            valid = valid && sum > 0.0f;
            if (r.formula == 0 && !same)
                unit = decay_of(directions_of(size, loss));
            set_losses(r, size, (float)rt60[band], unit, loss);
            sum = loss[0] + loss[1] + loss[2] + loss[3] + loss[4] + loss[5];
        }
        if (r.nepers > 0 && sum < slowest) {
            slowest = sum;
            slow = directions_of(size, loss);
        }
#pragma unroll
        for (int w = 0; w < 6; w++)
            if (lane == w)
                to->loss[w][band] = loss[w];
    }
    if (r.nepers > 0 && slowest > 0.0f)
        reach = fminf(reach, fall(slow, (float)r.nepers, false));
    valid = __all_sync(0xffffffffu, valid);
    if (lane == 0) {
        to->reach = reach * (float)r.per_metre;
        to->valid = valid;
    }
}

/* ---- Biquads ----------------------------------------------------------------------------------------------------- */

struct biquad {
    double b0, b1, b2, a1, a2;
};

struct state {
    double first, second;
};

__device__ __forceinline__ double step(const biquad &q, state *s, double in) {
    const double out = q.b0 * in + s->first;
    s->first = q.b1 * in - q.a1 * out + s->second;
    s->second = q.b2 * in - q.a2 * out;
    return out;
}

/* A thread has a run of frames. It filters them from rest; the states at the beginnings of the runs follow one after
 * another; and it filters them again from there. */
__global__ void __launch_bounds__(THREADS) filter(float *rows, int64_t frames, const biquad q) {
    __shared__ state at[THREADS];
    const int64_t run = (frames + THREADS - 1) / THREADS, begin = min(threadIdx.x * run, frames);
    const int64_t end = min(begin + run, frames);
    float *row = rows + blockIdx.x * frames;
    state s = {0, 0}, unit[2] = {{1, 0}, {0, 1}};
    for (int64_t n = begin; n < end; n++)
        step(q, &s, row[n]);
    at[threadIdx.x] = s;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int64_t n = 0; n < run; n++) {
            step(q, &unit[0], 0);
            step(q, &unit[1], 0);
        }
        s = {0, 0};
        for (int t = 0; t < THREADS; t++) {
            const state rest = at[t];
            at[t] = s;
            s = {unit[0].first * s.first + unit[1].first * s.second + rest.first,
                 unit[0].second * s.first + unit[1].second * s.second + rest.second};
        }
    }
    __syncthreads();
    s = at[threadIdx.x];
    for (int64_t n = begin; n < end; n++)
        row[n] = (float)step(q, &s, row[n]);
}

} // namespace

cudaError_t gck_rooms_prepare(const gck_rooms *rooms, cudaStream_t stream) {
    prepare<<<(unsigned)rooms->rooms, 32, 0, stream>>>(*rooms);
    return cudaGetLastError();
}

cudaError_t gck_rooms_load(void) {
    cudaFuncAttributes attributes;
    cudaError_t err = allow_shared(images, shared_of(SEGMENT));
    const void *kernels[] = {(const void *)images, (const void *)prepare, (const void *)filter};
    for (const void *kernel : kernels)
        err = err ? err : cudaFuncGetAttributes(&attributes, kernel);
    return err;
}

cudaError_t gck_rooms_images(const gck_rooms *rooms, int64_t first, int64_t count, float *out, cudaStream_t stream) {
    int frames;
    const int64_t blocks = cut(rooms->frames, &frames) * count * rooms->bands;
    if (blocks > INT_MAX)
        return cudaErrorInvalidConfiguration;
    images<<<(unsigned)blocks, THREADS, shared_of(frames), stream>>>(*rooms, first, count, out);
    return cudaGetLastError();
}

cudaError_t gck_rooms_filter(float *rows, int64_t count, int64_t frames, const double b[5], cudaStream_t stream) {
    filter<<<(unsigned)count, THREADS, 0, stream>>>(rows, frames, biquad{b[0], b[1], b[2], b[3], b[4]});
    return cudaGetLastError();
}
