/* Rooms by image sources (gpuconv_rooms.h): checks, absorption from decay times, air, bands. The same for every
 * backend.
 *
 * The decay of a box's images. An image in the direction n from the receiver, at the distance d, was reflected
 * |n_a| d / L_a times by the walls of axis a, half of them by each of the two. With the losses l of the walls in
 * nepers, the energy of all images that arrive at time t is in proportion to
 *
 *     E(t) = mean over all n of exp(-r(n) t),     r(n) = c sum over a of |n_a| (l_low + l_high) / (2 L_a),
 *
 * because as many images arrive from every direction. E depends on t times the losses only: the T30 for losses of a
 * proportion gives the losses for any T30. */
#include "rooms.h"

#include "backend.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/sized_struct.h"
#include "libgpuconv/dsp/fourier.h"
#include "libgpuconv/ir/sofa.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846
#define NEPERS_60DB 13.815510557964274 /* ln(10^6) */
#define LOSS_MAX 4.605170185988091     /* ln(100): a wall that absorbs 99 %, the most that a decay time may need */
enum { GRID = 8, /* points of the directions of an octant in each coordinate */ KERNEL_FRAMES = 24, DESIGN = 2048 };

double gc_room_centre(int band) {
    return ldexp(62.5, band);
}

/* Returns the weight of one of `bands` bands at a frequency. */
static double band_weight(int band, int bands, double hz) {
    const double place = fmin(fmax(log2(fmax(hz, 1) / 62.5), 0), bands - 1), off = fabs(place - band);
    return off < 1 ? 0.5 + 0.5 * cos(PI * off) : 0;
}

double gc_room_distance(const double a[3], const double b[3]) {
    return hypot(hypot(a[0] - b[0], a[1] - b[1]), a[2] - b[2]);
}

double gc_speed_of_sound(double temperature) {
    return 343.2 * sqrt((temperature + 273.15) / 293.15);
}

double gc_air_absorption(double hz, double temperature, double humidity) {
    const double kelvin = temperature + 273.15, ratio = kelvin / 293.15;
    const double water = humidity * pow(10, 4.6151 - 6.8346 * pow(273.16 / kelvin, 1.261)); /* vapour, per cent */
    const double oxygen = 24 + 4.04e4 * water * (0.02 + water) / (0.391 + water);
    const double nitrogen = pow(ratio, -0.5) * (9 + 280 * water * exp(-4.17 * (pow(ratio, -1 / 3.) - 1)));
    const double relaxation = 0.01275 * exp(-2239.1 / kelvin) / (oxygen + hz * hz / oxygen) +
                              0.1068 * exp(-3352 / kelvin) / (nitrogen + hz * hz / nitrogen);
    return 2 * hz * hz * (1.84e-11 * sqrt(ratio) + pow(ratio, -2.5) * relaxation);
}

/* ---- Decay ------------------------------------------------------------------------------------------------------- */

/* Directions of an octant: Gauss and Legendre's points in the height z and in the azimuth. */
typedef struct directions {
    double rate[GRID * GRID]; /* r(n) / c, nepers of energy a metre */
    double weight[GRID * GRID];
} directions;

static void find_directions(const gpuconv_room *room, const double loss[6], directions *d) {
    static const double point[GRID / 2] = {0.1834346424956498, 0.5255324099163290, 0.7966664774136267,
                                           0.9602898564975363};
    static const double weight[GRID / 2] = {0.3626837833783620, 0.3137066458778873, 0.2223810344533745,
                                            0.1012285362903763};
    for (int i = 0; i < GRID * GRID; i++) {
        const int u = i / GRID, v = i % GRID;
        const double z = 0.5 + (u % 2 ? 0.5 : -0.5) * point[u / 2], flat = sqrt(1 - z * z);
        const double angle = (0.5 + (v % 2 ? 0.5 : -0.5) * point[v / 2]) * PI / 2;
        const double n[3] = {flat * cos(angle), flat * sin(angle), z};
        d->weight[i] = weight[u / 2] * weight[v / 2] / 4;
        d->rate[i] = 0;
        for (int a = 0; a < 3; a++)
            d->rate[i] += n[a] * (loss[2 * a] + loss[2 * a + 1]) / (2 * room->size[a]);
    }
}

