/* Tests that nothing but the signal passes the LV2 plug-in: no past after activate, no NaN, no muted branch, and at low
 * levels no rounding errors of the level that is bypassed. */
#include "host.h"

#include <math.h>

/* Processes a block of the given left and right input. */
static void run(host *h, const float *left, const float *right) {
    memcpy(h->in[0], left, sizeof h->in[0]);
    memcpy(h->in[1], right, sizeof h->in[1]);
    h->control.sequence.atom.size = 0;
    h->notify.sequence.atom.size = BUFFER - sizeof(LV2_Atom);
    h->plugin->run(h->handle, BLOCK);
}

static void fill(oracle_random *random, float *block) {
    for (int i = 0; i < BLOCK; i++)
        block[i] = 0.5f * oracle_uniform(random);
}

static void after_activate_nothing_of_the_past_sounds(void **state) {
    (void)state;
    static const float silence[BLOCK];
    host *h = host_new("urn:gpuconv:stereo"), *fresh = host_new("urn:gpuconv:stereo");
    oracle_random random = {51};
    float block[BLOCK];
    h->number[PREDELAY] = fresh->number[PREDELAY] = 20;
    h->number[DRY] = fresh->number[DRY] = 0;
    for (int b = 0; b < 3000; b++) {
        fill(&random, block);
        run(h, block, block);
    }
    h->plugin->activate(h->handle);
    for (int b = 0; b < 3000; b++) {
        run(h, silence, silence);
        for (int i = 0; i < BLOCK; i++)
            CHECK(h->out[0][i] == 0 && h->out[1][i] == 0, "block %d: %g sounds", b, (double)h->out[0][i]);
    }
    h->plugin->activate(h->handle);
    for (int b = 0; b < 1000; b++) {
        fill(&random, block);
        run(h, block, block);
        run(fresh, block, block);
        assert_memory_equal(h->out, fresh->out, sizeof h->out);
    }
    host_delete(h);
    host_delete(fresh);
}

static void samples_that_are_not_finite_are_silence_on_every_way(void **state) {
    (void)state;
    static const float spoilt[] = {NAN, INFINITY, -INFINITY};
    static const struct {
        float wet, dry, enabled;
    } ways[] = {{0, -90, 1}, {0, 0, 1}, {-90, 0, 1}, {-90, -90, 1}, {0, 0, 0}};
    for (int w = 0; w < COUNT(ways); w++) {
        host *h = host_new("urn:gpuconv:stereo"), *other = host_new("urn:gpuconv:stereo");
        oracle_random random = {52};
        float block[BLOCK], clean[BLOCK];
        h->number[WET] = other->number[WET] = ways[w].wet;
        h->number[DRY] = other->number[DRY] = ways[w].dry;
        h->number[ENABLED] = other->number[ENABLED] = ways[w].enabled;
        for (int b = 0; b < 400; b++) {
            const int64_t at = oracle_below(&random, BLOCK);
            fill(&random, block);
            memcpy(clean, block, sizeof clean);
            if (b % 7 == 3) {
                block[at] = spoilt[b % 3];
                clean[at] = 0;
            }
            run(h, block, clean);
            run(other, clean, clean);
            assert_memory_equal(h->out, other->out, sizeof h->out);
            for (int i = 0; i < BLOCK; i++)
                CHECK(isfinite(h->out[0][i]), "way %d, block %d: %g", w, b, (double)h->out[0][i]);
            CHECK(h->number[PEAK_IN] <= 0, "way %d: an input peak of %g dB", w, (double)h->number[PEAK_IN]);
        }
        host_delete(h);
        host_delete(other);
    }
}

/* Samples near the largest float overflow in the convolution. A branch that is muted or bypassed adds nothing of them.
 */
