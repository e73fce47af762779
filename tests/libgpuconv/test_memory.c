/* Compares gpuconv_memory_convolve with the double-precision oracle: all kinds of offsets, steps and lengths, prepared
 * responses, the same bytes in any batch and for any number of threads, and the same bytes as the engine. */
#include "gpuconv_memory.h"
#include "harness.h"

#include "libgpuconv/cpu/row_plan.h"

#include <math.h>

static const double bound = -120;

static gpuconv_memory *new_memory(int threads) {
    gpuconv_memory *memory;
    gpuconv_error error;
    CHECK(gpuconv_memory_new(threads, &memory, &error) == GPUCONV_OK, "%s", error.message);
    return memory;
}

static void convolve(gpuconv_memory *memory, const gpuconv_memory_row *rows, int64_t count) {
    gpuconv_error error;
    CHECK(gpuconv_memory_convolve(memory, rows, count, &error) == GPUCONV_OK, "%s", error.message);
}

/* One case: lengths, the part of the result, and the steps of signal, response and output. */
typedef struct shape {
    int64_t frames, taps, offset, output;
    int step[3];
} shape;

/* Returns a copy of `frames` samples with another step, and in *first its frame 0. */
static float *spread(const float *from, int64_t frames, int step, float **first) {
    const int64_t distance = step < 0 ? -step : step, size = (frames - 1) * distance + 1;
    float *to = malloc((size_t)size * sizeof *to);
    CHECK(to, "out of memory");
    *first = step < 0 ? to + size - 1 : to;
    for (int64_t i = 0; i < size; i++)
        to[i] = NAN;
    for (int64_t i = 0; i < frames; i++)
        (*first)[i * step] = from[i];
    return to;
}

/* Convolves one row, into a guarded buffer that has the output's frames in order. */
static guarded run_row(gpuconv_memory *memory, const shape *s, const guarded *x, const guarded *h, bool prepare) {
    float *signal, *taps,
        *memories[] = {spread(x->channel[0], s->frames, s->step[0], &signal),
                       spread(h->channel[0], s->taps, s->step[1], &taps)};
    const int64_t distance = s->step[2] < 0 ? -s->step[2] : s->step[2], last = (s->output - 1) * distance;
    guarded wide = guarded_new(1, last + 1), y = guarded_new(1, s->output);
    float *output = wide.channel[0] + (s->step[2] < 0 ? last : 0);
    gpuconv_memory_row row = {.signal = {signal, s->frames, s->step[0]},
                              .response = {taps, s->taps, s->step[1]},
                              .output = output,
                              .output_frames = s->output,
                              .output_step = s->step[2],
                              .offset = s->offset};
    gpuconv_memory_response *prepared = NULL;
    if (prepare) {
        CHECK(gpuconv_memory_response_new(taps, s->taps, s->step[1], &prepared, NULL) == GPUCONV_OK, "prepare");
        row.prepared = prepared;
        row.response = (gpuconv_memory_array){0};
    }
    convolve(memory, &row, 1);
    gpuconv_memory_response_free(prepared);
    for (int64_t i = 0; i < s->output; i++)
        y.channel[0][i] = output[i * s->step[2]];
    for (int64_t i = 0; i <= last; i++)
        CHECK(i % distance == 0 || isnan(wide.channel[0][i]), "written between the frames of the output");
    CHECK(guarded_intact(&wide), "written outside of the output");
    guarded_free(&wide);
    free(memories[0]);
    free(memories[1]);
    return y;
}

static void check_shape(gpuconv_memory *memory, const shape *s) {
    oracle_random random = {.state = (uint64_t)(s->frames * 7919 + s->taps)};
    guarded x = guarded_random(&random, 1, s->frames), h = guarded_random(&random, 1, s->taps);
    double *want = calloc((size_t)s->output, sizeof *want);
    CHECK(want, "out of memory");
    for (int64_t i = 0; i < s->output; i++)
        want[i] = oracle_frame(x.channel[0], s->frames, h.channel[0], s->taps, i + s->offset);
    for (int prepare = 0; prepare < 2; prepare++) {
        char what[160];
        snprintf(what, sizeof what, "%lld x %lld from %lld, %lld frames, steps %d %d %d%s", (long long)s->frames,
                 (long long)s->taps, (long long)s->offset, (long long)s->output, s->step[0], s->step[1], s->step[2],
                 prepare ? ", prepared" : "");
        guarded y = run_row(memory, s, &x, &h, prepare);
        CHECK(oracle_agrees(what, &y, s->output, want, s->output, bound), "%s", what);
        guarded_free(&y);
    }
    free(want);
    guarded_free(&x);
    guarded_free(&h);
}

