/* Compares jobs on the CPU with their definition in double precision: random shapes, types, steps, ragged and packed
 * rows, gains, groups, gates and accumulation, of the three operations, with fresh, prepared and routed responses. And
 * half precision with the compiler's. */
#include "gpuconv_arrays.h"
#include "harness.h"

#include "libgpuconv/conv/backend.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/half.h"

#include <math.h>

enum { MARGIN = 8 }; /* elements before and behind an array */

static gpuconv_arrays *place;

/* ---- Arrays ------------------------------------------------------------------------------------------------------ */

typedef enum kind { PLAIN, INTERLEAVED, RAGGED, PACKED, KINDS } kind;

/* Rows in memory, with NaN between and around them, and their values. */
typedef struct array {
    gpuconv_rows rows;
    double *value; /* rows x frames; 0 behind a row's length */
    int64_t *start, *length;
    unsigned char *memory, *before;
    int64_t bytes;
} array;

/* Returns the value of a half that is not infinite, by its definition. */
static double half_value(uint16_t half) {
    const int exponent = half >> 10 & 31, fraction = half & 1023;
    const double value = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    return half & 0x8000 ? -value : value;
}

/* Writes a value that the type represents exactly, a multiple of 1/128 from -1 to 1 if it is a half. */
static void encode(gpuconv_sample_type type, double value, unsigned char *to) {
    const float single = (float)value;
    int exponent = 0;
    const double fraction = frexp(fabs(value), &exponent);
    const int half = value == 0 ? 0 : (value < 0 ? 0x8000 : 0) + (exponent + 14) * 1024 + (int)(2048 * fraction) - 1024;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    const uint16_t two = type == GPUCONV_SAMPLE_F16 ? (uint16_t)half : (uint16_t)(bits >> 16);
    if (type == GPUCONV_SAMPLE_F32)
        memcpy(to, &single, sizeof single);
    else
        memcpy(to, &two, sizeof two);
}

static double decode(gpuconv_sample_type type, const unsigned char *from) {
    float single = 0;
    uint16_t two = 0;
    memcpy(&two, from, sizeof two);
    const uint32_t bits = (uint32_t)two << 16;
    if (type == GPUCONV_SAMPLE_F16)
        return (two & 0x7c00) == 0x7c00 ? (double)NAN : half_value(two);
    memcpy(&single, type == GPUCONV_SAMPLE_F32 ? from : (const unsigned char *)&bits, sizeof single);
    return (double)single;
}

static unsigned char *address(const array *a, unsigned char *memory, int64_t row, int64_t n) {
    const int64_t each = a->rows.type == GPUCONV_SAMPLE_F32 ? 4 : 2;
    return memory + ((unsigned char *)a->rows.data - a->memory) + (a->start[row] + n * a->rows.step) * each;
}

static void *checked(size_t count, size_t each) {
    void *made = calloc(count, each);
    CHECK(made, "out of memory");
    return made;
}

