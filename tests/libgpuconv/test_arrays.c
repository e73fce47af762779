/* Compares convolutions of arrays on the CPU with the double-precision oracle: all kinds of offsets, steps and lengths,
 * prepared responses, the same bytes in any batch and for any number of threads, and the same bytes as the engine. And
 * streamers with the whole convolution. */
#include "array_shapes.h"
#include "gpuconv_arrays.h"
#include "harness.h"

#include "libgpuconv/conv/cpu/rows.h"
#include "libgpuconv/core/memory.h"

#include <math.h>

static const double bound = -120;

static gpuconv_arrays *new_place(int threads) {
    gpuconv_arrays *place;
    gpuconv_error error;
    CHECK(gpuconv_arrays_new_cpu(threads, &place, &error) == GPUCONV_OK, "%s", error.message);
    return place;
}

static void run(gpuconv_arrays *place, const gpuconv_arrays_job *job) {
    gpuconv_error error;
    size_t bytes = 1;
    CHECK(gpuconv_arrays_workspace(place, job, &bytes, &error) == GPUCONV_OK && bytes == 0, "%s", error.message);
    CHECK(gpuconv_arrays_run(place, job, NULL, 0, NULL, &error) == GPUCONV_OK, "%s", error.message);
}

/* Returns a job of one row each. */
static gpuconv_arrays_job job_of(const guarded *x, const guarded *h, const guarded *y) {
    gpuconv_arrays_job job = gpuconv_arrays_job_default();
    job.signal = gpuconv_rows_of_floats(x->channel[0], 1, x->frames);
    job.response = gpuconv_rows_of_floats(h->channel[0], 1, h->frames);
    job.output = gpuconv_rows_of_floats(y->channel[0], 1, y->frames);
    return job;
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
static guarded run_row(gpuconv_arrays *place, const shape *s, const guarded *x, const guarded *h, bool prepare) {
    float *signal, *taps,
        *memories[] = {spread(x->channel[0], s->frames, s->step[0], &signal),
                       spread(h->channel[0], s->taps, s->step[1], &taps)};
    const int64_t distance = s->step[2] < 0 ? -s->step[2] : s->step[2], last = (s->output - 1) * distance;
    guarded wide = guarded_new(1, last + 1), y = guarded_new(1, s->output);
    float *output = wide.channel[0] + (s->step[2] < 0 ? last : 0);
    gpuconv_arrays_job job = gpuconv_arrays_job_default();
    job.signal = (gpuconv_rows){.data = signal, .rows = 1, .frames = s->frames, .step = s->step[0]};
    job.response = (gpuconv_rows){.data = taps, .rows = 1, .frames = s->taps, .step = s->step[1]};
    job.output = (gpuconv_rows){.data = output, .rows = 1, .frames = s->output, .step = s->step[2]};
    job.offset = s->offset;
    gpuconv_responses *prepared = NULL;
    if (prepare) {
        CHECK(!gpuconv_responses_new(place, &job.response, 1, NULL, &prepared, NULL), "prepare");
        job.prepared = prepared;
        job.response = (gpuconv_rows){0};
    }
    run(place, &job);
    CHECK(!prepare || gpuconv_responses_bytes(prepared) >= 4 * s->taps, "too few bytes");
    gpuconv_responses_free(prepared);
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

static void check_shape(gpuconv_arrays *place, const shape *s) {
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
        guarded y = run_row(place, s, &x, &h, prepare);
        CHECK(oracle_agrees(what, &y, s->output, want, s->output, bound), "%s", what);
        guarded_free(&y);
    }
    free(want);
    guarded_free(&x);
    guarded_free(&h);
}

static void rows_match_the_oracle(void **state) {
    (void)state;
    static const int steps[][3] = {{1, 1, 1}, {2, 3, 2}, {1, 1, -2}, {-1, -1, -1}, {-2, 1, 3}, {1, -1, 1}, {3, 2, 1}};
    gpuconv_arrays *place = new_place(2);
    for (int i = 0; i < COUNT(array_shapes); i++) {
        const array_shape *a = &array_shapes[i];
        const int *step = steps[i % COUNT(steps)];
        check_shape(place, &(shape){a->frames, a->taps, a->offset, a->output, {step[0], step[1], step[2]}});
    }
    gpuconv_arrays_free(place);
}

/* The gradient by the response: a long correlation of which few frames are needed. */
static void few_frames_of_a_long_result_match_the_oracle(void **state) {
    (void)state;
    static const shape shapes[] = {{21000, 20000, 19999, 1001, {1, -1, 1}},
                                   {50000, 50000, 49999, 32, {1, -1, 1}},
                                   {50000, 49000, 48000, 777, {-1, 1, 2}},
                                   {40000, 90000, 39999, 64, {1, -1, 1}}};
    gpuconv_arrays *place = new_place(2);
    gc_costs costs = gc_costs_of_cpu("");
    for (int i = 0; i < COUNT(shapes); i++) {
        gc_row last = {0};
        const shape *s = &shapes[i];
        gc_row row = {.signal = {.frames = s->frames, .step = 1},
                      .taps = {.frames = s->taps, .step = 1},
                      .output = {.frames = s->output, .step = 1},
                      .offset = s->offset};
        assert_int_equal(gc_row_plan(&costs, &row, &last, NULL), GPUCONV_OK);
        assert_int_equal(row.method, GC_ROW_SUM);
        check_shape(place, s);
    }
    gpuconv_arrays_free(place);
}

enum { ROWS = 9, SIGNAL = 300000, TAPS = 5000 };

/* Rows of different lengths, packed one behind the other, some of which share a response. */
typedef struct packed {
    guarded x, h, y;
    int64_t start[3][ROWS], length[3][ROWS];
    gpuconv_arrays_job job;
} packed;

static void make_rows(packed *p) {
    oracle_random random = {.state = 11};
    int64_t total[3] = {0};
    for (int i = 0; i < ROWS; i++) {
        p->length[0][i] = i == 4 ? SIGNAL : 1 + oracle_below(&random, 40000);
        p->length[1][i] = 1 + oracle_below(&random, i % 3 ? TAPS : 50);
        for (int k = 0; k < 2; k++) {
            p->start[k][i] = total[k];
            total[k] += p->length[k][i];
        }
        if (i % 4 == 1) {
            p->start[1][i] = p->start[1][i - 1];
            p->length[1][i] = p->length[1][i - 1];
        }
        p->start[2][i] = total[2];
        p->length[2][i] = p->length[0][i] + p->length[1][i] - 1;
        total[2] += p->length[2][i];
    }
    p->x = guarded_random(&random, 1, total[0]);
    p->h = guarded_random(&random, 1, total[1]);
    p->y = guarded_new(1, total[2]);
    p->job = job_of(&p->x, &p->h, &p->y);
    gpuconv_rows *array[] = {&p->job.signal, &p->job.response, &p->job.output};
    for (int k = 0; k < 3; k++) {
        array[k]->rows = ROWS;
        array[k]->frames = k == 0 ? SIGNAL : k == 1 ? TAPS : SIGNAL + TAPS - 1;
        array[k]->starts = p->start[k];
        array[k]->lengths = p->length[k];
    }
}

static void a_row_has_the_same_bytes_in_any_batch(void **state) {
    (void)state;
    packed p;
    make_rows(&p);
    gpuconv_arrays *alone = new_place(1);
    run(alone, &p.job);
    gpuconv_arrays_free(alone);
    for (int threads = 2; threads <= 5; threads += 3) {
        gpuconv_arrays *place = new_place(threads);
        for (int batch = 0; batch < 2; batch++) {
            guarded again = guarded_new(1, p.y.frames);
            gpuconv_arrays_job job = p.job;
            job.output.data = again.channel[0];
            if (batch)
                run(place, &job);
            for (int i = 0; i < ROWS && !batch; i++) {
                gpuconv_rows *array[] = {&job.signal, &job.response, &job.output};
                for (int k = 0; k < 3; k++) {
                    array[k]->rows = 1;
                    array[k]->starts = &p.start[k][i];
                    array[k]->lengths = &p.length[k][i];
                }
                run(place, &job);
            }
            CHECK(oracle_identical("rows", &again, p.y.frames, &p.y, p.y.frames), "%d threads", threads);
            guarded_free(&again);
        }
        gpuconv_arrays_free(place);
    }
    guarded_free(&p.x);
    guarded_free(&p.h);
    guarded_free(&p.y);
}

/* Runs `rows` short rows with `responses` responses on `threads` threads; rows of y have one frame between them.
 * lengths: of the rows of x, or NULL. */
static guarded run_short(const shape *s, const guarded *x, const guarded *h, const int64_t *lengths, int rows,
                         int responses, int threads) {
    guarded y = guarded_new(1, rows * (s->output + 1));
    gpuconv_arrays_job job = gpuconv_arrays_job_default();
    job.signal = gpuconv_rows_of_floats(x->channel[0], rows, s->frames);
    job.response = gpuconv_rows_of_floats(h->channel[0], responses, s->taps);
    job.output = gpuconv_rows_of_floats(y.channel[0], rows, s->output);
    job.output.stride++;
    job.signal.lengths = lengths;
    job.offset = s->offset;
    gpuconv_arrays *place = new_place(threads);
    run(place, &job);
    gpuconv_arrays_free(place);
    for (int i = 0; i < rows; i++) {
        float *between = y.channel[0] + i * job.output.stride + s->output;
        CHECK(isnan(*between), "row %d: written behind its end", i);
        *between = 0;
    }
    return y;
}

/* Rows whose transforms are computed together, with responses that are shared, or not. */
static void short_rows_match_the_oracle_and_themselves_alone(void **state) {
    (void)state;
    enum { SHORT_ROWS = 37 };
    static const shape shapes[] = {
        {40, 24, 0, 63, {1, 1, 1}},       {33, 70, 32, 40, {1, 1, 1}},     {128, 128, 0, 128, {1, 1, 1}},
        {128, 128, 0, 255, {1, 1, 1}},    {128, 128, 127, 128, {1, 1, 1}}, {200, 250, -20, 500, {1, 1, 1}},
        {300, 200, 199, 101, {1, 1, 1}},  {600, 1000, 3, 1400, {1, 1, 1}}, {1024, 1024, 0, 1024, {1, 1, 1}},
        {4096, 4000, 0, 8095, {1, 1, 1}},
    };
    static const int counts[] = {1, 5, SHORT_ROWS};
    int64_t lengths[SHORT_ROWS];
    for (int i = 0; i < 2 * COUNT(shapes) * COUNT(counts); i++) {
        const shape *s = &shapes[i / 2 / COUNT(counts)];
        const int responses = counts[i / 2 % COUNT(counts)];
        const bool ragged = i % 2;
        for (int row = 0; row < SHORT_ROWS; row++) /* three equal rows at a time */
            lengths[row] = ragged ? s->frames - row / 3 % 5 : s->frames;
        oracle_random random = {.state = (uint64_t)i};
        guarded x = guarded_random(&random, 1, SHORT_ROWS * s->frames);
        guarded h = guarded_random(&random, 1, SHORT_ROWS * s->taps);
        guarded y = run_short(s, &x, &h, ragged ? lengths : NULL, SHORT_ROWS, responses, 1);
        guarded again = run_short(s, &x, &h, ragged ? lengths : NULL, SHORT_ROWS, responses, 3);
        CHECK(oracle_identical("threads", &again, y.frames, &y, y.frames), "shape %d", i);
        guarded_free(&again);
        for (int row = 0; row<SHORT_ROWS; row += s->output> 1000 ? 18 : 1) {
            guarded one = {.channel = (float *[]){x.channel[0] + row * s->frames}};
            guarded taps = {.channel = (float *[]){h.channel[0] + row % responses * s->taps}};
            guarded alone = run_short(s, &one, &taps, &lengths[row], 1, 1, 1);
            const float *here = y.channel[0] + row * (s->output + 1);
            CHECK(memcmp(alone.channel[0], here, (size_t)s->output * sizeof *here) == 0, "shape %d, row %d", i, row);
            double *want = calloc((size_t)s->output + 1, sizeof *want);
            CHECK(want, "out of memory");
            for (int64_t n = 0; n < s->output; n++)
                want[n] = oracle_frame(one.channel[0], lengths[row], taps.channel[0], s->taps, n + s->offset);
            CHECK(oracle_agrees("short row", &alone, s->output + 1, want, s->output + 1, bound), "shape %d, row %d", i,
                  row);
            free(want);
            guarded_free(&alone);
        }
        guarded_free(&x);
        guarded_free(&h);
        guarded_free(&y);
    }
}

/* Prepared responses meet rows in another order in every job; the spectra that are kept for several rows must fit. */
static void prepared_short_responses_serve_every_group(void **state) {
    (void)state;
    enum { FRAMES = 100, SHORT_TAPS = 60, RESPONSES = 4, OUT = FRAMES + SHORT_TAPS - 1, GROUPED = 24 };
    static float y[2][GROUPED * OUT];
    oracle_random random = {.state = 8};
    guarded x = guarded_random(&random, 1, GROUPED * FRAMES), h = guarded_random(&random, 1, RESPONSES * SHORT_TAPS);
    gpuconv_arrays *place = new_place(1);
    gpuconv_arrays_job job = gpuconv_arrays_job_default();
    job.signal = gpuconv_rows_of_floats(x.channel[0], GROUPED, FRAMES);
    job.response = gpuconv_rows_of_floats(h.channel[0], RESPONSES, SHORT_TAPS);
    gpuconv_responses *kept;
    assert_int_equal(gpuconv_responses_new(place, &job.response, FRAMES, NULL, &kept, NULL), GPUCONV_OK);
    for (int64_t group = 1; group <= 6; group++) {
        job.group = group;
        for (int prepared = 0; prepared < 2; prepared++) {
            job.prepared = prepared ? kept : NULL;
            job.output = gpuconv_rows_of_floats(y[prepared], GROUPED, OUT);
            run(place, &job);
        }
        CHECK(memcmp(y[0], y[1], sizeof y[0]) == 0, "group %lld", (long long)group);
    }
    gpuconv_responses_free(kept);
    gpuconv_arrays_free(place);
    guarded_free(&x);
    guarded_free(&h);
}

static void the_engine_gives_the_same_bytes(void **state) {
    (void)state;
    static const int64_t shapes[][2] = {{8200, 60}, {50000, 30}, {50000, 500}, {200000, 8000}, {700000, 40000}};
    gpuconv_arrays *place = new_place(2);
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
        const gpuconv_arrays_job job = job_of(&x, &h, &y);
        run(place, &job);
        CHECK(oracle_identical("engine", &y, y.frames, &want, want.frames), "%d", i);
        gpuconv_plan_free(plan);
        gpuconv_ir_free(ir);
        guarded_free(&x);
        guarded_free(&h);
        guarded_free(&y);
        guarded_free(&want);
    }
    gpuconv_arrays_free(place);
}