static void a_muted_branch_adds_nothing_though_it_overflows(void **state) {
    (void)state;
    static const struct {
        float wet, dry, enabled, passes;
    } ways[] = {{-90, 0, 1, 1}, {-90, -90, 1, 0}, {24, 24, 0, 1}};
    for (int w = 0; w < COUNT(ways); w++) {
        host *h = host_new("urn:gpuconv:stereo");
        oracle_random random = {53};
        float block[BLOCK];
        h->number[WET] = ways[w].wet;
        h->number[DRY] = ways[w].dry;
        h->number[ENABLED] = ways[w].enabled;
        for (int b = 0; b < 400; b++) {
            fill(&random, block);
            for (int i = 0; b % 20 == 3 && i < BLOCK; i++)
                block[i] *= 3e38f;
            run(h, block, block);
            for (int i = 0; i < BLOCK; i++)
                CHECK(h->out[0][i] == ways[w].passes * block[i], "way %d, block %d: %g instead of %g", w, b,
                      (double)h->out[0][i], (double)(ways[w].passes * block[i]));
        }
        host_delete(h);
    }
}

static void a_low_wet_level_is_exact(void **state) {
    (void)state;
    static const float levels[] = {0, -20, -40, -60, -80};
    for (int k = 0; k < COUNT(levels); k++) {
        host *h = host_new("urn:gpuconv:stereo");
        oracle_random random = {54};
        float block[BLOCK];
        double error = 0, power = 0;
        host_play(h, write_response("half.wav", RATE, 0.5f));
        host_deliver_reply(h);
        host_play(h, NULL); /* the exchange is taken up */
        h->plugin->activate(h->handle);
        h->number[WET] = levels[k];
        const double gain = 0.5 * pow(10, (double)levels[k] / 20);
        for (int b = 0; b < 100; b++) {
            fill(&random, block);
            run(h, block, block);
            for (int i = 0; i < BLOCK; i++) {
                const double want = gain * (double)block[i], off = (double)h->out[0][i] - want;
                error += off * off;
                power += want * want;
            }
        }
        CHECK(10 * log10(error / power) <= -118, "wet %g dB: an error of %.1f dB", (double)levels[k],
              10 * log10(error / power));
        host_delete(h);
    }
}

/* Begins with a response and the port at a value; the impulse response of both outputs follows in `out`. */
static host *begin_impulse(const char *path, int number, float value, float left, float right, float (*out)[4096]) {
    host *h = host_new("urn:gpuconv:stereo");
    if (number >= 0)
        h->number[number] = value;
    host_play(h, path);
    host_deliver_reply(h);
    host_play(h, NULL); /* the exchange is taken up */
    h->plugin->activate(h->handle);
    for (int at = 0; at < 4096; at += BLOCK) {
        const float l[BLOCK] = {at == 0 ? left : 0}, r[BLOCK] = {at == 0 ? right : 0};
        run(h, l, r);
        for (int c = 0; c < 2; c++)
            memcpy(out[c] + at, h->out[c], sizeof h->out[c]);
    }
    return h;
}

static void the_response_is_reversed_faded_in_and_normalised(void **state) {
    (void)state;
    static const float half = 0.5f, energy = 1.7457431f; /* 1 / the root of the sum of squares */
    static const struct {
        int port;
        float value, tap[3];
    } cases[] = {{-1, 0, {0.5f, 0.25f, 0.125f}}, /* as it is: no gain of its own */
                 {REVERSE, 1, {0.125f, 0.25f, 0.5f}},
                 {ATTACK, 200.0f / 48, {0, 0.125f, 0.125f}},
                 {AUTOGAIN, 1, {0.5f * energy, 0.25f * energy, 0.125f * energy}}};
    guarded taps = guarded_new(1, 201);
    memset(taps.channel[0], 0, 201 * sizeof(float));
    for (int t = 0; t < 3; t++)
        taps.channel[0][100 * t] = half / (float)(1 << t);
    char path[1024];
    (void)snprintf(path, sizeof path, "%s", files_path("shape.wav"));
    files_write(path, SF_FORMAT_WAV | SF_FORMAT_FLOAT, RATE, &taps);
    guarded_free(&taps);
    for (int k = 0; k < COUNT(cases); k++) {
        float out[2][4096];
        host_delete(begin_impulse(path, cases[k].port, cases[k].value, 1, 1, out));
        for (int i = 0; i < 4096; i++) {
            float want = i % 100 == 0 && i <= 200 ? cases[k].tap[i / 100] : 0;
            CHECK(fabsf(out[0][i] - want) < 2e-5f, "case %d, frame %d: %g instead of %g", k, i, (double)out[0][i],
                  (double)want);
        }
    }
}