/* Returns the energy after c t = `metres`, or what of it is still to come, and its slope. */
static double energy_at(const directions *d, double metres, bool to_come, double *slope) {
    double sum = 0;
    *slope = 0;
    for (int i = 0; i < GRID * GRID; i++) {
        const double energy = d->weight[i] * exp(-d->rate[i] * metres);
        sum += to_come ? energy / d->rate[i] : energy;
        *slope += to_come ? energy : energy * d->rate[i];
    }
    return sum;
}

/* Returns the metres after which the energy has fallen by `nepers`. Its logarithm is convex, so that Newton's
 * steps from 0 approach from one side. */
static double fall(const directions *d, double nepers, bool to_come) {
    double at = 0, slope;
    const double whole = energy_at(d, 0, to_come, &slope);
    for (int step = 0; step < 60; step++) {
        const double energy = energy_at(d, at, to_come, &slope), off = log(energy / whole) + nepers;
        at += off * energy / slope;
        if (off < 1e-6 * nepers)
            break;
    }
    return at;
}

/* Returns the T30 as c t in metres: the line through the energy to come from -5 to -35 dB. */
static double decay_of(const directions *d) {
    enum { POINTS = 16 };
    const double from = fall(d, 0.5 * log(10), true), to = fall(d, 3.5 * log(10), true);
    double covariance = 0, variance = 0, slope;
    for (int i = 0; i < POINTS; i++) {
        const double off = (double)i / (POINTS - 1) - 0.5;
        covariance += off * log(energy_at(d, from + (off + 0.5) * (to - from), true, &slope));
        variance += off * off;
    }
    return NEPERS_60DB * (to - from) * variance / -covariance;
}

/* Sets the walls' losses of a band from its decay time. Returns ARGUMENT if a wall would absorb more than 99 %. */
static gpuconv_status set_losses(const gc_rooms *r, int64_t index, int band, double metres_of_unit,
                                 gpuconv_error *error) {
    const gpuconv_room *room = &r->job.room[index];
    const double volume = room->size[0] * room->size[1] * room->size[2], rt60 = room->rt60[band];
    double surface_area = 0, weight = 0, scale, most = 0;
    double(*loss)[GPUCONV_ROOM_BANDS] = r->room[index].loss;
    for (int w = 0; w < 6; w++) {
        surface_area += volume / room->size[w / 2];
        weight += loss[w][band] * volume / room->size[w / 2];
        most = fmax(most, loss[w][band]);
    }
    const double mean =
        4 * volume * NEPERS_60DB / (r->speed * rt60 * surface_area); /* of Sabine's or Eyring's exponents */
    if (r->job.formula == GPUCONV_ROOM_IMAGES)
        scale = metres_of_unit / (r->speed * rt60);
    else
        scale = mean * surface_area / weight;
    const bool sabine = r->job.formula == GPUCONV_ROOM_SABINE;
    if (!(scale * most <= (sabine ? 0.99 : LOSS_MAX)))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "room[%lld].rt60[%d] is %g s; in this room walls that absorb 99 %% have %.3g s, the least",
                       (long long)index, band, rt60, rt60 * scale * most / (sabine ? 0.99 : LOSS_MAX));
    for (int w = 0; w < 6; w++)
        loss[w][band] = sabine ? -log1p(-scale * loss[w][band]) : scale * loss[w][band];
    return GPUCONV_OK;
}

