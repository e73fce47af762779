/*
 * Prepares responses of every layout and form with every step, each at one of two other rates too, and compares every
 * tap with an oracle.
 *
 * The resampled taps of noise that begins abruptly depend on the filter near the Nyquist frequency: after an
 * interpolation they are compared through a band-limited pulse, and only with steps that are linear.
 */
#include "harness.h"
#include "preparation_forms.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

/* ---- Preparation by the oracle ----------------------------------------------------------------------------------- */

static int frames_of(double seconds, double rate) {
    return (int)lrint(seconds * rate);
}

/* A response at the rate of its file and at that of the input. */
typedef struct source {
    planes own, resampled;
} source;

static source source_of(planes own, double rate) {
    return (source){own, rate == own.rate ? planes_part(&own, own.pre, 0, own.frames)
                                          : planes_resample(&own, rate / own.rate, rate)};
}

static void source_free(source *old) {
    planes_free(&old->own);
    planes_free(&old->resampled);
}

/* Applies the steps up to the routes. Two responses in series are `each` and `one`, a single one is `one`. */
static planes shaped(const source *from, const gpuconv_preparation *p, const source *each, const source *one) {
    const planes *own = &from->own, *resampled = &from->resampled;
    const double rate = resampled->rate;
    planes x = planes_part(resampled, resampled->pre, 0, resampled->frames);
    if (p->start > 0 || p->length > 0) {
        const int start = frames_of(p->start, own->rate), length = frames_of(p->length, own->rate);
        const int left = own->frames - start;
        planes_replace(&x, planes_part(own, start ? 0 : own->pre, start, length ? (int)fmin(length, left) : left));
        if (rate != own->rate)
            planes_replace(&x, planes_resample(&x, rate / own->rate, rate));
    }
    if (p->trim != 0)
        planes_replace(&x, planes_part(&x, x.pre, 0, planes_last(&x, planes_peak(&x) * pow(10, p->trim / 20)) + 1));
    if (p->align == GPUCONV_ALIGN_ONSET) {
        const int onset = planes_first(&x, planes_peak(&x) * 1e-3);
        planes_replace(&x, planes_part(&x, 0, onset, x.frames - onset));
    } else if (p->align == GPUCONV_ALIGN_PEAK) {
        const int peak = planes_first(&x, planes_peak(&x));
        planes_replace(&x, planes_part(&x, x.pre + peak, peak, x.frames - peak));
    }
    for (int c = 0; c < x.count && p->reverse; c++)
        for (int i = 0, n = x.pre + x.frames; i < n / 2; i++) {
            const double other = x.x[c][n - 1 - i];
            x.x[c][n - 1 - i] = x.x[c][i];
            x.x[c][i] = other;
        }
    if (p->reverse) { /* time zero is the last frame of the response itself */
        const int ring = x.ring;
        x.frames += x.pre - ring;
        x.ring = x.pre;
        x.pre = ring;
    }
    if (p->stretch != 0)
        planes_replace(&x, planes_resample(&x, p->stretch, rate));
    if (p->minimum_phase)
        planes_replace(&x, planes_minimum_phase(&x));
    const int fade = frames_of(p->fade, rate);
    for (int c = 0; c < x.count; c++)
        for (int i = 0; i < fade && i < x.frames; i++)
            x.x[c][x.pre + x.frames - 1 - i] *= 0.5 - 0.5 * cos(pi * i / fade);
    if (p->series_count == 2)
        planes_replace(&x, planes_series(&x, &each->resampled));
    if (p->series_count > 0)
        planes_replace(&x, planes_series(&x, &one->resampled));
    const int delay = frames_of(p->predelay, rate);
    if (delay)
        planes_replace(&x, planes_part(&x, x.pre, -delay, x.frames + delay));
    return x;
}

