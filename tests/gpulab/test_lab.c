/* Tests the lab's references, with which every variant is compared, against other formulas for the same results: sums
 * in another order and in long double, separable filters, sorting, closed forms, and the tests' own oracle. Tests also
 * that the lab detects wrong results. */
#include "check.h"
#include "oracle.h"

#include "gpulab/harness/run.h"

#include <complex.h>
#include <math.h>

/* Computes the expected output from the inputs of a run. */
typedef void formula(const gc_lab_run *run, double *want);

static void sum_of_two(const gc_lab_run *run, double *want) {
    for (int64_t i = 0; i < run->size[0]; i++)
        want[i] = -(-(double)run->in[0][i] - (double)run->in[1][i]);
}

static void five_halves(const gc_lab_run *run, double *want) {
    for (int64_t i = 0; i < run->size[0]; i++)
        want[i] = 2 * (double)run->in[0][i] + (double)run->in[0][i] / 2;
}

static void doubled(const gc_lab_run *run, double *want) {
    for (int64_t i = 0; i < run->size[0] * run->size[1]; i++)
        want[i] = (double)run->in[0][i] + (double)run->in[0][i];
}

static void transposed(const gc_lab_run *run, double *want) {
    int64_t rows = run->size[0], columns = run->size[1];
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            want[c * rows + r] = (double)run->in[0][r * columns + c];
}

/* Filters rows and then columns with 1 2 1, over an image whose border is repeated once. */
static void separable(const gc_lab_run *run, double *want) {
    int64_t width = run->size[0], height = run->size[1];
    double *rows = calloc((size_t)(width * (height + 2)), sizeof *rows);
    assert_non_null(rows);
    for (int64_t y = 0; y < height + 2; y++) {
        int64_t from = y == 0 ? 0 : y > height ? height - 1 : y - 1;
        const float *in = run->in[0] + from * width;
        for (int64_t x = 0; x < width; x++) {
            double left = (double)in[x ? x - 1 : 0], right = (double)in[x + 1 < width ? x + 1 : x];
            rows[y * width + x] = (left + right + 2 * (double)in[x]) / 4;
        }
    }
    for (int64_t i = 0; i < width * height; i++)
        want[i] = (rows[i] + 2 * rows[i + width] + rows[i + 2 * width]) / 4;
    free(rows);
}

static int ascending(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void sorted_middle(const gc_lab_run *run, double *want) {
    int64_t n = run->size[0];
    for (int64_t i = 0; i < n; i++) {
        float three[3];
        for (int k = 0; k < 3; k++) {
            int64_t at = i + k - 1;
            three[k] = run->in[0][at < 0 || at >= n || i == 0 || i == n - 1 ? i : at];
        }
        qsort(three, 3, sizeof *three, ascending);
        want[i] = (double)three[1];
    }
}

/* Sums each table entry times the number of its reads. */
static void by_counts(const gc_lab_run *run, double *want) {
    for (int64_t i = 0; i < run->size[0]; i++) {
        double sum = 0;
        for (int64_t entry = 0; entry < 1024; entry++) {
            int64_t start = 7 * (i / 32) % 1024, reads = 0;
            for (int64_t at = start, k = 0; k < 256; k++, at = (at + 13) % 1024)
                reads += at == entry;
            sum += (double)reads * (double)run->in[0][entry];
        }
        want[i] = sum;
    }
}

/* The module's input begins with the samples before the first output (the history). */
static void by_oracle(const gc_lab_run *run, double *want) {
    int64_t history = run->count[1];
    for (int64_t i = 0; i < run->size[0]; i++)
        want[i] = oracle_frame(run->in[0], run->count[0], run->in[1], run->size[1], history + i);
}

static void outer_products(const gc_lab_run *run, double *want) {
    int64_t m = run->size[0], n = run->size[1], k = run->size[2];
    for (int64_t i = 0; i < m * n; i++)
        want[i] = 0;
    for (int64_t q = k - 1; q >= 0; q--)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++)
                want[i * n + j] += (double)run->in[0][i * k + q] * (double)run->in[1][q * n + j];
}

static long double pairwise_sum(const float *x, int64_t n) {
    return n == 1 ? (long double)x[0] : pairwise_sum(x, n / 2) + pairwise_sum(x + n / 2, n - n / 2);
}

static void pairwise(const gc_lab_run *run, double *want) {
    want[0] = (double)pairwise_sum(run->in[0], run->size[0]);
}

static void complex_polar(const gc_lab_run *run, double *want) {
    for (int64_t i = 0; i < run->size[0]; i++) {
        double complex z = CMPLX((double)run->in[0][2 * i], (double)run->in[0][2 * i + 1]);
        want[2 * i] = cabs(z);
        want[2 * i + 1] = fmod(carg(z) + 8 * atan(1), 8 * atan(1));
    }
}

