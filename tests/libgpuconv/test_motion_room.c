/* Checks movement in a simulated room against a response for every sample in double precision that shares no code with
 * the library; a tone through a walk; ends that stay; blocks, threads and live playing; and what is refused. */
#include "gpuconv_rooms.h"
#include "harness.h"

#include "libgpuconv/space/motion.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum { RATE = 16000, FRAMES = 8000, TONES = 40 };

static const double pi = 3.14159265358979323846, size[3] = {5, 4, 3}, speed = 343.2, absorption = 0.3;

/* A straight walk from `from` at 0 s to `to` at the end of the input. */
typedef struct walk {
    double from[3], to[3];
} walk;

static const walk source_walk = {{1, 1.2, 1.6}, {1.6, 1.6, 1.5}}, receiver_walk = {{4, 2.6, 1.2}, {3.7, 2.2, 1.3}},
                  source_rest = {{1, 1.2, 1.6}, {1, 1.2, 1.6}}, receiver_rest = {{4, 2.6, 1.2}, {4, 2.6, 1.2}};

static gpuconv_path *path_of(const walk *w, int64_t frames) {
    const double seconds[2] = {0, (double)frames / RATE};
    gpuconv_path *path;
    CHECK(gpuconv_path_new_in_room(seconds, w->from, 2, 1, &path, NULL) == GPUCONV_OK, "no path");
    return path;
}

/* A room with walls that are alike in all bands. */
static gpuconv_room room_of(double part) {
    gpuconv_room room = {.size = {size[0], size[1], size[2]}};
    for (int w = 0; w < 6; w++)
        for (int b = 0; b < GPUCONV_ROOM_BANDS; b++)
            room.absorption[w][b] = part;
    return room;
}

static gpuconv_rooms_job job_of(const gpuconv_room *room, const gpuconv_room_point *receiver) {
    gpuconv_rooms_job job = gpuconv_rooms_job_default();
    job.room = room;
    job.rooms = 1;
    job.receiver = receiver;
    job.rate = RATE;
    return job;
}

static gpuconv_motion *new_motion(const gpuconv_rooms_job *job, const gpuconv_path *source,
                                  const gpuconv_path *receiver, double interval, int threads) {
    gpuconv_motion_config config = gpuconv_motion_config_default();
    gpuconv_motion *m;
    gpuconv_error error = {0};
    config.interval = interval;
    config.threads = threads;
    CHECK(gpuconv_motion_new_in_room(job, source, receiver, &config, &m, &error) == GPUCONV_OK, "%s", error.message);
    return m;
}

/* Feeds the input in blocks, and frees the sources. */
static guarded run(gpuconv_motion *m, const guarded *x, int64_t block) {
    gpuconv_error error = {0};
    guarded y = guarded_new(m->receivers, x->frames + gpuconv_motion_tail(m));
    float *out[32];
    int64_t got = 0;
    for (int64_t at = 0; at < x->frames; at += block) {
        const float *in[4];
        for (int c = 0; c < x->channels; c++)
            in[c] = x->channel[c] + at;
        const int64_t frames = x->frames - at < block ? x->frames - at : block;
        CHECK(gpuconv_motion_feed(m, in, frames, &error) == GPUCONV_OK, "%s", error.message);
    }
    CHECK(gpuconv_motion_feed(m, NULL, 0, &error) == GPUCONV_OK, "%s", error.message);
    for (int r = 0; r < y.channels; r++)
        out[r] = y.channel[r];
    assert_int_equal(gpuconv_motion_fetch(m, out, y.frames, &got), GPUCONV_OK);
    assert_int_equal(got, y.frames);
    CHECK(guarded_intact(&y), "written outside the output");
    gpuconv_motion_free(m);
    return y;
}

/* ---- A response for every sample --------------------------------------------------------------------------------- */

static double phases[TONES];

/* Returns noise of 100 to 2000 Hz at a time in frames, which begins softly. */
static double noise_at(double frame) {
    double sum = 0;
    const double part = fmin(frame / 200, 1), rise = frame > 0 ? sin(pi / 2 * part) * sin(pi / 2 * part) : 0;
    for (int i = 0; i < TONES && rise > 0; i++)
        sum += sin(2 * pi * (100 + 1900 * (i + 0.37) / TONES) * frame / RATE + phases[i]);
    return 0.1 * rise * sum;
}

