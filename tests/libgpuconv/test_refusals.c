/* Every value that gpuconv.h documents as refused is refused, with the documented status, a message, and no object: one
 * line here for each argument of each public function. Arguments that are floats get NaN and both infinities besides.
 */
#include "files.h"
#include "harness.h"

#include <math.h>

static gpuconv_ir *mono, *stereo, *unrouted,
    *other_rate; /* routed for one and for two inputs; not routed; at 44100 Hz */
static const char *ir_path, *in_path, *matrix_path;

typedef struct made {
    gpuconv_ir *ir;
    gpuconv_plan *plan;
    gpuconv_realtime *realtime;
} made;

/* One argument of one function, and the values of it that are refused; `call` passes one of them. */
typedef struct refusal {
    const char *what;
    gpuconv_status (*call)(double bad, made *m, gpuconv_error *error);
    gpuconv_status want;
    bool floating; /* the argument is a double: NaN and infinities are refused too */
    double bad[8];
    int count;
    bool infinite; /* -INFINITY is allowed */
} refusal;

#define CALL(name) static gpuconv_status name(double bad, made *m, gpuconv_error *error)

static const float tap = 1;
static const float *const taps[] = {&tap};

CALL(new_channels) {
    return gpuconv_ir_new(taps, (int)bad, 1, 48000, &m->ir, error);
}
CALL(new_frames) {
    return gpuconv_ir_new(taps, 1, (int64_t)bad, 48000, &m->ir, error);
}
CALL(new_rate) {
    return gpuconv_ir_new(taps, 1, 1, bad, &m->ir, error);
}
CALL(new_tap) {
    float one = (float)bad;
    const float *const plane[] = {&one};
    return gpuconv_ir_new(plane, 1, 1, 48000, &m->ir, error);
}
CALL(route_inputs) {
    return gpuconv_ir_route(unrouted, (int)bad, &m->ir, error);
}
CALL(route_as_inputs) {
    return gpuconv_ir_route_as(unrouted, (int)bad, GPUCONV_LAYOUT_AUTO, &m->ir, error);
}
CALL(route_as_layout) {
    return gpuconv_ir_route_as(unrouted, 1, (gpuconv_layout)(int)bad, &m->ir, error);
}
CALL(route_topology) {
    return gpuconv_ir_route(stereo, (int)bad, &m->ir, error);
}
CALL(matrix_rate) {
    return gpuconv_ir_load_matrix(matrix_path, bad, &m->ir, error);
}
CALL(resample_rate) {
    return gpuconv_ir_resample(mono, bad, &m->ir, error);
}
CALL(cut_start) {
    return gpuconv_ir_cut(mono, (int64_t)bad, 1, &m->ir, error);
}
CALL(cut_frames) {
    return gpuconv_ir_cut(mono, 0, (int64_t)bad, &m->ir, error);
}
CALL(trim_level) {
    return gpuconv_ir_trim(mono, bad, &m->ir, error);
}
CALL(align_how) {
    return gpuconv_ir_align(mono, (gpuconv_align)(int)bad, &m->ir, error);
}
CALL(fade_in) {
    return gpuconv_ir_fade(mono, (int64_t)bad, 0, &m->ir, error);
}
CALL(fade_out) {
    return gpuconv_ir_fade(mono, 0, (int64_t)bad, &m->ir, error);
}
CALL(delay_frames) {
    return gpuconv_ir_delay(mono, (int64_t)bad, &m->ir, error);
}
CALL(delay_memory) {
    return gpuconv_ir_delay(mono, (int64_t)bad, &m->ir, error);
}
CALL(stretch_factor) {
    return gpuconv_ir_stretch(mono, bad, &m->ir, error);
}
CALL(series_rates) {
    (void)bad;
    return gpuconv_ir_series(mono, other_rate, &m->ir, error);
}
CALL(gain_level) {
    return gpuconv_ir_gain(mono, bad, &m->ir, error);
}
CALL(normalize_how) {
    return gpuconv_ir_normalize(mono, (gpuconv_normalize)(int)bad, NULL, &m->ir, error);
}
CALL(mix_wet) {
    return gpuconv_ir_mix(mono, bad, 0, &m->ir, error);
}
CALL(mix_dry) {
    return gpuconv_ir_mix(mono, 0, bad, &m->ir, error);
}
CALL(mix_loose) {
    (void)bad;
    return gpuconv_ir_mix(unrouted, 0, 0, &m->ir, error);
}

