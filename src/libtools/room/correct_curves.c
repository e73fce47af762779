/*
 * Functions of frequency that a correction is made of: curves of levels, parametric equalisers, and crossovers.
 */
#include "correct.h"
#include "sine_sweep.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/lines.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 3.14159265358979323846;
#define J ((double complex)_Complex_I)

/* ---- Curves of levels -------------------------------------------------------------------------------------------- */

/* A curve has the form of a calibration file: a straight line over the logarithm of the frequency between its points.
 */
struct gc_level_curve {
    const gc_microphone *points;
    gc_microphone *file; /* that owns them; NULL: one of the named curves */
};

static const struct {
    const char *name;
    gc_microphone points;
} named_curves[] = {
    {"flat", {(double[]){1000}, (double[]){0}, 1, 0}},
    /* H. Moller, Relevant loudspeaker tests in studios (Bruel & Kjaer, 1974): optimum curve in a living room. */
    {"house", {(double[]){20, 200, 20000}, (double[]){0, 0, -6}, 3, 0}},
    /* SMPTE ST 202:2010, large rooms: flat from 63 Hz to 2 kHz, then 3 dB an octave, from 10 kHz on 6 dB. */
    {"x-curve", {(double[]){31.5, 50, 63, 2000, 10000, 20000}, (double[]){-3.5, -1, 0, 0, -6.97, -12.97}, 6, 0}},
};

gpuconv_status gc_curve_open(const char *name, void (*note)(const char *), gc_level_curve **curve,
                             gpuconv_error *error) {
    gc_level_curve *c = *curve = gc_calloc(1, (int64_t)sizeof *c);
    if (!c)
        return gc_fail_memory(error, name);
    for (size_t i = 0; i < sizeof named_curves / sizeof *named_curves; i++)
        if (strcmp(name, named_curves[i].name) == 0) {
            c->points = &named_curves[i].points;
            return GPUCONV_OK;
        }
    const char *const files[] = {name, NULL};
    const gpuconv_status status =
        gc_microphones_new(&(gc_microphone_files){.calibration = files, .note = note}, 1, &c->file, error);
    c->points = c->file;
    if (status) {
        gc_curve_close(c);
        *curve = NULL;
    }
    return status;
}

void gc_curve_close(gc_level_curve *c) {
    if (c)
        gc_microphones_free(c->file, 1);
    free(c);
}

double gc_curve_at(const gc_level_curve *c, double hz) {
    return gc_microphone_level(c->points, hz);
}

/* ---- Parametric equalisers --------------------------------------------------------------------------------------- */

typedef enum eq_kind { PEAK, LOW_SHELF, HIGH_SHELF, LOW_PASS, HIGH_PASS, BAND_PASS, NOTCH, ALL_PASS } eq_kind;

static const struct {
    const char *name;
    eq_kind kind;
} eq_names[] = {{"PK", PEAK},       {"PEQ", PEAK},       {"LS", LOW_SHELF},   {"LSC", LOW_SHELF}, {"LSQ", LOW_SHELF},
                {"HS", HIGH_SHELF}, {"HSC", HIGH_SHELF}, {"HSQ", HIGH_SHELF}, {"LP", LOW_PASS},   {"LPQ", LOW_PASS},
                {"HP", HIGH_PASS},  {"HPQ", HIGH_PASS},  {"BP", BAND_PASS},   {"NO", NOTCH},      {"AP", ALL_PASS}};

/* A filter as a line of the list has it. */
typedef struct eq_line {
    eq_kind kind;
    double hz, gain, q; /* q: NaN if there is none */
} eq_line;

/* Computes the coefficients by the cookbook. */
static gc_eq_filter design(const eq_line *l, double rate) {
    const double w = 2 * pi * l->hz / rate, c = cos(w), s = sin(w), a = pow(10, l->gain / 40), alpha = s / (2 * l->q);
    const double up = a + 1, down = a - 1, root = 2 * sqrt(a) * alpha;
    gc_eq_filter f = {{0}, {1 + alpha, -2 * c, 1 - alpha}};
    switch (l->kind) {
    case PEAK:
        f = (gc_eq_filter){{1 + alpha * a, -2 * c, 1 - alpha * a}, {1 + alpha / a, -2 * c, 1 - alpha / a}};
        break;
    case LOW_SHELF:
        f = (gc_eq_filter){{a * (up - down * c + root), 2 * a * (down - up * c), a * (up - down * c - root)},
                           {up + down * c + root, -2 * (down + up * c), up + down * c - root}};
        break;
    case HIGH_SHELF:
        f = (gc_eq_filter){{a * (up + down * c + root), -2 * a * (down + up * c), a * (up + down * c - root)},
                           {up - down * c + root, 2 * (down - up * c), up - down * c - root}};
        break;
    case LOW_PASS:
        memcpy(f.b, (double[]){(1 - c) / 2, 1 - c, (1 - c) / 2}, sizeof f.b);
        break;
    case HIGH_PASS:
        memcpy(f.b, (double[]){(1 + c) / 2, -1 - c, (1 + c) / 2}, sizeof f.b);
        break;
    case BAND_PASS:
        memcpy(f.b, (double[]){alpha, 0, -alpha}, sizeof f.b);
        break;
    case NOTCH:
        memcpy(f.b, (double[]){1, -2 * c, 1}, sizeof f.b);
        break;
    case ALL_PASS:
        memcpy(f.b, (double[]){1 - alpha, -2 * c, 1 + alpha}, sizeof f.b);
    }
    return f;
}

