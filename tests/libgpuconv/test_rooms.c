/* Tests of rooms (gpuconv_rooms.h): every image against a sum in double precision that follows Allen and Berkley's
 * formula and shares no code with the library; bands, decay, the noise of the tail, ambisonics and refusals. tests/gpu
 * compiles the same file with GPU_ROOMS, for a device. */
#include "gpu/gpu_rooms.h"
#include "gpuconv_rooms.h"
#include "harness.h"

#include "libgpuconv/dsp/image_kernels.h"
#include "libgpuconv/dsp/simd.h"
#include "libgpuconv/ir/sofa.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

#ifndef GPU_ROOMS
static gpuconv_arrays *new_place(int threads) {
    gpuconv_arrays *place;
    gpuconv_error error;
    CHECK(gpuconv_arrays_new_cpu(threads, &place, &error) == GPUCONV_OK, "%s", error.message);
    return place;
}

#endif

/* Returns the job of one room with a source and a receiver. */
static gpuconv_rooms_job job_of_room(const gpuconv_room *room, const gpuconv_room_point *source,
                                     const gpuconv_room_point *receiver) {
    gpuconv_rooms_job job = gpuconv_rooms_job_default();
    job.room = room;
    job.rooms = 1;
    job.source = source;
    job.receiver = receiver;
    return job;
}

/* Simulates into a guarded buffer with one channel of all responses. */
static guarded simulate(const gpuconv_rooms_job *job, int threads) {
#ifdef GPU_ROOMS
    (void)threads;
    return gpu_rooms_simulate(job);
#else
    const int order = job->ambisonic + 1, channels = job->ears ? gpuconv_sofa_receivers(job->ears) : order * order;
    gpuconv_arrays *place = new_place(threads);
    guarded made = guarded_new(1, job->rooms * job->sources * job->receivers * channels * job->frames);
    gpuconv_error error = {0};
    CHECK(gpuconv_rooms_simulate(place, job, made.channel[0], &error) == GPUCONV_OK, "%s", error.message);
    CHECK(guarded_intact(&made), "written outside the output");
    gpuconv_arrays_free(place);
    return made;
#endif
}

static double draw(oracle_random *random, double low, double high) {
    return low + (high - low) * (0.5 + 0.5 * (double)oracle_uniform(random));
}

static gpuconv_room_point draw_point(oracle_random *random, const double size[3], bool directed) {
    gpuconv_room_point p = {.omni = directed ? draw(random, 0, 1) : 1};
    for (int a = 0; a < 3; a++)
        p.at[a] = draw(random, 0.05 * size[a], 0.95 * size[a]);
    p.azimuth = draw(random, -180, 180);
    p.elevation = draw(random, -90, 90);
    return p;
}

/* ---- The sum of all images --------------------------------------------------------------------------------------- */

/* Returns a pattern in a direction of any length. */
static double pattern_of(const gpuconv_room_point *p, const double to[3]) {
    const double azimuth = p->azimuth * pi / 180, elevation = p->elevation * pi / 180;
    const double length = sqrt(to[0] * to[0] + to[1] * to[1] + to[2] * to[2]);
    const double cosine =
        (to[0] * cos(elevation) * cos(azimuth) + to[1] * cos(elevation) * sin(azimuth) + to[2] * sin(elevation)) /
        length;
    return p->omni + (1 - p->omni) * cosine;
}

/* Adds an image through the response of the nearest direction of a set, at a receiver that looks along its axis. */
static void add_through_head(const gpuconv_rooms_job *job, const double to[3], double at, double gain, double *sum,
                             int ear) {
    const double azimuth = job->receiver->azimuth * pi / 180, elevation = job->receiver->elevation * pi / 180;
    const double axes[3][3] = {
        {cos(elevation) * cos(azimuth), cos(elevation) * sin(azimuth), sin(elevation)},
        {-sin(azimuth), cos(azimuth), 0},
        {-sin(elevation) * cos(azimuth), -sin(elevation) * sin(azimuth), cos(elevation)},
    };
    double best = -HUGE_VAL;
    int nearest = 0;
    for (int m = 0; m < job->ears->measurements; m++) {
        double cosine = 0;
        for (int a = 0; a < 3; a++)
            for (int b = 0; b < 3; b++)
                cosine += job->ears->position[3 * m + a] * axes[a][b] * to[b];
        nearest = cosine > best ? m : nearest;
        best = fmax(best, cosine);
    }
    const int plane = 2 * nearest + ear;
    for (int64_t k = 0; k < job->ears->responses->frames; k++)
        oracle_add_sinc(at + job->ears->delay[plane] + (double)(k - job->ears->responses->lead),
                        gain * (double)job->ears->responses->taps[plane * job->ears->responses->frames + k],
                        job->frames, sum);
}

/* Adds the images of one band of the first source at the first receiver of a room. Allen and Berkley's images (1979,
 * equation 10): u mirrors the source, l repeats the room. */