static gpuconv_status prepare(const gpuconv_preparation *p, int inputs, double rate, made *m, gpuconv_error *error) {
    return gpuconv_ir_prepare(ir_path, p, inputs, rate, &m->ir, error);
}

#define PREPARE(name, field)                                                                                           \
    CALL(name) {                                                                                                       \
        gpuconv_preparation p = gpuconv_preparation_default();                                                         \
        p.field;                                                                                                       \
        return prepare(&p, 1, 48000, m, error);                                                                        \
    }

PREPARE(prepare_trim, trim = bad)
PREPARE(prepare_stretch, stretch = bad)
PREPARE(prepare_thens, series_count = (int)bad)
CALL(prepare_inputs) {
    gpuconv_preparation p = gpuconv_preparation_default();
    return prepare(&p, (int)bad, 48000, m, error);
}
CALL(prepare_rate) {
    gpuconv_preparation p = gpuconv_preparation_default();
    return prepare(&p, 1, bad, m, error);
}

#define PLAN(name, field)                                                                                              \
    CALL(name) {                                                                                                       \
        gpuconv_config c = gpuconv_config_default();                                                                   \
        c.field;                                                                                                       \
        return gpuconv_plan_new(mono, &c, &m->plan, error);                                                            \
    }

PLAN(plan_backend, backend = (gpuconv_backend)(int)bad)
PLAN(plan_algorithm, algorithm = (gpuconv_algorithm)(int)bad)
PLAN(plan_device, device = (int)bad)
PLAN(plan_threads, threads = (int)bad)
PLAN(plan_frames, frames = (int64_t)bad)
#define REALTIME(name, field)                                                                                          \
    CALL(name) {                                                                                                       \
        gpuconv_realtime_config c = gpuconv_realtime_config_default();                                                 \
        c.field;                                                                                                       \
        return gpuconv_realtime_new(mono, &c, &m->realtime, error);                                                    \
    }

REALTIME(realtime_rate, rate = bad)
REALTIME(realtime_block, block = (int)bad)
REALTIME(realtime_threads, threads = (int)bad)
REALTIME(realtime_backend, backend = (gpuconv_backend)(int)bad)
REALTIME(realtime_device, device = (int)bad)
REALTIME(realtime_latency, latency = (int64_t)bad)
CALL(realtime_loose) {
    (void)bad;
    gpuconv_realtime_config c = gpuconv_realtime_config_default();
    return gpuconv_realtime_new(unrouted, &c, &m->realtime, error);
}

static gpuconv_status swap(const gpuconv_ir *ir, double seconds, gpuconv_error *error) {
    gpuconv_realtime_config c = gpuconv_realtime_config_default();
    gpuconv_realtime *r;
    CHECK(gpuconv_realtime_new(mono, &c, &r, error) == GPUCONV_OK, "%s", error->message);
    gpuconv_status status = gpuconv_realtime_swap(r, ir, seconds, error);
    gpuconv_realtime_free(r);
    return status;
}

CALL(swap_seconds) {
    (void)m;
    return swap(mono, bad, error);
}
CALL(swap_loose) {
    (void)m, (void)bad;
    return swap(unrouted, 0, error);
}
CALL(swap_topology) {
    (void)m, (void)bad;
    return swap(stereo, 0, error);
}

