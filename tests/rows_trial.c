#include "rows_trial.h"

#include "check.h"

#include "libgpuconv/core/memory.h"
#include "libgpuconv/ir/object.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

trial_place trials;

static void *allocate(size_t bytes) {
    void *made = malloc(bytes);
    CHECK(made, "no memory");
    return made;
}

static void *zeros(int64_t count, size_t each) {
    void *made = calloc((size_t)count, each);
    CHECK(made, "no memory");
    return made;
}

static void copy(void *to, const void *from, size_t bytes) {
    memcpy(to, from, bytes);
}

static void run(const gpuconv_arrays_job *job, const char *what) {
    gpuconv_error error = {0};
    CHECK(!gpuconv_arrays_run(trials.arrays, job, NULL, 0, NULL, &error), "%s: %s", what, error.message);
}

void trials_on_cpu(int threads) {
    gpuconv_error error = {0};
    trials = (trial_place){.allocate = allocate, .release = free, .copy = copy, .run = run};
    CHECK(!gpuconv_arrays_new_cpu(threads, &trials.arrays, &error), "%s", error.message);
}

static void *upload(const void *from, size_t bytes) {
    void *to = trials.allocate(bytes);
    trials.copy(to, from, bytes);
    return to;
}

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

static size_t sample_bytes(gpuconv_sample_type type) {
    return type == GPUCONV_SAMPLE_F32 ? 4 : 2;
}

double rows_half_value(uint16_t half) {
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
    memcpy(to, type == GPUCONV_SAMPLE_F32 ? (const void *)&single : (const void *)&two, sample_bytes(type));
}

static double decode(gpuconv_sample_type type, const unsigned char *from) {
    float single = 0;
    uint16_t two = 0;
    memcpy(&two, from, sizeof two);
    const uint32_t bits = (uint32_t)two << 16;
    if (type == GPUCONV_SAMPLE_F16)
        return (two & 0x7c00) == 0x7c00 ? (double)NAN : rows_half_value(two);
    memcpy(&single, type == GPUCONV_SAMPLE_F32 ? (const void *)from : (const void *)&bits, sizeof single);
    return (double)single;
}

/* Fills start, length and elements. Where the step is negative, frame 0 of a row is its last element. */
static void lay_out(oracle_random *random, rows_array *a, rows_kind kind, int64_t pad) {
    const int64_t rows = a->array.rows, frames = a->array.frames, step = llabs(a->array.step);
    const int64_t whole = (frames - 1) * step + 1;
    const int64_t gap = 1 + oracle_below(random, 5), even = (whole + gap + 7) / 8 * 8; /* even: every row is aligned */
    a->array.stride = kind == ROWS_INTERLEAVED ? 1 : oracle_below(random, 2) ? even : rows == 1 ? whole : whole + gap;
    a->elements = pad;
    for (int64_t i = 0; i < rows; i++) {
        const bool ragged = kind == ROWS_RAGGED || kind == ROWS_PACKED;
        a->length[i] = ragged ? oracle_below(random, frames + 1) : frames;
        const int64_t used = kind == ROWS_PACKED ? (gc_max(a->length[i], 1) - 1) * step + 1 : whole;
        const int64_t begin = kind == ROWS_PACKED ? a->elements - pad : i * a->array.stride;
        a->start[i] = begin + (a->array.step < 0 ? used - 1 : 0);
        a->elements = pad + begin + used;
    }
    if (kind == ROWS_RAGGED || kind == ROWS_PACKED)
        a->array.lengths = a->lengths = upload(a->length, (size_t)rows * sizeof *a->length);
    if (kind == ROWS_PACKED)
        a->array.starts = a->starts = upload(a->start, (size_t)rows * sizeof *a->start);
    for (int64_t i = 0; i < rows; i++)
        a->start[i] += pad;
}

/* Returns the byte of a frame in `data`, the bytes of the array. */
static unsigned char *frame_in(const rows_array *a, unsigned char *data, int64_t row, int64_t n) {
    return data + (size_t)(a->start[row] + n * a->array.step) * sample_bytes(a->array.type);
}