static void add_images(const gpuconv_rooms_job *job, int64_t index, int band, double air, double *sum, int ear) {
    const gpuconv_room *room = &job->room[index];
    const gpuconv_room_point *s = &job->source[index], *r = &job->receiver[index];
    const double reach = (double)job->frames + 24 + (job->ears ? 10 : 0);
    const double far = (reach - (double)job->origin) / job->rate * 343.2;
    int most[3];
    for (int a = 0; a < 3; a++)
        most[a] = (int)ceil(far / (2 * room->size[a])) + 1;
    for (int lx = -most[0]; lx <= most[0]; lx++)
        for (int ly = -most[1]; ly <= most[1]; ly++)
            for (int lz = -most[2]; lz <= most[2]; lz++)
                for (int u = 0; u < 8; u++) {
                    const int l[3] = {lx, ly, lz};
                    double to[3], left[3], square = 0, gain = 1;
                    int order = 0;
                    for (int a = 0; a < 3; a++) {
                        const int mirrored = u >> a & 1, low = abs(l[a] - mirrored), high = abs(l[a]);
                        to[a] = (mirrored ? -s->at[a] : s->at[a]) + 2 * l[a] * room->size[a] - r->at[a];
                        left[a] = mirrored ? to[a] : -to[a];
                        square += to[a] * to[a];
                        order += low + high;
                        gain *= pow(sqrt(1 - room->absorption[2 * a][band]), low) *
                                pow(sqrt(1 - room->absorption[2 * a + 1][band]), high);
                    }
                    const double d = sqrt(square), at = d / 343.2 * job->rate + (double)job->origin;
                    if (at > reach || (job->images_order >= 0 && order > job->images_order) ||
                        (order && job->images_seconds > 0 && d > job->images_seconds * 343.2))
                        continue;
                    gain *= pattern_of(r, to) * pattern_of(s, left) * exp(-air * d / 2) / d;
                    if (job->ears)
                        add_through_head(job, to, at, gain, sum, ear);
                    else
                        oracle_add_sinc(at, gain, job->frames, sum);
                }
}

static void check_error(const char *what, const float *got, const double *want, int64_t frames, double bound) {
    for (int64_t n = 0; n < frames; n++)
        CHECK(isfinite((double)got[n]), "%s: frame %d is not finite", what, (int)n);
    const oracle_error error = oracle_compare(got, want, frames);
    CHECK(error.rms <= bound, "%s: the error is %.1f dB", what, error.rms);
}

static void every_image_has_its_delay_and_amplitude(void **state) {
    (void)state;
    enum { ROOMS = 12, FRAMES = 1600 };
    oracle_random random = {46};
    gpuconv_room room[ROOMS] = {0};
    gpuconv_room_point source[ROOMS], receiver[ROOMS];
    for (int i = 0; i < ROOMS; i++) {
        for (int a = 0; a < 3; a++)
            room[i].size[a] = draw(&random, 2, 7);
        for (int w = 0; w < 6; w++) {
            const double absorption = i == 3 && w == 2 ? 1 : draw(&random, 0, 0.6);
            for (int b = 0; b < GPUCONV_ROOM_BANDS; b++)
                room[i].absorption[w][b] = absorption;
        }
        source[i] = draw_point(&random, room[i].size, i % 4 == 1 || i % 4 == 3);
        receiver[i] = draw_point(&random, room[i].size, i % 4 >= 2);
    }
    gpuconv_rooms_job job = gpuconv_rooms_job_default();
    job.frames = FRAMES;
    for (int i = 0; i < ROOMS; i++) {
        double *want = calloc(FRAMES, sizeof *want);
        CHECK(want, "no memory");
        job.rooms = 1;
        job.room = &room[i];
        job.source = &source[i];
        job.receiver = &receiver[i];
        job.images_order = i == 5 ? 3 : i == 6 ? 0 : -1;
        job.images_seconds = i == 7 ? 0.03 : 0;
        job.origin = i == 8 ? 40 : i == 9 ? -30 : 0;
        job.rate = i == 10 ? 48000 : 16000;
        guarded got = simulate(&job, 1);
        add_images(&job, 0, 0, 0, want, 0);
        check_error("one room", got.channel[0], want, FRAMES, -80);
        guarded_free(&got);
        free(want);
    }
}

static void late_images_keep_their_delays(void **state) {
    (void)state;
    gpuconv_room room = {.size = {200, 50, 10}};
    for (int i = 0; i < 6 * GPUCONV_ROOM_BANDS; i++)
        room.absorption[i / GPUCONV_ROOM_BANDS][i % GPUCONV_ROOM_BANDS] = 0.01;
    const gpuconv_room_point source = {{20, 11, 3}, 0, 0, 1}, receiver = {{111, 37, 7}, 0, 0, 1};
    gpuconv_rooms_job job = job_of_room(&room, &source, &receiver);
    job.rate = 48000;
    job.origin = -95000;
    job.frames = 500;
    double *want = calloc(500, sizeof *want);
    CHECK(want, "no memory");
    guarded got = simulate(&job, 1);
    add_images(&job, 0, 0, 0, want, 0);
    check_error("two seconds late", got.channel[0], want, job.frames, -80);
    guarded_free(&got);
    free(want);
}

/* ---- Bands ------------------------------------------------------------------------------------------------------- */

/* Returns the absorption of air at 20 degrees C and 50 % in nepers of energy a metre: ISO 9613-1, table 1, in dB/km. */
static double air_of(int band) {
    static const double decibels[] = {0.122, 0.445, 1.32, 2.73, 4.66, 9.89, 29.7, 105, 367};
    return decibels[band] / 1000 * log(10) / 10;
}

