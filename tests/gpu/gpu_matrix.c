/* Matrices of responses on the GPU against sums in double precision: dense, sparse, block-diagonal, one input to many
 * outputs and many to one, by every algorithm that can; every transform of the algorithm matrix in one partition and in
 * several, in several chunks; and levels far from 1. */
#include "gpu_test.h"
#include "libgpuconv/conv/cuda/cuda_algorithm.h"
#include "libgpuconv/core/memory.h"

#include <math.h>

/* A matrix of random responses and its input. */
typedef struct matrix {
    int inputs, outputs;
    guarded taps, x; /* taps: channel i * outputs + o */
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
static bool blocks_of_twelve(int i, int o) {
    return i / 12 == o / 12;
}
static bool all_but_some(int i, int o) { /* input 1 and output 2 have no route at all */
    return i != 1 && o != 2 && (i + o) % 5 != 0;
}

static matrix new_matrix(int inputs, int outputs, int64_t taps, int64_t frames, has_route *has) {
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

static void free_matrix(matrix *m) {
    gpuconv_ir_free(m->ir);
    free(m->plane);
    guarded_free(&m->taps);
    guarded_free(&m->x);
}

/* Returns frame n of output o in double precision. */
static double expected(const matrix *m, int o, int64_t n) {
    double sum = 0;
    for (int i = 0; i < m->inputs; i++)
        if (m->plane[i * m->outputs + o])
            sum += oracle_frame(m->x.channel[i], m->x.frames, m->plane[i * m->outputs + o], m->taps.frames, n);
    return sum;
}

/* Returns the error of an output in dB at both ends and at random frames, relative to the power of the whole output: a
 * transform spreads its error over all frames, and few routes meet at an end. All frames must be finite. */
static double output_error(const matrix *m, const guarded *y, int o, int frames, oracle_random *random,
                           const char *what) {
    double wrong = 0, power = 0, whole = 0;
    for (int64_t n = 0; n < y->frames; n++) {
        whole += (double)y->channel[o][n] * (double)y->channel[o][n];
        CHECK(isfinite(y->channel[o][n]), "%s: frame %lld of output %d is not finite", what, (long long)n, o);
    }
    for (int k = 0; k < frames; k++) {
        const int64_t n = k == 0 ? 0 : k == 1 ? y->frames - 1 : oracle_below(random, y->frames);
        const double want = expected(m, o, n), e = (double)y->channel[o][n] - want;
        wrong += e * e;
        power += want * want;
    }
    CHECK(power > 0 || wrong == 0, "%s: output %d has no route and is not silent", what, o);
    return power > 0 ? 10 * log10(wrong / frames / (whole / (double)y->frames)) : -HUGE_VAL;
}

/* Checks all outputs, each on its own. Returns the worst error. */
static double check(const matrix *m, const guarded *y, const char *what) {
    oracle_random random = {77};
    double worst = -HUGE_VAL;
    const int frames = 6 + 6000 / (m->inputs * m->outputs);
    CHECK(y->frames == m->x.frames + m->taps.frames - 1, "%s: %lld frames", what, (long long)y->frames);
    for (int o = 0; o < m->outputs; o++)
        worst = fmax(worst, output_error(m, y, o, frames < 60 ? frames : 60, &random, what));
    CHECK(worst <= -115, "%s: %.1f dB in the worst output", what, worst);
    return worst;
}

void test_matrices_of_every_shape_agree_with_the_oracle(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int inputs, outputs;
        int64_t taps, frames;
        has_route *has;
    } shapes[] = {{"1 x 64", 1, 64, 256, 30000, every},
                  {"64 x 1", 64, 1, 700, 3000, every},
                  {"16 x 16", 16, 16, 5000, 40000, every},
                  {"64 x 64", 64, 64, 1000, 5000, every},
                  {"300 x 300", 300, 300, 50, 500, every},
                  {"sparse 40 x 33", 40, 33, 2000, 9000, one_in_seven},
                  {"blocks of 12 x 12", 36, 36, 600, 9000, blocks_of_twelve},
                  {"channels without a route", 9, 7, 3000, 9000, all_but_some}};
    double worst = -HUGE_VAL;
    for (int s = 0; s < COUNT(shapes); s++) {
        matrix m = new_matrix(shapes[s].inputs, shapes[s].outputs, shapes[s].taps, shapes[s].frames, shapes[s].has);
        route(&m);
        for (int a = GPUCONV_ALGORITHM_AUTO; a <= GPUCONV_ALGORITHM_MATRIX; a++) {
            if ((gpu_quick || gpu_forms) && a != GPUCONV_ALGORITHM_MATRIX)
                continue;
            char what[100];
            snprintf(what, sizeof what, "%s, %s", shapes[s].name, gpuconv_algorithm_name((gpuconv_algorithm)a));
            gpuconv_plan *plan = gpu_plan(m.ir, GPUCONV_BACKEND_CUDA, (gpuconv_algorithm)a, shapes[s].frames);
            guarded y = harness_convolve(plan, m.ir, &m.x);
            worst = fmax(worst, check(&m, &y, what));
            guarded_free(&y);
            gpuconv_plan_free(plan);
        }
        free_matrix(&m);
    }
    gpu_note("matrices of every shape, worst output", worst);
}

void test_every_transform_of_a_matrix_agrees_with_the_oracle(void **state) {
    (void)state;
    double worst = -HUGE_VAL;
    for (int64_t points = GCK_DENSE_POINTS_MIN; points <= GCK_DENSE_POINTS_MAX; points *= 2)
        for (int whole = 0; whole < 2; whole++)
            for (int columns = 0; columns < 3; columns++) {
                const int outputs = columns == 0 ? 3 : columns == 1 ? 20 : 70, blocks = 1 + 6 * columns;
                const int64_t taps = whole ? points / 3 : points + 5, frames = 3 * points + 11;
                if (gck_dense_query(points).twiddles == 0 || (gpu_quick && points > GCK_DENSE_POINTS_MIN))
                    continue;
                matrix m = new_matrix(5, outputs, taps, frames, every);
                char what[100];
                snprintf(what, sizeof what, "5 x %d, %lld points, %s, %d blocks", outputs, (long long)points,
                         whole ? "one partition" : "partitions", blocks);
                route(&m);
                gpuconv_plan *plan = gpu_plan(m.ir, GPUCONV_BACKEND_CUDA, GPUCONV_ALGORITHM_MATRIX, frames);
                if (gck_dense_query(points).shared_bytes <= plan->device.shared_memory) {
                    gc_problem problem;
                    CHECK(gc_problem_init(&problem, m.ir, frames, 0), "no memory");
                    CHECK(gc_cuda_dense.row.fits(&problem, &plan->device, points, !whole, &plan->choice),
                          "%s: no schedule", what);
                    gc_problem_free(&problem);
                    plan->choice.chunk = blocks * plan->choice.schedule.hop;
                    guarded y = harness_convolve(plan, m.ir, &m.x);
                    worst = fmax(worst, check(&m, &y, what));
                    guarded_free(&y);
                }
                gpuconv_plan_free(plan);
                free_matrix(&m);
            }
    gpu_note("every transform of a matrix, worst output", worst);
}

/* Outputs of levels up to 240 dB apart, and samples of any level: halves have a range of 1 to 2^40. */
void test_a_matrix_keeps_its_precision_at_every_level(void **state) {
    (void)state;
    static const float levels[] = {1e-20F, 1e-6F, 1, 1e15F};
    double worst = -HUGE_VAL;
    for (int l = 0; l < COUNT(levels); l++) {
        matrix m = new_matrix(17, 18, 900, 6000, every);
        for (int i = 0; i < m.inputs; i++)
            for (int64_t n = 0; n < m.x.frames; n++)
                m.x.channel[i][n] *= levels[l];
        for (int c = 0; c < m.inputs * m.outputs; c++)
            for (int64_t n = 0; n < m.taps.frames; n++)
                m.taps.channel[c][n] *= powf(10, -0.7F * (float)(c % m.outputs));
        route(&m);
        gpuconv_plan *plan = gpu_plan(m.ir, GPUCONV_BACKEND_CUDA, GPUCONV_ALGORITHM_MATRIX, m.x.frames);
        guarded y = harness_convolve(plan, m.ir, &m.x);
        worst = fmax(worst, check(&m, &y, "levels"));
        guarded_free(&y);
        gpuconv_plan_free(plan);
        free_matrix(&m);
    }
    gpu_note("a matrix at every level, worst output", worst);
}