/* Computes the losses of a checked room, and how far its images reach. */
static gpuconv_status prepare_room(const gc_rooms *r, int64_t index, gpuconv_error *error) {
    const gpuconv_rooms_job *job = &r->job;
    const gpuconv_room *room = &job->room[index];
    gc_room *made = &r->room[index];
    const bool timed = room->rt60[0] > 0;
    directions d;
    double before[6] = {0}, of_unit = 0, slowest = HUGE_VAL;
    bool none = true;
    gpuconv_status status = GPUCONV_OK;
    for (int i = 0; i < 6 * GPUCONV_ROOM_BANDS; i++)
        none = none && !(room->absorption[i / GPUCONV_ROOM_BANDS][i % GPUCONV_ROOM_BANDS] > 0);
    made->reach = job->images_seconds > 0 ? job->images_seconds * r->speed : HUGE_VAL;
    made->bands = job->air ? r->bands : 1;
    for (int b = 0; b < r->bands && !status; b++) {
        double loss[6], sum = 0;
        bool same = b > 0;
        for (int w = 0; w < 6; w++) {
            const double absorption = room->absorption[w][b];
            loss[w] = timed && none ? 1 : absorption < 1 ? -log1p(-absorption) : 100;
            made->loss[w][b] = timed || absorption < 1 ? loss[w] : HUGE_VAL;
            sum += loss[w];
            same = same && loss[w] == before[w];
            before[w] = loss[w];
        }
        if (timed && !(sum > 0))
            return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                           "room[%lld].absorption is 0 at all walls in band %d, which rt60 has to reach",
                           (long long)index, b);
        if (timed && job->formula == GPUCONV_ROOM_IMAGES && !same) {
            find_directions(room, loss, &d);
            of_unit = decay_of(&d);
        }
        if (timed)
            status = set_losses(r, index, b, of_unit, error);
        sum = 0;
        for (int w = 0; w < 6; w++) {
            loss[w] = fmin(made->loss[w][b], 100);
            sum += loss[w];
            if (made->loss[w][b] != made->loss[w][0])
                made->bands = r->bands;
        }
        if (job->images_level > 0 && sum < slowest && !status) {
            slowest = sum;
            find_directions(room, loss, &d);
        }
    }
    if (job->images_level > 0 && slowest > 0 && !status)
        made->reach = fmin(made->reach, fall(&d, job->images_level * log(10) / 10, false));
    return status;
}

/* ---- Filters ----------------------------------------------------------------------------------------------------- */

bool gc_room_reduction(float taps[GC_IMAGE_TAPS]) {
    double *re = gc_calloc(2 * DESIGN, sizeof *re), *im = re + DESIGN;
    if (!re)
        return false;
    for (int i = -KERNEL_FRAMES * GC_IMAGE_STEPS + 1; i < KERNEL_FRAMES * GC_IMAGE_STEPS; i++) {
        const double x = (double)i / GC_IMAGE_STEPS;
        re[(i + DESIGN) % DESIGN] = (i ? sin(PI * x) / (PI * x) : 1) * (0.5 + 0.5 * cos(PI * x / KERNEL_FRAMES));
    }
    bool good = gc_fourier(re, im, DESIGN, -1);
    for (int k = 1; k < DESIGN; k++) {
        const double x = PI * (k < DESIGN / 2 ? k : DESIGN - k) / DESIGN, spline = pow(sin(x) / x, 4);
        re[k] /= spline;
        im[k] /= spline;
    }
    good = good && gc_fourier(re, im, DESIGN, 1);
    for (int j = 0; j <= 2 * GC_IMAGE_HALF; j++)
        taps[j] = (float)(re[(j - GC_IMAGE_HALF + DESIGN) % DESIGN] / DESIGN);
    free(re);
    return good;
}

int64_t gc_room_band_lead(double rate) {
    return gc_power_of_two((int64_t)fmax(rate / 6, 1024)) / 4;
}

float *gc_room_band_filters(const gc_rooms *r) {
    const int64_t half = gc_max(1, gc_room_band_lead(r->job.rate)), design = 4 * half;
    double *re = gc_calloc(2 * design, sizeof *re), *im = re + design;
    float *taps = gc_calloc(r->bands * (2 * half + 1), sizeof *taps);
    bool good = re && taps;
    for (int b = 0; b < r->bands && good; b++) {
        for (int64_t k = 0; k < design; k++) {
            re[k] = band_weight(b, r->bands, (double)gc_min(k, design - k) * r->job.rate / (double)design);
            im[k] = 0;
        }
        good = gc_fourier(re, im, design, 1);
        for (int64_t i = -half; i <= half; i++)
            taps[b * (2 * half + 1) + i + half] =
                (float)(re[(i + design) % design] / (double)design * (0.5 + 0.5 * cos(PI * (double)i / (double)half)));
    }
    free(re);
    if (good)
        return taps;
    free(taps);
    return NULL;
}