/* Finds "NAME VALUE" among the words from `first` on. @return false: it is there and no number */
static bool find_value(gc_table *t, int first, const char *name, double *value) {
    for (int i = first; i + 1 < t->fields; i++)
        if (gc_same_word(t->field[i], name))
            return gc_table_number(t, i + 1, value);
    return true;
}

/* Takes "ON PK Fc 105 Hz Gain -2.8 dB Q 1.41", from word `first` on. @return FORMAT */
static gpuconv_status take_filter(gc_table *t, int first, double rate, gc_eq *eq, gpuconv_error *error) {
    eq_line l = {.hz = (double)NAN, .q = (double)NAN};
    double width = (double)NAN;
    size_t k = 0;
    if (first >= t->fields || gc_same_word(t->field[first], "OFF"))
        return GPUCONV_OK;
    if (!gc_same_word(t->field[first], "ON") || first + 1 == t->fields)
        return gc_table_fail(t, error, "is neither \"ON\" with a filter nor \"OFF\"");
    if (gc_same_word(t->field[first + 1], "None"))
        return GPUCONV_OK;
    while (k < sizeof eq_names / sizeof *eq_names && !gc_same_word(t->field[first + 1], eq_names[k].name))
        k++;
    if (k == sizeof eq_names / sizeof *eq_names)
        return gc_table_fail(t, error, "has no filter that is known here: PK, LSC, HSC, LP, HP, BP, NO and AP are");
    l.kind = eq_names[k].kind;
    if (!find_value(t, first + 2, "Fc", &l.hz) || !find_value(t, first + 2, "Gain", &l.gain) ||
        !find_value(t, first + 2, "Q", &l.q) || !find_value(t, first + 2, "Oct", &width))
        return gc_table_fail(t, error, "has a value that is no number");
    if (width > 0) /* octaves between the points of half the gain */
        l.q = 1 / (2 * sinh(log(2) / 2 * width));
    if (isnan(l.q) && (l.kind == LOW_PASS || l.kind == HIGH_PASS))
        l.q = sqrt(0.5);
    if (!(l.hz > 0 && l.hz < rate / 2 && fabs(l.gain) <= 60 && l.q >= 0.01 && l.q <= 1000))
        return gc_table_fail(t, error,
                             "needs \"Fc\" in Hz below half of the rate, %.0f Hz, \"Gain\" from -60 to 60 dB, and "
                             "\"Q\" from 0.01 to 1000 or \"BW Oct\"",
                             rate / 2);
    if (eq->count == GC_EQ_FILTERS)
        return gc_table_fail(t, error, "is one of more than %d filters", GC_EQ_FILTERS);
    eq->filter[eq->count++] = design(&l, rate);
    return GPUCONV_OK;
}

/* Takes a line. Those before the first filter that begin with other words are the heading of REW.
 * @return FORMAT */
static gpuconv_status take_line(gc_table *t, double rate, gc_eq *eq, bool *begun, gpuconv_error *error) {
    double db;
    int first = 1;
    if (gc_begins_with(t->field[0], "Preamp:")) {
        if (t->fields < 2 || !gc_table_number(t, 1, &db) || fabs(db) > 120)
            return gc_table_fail(t, error, "is no level from -120 to 120 dB");
        eq->gain *= pow(10, db / 20);
        *begun = true;
        return GPUCONV_OK;
    }
    if (!gc_begins_with(t->field[0], "Filter") || (t->fields > 1 && gc_same_word(t->field[1], "Settings")))
        return *begun ? gc_table_fail(t, error, "is no line of \"Preamp:\" or \"Filter\", which alone are read")
                      : GPUCONV_OK;
    *begun = true;
    if (!strchr(t->field[0], ':')) /* "Filter 1:" */
        first++;
    return take_filter(t, first, rate, eq, error);
}