/* Filters with band b of `bands`: the weights at 4096 frequencies, as a filter under a Hann window. */
static void add_band(const double *in, int64_t frames, double rate, int band, int bands, double *sum) {
    enum { DESIGN = 4096, HALF = DESIGN / 4 };
    static double filter[2 * HALF + 1], weight[DESIGN / 2 + 1], circle[DESIGN];
    for (int k = 0; k < DESIGN; k++)
        circle[k] = cos(2 * pi * k / DESIGN);
    for (int k = 0; k <= DESIGN / 2; k++) {
        const double hz = k * rate / DESIGN, octave = log2(fmax(hz, 1e-9) / 62.5);
        const double place = octave < 0 ? 0 : octave > bands - 1 ? bands - 1 : octave, off = fabs(place - band);
        weight[k] = off < 1 ? pow(cos(pi / 2 * off), 2) : 0;
    }
    for (int i = 0; i <= HALF; i++) {
        double total = 0;
        for (int k = 0; k <= DESIGN / 2; k++)
            total += (k == 0 || k == DESIGN / 2 ? 1 : 2) * weight[k] * circle[k * i % DESIGN];
        filter[HALF + i] = filter[HALF - i] = total / DESIGN * (1 + cos(pi * i / HALF)) / 2;
    }
    for (int64_t n = 0; n < frames; n++)
        for (int64_t k = n < HALF ? 0 : n - HALF; k < frames && k <= n + HALF; k++)
            sum[n] += in[k] * filter[n - k + HALF];
}

static void bands_and_air_are_those_of_the_formula(void **state) {
    (void)state;
    enum { FRAMES = 900, BANDS = 8 };
    oracle_random random = {7};
    gpuconv_room room = {.size = {4.1, 3.3, 2.6}};
    const gpuconv_room_point source = {{1.1, 0.9, 1.7}, 0, 0, 1}, receiver = {{2.9, 2.2, 1.2}, 0, 0, 1};
    for (int w = 0; w < 6; w++)
        for (int b = 0; b < GPUCONV_ROOM_BANDS; b++)
            room.absorption[w][b] = draw(&random, 0.02, 0.7);
    gpuconv_rooms_job job = job_of_room(&room, &source, &receiver);
    job.frames = FRAMES;
    job.rate = 16001; /* one more band than 16000 */
    for (int air = 0; air < 2; air++) {
        double *want = calloc(FRAMES, sizeof *want), *one = calloc(FRAMES, sizeof *one);
        CHECK(want && one, "no memory");
        job.air = air;
        guarded got = simulate(&job, 1);
        for (int b = 0; b < BANDS; b++) {
            memset(one, 0, FRAMES * sizeof *one);
            add_images(&job, 0, b, air ? air_of(b) : 0, one, 0);
            add_band(one, FRAMES, job.rate, b, BANDS, want);
        }
        check_error(air ? "bands and air" : "bands", got.channel[0], want, FRAMES,
                    air ? -60 : -80); /* a table of 3 digits */
        guarded_free(&got);
        free(want);
        free(one);
    }
}

/* Walls that are alike in all bands have one sum for all; a wall that differs by a hair has one for each band. */
static void walls_that_are_alike_need_one_sum(void **state) {
    (void)state;
    enum { FRAMES = 12000 };
    const double rates[] = {16000, 48000};
    const int64_t origins[] = {50, -300, -9000, 50}; /* -9000: the decays of few bands do not serve the others */
    const gpuconv_room_point source = {{1.1, 0.9, 1.7}, 0, 0, 1}, receiver = {{2.9, 2.2, 1.2}, 30, 10, 0.5};
    for (int i = 0; i < 4; i++) {
        gpuconv_room room = {.size = {4.1, 3.3, 2.6}};
        for (int w = 0; w < 6; w++)
            for (int b = 0; b < GPUCONV_ROOM_BANDS; b++)
                room.absorption[w][b] = 0.2;
        gpuconv_rooms_job job = job_of_room(&room, &source, &receiver);
        job.frames = FRAMES;
        job.rate = rates[i % 2];
        job.air = job.tail = true;
        job.images_seconds = 0.03;
        job.ambisonic = i / 2;
        job.origin = origins[i];
        guarded one = simulate(&job, 1);
        room.absorption[2][1] += 1e-9;
        guarded each = simulate(&job, 1);
        double *want = calloc((size_t)FRAMES * 4, sizeof *want);
        CHECK(want, "no memory");
        const int64_t frames = FRAMES * (job.ambisonic ? 4 : 1);
        for (int64_t n = 0; n < frames; n++)
            want[n] = (double)each.channel[0][n];
        check_error("one sum for all bands", one.channel[0], want, frames, -80);
        guarded_free(&one);
        guarded_free(&each);
        free(want);
    }
}

