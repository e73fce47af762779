/* Tests schedules: the partitions cover the response exactly, hops and transform sizes match, invalid sizes are
 * refused. */
#include "check.h"
#include "libgpuconv/conv/plan.h"

static void partitions_cover_the_response(void **state) {
    (void)state;
    for (int64_t points = 4; points <= 65536; points *= 4) {
        const int64_t lengths[] = {1, 2, points / 2 - 1, points / 2, points / 2 + 1, points, 5 * points - 1, 100003};
        for (int i = 0; i < COUNT(lengths); i++) {
            gc_schedule s;
            assert_true(gc_schedule_partitioned(lengths[i], points, &s));
            assert_int_equal(s.taps, lengths[i]);
            assert_int_equal(s.transform, points);
            assert_int_equal(s.hop, points / 2);
            assert_int_equal(s.partition, points / 2);
            assert_true(s.partitions * s.partition >= lengths[i]);
            assert_true((s.partitions - 1) * s.partition < lengths[i]);
            assert_true(gc_schedule_history(&s) >= lengths[i] - 1);
        }
    }
}

static void overlap_save_keeps_only_unwrapped_frames(void **state) {
    (void)state;
    for (int64_t points = 4; points <= 65536; points *= 4) {
        for (int64_t taps = 1; taps < points; taps += points / 4 + 1) {
            gc_schedule s;
            if (!gc_schedule_overlap_save(taps, points, &s)) {
                CHECK(taps >= points / 2, "%lld points refused for %lld taps", (long long)points, (long long)taps);
                continue;
            }
            assert_int_equal(s.transform, points);
            assert_int_equal(s.partitions, 1);
            assert_int_equal(s.partition, taps);
            assert_true(s.hop >= 1);
            assert_true(s.hop + taps - 1 <= points); /* a kept frame never wraps */
            assert_true(gc_schedule_history(&s) >= taps - 1);
        }
    }
}

static void direct_needs_no_transform(void **state) {
    (void)state;
    gc_schedule s;
    assert_true(gc_schedule_direct(777, 0, &s));
    assert_int_equal(s.transform, 0);
    assert_int_equal(s.hop, 1);
    assert_int_equal(s.partition, 777);
    assert_int_equal(s.partitions, 1);
    assert_int_equal(gc_schedule_history(&s), 776);
}

static void impossible_sizes_are_refused(void **state) {
    (void)state;
    gc_schedule s;
    static bool (*const with_transform[])(int64_t, int64_t, gc_schedule *) = {
        gc_schedule_overlap_save, gc_schedule_partitioned, gc_schedule_dense};
    static const int64_t bad[] = {-8, 0, 1, 2, 3, 5, 6, 12, 1000, 65535};
    for (int a = 0; a < COUNT(with_transform); a++) {
        for (int i = 0; i < COUNT(bad); i++)
            CHECK(!with_transform[a](1, bad[i], &s), "%lld points accepted", (long long)bad[i]);
        assert_false(with_transform[a](0, 1024, &s));
        assert_false(with_transform[a](-5, 1024, &s));
    }
    assert_false(gc_schedule_direct(0, 0, &s));
    assert_false(gc_schedule_overlap_save(1024, 1024, &s));
    assert_false(gc_schedule_overlap_save(5000, 1024, &s));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partitions_cover_the_response),
        cmocka_unit_test(overlap_save_keeps_only_unwrapped_frames),
        cmocka_unit_test(direct_needs_no_transform),
        cmocka_unit_test(impossible_sizes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