#define JOB(name, field)                                                                                               \
    CALL(name) {                                                                                                       \
        (void)m, (void)bad;                                                                                            \
        gpuconv_config c = gpuconv_config_default();                                                                   \
        gpuconv_preparation p = gpuconv_preparation_default();                                                         \
        gpuconv_job j = gpuconv_job_default();                                                                         \
        j.preparation = &p;                                                                                            \
        j.input = in_path;                                                                                             \
        j.response = ir_path;                                                                                          \
        j.output = files_path("out.wav");                                                                              \
        j.field;                                                                                                       \
        return gpuconv_convolve_file(&j, &c, NULL, error);                                                             \
    }

JOB(job_gain, gain = bad)
JOB(job_wet, preparation = (p.wet = bad, &p))
JOB(job_raw, raw = "48000,2")
JOB(job_format, format = "nonsense")
JOB(job_encoding, encoding = "nonsense")
JOB(job_plot, plot = "nonsense")
JOB(job_input, input = NULL)
JOB(job_response, response = NULL)
JOB(job_output, output = NULL)

#define NUMBERS(...) {__VA_ARGS__}, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double))
#define ARGUMENT GPUCONV_ERROR_ARGUMENT

static const refusal refusals[] = {
    {"ir_new channels", new_channels, ARGUMENT, false, NUMBERS(0, -1, 1025), false},
    {"ir_new frames", new_frames, ARGUMENT, false, NUMBERS(0, -1), false},
    {"ir_new rate", new_rate, ARGUMENT, true, NUMBERS(0, -1, 0.999, 10000001, 1e300), false},
    {"ir_new tap", new_tap, GPUCONV_ERROR_FORMAT, true, NUMBERS((double)NAN), false},
    {"ir_route inputs", route_inputs, ARGUMENT, false, NUMBERS(0, -1, 1025), false},
    {"ir_route routed", route_topology, GPUCONV_ERROR_TOPOLOGY, false, NUMBERS(1, 3), false},
    {"ir_route_as inputs", route_as_inputs, ARGUMENT, false, NUMBERS(0, -1, 1025), false},
    {"ir_route_as layout", route_as_layout, ARGUMENT, false, NUMBERS(-1, GPUCONV_LAYOUT_HESUVI + 1), false},
    {"ir_load_matrix rate", matrix_rate, ARGUMENT, true, NUMBERS(0, -1, 0.5, 10000001), false},
    {"ir_resample rate", resample_rate, ARGUMENT, true, NUMBERS(0, -1, 1e-6, 47.999, 10000001, 1e300), false},
    {"ir_cut start", cut_start, ARGUMENT, false, NUMBERS(-1, 64, 1e15), false},
    {"ir_cut frames", cut_frames, ARGUMENT, false, NUMBERS(0, -2), false},
    {"ir_trim decibels", trim_level, ARGUMENT, true, NUMBERS(0, 1, -300.001), false},
    {"ir_align how", align_how, ARGUMENT, false, NUMBERS(-1, 3), false},
    {"ir_fade in", fade_in, ARGUMENT, false, NUMBERS(-1), false},
    {"ir_fade out", fade_out, ARGUMENT, false, NUMBERS(-1), false},
    {"ir_delay frames", delay_frames, ARGUMENT, false, NUMBERS(-1, 9.2e18), false},
    {"ir_delay memory", delay_memory, GPUCONV_ERROR_MEMORY, false, NUMBERS(1e15, 4e18), false},
    {"ir_stretch factor", stretch_factor, ARGUMENT, true, NUMBERS(0, -1, 0.00999, 100.001), false},
    {"ir_series rates", series_rates, ARGUMENT, false, NUMBERS(0), false},
    {"ir_gain decibels", gain_level, ARGUMENT, true, NUMBERS(-200.001, 200.001), false},
    {"ir_normalize how", normalize_how, ARGUMENT, false, NUMBERS(-1, 5), false},
    {"ir_mix wet", mix_wet, ARGUMENT, true, NUMBERS(-200.001, 200.001), true},
    {"ir_mix dry", mix_dry, ARGUMENT, true, NUMBERS(-200.001, 200.001), true},
    {"ir_mix not routed", mix_loose, ARGUMENT, false, NUMBERS(0), false},
    {"ir_prepare trim", prepare_trim, ARGUMENT, true, NUMBERS(1, -301), false},
    {"ir_prepare stretch", prepare_stretch, ARGUMENT, true, NUMBERS(-1, 0.00999, 100.001), false},
    {"ir_prepare thens", prepare_thens, ARGUMENT, false, NUMBERS(-1, 1), false},
    {"ir_prepare inputs", prepare_inputs, ARGUMENT, false, NUMBERS(0, -1, 1025), false},
    {"ir_prepare rate", prepare_rate, ARGUMENT, true, NUMBERS(0, -1, 0.5, 10000001), false},
    {"plan_new backend", plan_backend, ARGUMENT, false, NUMBERS(-1, 3), false},
    {"plan_new algorithm", plan_algorithm, ARGUMENT, false, NUMBERS(-1, 1000), false},
    {"plan_new device", plan_device, ARGUMENT, false, NUMBERS(-2), false},
    {"plan_new threads", plan_threads, ARGUMENT, false, NUMBERS(-1, 1025), false},
    {"plan_new frames", plan_frames, ARGUMENT, false, NUMBERS(-2, 9e18), false},
    {"realtime_new rate", realtime_rate, ARGUMENT, true, NUMBERS(-1, 0.5, 10000001), false},
    {"realtime_new block", realtime_block, ARGUMENT, false, NUMBERS(-1, 65537), false},
    {"realtime_new threads", realtime_threads, ARGUMENT, false, NUMBERS(-1, 65), false},
    {"realtime_new backend", realtime_backend, ARGUMENT, false, NUMBERS(-1, 3), false},
    {"realtime_new device", realtime_device, ARGUMENT, false, NUMBERS(-2), false},
    {"realtime_new latency", realtime_latency, ARGUMENT, false, NUMBERS(-1, 1048577), false},
    {"realtime_new not routed", realtime_loose, ARGUMENT, false, NUMBERS(0), false},
    {"realtime_swap seconds", swap_seconds, ARGUMENT, true, NUMBERS(-1e-9, 60.001), false},
    {"realtime_swap not routed", swap_loose, ARGUMENT, false, NUMBERS(0), false},
    {"realtime_swap topology", swap_topology, GPUCONV_ERROR_TOPOLOGY, false, NUMBERS(0), false},
    {"job gain", job_gain, ARGUMENT, true, NUMBERS(-200.001, 200.001), false},
    {"job wet", job_wet, ARGUMENT, true, NUMBERS(-200.001, 200.001), true},
    {"job raw", job_raw, ARGUMENT, false, NUMBERS(0), false},
    {"job format", job_format, ARGUMENT, false, NUMBERS(0), false},
    {"job encoding", job_encoding, ARGUMENT, false, NUMBERS(0), false},
    {"job plot", job_plot, ARGUMENT, false, NUMBERS(0), false},
    {"job input", job_input, ARGUMENT, false, NUMBERS(0), false},
    {"job response", job_response, ARGUMENT, false, NUMBERS(0), false},
    {"job output", job_output, ARGUMENT, false, NUMBERS(0), false},
};

