/* Compares matrices of many shapes with sums in double precision: dense, sparse, block-diagonal, one input to many
 * outputs and many to one, with channels that no route uses; by every algorithm, on a GPU as well (harness.h), and in
 * real time. Checks the product kernels of every instruction set. */
#include "harness.h"

#include "libgpuconv/conv/plan.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/matrix_product.h"

#include <malloc.h>
#include <math.h>

/* A matrix of random responses and its input. */
typedef struct matrix {
    int inputs, outputs;
    guarded taps, x; /* taps: channel i * outputs + o; a route that is missing has NaN */
    const float **plane;
    gpuconv_ir *ir;
} matrix;

typedef bool has_route(int input, int output);

static bool every(int i, int o) {
    (void)i;
    (void)o;
    return true;
}
static bool one_in_seven(int i, int o) {
    return (i * 37 + o * 101 + i * o * 13) % 7 == 0;
}
static bool one_in_twenty(int i, int o) {
    return (i * 37 + o * 101 + i * o * 13) % 11 == 0 && (i + o) % 2 == 0;
}
static bool at_random(int i, int o) { /* about one in five */
    uint32_t mixed = (uint32_t)(i * 1024 + o + 1) * UINT32_C(2654435761);
    mixed = (mixed ^ mixed >> 15) * UINT32_C(2246822519);
    return mixed >> 16 < 13107;
}
static bool blocks_of_four(int i, int o) {
    return i / 4 == o / 4;
}
static bool blocks_of_twelve(int i, int o) {
    return i / 12 == o / 12;
}
static bool all_but_some(int i, int o) { /* input 1 and output 2 have no route at all */
    return i != 1 && o != 2 && (i + o) % 5 != 0;
}

/* Returns a matrix without its response. */
static matrix draw_matrix(int inputs, int outputs, int64_t taps, int64_t frames, has_route *has) {
    oracle_random random = {.state = (uint64_t)(inputs * 1009 + outputs)};
    matrix m = {.inputs = inputs, .outputs = outputs};
    m.taps = guarded_random(&random, inputs * outputs, taps);
    m.x = guarded_random(&random, inputs, frames);
    m.plane = calloc((size_t)inputs * (size_t)outputs, sizeof *m.plane);
    CHECK(m.plane, "no memory");
    for (int i = 0; i < inputs; i++)
        for (int o = 0; o < outputs; o++)
            if (has(i, o))
                m.plane[i * outputs + o] = m.taps.channel[i * outputs + o];
    return m;
}

static void route(matrix *m) {
    gpuconv_error error = {0};
    CHECK(gpuconv_ir_new_matrix(m->plane, m->inputs, m->outputs, m->taps.frames, 48000, &m->ir, &error) == GPUCONV_OK,
          "%s", error.message);
}

static matrix new_matrix(int inputs, int outputs, int64_t taps, int64_t frames, has_route *has) {
    matrix m = draw_matrix(inputs, outputs, taps, frames, has);
    route(&m);
    return m;
}

static void free_matrix(matrix *m) {
    gpuconv_ir_free(m->ir);
    free(m->plane);
    guarded_free(&m->taps);
    guarded_free(&m->x);
}

/* Returns frame `at` of an output. */
static double expected(const matrix *m, int output, int64_t at) {
    double sum = 0;
    for (int i = 0; i < m->inputs; i++)
        if (m->plane[i * m->outputs + output])
            sum += oracle_frame(m->x.channel[i], m->x.frames, m->plane[i * m->outputs + output], m->taps.frames, at);
    return sum;
}

/* The squares of the errors and of the expected frames of all outputs. */
typedef struct all_outputs {
    double wrong, power;
} all_outputs;

/* Returns the error of an output in dB at both ends and at random frames, relative to the power of the whole output: a
 * transform spreads its error over all frames, and few routes meet at an end. Adds the squares to *all. */
