/* Tests of the FFT on every supported instruction set: its products are negacyclic convolutions, and no memory outside
 * the arguments is read or written. The FFT in double precision is compared with its definition. */
#include "check.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/fft.h"
#include "libgpuconv/dsp/fourier.h"
#include "oracle.h"

#include <math.h>

enum { MAX_PRODUCTS = 3 };

/* Adds the product of two blocks modulo x^points + 1 to `want`. Only the first `taps` samples of h are not zero. */
static void negacyclic(const float *x, const float *h, int64_t points, int64_t taps, double *want) {
    for (int64_t n = 0; n < points; n++)
        for (int64_t k = 0; k < taps; k++)
            want[n] += (double)h[k] * (n >= k ? (double)x[n - k] : -(double)x[points + n - k]);
}

/* Sums the products of `count` blocks with `count` responses, and compares the inverse transform from sample `first` on
 * with the oracle. */
static void check_products(const gc_simd *simd, int64_t points, int64_t taps, int count, int64_t first) {
    oracle_random random = {.state = 41};
    gc_fft *fft = gc_fft_new(simd, points);
    assert_non_null(fft);
    int64_t floats = gc_fft_floats(fft), bytes = floats * (int64_t)sizeof(float);
    float *work = gc_calloc(1, bytes), *x[MAX_PRODUCTS], *h[MAX_PRODUCTS];
    double *want = calloc((size_t)points, sizeof *want);
    guarded y = guarded_new(1, points - first);
    for (int i = 0; i < count; i++) {
        guarded signal = guarded_random(&random, 1, points), response = guarded_random(&random, 1, points);
        memset(response.channel[0] + taps, 0, (size_t)(points - taps) * sizeof(float));
        x[i] = gc_calloc(1, bytes);
        h[i] = gc_calloc(1, bytes);
        assert_true(x[i] && h[i] && work && want);
        gc_fft_forward(fft, signal.channel[0], x[i]);
        gc_fft_forward(fft, response.channel[0], h[i]);
        negacyclic(signal.channel[0], response.channel[0], points, taps, want);
        CHECK(guarded_intact(&signal) && guarded_intact(&response), "%s: an input was written to", simd->name);
        guarded_free(&signal);
        guarded_free(&response);
    }
    for (int64_t n = 0; n < points; n++)
        want[n] *= (double)points / 2;
    gc_fft_inverse(fft, (const float *const *)x, (const float *const *)h, count, work, y.channel[0], first);
    CHECK(oracle_agrees(simd->name, &y, points - first, want + first, points - first, -127),
          "%lld points, %d products, from %lld", (long long)points, count, (long long)first);
    gc_fft_multiply_sum(fft, work, (const float *const *)x, (const float *const *)h, count, floats);
    gc_fft_inverse(fft, NULL, NULL, 0, work, y.channel[0], first);
    CHECK(oracle_agrees(simd->name, &y, points - first, want + first, points - first, -127),
          "%lld points, precomputed sums of %d, from %lld", (long long)points, count, (long long)first);
    for (int i = 0; i < count; i++) {
        free(x[i]);
        free(h[i]);
    }
    free(want);
    free(work);
    guarded_free(&y);
    gc_fft_free(fft);
}

static void products_of_spectra_are_negacyclic_convolutions(void **state) {
    (void)state;
    int sets;
    const gc_simd *const *all = gc_simd_all(&sets);
    for (int s = 0; s < sets; s++) {
        for (int64_t points = GC_FFT_MIN_POINTS; points <= 1 << 13; points *= 2)
            for (int count = 1; count <= MAX_PRODUCTS; count++)
                check_products(all[s], points, points > 4096 ? 100 : points, count, 0);
        for (int64_t points = 1 << 14; points <= 1 << 19; points *= 2)
            check_products(all[s], points, 20, 1, 0);
    }
}

static void the_inverse_writes_the_samples_from_first_on(void **state) {
    (void)state;
    int sets;
    const gc_simd *const *all = gc_simd_all(&sets);
    for (int s = 0; s < sets; s++)
        for (int64_t points = GC_FFT_MIN_POINTS; points <= 4096; points *= 2)
            for (int64_t first = 32; first<points; first += points> 1024 ? 480 : 96)
                check_products(all[s], points, 50, 1, first);
}

