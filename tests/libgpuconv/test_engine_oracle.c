/* Compares every algorithm in every topology with the double-precision oracle, to -120 dB, at lengths from one frame to
 * several chunks; on a GPU as well (harness.h). */
#include "harness.h"

#include "libgpuconv/conv/plan.h"

#include <math.h>

static const double bound = -120;

static const struct {
    const char *name;
    int inputs, channels; /* channels of the input and of the response */
} topologies[] = {{"mono", 1, 1},        {"stereo", 2, 2},      {"three by three", 3, 3}, {"mono to stereo", 1, 2},
                  {"true stereo", 2, 4}, {"mono on two", 2, 1}, {"mono on three", 3, 1},  {"mono to five", 1, 5}};

/* Checks every algorithm in every topology, or in every `step`-th one, at one pair of lengths. */
static void check_topologies(int step, int64_t frames, int64_t taps, int64_t expected_frames) {
    oracle_random random = {.state = (uint64_t)(frames * 1000003 + taps)};
    for (int t = 0; t < COUNT(topologies); t += harness_quick ? COUNT(topologies) / 2 : step) {
        guarded h, x = guarded_random(&random, topologies[t].inputs, frames);
        gpuconv_ir *ir = harness_response(&random, topologies[t].channels, topologies[t].inputs, taps, &h);
        int outputs;
        double *want = harness_expected(&h, &x, &outputs);
        assert_int_equal(gpuconv_ir_outputs(ir), outputs);
        for (int a = 0; a < HARNESS_ALGORITHMS; a++) {
            char what[128];
            snprintf(what, sizeof what, "%s, %s, %lld frames, %lld taps", gpuconv_algorithm_name(harness_algorithms[a]),
                     topologies[t].name, (long long)frames, (long long)taps);
            gpuconv_plan *plan = harness_plan(ir, harness_algorithms[a], expected_frames, 2);
            guarded y = harness_convolve(plan, ir, &x);
            CHECK(oracle_agrees(what, &y, y.frames, want, frames + taps - 1, bound), "%s", what);
            guarded_free(&y);
            gpuconv_plan_free(plan);
        }
        free(want);
        gpuconv_ir_free(ir);
        guarded_free(&h);
        guarded_free(&x);
    }
}

static void shortest_lengths_match_the_oracle(void **state) {
    (void)state;
    static const int64_t shapes[][2] = {{1, 1}, {1, 2},   {2, 1},   {1, 100}, {100, 1},
                                        {3, 3}, {17, 16}, {16, 17}, {63, 65}};
    for (int i = 0; i < COUNT(shapes); i++) {
        check_topologies(1, shapes[i][0], shapes[i][1], shapes[i][0]);
        check_topologies(1, shapes[i][0], shapes[i][1], -1);
    }
}

/* Lengths at which a kernel takes another loop, another number of constants or another segment. */
static void responses_around_the_edges_of_kernels_match_the_oracle(void **state) {
    (void)state;
    static const int64_t lengths[] = {31,  32,  33,  34,  49,  50,   66,   81,   97,   113, 129,
                                      130, 300, 511, 512, 513, 1000, 4095, 4096, 4097, 7000};
    for (int l = 0; l < COUNT(lengths); l++)
        check_topologies(HARNESS_FEWER, 1501, lengths[l], 1501);
}

static void responses_longer_than_the_input_match_the_oracle(void **state) {
    (void)state;
    check_topologies(1, 333, 4099, 333);
    check_topologies(1, 5, 20011, 5);
}

static void ordinary_lengths_match_the_oracle(void **state) {
    (void)state;
    check_topologies(HARNESS_FEWER, 20011, 701, 20011);
    check_topologies(1, 8192, 1024, 8192);
    check_topologies(HARNESS_FEWER, 12289, 2500, -1);
}

static void inputs_of_several_chunks_match_the_oracle(void **state) {
    (void)state;
    check_topologies(HARNESS_FEWER, 262147, 257, -1);
}