/* Two ears with delays and random responses, of which the first frames precede time zero. */
gpuconv_sofa *random_ears(int shells) {
    enum { DIRECTIONS = 120, TAPS = 64 };
    oracle_random random = {13};
    gpuconv_error error;
    gpuconv_ir *responses;
    float taps[2 * DIRECTIONS][TAPS];
    const float *plane[2 * DIRECTIONS];
    for (int p = 0; p < 2 * DIRECTIONS; p++) {
        plane[p] = taps[p];
        for (int k = 0; k < TAPS; k++)
            taps[p][k] = (float)draw(&random, -1, 1) * (k < 2 ? 0.1F : 1);
    }
    CHECK(!gpuconv_ir_new(plane, 2 * DIRECTIONS, TAPS, 16000, &responses, &error), "%s", error.message);
    responses->lead = 5;
    gpuconv_sofa *set = gc_sofa_new(responses, DIRECTIONS, 2);
    CHECK(set, "no memory");
    set->speakers = 1;
    for (int m = 0; m < DIRECTIONS; m++) {
        const double z = draw(&random, -1, 1), turn = draw(&random, 0, 2 * pi), flat = sqrt(1 - z * z);
        const double at[3] = {flat * cos(turn), flat * sin(turn), z};
        for (int a = 0; a < 3; a++)
            set->position[3 * m + a] = (1 + 2 * (m % shells)) * at[a];
        set->delay[2 * m] = draw(&random, 0, 4);
        set->delay[2 * m + 1] = draw(&random, 0, 4);
    }
    CHECK(!gc_sofa_make_shells(set, &error), "%s", error.message);
    CHECK(set->shells == shells, "%d shells", set->shells);
    return set;
}

static void ears_hear_every_image_through_the_head(void **state) {
    (void)state;
    enum { FRAMES = 500, BANDS = 7 };
    oracle_random random = {12};
    gpuconv_sofa *set = random_ears(1);
    gpuconv_room room = {.size = {4.1, 3.3, 2.6}};
    const gpuconv_room_point source = {{1.1, 0.9, 1.7}, 40, 20, 0.5}, receiver = {{2.9, 2.2, 1.2}, 35, 10, 1};
    gpuconv_rooms_job job = job_of_room(&room, &source, &receiver);
    job.frames = FRAMES;
    job.ears = set;
    for (int k = 0; k < 3; k++) { /* the second one begins while the direct sound is heard */
        const int bands = k == 2 ? BANDS : 1;
        job.origin = k == 1 ? -150 : 7;
        job.air = k == 2;
        for (int w = 0; w < 6; w++)
            for (int b = 0; b < GPUCONV_ROOM_BANDS; b++)
                room.absorption[w][b] = b == 0 || bands > 1 ? draw(&random, 0.02, 0.7) : room.absorption[w][0];
        guarded got = simulate(&job, 2);
        for (int ear = 0; ear < 2; ear++) {
            double want[FRAMES] = {0}, one[FRAMES];
            for (int b = 0; b < bands; b++) {
                memset(one, 0, sizeof one);
                add_images(&job, 0, b, job.air ? air_of(b) : 0, bands > 1 ? one : want, ear);
                if (bands > 1)
                    add_band(one, FRAMES, job.rate, b, bands, want);
            }
            check_error(k == 0   ? "ears"
                        : k == 1 ? "ears, later"
                                 : "ears, bands and air",
                        got.channel[0] + ear * FRAMES, want, FRAMES, job.air ? -60 : -80);
        }
        guarded_free(&got);
    }
    gpuconv_sofa_free(set);
}

/* ---- Decay and noise --------------------------------------------------------------------------------------------- */

/* Returns the T30 of a response: the line through its backward integral from -5 to -35 dB. */
static double t30_of(const float *h, int64_t frames, double rate) {
    double whole = 0, left, n = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (int64_t i = 0; i < frames; i++)
        whole += (double)h[i] * (double)h[i];
    left = whole;
    for (int64_t i = 0; i < frames; i++) {
        const double level = 10 * log10(left / whole), t = (double)i / rate;
        if (level <= -5 && level >= -35) {
            n += 1;
            x += t;
            y += level;
            xx += t * t;
            xy += t * level;
        }
        left -= (double)h[i] * (double)h[i];
    }
    return -60 / ((n * xy - x * y) / (n * xx - x * x));
}

/* Fills a job of `rooms` rooms with one size and sources and receivers at random. */
static gpuconv_rooms_job similar_rooms(gpuconv_room *room, gpuconv_room_point *points, int rooms,
                                       const double size[3]) {
    oracle_random random = {3};
    gpuconv_rooms_job job = gpuconv_rooms_job_default();
    for (int i = 0; i < rooms; i++) {
        memset(&room[i], 0, sizeof room[i]);
        memcpy(room[i].size, size, sizeof room[i].size);
        points[i] = draw_point(&random, size, false);
        do
            points[rooms + i] = draw_point(&random, size, false);
        while (fabs(points[rooms + i].at[0] - points[i].at[0]) < 0.3 * size[0]);
    }
    job.room = room;
    job.rooms = rooms;
    job.source = points;
    job.receiver = points + rooms;
    return job;
}

static void the_decay_is_the_one_that_was_asked(void **state) {
    (void)state;
    enum { ROOMS = 6 };
    static const double sizes[][3] = {{5, 4, 3}, {8, 6, 3.2}, {12, 5, 2.6}} /* the last one is no diffuse field */,
                        times[] = {0.4, 0.7};
    gpuconv_room room[ROOMS];
    gpuconv_room_point points[2 * ROOMS];
    for (int k = 0; k < 3; k++)
        for (int t = 0; t < 2; t++)
            for (int noise = 0; noise < 3; noise++) { /* the third one is diffuse */
                gpuconv_rooms_job job = similar_rooms(room, points, ROOMS, sizes[k]);
                double mean = 0;
                job.frames = (int64_t)(1.2 * times[t] * job.rate);
                job.highpass = 200;
                job.tail = noise > 0;
                job.diffuse = noise == 2;
                job.formula = noise == 2 ? GPUCONV_ROOM_EYRING : GPUCONV_ROOM_IMAGES;
                job.images_level = noise > 0 ? 15 : 0;
                for (int i = 0; i < ROOMS * GPUCONV_ROOM_BANDS; i++)
                    room[i / GPUCONV_ROOM_BANDS].rt60[i % GPUCONV_ROOM_BANDS] = times[t];
                guarded got = simulate(&job, 2);
                for (int i = 0; i < ROOMS; i++)
                    mean += t30_of(got.channel[0] + i * job.frames, job.frames, job.rate) / ROOMS;
                CHECK(fabs(mean / times[t] - 1) <= (k < 2 ? 0.05 : 0.2), "room %d, noise %d: %.3f s for %.3f s", k,
                      noise, mean, times[t]);
                guarded_free(&got);
            }
}