/* Transforms rows of `frames` samples, each with a response of its own, and compares the samples first .. end - 1 with
 * the oracle; and the first row with the same row in the company of itself, whose bits must be the same. */
static void check_rows(const gc_simd *simd, int64_t points, int64_t frames, int64_t first, int64_t end) {
    oracle_random random = {.state = (uint64_t)(points + 7 * frames)};
    gc_fft *fft = gc_fft_new(simd, points);
    assert_non_null(fft);
    const int rows = gc_fft_rows(fft);
    assert_in_range(rows, 1, points < GC_FFT_MIN_POINTS ? GC_FFT_MAX_ROWS : 1);
    const int64_t bytes = gc_fft_floats(fft) * (int64_t)sizeof(float);
    float *x = gc_calloc(1, bytes), *h = gc_calloc(1, bytes), *out[GC_FFT_MAX_ROWS];
    double *want = calloc((size_t)points, sizeof *want);
    assert_true(x && h && want);
    guarded signal = guarded_random(&random, rows, frames), response = guarded_random(&random, rows, frames);
    guarded y = guarded_new(rows, end - first), alone = guarded_new(1, end - first);
    gc_fft_forward_rows(fft, (const float *const *)signal.channel, frames, 1, x);
    gc_fft_forward_rows(fft, (const float *const *)response.channel, frames, 4, h);
    gc_fft_inverse_rows(fft, x, h, x, y.channel, first, end);
    for (int r = 0; r < rows; r++) {
        guarded row = guarded_new(1, end - first);
        float block[2][1 << 12] = {{0}};
        memcpy(block[0], signal.channel[r], (size_t)frames * sizeof(float));
        memcpy(block[1], response.channel[r], (size_t)frames * sizeof(float));
        memcpy(row.channel[0], y.channel[r], (size_t)(end - first) * sizeof(float));
        memset(want, 0, (size_t)points * sizeof *want);
        negacyclic(block[0], block[1], points, frames, want);
        for (int64_t n = 0; n < points; n++)
            want[n] *= 2 * (double)points;
        CHECK(oracle_agrees(simd->name, &row, end - first, want + first, end - first, -125),
              "%lld points, %lld frames, row %d, %lld .. %lld", (long long)points, (long long)frames, r,
              (long long)first, (long long)end);
        guarded_free(&row);
    }
    for (int r = rows; r-- > 0;) {
        signal.channel[r] = signal.channel[0];
        response.channel[r] = response.channel[0];
        out[r] = alone.channel[0];
    }
    gc_fft_forward_rows(fft, (const float *const *)signal.channel, frames, 1, x);
    gc_fft_forward_rows(fft, (const float *const *)response.channel, frames, 4, h);
    gc_fft_inverse_rows(fft, x, h, x, out, first, end);
    assert_memory_equal(alone.channel[0], y.channel[0], (size_t)(end - first) * sizeof(float));
    CHECK(guarded_intact(&signal) && guarded_intact(&response) && guarded_intact(&y) && guarded_intact(&alone),
          "%s: %lld points: written outside", simd->name, (long long)points);
    guarded_free(&signal);
    guarded_free(&response);
    guarded_free(&y);
    guarded_free(&alone);
    free(x);
    free(h);
    free(want);
    gc_fft_free(fft);
}

static void rows_are_transformed_where_they_are(void **state) {
    (void)state;
    int sets;
    const gc_simd *const *all = gc_simd_all(&sets);
    for (int s = 0; s < sets; s++)
        for (int64_t points = GC_FFT_MIN_ROW; points <= 4096; points *= 2) {
            const int64_t half = points / 2;
            check_rows(all[s], points, 1, 0, 1);
            check_rows(all[s], points, half, 0, points);
            check_rows(all[s], points, half, 0, points - 1);
            check_rows(all[s], points, half, half - 1, points - 1);
            check_rows(all[s], points, half - 5, 3, half + 2);
            check_rows(all[s], points, half + 9, 17, half + 1);
            check_rows(all[s], points, points, 0, half);
        }
}