static void check_refused(const refusal *r, double bad) {
    made m = {(gpuconv_ir *)&m, (gpuconv_plan *)&m, (gpuconv_realtime *)&m};
    const made untouched = m;
    gpuconv_error error = {0};
    gpuconv_status status = r->call(bad, &m, &error);
    CHECK(status == r->want, "%s %g: '%s' instead of '%s': %s", r->what, bad, gpuconv_status_text(status),
          gpuconv_status_text(r->want), error.message);
    CHECK(error.status == status && strlen(error.message) > 8, "%s %g: no message", r->what, bad);
    CHECK((m.ir == untouched.ir || !m.ir) && (m.plan == untouched.plan || !m.plan) &&
              (m.realtime == untouched.realtime || !m.realtime),
          "%s %g: an object was returned", r->what, bad);
    CHECK(r->call(bad, &m, &(gpuconv_error){0}) == status, "%s %g: another status at the second call", r->what, bad);
}

static void documented_refusals_are_made(void **state) {
    (void)state;
    for (int i = 0; i < COUNT(refusals); i++) {
        const refusal *r = &refusals[i];
        for (int k = 0; k < r->count; k++)
            check_refused(r, r->bad[k]);
        if (r->floating) {
            check_refused(r, (double)NAN);
            check_refused(r, -(double)NAN);
            check_refused(r, (double)INFINITY);
        }
        if (r->floating && !r->infinite)
            check_refused(r, -(double)INFINITY);
    }
    FILE *f = fopen(files_path("out.wav"), "rb");
    CHECK(!f, "a refused job left an output");
}