/* Attention with a softmax that subtracts the maximum, in long double. */
static void softmax(const gc_lab_run *run, double *want) {
    enum { D = 128 };
    int64_t tokens = run->size[0];
    long double *p = calloc((size_t)tokens, sizeof *p);
    assert_non_null(p);
    for (int64_t row = 0; row < tokens * run->size[1]; row++) {
        int64_t head = row / tokens * tokens;
        long double most = -HUGE_VALL, sum = 0;
        for (int64_t j = 0; j < tokens; j++) {
            p[j] = 0;
            for (int e = D - 1; e >= 0; e--)
                p[j] += (long double)run->in[0][row * D + e] * (long double)run->in[1][(head + j) * D + e];
            p[j] /= sqrtl(D);
            most = fmaxl(most, p[j]);
        }
        for (int64_t j = 0; j < tokens; j++)
            sum += p[j] = expl(p[j] - most);
        for (int e = 0; e < D; e++) {
            long double out = 0;
            for (int64_t j = 0; j < tokens; j++)
                out += p[j] / sum * (long double)run->in[2][(head + j) * D + e];
            want[row * D + e] = (double)out;
        }
    }
    free(p);
}

/* Rounds a x + b once: a long double holds the product of 24 + 24 bits exactly, and nearly always the sum. */
static void rounded_once(const gc_lab_run *run, double *want) {
    for (int64_t i = 0; i < run->size[0]; i++)
        want[i] = (double)(float)((long double)run->in[0][i] * (long double)run->in[1][i] + (long double)run->in[2][i]);
}

static void reversed_taps(const gc_lab_run *run, double *want) {
    float taps[32];
    for (int k = 0; k < 32; k++)
        taps[k] = run->in[1][31 - k];
    for (int64_t i = 0; i < run->size[0]; i++)
        want[i] = oracle_frame(run->in[0], run->count[0], taps, 32, i + 31);
}

/* Returns v after n steps of v <- a v + b: a^n v + b (1 - a^n) / (1 - a). */
static double chain(double v, double a, double b, int n) {
    double power = pow(a, n);
    return power * v + b * (1 - power) / (1 - a);
}

static void streams_chain(const gc_lab_run *run, double *want) {
    for (int64_t i = 0; i < run->size[0]; i++)
        want[i] = chain((double)run->in[0][i], (double)0.999f, (double)0.001f, 1500);
}

/* The kernel replaces its 80 numbers one after another, which is the recurrence
 * s[n + 80] = s[n] / 2 + s[n + 1] / 4 + s[n + 7] / 4. */
static void recurrence(const gc_lab_run *run, double *want) {
    enum { NUMBERS = 80, ALL = NUMBERS * 65 };
    long double s[ALL], sum = 0;
    for (int n = 0; n < NUMBERS; n++)
        s[n] = (long double)(n + 1) / NUMBERS;
    for (int n = 0; n + NUMBERS < ALL; n++)
        s[n + NUMBERS] = s[n] / 2 + (s[n + 1] + s[n + 7]) / 4;
    for (int n = ALL - NUMBERS; n < ALL; n++)
        sum += s[n];
    for (int64_t i = 0; i < run->size[0]; i++)
        want[i] = (double)(sum * (long double)run->in[0][i]);
}

static void identity(const gc_lab_run *run, double *want) {
    for (int64_t i = 0; i < run->size[0]; i++)
        want[i] = (double)run->in[0][i];
}

static void running_sum(const gc_lab_run *run, double *want) {
    const int32_t *a = run->buffer[0];
    for (int64_t i = 0; i < run->size[0]; i++)
        want[i] = (i ? want[i - 1] : 0) + a[i];
}

static void counted(const gc_lab_run *run, double *want) {
    const uint8_t *data = run->buffer[0];
    for (int64_t i = 0; i < run->size[0]; i++)
        want[data[i]]++;
}

/* Smooths a ring as often as there are steps: the mean of the means of neighbours. */
static void smoothed(const gc_lab_run *run, double *want) {
    int64_t n = run->size[0];
    for (int64_t i = 0; i < n; i++)
        want[i] = (double)run->in[0][i];
    for (int64_t half = 0; half < 2 * run->size[1]; half++) { /* to the left, then to the right */
        double first = want[0], last = want[n - 1];
        for (int64_t i = 0; i < n && half % 2 == 0; i++)
            want[i] = (want[i] + (i + 1 < n ? want[i + 1] : first)) / 2;
        for (int64_t i = n - 1; i >= 0 && half % 2; i--)
            want[i] = (want[i] + (i ? want[i - 1] : last)) / 2;
    }
}