/* Makes an array of random values that its type represents exactly. */
static array array_new(oracle_random *random, int64_t rows, int64_t frames, bool written) {
    static const int64_t steps[] = {1, 1, 2, -1, -3};
    const gpuconv_sample_type type = (gpuconv_sample_type)(oracle_below(random, 2) ? 0 : oracle_below(random, 3));
    const kind k = (kind)oracle_below(random, KINDS);
    const int64_t each = type == GPUCONV_SAMPLE_F32 ? 4 : 2;
    array a = {.rows = {.type = type, .rows = rows, .frames = frames, .step = steps[oracle_below(random, 5)]}};
    const int64_t distance = llabs(a.rows.step);
    a.rows.stride = (frames - 1) * distance + 1 + oracle_below(random, 5);
    if (k == INTERLEAVED) {
        a.rows.stride = 1;
        a.rows.step = rows;
    } else if (!written && oracle_below(random, 6) == 0) {
        a.rows.step = 0;
    }
    a.start = checked((size_t)rows, sizeof *a.start);
    a.length = checked((size_t)rows, sizeof *a.length);
    a.value = checked((size_t)(rows * frames), sizeof *a.value);
    const int64_t elements = 2 * MARGIN + rows * (frames * distance + 5);
    a.bytes = elements * each;
    a.memory = checked((size_t)a.bytes, 1);
    a.before = checked((size_t)a.bytes, 1);
    memset(a.memory, 0xff, (size_t)a.bytes);
    a.rows.data = a.memory + (MARGIN + (a.rows.step < 0 && k != PACKED ? (frames - 1) * distance : 0)) * each;
    int64_t packed = 0;
    for (int64_t i = 0; i < rows; i++) {
        a.length[i] = k == RAGGED || k == PACKED ? oracle_below(random, frames + 1) : frames;
        a.start[i] = k != PACKED       ? i * a.rows.stride
                     : a.rows.step < 0 ? packed + gc_max(a.length[i] - 1, 0) * distance
                                       : packed;
        packed += gc_max(a.length[i], 1) * gc_max(distance, 1);
        for (int64_t n = 0; n < a.length[i]; n++) {
            const double value = type == GPUCONV_SAMPLE_F32 ? (double)oracle_uniform(random)
                                                            : (double)(oracle_below(random, 257) - 128) / 128;
            a.value[i * frames + n] = a.rows.step || n == 0 ? value : a.value[i * frames];
            encode(type, a.value[i * frames + n], address(&a, a.memory, i, n));
        }
    }
    a.rows.lengths = k == RAGGED || k == PACKED ? a.length : NULL;
    a.rows.starts = k == PACKED ? a.start : NULL;
    memcpy(a.before, a.memory, (size_t)a.bytes);
    return a;
}

static void array_free(array *a) {
    free(a->value);
    free(a->start);
    free(a->length);
    free(a->memory);
    free(a->before);
}

/* ---- Jobs -------------------------------------------------------------------------------------------------------- */

typedef struct trial {
    oracle_random random;
    gpuconv_arrays_job job;
    array signal, response, output;
    array pre, post; /* those that the job points to */
    float *gain, *skip;
    gpuconv_ir *ir; /* the routes, or NULL */
    int64_t least;  /* the longest rows and responses are longer */
    double *want;   /* of the array that is written */
} trial;

static array *written(trial *t) {
    return t->job.operation == GPUCONV_ARRAYS_CONVOLVE          ? &t->output
           : t->job.operation == GPUCONV_ARRAYS_GRADIENT_SIGNAL ? &t->signal
                                                                : &t->response;
}

/* Returns the factor of frame n of a row. */
static double gate(const gpuconv_rows *given, const array *a, int64_t row, int64_t n) {
    return given ? a->value[row * a->rows.frames + n] : 1;
}

/* Adds the products of three rows to what is wanted. h: the taps of the row of the response. */
static void add_rows(trial *t, int64_t s, int64_t r, int64_t o, const double *h, int64_t taps) {
    const int64_t frames = t->signal.rows.frames, out = t->output.rows.frames;
    const double gain = t->gain ? (double)t->gain[s] : 1;
    const double *x = t->signal.value + s * frames, *g = t->output.value + o * out;
    for (int64_t n = 0; n < t->output.length[o]; n++)
        for (int64_t k = 0; k < taps; k++) {
            const int64_t m = n + t->job.offset - k;
            if (m < 0 || m >= t->signal.length[s])
                continue;
            const double both =
                gain * gate(t->job.pre, &t->pre, s, m) * gate(t->job.post, &t->post, o, n); /* of each product */
            if (t->job.operation == GPUCONV_ARRAYS_CONVOLVE)
                t->want[o * out + n] += both * h[k] * x[m];
            else if (t->job.operation == GPUCONV_ARRAYS_GRADIENT_SIGNAL)
                t->want[s * frames + m] += both * h[k] * g[n];
            else
                t->want[r * t->response.rows.frames + k] += both * x[m] * g[n];
        }
    for (int64_t n = 0; t->skip && n < gc_min(t->output.length[o], t->signal.length[s]); n++) {
        const double factor = (double)t->skip[s] * gate(t->job.post, &t->post, o, n);
        if (t->job.operation == GPUCONV_ARRAYS_CONVOLVE)
            t->want[o * out + n] += factor * x[n];
        else if (t->job.operation == GPUCONV_ARRAYS_GRADIENT_SIGNAL)
            t->want[s * frames + n] += factor * g[n];
    }
}