static double output_error(const matrix *m, const guarded *y, int output, oracle_random *random, all_outputs *all,
                           const char *what) {
    enum { FRAMES = 40 };
    const float *samples = y->channel[output];
    double wrong = 0, power = 0, whole = 0;
    for (int64_t n = 0; n < y->frames; n++) {
        whole += (double)samples[n] * (double)samples[n];
        CHECK(isfinite(samples[n]), "%s: frame %lld of output %d is not finite", what, (long long)n, output);
    }
    for (int k = 0; k < FRAMES; k++) {
        const int64_t at = k < 3 ? k : k < 6 ? y->frames - k + 2 : oracle_below(random, y->frames);
        const double want = expected(m, output, at), off = (double)samples[at] - want;
        wrong += off * off;
        power += want * want;
    }
    all->wrong += wrong;
    all->power += power;
    CHECK(power > 0 || wrong == 0, "%s: output %d has no route and is not silent", what, output);
    return power > 0 ? 10 * log10(wrong / FRAMES / (whole / (double)y->frames)) : -HUGE_VAL;
}

/* Checks all outputs together, and each on its own: some have few routes. On tensor cores a float is two halves. */
static void check_outputs(const char *what, const matrix *m, const guarded *y) {
    static const bool halves = HARNESS_BACKEND == GPUCONV_BACKEND_CUDA;
    oracle_random random = {.state = 5};
    all_outputs all = {0};
    CHECK(guarded_intact(y), "%s: a write outside the buffer", what);
    for (int o = 0; o < m->outputs; o++) {
        const double error = output_error(m, y, o, &random, &all, what);
        CHECK(error <= (halves ? -115 : -118), "%s: %.1f dB in output %d", what, error, o);
    }
    const double together = 10 * log10(all.wrong / all.power);
    CHECK(together <= (halves ? -115 : -120), "%s: %.1f dB in all outputs", what, together);
}

/* Convolves by a plan, and frees it. */
static void check_plan(const char *what, const matrix *m, gpuconv_plan *plan) {
    guarded y = harness_convolve(plan, m->ir, &m->x);
    check_outputs(what, m, &y);
    guarded_free(&y);
    gpuconv_plan_free(plan);
}

static void matrices_match_by_every_algorithm(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int inputs, outputs;
        int64_t taps, frames;
        has_route *has;
    } shapes[] = {{"1 x 64", 1, 64, 300, 30000, every},
                  {"64 x 1", 64, 1, 700, 3000, every},
                  {"16 x 16", 16, 16, 5000 / HARNESS_FEWER, 40000 / HARNESS_FEWER, every},
                  {"64 x 64", 64, 64, 1000 / HARNESS_FEWER, 5000 / HARNESS_FEWER, every},
                  {"5 x 7", 5, 7, 900, 5000, every},
                  {"2 x 2", 2, 2, 3000, 9000, every},
                  {"300 x 300", 300, 300, 50, 500 / HARNESS_FEWER, every},
                  {"sparse", 40, 33, 2000, 9000, one_in_seven},
                  {"sparser", 40, 33, 700, 4000, one_in_twenty},
                  {"random", 48, 60, 300, 900, at_random},
                  {"blocks of four", 16, 16, 900, 5000, blocks_of_four},
                  {"blocks of twelve", 36, 36, 600, 9000, blocks_of_twelve},
                  {"holes", 9, 7, 3000, 9000, all_but_some}};
    for (int s = 0; s < COUNT(shapes); s++) {
        matrix m = new_matrix(shapes[s].inputs, shapes[s].outputs, shapes[s].taps, shapes[s].frames, shapes[s].has);
        for (int a = harness_quick ? GPUCONV_ALGORITHM_MATRIX : 0; a <= GPUCONV_ALGORITHM_MATRIX; a++) {
            char what[96];
            snprintf(what, sizeof what, "%s, %s", shapes[s].name, gpuconv_algorithm_name((gpuconv_algorithm)a));
            check_plan(what, &m, harness_plan(m.ir, (gpuconv_algorithm)a, shapes[s].frames, 2));
        }
        free_matrix(&m);
    }
}

