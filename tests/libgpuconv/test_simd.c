/* Tests the direct convolution of every supported instruction set against a plain loop in doubles, at lengths around
 * the vector widths. The inputs are in guarded memory: the samples around them are NaN, which an out-of-bounds read
 * would carry into the output. */
#include "check.h"
#include "libgpuconv/dsp/simd.h"
#include "oracle.h"

#include <math.h>

static void direct_matches_the_plain_loop(void **state) {
    (void)state;
    /* Outputs around one vector and around the span of each set; taps around one vector, around the vectors of one pass
     * and around a block of 256. */
    static const int64_t outputs[] = {1,   2,    3,    15,   16,   17,   47,   48,   127,  240,
                                      256, 1023, 1024, 1025, 2047, 2049, 4095, 4096, 4097, 8209};
    static const int64_t taps[] = {1,  2,  3,   4,   5,   7,   8,   9,   12,  15,  16,  17,  20,
                                   23, 24, 25,  31,  32,  33,  47,  48,  49,  63,  64,  65,  80,
                                   96, 97, 112, 127, 128, 129, 255, 256, 257, 511, 513, 1000};
    int sets;
    const gc_simd *const *all = gc_simd_all(&sets);
    oracle_random random = {.state = 51};
    assert_true(sets >= 1);
    for (int s = 0; s < sets; s++) {
        for (int o = 0; o < COUNT(outputs); o++) {
            for (int t = 0; t < COUNT(taps); t++) {
                int64_t n = outputs[o], m = taps[t];
                int add = (o + t) % 2;
                if (n * m > 4000000)
                    continue;
                guarded x = guarded_random(&random, 1, n + m - 1), h = guarded_random(&random, 1, m);
                guarded y = guarded_random(&random, 1, n);
                for (int64_t i = 0; i < n && !add; i++)
                    y.channel[0][i] = NAN; /* without `add`, the old contents must not matter */
                double *want = malloc((size_t)n * sizeof *want), *magnitude = malloc((size_t)n * sizeof *magnitude);
                CHECK(want && magnitude, "no memory");
                for (int64_t i = 0; i < n; i++) {
                    want[i] = add ? (double)y.channel[0][i] : 0;
                    magnitude[i] = fabs(want[i]);
                    for (int64_t k = 0; k < m; k++) {
                        double p = (double)h.channel[0][k] * (double)x.channel[0][m - 1 + i - k];
                        want[i] += p;
                        magnitude[i] += fabs(p);
                    }
                }
                all[s]->direct(x.channel[0] + m - 1, h.channel[0], m, y.channel[0], n, add);
                CHECK(guarded_intact(&x) && guarded_intact(&h), "an input was written to");
                CHECK(guarded_intact(&y), "%s: written outside %lld outputs", all[s]->name, (long long)n);
                for (int64_t i = 0; i < n; i++) { /* terms may cancel: the bound is relative to the sum of magnitudes */
                    double off = fabs((double)y.channel[0][i] - want[i]);
                    CHECK(off <= 0x1p-21 * magnitude[i], "%s: output %lld of %lld, %lld taps: off by %g of %g",
                          all[s]->name, (long long)i, (long long)n, (long long)m, off, magnitude[i]);
                }
                if (n > 600)
                    CHECK(oracle_agrees(all[s]->name, &y, n, want, n, -124), "%lld outputs, %lld taps", (long long)n,
                          (long long)m);
                free(magnitude);
                free(want);
                guarded_free(&x);
                guarded_free(&h);
                guarded_free(&y);
            }
        }
    }
}

static void the_best_set_is_the_first_in_the_list(void **state) {
    (void)state;
    int sets;
    const gc_simd *const *all = gc_simd_all(&sets);
    assert_ptr_equal(gc_simd_best(), all[0]);
    for (int s = 0; s < sets; s++)
        print_message("instruction set: %s\n", all[s]->name);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_set_is_the_first_in_the_list),
        cmocka_unit_test(direct_matches_the_plain_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
