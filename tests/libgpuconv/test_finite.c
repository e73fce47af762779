/* Samples that are not finite, at every place of short and long rows: exactly they become silence, and are counted. */
#include "harness.h"

#include "libgpuconv/dsp/finite.h"

#include <float.h>
#include <math.h>
#include <string.h>

static float of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void exactly_what_is_not_finite_is_silenced(void **state) {
    (void)state;
    const float bad[] = {NAN,
                         -NAN,
                         INFINITY,
                         -INFINITY,
                         of_bits(0x7f800001), /* signalling */
                         of_bits(0xffffffff)};
    const float good[] = {0, -0.0f, 1, -1, FLT_MAX, -FLT_MAX, FLT_MIN, of_bits(1), of_bits(0x80000001)};
    enum { MOST = 300 };
    float samples[MOST], before[MOST];
    for (int n = 1; n <= MOST; n += n < 40 ? 1 : 37)
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(exactly_what_is_not_finite_is_silenced)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
