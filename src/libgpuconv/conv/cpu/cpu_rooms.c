/*
 * Rooms by image sources on the CPU (gpuconv_rooms.h). A thread computes the response of one source at one receiver:
 *
 *   images -> sums: 6 steps a frame, one lane for each band (and ambisonic channel) -> air -> frames -> bands added
 *
 * Image n of an axis is at n L + s for even n, (n + 1) L - s for odd n, and was reflected |n| times by the two walls in
 * turn. Coordinates and products of reflections are tables of each axis. The images of a room are then rows along its
 * shortest side: one distance, one step, and for each lane one product of the gain of the row with that of the table.
 * An image is a cubic B-spline of four steps in the sums (dsp/image_kernels.c). One filter for all images makes the
 * windowed sinc of it: its spectrum is that of the windowed sinc divided by that of the spline, (sin(pi f / 6) / (pi f
 * / 6))^4 with f in cycles a frame. What is left of the spline's repetition at 6 f0 is at most (f / (6 - f))^4 of an
 * image, -86 dB at the highest frequencies and far less below. The absorption of air depends on the distance only, that
 * is on the step, and is applied to the sums.
 *
 * The noise of the tail is made of images too. In each frame one is put at a random place on the sphere that arrives in
 * it, and gets the reflections of the room's repetition in which it lies, and the energy of all images of this frame.
 */
#include "cpu_rooms.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/random.h"
#include "libgpuconv/core/subnormal.h"
#include "libgpuconv/dsp/fft.h"
#include "libgpuconv/dsp/image_kernels.h"
#include "libgpuconv/ir/ambisonic.h"
#include "libgpuconv/ir/sofa.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846
#define SUMS_BYTES (INT64_C(256) << 20) /* of a thread, above which bands are computed one after another */
#define NO_FADE 1e30
enum { KERNEL_FRAMES = 24, AIR_RUN = 128, SPARE = 7, KEPT_POINTS = 1 << 17, LANES_MAX = 25 * GPUCONV_ROOM_BANDS + 7 };

/* ---- Shared by the threads --------------------------------------------------------------------------------------- */

/* Scratch memory of a thread. */
typedef struct scratch {
    float *sums, *frames;    /* the accumulator; its frames, `lanes` each */
    float *signal, *spectra; /* one block; those of `bands_at_once` bands */
} scratch;

typedef struct work {
    const gc_rooms *rooms;
    float *output;
    const gc_simd *simd;
    int bands, bands_at_once; /* the most bands of a room, and of an accumulator */
    int lanes;                /* most lanes of an accumulator */
    int channels;             /* of a receiver in the accumulator: one ear at a time */
    int64_t steps;            /* of the accumulator */
    int64_t before;           /* those before its frames, for images that began earlier and are heard through ears */
    int64_t early;            /* steps by which ears hear an image before its time */
    double per_metre;         /* steps a metre */
    double end;               /* metres from which on no image is in a response whose source sounds at its origin */
    const float *taps, *moment;
    bool exact;        /* air absorbs so much in a frame that its change within a kernel counts */
    const gc_fft *fft; /* for the sum of bands; NULL: every room has one */
    int64_t points;    /* of its transforms */
    int64_t lead;      /* frames by which the filters of bands delay */
    const float *band; /* spectra of their filters */
    int picks;         /* bands that are computed for walls that are alike in all bands, instead of all */
    const int *pick;
    const float *picked; /* spectra of their filters */
    float *spectra;      /* of the first thread, kept in the place; NULL: for one band at a time */
    scratch *scratch;
    atomic_bool failed; /* a thread had no memory */
} work;

/* Fills the filter that makes frames of the accumulator, and its moment. Returns false without memory. */
static bool design_taps(gc_room_filters *f) {
    f->made = f->made || gc_room_reduction(f->taps);
    for (int j = 0; j < GC_IMAGE_TAPS; j++)
        f->moment[j] = (float)(j - GC_IMAGE_HALF) * f->taps[j];
    return f->made;
}

static void free_bands(gc_room_filters *f, int size) {
    gc_fft_free(f->fft[size]);
    free(f->band[size]);
    f->fft[size] = NULL;
    f->band[size] = NULL;
}

void gc_room_filters_free(gc_room_filters *f) {
    for (int i = 0; i < GC_ROOM_SIZES; i++)
        free_bands(f, i);
}