enum { LATE_FROM = 960, LATE_FRAMES = 640 };

/* Adds the energy of the octaves of 500 to 4000 Hz of the late frames under a Hann window. */
static void add_energy(const float *h, double rate, double energy[4]) {
    const double turn = 2 * pi / LATE_FRAMES;
    double v[LATE_FRAMES];
    for (int n = 0; n < LATE_FRAMES; n++)
        v[n] = (double)h[LATE_FROM + n] * (1 - cos(n * turn));
    for (int k = 1; k < LATE_FRAMES / 2; k++) {
        const double octave = log2(k * rate / LATE_FRAMES / 500) + 0.5;
        const double c = cos(k * turn), s = sin(k * turn);
        double re = 0, im = 0, x = 1, y = 0;
        if (octave < 0 || octave >= 4)
            continue;
        for (int n = 0; n < LATE_FRAMES; n++) {
            const double next = x * c - y * s;
            re += v[n] * x;
            im += v[n] * y;
            y = x * s + y * c;
            x = next;
        }
        energy[(int)octave] += re * re + im * im;
    }
}

/* Below 500 Hz the walls of this room change the energy of images by more than 0.5 dB: by up to 3 dB near a wall
 * (Waterhouse, Interference patterns in reverberant sound fields, 1955), and the other way elsewhere. */
static void noise_has_the_energy_of_the_images_that_it_replaces(void **state) {
    (void)state;
    enum { ROOMS = 160 };
    static const double size[3] = {5.1, 4.3, 2.9},
                        rt60[GPUCONV_ROOM_BANDS] = {0.5, 0.5, 0.45, 0.4, 0.35, 0.3, 0.3, 0.3, 0.3};
    static gpuconv_room room[ROOMS];
    static gpuconv_room_point points[2 * ROOMS];
    gpuconv_rooms_job job = similar_rooms(room, points, ROOMS, size);
    double energy[3][4] = {{0}};
    job.frames = 2000;
    for (int i = 0; i < ROOMS; i++) {
        memcpy(room[i].rt60, rt60, sizeof rt60);
        points[i].omni = i % 2 ? 0.5 : 1;
        points[ROOMS + i].omni = i % 3 ? 0.5 : 1;
    }
    for (int k = 0; k < 3; k++) {
        job.tail = k > 0;
        job.images_seconds = k == 1 ? 0.075 : 0; /* frames 1080 to 1200: in the middle */
        job.images_order = k == 2 ? 5 : -1;
        guarded got = simulate(&job, 2);
        for (int i = 0; i < ROOMS; i++)
            add_energy(got.channel[0] + i * job.frames, job.rate, energy[k]);
        guarded_free(&got);
    }
    for (int k = 1; k < 3; k++)
        for (int b = 0; b < 4; b++)
            CHECK(fabs(10 * log10(energy[k][b] / energy[0][b])) <= 0.5, "noise by %s, band %d: %.2f dB",
                  k == 1 ? "time" : "order", b, 10 * log10(energy[k][b] / energy[0][b]));
}

static void noise_is_coherent_as_a_diffuse_field(void **state) {
    (void)state;
    enum { ROOMS = 40 };
    static const double size[3] = {6, 6, 6};
    static gpuconv_room room[ROOMS];
    static gpuconv_room_point points[2 * ROOMS], pairs[2 * ROOMS];
    gpuconv_rooms_job job = similar_rooms(room, points, ROOMS, size);
    double product = 0, square[2] = {0}, want = 0;
    const double apart = 0.05;
    job.images_order = 0;
    job.tail = true;
    for (int i = 0; i < ROOMS; i++) {
        for (int b = 0; b < GPUCONV_ROOM_BANDS; b++)
            room[i].rt60[b] = 5;
        pairs[2 * i] = points[i];
        pairs[2 * i + 1] = pairs[2 * i];
        pairs[2 * i + 1].at[i % 3] += pairs[2 * i].at[i % 3] > 3 ? -apart : apart;
        points[i] = points[ROOMS + i];
    }
    job.receivers = 2;
    job.receiver = pairs;
    job.frames = 4000;
    guarded got = simulate(&job, 2);
    for (int i = 0; i < ROOMS; i++)
        for (int64_t n = 800; n < job.frames; n++) {
            const double a = (double)got.channel[0][2 * i * job.frames + n];
            const double b = (double)got.channel[0][(2 * i + 1) * job.frames + n];
            product += a * b;
            square[0] += a * a;
            square[1] += b * b;
        }
    for (int k = 0; k < 1000; k++) {
        const double x = 2 * pi * (k + 0.5) / 1000 * 8000 * apart / 343.2;
        want += sin(x) / x / 1000;
    }
    CHECK(fabs(product / sqrt(square[0] * square[1]) - want) <= 0.02, "coherence %.3f, not %.3f",
          product / sqrt(square[0] * square[1]), want);
    guarded_free(&got);
}