static void place_at(const walk *w, double frame, double to[3]) {
    const double part = fmin(fmax(frame / FRAMES, 0), 1);
    for (int a = 0; a < 3; a++)
        to[a] = w->from[a] + part * (w->to[a] - w->from[a]);
}

static double distance(const double a[3], const double b[3]) {
    return sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) + (a[2] - b[2]) * (a[2] - b[2]));
}

/* Adds the images of up to two reflections of the sound whose direct sound arrives at frame `now`. */
static void add_images(const walk *source, const walk *receiver, int now, double *to, int64_t frames) {
    double s[3], r[3], direct = 0;
    place_at(receiver, now, r);
    for (int i = 0; i < 20; i++) {
        place_at(source, now - direct / speed * RATE, s);
        direct = distance(s, r);
    }
    const double x = noise_at(now - direct / speed * RATE);
    for (int n = 0; n < 125; n++) {
        const int index[3] = {n % 5 - 2, n / 5 % 5 - 2, n / 25 - 2};
        const int hits = abs(index[0]) + abs(index[1]) + abs(index[2]);
        double image[3];
        for (int a = 0; a < 3; a++)
            image[a] = index[a] % 2 ? (index[a] + 1) * size[a] - s[a] : index[a] * size[a] + s[a];
        if (hits > 2)
            continue;
        const double far = distance(image, r), late = now + (far - direct) / speed * RATE;
        const double level = x * pow(1 - absorption, hits / 2.0) / far;
        oracle_add_sinc(late, level, frames, to);
    }
}

/* Returns the error in dB of a walk whose responses are exchanged each interval. */
static double error_of(const walk *source, const walk *receiver, const double *want, double interval) {
    const gpuconv_room room = room_of(absorption);
    const gpuconv_room_point point = {.omni = 1};
    gpuconv_rooms_job job = job_of(&room, &point);
    gpuconv_path *paths[2] = {path_of(source, FRAMES), path_of(receiver, FRAMES)};
    guarded x = guarded_new(1, FRAMES);
    double error = 0, power = 0;
    job.images_order = 2;
    job.frames = 1600;
    for (int n = 0; n < FRAMES; n++)
        x.channel[0][n] = (float)noise_at(n);
    guarded y = run(new_motion(&job, paths[0], paths[1], interval, 2), &x, 1000);
    for (int n = 0; n < FRAMES - 100; n++) {
        error += ((double)y.channel[0][n] - want[n]) * ((double)y.channel[0][n] - want[n]);
        power += want[n] * want[n];
    }
    guarded_free(&x);
    guarded_free(&y);
    gpuconv_path_free(paths[0]);
    gpuconv_path_free(paths[1]);
    return 10 * log10(error / power);
}

/* Speeds are 1.5 m/s of the source and 1 m/s of the receiver. */
static void walks_have_a_response_for_every_sample(void **state) {
    (void)state;
    static const struct {
        const char *name;
        const walk *source, *receiver;
        double bound[2]; /* dB, of exchanges every 5 and 20 ms */
    } cases[] = {{"rest", &source_rest, &receiver_rest, {-105, -105}},
                 {"source", &source_walk, &receiver_rest, {-72, -31}},
                 {"receiver", &source_rest, &receiver_walk, {-90, -45}},
                 {"both", &source_walk, &receiver_walk, {-68, -25}}};
    oracle_random random = {7};
    double *want = calloc(FRAMES, sizeof *want);
    CHECK(want, "no memory");
    for (int i = 0; i < TONES; i++)
        phases[i] = pi * (double)oracle_uniform(&random);
    for (int i = 0; i < COUNT(cases); i++) {
        memset(want, 0, FRAMES * sizeof *want);
        for (int now = -100; now < FRAMES + 100; now++)
            add_images(cases[i].source, cases[i].receiver, now, want, FRAMES);
        const double fine = error_of(cases[i].source, cases[i].receiver, want, 0.005);
        const double coarse = error_of(cases[i].source, cases[i].receiver, want, 0.02);
        if (getenv("SHOW_FIGURES"))
            print_message("%s: %.1f dB at 5 ms, %.1f dB at 20 ms\n", cases[i].name, fine, coarse);
        CHECK(fine <= cases[i].bound[0] && coarse <= cases[i].bound[1], "%s: %.1f and %.1f dB", cases[i].name, fine,
              coarse);
        CHECK(i == 0 || fine <= coarse - 35, "%s: %.1f dB with four times the interval of %.1f dB", cases[i].name,
              coarse, fine);
    }
    free(want);
}