rows_array rows_new(oracle_random *random, gpuconv_sample_type type, int64_t rows, int64_t frames, int64_t step,
                    rows_kind kind, int64_t pad) {
    const size_t each = sample_bytes(type);
    rows_array a = {.array = {.type = type, .rows = rows, .frames = frames, .step = step}};
    if (kind == ROWS_INTERLEAVED)
        a.array.step = rows;
    a.value = zeros(rows * frames, sizeof *a.value);
    a.start = zeros(rows, sizeof *a.start);
    a.length = zeros(rows, sizeof *a.length);
    lay_out(random, &a, kind, pad);
    a.before = allocate((size_t)a.elements * each);
    memset(a.before, 0xff, (size_t)a.elements * each);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t n = 0; n < a.length[i]; n++) {
            const double value = type == GPUCONV_SAMPLE_F32 ? (double)oracle_uniform(random)
                                                            : (double)(oracle_below(random, 257) - 128) / 128;
            a.value[i * frames + n] = a.array.step || n == 0 ? value : a.value[i * frames];
            encode(type, a.value[i * frames + n], frame_in(&a, a.before, i, n));
        }
    a.data = upload(a.before, (size_t)a.elements * each);
    a.array.data = (unsigned char *)a.data + (size_t)(a.array.starts ? pad : a.start[0]) * each;
    return a;
}

void rows_poison(rows_array *a) {
    const size_t bytes = (size_t)a->elements * sample_bytes(a->array.type);
    memset(a->before, 0xff, bytes);
    trials.copy(a->data, a->before, bytes);
}

double *rows_read(const rows_array *a, bool accumulate, const char *what) {
    const size_t each = sample_bytes(a->array.type), bytes = (size_t)a->elements * each;
    const int64_t rows = a->array.rows, frames = a->array.frames;
    unsigned char *now = allocate(bytes);
    double *value = zeros(rows * frames, sizeof *value);
    trials.copy(now, a->data, bytes);
    for (int64_t i = 0; i < rows; i++) {
        const int64_t written = a->array.starts || accumulate ? a->length[i] : frames;
        for (int64_t n = 0; n < written; n++) {
            value[i * frames + n] = decode(a->array.type, frame_in(a, now, i, n));
            memcpy(frame_in(a, now, i, n), frame_in(a, a->before, i, n), each);
        }
    }
    CHECK(memcmp(now, a->before, bytes) == 0, "%s: wrote outside its rows", what);
    free(now);
    return value;
}

double rows_bound(gpuconv_sample_type type) {
    return type == GPUCONV_SAMPLE_F32 ? -120 : type == GPUCONV_SAMPLE_F16 ? -66 : -48;
}

void rows_free(rows_array *a) {
    trials.release(a->data);
    trials.release(a->starts);
    trials.release(a->lengths);
    free(a->value);
    free(a->start);
    free(a->length);
    free(a->before);
}

/* ---- Definition -------------------------------------------------------------------------------------------------- */

/* Three rows that meet: of the signal, of the output and, with routes, of the response. */
typedef struct meeting {
    int64_t signal, output, route;
} meeting;

/* Returns the weight of response number `response` of a row's blocks for frame m. */
static double weight(const gpuconv_arrays_job *j, int64_t response, int64_t m) {
    if (!j->hop)
        return 1;
    const int64_t block = m / j->hop, last = (j->signal.frames - 1) / j->hop;
    const double rise = j->interpolation && block < last ? (double)(m % j->hop) / (double)j->hop : 0;
    return response == block ? 1 - rise : response == block + 1 ? rise : 0;
}

/* Returns tap k of what rows do to frame m. */
static double tap(const trial *t, const meeting *e, int64_t m, int64_t k) {
    const gpuconv_arrays_job *j = &t->job;
    const int64_t nh = t->response.array.frames, blocks = j->hop ? (j->signal.frames - 1) / j->hop + 1 : 1;
    if (t->ir)
        return (double)gc_ir_plane(t->ir, t->ir->route[e->route].plane)[k];
    const int64_t set = e->signal / j->group % (t->response.array.rows / blocks), block = j->hop ? m / j->hop : 0;
    const double *h = t->response.value + set * blocks * nh + k;
    return weight(j, block, m) * h[block * nh] +
           (block + 1 < blocks ? weight(j, block + 1, m) * h[(block + 1) * nh] : 0);
}

/* Returns frame n of a row after its gate; 0 outside the row. */
static double gated(const rows_array *a, const gpuconv_rows *given, const rows_array *gate, int64_t row, int64_t n) {
    const int64_t frames = a->array.frames, at = row * frames + n;
    return n < 0 || n >= frames ? 0 : a->value[at] * (given ? gate->value[at] : 1);
}