/* Noise in place of reflections begins with the direct sound of each source and receiver, which the noise of others
 * precedes; and frames do not depend on how many follow. */
static void noise_begins_behind_the_direct_sound(void **state) {
    (void)state;
    enum { SHORT = 960, LONG = 4000, POINTS = 3, PAIRS = POINTS * POINTS };
    const gpuconv_room_point source[POINTS] = {
        {{1.1, 0.2, 0.9}, 0, 0, 1}, {{17, 9, 5}, 40, 10, 0.5}, {{1.3, 0.4, 1}, 0, 0, 1}};
    const gpuconv_room_point receiver[POINTS] = {
        {{1.2, 0.4, 1.1}, 0, 0, 1}, {{18.5, 9.7, 0.1}, 0, 0, 1}, {{0.1, 9.8, 5.9}, 70, 0, 0.5}};
    gpuconv_room room = {.size = {19, 10, 6}};
    for (int b = 0; b < GPUCONV_ROOM_BANDS; b++)
        room.rt60[b] = 0.8;
    gpuconv_rooms_job job = job_of_room(&room, source, receiver);
    job.sources = job.receivers = POINTS;
    job.alike = job.tail = true; /* without the filters of bands, which ring before a sound */
    for (int k = 0; k < 5; k++) {
        job.images_order = k < 3 ? k : -1;
        job.images_seconds = k == 2 || k == 3 ? 0.005 : 0;
        job.images_level = k == 4 ? 0.1 : 0;
        job.diffuse = k == 1;
        job.frames = SHORT;
        guarded begin = simulate(&job, 1);
        job.frames = LONG;
        guarded whole = simulate(&job, 1);
        for (int i = 0; i < PAIRS; i++) {
            const float *h = whole.channel[0] + i * LONG;
            double square = 0, late = 0, want[SHORT];
            for (int a = 0; a < 3; a++)
                square += pow(source[i / POINTS].at[a] - receiver[i % POINTS].at[a], 2);
            const int64_t direct = (int64_t)(sqrt(square) / 343.2 * job.rate);
            for (int64_t n = 0; n < direct - 26; n++)
                CHECK(h[n] == 0, "case %d, pair %d: frame %d before the direct sound at %d is %g", k, i, (int)n,
                      (int)direct, (double)h[n]);
            for (int64_t n = direct + 26; n < LONG; n++)
                late += (double)h[n] * (double)h[n];
            CHECK(late > 1e-4, "case %d, pair %d: the energy behind the direct sound is %g", k, i, late);
            for (int64_t n = 0; n < SHORT; n++)
                want[n] = (double)h[n];
            check_error("the beginning", begin.channel[0] + i * SHORT, want, SHORT, -80);
        }
        guarded_free(&begin);
        guarded_free(&whole);
    }
}

/* ---- Ambisonics -------------------------------------------------------------------------------------------------- */

static void channels_of_one_image_are_its_harmonics(void **state) {
    (void)state;
    const gpuconv_room room = {.size = {5, 4, 3}};
    const gpuconv_room_point source = {{4.1, 2.9, 2.2}, 0, 0, 1}, receiver = {{1.3, 1.1, 0.9}, 35, 10, 1},
                             omni = {{1.3, 1.1, 0.9}, 0, 0, 1};
    const double azimuth = 35 * pi / 180, elevation = 10 * pi / 180;
    const double front[3] = {cos(elevation) * cos(azimuth), cos(elevation) * sin(azimuth), sin(elevation)};
    const double left[3] = {-sin(azimuth), cos(azimuth), 0};
    const double up[3] = {-sin(elevation) * cos(azimuth), -sin(elevation) * sin(azimuth), cos(elevation)};
    double x = 0, y = 0, z = 0, length = 0;
    for (int a = 0; a < 3; a++) {
        const double d = source.at[a] - receiver.at[a];
        x += d * front[a];
        y += d * left[a];
        z += d * up[a];
        length += d * d;
    }
    length = sqrt(length);
    x /= length, y /= length, z /= length;
    /* ACN 0..15 and 24 in SN3D. */
    const double want[] = {1,
                           y,
                           z,
                           x,
                           sqrt(3) * x * y,
                           sqrt(3) * y * z,
                           (3 * z * z - 1) / 2,
                           sqrt(3) * x * z,
                           sqrt(3) / 2 * (x * x - y * y),
                           sqrt(5. / 8) * y * (3 * x * x - y * y),
                           sqrt(15) * x * y * z,
                           sqrt(3. / 8) * y * (5 * z * z - 1),
                           z * (5 * z * z - 3) / 2,
                           sqrt(3. / 8) * x * (5 * z * z - 1),
                           sqrt(15) / 2 * z * (x * x - y * y),
                           sqrt(5. / 8) * x * (x * x - 3 * y * y)};
    gpuconv_rooms_job job = job_of_room(&room, &source, &omni);
    job.frames = 400;
    job.images_order = 0;
    guarded direct = simulate(&job, 1);
    job.receiver = &receiver;
    for (int order = 1; order <= GPUCONV_ROOM_AMBISONIC; order++) {
        job.ambisonic = order;
        guarded got = simulate(&job, 1);
        for (int c = 0; c < 16 && c < (order + 1) * (order + 1); c++)
            for (int n = 0; n < 400; n++)
                CHECK(fabs((double)got.channel[0][c * 400 + n] - want[c] * (double)direct.channel[0][n]) <= 1e-6,
                      "order %d, channel %d, frame %d", order, c, n);
        if (order == 4)
            CHECK(fabs((double)got.channel[0][24 * 400 + 193] -
                       sqrt(35) / 8 * (pow(x, 4) - 6 * x * x * y * y + pow(y, 4)) * (double)direct.channel[0][193]) <=
                      1e-6,
                  "channel 24");
        guarded_free(&got);
    }
    guarded_free(&direct);
}

