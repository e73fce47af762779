/* The levels of banks: they cover every tap once, begin where the executor needs them, and have the sizes in the
 * records of the GPU (tests/gpu). */
#include "harness.h"
#include "libgpuconv/conv/backend.h"

enum { LONGEST = 8192, CHANNELS_MAX = 8000 };

static gc_route route[CHANNELS_MAX];

/* Makes the options of a filter bank, or, with `outputs`, of a full matrix. */
static gc_bank_options options_of(int inputs, int outputs, int block, int64_t taps) {
    const int routes = outputs ? inputs * outputs : inputs;
    for (int r = 0; r < routes; r++)
        route[r] = (gc_route){.input = r % inputs, .output = outputs ? r / inputs : r};
    return (gc_bank_options){.inputs = inputs,
                             .outputs = outputs ? outputs : inputs,
                             .routes = routes,
                             .route = route,
                             .block = block,
                             .taps = taps};
}

/* Plans a bank for the built-in costs of an H200. */
static gc_levels plan_of(const gc_bank_options *o, int64_t longest) {
    static const gc_algorithm *const algorithms[] = {&gc_bank_levels, NULL};
    const gc_device device = {
        .multiprocessors = 132, .lanes = 128, .clock = 1.98e9, .bandwidth = 4.917e12, .memory = 1};
    const gc_costs costs = gc_costs_built_in(&device);
    const gc_problem problem = {.kind = GC_BANK,
                                .bank = {.gpu = o, .diagonal = gc_bank_is_diagonal(o), .longest_hop = longest}};
    gc_choice choice;
    assert_int_equal(gc_algorithms_choose(algorithms, &problem, &device, &costs, &choice, NULL, NULL), GPUCONV_OK);
    assert_true(choice.predicted > 0 && choice.predicted < 1);
    return choice.levels;
}

static void check_levels(const gc_bank_options *o, int64_t longest) {
    const gc_levels plan = plan_of(o, longest);
    const bool diagonal = gc_bank_is_diagonal(o);
    int64_t end = 0;
    for (int k = 0; k < plan.count; k++) {
        const gc_level *l = &plan.level[k];
        const int64_t lead = k == 0 ? 0 : diagonal ? l->hop : 2 * l->hop;
        CHECK(l->hop == o->block || (k > 0 && l->hop > plan.level[k - 1].hop && l->hop <= longest), "hop %lld",
              (long long)l->hop);
        CHECK((l->hop & (l->hop - 1)) == 0 && l->first_tap == end && l->first_tap == lead && l->partitions > 0,
              "%d routes, blocks of %d, %lld taps: level %d begins at %lld", o->routes, o->block, (long long)o->taps, k,
              (long long)l->first_tap);
        end += l->partitions * l->hop;
    }
    CHECK(end >= o->taps && end - o->taps < plan.level[plan.count - 1].hop, "%lld taps, %lld are covered",
          (long long)o->taps, (long long)end);
}

static void levels_cover_every_tap_once(void **state) {
    (void)state;
    static const int64_t taps[] = {1, 32, 33, 64, 65, 129, 300, 1023, 1025, 2049, 9000, 16385, 96000, 1440000};
    for (int block = 32; block <= 1024; block *= 2)
        for (int t = 0; t < COUNT(taps); t++)
            for (int64_t longest = 1024; longest <= LONGEST; longest *= 2)
                for (int outputs = 0; outputs <= 9; outputs += 3) {
                    const gc_bank_options options = options_of(4, outputs, block, taps[t]);
                    check_levels(&options, longest);
                }
}

static void the_plan_of_a_measured_bank_is_the_recorded_one(void **state) {
    (void)state;
    static const struct {
        int inputs, outputs, block;
        struct {
            int count;
            struct {
                int64_t hop, first_tap, partitions;
            } level[GC_LEVELS_MAX];
        } plan;
    } cases[] = {
        {2, 0, 64, {4, {{64, 0, 4}, {256, 256, 3}, {1024, 1024, 7}, {8192, 8192, 11}}}},
        {8000, 0, 128, {4, {{128, 0, 4}, {512, 512, 3}, {2048, 2048, 3}, {8192, 8192, 11}}}},
        {64, 64, 128, {4, {{128, 0, 8}, {512, 1024, 6}, {2048, 4096, 6}, {8192, 16384, 10}}}},
    };
    for (int k = 0; k < COUNT(cases); k++) {
        const gc_bank_options options = options_of(cases[k].inputs, cases[k].outputs, cases[k].block, 96000);
        const gc_levels plan = plan_of(&options, LONGEST);
        assert_int_equal(plan.count, cases[k].plan.count);
        for (int l = 0; l < plan.count; l++)
            CHECK(plan.level[l].hop == cases[k].plan.level[l].hop &&
                      plan.level[l].first_tap == cases[k].plan.level[l].first_tap &&
                      plan.level[l].partitions == cases[k].plan.level[l].partitions,
                  "case %d, level %d: %lld x %lld", k, l, (long long)plan.level[l].partitions,
                  (long long)plan.level[l].hop);
    }
}

static void only_the_identity_is_diagonal(void **state) {
    (void)state;
    gc_bank_options options = options_of(3, 0, 64, 100);
    assert_true(gc_bank_is_diagonal(&options));
    route[0].input = 2;
    route[2].input = 0;
    assert_false(gc_bank_is_diagonal(&options));
    options = options_of(3, 0, 64, 100);
    options.inputs = 4;
    assert_false(gc_bank_is_diagonal(&options));
    options = options_of(1, 2, 64, 100);
    assert_false(gc_bank_is_diagonal(&options));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_cover_every_tap_once),
        cmocka_unit_test(the_plan_of_a_measured_bank_is_the_recorded_one),
        cmocka_unit_test(only_the_identity_is_diagonal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