/* Butterworth (coefficients from Bristow-Johnson's Audio EQ Cookbook). */
void gc_room_highpass(const gpuconv_rooms_job *job, int section, double biquad[5]) {
    const double turn = 2 * PI * job->highpass / job->rate;
    const double alpha = sin(turn) / (2 * (section ? 1.3065630 : 0.5411961)), a0 = 1 + alpha;
    biquad[0] = biquad[2] = (1 + cos(turn)) / 2 / a0;
    biquad[1] = -2 * biquad[0];
    biquad[3] = -2 * cos(turn) / a0;
    biquad[4] = (1 - alpha) / a0;
}

/* ---- Checks ------------------------------------------------------------------------------------------------------ */

static gpuconv_status check_number(double value, double least, double most, const char *name, gpuconv_error *error) {
    return value >= least && value <= most
               ? GPUCONV_OK
               : gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s is %g; use %g to %g", name, value, least, most);
}

gpuconv_status gc_room_check(const gpuconv_room *room, int64_t index, gpuconv_error *error) {
    for (int a = 0; a < 3; a++)
        if (!(room->size[a] >= 0.1 && room->size[a] <= 1000))
            return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "room[%lld].size[%d] is %g m; use 0.1 to 1000",
                           (long long)index, a, room->size[a]);
    bool asked = false;
    for (int b = 0; b < GPUCONV_ROOM_BANDS; b++)
        asked = asked || room->rt60[b] != 0;
    for (int b = 0; b < GPUCONV_ROOM_BANDS; b++) {
        for (int w = 0; w < 6; w++)
            if (!(room->absorption[w][b] >= 0 && room->absorption[w][b] <= 1))
                return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "room[%lld].absorption[%d][%d] is %g; use 0 to 1",
                               (long long)index, w, b, room->absorption[w][b]);
        if (asked && !(room->rt60[b] >= 0.01 && room->rt60[b] <= 1000))
            return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                           "room[%lld].rt60[%d] is %g s; use 0.01 to 1000, or 0 in all bands", (long long)index, b,
                           room->rt60[b]);
    }
    return GPUCONV_OK;
}

/* Checks point `index` of `each` in every room. */
static gpuconv_status check_point(const gc_rooms *r, const char *name, const gpuconv_room_point *points, int64_t index,
                                  int64_t each, gpuconv_error *error) {
    const gpuconv_room_point *p = &points[index];
    const double *size = r->job.room[index / each].size;
    for (int a = 0; a < 3; a++)
        if (!(p->at[a] > 0 && p->at[a] < size[a]))
            return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                           "%s[%lld].at[%d] is %g m; use more than 0 and less than %g, the size of room[%lld]", name,
                           (long long)index, a, p->at[a], size[a], (long long)(index / each));
    if (!(fabs(p->azimuth) <= 360 && fabs(p->elevation) <= 90))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "%s[%lld] has azimuth %g and elevation %g; use -360 to 360 and -90 to 90", name,
                       (long long)index, p->azimuth, p->elevation);
    if (!(p->omni >= 0 && p->omni <= 1))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s[%lld].omni is %g; use 0 to 1", name, (long long)index,
                       p->omni);
    return GPUCONV_OK;
}

/* The least distance in metres of a source and a receiver: a nearer image has an amplitude above 1000. */
static const double nearest = 0.001;

static gpuconv_status check_distances(const gpuconv_rooms_job *job, int64_t index, gpuconv_error *error) {
    const gpuconv_room_point *s = job->source + index * job->sources, *m = job->receiver + index * job->receivers;
    for (int64_t i = 0; i < job->sources; i++)
        for (int64_t k = 0; k < job->receivers; k++)
            if (gc_room_distance(s[i].at, m[k].at) < nearest)
                return gc_fail(
                    error, GPUCONV_ERROR_ARGUMENT,
                    "source %lld and receiver %lld of room %lld are in one place; use a distance of 0.001 m or more",
                    (long long)i, (long long)k, (long long)index);
    return GPUCONV_OK;
}