/* Computes what is wanted, by the definition. */
static void define(trial *t) {
    const array *w = written(t);
    const int64_t taps = t->response.rows.frames;
    t->want = checked((size_t)(w->rows.rows * w->rows.frames), sizeof *t->want);
    if (t->job.accumulate)
        memcpy(t->want, w->value, (size_t)(w->rows.rows * w->rows.frames) * sizeof *t->want);
    if (!t->ir) {
        for (int64_t i = 0; i < t->signal.rows.rows; i++) {
            const int64_t r = i / t->job.group % t->response.rows.rows;
            add_rows(t, i, r, i, t->response.value + r * taps, t->response.length[r]);
        }
        return;
    }
    const int inputs = gpuconv_ir_inputs(t->ir), outputs = gpuconv_ir_outputs(t->ir);
    double *h = checked((size_t)taps, sizeof *h);
    for (int64_t b = 0; b < t->signal.rows.rows / inputs; b++)
        for (int r = 0; r < gpuconv_ir_routes(t->ir); r++) {
            const float *channel = gc_ir_plane(t->ir, t->ir->route[r].plane);
            for (int64_t k = 0; k < taps; k++)
                h[k] = (double)channel[k];
            const bool gradient = t->job.operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE;
            add_rows(t, b * inputs + t->ir->route[r].input, r, b * outputs + t->ir->route[r].output, h,
                     gradient ? t->response.length[r] : taps);
        }
    free(h);
}

/* Compares what was written, and checks that nothing else was. The bounds leave room for jobs of which only the quiet
 * end is written. */
static void compare(trial *t, const char *what) {
    array *w = written(t);
    const int64_t rows = w->rows.rows, frames = w->rows.frames;
    const double bound = w->rows.type == GPUCONV_SAMPLE_F32 ? -100 : w->rows.type == GPUCONV_SAMPLE_F16 ? -60 : -44;
    double error = 0, power = 0;
    for (int64_t i = 0; i < rows; i++) {
        const int64_t end = w->rows.starts || t->job.accumulate ? w->length[i] : frames;
        for (int64_t n = 0; n < end; n++) {
            const double want = n < w->length[i] ? t->want[i * frames + n] : 0;
            const double got = decode(w->rows.type, address(w, w->memory, i, n));
            CHECK(isfinite(got), "%s: row %lld, frame %lld is %g", what, (long long)i, (long long)n, got);
            CHECK(n < w->length[i] || got == 0, "%s: row %lld is not cleared", what, (long long)i);
            error += (got - want) * (got - want);
            power += want * want;
            memcpy(address(w, w->memory, i, n), address(w, w->before, i, n),
                   w->rows.type == GPUCONV_SAMPLE_F32 ? 4 : 2);
        }
    }
    CHECK(memcmp(w->memory, w->before, (size_t)w->bytes) == 0, "%s: wrote outside of its rows", what);
    const double decibels = 10 * log10(error / (power > 0 ? power : (double)(rows * frames)));
    CHECK(error == 0 || decibels <= bound, "%s: %.1f dB, at most %.1f", what, decibels, bound);
}

