/* Tests that nothing but the signal passes the LV2 plug-in: no past after activate, no NaN, no muted branch, and at low
 * levels no rounding errors of the level that is bypassed. */
#include "host.h"

#include <math.h>

static host *begin(void) {
    host *h = malloc(sizeof *h);
    CHECK(h, "no memory");
    host_begin(h, "urn:gpuconv:stereo");
    return h;
}

static void end(host *h) {
    host_end(h);
    free(h);
}

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
    host *h = begin(), *fresh = begin();
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
    end(h);
    end(fresh);
}

static void samples_that_are_not_finite_are_silence_on_every_way(void **state) {
    (void)state;
    static const float spoilt[] = {NAN, INFINITY, -INFINITY};
    static const struct {
        float wet, dry, enabled;
    } ways[] = {{0, -90, 1}, {0, 0, 1}, {-90, 0, 1}, {-90, -90, 1}, {0, 0, 0}};
    for (int w = 0; w < COUNT(ways); w++) {
        host *h = begin(), *other = begin();
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
        end(h);
        end(other);
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
        host *h = begin();
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
        end(h);
    }
}

static void a_low_wet_level_is_exact(void **state) {
    (void)state;
    static const float levels[] = {0, -20, -40, -60, -80};
    for (int k = 0; k < COUNT(levels); k++) {
        host *h = begin();
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
        end(h);
    }
    host_free_uris();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(after_activate_nothing_of_the_past_sounds),
        cmocka_unit_test(samples_that_are_not_finite_are_silence_on_every_way),
        cmocka_unit_test(a_muted_branch_adds_nothing_though_it_overflows),
        cmocka_unit_test(a_low_wet_level_is_exact),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
