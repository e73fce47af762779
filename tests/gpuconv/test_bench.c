/* Tests the figures of benchmarks that need no time: the operations that a roofline diagram counts. */
#include "gpuconv/bench/bench.h"

#include "harness.h"

#include <math.h>
#include <string.h>

/* Adds one convolution of 1 s to a roofline, and compares rate and intensity with operations counted one by one. */
static void check_counts(gpuconv_algorithm algorithm, int inputs, int outputs, int64_t taps) {
    const int64_t frames = 1000;
    const bool dense = inputs != outputs || algorithm == GPUCONV_ALGORITHM_MATRIX;
    gc_roofline roofline = {0};
    const gc_bench b = {.roofline = &roofline};
    const gc_bench_case what = {"case", frames, taps, inputs, dense ? outputs : 0};
    gc_material m;
    assert_int_equal(gc_material_new(&what, &m, NULL), GPUCONV_OK);
    gpuconv_plan *plan = harness_plan(m.ir, algorithm, frames, 1);
    gc_roofline_add(&b, plan, &what, 1.0);
    const double n = (double)gpuconv_plan_transform(plan), bins = n / 2;
    double blocks = 0;
    for (int o = 0; o < outputs; o++) {
        bool first = true;
        for (int i = 0; i < inputs; i++)
            for (int64_t p = 0; (dense || i == o) && p < gpuconv_plan_partitions(plan); p++, first = false)
                blocks += 6 * bins + (first ? 0 : 2 * bins); /* a complex product, and its sum with those before */
    }
    blocks += (inputs + outputs) * 5 * bins * log2(bins); /* the transforms */
    double operations = blocks / (double)gpuconv_plan_hop(plan) * (double)frames;
    if (algorithm == GPUCONV_ALGORITHM_DIRECT)
        operations = 2.0 * (double)taps * (dense ? inputs * outputs : inputs) * (double)frames;
    const double bytes = 4.0 * (inputs + outputs) * (double)frames;
    assert_int_equal(roofline.points, 1);
    CHECK(fabs(roofline.rate[0] / operations - 1) < 1e-9, "%s, %d x %d: %g operations, not %g",
          gpuconv_algorithm_name(algorithm), inputs, outputs, roofline.rate[0], operations);
    CHECK(fabs(roofline.intensity[0] / (operations / bytes) - 1) < 1e-9, "%s, %d x %d: intensity %g, not %g",
          gpuconv_algorithm_name(algorithm), inputs, outputs, roofline.intensity[0], operations / bytes);
    gpuconv_plan_free(plan);
    gc_material_free(&m);
}

static void a_roofline_counts_the_operations_of_every_algorithm(void **state) {
    (void)state;
    for (int a = 0; a < COUNT(harness_algorithms); a++) {
        if (harness_algorithms[a] != GPUCONV_ALGORITHM_MATRIX)
            check_counts(harness_algorithms[a], 2, 2, 700);
        check_counts(harness_algorithms[a], 8, 6, 700);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_roofline_counts_the_operations_of_every_algorithm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