/* One partition and several, one chunk and several: the delay line moves on, also behind the last full chunk. */
static void every_transform_of_a_matrix_matches(void **state) {
    (void)state;
    static const int outputs[] = {3, 20, 70};
    const int64_t least = HARNESS_BACKEND == GPUCONV_BACKEND_CUDA ? 2048 : 512;
    const int64_t most = harness_quick ? least : 32768 / HARNESS_FEWER;
    for (int64_t points = least; points <= most; points *= 2)
        for (int partitions = 1; partitions <= 3; partitions += 2)
            for (int blocks = 1; blocks <= 13; blocks += 6) {
                const int64_t taps = partitions * points / 3 + 5, frames = 3 * points + 11;
                matrix m = new_matrix(5, outputs[blocks / 6], taps, frames, every);
                gpuconv_plan *plan = harness_plan(m.ir, GPUCONV_ALGORITHM_MATRIX, frames, 2);
                char what[96];
                snprintf(what, sizeof what, "%lld points, %lld taps, %d blocks", (long long)points, (long long)taps,
                         blocks);
                if (harness_schedule(plan, points)) {
                    plan->choice.chunk = blocks * plan->choice.schedule.hop;
                    check_plan(what, &m, plan);
                } else { /* on a GPU there is none of 4096 points, and long ones take shared memory */
                    CHECK(HARNESS_BACKEND == GPUCONV_BACKEND_CUDA && (points == 4096 || points > 8192),
                          "%s: no schedule", what);
                    gpuconv_plan_free(plan);
                }
                free_matrix(&m);
            }
}

/* Outputs of levels up to 240 dB apart, and samples of any level: halves have a range of 1 to 2^40. */
static void a_matrix_keeps_its_precision_at_every_level(void **state) {
    (void)state;
    static const float levels[] = {1e-20F, 1e-6F, 1, 1e15F};
    for (int l = 0; l < COUNT(levels); l++) {
        matrix m = draw_matrix(17, 18, 900, 6000, every);
        for (int i = 0; i < m.inputs; i++)
            for (int64_t n = 0; n < m.x.frames; n++)
                m.x.channel[i][n] *= levels[l];
        for (int c = 0; c < m.inputs * m.outputs; c++)
            for (int64_t n = 0; n < m.taps.frames; n++)
                m.taps.channel[c][n] *= powf(10, -0.7F * (float)(c % m.outputs));
        route(&m);
        check_plan("levels", &m, harness_plan(m.ir, GPUCONV_ALGORITHM_MATRIX, m.x.frames, 2));
        free_matrix(&m);
    }
}

#ifndef HARNESS_CUDA
static void a_dense_matrix_is_planned_as_one_and_others_are_not(void **state) {
    (void)state;
    static const struct {
        int inputs, outputs;
        has_route *has;
        bool matrix;
    } cases[] = {{16, 16, every, true}, {64, 64, every, true}, {2, 2, every, false},
                 {1, 64, every, false}, {64, 1, every, false}, {64, 64, one_in_twenty, false}};
    for (int i = 0; i < COUNT(cases); i++) {
        matrix m = new_matrix(cases[i].inputs, cases[i].outputs, 6000, 10, cases[i].has);
        gpuconv_plan *plan = harness_plan(m.ir, GPUCONV_ALGORITHM_AUTO, 1000000, 2);
        CHECK((gpuconv_plan_algorithm(plan) == GPUCONV_ALGORITHM_MATRIX) == cases[i].matrix, "%d x %d: %s",
              cases[i].inputs, cases[i].outputs, gpuconv_plan_reason(plan));
        CHECK(!cases[i].matrix || strstr(gpuconv_plan_reason(plan), "density 100 %"), "no density in: %s",
              gpuconv_plan_reason(plan));
        gpuconv_plan_free(plan);
        free_matrix(&m);
    }
}

/* Returns the bytes that the program has allocated; negative: the C library does not say. With 32-bit addresses glibc
 * maps every block of more than 512 KiB by itself, with up to 2 MiB around it for its alignment, which mallinfo2
 * counts. */
static double allocated(void) {
#if defined(__GLIBC__) && defined(__LP64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    const struct mallinfo2 m = mallinfo2();
    return (double)m.uordblks + (double)m.hblkhd;
#else
    return -1;
#endif
}