/* Checks that sums computed slab by slab have the same bits as sums over whole spectra. */
static void sums_by_slab_equal_the_whole_sum(void **state) {
    (void)state;
    int sets;
    const gc_simd *const *all = gc_simd_all(&sets);
    oracle_random random = {.state = 43};
    for (int s = 0; s < sets; s++) {
        gc_fft *fft = gc_fft_new(all[s], 4096);
        assert_non_null(fft);
        int64_t floats = gc_fft_floats(fft);
        guarded x = guarded_random(&random, MAX_PRODUCTS, floats), h = guarded_random(&random, MAX_PRODUCTS, floats);
        guarded whole = guarded_new(1, floats), parts = guarded_new(1, floats);
        for (int count = 0; count <= MAX_PRODUCTS; count++) {
            gc_fft_multiply_sum(fft, whole.channel[0], (const float *const *)x.channel, (const float *const *)h.channel,
                                count, floats);
            for (int64_t at = 0; at < floats; at += 3 * GC_FFT_SLAB) {
                const float *xs[MAX_PRODUCTS], *hs[MAX_PRODUCTS];
                for (int i = 0; i < MAX_PRODUCTS; i++) {
                    xs[i] = x.channel[i] + at;
                    hs[i] = h.channel[i] + at;
                }
                gc_fft_multiply_sum(fft, parts.channel[0] + at, xs, hs, count, gc_min(3 * GC_FFT_SLAB, floats - at));
            }
            assert_memory_equal(whole.channel[0], parts.channel[0], (size_t)floats * sizeof(float));
        }
        CHECK(guarded_intact(&whole) && guarded_intact(&parts), "%s: written outside a spectrum", all[s]->name);
        guarded_free(&x);
        guarded_free(&h);
        guarded_free(&whole);
        guarded_free(&parts);
        gc_fft_free(fft);
    }
}

static void invalid_sizes_are_refused(void **state) {
    (void)state;
    assert_null(gc_fft_new(gc_simd_best(), GC_FFT_MIN_ROW / 2));
    assert_null(gc_fft_new(gc_simd_best(), 0));
    assert_null(gc_fft_new(gc_simd_best(), -4));
    assert_null(gc_fft_new(gc_simd_best(), 1000));
    assert_null(gc_fft_new(gc_simd_best(), INT64_C(1) << 40));
    gc_fft_free(NULL);
}

static void the_double_precision_fft_equals_the_defining_sum(void **state) {
    (void)state;
    enum { N = 64 };
    oracle_random random = {.state = 94};
    double re[N], im[N], x[N], y[N];
    for (int i = 0; i < N; i++) {
        x[i] = re[i] = (double)oracle_uniform(&random);
        y[i] = im[i] = (double)oracle_uniform(&random);
    }
    assert_true(gc_fourier(re, im, N, -1));
    for (int k = 0; k < N; k++) {
        double a = 0, b = 0;
        for (int i = 0; i < N; i++) {
            double angle = -2 * 3.14159265358979323846 * k * i / N;
            a += x[i] * cos(angle) - y[i] * sin(angle);
            b += x[i] * sin(angle) + y[i] * cos(angle);
        }
        assert_true(fabs(a - re[k]) < 1e-12 && fabs(b - im[k]) < 1e-12);
    }
    assert_true(gc_fourier(re, im, N, 1));
    for (int i = 0; i < N; i++)
        assert_true(fabs(re[i] / N - x[i]) < 1e-14 && fabs(im[i] / N - y[i]) < 1e-14);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_spectra_are_negacyclic_convolutions),
        cmocka_unit_test(the_inverse_writes_the_samples_from_first_on),
        cmocka_unit_test(rows_are_transformed_where_they_are),
        cmocka_unit_test(sums_by_slab_equal_the_whole_sum),
        cmocka_unit_test(invalid_sizes_are_refused),
        cmocka_unit_test(the_double_precision_fft_equals_the_defining_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