/* ---- A tone ------------------------------------------------------------------------------------------------------ */

/* The frames of a part, of which a spectrum is computed by its definition: a circle of as many steps, and a window. */
enum { PART = 4096 };
static double circle[PART], window[PART];

static void fill_circle(void) {
    for (int n = 0; n < PART; n++)
        circle[n] = cos(2 * pi * n / PART);
    for (int n = 0; n < PART; n++)
        window[n] = 0.35875 - 0.48829 * circle[n] + 0.14128 * circle[2 * n % PART] - 0.01168 * circle[3 * n % PART];
}

/* Returns the energy of a windowed part at k periods a part. */
static double energy_at(const float *y, int k) {
    double re = 0, im = 0;
    for (int n = 0; n < PART; n++) {
        re += window[n] * (double)y[n] * circle[k * n % PART];
        im += window[n] * (double)y[n] * circle[(k * n + PART / 4) % PART]; /* the negative sine */
    }
    return re * re + im * im;
}

/* Both ends walk for 2 s, in a room with all that the command gives it. */
static void a_tone_through_a_walk_has_no_click_and_no_step(void **state) {
    (void)state;
    enum { LONG = 2 * RATE, FIRST = RATE / 2 };
    static const walk there = {{0.8, 0.9, 1.6}, {3.4, 2.4, 1.6}}, back = {{4.4, 3.2, 1.3}, {2.2, 0.8, 1.7}};
    gpuconv_room room = {.size = {5, 4, 3}};
    const gpuconv_room_point point = {.omni = 1};
    gpuconv_rooms_job job = job_of(&room, &point);
    for (int b = 0; b < GPUCONV_ROOM_BANDS; b++)
        room.rt60[b] = 0.5;
    job.images_seconds = 0.09;
    job.tail = job.air = true;
    job.highpass = 25;
    gpuconv_path *paths[2] = {path_of(&there, LONG), path_of(&back, LONG)};
    guarded x = guarded_new(1, LONG);
    for (int n = 0; n < LONG; n++)
        x.channel[0][n] = (float)(0.3 * fmin(1, n / 2000.0) * sin(2 * pi * 1000 * n / RATE));
    guarded y = run(new_motion(&job, paths[0], paths[1], 0.005, 0), &x, LONG);
    double worst = -HUGE_VAL, largest = 0, step = 0;
    fill_circle();
    for (int part = 0; part < 4; part++) {
        const float *from = y.channel[0] + FIRST + part * PART;
        double inside = 0, outside = 0;
        for (int k = 5; k < PART / 2; k++) {
            const double hz = (double)k * RATE / PART, energy = energy_at(from, k);
            *(fabs(hz - 1000) < 60 ? &inside : &outside) += energy;
        }
        worst = fmax(worst, 10 * log10(outside / inside));
        for (int n = 1; n < PART - 1; n++) { /* of a tone the residue of its own equation is small */
            largest = fmax(largest, fabs((double)from[n]));
            step = fmax(step, fabs((double)from[n + 1] + (double)from[n - 1] -
                                   2 * cos(2 * pi * 1000 / RATE) * (double)from[n]));
        }
    }
    if (getenv("SHOW_FIGURES"))
        print_message("outside 940 to 1060 Hz: %.1f dB; residue %.5f of the largest sample\n", worst, step / largest);
    CHECK(worst <= -60, "%.1f dB outside 940 to 1060 Hz", worst);
    CHECK(step <= 0.01 * largest, "a step of %.4f of the largest sample", step / largest);
    guarded_free(&x);
    guarded_free(&y);
    gpuconv_path_free(paths[0]);
    gpuconv_path_free(paths[1]);
}