static void a_spoilt_row_spoils_no_other(void **state) {
    (void)state;
    static float x[3][3000], h[3][200], y[3][3199];
    gpuconv_arrays *place = new_place(1);
    for (int i = 0; i < 3; i++) {
        x[i][5] = i == 1 ? NAN : 1;
        h[i][7] = 1;
    }
    gpuconv_arrays_job job = gpuconv_arrays_job_default();
    job.signal = gpuconv_rows_of_floats(x[0], 3, 3000);
    job.response = gpuconv_rows_of_floats(h[0], 3, 200);
    job.output = gpuconv_rows_of_floats(y[0], 3, 3199);
    run(place, &job);
    for (int i = 0; i < 3; i += 2)
        for (int n = 0; n < 3199; n++)
            CHECK(fabsf(y[i][n] - (n == 12 ? 1.0f : 0.0f)) < 1e-6f, "row %d, frame %d: %g", i, n, (double)y[i][n]);
    gpuconv_arrays_free(place);
}

static void wrong_values_are_refused(void **state) {
    (void)state;
    float x[4] = {1, 2, 3, 4}, y[8], spoilt[2] = {1, INFINITY};
    gpuconv_arrays *place = new_place(1), *none;
    gpuconv_responses *kept;
    gpuconv_error error;
    gpuconv_arrays_job job = gpuconv_arrays_job_default();
    job.signal = job.response = gpuconv_rows_of_floats(x, 1, 4);
    job.output = gpuconv_rows_of_floats(y, 1, 7);
    run(place, &job);
    assert_int_equal(gpuconv_arrays_device(place), -1);
    assert_int_equal(gpuconv_arrays_run(place, &job, NULL, 0, (struct CUstream_st *)(void *)x, &error),
                     GPUCONV_ERROR_ARGUMENT);
    job.signal.frames = job.response.frames = INT64_C(1) << 30;
    assert_int_equal(gpuconv_arrays_run(place, &job, NULL, 0, NULL, &error), GPUCONV_ERROR_UNSUPPORTED);
    assert_int_equal(gpuconv_responses_new(place, &job.response, 1, NULL, &kept, &error), GPUCONV_ERROR_ARGUMENT);
    assert_int_equal(gpuconv_arrays_new_cpu(1025, &none, &error), GPUCONV_ERROR_ARGUMENT);
    assert_null(none);
    const gpuconv_rows bad = gpuconv_rows_of_floats(spoilt, 1, 2);
    assert_int_equal(gpuconv_responses_new(place, &bad, 1, NULL, &kept, &error), GPUCONV_ERROR_FORMAT);
    assert_null(kept);
    gpuconv_responses_free(NULL);
    gpuconv_arrays_free(NULL);
    gpuconv_arrays_free(place);
}