static void trial_run(trial *t, const char *what) {
    gpuconv_error error;
    array *w = written(t);
    define(t);
    if (!t->job.accumulate) {
        memset(w->memory, 0xff, (size_t)w->bytes);
        memset(w->before, 0xff, (size_t)w->bytes);
    }
    t->job.signal = t->signal.rows;
    t->job.output = t->output.rows;
    t->job.response = t->response.rows;
    CHECK(!gpuconv_arrays_run(place, &t->job, NULL, 0, NULL, &error), "%s: %s", what, error.message);
    compare(t, what);
    free(t->want);
}

static void trial_free(trial *t) {
    array_free(&t->signal);
    array_free(&t->response);
    array_free(&t->output);
    array_free(&t->pre);
    array_free(&t->post);
    free(t->gain);
    free(t->skip);
}

/* Makes factors for the samples of an array: those have a step of 1 and no lengths. */
static const gpuconv_rows *make_gate(oracle_random *random, const array *of, array *made) {
    for (*made = (array){.memory = NULL}; !made->memory || made->rows.step != 1 || made->rows.lengths;) {
        array_free(made);
        *made = array_new(random, of->rows.rows, of->rows.frames, true);
    }
    return &made->rows;
}

/* Makes the options of a trial with these numbers of rows. */
static void trial_fill(trial *t, int64_t signals, int64_t responses, int64_t outputs) {
    oracle_random *r = &t->random;
    const bool many = signals > 100;
    const int64_t most_frames = many ? 150 : oracle_below(r, 3) ? 60 : 3000;
    const int64_t most_taps = many ? 120 : oracle_below(r, 3) ? 40 : 2500;
    const int64_t frames = t->least + 1 + oracle_below(r, most_frames),
                  taps = t->least + 1 + oracle_below(r, most_taps);
    const int64_t total = frames + taps - 1;
    t->signal = array_new(r, signals, frames, t->job.operation == GPUCONV_ARRAYS_GRADIENT_SIGNAL);
    t->response = array_new(r, responses, taps, t->job.operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE);
    t->output = array_new(r, outputs, 1 + oracle_below(r, total + 5), t->job.operation == GPUCONV_ARRAYS_CONVOLVE);
    t->job.offset = oracle_below(r, total) - oracle_below(r, 2) * oracle_below(r, 20);
    t->job.accumulate = oracle_below(r, 3) == 0;
    if (oracle_below(r, 2)) {
        t->job.gain = t->gain = checked((size_t)signals, sizeof *t->gain);
        for (int64_t i = 0; i < signals; i++)
            t->gain[i] = oracle_uniform(r);
    }
    const int64_t gates = oracle_below(r, 16);
    if (gates & 1)
        t->job.pre = make_gate(r, &t->signal, &t->pre);
    if (gates & 2)
        t->job.post = make_gate(r, &t->output, &t->post);
    if (gates & 4) {
        t->job.skip = t->skip = checked((size_t)signals, sizeof *t->skip);
        for (int64_t i = 0; i < signals; i++)
            t->skip[i] = oracle_uniform(r);
    }
}

static void random_jobs_follow_their_definition(void **state) {
    (void)state;
    for (int i = 0; i < 600 / HARNESS_FEWER; i++) {
        char what[64];
        trial t = {.random = {.state = (uint64_t)i}, .job = gpuconv_arrays_job_default()};
        const int64_t rows = 1 + oracle_below(&t.random, 6), group = 1 + oracle_below(&t.random, 3);
        t.job.operation = (gpuconv_arrays_operation)(i % 3);
        t.job.group = group;
        trial_fill(&t, rows, 1 + oracle_below(&t.random, (rows + gc_min(group, rows) - 1) / gc_min(group, rows)), rows);
        snprintf(what, sizeof what, "job %d", i);
        gpuconv_responses *kept = NULL;
        if (oracle_below(&t.random, 2) && t.job.operation != GPUCONV_ARRAYS_GRADIENT_RESPONSE) {
            gpuconv_error error;
            CHECK(!gpuconv_responses_new(place, &t.response.rows, 1, NULL, &kept, &error), "%s", error.message);
            t.job.prepared = kept;
        }
        trial_run(&t, what);
        gpuconv_responses_free(kept);
        trial_free(&t);
    }
}