/* Sums the planes into routes: plane `input * outputs + output` of the result. */
static planes routed(const planes *from, const form *f) {
    planes made = planes_new(f->inputs * f->outputs, from->pre, from->frames, from->rate);
    made.ring = from->ring;
    for (int r = 0; r < made.count; r++)
        for (int p = 0; p < from->count; p++)
            for (int i = 0; i < from->pre + from->frames && f->route[r / f->outputs][r % f->outputs] >> p & 1; i++)
                made.x[r][i] += from->x[p][i];
    return made;
}

/* Returns the gain of a normalisation; 1 for the loudness, whose gain the comparison finds. */
static double gain_of(const planes *x, const form *f, gpuconv_normalize how) {
    double most = 0;
    for (int o = 0; o < f->outputs && how >= GPUCONV_NORMALIZE_L1; o++) {
        double sum = 0;
        for (int r = o; r < x->count; r += f->outputs)
            for (int i = 0; i < x->pre + x->frames; i++)
                sum += how == GPUCONV_NORMALIZE_L1 ? fabs(x->x[r][i]) : x->x[r][i] * x->x[r][i];
        most = fmax(most, sum);
    }
    return how == GPUCONV_NORMALIZE_PEAK     ? 1 / planes_peak(x)
           : how == GPUCONV_NORMALIZE_L1     ? 1 / most
           : how == GPUCONV_NORMALIZE_ENERGY ? 1 / sqrt(most)
                                             : 1;
}

static bool takes_dry(const form *f, int route) {
    return f->inputs == 1 || route / f->outputs == route % f->outputs;
}

/* Applies gain, wet and dry. */
static void set_levels(planes *x, const form *f, const gpuconv_preparation *p) {
    const double gain = gain_of(x, f, p->normalize) * pow(10, (p->gain + p->wet) / 20), dry = pow(10, p->dry / 20);
    for (int r = 0; r < x->count; r++) {
        for (int i = 0; i < x->pre + x->frames; i++)
            x->x[r][i] *= gain;
        x->x[r][x->pre] += takes_dry(f, r) ? dry : 0;
    }
}

/* ---- Comparison -------------------------------------------------------------------------------------------------- */

/* Returns the error of all routes relative to what is expected, by the power; NaN if a route exists that should not, or
 * the lengths differ by more than the ringing. The gain that keeps the loudness is not compared. */
static double error_of(const gpuconv_ir *ir, const planes *want, const form *f, const gpuconv_preparation *p,
                       bool smoothed) {
    const int lead = (int)gpuconv_ir_lead(ir), pre = want->pre > lead ? want->pre : lead, n = pre + want->frames;
    const int64_t frames = gpuconv_ir_frames(ir) - lead;
    double power[2] = {0, 0}, product = 0, error = 0;
    if (frames < want->frames - want->ring || frames > want->frames || gpuconv_ir_inputs(ir) != f->inputs ||
        gpuconv_ir_outputs(ir) != f->outputs)
        return NAN;
    double *got = malloc(2 * (size_t)n * sizeof *got), *expected = got + n;
    CHECK(got, "no memory");
    for (int pass = 0; pass < 2; pass++) { /* the gain, then the error */
        const double gain = pass && p->normalize == GPUCONV_NORMALIZE_LOUDNESS ? product / power[1] : 1;
        for (int r = 0; r < want->count; r++) {
            const float *taps = gpuconv_ir_taps(ir, r / f->outputs, r % f->outputs);
            const bool exists = f->route[r / f->outputs][r % f->outputs] || (takes_dry(f, r) && p->dry > -HUGE_VAL);
            if ((taps != NULL) != exists)
                error = NAN;
            for (int i = 0; i < n; i++) {
                expected[i] = planes_at(want, r, i - pre);
                got[i] = taps && i >= pre - lead && i < pre - lead + gpuconv_ir_frames(ir)
                             ? (double)taps[i - (pre - lead)]
                             : 0;
            }
            if (smoothed) {
                planes_smooth(expected, n);
                planes_smooth(got, n);
            }
            for (int i = 0; i < n; i++) {
                const double d = got[i] - gain * expected[i];
                power[0] += pass ? gain * expected[i] * gain * expected[i] : 0;
                power[1] += pass ? 0 : expected[i] * expected[i];
                product += pass ? 0 : got[i] * expected[i];
                error += pass ? d * d : 0;
            }
        }
    }
    free(got);
    return sqrt(error / power[0]);
}