static void rows_match_the_oracle(void **state) {
    (void)state;
    static const shape shapes[] = {
        {1, 1, 0, 1, {1, 1, 1}},
        {1, 1, -3, 9, {1, 1, 1}},
        {5, 3, 0, 7, {1, 1, 1}},
        {3, 5, 2, 3, {1, 1, 1}},
        {100, 40, 39, 61, {1, 1, 1}},
        {100, 40, 19, 100, {2, 3, 2}},
        {100, 40, 0, 139, {-1, -1, -1}},
        {1000, 700, 0, 1699, {1, 1, 1}},
        {700, 1000, 0, 1699, {-2, 1, 3}},
        {5000, 300, 149, 5000, {1, 1, 1}},
        {5000, 300, 299, 4701, {1, -1, 1}},
        {30000, 2500, 0, 32499, {1, 1, 1}},
        {30000, 2500, 17, 30000, {2, 1, 1}},
        {30000, 2500, 1249, 30000, {1, 1, 2}},
        {2500, 30000, 40, 9000, {1, -1, 1}},
        {60000, 40, 33, 60000, {1, 1, 1}},
        {60000, 40, 0, 60039, {3, 2, 1}},
        {60000, 40, 39, 59961, {1, 1, -2}},
        {400, 30, -50, 600, {1, 1, 1}},
        {400, 30, 5000, 10, {1, 1, 1}},
        {400, 30, -5000, 10, {1, 1, 1}},
    };
    gpuconv_memory *memory = new_memory(2);
    for (int i = 0; i < COUNT(shapes); i++)
        check_shape(memory, &shapes[i]);
    gpuconv_memory_free(memory);
}

/* The gradient by the response: a long correlation of which few frames are needed. */
static void few_frames_of_a_long_result_match_the_oracle(void **state) {
    (void)state;
    static const shape shapes[] = {{21000, 20000, 19999, 1001, {1, -1, 1}},
                                   {50000, 50000, 49999, 32, {1, -1, 1}},
                                   {50000, 49000, 48000, 777, {-1, 1, 2}},
                                   {40000, 90000, 39999, 64, {1, -1, 1}}};
    gpuconv_memory *memory = new_memory(2);
    gc_costs costs = gc_costs_of_cpu("");
    for (int i = 0; i < COUNT(shapes); i++) {
        gc_row_plan plan = {0};
        const shape *s = &shapes[i];
        gpuconv_memory_row row = {.signal = {.frames = s->frames, .step = 1},
                                  .response = {.frames = s->taps, .step = 1},
                                  .output_frames = s->output,
                                  .output_step = 1,
                                  .offset = s->offset};
        assert_int_equal(gc_row_plan_make(&costs, &row, s->taps, &plan, NULL), GPUCONV_OK);
        assert_int_equal(plan.method, GC_ROW_SUM);
        check_shape(memory, s);
    }
    gpuconv_memory_free(memory);
}

enum { ROWS = 9 };

/* Fills rows of different lengths, some of which share a response, with outputs of their own. */
static void make_rows(gpuconv_memory_row *rows, guarded *x, guarded *h, guarded *y) {
    oracle_random random = {.state = 11};
    for (int i = 0; i < ROWS; i++) {
        const int64_t frames = i == 4 ? 300000 : 1 + oracle_below(&random, 40000);
        x[i] = guarded_random(&random, 1, frames);
        h[i] = guarded_random(&random, 1, 1 + oracle_below(&random, i % 3 ? 5000 : 50));
        const guarded *taps = i % 4 == 1 ? &h[i - 1] : &h[i];
        y[i] = guarded_new(1, frames + taps->frames - 1);
        rows[i] = (gpuconv_memory_row){.signal = {x[i].channel[0], frames, 1},
                                       .response = {taps->channel[0], taps->frames, 1},
                                       .output = y[i].channel[0],
                                       .output_frames = y[i].frames,
                                       .output_step = 1};
    }
}