gpuconv_status gc_eq_read(const char *path, double rate, gc_eq *eq, gpuconv_error *error) {
    static const gc_table_form form = {.kind = GC_TABLE_WORDS, .most = 32, .comments = true};
    gc_lines lines;
    gc_table table = {0};
    bool begun = false;
    *eq = (gc_eq){.gain = 1};
    gpuconv_status status = gc_lines_open(&lines, path, GC_TEXT_LONGEST, GC_TEXT_MOST, error);
    if (!status)
        status = gc_table_open(&table, &form, &lines, error);
    for (bool more = true; more && !status;) {
        status = gc_table_next(&table, &more, error);
        if (!status && more)
            status = take_line(&table, rate, eq, &begun, error);
    }
    gc_table_close(&table);
    gc_lines_close(&lines);
    if (!status && !begun)
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: has no line of \"Preamp:\" or \"Filter\"", path);
    return status;
}

double complex gc_eq_at(const gc_eq *eq, double rate, double hz) {
    const double complex z = cexp(-J * 2 * pi * hz / rate);
    double complex product = eq->gain;
    for (int i = 0; i < eq->count; i++) {
        const gc_eq_filter *f = &eq->filter[i];
        product *= (f->b[0] + z * (f->b[1] + z * f->b[2])) / (f->a[0] + z * (f->a[1] + z * f->a[2]));
    }
    return product;
}

/* ---- Crossovers -------------------------------------------------------------------------------------------------- */

bool gc_crossover_parse(const char *text, gc_crossover *c) {
    static const struct {
        const char *name;
        int order;
        bool bessel;
    } kinds[] = {{"lr2:", 2, false},    {"lr4:", 4, false},    {"lr8:", 8, false},
                 {"bessel2:", 2, true}, {"bessel4:", 4, true}, {"bessel8:", 8, true}};
    *c = (gc_crossover){0};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (strncmp(text, kinds[k].name, strlen(kinds[k].name)) == 0) {
            c->order = kinds[k].order;
            c->bessel = kinds[k].bessel;
            text += strlen(kinds[k].name);
        }
    if (c->order)
        c->count = gc_numbers_parse(text, ",", c->hz, GC_CROSSOVERS);
    for (int i = 0; i < c->count; i++)
        if (!(c->hz[i] >= 1 && c->hz[i] <= 5e5 && (i == 0 || c->hz[i] > c->hz[i - 1])))
            return false;
    return c->count > 0;
}

/* Returns the polynomial of a Butterworth lowpass at s, of order 1, 2 or 4. */
static double complex butterworth(int order, double complex s) {
    return order == 1   ? s + 1
           : order == 2 ? s * s + sqrt(2) * s + 1
                        : (s * s + 2 * cos(pi / 8) * s + 1) * (s * s + 2 * sin(pi / 8) * s + 1);
}

/* Returns the lowpass of a Bessel filter at s, as a reverse Bessel polynomial, with -3 dB at s = i. */
static double complex bessel(int order, double complex s) {
    const double scale = order == 2 ? 1.361654 : order == 4 ? 2.113918 : 3.179617; /* -3 dB of the polynomial's own */
    double complex before = 1, now = 1 + scale * s;
    double zero = 1;
    for (int n = 2; n <= order; n++) {
        const double complex next = (2 * n - 1) * now + scale * s * scale * s * before;
        before = now;
        now = next;
        zero *= 2 * n - 1;
    }
    return zero / now;
}

/* Returns the lowpass or the highpass of crossover i, by the bilinear transform. */
static double complex half(const gc_crossover *c, int i, bool high, double rate, double hz) {
    const double complex s = J * tan(pi * fmin(hz / rate, 0.5)) / tan(pi * c->hz[i] / rate);
    if (c->bessel)
        return bessel(c->order, high ? 1 / s : s);
    const double complex b = butterworth(c->order / 2, s);
    return (high ? cpow(s, c->order) : 1) / (b * b);
}

double complex gc_crossover_at(const gc_crossover *c, int way, double rate, double hz) {
    const bool inverts = c->order == 2 && !c->bessel;
    double complex product = inverts && way % 2 ? -1 : 1;
    for (int i = 0; i < c->count; i++)
        if (i < way)
            product *= half(c, i, true, rate, hz);
        else if (i == way)
            product *= half(c, i, false, rate, hz);
        else if (!c->bessel) /* the all-pass filter that the ways above have */
            product *= half(c, i, false, rate, hz) + (inverts ? -1 : 1) * half(c, i, true, rate, hz);
    return product;
}