static gpuconv_status check_job(const gpuconv_rooms_job *job, gpuconv_error *error) {
    const struct {
        double value, least, most;
        const char *name;
    } numbers[] = {{(double)job->rooms, 1, 0x1p30, "rooms"},
                   {(double)job->sources, 1, 0x1p20, "sources"},
                   {(double)job->receivers, 1, 0x1p20, "receivers"},
                   {job->ambisonic, 0, GPUCONV_ROOM_AMBISONIC, "ambisonic"},
                   {job->rate, 1000, 1e6, "rate"},
                   {(double)job->frames, 1, 0x1p27, "frames"},
                   {(double)job->origin, -0x1p27, 0x1p27, "origin"},
                   {job->formula, GPUCONV_ROOM_IMAGES, GPUCONV_ROOM_SABINE, "formula"},
                   {job->temperature, -20, 50, "temperature"},
                   {job->humidity, 0, 100, "humidity"},
                   {job->images_seconds, 0, 1e6, "images_seconds"},
                   {job->images_order, -1, 1e6, "images_order"},
                   {job->images_level, 0, 1000, "images_level"},
                   {job->highpass, 0, 0.45 * job->rate, "highpass"}};
    gpuconv_status status = GPUCONV_OK;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && !status; i++)
        status = check_number(numbers[i].value, numbers[i].least, numbers[i].most, numbers[i].name, error);
    if (status)
        return status;
    if (job->rooms * job->sources > INT64_C(1) << 40 || job->rooms * job->receivers > INT64_C(1) << 40 ||
        (double)job->rooms * (double)job->sources * (double)job->receivers * (double)job->frames * 25 > 0x1p50)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "%lld rooms with %lld sources and %lld receivers and %lld frames are more than 2^50 floats",
                       (long long)job->rooms, (long long)job->sources, (long long)job->receivers,
                       (long long)job->frames);
    return GPUCONV_OK;
}

/* Checks the ears of a job. */
static gpuconv_status check_ears(const gpuconv_rooms_job *job, gpuconv_error *error) {
    const gpuconv_sofa *ears = job->ears;
    if (job->ambisonic || ears->speakers > 1 || ears->responses->rate != job->rate)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "ears: a set of %d loudspeakers with %g Hz, ambisonic %d; use one loudspeaker, %g Hz and 0",
                       ears->speakers, ears->responses->rate, job->ambisonic, job->rate);
    return GPUCONV_OK;
}

/* Checks the rooms and their points in host memory, and computes the losses. */
static gpuconv_status prepare(gc_rooms *r, gpuconv_error *error) {
    const gpuconv_rooms_job *job = &r->job;
    gpuconv_status status = GPUCONV_OK;
    for (int64_t i = 0; i < job->rooms && !status; i++)
        status = gc_room_check(&job->room[i], i, error);
    for (int64_t i = 0; i < job->rooms * job->sources && !status; i++)
        status = check_point(r, "source", job->source, i, job->sources, error);
    for (int64_t i = 0; i < job->rooms * job->receivers && !status; i++)
        status = check_point(r, "receiver", job->receiver, i, job->receivers, error);
    for (int64_t i = 0; i < job->rooms && !status; i++)
        status = check_distances(job, i, error);
    for (int64_t i = 0; i < job->rooms && !status; i++)
        /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): equal bytes are equal rooms */
        if (i > 0 && memcmp(&job->room[i], &job->room[i - 1], sizeof *job->room) == 0)
            r->room[i] = r->room[i - 1];
        else
            status = prepare_room(r, i, error);
    return status;
}

/* ---- Public functions -------------------------------------------------------------------------------------------- */

static const gpuconv_rooms_job defaults = {.size = sizeof defaults,
                                           .sources = 1,
                                           .receivers = 1,
                                           .rate = 16000,
                                           .frames = 8000,
                                           .temperature = 20,
                                           .humidity = 50,
                                           .images_order = -1,
                                           .seed = 1};

void gpuconv_rooms_job_init(gpuconv_rooms_job *job, size_t size) {
    gc_sized_struct_init(job, size, &defaults, sizeof defaults);
}