/* ---- Batches and refusals ---------------------------------------------------------------------------------------- */

static void the_bytes_depend_on_neither_threads_nor_batch(void **state) {
    (void)state;
    enum { ROOMS = 5 };
    static const double size[3] = {5, 4, 3};
    gpuconv_room room[ROOMS];
    gpuconv_room_point points[2 * ROOMS];
    gpuconv_rooms_job job = similar_rooms(room, points, ROOMS, size);
    for (int i = 0; i < ROOMS * GPUCONV_ROOM_BANDS; i++)
        room[i / GPUCONV_ROOM_BANDS].rt60[i % GPUCONV_ROOM_BANDS] = i / GPUCONV_ROOM_BANDS ? 0.4 + 0.01 * i : 0.4;
    job.frames = 2001;
    job.tail = true;
    job.images_seconds = 0.03;
    job.alike = true; /* on a GPU the filters of bands are transforms, whose size depends on the batch */
    guarded one = simulate(&job, 1), many = simulate(&job, 3);
    assert_true(oracle_identical("threads", &one, one.frames, &many, many.frames));
    job.seed = 2;
    guarded other = simulate(&job, 1);
    assert_memory_not_equal(one.channel[0], other.channel[0], (size_t)one.frames * sizeof(float));
    assert_memory_equal(one.channel[0], other.channel[0], 300 * sizeof(float));
    job.seed = 1;
    job.rooms = 1;
    guarded alone = simulate(&job, 1);
    assert_memory_equal(alone.channel[0], one.channel[0], (size_t)job.frames * sizeof(float));
    guarded_free(&one);
    guarded_free(&many);
    guarded_free(&other);
    guarded_free(&alone);
}

#ifndef GPU_ROOMS
static void the_instruction_sets_agree(void **state) {
    (void)state;
    enum { IMAGES = 203, FRAMES = 37, LANES = 16, STEPS = FRAMES * GC_IMAGE_STEPS + GC_IMAGE_MARGIN };
    static float gain[IMAGES * LANES], along_pattern[IMAGES], taps[GC_IMAGE_TAPS], outer[LANES], sums[STEPS * LANES];
    static float made[2][(FRAMES + 3) * LANES];
    static double along[IMAGES];
    oracle_random random = {5};
    int count;
    const gc_simd *const *sets = gc_simd_all(&count);
    oracle_fill(&random, gain, IMAGES * LANES);
    oracle_fill(&random, along_pattern, IMAGES);
    oracle_fill(&random, taps, 2 * GC_IMAGE_HALF + 1);
    oracle_fill(&random, outer, LANES);
    for (int i = 0; i < IMAGES; i++)
        along[i] = (i - 100) * 0.31;
    for (int lanes = 1; lanes <= LANES; lanes = lanes == 1 ? 8 : 2 * lanes)
        for (int s = 0; s < count; s++) {
            const gc_image_row row = {IMAGES,
                                      along,
                                      1.7,
                                      9,
                                      3,
                                      290,
                                      25,
                                      0.2,
                                      outer,
                                      gain,
                                      lanes,
                                      lanes,
                                      {{0.5F, 0.1F, along_pattern}, {0, 0, NULL}},
                                      NULL,
                                      NULL,
                                      0};
            memset(sums, 0, sizeof sums);
            sets[s]->image->add(&row, sums);
            sets[s]->image->reduce(sums, taps, lanes, FRAMES, made[s > 0]);
            for (int n = 0; n < FRAMES * lanes && s > 0; n++)
                CHECK(fabsf(made[1][n] - made[0][n]) <= 2e-4F, "%s, %d lanes, %d: %g and %g", sets[s]->name, lanes, n,
                      (double)made[1][n], (double)made[0][n]);
        }
}

/* Checks that a job is refused with these words, without a frame written. */
static void refuse(const gpuconv_rooms_job *job, const char *words) {
    gpuconv_arrays *place = new_place(1);
    guarded out = guarded_new(1, 100);
    gpuconv_error error = {0};
    const gpuconv_status status = gpuconv_rooms_simulate(place, job, out.channel[0], &error);
    CHECK(status == GPUCONV_ERROR_ARGUMENT && strstr(error.message, words), "%d, '%s', not '%s'", status, error.message,
          words);
    for (int n = 0; n < 100; n++)
        CHECK(isnan((double)out.channel[0][n]), "frame %d was written", n);
    gpuconv_arrays_free(place);
    guarded_free(&out);
}