static void a_row_has_the_same_bytes_in_any_batch(void **state) {
    (void)state;
    guarded x[ROWS], h[ROWS], y[ROWS];
    gpuconv_memory_row rows[ROWS];
    make_rows(rows, x, h, y);
    gpuconv_memory *alone = new_memory(1);
    convolve(alone, rows, ROWS);
    gpuconv_memory_free(alone);
    for (int threads = 2; threads <= 5; threads += 3) {
        gpuconv_memory *memory = new_memory(threads);
        for (int batch = 0; batch < 2; batch++) {
            guarded again[ROWS];
            for (int i = 0; i < ROWS; i++) {
                again[i] = guarded_new(1, y[i].frames);
                rows[i].output = again[i].channel[0];
            }
            for (int i = 0; i < ROWS && !batch; i++)
                convolve(memory, &rows[i], 1);
            if (batch)
                convolve(memory, rows, ROWS);
            for (int i = 0; i < ROWS; i++) {
                CHECK(oracle_identical("row", &again[i], y[i].frames, &y[i], y[i].frames), "row %d", i);
                guarded_free(&again[i]);
            }
        }
        gpuconv_memory_free(memory);
    }
    for (int i = 0; i < ROWS; i++) {
        guarded_free(&x[i]);
        guarded_free(&h[i]);
        guarded_free(&y[i]);
    }
}

static void the_engine_gives_the_same_bytes(void **state) {
    (void)state;
    static const int64_t shapes[][2] = {{50000, 30}, {50000, 500}, {200000, 8000}, {700000, 40000}};
    gpuconv_memory *memory = new_memory(2);
    for (int i = 0; i < COUNT(shapes); i++) {
        oracle_random random = {.state = 5};
        guarded h, x = guarded_random(&random, 1, shapes[i][0]);
        gpuconv_ir *ir = harness_response(&random, 1, 1, shapes[i][1], &h);
        gpuconv_config config = gpuconv_config_default();
        config.backend = GPUCONV_BACKEND_CPU;
        config.frames = x.frames;
        gpuconv_plan *plan;
        assert_int_equal(gpuconv_plan_new(ir, &config, &plan, NULL), GPUCONV_OK);
        guarded want = harness_convolve(plan, ir, &x), y = guarded_new(1, want.frames);
        gpuconv_memory_row row = {.signal = {x.channel[0], x.frames, 1},
                                  .response = {h.channel[0], h.frames, 1},
                                  .output = y.channel[0],
                                  .output_frames = y.frames,
                                  .output_step = 1};
        convolve(memory, &row, 1);
        CHECK(oracle_identical("engine", &y, y.frames, &want, want.frames), "%d", i);
        gpuconv_plan_free(plan);
        gpuconv_ir_free(ir);
        guarded_free(&x);
        guarded_free(&h);
        guarded_free(&y);
        guarded_free(&want);
    }
    gpuconv_memory_free(memory);
}

static void a_spoilt_row_spoils_no_other(void **state) {
    (void)state;
    static float x[3][3000], h[3][200], y[3][3199];
    gpuconv_memory_row rows[3];
    gpuconv_memory *memory = new_memory(1);
    for (int i = 0; i < 3; i++) {
        x[i][5] = i == 1 ? NAN : 1;
        h[i][7] = 1;
        rows[i] = (gpuconv_memory_row){.signal = {x[i], 3000, 1},
                                       .response = {h[i], 200, 1},
                                       .output = y[i],
                                       .output_frames = 3199,
                                       .output_step = 1};
    }
    convolve(memory, rows, 3);
    for (int i = 0; i < 3; i += 2)
        for (int n = 0; n < 3199; n++)
            CHECK(fabsf(y[i][n] - (n == 12 ? 1.0f : 0.0f)) < 1e-6f, "row %d, frame %d: %g", i, n, (double)y[i][n]);
    gpuconv_memory_free(memory);
}

/* Expects a refusal whose message contains `text`. */
static void refuse(gpuconv_memory *memory, gpuconv_memory_row row, const char *text) {
    gpuconv_error error = {0};
    assert_int_equal(gpuconv_memory_convolve(memory, &row, 1, &error), GPUCONV_ERROR_ARGUMENT);
    CHECK(strstr(error.message, text), "%s", error.message);
}