/*
 * Picks bands for walls that are alike in all bands, which differ by the absorption of air only: the decays exp(-a t)
 * of the others within `seconds` are sums of those of the picks within 3 10^-6 (root mean square). A pivoted Cholesky
 * decomposition of their products G = U^T U takes the band that is farthest from the picks until none is farther; pick
 * k belongs to row k of U, and the factors c of a band with column u follow from the columns of the picks, U_p c = u.
 * Fills the spectra of the picks, which are those of the bands times the factors.
 */
static void pick_bands(const gc_rooms *r, double seconds, int64_t floats, gc_room_filters *f, int size) {
    double left[GPUCONV_ROOM_BANDS][GPUCONV_ROOM_BANDS], u[GPUCONV_ROOM_BANDS][GPUCONV_ROOM_BANDS];
    double whole[GPUCONV_ROOM_BANDS], factor[GPUCONV_ROOM_BANDS];
    const int bands = r->bands;
    int *pick = f->pick[size], picks = 0;
    for (int i = 0; i < bands; i++)
        for (int j = 0; j < bands; j++) {
            const double both = (r->air[i] + r->air[j]) * r->speed;
            left[i][j] = both > 0 ? -expm1(-both * seconds) / both : seconds;
            whole[i] = left[i][i];
        }
    for (; picks < bands; picks++) {
        int p = 0;
        for (int b = 1; b < bands; b++)
            p = left[b][b] / whole[b] > left[p][p] / whole[p] ? b : p;
        if (left[p][p] < 1e-11 * whole[p])
            break;
        pick[picks] = p;
        for (int b = 0; b < bands; b++)
            u[picks][b] = left[p][b] / sqrt(left[p][p]);
        for (int i = 0; i < bands; i++)
            for (int j = 0; j < bands; j++)
                left[i][j] -= u[picks][i] * u[picks][j];
    }
    f->picks[size] = picks;
    float *picked = f->band[size] + 2 * bands * floats;
    for (int b = 0; b < bands; b++)
        for (int k = picks - 1; k >= 0; k--) {
            factor[k] = u[k][b];
            for (int j = k + 1; j < picks; j++)
                factor[k] -= u[k][pick[j]] * factor[j];
            factor[k] /= u[k][pick[k]];
            for (int64_t i = 0; i < floats; i++)
                picked[k * floats + i] += (float)factor[k] * f->band[size][b * floats + i];
        }
}

/* Makes the transform and the spectra of the filters of the bands. Returns false without memory. */
static bool make_bands(const work *w, gc_room_filters *f, int size) {
    const gc_rooms *r = w->rooms;
    const int64_t taps = 2 * w->lead + 1;
    gc_fft *fft = f->fft[size] = gc_fft_new(w->simd, w->points);
    float *band = f->band[size] = fft ? gc_calloc(3 * gc_fft_floats(fft) * r->bands, sizeof *band) : NULL;
    float *filters = gc_room_band_filters(r), *wide = gc_calloc(w->points, sizeof *wide);
    const bool good = band && filters && wide;
    for (int b = 0; b < r->bands && good; b++) {
        for (int64_t i = 0; i < taps; i++)
            wide[i] = filters[b * taps + i] * 2 / (float)w->points;
        gc_fft_forward(fft, wide, band + b * gc_fft_floats(fft));
    }
    free(filters);
    free(wide);
    if (good)
        pick_bands(r, (double)w->points / r->job.rate, gc_fft_floats(fft), f, size);
    else
        free_bands(f, size);
    return good;
}

/* Takes the spectra of the filters of the bands, which are made unless the last job had them. *size: their place.
 * Returns false without memory. */
static bool design_bands(work *w, gc_room_filters *f, int *size) {
    const gc_rooms *r = w->rooms;
    w->lead = gc_room_band_lead(r->job.rate);
    w->points =
        gc_power_of_two(gc_max(gc_max(r->job.frames, w->lead + 1) + w->lead, GC_FFT_MIN_POINTS)); /* behind: aliases */
    bool kept = f->rate == r->job.rate;
    for (int b = 0; b < r->bands && r->job.air; b++) {
        kept = kept && f->air[b] == r->air[b];
        f->air[b] = r->air[b];
    }
    if (!kept)
        gc_room_filters_free(f);
    f->rate = r->job.rate;
    *size = __builtin_ctzll((uint64_t)w->points);
    if (!f->band[*size] && !make_bands(w, f, *size))
        return false;
    const int64_t floats = gc_fft_floats(w->fft = f->fft[*size]);
    w->band = f->band[*size];
    w->spectra = w->bands_at_once > 1 ? f->band[*size] + floats * r->bands : NULL;
    w->picked = f->band[*size] + 2 * floats * r->bands;
    w->picks = f->picks[*size];
    w->pick = f->pick[*size];
    return true;
}