/* Gradients that are longer than convolutions with one transform. */
static void long_gradients_follow_their_definition(void **state) {
    (void)state;
    for (int i = 0; i < 12 / HARNESS_FEWER; i++) {
        char what[64];
        trial t = {.random = {.state = (uint64_t)(3000 + i)}, .job = gpuconv_arrays_job_default(), .least = 4000};
        const int64_t rows = 1 + oracle_below(&t.random, 4), responses = 1 + oracle_below(&t.random, rows);
        t.job.operation = i % 2 ? GPUCONV_ARRAYS_GRADIENT_RESPONSE : GPUCONV_ARRAYS_GRADIENT_SIGNAL;
        trial_fill(&t, rows, responses, rows);
        snprintf(what, sizeof what, "long job %d", i);
        trial_run(&t, what);
        trial_free(&t);
    }
}

/* Gradients by responses that very many rows share, whose products are added up in runs. */
static void many_products_follow_their_definition(void **state) {
    (void)state;
    for (int i = 0; i < 40 / HARNESS_FEWER; i++) {
        char what[64];
        trial t = {.random = {.state = (uint64_t)(2000 + i)}, .job = gpuconv_arrays_job_default()};
        const int64_t group = 1 + oracle_below(&t.random, 3), responses = 1 + oracle_below(&t.random, 5);
        const int64_t uneven = i % 3 ? 0 : oracle_below(&t.random, 7);
        const int64_t rows =
            group * responses * ((600 + i % 2 * 5000) / (group * responses) + oracle_below(&t.random, 100)) + uneven;
        t.job.operation = GPUCONV_ARRAYS_GRADIENT_RESPONSE;
        t.job.group = group;
        trial_fill(&t, rows, responses, rows);
        snprintf(what, sizeof what, "%lld rows, job %d", (long long)rows, i);
        trial_run(&t, what);
        trial_free(&t);
    }
}

/* GRADIENT_BOTH gives the bytes of the two jobs that gc_job_split makes of it, by a plan and without one. `accumulate`
 * adds to the gradient by the response and overwrites the other one, here NaN. */
static void both_gradients_are_those_of_their_jobs(void **state) {
    (void)state;
    oracle_random random = {.state = 77};
    for (int i = 0; i < 40 / HARNESS_FEWER; i++) {
        const int64_t rows = 1 + oracle_below(&random, 6), responses = 1 + oracle_below(&random, rows);
        const int64_t frames = 1 + oracle_below(&random, 3000), taps = 1 + oracle_below(&random, 900);
        float *x = checked((size_t)(rows * frames), sizeof *x), *h = checked((size_t)(responses * taps), sizeof *h);
        float *g = checked((size_t)(rows * frames), sizeof *g), *made[4];
        for (int k = 0; k < 4; k++)
            made[k] = checked((size_t)(k % 2 ? responses * taps : rows * frames), sizeof **made);
        oracle_fill(&random, x, rows * frames);
        oracle_fill(&random, h, responses * taps);
        oracle_fill(&random, g, rows * frames);
        gpuconv_arrays_job both = gpuconv_arrays_job_default(), part[2];
        gpuconv_arrays_plan *plan = NULL;
        gpuconv_error error = {0};
        both.operation = GPUCONV_ARRAYS_GRADIENT_BOTH;
        both.signal = gpuconv_rows_of_floats(x, rows, frames);
        both.response = gpuconv_rows_of_floats(h, responses, taps);
        both.output = gpuconv_rows_of_floats(g, rows, frames);
        both.signal_gradient = gpuconv_rows_of_floats(made[2], rows, frames);
        both.response_gradient = gpuconv_rows_of_floats(made[3], responses, taps);
        both.offset = oracle_below(&random, 20) - 10;
        both.accumulate = i % 4 > 1;
        memset(made[0], 0xff, (size_t)(rows * frames) * sizeof **made);
        oracle_fill(&random, made[1], responses * taps);
        memcpy(made[3], made[1], (size_t)(responses * taps) * sizeof **made);
        gc_job_split(&both, part);
        for (int k = 0; k < 2; k++)
            CHECK(!gpuconv_arrays_run(place, &part[k], NULL, 0, NULL, &error), "%s", error.message);
        both.signal_gradient.data = made[0];
        both.response_gradient.data = made[1];
        if (i % 2) {
            CHECK(!gpuconv_arrays_plan_new(place, &both, &plan, &error), "%s", error.message);
            CHECK(strstr(gpuconv_arrays_plan_reason(plan), "by the response: "), "%s",
                  gpuconv_arrays_plan_reason(plan));
            CHECK(!gpuconv_arrays_plan_run(plan, &both, NULL, 0, NULL, &error), "%s", error.message);
            gpuconv_arrays_plan_free(plan);
        } else {
            CHECK(!gpuconv_arrays_run(place, &both, NULL, 0, NULL, &error), "%s", error.message);
        }
        CHECK(!memcmp(made[0], made[2], (size_t)(rows * frames) * sizeof **made), "%d: by the signal", i);
        CHECK(!memcmp(made[1], made[3], (size_t)(responses * taps) * sizeof **made), "%d: by the response", i);
        for (int k = 0; k < 4; k++)
            free(made[k]);
        free(x);
        free(h);
        free(g);
    }
}