/* Returns what three rows add to frame n of the row that is written. block: of the response of a gradient. */
static double met(const trial *t, const meeting *e, int64_t block, int64_t n) {
    const gpuconv_arrays_job *j = &t->job;
    const bool convolve = j->operation == GPUCONV_ARRAYS_CONVOLVE;
    double sum = 0, skipped = 0;
    if (j->operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE) {
        for (int64_t m = 0; m < j->signal.frames; m++)
            sum += weight(j, block, m) * gated(&t->signal, j->pre, &t->pre, e->signal, m) *
                   gated(&t->output, j->post, &t->post, e->output, m + n - j->offset);
        return t->gain[e->signal] * sum;
    }
    for (int64_t k = 0; k < t->response.array.frames; k++) {
        const int64_t at = convolve ? n + j->offset - k : n - j->offset + k;
        const double x = convolve ? gated(&t->signal, j->pre, &t->pre, e->signal, at)
                                  : gated(&t->output, j->post, &t->post, e->output, at);
        sum += x == 0 ? 0 : tap(t, e, convolve ? at : n, k) * x;
    }
    sum *= t->gain[e->signal];
    if (convolve) {
        skipped = t->skip[e->signal] * gated(&t->signal, NULL, NULL, e->signal, n);
        return (j->post ? t->post.value[e->output * j->output.frames + n] : 1) * (sum + skipped);
    }
    skipped = t->skip[e->signal] * gated(&t->output, j->post, &t->post, e->output, n);
    return (j->pre ? t->pre.value[e->signal * j->signal.frames + n] : 1) * sum + skipped;
}

double trial_value(const trial *t, int64_t row, int64_t n) {
    const gpuconv_arrays_job *j = &t->job;
    const bool gradient = j->operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE;
    double sum = 0;
    if (!t->ir) {
        const int64_t blocks = j->hop ? (j->signal.frames - 1) / j->hop + 1 : 1;
        const int64_t sets = t->response.array.rows / blocks;
        for (int64_t i = gradient ? 0 : row; i < (gradient ? j->signal.rows : row + 1); i++)
            if (!gradient || i / j->group % sets == row / blocks)
                sum += met(t, &(meeting){i, i, 0}, row % blocks, n);
        return sum;
    }
    const int inputs = gpuconv_ir_inputs(t->ir), outputs = gpuconv_ir_outputs(t->ir);
    for (int64_t b = 0; b < j->signal.rows / inputs; b++)
        for (int r = 0; r < gpuconv_ir_routes(t->ir); r++) {
            const meeting e = {b * inputs + t->ir->route[r].input, b * outputs + t->ir->route[r].output, r};
            const int64_t into = gradient ? r : j->operation == GPUCONV_ARRAYS_CONVOLVE ? e.output : e.signal;
            sum += into == row ? met(t, &e, 0, n) : 0;
        }
    return sum;
}

/* ---- Comparison -------------------------------------------------------------------------------------------------- */

rows_array *trial_written(trial *t) {
    return t->job.operation == GPUCONV_ARRAYS_CONVOLVE          ? &t->output
           : t->job.operation == GPUCONV_ARRAYS_GRADIENT_BOTH   ? &t->gradient[0]
           : t->job.operation == GPUCONV_ARRAYS_GRADIENT_SIGNAL ? &t->signal
                                                                : &t->response;
}

/* Compares an array that the job wrote with the definition. Returns the error in dB. */
static double compare(trial *t, const rows_array *a, const char *what) {
    const bool added = t->job.accumulate && a != &t->gradient[0];
    double *got = rows_read(a, added, what), wrong = 0, power = 0;
    const bool by_response = t->job.operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE;
    const int64_t frames = a->array.frames, terms = by_response ? t->signal.array.frames : t->response.array.frames;
    for (int64_t row = 0; row < a->array.rows; row++) {
        const double *y = got + row * frames;
        for (int64_t n = 0; n < frames; n++)
            CHECK(n < a->length[row] ? isfinite(y[n]) : y[n] == 0, "%s: row %lld, frame %lld is %g", what,
                  (long long)row, (long long)n, y[n]);
        for (int k = 0; k < t->frames_checked && a->length[row] > 0; k++) {
            const int64_t n = a->length[row] <= t->frames_checked ? k % a->length[row]
                              : k == 0                            ? 0
                              : k == 1                            ? a->length[row] - 1
                                                                  : oracle_below(&t->random, a->length[row]);
            const double want = trial_value(t, row, n) + (added ? a->value[row * frames + n] : 0);
            wrong += (y[n] - want) * (y[n] - want);
            /* Frames beyond the end of the convolution hold the rounding of those before it. */
            power += fmax(want * want, 1e-2 * (double)terms);
        }
    }
    free(got);
    const double error = 10 * log10(wrong / power);
    CHECK(wrong <= 0 || error <= rows_bound(a->array.type), "%s: %.1f dB", what, error);
    return error;
}