/* ---- One response ------------------------------------------------------------------------------------------------ */

/* The images of one axis, -most..most; tables point to image 0. */
typedef struct axis {
    int64_t most;
    double *to;        /* coordinate of the image minus that of the receiver */
    float *gain;       /* of the reflections, `stride` bands for each image */
    float *pattern[2]; /* receiver and source: the part that this axis adds to a pattern */
} axis;

typedef struct response {
    const work *w;
    const gpuconv_room *room;
    const gc_room *walls;
    const gpuconv_room_point *source, *receiver, *first_source, *first_receiver;
    int64_t index;                   /* of the room */
    bool alike;                      /* the walls are the same in all bands: their one sum serves all */
    int from, classes;               /* bands of the walls in this pass */
    int lanes, stride;               /* of the accumulator; bands of an image in the tables */
    double mean[GPUCONV_ROOM_BANDS]; /* nepers of amplitude a metre of a diffuse field */
    double facing[2][3];             /* axes of receiver and source times 1 - omni */
    bool directed[2];                /* whether they have a pattern */
    int ear;                         /* of job->ears: the receiver of the set */
    gc_rotation front;               /* of an ambisonic receiver */
    double direct;                   /* metres from the source to the receiver */
    double reach, fade, origin;      /* as in gc_image_row; without the filter's half */
    double end;                      /* metres from which on no image is in the response */
    axis axis[3];
    float *sums;
} response;

static bool is_odd(int64_t n) {
    return n & 1;
}

/* Returns the coordinate of image n of a coordinate s. */
static double image_of(int64_t n, double size, double s) {
    return is_odd(n) ? (double)(n + 1) * size - s : (double)n * size + s;
}

/* Fills the tables of an axis; `memory` has room for them. */
static void fill_axis(response *p, int a) {
    axis *x = &p->axis[a];
    const double size = p->room->size[a];
    for (int64_t n = -x->most; n <= x->most; n++) {
        const int64_t hits = n < 0 ? -n : n, first = (hits + 1) / 2, second = hits / 2;
        const int64_t low = n < 0 ? first : second, high = n < 0 ? second : first;
        x->to[n] = image_of(n, size, p->source->at[a]) - p->receiver->at[a];
        x->pattern[0][n] = (float)(p->facing[0][a] * x->to[n]);
        x->pattern[1][n] = (float)((is_odd(n) ? 1 : -1) * p->facing[1][a] * x->to[n]);
        for (int c = 0; c < p->classes; c++) {
            const double *loss[2] = {p->walls->loss[2 * a], p->walls->loss[2 * a + 1]};
            const double nepers =
                (low ? (double)low * loss[0][p->from + c] : 0) + (high ? (double)high * loss[1][p->from + c] : 0);
            x->gain[n * p->stride + c] = (float)exp(-nepers / 2);
        }
    }
}

/* Allocates and fills the tables. Returns NULL without memory; the caller frees the result. */
static void *make_tables(response *p, double farthest) {
    int64_t bytes = 0;
    for (int a = 0; a < 3; a++) {
        p->axis[a].most = (int64_t)(farthest / p->room->size[a]) + 2;
        bytes += (2 * p->axis[a].most + 1) * (int64_t)(sizeof(double) + (size_t)(p->stride + 2) * sizeof(float));
    }
    double *memory = gc_calloc(bytes, 1), *at = memory;
    float *next;
    for (int a = 0; a < 3 && memory; a++) {
        p->axis[a].to = at + p->axis[a].most;
        at += 2 * p->axis[a].most + 1;
    }
    next = (float *)at;
    for (int a = 0; a < 3 && memory; a++) {
        axis *x = &p->axis[a];
        const int64_t images = 2 * x->most + 1;
        x->gain = next + x->most * p->stride;
        x->pattern[0] = next + images * p->stride + x->most;
        x->pattern[1] = x->pattern[0] + images;
        next += images * (p->stride + 2);
        fill_axis(p, a);
    }
    return memory;
}

/* Adds the images of a row to the sums. Without channels `gain` and `outer` are those of the lanes; with channels those
 * of the bands, and `direction` has the directions of GC_IMAGE_BLOCK images or fewer. */
