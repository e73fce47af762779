/* Measurements with a sound device that the test simulates: disturbed and interrupted sweeps, cables, calibrated
 * levels, and the sound system that was asked for. */
#include "check.h"
#include "fake_sound.h"
#include "files.h"
#include "gpuconv/measure/measurement.h"
#include "libgpuconv/ir/object.h"

#include <math.h>

enum { RATE = 48000, LATENCY = 700, MOST = 40 * RATE, NOTES = 20, SPACING = 39 };

/* The room: the direct sound and a decay, noise of a microphone, and what happens during the sweeps. */
static struct room {
    bool decays;           /* a room, or a cable */
    double noise, gain;    /* RMS; of the cable */
    double rise;           /* of the level, in a second */
    int64_t at[3], length; /* disturbances: frames of the recording */
    double loud;           /* their amplitude */
    int64_t gap;           /* frame of the recording from which on 480 frames are missing; 0: none */
    float taps[4800], *played, *heard;
} room;

static char notes[NOTES][200];
static int noted;

static void note(const char *text) {
    if (noted < NOTES)
        snprintf(notes[noted++], sizeof notes[0], "%s", text);
}

static bool was_noted(const char *text) {
    for (int k = 0; k < noted; k++)
        if (strstr(notes[k], text))
            return true;
    return false;
}

static double uniform(void) {
    static uint64_t seed = 1;
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    return (double)(seed >> 11) * 0x1p-52 - 1;
}

/* Returns what the microphone hears at a frame. */
NOT_SANITIZED static double hear(int64_t frame) {
    double sum = room.noise * sqrt(3) * uniform();
    int64_t taps = room.decays ? COUNT(room.taps) : 1;
    for (int64_t k = 0; k < taps; k += SPACING) /* a sparse room is fast */
        if (frame - LATENCY - k >= 0)
            sum += (double)room.taps[k] * (double)room.played[frame - LATENCY - k];
    for (int k = 0; k < COUNT(room.at); k++)
        if (room.at[k] && frame >= room.at[k] && frame < room.at[k] + room.length)
            sum += room.loud * uniform();
    return room.gain * sum;
}

/* Runs the whole stream: block by block, what is heard in a block was played before it. */
static gpuconv_status run_stream(gc_sound_device *sound, gpuconv_error *error) {
    (void)sound, (void)error;
    const gc_sound_config *c = &fake_sound.opened;
    int64_t block = c->block, skipped = 0;
    float *planes = calloc((size_t)(block * (c->inputs + c->outputs)), sizeof *planes);
    const float *in[8];
    float *out[8];
    CHECK(planes && c->inputs <= 8 && c->outputs <= 8 && block > LATENCY, "cannot simulate this");
    memset(room.played, 0, MOST * sizeof *room.played);
    for (int64_t at = 0; at + block <= MOST; at += block) {
        for (int64_t i = 0; i < block; i++) {
            int64_t frame = at + i + skipped - block;
            if (room.gap && !skipped && frame >= room.gap)
                skipped = 480;
            for (int k = 0; k < c->inputs; k++)
                planes[k * block + i] = frame < 0 ? 0
                                                  : (float)((1 + room.rise * (double)frame / RATE) *
                                                            (k == 0            ? hear(frame)
                                                             : frame < LATENCY ? 0
                                                                               : (double)room.played[frame - LATENCY]));
        }
        for (int k = 0; k < c->inputs; k++)
            in[k] = planes + k * block;
        for (int k = 0; k < c->outputs; k++)
            out[k] = planes + (c->inputs + k) * block;
        c->callback(c->context, in, out, block);
        memcpy(room.played + at, out[c->outputs - 1], (size_t)block * sizeof(float));
    }
    free(planes);
    return GPUCONV_OK;
}

static gc_measurement_config config_of(int repeat) {
    gc_measurement_config c = {.sweep = {.rate = RATE, .seconds = 2, .from = 20, .level = -6, .silence = 0.5},
                               .output = 1,
                               .inputs = 2,
                               .loopback = 2,
                               .repeat = repeat,
                               .noise = 0.5,
                               .length = 0.2,
                               .block = 1024,
                               .note = note};
    return c;
}