double trial_run(trial *t, const char *what) {
    trials.run(&t->job, what);
    if (t->job.operation != GPUCONV_ARRAYS_GRADIENT_BOTH)
        return compare(t, trial_written(t), what);
    double worst = -HUGE_VAL;
    for (int i = 0; i < 2; i++) {
        t->job.operation = i ? GPUCONV_ARRAYS_GRADIENT_RESPONSE : GPUCONV_ARRAYS_GRADIENT_SIGNAL;
        worst = fmax(worst, compare(t, &t->gradient[i], what));
    }
    t->job.operation = GPUCONV_ARRAYS_GRADIENT_BOTH;
    return worst;
}

/* ---- Trials ------------------------------------------------------------------------------------------------------ */

trial_shape trial_random(oracle_random *r, int operation, int64_t points, int64_t taps) {
    static const int64_t steps[] = {1, 2, 3, -1, -3};
    const bool both = operation == GPUCONV_ARRAYS_GRADIENT_BOTH;
    const int written = operation == GPUCONV_ARRAYS_CONVOLVE ? 2 : operation == GPUCONV_ARRAYS_GRADIENT_SIGNAL ? 0 : 1;
    trial_shape s = {.operation = (gpuconv_arrays_operation)operation};
    s.rows = 1 + oracle_below(r, 7);
    s.group = 1 + oracle_below(r, 3);
    s.responses = 1 + oracle_below(r, (s.rows + s.group - 1) / s.group);
    s.taps = taps ? taps : 1 + oracle_below(r, points + points / 2);
    s.frames = 1 + oracle_below(r, 4 * points);
    s.output_frames = 1 + oracle_below(r, s.frames + s.taps + 100);
    s.offset = oracle_below(r, s.taps + 200) - 100;
    s.accumulate = oracle_below(r, 3) == 0;
    s.gain = oracle_below(r, 2) == 0;
    const bool stepped = oracle_below(r, 2);
    for (int i = 0; i < 3; i++) {
        s.type[i] = (gpuconv_sample_type)(oracle_below(r, 2) ? 0 : oracle_below(r, 3));
        s.kind[i] = (rows_kind)oracle_below(r, stepped ? ROWS_KINDS : ROWS_INTERLEAVED);
        s.step[i] = steps[stepped ? oracle_below(r, COUNT(steps)) : 0];
        s.constant[i] = stepped && i != written && !both && oracle_below(r, 8) == 0;
    }
    for (int i = 1; i < 3 && both && oracle_below(r, 4); i++) {
        s.type[i] = s.type[0]; /* what one job serves */
        s.step[0] = s.step[i] = 1;
        s.gain = false;
    }
    return s;
}

/* Returns `count` factors, and copies them as floats into *memory of the place. given: random, else `otherwise`. */
static double *make_factors(oracle_random *random, int64_t count, bool given, double otherwise, void **memory) {
    double *made = zeros(count, sizeof *made);
    float *floats = zeros(count, sizeof *floats);
    for (int64_t i = 0; i < count; i++)
        made[i] = given ? (double)(floats[i] = oracle_uniform(random)) : otherwise;
    *memory = given ? upload(floats, (size_t)count * sizeof *floats) : NULL;
    free(floats);
    return made;
}

/* Makes the factors of the samples of an array, or none. */
static const gpuconv_rows *make_gate(oracle_random *random, const trial_shape *s, bool given, const gpuconv_rows *of,
                                     rows_array *made) {
    static const gpuconv_sample_type next[] = {GPUCONV_SAMPLE_F16, GPUCONV_SAMPLE_BF16, GPUCONV_SAMPLE_F32};
    if (!given)
        return NULL;
    *made = rows_new(random, s->mixed ? next[of->type] : of->type, of->rows, of->frames, 1, ROWS_PLAIN,
                     oracle_below(random, 4));
    return &made->array;
}