static void add_images(const response *p, gc_image_row *row, const float *outer, const double (*direction)[3]) {
    const gc_rooms *r = p->w->rooms;
    float wide[LANES_MAX], gain[GC_IMAGE_BLOCK * LANES_MAX];
    double value[25], in_head[3], degrees, shift[GC_IMAGE_BLOCK];
    const float *head[GC_IMAGE_BLOCK];
    const gpuconv_sofa *ears = r->job.ears;
    row->scale = p->w->per_metre;
    row->origin = p->origin + GC_IMAGE_HALF + (double)(p->w->before - p->w->early);
    row->limit = (double)(r->job.frames * GC_IMAGE_STEPS + 2 * GC_IMAGE_HALF + p->w->before);
    row->outer = outer;
    row->lanes = p->lanes;
    if (r->job.ambisonic) {
        for (int k = 0; k < p->lanes; k++)
            wide[k] = k < r->channels * p->classes ? outer[k % p->classes] : 0;
        for (int64_t i = 0; i < row->count; i++) {
            gc_rotate_to_head(&p->front, direction[i], in_head);
            gc_spherical_harmonics(r->job.ambisonic, in_head, value);
            const float *from = row->gain + i * row->stride;
            float *to = gain + i * p->lanes;
            for (int channel = 0; channel < r->channels; channel++, to += p->classes)
                for (int c = 0; c < p->classes; c++)
                    to[c] = (float)value[channel] * from[c];
            memset(to, 0, (size_t)(gain + (i + 1) * p->lanes - to) * sizeof *to);
        }
        row->outer = wide;
        row->gain = gain;
        row->stride = p->lanes;
    }
    for (int64_t i = 0; i < row->count && ears; i++) {
        const double *d = direction[i], metres = sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
        gc_rotate_to_head(&p->front, d, in_head);
        const int nearest = gc_sofa_nearest(ears, in_head, &degrees);
        head[i] = gc_sofa_taps(ears, nearest, p->ear);
        shift[i] = ears->delay[nearest * ears->receivers + p->ear] * GC_IMAGE_STEPS;
        memset(gain + i * p->lanes, 0, (size_t)p->lanes * sizeof *gain);
        for (int c = 0; c < p->classes; c++) /* here, because the taps of a head are not farther away */
            gain[i * p->lanes + c] =
                row->gain[i * row->stride + c] * (float)exp(-(r->job.air ? r->air[p->from + c] : 0) * metres);
    }
    if (ears) {
        row->gain = gain;
        row->stride = p->lanes;
        row->head = head;
        row->shift = shift;
        row->taps = (int)ears->responses->frames;
    }
    p->w->simd->image->add(row, p->sums);
}

/* Adds the images that differ in axis `in` only, from image `first` on, in blocks if they have channels. */
static void add_row(const response *p, int in, int64_t first, int64_t count, const int64_t at[3], double across) {
    const axis *x = &p->axis[in];
    const int u = (in + 1) % 3, v = (in + 2) % 3;
    const bool directions = p->w->rooms->job.ambisonic || p->w->rooms->job.ears;
    const int64_t block = directions ? GC_IMAGE_BLOCK : count;
    float outer[LANES_MAX];
    double direction[GC_IMAGE_BLOCK][3];
    for (int c = 0; c < p->lanes; c++) /* a row is short: no more is set than is read */
        outer[c] = c < p->classes ? p->axis[u].gain[at[u] * p->stride + c] * p->axis[v].gain[at[v] * p->stride + c] : 0;
    for (int64_t done = 0; done < count; done += block) {
        const int64_t n = first + done;
        gc_image_row row = {.count = gc_min(block, count - done),
                            .along = x->to + n,
                            .across = across,
                            .reach = p->reach,
                            .fade = p->fade,
                            .gain = x->gain + n * p->stride,
                            .stride = p->stride};
        for (int k = 0; k < 2; k++)
            if (p->directed[k])
                row.pattern[k] =
                    (gc_image_pattern){(float)(k ? p->source : p->receiver)->omni,
                                       p->axis[u].pattern[k][at[u]] + p->axis[v].pattern[k][at[v]], x->pattern[k] + n};
        for (int64_t i = 0; i < row.count && directions; i++) {
            direction[i][u] = p->axis[u].to[at[u]];
            direction[i][v] = p->axis[v].to[at[v]];
            direction[i][in] = x->to[n + i];
        }
        add_images(p, &row, outer, direction);
    }
}

/* Finds the images of an axis that may be nearer than `reach` in this coordinate, of at most `order` reflections. */
static int64_t find_range(const response *p, int a, double reach, int64_t order, int64_t *first) {
    const double size = p->room->size[a], at = p->receiver->at[a];
    const int64_t most = gc_min(order, p->axis[a].most);
    *first = gc_max((int64_t)floor((at - reach) / size), -most);
    return gc_min((int64_t)floor((at + reach) / size), most) - *first + 1;
}