static int begin(void **state) {
    oracle_random random = {.state = 4};
    float *played = room.played ? room.played : calloc(MOST, sizeof *played);
    (void)state;
    CHECK(played, "no memory");
    fake_sound = (struct fake_sound){.start = run_stream};
    room = (struct room){.decays = true, .gain = 1, .played = played, .noise = 1e-4, .length = 4000};
    for (int k = 0; k < COUNT(room.taps); k++)
        room.taps[k] = k == 0 ? 0.5F : 0.05F * oracle_uniform(&random) * expf(-(float)k / 900);
    noted = 0;
    return 0;
}

/* Measures, and returns the largest difference from the room. */
static double measure(const gc_measurement_config *c, gc_measurement *m) {
    const char *path = files_path("found.wav");
    gpuconv_error error = {0};
    SF_INFO info;
    double most = 0;
    gpuconv_status status = gc_measure(c, path, m, &error);
    CHECK(status == GPUCONV_OK, "status %d: %s", (int)status, error.message);
    guarded found = files_read(path, &info);
    CHECK(found.channels == 1 && found.frames == RATE / 5, "%d channels of %lld frames", found.channels,
          (long long)found.frames);
    for (int k = 20; k < 4800; k++) /* the band limit rings around the direct sound */
        most = fmax(most, fabs((double)found.channel[0][k] - (k % SPACING ? 0 : (double)room.taps[k])));
    guarded_free(&found);
    return most;
}

/* Returns the frame of the recording at a time of a sweep, from 1 on. */
static int64_t frame_of(int sweep, double seconds) {
    return (int64_t)((0.5 + (sweep - 1) * 2.5 + seconds) * RATE) + LATENCY;
}

static void a_disturbed_sweep_is_named_and_left_out(void **state) {
    (void)state;
    gc_measurement m;
    gc_measurement_config c = config_of(4);
    const double quiet = measure(&c, &m);
    assert_int_equal(m.disturbed, 0);
    assert_int_equal(m.repeats, 4);
    room.at[0] = frame_of(3, 1.2);
    room.loud = 0.3;
    noted = 0;
    const double clean = measure(&c, &m);
    assert_int_equal(m.disturbed, 1);
    assert_int_equal(m.repeats, 3);
    CHECK(was_noted("sweep 3 is disturbed at input 1 after 1.2") && was_noted("is left out"), "noted: %s", notes[0]);
    CHECK(clean < 1.5 * quiet + 1e-4, "%g from the room, %g without a disturbance", clean, quiet);
}

static void small_disturbances_between_two_sweeps_are_told(void **state) {
    (void)state;
    gc_measurement m;
    gc_measurement_config c = config_of(2);
    room.at[0] = frame_of(2, 0.4);
    room.loud = 0.1;
    (void)measure(&c, &m);
    CHECK(was_noted("the two sweeps differ") && m.repeats == 2, "%d notes, mean of %d", noted, m.repeats);
    c.repeat = 1;
    noted = 0;
    room.at[0] = 0;
    (void)measure(&c, &m);
    CHECK(noted == 0 && m.repeats == 1, "a single sweep is compared: %s", notes[0]);
}

/* Returns the latency, in frames, that a measurement finds. seconds: of a sweep. */
static int64_t latency_of(double seconds, int loopback) {
    gc_measurement m;
    gc_measurement_config c = config_of(3);
    gpuconv_error error = {0};
    c.sweep.seconds = seconds;
    c.sweep.silence = 0.2;
    c.loopback = loopback;
    CHECK(gc_measure(&c, files_path("short.wav"), &m, &error) == GPUCONV_OK, "%s", error.message);
    return m.latency;
}

/* Sweeps may follow each other sooner than the longest latency, and a later one may be louder. */
static void the_first_of_short_sweeps_counts(void **state) {
    (void)state;
    for (int loopback = 0; loopback <= 2; loopback += 2) {
        const int64_t latency = latency_of(2, loopback);
        room.rise = 0.01;
        assert_int_equal(latency_of(0.5, loopback), latency);
        room.rise = 0;
    }
}