/* ---- Ends that stay, blocks, threads, live ----------------------------------------------------------------------- */

/* Fills two channels with noise below a third of the rate, where interpolation is exact. */
static guarded make_noise(int64_t frames) {
    oracle_random random = {3};
    guarded x = guarded_new(2, frames);
    for (int c = 0; c < 2; c++) {
        for (int n = 0; n < frames; n++)
            x.channel[c][n] = n > 0 && n < frames - 200 ? oracle_uniform(&random) : 0;
        for (int pass = 0; pass < 12; pass++)
            for (int64_t n = frames - 1; n > 0; n--)
                x.channel[c][n] = 0.5F * (x.channel[c][n] + x.channel[c][n - 1]);
    }
    return x;
}

static void ends_that_stay_have_the_simulated_response(void **state) {
    (void)state;
    enum { SHORT = 3000, TAPS = 5400 };
    gpuconv_room room = {.size = {5, 4, 3}};
    const gpuconv_room_point sources[2] = {{{1, 1.2, 1.6}, 30, 0, 0.5}, {{2.2, 3.1, 1.1}, 0, 0, 1}};
    const gpuconv_room_point receivers[2] = {{{4, 2.6, 1.2}, 120, 10, 0.7}, {{4.1, 2.6, 1.3}, 0, 0, 1}};
    gpuconv_rooms_job job = job_of(&room, receivers);
    gpuconv_error error = {0};
    gpuconv_arrays *place;
    gpuconv_sofa *set;
    job.source = sources;
    job.sources = job.receivers = 2;
    job.air = job.tail = true;
    job.images_seconds = 0.1;
    job.highpass = 25;
    job.seed = 77;
    guarded x = make_noise(SHORT);
    assert_int_equal(gpuconv_arrays_new_cpu(1, &place, &error), GPUCONV_OK);
    CHECK(gpuconv_sofa_open(TESTS_SOURCE "/tests/sofa/head.sofa", RATE, &set, &error) == GPUCONV_OK, "%s",
          error.message);
    for (int order = 0; order < 3; order++) { /* 2: the ears of a head */
        const int each = order == 2 ? 2 : (order + 1) * (order + 1);
        const double bound = order ? -65 : -85; /* the filters of octaves ring before the direct sound, which is cut */
        for (int b = 0; b < GPUCONV_ROOM_BANDS; b++)
            room.rt60[b] = 0.2 + 0.01 * b * order;
        job.ambisonic = order % 2;
        job.ears = order == 2 ? set : NULL;
        job.frames = TAPS;
        guarded taps = guarded_new(1, (int64_t)4 * each * TAPS);
        CHECK(gpuconv_rooms_simulate(place, &job, taps.channel[0], &error) == GPUCONV_OK, "%s", error.message);
        guarded y = run(new_motion(&job, NULL, NULL, 0.005, 1), &x, SHORT);
        assert_int_equal(y.channels, 2 * each);
        for (int r = 0; r < 2 * each; r++) {
            static double want[SHORT + TAPS - 1];
            const oracle_route routes[2] = {{0, 0, taps.channel[0] + r * TAPS},
                                            {1, 0, taps.channel[0] + (2 * each + r) * TAPS}};
            double off = pow((double)y.channel[r][SHORT + TAPS - 1], 2), power = 0; /* where nothing is expected */
            oracle_convolve((const float *const *)x.channel, SHORT, routes, 2, TAPS, 1, want);
            for (int n = 0; n < SHORT + TAPS - 1; n++) {
                off += pow((double)y.channel[r][n] - want[n], 2);
                power += want[n] * want[n];
            }
            if (getenv("SHOW_FIGURES"))
                print_message("order %d, channel %d: %.1f dB\n", order, r, 10 * log10(off / power));
            CHECK(10 * log10(off / power) <= bound, "order %d, channel %d: %.1f dB", order, r, 10 * log10(off / power));
        }
        guarded_free(&y);
        guarded_free(&taps);
    }
    gpuconv_arrays_free(place);
    gpuconv_sofa_free(set);
    guarded_free(&x);
}

