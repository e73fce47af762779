/* Sums at points must find a single wrong sample anywhere, and agree with a convolution that is right. */
#include "check.h"
#include "libgpuconv/dsp/point_sums.h"
#include "oracle.h"

#include <math.h>

static const struct {
    int64_t frames, taps, outputs;
} cases[] = {{1, 1, 1}, {5, 3, 7},       {5, 3, 5},         {5, 3, 2},         {3, 9, 11},       {3, 9, 4},
             {3, 9, 1}, {3000, 1, 3000}, {3000, 700, 3699}, {3000, 700, 3000}, {700, 3000, 700}, {4099, 1024, 4099}};

/* Returns the error of the first `outputs` samples in dB, after adding `wrong` to sample `at`. */
static double error_of(int k, int64_t at, float wrong) {
    const int64_t frames = cases[k].frames, taps = cases[k].taps, total = frames + taps - 1;
    oracle_random random = {(uint64_t)k + 1};
    guarded x = guarded_random(&random, 1, frames), h = guarded_random(&random, 1, taps), y = guarded_new(1, total);
    double *want = malloc((size_t)total * sizeof *want), energy = 0;
    const oracle_route route = {0, 0, h.channel[0]};
    CHECK(want, "no memory");
    oracle_convolve((const float *const *)x.channel, frames, &route, 1, taps, 1, want);
    for (int64_t n = 0; n < total; n++) {
        y.channel[0][n] = (float)want[n];
        energy += n < cases[k].outputs ? want[n] * want[n] : 0;
    }
    y.channel[0][at] += wrong;
    gc_point_sums got = gc_point_sums_of(y.channel[0], cases[k].outputs),
                  expected = gc_point_sums_of_convolution(x.channel[0], frames, h.channel[0], taps, cases[k].outputs);
    double error = 10 * log10(gc_point_sums_distance(&got, &expected) / energy);
    free(want);
    guarded_free(&x);
    guarded_free(&h);
    guarded_free(&y);
    return error;
}

static void test_sums_agree_with_a_convolution(void **state) {
    (void)state;
    for (int k = 0; k < COUNT(cases); k++) {
        double e = error_of(k, 0, 0);
        CHECK(e <= -130, "case %d: %.1f dB", k, e);
    }
}

static void test_a_single_wrong_sample_anywhere_is_found(void **state) {
    (void)state;
    for (int k = 0; k < COUNT(cases); k++)
        for (int i = 0; i < 3; i++) {
            int64_t at = i == 0 ? 0 : i == 1 ? cases[k].outputs - 1 : cases[k].outputs / 2;
            double e = error_of(k, at, 0.1f), nan = error_of(k, at, NAN);
            CHECK(e > -90, "case %d, sample %lld: %.1f dB", k, (long long)at, e);
            CHECK(!(nan <= 0), "case %d: NaN at sample %lld gives %.1f dB", k, (long long)at, nan);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sums_agree_with_a_convolution),
                                       cmocka_unit_test(test_a_single_wrong_sample_anywhere_is_found)};
    return cmocka_run_group_tests_name("point sums", tests, NULL, NULL);
}