/* Two rows of 10 frames with a response of 3 taps for each 4 of them. */
static void a_filter_that_changes_with_time_needs_a_response_for_each_block(void **state) {
    (void)state;
    static const struct {
        int64_t hop, responses;
        gpuconv_arrays_interpolation interpolation;
        const char *words; /* NULL: accepted */
    } jobs[] = {{4, 6, GPUCONV_ARRAYS_HOLD, NULL},
                {4, 3, GPUCONV_ARRAYS_LINEAR, NULL},
                {4, 5, GPUCONV_ARRAYS_HOLD, "multiple of the 3 blocks"},
                {4, 9, GPUCONV_ARRAYS_HOLD, "use at most 6"},
                {-1, 6, GPUCONV_ARRAYS_HOLD, "job.hop is -1"},
                {0, 2, GPUCONV_ARRAYS_LINEAR, "job.interpolation is 1"}};
    float x[20] = {0}, y[24];
    gpuconv_arrays *place = new_place(1);
    for (int i = 0; i < COUNT(jobs); i++) {
        gpuconv_arrays_job job = gpuconv_arrays_job_default();
        gpuconv_error error = {0};
        float *h =
            calloc((size_t)jobs[i].responses * 3, sizeof *h); /* no more, so that a sanitizer sees a read behind it */
        CHECK(h, "out of memory");
        job.signal = gpuconv_rows_of_floats(x, 2, 10);
        job.response = gpuconv_rows_of_floats(h, jobs[i].responses, 3);
        job.output = gpuconv_rows_of_floats(y, 2, 12);
        job.hop = jobs[i].hop;
        job.interpolation = jobs[i].interpolation;
        const gpuconv_status status = gpuconv_arrays_run(place, &job, NULL, 0, NULL, &error);
        CHECK(jobs[i].words ? status == GPUCONV_ERROR_ARGUMENT && strstr(error.message, jobs[i].words) : !status,
              "job %d: %s", i, error.message);
        gpuconv_arrays_plan *plan;
        CHECK(gpuconv_arrays_plan_new(place, &job, &plan, &error) == status, "job %d: the plan has another status", i);
        if (!status)
            CHECK(strstr(gpuconv_arrays_plan_reason(plan), "6 convolutions with 3"), "%s",
                  gpuconv_arrays_plan_reason(plan));
        gpuconv_arrays_plan_free(plan);
        free(h);
    }
    gpuconv_arrays_free(place);
}