/* A matrix in which one output has several routes, one input none, and two routes a channel in common. */
static gpuconv_ir *routed(oracle_random *random, int64_t taps) {
    static const gc_route routes[] = {{0, 0, 0}, {2, 0, 1}, {3, 0, 2}, {3, 1, 0}, {0, 3, 2}, {2, 3, 1}};
    gpuconv_ir *ir = gc_ir_blank(4, 4, 3, COUNT(routes), taps, 48000);
    CHECK(ir, "out of memory");
    memcpy(ir->route, routes, sizeof routes);
    oracle_fill(random, ir->taps, 3 * taps);
    return ir;
}

static void routed_jobs_follow_their_definition(void **state) {
    (void)state;
    for (int i = 0; i < 150 / HARNESS_FEWER; i++) {
        char what[64];
        trial t = {.random = {.state = (uint64_t)(1000 + i)}, .job = gpuconv_arrays_job_default()};
        const int64_t batch = 1 + oracle_below(&t.random, 3);
        gpuconv_error error;
        gpuconv_responses *kept;
        t.job.operation = (gpuconv_arrays_operation)(i % 3);
        trial_fill(&t, 4 * batch, 6, 4 * batch);
        free(t.skip); /* not with routes */
        t.job.skip = t.skip = NULL;
        t.ir = routed(&t.random, t.response.rows.frames);
        CHECK(!gpuconv_responses_route(place, t.ir, 1, &kept, &error), "%s", error.message);
        t.job.prepared = kept;
        snprintf(what, sizeof what, "routed job %d", i);
        trial_run(&t, what);
        CHECK(gpuconv_responses_update(place, kept, &t.response.rows, NULL, &error) == GPUCONV_ERROR_ARGUMENT,
              "routes were replaced");
        gpuconv_responses_free(kept);
        gpuconv_ir_free(t.ir);
        trial_free(&t);
    }
}