static void the_wet_signal_is_cut_and_its_width_changes(void **state) {
    (void)state;
    static const struct {
        int port;
        float value;
        double hertz, decibels;
    } cuts[] = {{LOW_CUT, 1000, 1000, -3.01},  {LOW_CUT, 1000, 100, -40}, {LOW_CUT, 1000, 8000, 0},
                {HIGH_CUT, 2000, 2000, -3.01}, {HIGH_CUT, 2000, 200, 0},  {HIGH_CUT, 2000, 8000, -25.69}};
    const char *path = write_response("one.wav", RATE, 1);
    float out[2][4096];
    for (int k = 0; k < COUNT(cuts); k++) {
        host_delete(begin_impulse(path, cuts[k].port, cuts[k].value, 1, 0.5f, out));
        for (int c = 0; c < 2; c++) {
            double re = 0, im = 0, w = 2 * 3.14159265358979 * cuts[k].hertz / RATE;
            for (int i = 0; i < 4096; i++) {
                re += (double)out[c][i] * cos(w * i) * (1 + c);
                im += (double)out[c][i] * sin(w * i) * (1 + c);
            }
            double level = 20 * log10(hypot(re, im));
            CHECK(fabs(level - cuts[k].decibels) < 0.1, "cut %d at %g Hz: %g dB", k, cuts[k].hertz, level);
        }
    }
    static const float widths[][3] = {{0, 0.75f, 0.75f}, {100, 1, 0.5f}, {200, 1.25f, 0.25f}};
    for (int k = 0; k < COUNT(widths); k++) {
        host_delete(begin_impulse(path, WIDTH, widths[k][0], 1, 0.5f, out));
        CHECK(fabsf(out[0][0] - widths[k][1]) < 1e-5f && fabsf(out[1][0] - widths[k][2]) < 1e-5f, "width %g: %g and %g",
              (double)widths[k][0], (double)out[0][0], (double)out[1][0]);
    }
}

/* A filter that is turned on and off again makes no click, and leaves nothing behind. */
static void turning_a_cut_does_not_click(void **state) {
    (void)state;
    static const struct {
        int port;
        float value, off;
    } cases[] = {{LOW_CUT, 1500, 20}, {HIGH_CUT, 500, 20000}, {WIDTH, 0, 100}};
    for (int k = 0; k < COUNT(cases); k++) {
        float out[2][4096], a = 0, b = 0, worst = 0;
        host *h = begin_impulse(write_response("one.wav", RATE, 1), -1, 0, 0, 0, out);
        for (int block = 0; block < 200; block++) {
            h->number[cases[k].port] = block >= 50 && block < 100 ? cases[k].value : cases[k].off;
            host_play(h, NULL);
            for (int i = 0; i < BLOCK; i++) {
                worst = fmaxf(worst, block ? fabsf(h->out[0][i] - 2 * b + a) : 0);
                a = b;
                b = h->out[0][i];
            }
        }
        CHECK(worst < 0.003f, "port %d clicks: %g", cases[k].port, (double)worst); /* the sine's own is 0.0004 */
        for (int i = 0; i < BLOCK; i++)
            CHECK(fabsf(h->out[0][i] - h->in[0][i]) < 1e-6f, "port %d is not off again", cases[k].port);
        host_delete(h);
    }
    host_free_uris();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(after_activate_nothing_of_the_past_sounds),
        cmocka_unit_test(samples_that_are_not_finite_are_silence_on_every_way),
        cmocka_unit_test(a_muted_branch_adds_nothing_though_it_overflows),
        cmocka_unit_test(a_low_wet_level_is_exact),
        cmocka_unit_test(the_response_is_reversed_faded_in_and_normalised),
        cmocka_unit_test(the_wet_signal_is_cut_and_its_width_changes),
        cmocka_unit_test(turning_a_cut_does_not_click),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