/* Returns a path of two channels, the second of which stays. */
static gpuconv_path *two_channels(int64_t frames) {
    const double seconds[2] = {0, (double)frames / RATE};
    const double rows[2][2][3] = {{{1, 1.2, 1.6}, {2, 3, 1}}, {{1.4, 1.7, 1.5}, {2, 3, 1}}};
    gpuconv_path *path;
    CHECK(gpuconv_path_new_in_room(seconds, rows[0][0], 2, 2, &path, NULL) == GPUCONV_OK, "no path");
    return path;
}

/* Plays in blocks, with the thread in time, and frees the sources. Returns the frames from the latency on. */
static guarded play(gpuconv_motion *m, const guarded *x, int64_t frames, int block) {
    gpuconv_error error = {0};
    guarded y = guarded_new(m->receivers, frames);
    static float in[2][4096], out[2][4096];
    float *const to[2] = {out[0], out[1]};
    CHECK(gpuconv_motion_start(m, block, &error) == GPUCONV_OK, "%s", error.message);
    const int64_t latency = gpuconv_motion_latency(m);
    for (int64_t at = 0; at < frames + latency; at += block) {
        for (int c = 0; c < 2; c++)
            for (int i = 0; i < block; i++)
                in[c][i] = at + i < x->frames ? x->channel[c][at + i] : 0;
        gpuconv_motion_process(m, (const float *const[2]){in[0], in[1]}, to, block);
        for (int r = 0; r < y.channels; r++)
            for (int i = 0; i < block; i++)
                if (at + i >= latency && at + i - latency < frames)
                    y.channel[r][at + i - latency] = out[r][i];
        gc_motion_settle(m);
    }
    assert_int_equal(gpuconv_motion_late(m), 0);
    gpuconv_motion_free(m);
    return y;
}

static void blocks_threads_and_live_playing_give_the_same_samples(void **state) {
    (void)state;
    enum { SHORT = 2500 };
    gpuconv_room room = {.size = {5, 4, 3}};
    const gpuconv_room_point array[2] = {{{1, 1, 1}, 120, 10, 0.7}, {{1.1, 1, 1}, 0, 0, 1}};
    gpuconv_rooms_job job = job_of(&room, array);
    for (int b = 0; b < GPUCONV_ROOM_BANDS; b++)
        room.rt60[b] = 0.2;
    job.receivers = 2;
    job.frames = 2000;
    job.air = job.tail = true;
    job.images_seconds = 0.03;
    guarded x = make_noise(SHORT);
    gpuconv_path *path = two_channels(SHORT), *receivers = path_of(&receiver_walk, SHORT);
    guarded want = run(new_motion(&job, path, receivers, 0.005, 1), &x, SHORT);
    static const int blocks[] = {1, 333, 1000};
    for (int i = 0; i < COUNT(blocks); i++) {
        guarded y = run(new_motion(&job, path, receivers, 0.005, i + 1), &x, blocks[i]);
        CHECK(oracle_identical("fed", &want, want.frames, &y, y.frames), "blocks of %d", blocks[i]);
        guarded_free(&y);
        y = play(new_motion(&job, path, receivers, 0.005, i + 1), &x, want.frames, blocks[i] + 63);
        CHECK(oracle_identical("live", &want, want.frames, &y, y.frames), "blocks of %d", blocks[i] + 63);
        guarded_free(&y);
    }
    gpuconv_path_free(path);
    gpuconv_path_free(receivers);
    guarded_free(&want);
    guarded_free(&x);
}