/* ---- The table --------------------------------------------------------------------------------------------------- */

/* A step. `linear`: the oracle knows what it makes of noise that was interpolated, seen through the pulse. The value 0
 * of `dry` stands for none. */
typedef struct step {
    const char *name;
    bool linear;
    gpuconv_preparation p;
} step;

#define SECONDS(frames) ((frames) / (double)FORM_RATE)
static const step steps[] = {
    {"none", true, {0}},
    {"start", true, {.start = SECONDS(FORM_START)}},
    {"length", true, {.length = SECONDS(FORM_LENGTH)}},
    {"start and length", true, {.start = SECONDS(FORM_START), .length = SECONDS(FORM_LENGTH)}},
    {"trim", false, {.trim = -40}},
    {"onset", false, {.align = GPUCONV_ALIGN_ONSET}},
    {"peak", false, {.align = GPUCONV_ALIGN_PEAK}},
    {"reverse", true, {.reverse = true}},
    {"stretch", false, {.stretch = 1.5}},
    {"minimum phase", false, {.minimum_phase = true}},
    {"fade", false, {.fade = 0.001}},
    {"series", true, {.series_count = 1}},
    {"series of each", true, {.series_count = 2}}, /* the one in the layout, and the one for all */
    {"predelay", true, {.predelay = 0.002}},
    {"normalize peak", false, {.normalize = GPUCONV_NORMALIZE_PEAK}},
    {"normalize l1", false, {.normalize = GPUCONV_NORMALIZE_L1}},
    {"normalize energy", false, {.normalize = GPUCONV_NORMALIZE_ENERGY}},
    {"normalize loudness", false, {.normalize = GPUCONV_NORMALIZE_LOUDNESS}},
    {"gain", true, {.gain = -3}},
    {"wet and dry", true, {.wet = -2, .dry = -10}},
    {"all",
     false,
     {.start = SECONDS(FORM_START),
      .length = SECONDS(FORM_LENGTH),
      .trim = -110,
      .reverse = true,
      .stretch = 1.5,
      .fade = 0.001,
      .series_count = 1,
      .predelay = 0.002,
      .normalize = GPUCONV_NORMALIZE_PEAK,
      .gain = -3,
      .wet = -2,
      .dry = -10}},
};

/* Returns whether the oracle knows the result. */
static bool is_known(const form *f, const step *s, material m, double rate) {
    const bool interpolated_noise = m == NOISE && (rate != FORM_RATE || f->fast);
    if (s->p.series_count == 2 && (!form_is_audio(f) || f->count == 1 || (f->packed && f->outputs == 1)))
        return false;       /* matrices are not put in series with each other, and one channel is for all */
    if (s->p.minimum_phase) /* the logarithm of a spectrum with empty bands is not determined */
        return m == NOISE && !interpolated_noise;
    if (s->p.stretch > 0 && s->p.trim < 0) /* all */
        return m == SMOOTH && !form_is_sofa(f);
    return form_is_sofa(f) && m == SMOOTH ? false : s->linear || !interpolated_noise;
}

static gpuconv_preparation preparation_of(const form *f, const step *s, const char *const *series) {
    gpuconv_preparation p = s->p;
    p.size = sizeof p;
    p.layout = f->layout;
    p.direction = f->direction;
    p.speakers = f->speakers;
    p.series = series + 2 - p.series_count;
    p.dry = p.dry < 0 ? p.dry : -HUGE_VAL;
    if (form_is_sofa(f)) { /* which has 128 frames */
        p.start /= 35;
        p.length /= 3;
    }
    return p;
}