/* Every row has one block and 63 that are empty: its first term is 64 times as long as the others are on average, and
 * the time of the job is estimated too long. The jobs of the threads must fit into their array all the same. */
static void rows_whose_first_term_is_the_longest_are_convolved(void **state) {
    (void)state;
    enum { MANY = 512, HOP = 64, BLOCKS = 64, LENGTH = 64, FRAMES = HOP * BLOCKS };
    float *x = calloc(MANY * FRAMES, sizeof *x), *y = calloc(MANY * FRAMES, sizeof *y), h[BLOCKS * LENGTH] = {0};
    int64_t lengths[MANY];
    gpuconv_arrays *place = new_place(2);
    gpuconv_arrays_job job = gpuconv_arrays_job_default();
    gpuconv_error error = {0};
    assert_true(x && y);
    for (int i = 0; i < MANY; i++) {
        lengths[i] = HOP;
        x[i * FRAMES + HOP - 1] = (float)(i + 1);
    }
    h[LENGTH - 1] = 0.5f;
    job.signal = gpuconv_rows_of_floats(x, MANY, FRAMES);
    job.signal.lengths = lengths;
    job.response = gpuconv_rows_of_floats(h, BLOCKS, LENGTH);
    job.output = gpuconv_rows_of_floats(y, MANY, FRAMES);
    job.hop = HOP;
    CHECK(!gpuconv_arrays_run(place, &job, NULL, 0, NULL, &error), "%s", error.message);
    for (int i = 0; i < MANY; i++)
        for (int n = 0; n < FRAMES; n++) {
            const float want = n == HOP + LENGTH - 2 ? 0.5f * (float)(i + 1) : 0;
            CHECK(fabsf(y[i * FRAMES + n] - want) < 1e-3f, "row %d, frame %d", i, n);
        }
    free(x);
    free(y);
    gpuconv_arrays_free(place);
}