/* The first and last values of ranges are accepted. */
static void the_ends_of_ranges_are_accepted(void **state) {
    (void)state;
    static const struct {
        gpuconv_status (*call)(double bad, made *m, gpuconv_error *error);
        double value;
    } accepted[] = {{new_rate, 1},          {new_rate, 10000000}, {resample_rate, 48}, {trim_level, -300},
                    {stretch_factor, 0.01}, {gain_level, -200},   {gain_level, 200},   {mix_wet, -(double)INFINITY},
                    {mix_dry, -200},        {prepare_trim, 0},    {prepare_stretch, 0}};
    for (int i = 0; i < COUNT(accepted); i++) {
        made m = {0};
        gpuconv_error error = {0};
        CHECK(accepted[i].call(accepted[i].value, &m, &error) == GPUCONV_OK, "%d, %g: %s", i, accepted[i].value,
              error.message);
        gpuconv_ir_free(m.ir);
    }
    assert_int_equal(gpuconv_ir_onset(mono, (double)NAN), gpuconv_ir_onset(mono, 0));
    assert_int_equal(gpuconv_ir_onset(mono, 40), gpuconv_ir_onset(mono, 0));
}

static int begin(void **state) {
    int failed = files_begin(state);
    oracle_random random = {.state = 9};
    guarded one = guarded_random(&random, 1, 64), two = guarded_random(&random, 2, 64);
    mono = harness_route(&one, 1);
    stereo = harness_route(&two, 2);
    ir_path = strdup(files_path("ir.wav"));
    in_path = strdup(files_path("in.wav"));
    matrix_path = strdup(files_path("routes.txt"));
    files_write(ir_path, SF_FORMAT_WAV | SF_FORMAT_FLOAT, 48000, &one);
    files_write(in_path, SF_FORMAT_WAV | SF_FORMAT_FLOAT, 48000, &one);
    FILE *f = fopen(matrix_path, "w");
    failed |= !f || fputs("1 1 dirac\n", f) < 0 || fclose(f) != 0;
    failed |= gpuconv_ir_load(ir_path, &unrouted, NULL) != GPUCONV_OK;
    failed |= gpuconv_ir_resample(mono, 44100, &other_rate, NULL) != GPUCONV_OK;
    guarded_free(&one);
    guarded_free(&two);
    return failed;
}

static int end(void **state) {
    gpuconv_ir_free(mono);
    gpuconv_ir_free(stereo);
    gpuconv_ir_free(unrouted);
    gpuconv_ir_free(other_rate);
    free((void *)ir_path);
    free((void *)in_path);
    free((void *)matrix_path);
    return files_end(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documented_refusals_are_made),
        cmocka_unit_test(the_ends_of_ranges_are_accepted),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
