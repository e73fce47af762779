/* Tests that a program reads through the getters what a report contains. */
#include "check.h"
#include "libgpuconv/report/report.h"

#include <math.h>

static gpuconv_report *make_report(void) {
    static const char *const names[] = {"seconds", "level"};
    gpuconv_report *report;
    assert_int_equal(gpuconv_report_new(&report), GPUCONV_OK);
    gc_report_text(report, "files", "input", "voice.wav");
    gc_report_count(report, "files", "input frames", (INT64_C(1) << 53) + 1);
    gc_report_measure(report, "times", "wall", 1.5, "s", 3, 0.25);
    gc_report_measure(report, "times", "peak", -HUGE_VAL, "dBFS", 1, 0);
    gc_report_named_row(report, "comparison", "direct", 2, names, (double[]){2.5, -HUGE_VAL});
    gc_report_named_row(report, "comparison", "partitioned", 2, names, (double[]){3.5, -60});
    return report;
}

static void a_report_is_enumerated_in_order(void **state) {
    (void)state;
    static const char *const titles[] = {"environment", "files", "times", "comparison", NULL};
    static const char *const names[] = {"label", "seconds", "level", NULL};
    static const int rows[] = {1, 1, 1, 2};
    gpuconv_report *report = make_report();
    for (int i = 0; titles[i]; i++) {
        assert_string_equal(gpuconv_report_title(report, i), titles[i]);
        assert_int_equal(gpuconv_report_rows(report, titles[i]), rows[i]);
    }
    for (int i = 0; names[i]; i++)
        assert_string_equal(gpuconv_report_name(report, "comparison", 1, i), names[i]);
    assert_null(gpuconv_report_title(report, 4));
    assert_null(gpuconv_report_title(report, -1));
    assert_null(gpuconv_report_name(report, "comparison", 1, 3));
    assert_null(gpuconv_report_name(report, "comparison", 2, 0));
    assert_null(gpuconv_report_name(report, "comparison", -1, 0));
    assert_null(gpuconv_report_name(report, "times", 1, 0));
    assert_null(gpuconv_report_name(report, "none", 0, 0));
    assert_int_equal(gpuconv_report_rows(report, "none"), 0);
    gpuconv_report_free(report);
}

static void values_have_kinds_and_units(void **state) {
    (void)state;
    gpuconv_report *r = make_report();
    assert_int_equal(gpuconv_report_type(r, "files", 0, "input"), GPUCONV_VALUE_TEXT);
    assert_string_equal(gpuconv_report_text(r, "files", 0, "input"), "voice.wav");
    assert_int_equal(gpuconv_report_type(r, "files", 0, "input frames"), GPUCONV_VALUE_COUNT);
    assert_true(gpuconv_report_count(r, "files", 0, "input frames") == (INT64_C(1) << 53) + 1);
    assert_true(gpuconv_report_number(r, "files", 0, "input frames") == 0x1p53);
    assert_int_equal(gpuconv_report_type(r, "times", 0, "wall"), GPUCONV_VALUE_NUMBER);
    assert_true(gpuconv_report_number(r, "times", 0, "wall") == 1.5);
    assert_string_equal(gpuconv_report_unit(r, "times", 0, "wall"), "s");
    assert_int_equal(gpuconv_report_runs(r, "times", 0, "wall"), 3);
    assert_true(gpuconv_report_spread(r, "times", 0, "wall") == 0.25);
    assert_int_equal(gpuconv_report_type(r, "times", 0, "peak"), GPUCONV_VALUE_NUMBER);
    assert_true(isnan(gpuconv_report_number(r, "times", 0, "peak")));
    assert_string_equal(gpuconv_report_text(r, "comparison", 1, "label"), "partitioned");
    assert_true(gpuconv_report_number(r, "comparison", 1, "seconds") == 3.5);
    assert_true(gpuconv_report_number(r, "comparison", 1, "level") == -60);
    assert_int_equal(gpuconv_report_type(r, "comparison", 0, "level"), GPUCONV_VALUE_NUMBER);
    assert_true(isnan(gpuconv_report_number(r, "comparison", 0, "level")));
    gpuconv_report_free(r);
}

static void a_missing_value_is_no_value(void **state) {
    (void)state;
    static const struct {
        const char *title;
        int row;
        const char *name;
    } missing[] = {{"none", 0, "wall"},
                   {"times", 0, "none"},
                   {"times", 1, "wall"},
                   {"times", -1, "wall"},
                   {"comparison", 2, "seconds"}};
    gpuconv_report *r = make_report();
    for (int i = 0; i < COUNT(missing); i++) {
        const char *title = missing[i].title, *name = missing[i].name;
        int row = missing[i].row;
        assert_int_equal(gpuconv_report_type(r, title, row, name), GPUCONV_VALUE_NONE);
        assert_null(gpuconv_report_text(r, title, row, name));
        assert_true(gpuconv_report_count(r, title, row, name) == 0);
        assert_true(isnan(gpuconv_report_number(r, title, row, name)));
        assert_string_equal(gpuconv_report_unit(r, title, row, name), "");
        assert_int_equal(gpuconv_report_runs(r, title, row, name), 0);
        assert_true(isnan(gpuconv_report_spread(r, title, row, name)));
    }
    gpuconv_report_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_report_is_enumerated_in_order),
        cmocka_unit_test(values_have_kinds_and_units),
        cmocka_unit_test(a_missing_value_is_no_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