static const struct {
    const char *module;
    int output;
    int64_t size[LAB_DIMENSIONS];
    formula *want;
} references[] = {
    {"vector-add", 2, {1003}, sum_of_two},      {"scale", 1, {1003}, five_halves},
    {"image", 1, {37, 23}, separable},          {"image", 1, {1, 1}, separable},
    {"median", 1, {1003}, sorted_middle},       {"median", 1, {2}, sorted_middle},
    {"constant-memory", 1, {70}, by_counts},    {"registers", 1, {50}, recurrence},
    {"convolution", 2, {700, 17}, by_oracle},   {"convolution", 2, {100, 300}, by_oracle},
    {"streams", 1, {200}, streams_chain},       {"pinned-memory", 1, {1003}, identity},
    {"matmul", 2, {7, 11, 13}, outer_products}, {"matmul", 2, {33, 1, 65}, outer_products},
    {"coalescing", 1, {13, 29}, doubled},       {"divergence", 1, {1003}, complex_polar},
    {"transpose", 1, {13, 29}, transposed},     {"reduction", 1, {100003}, pairwise},
    {"flash-attention", 3, {17, 2}, softmax},   {"floating-point", 3, {1003}, rounded_once},
    {"compiler", 2, {300}, reversed_taps},      {"scan", 1, {5003}, running_sum},
    {"histogram", 1, {200003, 30}, counted},    {"graphs", 1, {50, 9}, smoothed},
};

static void references_agree_with_other_formulas(void **state) {
    (void)state;
    for (int r = 0; r < COUNT(references); r++) {
        const gc_lab_module *module = gc_lab_module_find(references[r].module);
        gc_lab_case *c = NULL;
        gpuconv_error error = {0};
        CHECK(module, "there is no module %s", references[r].module);
        CHECK(gc_lab_case_new(module, &module->variants[0], references[r].size, NULL, &c, &error) == GPUCONV_OK,
              "%s: %s", module->name, error.message);
        gc_lab_run *run = gc_lab_case_run(c, &module->variants[0]);
        int output = references[r].output;
        int64_t n = run->count[output];
        double *want = calloc((size_t)n, sizeof *want), worst = 0, most = 0;
        assert_non_null(want);
        references[r].want(run, want);
        for (int64_t i = 0; i < n; i++) {
            double got = module->reference(run, output, i);
            CHECK(isfinite(got), "%s[%lld] is %g", module->name, (long long)i, got);
            worst = fmax(worst, fabs(got - want[i]));
            most = fmax(most, fabs(want[i]));
        }
        CHECK(worst <= 1e-12 * most, "%s: the reference differs by %g, largest value %g", module->name, worst, most);
        free(want);
        gc_lab_case_free(c);
    }
}

/* Checks that the lab rejects a wrong element, a missing element, and a write outside the buffer. */
static void wrong_missing_and_stray_elements_are_detected(void **state) {
    (void)state;
    static const int64_t size[LAB_DIMENSIONS] = {1003};
    const gc_lab_module *module = gc_lab_module_find("vector-add");
    const gc_lab_variant *variant = &module->variants[0];
    enum { NONE, WRONG, MISSING, OUTSIDE, FAULTS };
    for (int fault = NONE; fault < FAULTS; fault++) {
        gc_lab_case *c = NULL;
        gc_lab_deviation deviation;
        gpuconv_error error = {0};
        assert_int_equal(gc_lab_case_new(module, variant, size, NULL, &c, &error), GPUCONV_OK);
        gc_lab_run *run = gc_lab_case_run(c, variant);
        assert_int_equal(gc_lab_case_poison(c, &error), GPUCONV_OK);
        float *out = run->buffer[2], unwritten = out[500];
        assert_int_equal(variant->launch(run), 0);
        if (fault == WRONG)
            out[500] += 1e-3f;
        if (fault == MISSING)
            out[500] = unwritten;
        if (fault == OUTSIDE)
            out[1003] = 0;
        gpuconv_status status = gc_lab_case_check(c, variant, 0, &deviation, &error);
        CHECK(fault ? status != GPUCONV_OK : status == GPUCONV_OK, "fault %d: %d, %s", fault, (int)status,
              error.message);
        gc_lab_case_free(c);
    }
}

/* Sums above 2^24 have no float of their own. */
static void large_integers_are_compared_exactly(void **state) {
    (void)state;
    static const int64_t size[LAB_DIMENSIONS] = {5000000};
    const gc_lab_module *module = gc_lab_module_find("scan");
    gc_lab_case *c = NULL;
    gc_lab_deviation deviation;
    gpuconv_error error = {0};
    assert_int_equal(gc_lab_case_new(module, &module->variants[0], size, NULL, &c, &error), GPUCONV_OK);
    gc_lab_run *run = gc_lab_case_run(c, &module->variants[0]);
    assert_int_equal(module->variants[0].launch(run), 0);
    gpuconv_status status = gc_lab_case_check(c, &module->variants[0], 0, &deviation, &error);
    CHECK(status == GPUCONV_OK, "%s", error.message);
    ((int32_t *)run->buffer[1])[4999999] += 1;
    assert_int_not_equal(gc_lab_case_check(c, &module->variants[0], 0, &deviation, &error), GPUCONV_OK);
    gc_lab_case_free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(references_agree_with_other_formulas),
        cmocka_unit_test(wrong_missing_and_stray_elements_are_detected),
        cmocka_unit_test(large_integers_are_compared_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