static void add_all_images(const response *p) {
    int in = 0;
    for (int a = 1; a < 3; a++)
        in = p->room->size[a] < p->room->size[in] ? a : in;
    const int u = (in + 1) % 3, v = (in + 2) % 3, limit = p->w->rooms->job.images_order;
    const int64_t order = limit < 0 ? INT32_MAX : limit;
    const double square = p->reach * p->reach;
    int64_t at[3], begin_u, begin_v, begin;
    const int64_t count_u = find_range(p, u, p->reach, order, &begin_u);
    for (at[u] = begin_u; at[u] < begin_u + count_u && !gc_cancelled(); at[u]++) {
        const double x = p->axis[u].to[at[u]], left = square - x * x;
        if (left <= 0)
            continue;
        const int64_t order_v = order - llabs(at[u]), count_v = find_range(p, v, sqrt(left), order_v, &begin_v);
        for (at[v] = begin_v; at[v] < begin_v + count_v; at[v]++) {
            const double y = p->axis[v].to[at[v]], rest = left - y * y;
            if (rest <= 0)
                continue;
            const int64_t count = find_range(p, in, sqrt(rest), order_v - llabs(at[v]), &begin);
            if (count > 0)
                add_row(p, in, begin, count, at, x * x + y * y);
        }
    }
}

/* ---- Noise ------------------------------------------------------------------------------------------------------- */

static void add_noise(const response *p) {
    const gc_rooms *r = p->w->rooms;
    const gpuconv_rooms_job *job = &r->job;
    const double shell = r->speed / job->rate;
    const uint64_t seed =
        gc_mix_bits(job->seeds ? job->seeds[p->index] : job->seed + (uint64_t)p->index * GC_SPLITMIX_STEP);
    float gain[GC_IMAGE_BLOCK * LANES_MAX] = {0}, outer[LANES_MAX];
    double apart = 0, direction[GC_IMAGE_BLOCK][3];
    gc_image_drawn drawn;
    gc_image_field field = {.shell = shell,
                            .power = 4 * PI * shell / (p->room->size[0] * p->room->size[1] * p->room->size[2]),
                            .reach = p->reach,
                            .fade = p->fade,
                            .nearest = p->direct,
                            .order = job->images_order >= 0 ? job->images_order : INT32_MAX};
    for (int a = 0; a < 3; a++) {
        field.first[a] = p->first_receiver->at[a];
        field.receiver[a] = p->receiver->at[a];
        field.moved[a] = p->source->at[a] - p->first_source->at[a];
        field.per_size[a] = 1 / p->room->size[a];
        field.facing[0][a] = p->facing[0][a];
        field.facing[1][a] = p->facing[1][a];
        field.most[a] = (int)p->axis[a].most;
        apart += fabs(field.receiver[a] - field.first[a]) + fabs(field.moved[a]); /* more than distances differ */
    }
    for (int c = 0; c < LANES_MAX; c++)
        outer[c] = 1;
    const double begin = fmax((job->images_order >= 0 ? p->direct : p->reach - 1 / p->fade) - apart, 0);
    const int64_t last = (int64_t)((p->end + apart) / shell);
    for (int64_t slot = (int64_t)(begin / shell); slot <= last && !gc_cancelled(); slot += GC_IMAGE_BLOCK) {
        const int count = (int)gc_min(last + 1 - slot, GC_IMAGE_BLOCK);
        p->w->simd->image->draw(&field, seed, slot, count, &drawn);
        for (int i = 0; i < count; i++) {
            const float *g[3];
            for (int a = 0; a < 3; a++)
                g[a] = p->axis[a].gain + drawn.cell[a][i] * p->stride;
            for (int a = 0; a < 3 && (job->ambisonic || job->ears); a++)
                direction[i][a] = drawn.direction[a][i];
            for (int c = 0; c < p->classes; c++)
                gain[i * p->stride + c] =
                    drawn.amplitude[i] * (job->diffuse ? (float)exp(-p->mean[p->from + c] * drawn.distance[i])
                                                       : g[0][c] * g[1][c] * g[2][c]);
        }
        gc_image_row row = {
            .count = count, .along = drawn.distance, .reach = NO_FADE, .fade = 1, .gain = gain, .stride = p->stride};
        for (int k = 0; k < 2; k++)
            if (p->directed[k])
                row.pattern[k] = (gc_image_pattern){(float)(k ? p->source : p->receiver)->omni, 0, drawn.pattern[k]};
        add_images(p, &row, outer, (const double(*)[3])direction);
    }
}

/* ---- From sums to the output ------------------------------------------------------------------------------------- */