/* A place of many threads divides rows into jobs. The transforms of a response that rows share belong to the call, not
 * to the rows. */
static void divided_rows_share_the_transforms_of_a_response(void **state) {
    (void)state;
    enum { MANY = 16, LENGTH = 300, FRAMES = 5000 };
    float *x = calloc(MANY * FRAMES, sizeof *x), *y = calloc(MANY * FRAMES, sizeof *y), h[2 * LENGTH] = {0};
    gpuconv_arrays *place = new_place(16);
    gpuconv_arrays_job job = gpuconv_arrays_job_default();
    gpuconv_error error = {0};
    assert_true(x && y);
    for (int i = 0; i < MANY; i++)
        x[i * FRAMES] = (float)(i + 1);
    h[LENGTH - 1] = 0.5f;
    h[LENGTH] = 0.25f;
    job.signal = gpuconv_rows_of_floats(x, MANY, FRAMES);
    job.response = gpuconv_rows_of_floats(h, 2, LENGTH);
    job.output = gpuconv_rows_of_floats(y, MANY, FRAMES);
    CHECK(!gpuconv_arrays_run(place, &job, NULL, 0, NULL, &error), "%s", error.message);
    for (int i = 0; i < MANY; i++)
        for (int n = 0; n < FRAMES; n++) {
            const float tap = i % 2 ? 0.25f : 0.5f;
            const float want = n == (i % 2 ? 0 : LENGTH - 1) ? tap * (float)(i + 1) : 0;
            CHECK(fabsf(y[i * FRAMES + n] - want) < 1e-4f, "row %d, frame %d", i, n);
        }
    free(x);
    free(y);
    gpuconv_arrays_free(place);
}