static void wrong_values_are_refused(void **state) {
    (void)state;
    float x[4] = {1, 2, 3, 4}, y[8], spoilt[2] = {1, INFINITY};
    gpuconv_memory *memory = new_memory(1), *none;
    gpuconv_memory_response *response;
    gpuconv_error error;
    const gpuconv_memory_row good = {
        .signal = {x, 4, 1}, .response = {x, 4, 1}, .output = y, .output_frames = 7, .output_step = 1};
    gpuconv_memory_row row = good;
    convolve(memory, &row, 1);
    row.signal.frames = 0;
    refuse(memory, row, "row 0: the signal");
    row = good;
    row.response.data = NULL;
    refuse(memory, row, "row 0: the response");
    row = good;
    row.output_step = 0;
    refuse(memory, row, "row 0: the output");
    row = good;
    row.output_frames = -1;
    refuse(memory, row, "row 0: the output");
    row = good;
    row.offset = INT64_MAX;
    refuse(memory, row, "row 0: the offset");
    assert_int_equal(gpuconv_memory_convolve(memory, &good, -1, &error), GPUCONV_ERROR_ARGUMENT);
    assert_int_equal(gpuconv_memory_convolve(memory, NULL, 0, &error), GPUCONV_OK);
    row = good;
    row.signal.frames = row.response.frames = INT64_C(1) << 30;
    assert_int_equal(gpuconv_memory_convolve(memory, &row, 1, &error), GPUCONV_ERROR_UNSUPPORTED);
    assert_int_equal(gpuconv_memory_new(1025, &none, &error), GPUCONV_ERROR_ARGUMENT);
    assert_null(none);
    assert_int_equal(gpuconv_memory_response_new(x, 0, 1, &response, &error), GPUCONV_ERROR_ARGUMENT);
    assert_int_equal(gpuconv_memory_response_new(spoilt, 2, 1, &response, &error), GPUCONV_ERROR_FORMAT);
    assert_null(response);
    gpuconv_memory_response_free(NULL);
    gpuconv_memory_free(NULL);
    gpuconv_memory_free(memory);
}

/* A slot of a corpus gives the bytes of an engine for short and for long responses, also where the next response lies
 * in the memory of the one before. */
static void a_batch_slot_gives_the_bytes_of_the_engine(void **state) {
    (void)state;
    enum { FRAMES = 20000, MOST = 3000 };
    static const int64_t lengths[] = {30, MOST};
    const gc_batch_backend *batch = gc_backend_find(GPUCONV_BACKEND_CPU)->batch;
    oracle_random random = {.state = 12};
    guarded x = guarded_random(&random, 1, FRAMES);
    float *taps = calloc(MOST, sizeof *taps);
    gc_batch_slot *slot;
    CHECK(taps && batch->new_slot(0, (FRAMES + MOST) * 4, 1, &slot, NULL) == GPUCONV_OK, "no memory");
    memcpy(batch->in(slot), x.channel[0], FRAMES * sizeof(float));
    for (int i = 0; i < 2 * COUNT(lengths); i++) {
        guarded h;
        const int64_t count = lengths[i / 2], total = FRAMES + count - 1;
        gpuconv_ir *ir = harness_response(&random, 1, 1, count, &h);
        const gc_batch_samples mono = {.format = {GC_F32, 32}, .channels = 1};
        gc_batch_item item = {.ir = ir, .in = mono, .out = mono, .frames = FRAMES, .planes = taps};
        memcpy(taps, h.channel[0], (size_t)count * sizeof *taps);
        assert_true(batch->choose(slot, ir, FRAMES, &item.choice));
        assert_int_equal(batch->begin(slot, &item, 1, FRAMES * 4, total * 4, NULL), GPUCONV_OK);
        assert_int_equal(batch->finish(slot, &item, 1, NULL), GPUCONV_OK);
        gpuconv_plan *plan = harness_plan(ir, GPUCONV_ALGORITHM_AUTO, FRAMES, 1);
        guarded y = harness_convolve(plan, ir, &x);
        CHECK(memcmp(y.channel[0], batch->out(slot), (size_t)total * sizeof(float)) == 0, "response %d of %lld taps", i,
              (long long)count);
        gpuconv_plan_free(plan);
        gpuconv_ir_free(ir);
        guarded_free(&h);
        guarded_free(&y);
    }
    batch->free(slot);
    free(taps);
    guarded_free(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_match_the_oracle),
        cmocka_unit_test(few_frames_of_a_long_result_match_the_oracle),
        cmocka_unit_test(a_row_has_the_same_bytes_in_any_batch),
        cmocka_unit_test(the_engine_gives_the_same_bytes),
        cmocka_unit_test(a_spoilt_row_spoils_no_other),
        cmocka_unit_test(wrong_values_are_refused),
        cmocka_unit_test(a_batch_slot_gives_the_bytes_of_the_engine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