static void a_head_turns_the_receivers_and_a_control_places_a_source(void **state) {
    (void)state;
    const gpuconv_room room = room_of(absorption);
    const gpuconv_room_point sources[2] = {{{1, 1.2, 1.6}, 0, 0, 1}, {{2, 3, 1}, 0, 0, 1}};
    gpuconv_room_point array[2] = {{{3, 2, 1.5}, 10, 5, 0.5}, {{3.1, 2, 1.5}, 40, 0, 0.3}};
    const double zero = 0, angles[3] = {90, 0, 0}, outside[3] = {-4, 3, 1}, edge[3] = {0.001, 3, 1};
    gpuconv_rooms_job job = job_of(&room, array);
    gpuconv_head *head;
    gpuconv_path *path;
    gpuconv_motion *m;
    gpuconv_motion_config config = gpuconv_motion_config_default();
    job.source = sources;
    job.sources = job.receivers = 2;
    job.images_order = 2;
    job.frames = 1000;
    guarded x = make_noise(1000);
    assert_int_equal(gpuconv_head_new(&zero, angles, 1, &head, NULL), GPUCONV_OK);
    config.head = head;
    assert_int_equal(gpuconv_motion_new_in_room(&job, NULL, NULL, &config, &m, NULL), GPUCONV_OK);
    guarded turned = run(m, &x, 1000);
    array[0].azimuth += 90;
    array[1].azimuth += 90;
    array[1].at[0] = 3;
    array[1].at[1] = 2.1;
    guarded y = run(new_motion(&job, NULL, NULL, 0.005, 1), &x, 1000);
    CHECK(harness_distance(&turned, &y, y.frames) <= -90, "%.1f dB", harness_distance(&turned, &y, y.frames));
    guarded_free(&y);
    m = new_motion(&job, NULL, NULL, 0.005, 1);
    gpuconv_motion_place(m, 0, outside);
    gpuconv_motion_place(m, 1, array[0].at); /* in the place of a receiver */
    y = run(m, &x, 1000);
    double at[2][3] = {{edge[0], edge[1], edge[2]}, {3, 2, 1.45}};
    assert_int_equal(gpuconv_path_new_in_room(&zero, at[0], 1, 2, &path, NULL), GPUCONV_OK);
    guarded same = run(new_motion(&job, path, NULL, 0.005, 1), &x, 1000);
    same.channels = y.channels = 1; /* the other receiver is not that near */
    CHECK(harness_distance(&y, &same, y.frames) <= -90, "%.1f dB", harness_distance(&y, &same, y.frames));
    same.channels = y.channels = 2;
    gpuconv_path_free(path);
    gpuconv_head_free(head);
    guarded_free(&x);
    guarded_free(&y);
    guarded_free(&same);
    guarded_free(&turned);
}

/* ---- What is refused --------------------------------------------------------------------------------------------- */

static void check_refused(const gpuconv_rooms_job *job, const gpuconv_path *path, const gpuconv_path *receivers,
                          const gpuconv_motion_config *config, gpuconv_status status, const char *words) {
    gpuconv_motion *m = (gpuconv_motion *)1;
    gpuconv_error error = {0};
    const gpuconv_status got = gpuconv_motion_new_in_room(job, path, receivers, config, &m, &error);
    CHECK(got == status && !m, "%s: %d", words, (int)got);
    CHECK(strstr(error.message, words), "'%s' instead of '%s'", error.message, words);
}