static void a_plan_names_its_algorithm(void **state) {
    (void)state;
    static const struct {
        int64_t frames, taps, output;
        const char *name;
    } cases[] = {{400, 300, 699, "overlap-save: "},
                 {1000, 10, 1009, "direct: "},
                 {100000, 3000, 102999, "overlap-save: "},
                 {50000, 50000, 32, "partitioned: "}};
    gpuconv_arrays *place = new_place(1);
    for (int i = 0; i < COUNT(cases); i++) {
        gpuconv_error error;
        gpuconv_arrays_plan *plan;
        gpuconv_arrays_job job = gpuconv_arrays_job_default();
        job.signal = gpuconv_rows_of_floats(NULL, 3, cases[i].frames);
        job.response = gpuconv_rows_of_floats(NULL, 3, cases[i].taps);
        job.output = gpuconv_rows_of_floats(NULL, 3, cases[i].output);
        CHECK(!gpuconv_arrays_plan_new(place, &job, &plan, &error), "%s", error.message);
        const char *text = gpuconv_arrays_plan_reason(plan);
        CHECK(strncmp(text, cases[i].name, strlen(cases[i].name)) == 0, "%s", text);
        gpuconv_arrays_plan_free(plan);
        job.response.rows = 4;
        CHECK(gpuconv_arrays_plan_new(place, &job, &plan, &error) == GPUCONV_ERROR_ARGUMENT && !plan, "accepted");
    }
    gpuconv_arrays_free(place);
}

/* A plan runs any arrays of its shapes with the bytes of gpuconv_arrays_run, and refuses other shapes and options. */
static void a_plan_runs_its_shapes_and_no_others(void **state) {
    (void)state;
    enum { LENGTH = 900, LONG = 40, COPIES = 3 };
    static float x[COPIES * LENGTH], other[COPIES * LENGTH], h[LONG], y[COPIES * LENGTH], want[COPIES * LENGTH];
    gpuconv_arrays *place = new_place(2);
    gpuconv_arrays_plan *plan;
    gpuconv_error error;
    oracle_random r = {5};
    oracle_fill(&r, x, COPIES * LENGTH);
    oracle_fill(&r, other, COPIES * LENGTH);
    oracle_fill(&r, h, LONG);
    gpuconv_arrays_job job = gpuconv_arrays_job_default();
    job.signal = gpuconv_rows_of_floats(x, COPIES, LENGTH);
    job.response = gpuconv_rows_of_floats(h, 1, LONG);
    job.output = gpuconv_rows_of_floats(y, COPIES, LENGTH);
    CHECK(!gpuconv_arrays_plan_new(place, &job, &plan, &error), "%s", error.message);
    assert_int_equal(gpuconv_arrays_plan_workspace(plan), 0);
    float *const signals[] = {x, other};
    for (int i = 0; i < 2; i++) {
        memset(y, 0xff, sizeof y);
        job.signal.data = signals[i];
        job.output.data = want;
        run(place, &job);
        job.output.data = y;
        CHECK(!gpuconv_arrays_plan_run(plan, &job, NULL, 0, NULL, &error), "%s", error.message);
        assert_memory_equal(y, want, sizeof y);
    }
    job.offset = 1;
    CHECK(gpuconv_arrays_plan_run(plan, &job, NULL, 0, NULL, &error) == GPUCONV_ERROR_ARGUMENT &&
              strstr(error.message, "make a plan"),
          "another offset is accepted");
    job.offset = 0;
    job.signal.rows = job.output.rows = COPIES - 1;
    CHECK(gpuconv_arrays_plan_run(plan, &job, NULL, 0, NULL, &error) == GPUCONV_ERROR_ARGUMENT,
          "other rows are accepted");
    gpuconv_arrays_plan_free(plan);
    gpuconv_arrays_free(place);
}