/* Checks the first, the last and random frames of a result that is too long for the whole oracle. */
static void check_some_frames(gpuconv_algorithm algorithm, int64_t frames, int64_t taps) {
    enum { CHECKED_FRAMES = 400 };
    oracle_random random = {.state = 60000};
    guarded h, x = guarded_random(&random, 1, frames);
    gpuconv_ir *ir = harness_response(&random, 1, 1, taps, &h);
    gpuconv_plan *plan = harness_plan(ir, algorithm, frames, 2);
    guarded y = harness_convolve(plan, ir, &x), got = guarded_new(1, CHECKED_FRAMES);
    double want[CHECKED_FRAMES];
    for (int i = 0; i < CHECKED_FRAMES; i++) {
        int64_t at = i == 0 ? 0 : i == 1 ? y.frames - 1 : oracle_below(&random, y.frames);
        got.channel[0][i] = y.channel[0][at];
        want[i] = oracle_frame(x.channel[0], frames, h.channel[0], taps, at);
    }
    CHECK(guarded_intact(&y), "wrote outside the output");
    CHECK(oracle_agrees(gpuconv_algorithm_name(algorithm), &got, CHECKED_FRAMES, want, CHECKED_FRAMES, bound),
          "long response");
    guarded_free(&got);
    guarded_free(&y);
    guarded_free(&x);
    guarded_free(&h);
    gpuconv_plan_free(plan);
    gpuconv_ir_free(ir);
}

static void direct_keeps_its_precision_with_60000_taps(void **state) {
    (void)state;
    check_some_frames(GPUCONV_ALGORITHM_DIRECT, 3011, 60000 / HARNESS_FEWER);
}

static void overlap_save_keeps_its_precision_with_a_million_taps(void **state) {
    (void)state;
    if (HARNESS_BACKEND == GPUCONV_BACKEND_CUDA) /* its transforms are shorter */
        skip();
    check_some_frames(GPUCONV_ALGORITHM_OVERLAP_SAVE, 300007 / HARNESS_FEWER, 1000003 / HARNESS_FEWER);
}

static void partitioned_keeps_its_precision_with_a_million_taps(void **state) {
    (void)state;
    check_some_frames(GPUCONV_ALGORITHM_PARTITIONED, 300007 / HARNESS_FEWER, 1000003 / HARNESS_FEWER);
}

/* Covers all transform sizes, including sizes that the cost model does not choose. */
static void every_transform_size_matches_the_oracle(void **state) {
    (void)state;
    oracle_random random = {.state = 31};
    for (int64_t points = 512; points <= 32768; points *= 2) {
        for (int a = 1; a < HARNESS_ALGORITHMS; a++) {
            int64_t taps = points / 2 + 1, frames = 9973;
            guarded h, x = guarded_random(&random, 2, frames);
            gpuconv_ir *ir = harness_response(&random, 4, 2, taps, &h);
            gpuconv_plan *plan = harness_plan(ir, harness_algorithms[a], frames, 2);
            bool fits = harness_schedule(plan, points);
            if (fits) {
                harness_chunk(plan, 2000);
                int outputs;
                double *want = harness_expected(&h, &x, &outputs);
                guarded y = harness_convolve(plan, ir, &x);
                char what[128];
                snprintf(what, sizeof what, "%s with %lld points", gpuconv_algorithm_name(harness_algorithms[a]),
                         (long long)points);
                CHECK(oracle_agrees(what, &y, y.frames, want, frames + taps - 1, bound), "%s", what);
                guarded_free(&y);
                free(want);
            }
            CHECK(fits || points <= taps || HARNESS_BACKEND == GPUCONV_BACKEND_CUDA,
                  "%lld points refused for %lld taps", (long long)points, (long long)taps);
            gpuconv_plan_free(plan);
            gpuconv_ir_free(ir);
            guarded_free(&h);
            guarded_free(&x);
        }
    }
}

HARNESS_TESTS(test_engine_oracle, cmocka_unit_test(shortest_lengths_match_the_oracle),
              cmocka_unit_test(responses_around_the_edges_of_kernels_match_the_oracle),
              cmocka_unit_test(responses_longer_than_the_input_match_the_oracle),
              cmocka_unit_test(ordinary_lengths_match_the_oracle),
              cmocka_unit_test(inputs_of_several_chunks_match_the_oracle),
              cmocka_unit_test(direct_keeps_its_precision_with_60000_taps),
              cmocka_unit_test(overlap_save_keeps_its_precision_with_a_million_taps),
              cmocka_unit_test(partitioned_keeps_its_precision_with_a_million_taps),
              cmocka_unit_test(every_transform_size_matches_the_oracle))