typedef struct result {
    int count, failed;
    double worst[2]; /* of files and matrices; of SOFA files */
} result;

/* Prepares one form with every step at its own rate, and with every other one at another rate. */
static void compare_steps(const form *f, material m, double rate, result *total) {
    const char *path = form_is_sofa(f) ? files_source("tests/sofa/head.sofa") : files_path("%s", f->file);
    const char *const series[] = {files_path("each.wav"), files_path("one-for-all.wav")};
    planes own = form_planes(f, m, path);
    if (!own.count)
        return;
    source base = source_of(own, rate), one = source_of(form_write_one(series[1], m, 20), rate);
    source each = form_is_audio(f) ? source_of(form_write_audio(f, m, series[0], 10), rate)
                                   : source_of(planes_new(0, 0, 0, rate), rate);
    for (const step *s = steps; s < steps + COUNT(steps); s++) {
        if (!is_known(f, s, m, rate) || (rate != FORM_RATE && (f - forms + (s - steps) + (rate > FORM_RATE)) % 2))
            continue;
        const gpuconv_preparation p = preparation_of(f, s, series);
        planes x = shaped(&base, &p, &each, &one);
        planes_replace(&x, routed(&x, f));
        set_levels(&x, f, &p);
        gpuconv_ir *ir;
        gpuconv_error reason = {0};
        (void)gpuconv_ir_prepare(path, &p, f->inputs, rate, &ir, &reason);
        const bool smoothed = m == NOISE && (rate != FORM_RATE || f->fast || p.stretch > 0);
        const double error = ir ? error_of(ir, &x, f, &p, smoothed) : (double)NAN;
        const double bound = smoothed ? 1e-3 : 1e-4;
        if (!(error <= bound)) {
            fprintf(stderr, "%-22s %-16s %s %g Hz: error %.3g\n", f->name, s->name, m == NOISE ? "noise" : "smooth",
                    rate, error);
            total->failed++;
        }
        total->worst[form_is_sofa(f)] = fmax(total->worst[form_is_sofa(f)], error);
        total->count++;
        gpuconv_ir_free(ir);
        planes_free(&x);
    }
    source_free(&base);
    source_free(&one);
    source_free(&each);
}

static void every_layout_goes_through_every_step(void **state) {
    (void)state;
    static const double rates[] = {48000, 44100, 96000};
    result total = {0, 0, {0, 0}};
    for (material m = HARNESS_FEWER > 1 ? NOISE : SMOOTH; m <= NOISE; m++) {
        form_write_matrices(m);
        for (int f = 0; f < COUNT(forms); f++)
            for (int r = 0; r < COUNT(rates) - (HARNESS_FEWER > 1); r++)
                compare_steps(&forms[f], m, rates[r], &total);
    }
    printf("%d combinations, worst error %.3g, of SOFA files %.3g\n", total.count, total.worst[0], total.worst[1]);
    CHECK(total.failed == 0, "%d of %d combinations differ from the oracle", total.failed, total.count);
}

static void a_length_beyond_any_response_keeps_all_of_it(void **state) {
    (void)state;
    planes one = form_write_one(files_path("a.wav"), NOISE, 0);
    gpuconv_preparation p = gpuconv_preparation_default();
    gpuconv_ir *ir;
    p.length = 1e6;
    assert_int_equal(gpuconv_ir_prepare(files_path("a.wav"), &p, 1, 1e7, &ir, NULL), GPUCONV_OK);
    const double ratio = 1e7 / FORM_RATE;
    const int64_t frames = gpuconv_ir_frames(ir) - gpuconv_ir_lead(ir);
    assert_in_range(frames, ceil(FORM_FRAMES * ratio), (FORM_FRAMES + 130) * ratio);
    gpuconv_ir_free(ir);
    planes_free(&one);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_layout_goes_through_every_step),
                                       cmocka_unit_test(a_length_beyond_any_response_keeps_all_of_it)};
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