/* A streamer gives the frames of the whole convolution, in place too, and begins anew after a reset. */
static void a_streamer_gives_the_whole_convolution(void **state) {
    (void)state;
    enum { CHANNELS = 3, BLOCKS = 12 };
    static const int64_t shapes[][2] = {{64, 1}, {64, 1000}, {1000, 700}, {37, 5000}};
    gpuconv_arrays *place = new_place(2);
    gpuconv_error error;
    for (int i = 0; i < 2 * COUNT(shapes); i++) {
        const int64_t block = shapes[i / 2][0], taps = shapes[i / 2][1], frames = BLOCKS * block;
        oracle_random random = {.state = 3};
        guarded x = guarded_random(&random, CHANNELS, frames), y = guarded_new(CHANNELS, frames);
        guarded h = guarded_random(&random, 1, 2 * taps); /* two responses; channel 2 has the first one */
        gpuconv_rows response = gpuconv_rows_of_floats(h.channel[0], 2, taps);
        float *memory = calloc((size_t)(CHANNELS * block), sizeof *memory);
        gpuconv_streamer *streamer;
        CHECK(memory && !gpuconv_streamer_new(place, &response, CHANNELS, block, NULL, &streamer, &error), "%s",
              error.message);
        const gpuconv_rows rows =
            i % 2 ? gpuconv_rows_of_floats(memory, CHANNELS, block)
                  : (gpuconv_rows){.data = memory, .rows = CHANNELS, .frames = block, .stride = 1, .step = CHANNELS};
        for (int64_t b = -2; b < BLOCKS; b++) {
            if (b == 0)
                CHECK(!gpuconv_streamer_reset(streamer, NULL, &error), "%s", error.message);
            for (int64_t n = 0; n < CHANNELS * block; n++)
                memory[n / block * rows.stride + n % block * rows.step] =
                    x.channel[n / block][gc_max(b, 0) * block + n % block];
            CHECK(!gpuconv_streamer_process(streamer, &rows, &rows, NULL, &error), "%s", error.message);
            for (int64_t n = 0; n < CHANNELS * block && b >= 0; n++)
                y.channel[n / block][b * block + n % block] = memory[n / block * rows.stride + n % block * rows.step];
        }
        double *want = calloc((size_t)(CHANNELS * frames), sizeof *want);
        CHECK(want, "out of memory");
        for (int64_t n = 0; n < CHANNELS * frames; n++)
            want[n] =
                oracle_frame(x.channel[n / frames], frames, h.channel[0] + n / frames % 2 * taps, taps, n % frames);
        CHECK(oracle_agrees("streamer", &y, frames, want, frames, bound), "block %lld, %lld taps", (long long)block,
              (long long)taps);
        response.frames--;
        CHECK(gpuconv_streamer_process(streamer, &response, &rows, NULL, &error) == GPUCONV_ERROR_ARGUMENT, "accepted");
        gpuconv_streamer_free(streamer);
        free(memory);
        free(want);
        guarded_free(&x);
        guarded_free(&h);
        guarded_free(&y);
    }
    gpuconv_arrays_free(place);
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
    memcpy(slot->in, x.channel[0], FRAMES * sizeof(float));
    for (int i = 0; i < 2 * COUNT(lengths); i++) {
        guarded h;
        const int64_t count = lengths[i / 2], total = FRAMES + count - 1;
        gpuconv_ir *ir = harness_response(&random, 1, 1, count, &h);
        const gc_batch_samples mono = {.format = {GC_F32, 32}, .channels = 1};
        gc_batch_item item = {.ir = ir, .in = mono, .out = mono, .frames = FRAMES, .planes = taps};
        memcpy(taps, h.channel[0], (size_t)count * sizeof *taps);
        assert_true(batch->choose(slot, ir, FRAMES, &item.choice));
        assert_int_equal(batch->begin(slot, &item, 1, FRAMES * 4, total * 4, NULL), GPUCONV_OK);
        gpuconv_plan *plan = harness_plan(ir, GPUCONV_ALGORITHM_AUTO, FRAMES, 1);
        guarded y = harness_convolve(plan, ir, &x);
        CHECK(memcmp(y.channel[0], slot->out, (size_t)total * sizeof(float)) == 0, "response %d of %lld taps", i,
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

/* Sequences in two channels of 1000 frames, two of them longer than the last bound, some without a frame, and offsets
 * that leave the channel or go back. */
static void sequences_are_sorted_into_classes_whatever_the_offsets(void **state) {
    (void)state;
    enum {
        SEQUENCES = 8,
        CHANNELS = 2,
        FRAMES = 1000,
        OWN_TAPS = 7,
        COUNT_OF_ROWS = SEQUENCES * CHANNELS,
        EACH = 4 * COUNT_OF_ROWS
    };
    static const int64_t offsets[][SEQUENCES + 1] = {
        {0, 100, 100, 130, 330, 400, 401, 800, FRAMES}, {-5, 300, 200, 1 << 30, -7, 900, 12, 0, 3}, {0}};
    static const int64_t start[][SEQUENCES] = {{0, 100, 100, 130, 330, 400, 401, 800}, {0, 300, 300, 1000}, {0}};
    static const int64_t frames[][SEQUENCES] = {
        {100, 0, 30, 200, 70, 1, 250, 200}, {250, 0, 250}, {0, 0, 0, 0, 0, 0, 0, 250}};
    static const int64_t bounds[] = {64, 128, 250};
    gpuconv_arrays *arrays;
    CHECK(!gpuconv_arrays_new_cpu(1, &arrays, NULL), "no place");
    for (int k = 0; k < 3; k++) {
        float samples[CHANNELS][FRAMES];
        int64_t table[3][EACH];
        for (int i = 0; i < CHANNELS * FRAMES; i++)
            samples[i / FRAMES][i % FRAMES] = 1;
        const gpuconv_rows output = gpuconv_rows_of_floats(samples[0], CHANNELS, FRAMES);
        const gpuconv_sequences s = {offsets[k], SEQUENCES, CHANNELS, FRAMES, bounds, 3, CHANNELS, OWN_TAPS, &output};
        CHECK(!gpuconv_sequences_sort(arrays, &s, table[0], NULL, NULL), "not sorted");
        for (int c = 0; c < 3; c++) {
            const int64_t *starts = table[c], *lengths = starts + COUNT_OF_ROWS, *taps = lengths + COUNT_OF_ROWS;
            int row = 0;
            for (int i = 0; i < SEQUENCES; i++)
                for (int m = 0; m < CHANNELS && frames[k][i] > (c ? bounds[c - 1] : 0) && frames[k][i] <= bounds[c];
                     m++)
                    CHECK(starts[row] == start[k][i] + m * FRAMES && lengths[row] == frames[k][i] &&
                              taps[row] == (i * CHANNELS + m) * OWN_TAPS && taps[COUNT_OF_ROWS + row++] == OWN_TAPS,
                          "offsets %d, class %d: sequence %d is wrong", k, c, i);
            for (; row < COUNT_OF_ROWS; row++)
                CHECK(lengths[row] == -1 && taps[COUNT_OF_ROWS + row] == -1 && starts[row] == 0 && taps[row] == 0,
                      "offsets %d, class %d: row %d exists", k, c, row);
        }
        for (int m = 0; m < CHANNELS; m++) {
            float kept[FRAMES] = {0};
            for (int i = 0; i < SEQUENCES; i++)
                for (int64_t n = 0; n < frames[k][i]; n++)
                    kept[start[k][i] + n] = 1;
            CHECK(memcmp(kept, samples[m], sizeof kept) == 0, "offsets %d: frames without a row are not cleared", k);
        }
    }
    const gpuconv_rows nowhere = gpuconv_rows_of_floats(NULL, CHANNELS, FRAMES);
    const gpuconv_sequences s = {offsets[0], SEQUENCES, CHANNELS, FRAMES, bounds, 3, 0, 0, &nowhere};
    int64_t unused[3 * EACH];
    CHECK(gpuconv_sequences_sort(arrays, &s, unused, NULL, NULL) == GPUCONV_ERROR_ARGUMENT, "an output without data");
    gpuconv_arrays_free(arrays);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_match_the_oracle),
        cmocka_unit_test(few_frames_of_a_long_result_match_the_oracle),
        cmocka_unit_test(a_row_has_the_same_bytes_in_any_batch),
        cmocka_unit_test(short_rows_match_the_oracle_and_themselves_alone),
        cmocka_unit_test(prepared_short_responses_serve_every_group),
        cmocka_unit_test(the_engine_gives_the_same_bytes),
        cmocka_unit_test(a_spoilt_row_spoils_no_other),
        cmocka_unit_test(wrong_values_are_refused),
        cmocka_unit_test(a_filter_that_changes_with_time_needs_a_response_for_each_block),
        cmocka_unit_test(rows_whose_first_term_is_the_longest_are_convolved),
        cmocka_unit_test(divided_rows_share_the_transforms_of_a_response),
        cmocka_unit_test(a_plan_names_its_algorithm),
        cmocka_unit_test(a_plan_runs_its_shapes_and_no_others),
        cmocka_unit_test(sequences_are_sorted_into_classes_whatever_the_offsets),
        cmocka_unit_test(a_streamer_gives_the_whole_convolution),
        cmocka_unit_test(a_batch_slot_gives_the_bytes_of_the_engine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