void trial_init(trial *t, uint64_t seed, const trial_shape *s) {
    *t = (trial){.random = {seed}, .job = gpuconv_arrays_job_default(), .frames_checked = 24};
    oracle_random *r = &t->random;
    const int64_t blocks = s->hop ? (s->frames - 1) / s->hop + 1 : 1;
    const int64_t rows[] = {s->rows, s->responses * blocks, s->rows}, frames[] = {s->frames, s->taps, s->output_frames};
    rows_array *const arrays[] = {&t->signal, &t->response, &t->output};
    for (int i = 0; i < 3; i++) {
        const int64_t step = s->constant[i] ? 0 : s->step[i] ? s->step[i] : 1;
        const bool both = i < 2 && s->operation == GPUCONV_ARRAYS_GRADIENT_BOTH;
        *arrays[i] =
            rows_new(r, s->type[i], rows[i], frames[i], step,
                     s->constant[i] && s->kind[i] == ROWS_INTERLEAVED ? ROWS_PLAIN : s->kind[i], oracle_below(r, 4));
        if (both)
            t->gradient[i] = rows_new(r, s->type[i], rows[i], frames[i], step, s->kind[i], oracle_below(r, 4));
        if (both && (i == 0 || !s->accumulate))
            rows_poison(&t->gradient[i]);
    }
    t->job.signal_gradient = t->gradient[0].array;
    t->job.response_gradient = t->gradient[1].array;
    t->job.operation = s->operation;
    t->job.signal = t->signal.array;
    t->job.response = t->response.array;
    t->job.output = t->output.array;
    t->job.group = s->group;
    t->job.offset = s->offset;
    t->job.accumulate = s->accumulate;
    t->job.hop = s->hop;
    t->job.interpolation = s->linear ? GPUCONV_ARRAYS_LINEAR : GPUCONV_ARRAYS_HOLD;
    t->gain = make_factors(r, s->rows, s->gain, 1, &t->gains);
    t->job.gain = t->gains;
    t->job.pre = make_gate(r, s, s->pre, &t->signal.array, &t->pre);
    t->job.post = make_gate(r, s, s->post, &t->output.array, &t->post);
    t->skip = make_factors(r, s->rows, s->skip, 0, &t->skips);
    t->job.skip = t->skips;
    if (!s->accumulate && s->operation != GPUCONV_ARRAYS_GRADIENT_BOTH)
        rows_poison(trial_written(t));
}

void trial_free(trial *t) {
    rows_array *const arrays[] = {&t->signal, &t->response, &t->output,     &t->pre,
                                  &t->post,   t->gradient,  t->gradient + 1};
    for (int i = 0; i < COUNT(arrays); i++)
        rows_free(arrays[i]);
    trials.release(t->gains);
    trials.release(t->skips);
    free(t->gain);
    free(t->skip);
}

void trial_run_routed(uint64_t seed, gpuconv_arrays_operation operation, int64_t points) {
    static const gc_route routes[] = {{0, 0, 0}, {2, 0, 1}, {3, 0, 2}, {3, 1, 0}, {0, 3, 2}, {2, 3, 1}};
    enum { CHANNELS = 4, PLANES = 3 };
    oracle_random random = {seed};
    gpuconv_error error = {0};
    char what[64];
    trial t;
    trial_shape s = trial_random(&random, (int)operation, points, 0);
    s.rows = CHANNELS * (1 + oracle_below(&random, 3));
    s.group = 1;
    s.responses = COUNT(routes);
    s.pre = oracle_below(&random, 4) == 0;
    s.post = oracle_below(&random, 4) == 0;
    gpuconv_ir *ir = gc_ir_blank(CHANNELS, CHANNELS, PLANES, COUNT(routes), s.taps, 48000);
    gpuconv_responses *kept;
    CHECK(ir, "no memory");
    memcpy(ir->route, routes, sizeof routes);
    oracle_fill(&random, ir->taps, PLANES * s.taps);
    CHECK(!gpuconv_responses_route(trials.arrays, ir, s.frames, &kept, &error), "%s", error.message);
    trial_init(&t, seed, &s);
    t.ir = ir;
    t.job.prepared = kept;
    snprintf(what, sizeof what, "routed job %llu", (unsigned long long)seed);
    trial_run(&t, what);
    CHECK(gpuconv_responses_update(trials.arrays, kept, &t.response.array, NULL, &error) == GPUCONV_ERROR_ARGUMENT,
          "routes were replaced");
    gpuconv_responses_free(kept);
    gpuconv_ir_free(ir);
    trial_free(&t);
}