/* Multiplies the sums with the absorption of air over the distance of each step. */
static void absorb_air(const response *p) {
    const gc_rooms *r = p->w->rooms;
    const int lanes = p->w->channels * p->classes;
    float step[LANES_MAX], factor[LANES_MAX];
    for (int64_t m = 0; m < p->w->steps && r->job.air && !p->alike && !r->job.ears; m++) {
        const double past = fmax((double)(m - 1 - GC_IMAGE_HALF) - p->origin, 0);
        for (int lane = 0; lane < lanes && m % AIR_RUN == 0; lane++) {
            const double air = r->air[p->from + lane % p->classes] / p->w->per_metre;
            step[lane] = (float)exp(-air);
            factor[lane] = (float)exp(-air * past);
        }
        for (int lane = 0; lane < lanes; lane++) {
            p->sums[m * p->lanes + lane] *= factor[lane];
            factor[lane] *= step[lane];
        }
    }
}

/* Writes a band of walls that are alike in all bands. The frames of s(m) exp(-a m), the sums with the absorption of a
 * step, are exp(-a t) sum over j of taps_j exp(-a j) s(t + j), where t is the step of the frame, and exp(-a j) is 1 - a
 * j within 10^-5 for the steps of a kernel. */
static void absorb_frames(const response *p, const float *sum, const float *moment, int band, float *to) {
    const gc_rooms *r = p->w->rooms;
    const double air = r->air[band] / p->w->per_metre;
    const int64_t frames = r->job.frames;
    float power[AIR_RUN];
    for (int i = 0; i < AIR_RUN; i++)
        power[i] = (float)exp(-air * GC_IMAGE_STEPS * i);
    for (int64_t n = 0; n < frames; n += AIR_RUN) {
        const double past = fmax((double)n - p->origin / GC_IMAGE_STEPS, -AIR_RUN - KERNEL_FRAMES);
        const float factor = (float)exp(-air * GC_IMAGE_STEPS * past), slope = factor * (float)air;
        const int count = (int)gc_min(frames - n, AIR_RUN);
        for (int i = 0; i < count && p->lanes == 1; i++)
            to[n + i] = factor * power[i] * sum[n + i];
        for (int i = 0; i < count && p->lanes > 1; i++)
            to[n + i] = factor * power[i] * sum[(n + i) * p->lanes];
        for (int i = 0; i < count && moment; i++)
            to[n + i] -= slope * power[i] * moment[(n + i) * p->lanes];
    }
}

/* Filters in place by two biquads in one loop. */
static void pass_high(float *samples, int64_t frames, double q[2][5]) {
    double s1[2] = {0}, s2[2] = {0};
    for (int64_t n = 0; n < frames; n++) {
        double in = (double)samples[n];
        for (int k = 0; k < 2; k++) {
            const double out = q[k][0] * in + s1[k];
            s1[k] = q[k][1] * in - q[k][3] * out + s2[k];
            s2[k] = q[k][2] * in - q[k][4] * out;
            in = out;
        }
        samples[n] = (float)in;
    }
}

/* Writes the bands of this pass to one channel of the output, or adds them to it. */
static void write_channel(const response *p, const scratch *s, int channel, float *out) {
    const work *w = p->w;
    const int64_t frames = w->rooms->job.frames, floats = w->fft ? gc_fft_floats(w->fft) : 0;
    const float *x[GPUCONV_ROOM_BANDS], *h[GPUCONV_ROOM_BANDS];
    const bool picked = p->alike && frames - w->rooms->job.origin <= w->points;
    const int bands = picked ? w->picks : p->alike ? p->walls->bands : p->classes;
    for (int c = 0; c < bands; c++) {
        const float *from = s->frames + channel * p->classes + (p->alike ? 0 : c);
        float *to = p->walls->bands > 1 ? s->signal : out;
        if (p->alike)
            absorb_frames(p, from, w->exact ? from + (frames + SPARE) * p->lanes : NULL, picked ? w->pick[c] : c, to);
        for (int64_t n = 0; n < frames && !p->alike; n++)
            to[n] = from[n * p->lanes];
        if (p->walls->bands == 1)
            return;
        memset(to + frames, 0, (size_t)(w->points - frames) * sizeof *to);
        gc_fft_forward(w->fft, to, s->spectra + c * floats);
        x[c] = s->spectra + c * floats;
        h[c] = picked ? w->picked + c * floats : w->band + (p->from + c) * floats;
    }
    gc_fft_inverse(w->fft, x, h, bands, s->spectra, s->signal, w->lead);
    for (int64_t n = 0; n < frames; n++)
        out[n] = p->from ? out[n] + s->signal[n] : s->signal[n];
}