static void a_sweep_with_a_gap_is_left_out(void **state) {
    (void)state;
    gc_measurement m;
    gc_measurement_config c = config_of(3);
    c.loopback = 0;
    c.inputs = 1;
    room.gap = frame_of(3, -0.2);
    gpuconv_error error = {0};
    CHECK(gc_measure(&c, files_path("gap.wav"), &m, &error) == GPUCONV_OK, "%s", error.message);
    CHECK(m.left_out == 1 && m.repeats == 2, "%d left out, mean of %d", m.left_out, m.repeats);
}

static void a_cable_has_no_decay_and_does_not_clip(void **state) {
    (void)state;
    gc_measurement m;
    gc_measurement_config c = config_of(3);
    room.decays = false;
    room.taps[0] = 1;
    room.noise = 0;
    c.sweep.level = 0; /* full scale: the sweep itself has samples there */
    (void)measure(&c, &m);
    CHECK(!m.channel[0].clipped && !m.channel[1].clipped, "a cable clips");
    CHECK(!m.channel[0].decays, "a cable decays");
    CHECK(m.disturbed == 0 && noted == 0, "a cable is disturbed: %s", notes[0]);
    room.noise = 0.003;
    (void)measure(&c, &m);
    CHECK(!m.channel[0].decays && m.disturbed == 0, "a noisy cable decays");
}

static void a_response_that_ends_before_its_decay_is_told(void **state) {
    (void)state;
    gc_measurement m;
    gc_measurement_config c = config_of(1);
    (void)measure(&c, &m);
    CHECK(m.channel[0].decays && !m.channel[0].ends_early, "a whole decay ends early");
    c.length = 0.04;
    CHECK(gc_measure(&c, files_path("short.wav"), &m, NULL) == GPUCONV_OK, "not measured");
    CHECK(m.channel[0].ends_early, "the early end is not told");
}

static void the_microphone_and_the_sound_system_are_those_that_were_chosen(void **state) {
    (void)state;
    gc_measurement m;
    gc_measurement_config c = config_of(1);
    const char *path = files_path("calibrator.wav");
    guarded tone = guarded_new(1, RATE);
    for (int i = 0; i < RATE; i++)
        tone.channel[0][i] = (float)(0.1 * sqrt(2) * sin(0.13 * i));
    files_write(path, SF_FORMAT_WAV | SF_FORMAT_FLOAT, RATE, &tone);
    guarded_free(&tone);
    c.microphones = (gc_microphone_files){.calibrator = path, .level = 114};
    c.sound = GC_SOUND_PIPEWIRE;
    c.distortion = true;
    room.noise = 1e-3;
    (void)measure(&c, &m);
    assert_int_equal(fake_sound.chosen, GC_SOUND_PIPEWIRE);
    double noise = m.channel[0].noise + m.channel[0].sensitivity, want = 114 + 20 * log10(1e-3 / 0.1);
    CHECK(fabs(noise - want) < 0.3, "the noise has %g dB SPL, not %g", noise, want);
    CHECK(isnan(m.channel[1].sensitivity), "the loopback has a level");
    CHECK(m.channels == 1 && m.distortion && gc_distortion_at(m.distortion, 1000) < 1, "THD %g %%",
          gc_distortion_at(m.distortion, 1000));
    free(m.distortion);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_disturbed_sweep_is_named_and_left_out, begin),
        cmocka_unit_test_setup(small_disturbances_between_two_sweeps_are_told, begin),
        cmocka_unit_test_setup(the_first_of_short_sweeps_counts, begin),
        cmocka_unit_test_setup(a_sweep_with_a_gap_is_left_out, begin),
        cmocka_unit_test_setup(a_cable_has_no_decay_and_does_not_clip, begin),
        cmocka_unit_test_setup(a_response_that_ends_before_its_decay_is_told, begin),
        cmocka_unit_test_setup(the_microphone_and_the_sound_system_are_those_that_were_chosen, begin),
    };
    const int failed = cmocka_run_group_tests(tests, files_begin, files_end);
    free(room.played);
    return failed;
}