/* The estimate on which the plan and the refusal for lack of memory rest is what an engine takes. */
static void an_engine_takes_the_memory_that_is_estimated(void **state) {
    (void)state;
    static const struct {
        int inputs, outputs;
        int64_t taps, frames;
        has_route *has;
    } cases[] = {{64, 64, 3000, 100000, every}, {300, 300, 64, 20000, every},      {1, 512, 256, 100000, every},
                 {512, 1, 256, 100000, every},  {64, 64, 3000, 100000, at_random}, {16, 16, 3000, -1, blocks_of_four},
                 {64, 64, 100, 1000000, every}};
    if (allocated() < 0)
        skip();
    for (int i = 0; i < COUNT(cases); i++) {
        matrix m = new_matrix(cases[i].inputs, cases[i].outputs, cases[i].taps, 10, cases[i].has);
        for (int a = 0; a <= GPUCONV_ALGORITHM_MATRIX; a++) {
            gpuconv_plan *plan = harness_plan(m.ir, (gpuconv_algorithm)a, cases[i].frames, 2);
            gpuconv_engine *engine;
            gpuconv_error error = {0};
            const double before = allocated(), slack = 12e6; /* tables; five blocks, rounded to huge pages */
            CHECK(gpuconv_engine_new(plan, &engine, &error) == GPUCONV_OK, "%s", error.message);
            const double taken = allocated() - before;
            CHECK(taken <= 1.1 * plan->choice.bytes + slack && plan->choice.bytes <= 1.25 * taken + slack,
                  "%d x %d x %lld, %s: %.1f MB taken, %.1f MB estimated", cases[i].inputs, cases[i].outputs,
                  (long long)cases[i].taps, gpuconv_algorithm_name(gpuconv_plan_algorithm(plan)), taken * 1e-6,
                  plan->choice.bytes * 1e-6);
            gpuconv_engine_free(engine);
            gpuconv_plan_free(plan);
        }
        free_matrix(&m);
    }
}

static void matrices_play_in_real_time(void **state) {
    (void)state;
    static const struct {
        int inputs, outputs, block;
        int64_t taps;
        has_route *has;
    } cases[] = {{8, 8, 128, 20000, every},
                 {8, 8, 0, 20000, every},
                 {8, 4, 64, 300, every},
                 {8, 8, 256, 3000, blocks_of_four},
                 {6, 8, 128, 9000, all_but_some}};
    for (int i = 0; i < COUNT(cases); i++) {
        matrix m = new_matrix(cases[i].inputs, cases[i].outputs, cases[i].taps, 30000, cases[i].has);
        gpuconv_realtime *rt;
        gpuconv_error error = {0};
        gpuconv_realtime_config config = gpuconv_realtime_config_default();
        config.block = cases[i].block ? cases[i].block : 128;
        config.freewheel = true;
        char what[64];
        CHECK(gpuconv_realtime_new(m.ir, &config, &rt, &error) == GPUCONV_OK, "%s", error.message);
        guarded y = harness_play(rt, &m.x, cases[i].outputs, cases[i].block, NULL);
        snprintf(what, sizeof what, "real time, case %d: %s", i, gpuconv_realtime_plan(rt));
        check_outputs(what, &m, &y);
        guarded_free(&y);
        gpuconv_realtime_free(rt);
        free_matrix(&m);
    }
}

static void wrong_matrices_are_refused(void **state) {
    (void)state;
    const float tap = 1, nan = NAN, *one[] = {&tap}, *bad[] = {&nan};
    gpuconv_ir *ir;
    gpuconv_error error = {0};
    assert_int_equal(gpuconv_ir_new_matrix(one, 0, 1, 1, 48000, &ir, &error), GPUCONV_ERROR_ARGUMENT);
    assert_int_equal(gpuconv_ir_new_matrix(one, 1, 1025, 1, 48000, &ir, &error), GPUCONV_ERROR_ARGUMENT);
    assert_int_equal(gpuconv_ir_new_matrix(one, 1, 1, 0, 48000, &ir, &error), GPUCONV_ERROR_ARGUMENT);
    assert_int_equal(gpuconv_ir_new_matrix(one, 1, 1, 1, 0, &ir, &error), GPUCONV_ERROR_ARGUMENT);
    assert_int_equal(gpuconv_ir_new_matrix(bad, 1, 1, 1, 48000, &ir, &error), GPUCONV_ERROR_FORMAT);
    assert_null(ir);
}

/* Fills with values from -1 to 1 and returns the buffer. */
static float *noise(oracle_random *random, int64_t floats) {
    float *p = gc_calloc(floats, sizeof *p);
    CHECK(p, "no memory");
    oracle_fill(random, p, floats);
    return p;
}

