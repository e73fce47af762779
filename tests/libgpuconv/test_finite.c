/* Tests that exactly the non-finite samples are replaced by 0 and counted, and that the largest magnitude is found, at
 * every position of short and long blocks. */
#include "harness.h"

#include "libgpuconv/dsp/finite.h"

#include <float.h>
#include <math.h>
#include <string.h>

static float float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void exactly_the_nonfinite_samples_become_zero(void **state) {
    (void)state;
    const float bad[] = {NAN,
                         -NAN,
                         INFINITY,
                         -INFINITY,
                         float_of_bits(0x7f800001), /* signalling */
                         float_of_bits(0xffffffff)};
    const float good[] = {0, -0.0f, 1, -1, FLT_MAX, -FLT_MAX, FLT_MIN, float_of_bits(1), float_of_bits(0x80000001)};
    enum { MAX_SAMPLES = 300 };
    float samples[MAX_SAMPLES], before[MAX_SAMPLES];
    for (int n = 1; n <= MAX_SAMPLES; n += n < 40 ? 1 : 37)
        for (int at = 0; at < n; at++) {
            for (int i = 0; i < n; i++)
                samples[i] = good[(i + at) % COUNT(good)];
            memcpy(before, samples, sizeof samples);
            int64_t first = -1;
            assert_int_equal(gc_zero_nonfinite(samples, n, &first), 0);
            assert_int_equal(first, -1);
            assert_memory_equal(samples, before, (size_t)n * sizeof *samples);
            samples[at] = bad[at % COUNT(bad)];
            samples[n - 1] = bad[n % COUNT(bad)];
            before[at] = before[n - 1] = 0;
            assert_int_equal(gc_zero_nonfinite(samples, n, &first), at == n - 1 ? 1 : 2);
            assert_int_equal(first, at);
            assert_memory_equal(samples, before, (size_t)n * sizeof *samples);
        }
}

static void the_magnitude_is_the_largest_of_either_sign(void **state) {
    (void)state;
    const float values[] = {0, -0.0f, FLT_MIN, float_of_bits(0x80000001), -1, 1.5F, -FLT_MAX};
    enum { MAX_SAMPLES = 300 };
    float samples[MAX_SAMPLES] = {0};
    assert_true(gc_magnitude(samples, 0) == 0);
    for (int at = 0; at < MAX_SAMPLES; at++)
        for (int v = 0; v < COUNT(values); v++) {
            memset(samples, 0, sizeof samples);
            samples[MAX_SAMPLES - 1 - at] = -values[v] / 2;
            samples[at] = values[v];
            assert_true(gc_magnitude(samples, MAX_SAMPLES) == fabsf(values[v]));
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(exactly_the_nonfinite_samples_become_zero),
                                       cmocka_unit_test(the_magnitude_is_the_largest_of_either_sign)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
