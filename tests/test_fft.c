/* The transforms behind fft.h against the definition of the discrete Fourier transform in doubles. */
#include "check.h"
#include "core/memory.h"
#include "dsp/fft.h"
#include "oracle.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

/* bins[k] = sum over n of x[n] e^(-+ 2 pi i k n / points), re and im in turn. */
static void definition(const double *x, int points, double sign, double *bins) {
    for (int k = 0; k < points; k++) {
        double re = 0, im = 0;
        for (int n = 0; n < points; n++) {
            double angle = sign * 2 * pi * (double)((int64_t)k * n % points) / points, c = cos(angle), s = sin(angle);
            re += x[2 * n] * c - x[2 * n + 1] * s;
            im += x[2 * n] * s + x[2 * n + 1] * c;
        }
        bins[2 * k] = re;
        bins[2 * k + 1] = im;
    }
}

static void agree(const char *what, const float *got, const double *want, int n) {
    oracle_error e = oracle_compare(got, want, n);
    CHECK(e.rms <= -130, "%s, %d values: off by %.1f dB", what, n, e.rms);
}

static void complex_transforms_match_the_definition(void **state) {
    (void)state;
    oracle_random random = {.state = 41};
    for (int points = 1; points <= 1024; points *= 2) {
        gc_fft *fft = gc_fft_new(points);
        float *data = gc_calloc(points, 2 * sizeof *data);
        double *x = malloc((size_t)points * 2 * sizeof *x), *want = malloc((size_t)points * 2 * sizeof *want);
        assert_true(fft && data && x && want);
        for (int turn = 0; turn < 2; turn++) {
            oracle_fill(&random, data, 2 * points);
            for (int i = 0; i < 2 * points; i++)
                x[i] = (double)data[i];
            definition(x, points, turn ? 1 : -1, want);
            (turn ? gc_fft_backward : gc_fft_forward)(fft, data);
            agree(turn ? "backward" : "forward", data, want, 2 * points);
        }
        free(want);
        free(x);
        free(data);
        gc_fft_free(fft);
    }
}

static void real_transforms_match_the_definition(void **state) {
    (void)state;
    oracle_random random = {.state = 42};
    for (int points = 2; points <= 1024; points *= 2) {
        gc_rfft *fft = gc_rfft_new(points);
        float *signal = gc_calloc(points, sizeof *signal), *bins = gc_calloc(points / 2 + 1, 2 * sizeof *bins);
        double *x = calloc((size_t)points * 2, sizeof *x), *want = malloc((size_t)points * 2 * sizeof *want);
        assert_true(fft && signal && bins && x && want);
        oracle_fill(&random, signal, points);
        for (int i = 0; i < points; i++)
            x[2 * i] = (double)signal[i];
        definition(x, points, -1, want);
        gc_rfft_forward(fft, signal, bins);
        agree("real forward", bins, want, points + 2);
        for (int i = 0; i < points; i++) {
            want[i] = points * x[2 * i]; /* unnormalised */
            signal[i] = NAN;
        }
        gc_rfft_backward(fft, bins, signal);
        agree("real backward", signal, want, points);
        free(want);
        free(x);
        free(bins);
        free(signal);
        gc_rfft_free(fft);
    }
}

static void forward_then_backward_scales_by_the_points(void **state) {
    (void)state;
    oracle_random random = {.state = 43};
    static const int64_t sizes[] = {4096, 131072, 1048576};
    for (int s = 0; s < COUNT(sizes); s++) {
        int64_t n = sizes[s];
        gc_fft *fft = gc_fft_new(n);
        float *data = gc_calloc(n, 2 * sizeof *data);
        double *want = malloc((size_t)n * 2 * sizeof *want);
        assert_true(fft && data && want);
        oracle_fill(&random, data, 2 * n);
        for (int64_t i = 0; i < 2 * n; i++)
            want[i] = (double)n * (double)data[i];
        gc_fft_forward(fft, data);
        gc_fft_backward(fft, data);
        agree("there and back", data, want, (int)(2 * n));
        free(want);
        free(data);
        gc_fft_free(fft);
    }
}

static void sizes_beyond_the_library_are_refused(void **state) {
    (void)state;
    assert_null(gc_fft_new(INT64_C(1) << 40));
    assert_null(gc_rfft_new(INT64_C(1) << 40));
    gc_fft_free(NULL);
    gc_rfft_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(complex_transforms_match_the_definition),
        cmocka_unit_test(real_transforms_match_the_definition),
        cmocka_unit_test(forward_then_backward_scales_by_the_points),
        cmocka_unit_test(sizes_beyond_the_library_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