static void spectra_are_cut_and_joined_whatever_their_size(void **state) {
    (void)state;
    int sets;
    const gc_simd *const *all = gc_simd_all(&sets);
    for (int set = 0; set < sets; set++)
        for (int s = 1; s <= 1 << 16; s *= 16) {
            const int64_t floats = 4096;
            const gc_matrix_cut cut = gc_matrix_cut_make(all[set], floats, s);
            oracle_random random = {.state = 10};
            float *spectrum = noise(&random, floats), *runs = noise(&random, cut.slabs * cut.run);
            float *joined = noise(&random, floats);
            assert_int_equal(cut.past_caches, s > 2048);
            gc_matrix_cut_spectrum(all[set], &cut, spectrum, runs, cut.run);
            gc_matrix_join_spectrum(&cut, runs, cut.run, joined);
            CHECK(memcmp(spectrum, joined, (size_t)floats * sizeof *joined) == 0, "%s, %d spectra", all[set]->name, s);
            free(spectrum);
            free(runs);
            free(joined);
        }
}

static void kernels_of_every_instruction_set_multiply_matrices(void **state) {
    (void)state;
    int sets;
    const gc_simd *const *all = gc_simd_all(&sets);
    for (int set = 0; set < sets; set++)
        for (int outputs = 1; outputs <= 7; outputs++)
            for (int count = 2; count <= 17; count++) {
                const int blocks = count / 2;
                const gc_matrix_shape s = {outputs, 3, 2, blocks + 1, blocks, 3, .past_caches = count % 2};
                const int pair = gc_matrix_pair(all[set]), lanes = pair / 2;
                oracle_random random = {.state = 9};
                float *h = noise(&random, gc_matrix_response_floats(all[set], &s));
                float *x = noise(&random, gc_matrix_input_floats(all[set], &s));
                float *y = noise(&random, gc_matrix_output_floats(all[set], &s));
                gc_matrix_multiply(all[set], &s, s.width, h, x, y, blocks);
                for (int o = 0; o < outputs; o++)
                    for (int t = 0; t < blocks; t++)
                        for (int k = 0; k < s.width * lanes; k++) {
                            const int64_t at = k / lanes * pair + k % lanes;
                            double re = 0, im = 0;
                            for (int i = 0; i < 3; i++)
                                for (int p = 0; p < 2; p++) {
                                    const float *a = h + gc_matrix_response_at(all[set], &s, o, i, p) + at;
                                    const float *b = x + (i * s.delay + t + 1 - p) * s.width * pair + at;
                                    re += (double)a[0] * (double)b[0] - (double)a[lanes] * (double)b[lanes];
                                    im += (double)a[0] * (double)b[lanes] + (double)a[lanes] * (double)b[0];
                                }
                            const float *got = y + (o * s.capacity + t) * s.width * pair + at;
                            CHECK(fabs((double)got[0] - re) < 1e-5 && fabs((double)got[lanes] - im) < 1e-5,
                                  "%s, %d outputs, %d blocks", all[set]->name, outputs, blocks);
                        }
                free(h);
                free(x);
                free(y);
            }
}

#endif

#define HERE_AND_ON_A_GPU                                                                                              \
    cmocka_unit_test(matrices_match_by_every_algorithm), cmocka_unit_test(every_transform_of_a_matrix_matches),        \
        cmocka_unit_test(a_matrix_keeps_its_precision_at_every_level)

#ifdef HARNESS_CUDA
HARNESS_TESTS(test_matrix, HERE_AND_ON_A_GPU)
#else
HARNESS_TESTS(test_matrix, HERE_AND_ON_A_GPU, cmocka_unit_test(spectra_are_cut_and_joined_whatever_their_size),
              cmocka_unit_test(kernels_of_every_instruction_set_multiply_matrices),
              cmocka_unit_test(a_dense_matrix_is_planned_as_one_and_others_are_not),
              cmocka_unit_test(an_engine_takes_the_memory_that_is_estimated),
              cmocka_unit_test(matrices_play_in_real_time), cmocka_unit_test(wrong_matrices_are_refused))
#endif