static void impossible_rooms_are_refused(void **state) {
    (void)state;
    gpuconv_room room = {.size = {5, 4, 3}};
    gpuconv_room_point source = {{1, 1, 1}, 0, 0, 1}, receiver = {{2, 2, 2}, 0, 0, 1};
    gpuconv_rooms_job job = job_of_room(&room, &source, &receiver);
    job.frames = 100;
#define REFUSE(field, value, words)                                                                                    \
    do {                                                                                                               \
        const double before = (double)(field);                                                                         \
        (field) = (value);                                                                                             \
        refuse(&job, words);                                                                                           \
        (field) = before;                                                                                              \
    } while (0)
    REFUSE(room.size[1], 0, "room[0].size[1] is 0 m; use 0.1 to 1000");
    REFUSE(room.size[2], NAN, "room[0].size[2] is nan");
    REFUSE(room.absorption[3][2], 1.5, "room[0].absorption[3][2] is 1.5; use 0 to 1");
    REFUSE(room.absorption[0][8], NAN, "room[0].absorption[0][8] is nan");
    REFUSE(room.rt60[4], 0.5, "room[0].rt60[0] is 0 s; use 0.01 to 1000, or 0 in all bands");
    REFUSE(source.at[2], 3, "source[0].at[2] is 3 m; use more than 0 and less than 3");
    REFUSE(receiver.at[0], -1, "receiver[0].at[0] is -1 m");
    REFUSE(receiver.azimuth, 361, "azimuth 361");
    REFUSE(source.omni, -0.1, "source[0].omni is -0.1");
    REFUSE(job.rooms, 0, "rooms is 0; use 1 to");
    REFUSE(job.sources, -1, "sources is -1");
    REFUSE(job.ambisonic, 5, "ambisonic is 5; use 0 to 4");
    REFUSE(job.rate, NAN, "rate is nan");
    REFUSE(job.frames, INT64_C(1) << 28, "frames is 2.68435e+08");
    REFUSE(job.humidity, 101, "humidity is 101");
    REFUSE(job.images_order, -2, "images_order is -2");
    REFUSE(job.highpass, 8000, "highpass is 8000; use 0 to 7200");
    gpuconv_sofa *ears = random_ears(1);
    job.ears = ears;
    REFUSE(job.rate, 48000, "16000 Hz, ambisonic 0; use one loudspeaker, 48000 Hz and 0");
    REFUSE(job.ambisonic, 1, "16000 Hz, ambisonic 1");
    job.ears = NULL;
    gpuconv_sofa_free(ears);
#undef REFUSE
    receiver = source;
    refuse(&job, "source 0 and receiver 0 of room 0 are in one place");
    receiver.at[0] = 2;
    for (int formula = 0; formula < 3; formula++) {
        job.formula = (gpuconv_room_formula)formula;
        for (int b = 0; b < GPUCONV_ROOM_BANDS; b++)
            room.rt60[b] = 0.02;
        refuse(&job, "room[0].rt60[0] is 0.02 s; in this room walls that absorb 99 % have");
    }
}

#endif

static void a_huge_room_with_a_long_decay_works(void **state) {
    (void)state;
    gpuconv_room room = {.size = {80, 50, 25}};
    const gpuconv_room_point source = {{11, 22, 3}, 0, 0, 1}, receiver = {{44, 30, 2}, 0, 0, 1};
    gpuconv_rooms_job job = job_of_room(&room, &source, &receiver);
    for (int b = 0; b < GPUCONV_ROOM_BANDS; b++)
        room.rt60[b] = 10 - 0.5 * b;
    job.rate = 8000;
    job.frames = 80000;
    job.air = true;
    guarded got = simulate(&job, 1);
    double energy = 0;
    for (int64_t n = 0; n < job.frames; n++)
        energy += (double)got.channel[0][n] * (double)got.channel[0][n];
    CHECK(energy > 1e-4 && energy < 1, "energy %g", energy);
    guarded_free(&got);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_image_has_its_delay_and_amplitude),
        cmocka_unit_test(late_images_keep_their_delays),
        cmocka_unit_test(bands_and_air_are_those_of_the_formula),
        cmocka_unit_test(walls_that_are_alike_need_one_sum),
        cmocka_unit_test(ears_hear_every_image_through_the_head),
        cmocka_unit_test(the_decay_is_the_one_that_was_asked),
        cmocka_unit_test(noise_has_the_energy_of_the_images_that_it_replaces),
        cmocka_unit_test(noise_is_coherent_as_a_diffuse_field),
        cmocka_unit_test(noise_begins_behind_the_direct_sound),
        cmocka_unit_test(channels_of_one_image_are_its_harmonics),
        cmocka_unit_test(the_bytes_depend_on_neither_threads_nor_batch),
#ifdef GPU_ROOMS
        cmocka_unit_test(rooms_on_the_gpu_are_those_of_the_cpu),
        cmocka_unit_test(what_the_cpu_refuses_is_silent),
        cmocka_unit_test(a_graph_simulates_what_the_memory_then_has),
#else
        cmocka_unit_test(the_instruction_sets_agree),
        cmocka_unit_test(impossible_rooms_are_refused),
#endif
        cmocka_unit_test(a_huge_room_with_a_long_decay_works),
    };
    if (argc > 1)
        cmocka_set_test_filter(strcmp(argv[1], "--quick") ? argv[1] : "rooms_on_the_gpu*"); /* under a sanitizer */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