static void compute_pass(response *p, const scratch *s, float *out) {
    const work *w = p->w;
    const gpuconv_rooms_job *job = &w->rooms->job;
    const bool noise = job->tail && (p->walls->reach < p->end || job->images_order >= 0);
    void *tables = make_tables(p, noise ? p->end + p->room->size[0] + p->room->size[1] + p->room->size[2] : p->reach);
    if (!tables || !gc_set_memory(s->sums, 0, w->steps * p->lanes * (int64_t)sizeof *s->sums)) {
        atomic_store((atomic_bool *)&w->failed, true);
        free(tables);
        return;
    }
    add_all_images(p);
    if (noise)
        add_noise(p);
    free(tables);
    absorb_air(p);
    w->simd->image->reduce(s->sums + w->before * p->lanes, w->taps, p->lanes, job->frames, s->frames);
    if (p->alike && w->exact)
        w->simd->image->reduce(s->sums, w->moment, p->lanes, job->frames, s->frames + (job->frames + SPARE) * p->lanes);
    for (int c = 0; c < w->channels; c++)
        write_channel(p, s, c, out + (p->ear + c) * job->frames);
}

static void set_facing(const gpuconv_room_point *point, bool *directed, double facing[3]) {
    const double azimuth = point->azimuth * PI / 180, elevation = point->elevation * PI / 180, part = 1 - point->omni;
    *directed = part > 0;
    facing[0] = part * cos(elevation) * cos(azimuth);
    facing[1] = part * cos(elevation) * sin(azimuth);
    facing[2] = part * sin(elevation);
}

/* Returns the lanes of an accumulator for the given numbers of bands and channels. */
static int lanes_of(int count) {
    return count == 1 ? 1 : (int)gc_round_up(count, 8);
}

/* Computes response `index`: of a room, a source and a receiver. */
static void compute_response(void *context, int64_t index, int worker) {
    work *w = context;
    const gpuconv_rooms_job *job = &w->rooms->job;
    const int64_t room = index / (job->sources * job->receivers);
    response p = {.w = w,
                  .room = &job->room[room],
                  .walls = &w->rooms->room[room],
                  .source = &job->source[index / job->receivers],
                  .receiver = &job->receiver[room * job->receivers + index % job->receivers],
                  .first_source = w->rooms->first ? &w->rooms->first[0] : &job->source[room * job->sources],
                  .first_receiver = w->rooms->first ? &w->rooms->first[1] : &job->receiver[room * job->receivers],
                  .index = room,
                  .sums = w->scratch[worker].sums,
                  .fade = NO_FADE};
    const int bands = p.walls->bands;
    p.alike = bands > 1 && w->bands_at_once == w->bands && !(job->air && job->ears);
    for (int i = 0; i < 6 * bands; i++)
        p.alike = p.alike && p.walls->loss[i / bands][i % bands] == p.walls->loss[i / bands][0];
    const int bands_at_once = p.alike ? 1 : bands < w->bands_at_once ? bands : w->bands_at_once;
    float *out = w->output + index * w->rooms->channels * job->frames;
    p.lanes = lanes_of(w->channels * bands_at_once);
    p.stride = job->ambisonic ? bands_at_once : p.lanes;
    set_facing(p.receiver, &p.directed[0], p.facing[0]);
    set_facing(p.source, &p.directed[1], p.facing[1]);
    p.directed[0] = p.directed[0] && !job->ambisonic && !job->ears;
    p.front = gc_rotation_of(p.receiver->azimuth, p.receiver->elevation, 0);
    p.direct = gc_room_distance(p.source->at, p.receiver->at);
    p.origin = (double)(job->origin * GC_IMAGE_STEPS) - (w->rooms->aligned ? p.direct * w->per_metre : 0);
    p.end = w->end + (w->rooms->aligned ? p.direct : 0);
    for (int b = 0; b < bands; b++)
        for (int wall = 0; wall < 6; wall++) /* the loss times the area over 4 V; half of it for the amplitude */
            p.mean[b] += p.walls->loss[wall][b] / p.room->size[wall / 2] / 8;
    p.reach = fmin(fmax(p.walls->reach, p.direct * (1 + 1e-9)), p.end);
    if (job->tail && p.walls->reach < p.end) {
        p.reach = fmax(p.walls->reach, p.direct / 0.9);
        p.fade = 10 / p.reach;
    }
    const uint64_t mode = gc_save_and_flush_subnormals();
    for (p.ear = 0; p.ear < w->rooms->channels; p.ear += w->channels)
        for (p.from = 0; p.from < (p.alike ? 1 : bands) && !atomic_load(&w->failed); p.from += bands_at_once) {
            p.classes = bands - p.from < bands_at_once ? bands - p.from : bands_at_once;
            compute_pass(&p, &w->scratch[worker], out);
        }
    gc_restore_subnormals(mode);
    double biquads[2][5] = {{0}};
    for (int k = 0; k < 2 && job->highpass > 0; k++)
        gc_room_highpass(job, k, biquads[k]);
    for (int c = 0; c < w->rooms->channels && job->highpass > 0; c++)
        pass_high(out + c * job->frames, job->frames, biquads);
}