static void what_does_not_fit_a_room_is_refused(void **state) {
    (void)state;
    static const walk out = {{1, 1, 1}, {5.5, 1, 1}}, near = {{3.5, 2.3, 1.2}, {4.5, 2.9, 1.22}};
    gpuconv_room room = room_of(absorption);
    gpuconv_room_point array[2] = {{{4, 2.6, 1.2}, 0, 0, 1}, {{4, 4.1, 1.2}, 0, 0, 1}};
    gpuconv_rooms_job job = job_of(&room, array);
    gpuconv_motion_config config = gpuconv_motion_config_default();
    gpuconv_path *away = path_of(&out, FRAMES), *close = path_of(&near, FRAMES), *good = path_of(&source_walk, FRAMES),
                 *receivers = path_of(&receiver_walk, FRAMES), *aed, *two = two_channels(FRAMES);
    const double zero = 0, direction[3] = {0, 0, 1}, negative[3] = {1, -1, 1};
    gpuconv_error error = {0};
    gpuconv_sofa *set;
    gpuconv_motion *m;
    assert_int_equal(gpuconv_path_new(&zero, direction, 1, 1, &aed, NULL), GPUCONV_OK);
    check_refused(&job, away, NULL, NULL, GPUCONV_ERROR_ARGUMENT,
                  "channel 1 is at x = 5.5 m at 0.5 s; use more than 0 and less than 5, the size of the room");
    check_refused(&job, good, away, NULL, GPUCONV_ERROR_ARGUMENT, "receiver 1 is at x = 5.5 m at 0.5 s");
    check_refused(&job, close, NULL, NULL, GPUCONV_ERROR_ARGUMENT, "channel 1 and receiver 1 come within 0.0");
    check_refused(&job, aed, NULL, NULL, GPUCONV_ERROR_ARGUMENT, "in metres");
    check_refused(&job, good, two, NULL, GPUCONV_ERROR_ARGUMENT, "1 channel, not 2");
    check_refused(&job, NULL, NULL, NULL, GPUCONV_ERROR_ARGUMENT, "job.source, without a path, is NULL");
    job.receivers = 2;
    check_refused(&job, good, receivers, NULL, GPUCONV_ERROR_ARGUMENT, "receiver 2 is at");
    job.receivers = 1;
    job.rooms = 2;
    check_refused(&job, good, NULL, NULL, GPUCONV_ERROR_ARGUMENT, "2 rooms");
    job.rooms = 1;
    job.source = array;
    job.sources = 2;
    check_refused(&job, good, NULL, NULL, GPUCONV_ERROR_ARGUMENT, "2 sources for a path of 1 channel");
    job.source = NULL;
    job.sources = 1;
    config.backend = GPUCONV_BACKEND_CUDA;
    check_refused(&job, good, NULL, &config, GPUCONV_ERROR_UNSUPPORTED, "on the CPU only");
    room.absorption[2][1] = 2;
    check_refused(&job, good, NULL, NULL, GPUCONV_ERROR_ARGUMENT, "absorption[2][1] is 2; use 0 to 1");
    room.absorption[2][1] = absorption;
    array[1].at[1] = 2.7;
    job.frames = INT64_C(1) << 27;
    job.receivers = 2;
    job.ambisonic = 4; /* 50 channels, whose spectra are refused before anything is allocated */
    check_refused(&job, good, NULL, NULL, GPUCONV_ERROR_MEMORY, "GB of memory to make");
    job.ambisonic = 0;
    job.frames = 1000;
    m = new_motion(&job, good, NULL, 0.005, 1);
    assert_int_equal(gpuconv_motion_start(m, 0, &error), GPUCONV_ERROR_ARGUMENT);
    CHECK(strstr(error.message, "by a thread"), "%s", error.message);
    gpuconv_motion_free(m);
    CHECK(gpuconv_sofa_open(TESTS_SOURCE "/tests/sofa/head.sofa", 0, &set, &error) == GPUCONV_OK, "%s", error.message);
    assert_int_equal(gpuconv_motion_new(set, good, NULL, &m, &error), GPUCONV_ERROR_ARGUMENT);
    gpuconv_path_free(away);
    assert_int_equal(gpuconv_path_new_in_room(&zero, negative, 1, 1, &away, &error), GPUCONV_ERROR_ARGUMENT);
    CHECK(strstr(error.message, "places are 0 to 1000 m"), "%s", error.message);
    gpuconv_sofa_free(set);
    gpuconv_path_free(aed);
    gpuconv_path_free(close);
    gpuconv_path_free(good);
    gpuconv_path_free(receivers);
    gpuconv_path_free(two);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walks_have_a_response_for_every_sample),
        cmocka_unit_test(a_tone_through_a_walk_has_no_click_and_no_step),
        cmocka_unit_test(ends_that_stay_have_the_simulated_response),
        cmocka_unit_test(blocks_threads_and_live_playing_give_the_same_samples),
        cmocka_unit_test(a_head_turns_the_receivers_and_a_control_places_a_source),
        cmocka_unit_test(what_does_not_fit_a_room_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