static gpuconv_status read_job(const gpuconv_rooms_job *from, gpuconv_rooms_job *job, gpuconv_error *error) {
    const gc_sized_struct own = {job, sizeof *job, GC_SIZE_UP_TO(gpuconv_rooms_job, seed), "gpuconv_rooms_job"};
    *job = defaults;
    return gc_sized_struct_read(&own, from, error);
}

gpuconv_status gpuconv_rooms_plan_new(gpuconv_arrays *place, const gpuconv_rooms_job *job, gpuconv_rooms_plan **plan,
                                      gpuconv_error *error) {
    if (!gc_begin(plan, place && job ? place : NULL, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    gpuconv_rooms_plan *p = gc_calloc(1, sizeof *p);
    if (!p)
        return gc_fail_memory(error, "the plan of rooms");
    gc_rooms *r = &p->rooms;
    gpuconv_status status = read_job(job, &r->job, error);
    if (!status)
        status = check_job(&r->job, error);
    if (!status && r->job.ears)
        status = check_ears(&r->job, error);
    p->place = place;
    r->channels = r->job.ears && !status ? r->job.ears->receivers : (r->job.ambisonic + 1) * (r->job.ambisonic + 1);
    r->speed = gc_speed_of_sound(r->job.temperature);
    for (r->bands = 1; r->bands < GPUCONV_ROOM_BANDS && gc_room_centre(r->bands) < r->job.rate / 2;)
        r->bands++;
    for (int b = 0; b < r->bands && r->job.air && !status; b++)
        r->air[b] = gc_air_absorption(gc_room_centre(b), r->job.temperature, r->job.humidity) / 2;
    if (!status && place->executor->plan_rooms)
        status = place->executor->plan_rooms(p, error);
    if (status)
        gpuconv_rooms_plan_free(p);
    else
        *plan = p;
    return status;
}

size_t gpuconv_rooms_plan_workspace(const gpuconv_rooms_plan *plan) {
    return plan ? (size_t)plan->bytes : 0;
}

gpuconv_status gpuconv_rooms_plan_run(const gpuconv_rooms_plan *plan, const gpuconv_rooms_job *job, float *output,
                                      void *workspace, size_t bytes, struct CUstream_st *stream, gpuconv_error *error) {
    gpuconv_rooms_job given;
    if (!plan || !job || !output)
        return gc_fail_null(error, __func__);
    gpuconv_status status = read_job(job, &given, error);
    if (!status && (!given.room || !given.source || !given.receiver))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "job.%s is NULL",
                       !given.room     ? "room"
                       : !given.source ? "source"
                                       : "receiver");
    if (!status && (bytes < (size_t)plan->bytes || (plan->bytes && (!workspace || (uintptr_t)workspace % 256))))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "workspace is %p of %zu bytes; the plan needs %lld, aligned to 256 (gpuconv_rooms_plan_run)",
                       workspace, bytes, (long long)plan->bytes);
    gc_rooms r = plan->rooms;
    r.job.room = given.room;
    r.job.source = given.source;
    r.job.receiver = given.receiver;
    r.job.seed = given.seed;
    r.job.seeds = given.seeds;
    if (!status && plan->place->device < 0) { /* those of a device are checked there */
        r.room = gc_calloc(r.job.rooms, sizeof *r.room);
        status = r.room ? prepare(&r, error) : gc_fail_memory(error, "the rooms");
    }
    if (!status)
        status = plan->place->executor->simulate(plan, &r, output, workspace, stream, error);
    free(r.room);
    return status;
}

void gpuconv_rooms_plan_free(gpuconv_rooms_plan *plan) {
    if (plan && plan->state)
        plan->place->executor->free_rooms(plan);
    free(plan);
}

gpuconv_status gpuconv_rooms_simulate(gpuconv_arrays *place, const gpuconv_rooms_job *job, float *output,
                                      gpuconv_error *error) {
    gpuconv_rooms_plan *plan = NULL;
    gpuconv_status status = gpuconv_rooms_plan_new(place, job, &plan, error);
    if (!status)
        status = gpuconv_rooms_plan_run(plan, job, output, NULL, 0, NULL, error);
    gpuconv_rooms_plan_free(plan);
    return status;
}