/* Returns the sum of the products of two arrays. */
static double inner(const float *a, const float *b, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* The loss sum of g y is linear in x and in h: its change by a step of one sample is the gradient there. The
 * convolution and the gradient by the signal share prepared responses. */
static void gradients_are_finite_differences(void **state) {
    (void)state;
    enum { ROWS = 5, FRAMES = 2000, TAPS = 700, OUT = 2300 };
    static float x[ROWS * FRAMES], h[TAPS], y[ROWS * OUT], g[ROWS * OUT], gx[ROWS * FRAMES], gh[TAPS];
    oracle_random random = {.state = 77};
    gpuconv_arrays_job job = gpuconv_arrays_job_default();
    oracle_fill(&random, x, ROWS * FRAMES);
    oracle_fill(&random, h, TAPS);
    oracle_fill(&random, g, ROWS * OUT);
    gpuconv_responses *kept;
    const gpuconv_rows taps = gpuconv_rows_of_floats(h, 1, TAPS);
    assert_int_equal(gpuconv_responses_new(place, &taps, FRAMES, NULL, &kept, NULL), GPUCONV_OK);
    job.prepared = kept;
    for (int operation = 0; operation < 3; operation++) {
        job.operation = (gpuconv_arrays_operation)operation;
        job.signal = gpuconv_rows_of_floats(operation == 1 ? gx : x, ROWS, FRAMES);
        job.response = gpuconv_rows_of_floats(operation == 2 ? gh : h, 1, TAPS);
        job.output = gpuconv_rows_of_floats(operation == 0 ? y : g, ROWS, OUT);
        job.offset = 123;
        assert_int_equal(gpuconv_arrays_run(place, &job, NULL, 0, NULL, NULL), GPUCONV_OK);
    }
    const double loss = inner(g, y, ROWS * OUT);
    gpuconv_responses_free(kept);
    job.prepared = NULL;
    job.operation = GPUCONV_ARRAYS_CONVOLVE;
    job.signal.data = x;
    job.response.data = h;
    job.output = gpuconv_rows_of_floats(y, ROWS, OUT);
    for (int i = 0; i < 20; i++) {
        float *at = i % 2 ? &h[oracle_below(&random, TAPS)] : &x[oracle_below(&random, ROWS * FRAMES)];
        const float before = *at, gradient = i % 2 ? gh[at - h] : gx[at - x];
        *at += 1;
        assert_int_equal(gpuconv_arrays_run(place, &job, NULL, 0, NULL, NULL), GPUCONV_OK);
        *at = before;
        const double difference = inner(g, y, ROWS * OUT) - loss;
        CHECK(fabs(difference - (double)gradient) < 2e-2, "step %d: %g, gradient %g", i, difference, (double)gradient);
    }
}

/* Returns whether no half is nearer to a value than the given one, which is even if another is as near. */
static bool is_nearest(double value, uint16_t half) {
    const double magnitude = fabs(value);
    const uint16_t rest = half & 0x7fff;
    if ((half >> 15) != signbit(value))
        return false;
    if (rest == 0x7c00)
        return magnitude >= 65520;
    const double error = fabs(half_value(rest) - magnitude);
    const double above = half_value((uint16_t)(rest + 1)) - magnitude; /* of the largest half: 65536 */
    const double below = rest ? magnitude - half_value((uint16_t)(rest - 1)) : HUGE_VAL;
    return rest < 0x7c00 && (error < above || (error == above && rest % 2 == 0)) &&
           (error < below || (error == below && rest % 2 == 0));
}

static void halves_round_to_the_nearest_even(void **state) {
    (void)state;
    for (uint32_t bits = 0; bits < 1 << 16; bits++) {
        const uint16_t half = (uint16_t)bits;
        const float single = gc_half_to_float(half);
        if ((half & 0x7fff) > 0x7c00)
            CHECK(isnan(single), "half %x", bits);
        else if ((half & 0x7fff) == 0x7c00)
            CHECK(isinf(single) && gc_half_of_float(single) == half, "half %x", bits);
        else
            CHECK((double)single == half_value(half) && gc_half_of_float(single) == half, "half %x", bits);
        CHECK(isnan(gc_bfloat_to_float(half)) || gc_bfloat_of_float(gc_bfloat_to_float(half)) == half, "bfloat %x",
              bits);
    }
    oracle_random random = {.state = 9};
    for (int i = 0; i < 2000000 / HARNESS_FEWER; i++) {
        uint32_t bits = (uint32_t)oracle_bits(&random);
        if (i % 2) /* a tie, or next to one */
            bits = (bits & 0xffffe000) + 0x1000 + (uint32_t)oracle_below(&random, 3) - 1;
        const float single = gc_float_of_bits(bits);
        if (isnan(single)) {
            CHECK(isnan(gc_half_to_float(gc_half_of_float(single))), "NaN %x", bits);
            CHECK(isnan(gc_bfloat_to_float(gc_bfloat_of_float(single))), "NaN %x", bits);
            continue;
        }
        CHECK(is_nearest((double)single, gc_half_of_float(single)), "%a", (double)single);
        const uint32_t low = bits & 0xffff, up = low > 0x8000 || (low == 0x8000 && bits & 0x10000);
        CHECK(gc_bfloat_of_float(single) == (uint16_t)((bits >> 16) + up), "%a", (double)single);
    }
}

static void an_update_replaces_the_responses(void **state) {
    (void)state;
    enum { FRAMES = 3000, TAPS = 500 };
    static float x[FRAMES], h[2][TAPS], y[2][FRAMES];
    oracle_random random = {.state = 5};
    gpuconv_error error;
    gpuconv_responses *kept;
    gpuconv_arrays_job job = gpuconv_arrays_job_default();
    oracle_fill(&random, x, FRAMES);
    oracle_fill(&random, h[0], 2 * TAPS);
    gpuconv_rows rows = gpuconv_rows_of_floats(h[0], 1, TAPS);
    job.signal = gpuconv_rows_of_floats(x, 1, FRAMES);
    job.output = gpuconv_rows_of_floats(y[0], 1, FRAMES);
    assert_int_equal(gpuconv_responses_new(place, &rows, 1, NULL, &kept, &error), GPUCONV_OK);
    job.prepared = kept;
    assert_int_equal(gpuconv_arrays_run(place, &job, NULL, 0, NULL, &error), GPUCONV_OK);
    h[1][3] = NAN;
    rows.data = h[1];
    assert_int_equal(gpuconv_responses_update(place, kept, &rows, NULL, &error), GPUCONV_ERROR_FORMAT);
    memset(h[1], 0, sizeof h[1]);
    h[1][3] = 1;
    rows.frames = 10; /* shorter: zeros follow */
    assert_int_equal(gpuconv_responses_update(place, kept, &rows, NULL, &error), GPUCONV_OK);
    job.output.data = y[1];
    assert_int_equal(gpuconv_arrays_run(place, &job, NULL, 0, NULL, &error), GPUCONV_OK);
    for (int n = 0; n < FRAMES; n++)
        CHECK(fabsf(y[1][n] - (n < 3 ? 0 : x[n - 3])) < 1e-5f, "frame %d", n);
    rows.rows = 2;
    assert_int_equal(gpuconv_responses_update(place, kept, &rows, NULL, &error), GPUCONV_ERROR_ARGUMENT);
    gpuconv_responses_free(kept);
}

static int open_place(void **state) {
    (void)state;
    return gpuconv_arrays_new_cpu(3, &place, NULL);
}

static int close_place(void **state) {
    (void)state;
    gpuconv_arrays_free(place);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_jobs_follow_their_definition),
        cmocka_unit_test(routed_jobs_follow_their_definition),
        cmocka_unit_test(many_products_follow_their_definition),
        cmocka_unit_test(long_gradients_follow_their_definition),
        cmocka_unit_test(both_gradients_are_those_of_their_jobs),
        cmocka_unit_test(gradients_are_finite_differences),
        cmocka_unit_test(halves_round_to_the_nearest_even),
        cmocka_unit_test(an_update_replaces_the_responses),
    };
    return cmocka_run_group_tests_name("arrays_gradients", tests, open_place, close_place);
}