/* ---- A job ------------------------------------------------------------------------------------------------------- */

/* Allocates the scratch memory of as many threads as there is memory for. Returns how many. */
static int make_scratch(work *w, int threads) {
    const int64_t frames = w->rooms->job.frames + SPARE, floats = w->fft ? gc_fft_floats(w->fft) : 0;
    int made = 0;
    for (; made < threads; made++) {
        scratch *s = &w->scratch[made];
        s->sums = gc_alloc(w->steps * w->lanes, sizeof *s->sums);
        s->frames = gc_alloc(frames * gc_max(w->lanes, 2 * lanes_of(w->channels)), sizeof *s->frames);
        s->signal = w->fft ? gc_alloc(w->points, sizeof *s->signal) : NULL;
        s->spectra = made == 0 && w->spectra ? w->spectra
                     : w->fft                ? gc_calloc(floats * w->bands_at_once, sizeof *s->spectra)
                                             : NULL;
        if (!s->sums || !s->frames || (w->fft && (!s->signal || !s->spectra)))
            break;
    }
    return made;
}

static void free_work(work *w, int threads) {
    for (int i = 0; i < threads && w->scratch; i++) {
        free(w->scratch[i].sums);
        free(w->scratch[i].frames);
        free(w->scratch[i].signal);
        if (w->scratch[i].spectra != w->spectra)
            free(w->scratch[i].spectra);
    }
    free(w->scratch);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): `output` is written by compute_response */
gpuconv_status gc_cpu_simulate(gc_pool *pool, gc_room_filters *filters, const gc_rooms *rooms, float *output,
                               gpuconv_error *error) {
    const gpuconv_rooms_job *job = &rooms->job;
    work w = {.rooms = rooms, .output = output, .simd = gc_simd_best(), .bands = 1};
    int size = 0;
    for (int64_t i = 0; i < job->rooms; i++)
        w.bands = rooms->room[i].bands > w.bands ? rooms->room[i].bands : w.bands;
    const int64_t responses = job->rooms * job->sources * job->receivers;
    const int threads = (int)gc_min(gc_pool_threads(pool), responses);
    w.channels = job->ears ? 1 : rooms->channels;
    const int64_t taps = job->ears ? job->ears->responses->frames * GC_IMAGE_STEPS : 0;
    w.early = job->ears ? job->ears->responses->lead * GC_IMAGE_STEPS : 0;
    w.before = w.early + (job->origin < 0 ? taps : 0);
    w.steps = job->frames * GC_IMAGE_STEPS + GC_IMAGE_MARGIN + w.before + taps;
    w.per_metre = job->rate * GC_IMAGE_STEPS / rooms->speed;
    w.end = fmax((double)(job->frames + KERNEL_FRAMES + 2 - job->origin) + (double)w.early / GC_IMAGE_STEPS, 1) /
            job->rate * rooms->speed;
    w.bands_at_once = w.steps * w.channels * w.bands * (int64_t)sizeof(float) > SUMS_BYTES ? 1 : w.bands;
    w.lanes = lanes_of(w.channels * w.bands_at_once);
    w.scratch = gc_calloc(threads, sizeof *w.scratch);
    bool good = w.scratch && design_taps(filters) && (w.bands == 1 || design_bands(&w, filters, &size));
    w.taps = filters->taps;
    w.moment = filters->moment;
    w.exact = rooms->air[rooms->bands - 1] / job->rate * rooms->speed > 1e-4;
    const int made = good ? make_scratch(&w, threads) : 0;
    if (made > 0)
        gc_pool_run_on(pool, made, compute_response, &w, responses);
    good = made > 0 && !atomic_load(&w.failed);
    free_work(&w, threads);
    if (w.points > KEPT_POINTS)
        free_bands(filters, size);
    if (gc_cancelled())
        return gc_fail_cancelled(error, "rooms");
    return good ? GPUCONV_OK : gc_fail_memory(error, "the sums of a room's images");
}
