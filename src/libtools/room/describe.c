/*
 * Reports on responses: their figures (gpuconv ir info), and the contents of a SOFA file.
 */
#include "describe.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/visible.h"
#include "libgpuconv/ir/object.h"
#include "libgpuconv/ir/sofa.h"
#include "libgpuconv/report/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Figures ----------------------------------------------------------------------------------------------------- */

enum { LABEL = 96, CELLS = 32 };

/* A row under construction. */
typedef struct row {
    gc_report_cell cell[CELLS];
    int count;
} row;

static void add_number(row *r, const char *name, double value) {
    r->cell[r->count++] = (gc_report_cell){.name = name, .number = value};
}

static void add_detail(row *r, const char *name, double value) {
    r->cell[r->count++] = (gc_report_cell){.name = name, .number = value, .detail = true};
}

static void add_text(row *r, const char *name, const char *text, bool detail) {
    r->cell[r->count++] = (gc_report_cell){.name = name, .text = text, .detail = detail};
}

/* Returns the frequency of a band, NaN of the whole spectrum. */
static double band_number(const gc_octave_band *band) {
    return band->nominal > 0 ? band->nominal : (double)NAN;
}

/* Writes the label of a row: "hall.flac channel 1, 1000 Hz". @param channel from 0; -1: none */
static const char *label_of(const gc_figures *f, bool many, int channel, const gc_octave_band *band, char *label) {
    *label = '\0';
    if (many)
        gc_append(label, LABEL, "%.60s ", gc_file_name(f->path));
    if (channel >= 0)
        gc_append(label, LABEL, "channel %d", channel + 1);
    if (band && band->nominal > 0)
        gc_append(label, LABEL, "%s%g Hz", channel >= 0 ? ", " : "", band->nominal);
    else if (channel < 0)
        gc_append(label, LABEL, "whole spectrum");
    return label;
}

static void report_file(const gc_figures *f, bool many, gpuconv_report *report) {
    const gpuconv_ir *ir = f->ir;
    double peak;
    int64_t at = gpuconv_ir_peak(ir, &peak);
    double seconds = (double)ir->frames / ir->rate, level = 20 * log10(peak), peak_at = 1e3 * (double)at / ir->rate;
    double onset = 1e3 * (double)gpuconv_ir_onset(ir, -20) / ir->rate;
    if (many) {
        row r = {.count = 0};
        add_text(&r, "file", f->path, true);
        add_number(&r, "length s", seconds);
        add_number(&r, "rate Hz", ir->rate);
        add_number(&r, "channels", ir->planes);
        add_number(&r, "peak dBFS", level);
        add_number(&r, "direct ms", onset);
        gc_report_cells(report, "responses", gc_file_name(f->path), r.count, r.cell);
        return;
    }
    gc_report_text(report, "response", "file", f->path);
    gc_report_measure(report, "response", "length", seconds, "s", 1, 0);
    gc_report_count(report, "response", "frames", ir->frames);
    gc_report_measure(report, "response", "rate", ir->rate, "Hz", 1, 0);
    gc_report_count(report, "response", "channels", ir->planes);
    if (peak == 0)
        gc_report_text(report, "response", "note", "the response is silent");
    gc_report_measure(report, "response", "peak", level, "dBFS", 1, 0);
    gc_report_measure(report, "response", "peak at", peak_at, "ms", 1, 0);
    gc_report_measure(report, "response", "direct sound after", onset, "ms", 1, 0);
}

/* Returns the level of an energy in dB; NaN of silence. */
static double level_of(double energy) {
    return energy > 0 ? 10 * log10(energy) : (double)NAN;
}

static void report_figure(const gc_figures *f, const gc_figures_options *o, bool many, const gc_figure *figure,
                          gpuconv_report *report) {
    const gc_acoustics *a = &figure->a;
    bool whole = !(figure->band.nominal > 0);
    char label[LABEL], doubt[LABEL];
    row r = {.count = 0};
    add_text(&r, "file", f->path, true);
    add_detail(&r, "channel", figure->channel + 1);
    add_detail(&r, "band", band_number(&figure->band));
    add_number(&r, "EDT s", a->edt);
    add_number(&r, "T20 s", a->t20);
    add_number(&r, "T30 s", a->t30);
    add_number(&r, "C50 dB", a->c50);
    add_number(&r, "C80 dB", a->c80);
    add_number(&r, "D50 %", 100 * a->d50);
    add_number(&r, "Ts ms", 1000 * a->centre);
    if (o->reference || !isnan(o->reference_level))
        add_number(&r, "G dB", figure->strength);
    if (o->lateral)
        add_number(&r, "LF", figure->lateral);
    add_number(&r, "INR dB", a->inr);
    add_text(&r, "doubt", gc_doubt_text(a->doubt, doubt, sizeof doubt), false);
    add_detail(&r, "curvature %", a->curvature);
    add_detail(&r, "non-linearity T20", a->nonlinearity20);
    add_detail(&r, "non-linearity T30", a->nonlinearity30);
    add_detail(&r, "noise dB", a->noise);
    add_detail(&r, "energy dB", level_of(a->energy));
    add_detail(&r, "STI", whole ? f->speech[figure->channel].sti : (double)NAN);
    add_detail(&r, "IACC", figure->ears.all);
    add_detail(&r, "IACC early", figure->ears.early);
    add_detail(&r, "IACC late", figure->ears.late);
    gc_report_cells(report, "acoustics", label_of(f, many, figure->channel, &figure->band, label), r.count, r.cell);
}

static void report_speech(const gc_figures *f, bool many, gpuconv_report *report) {
    static const char *const names[GC_SPEECH_BANDS] = {"125 Hz",  "250 Hz",  "500 Hz", "1000 Hz",
                                                       "2000 Hz", "4000 Hz", "8000 Hz"};
    for (int c = 0; c < f->channels; c++) {
        char label[LABEL];
        row r = {.count = 0};
        add_text(&r, "file", f->path, true);
        add_detail(&r, "channel", c + 1);
        add_number(&r, "STI", f->speech[c].sti);
        for (int k = 0; k < GC_SPEECH_BANDS; k++)
            add_number(&r, names[k], f->speech[c].mti[k]);
        add_text(&r, "rating", gc_speech_rating(f->speech[c].sti), false);
        gc_report_cells(report, "speech", label_of(f, many, c, NULL, label), r.count, r.cell);
    }
}

static void report_ears(const gc_figures *f, bool many, gpuconv_report *report) {
    for (int b = 0; b < f->bands; b++) {
        const gc_figure *figure = gc_figure_at(f, 0, b);
        char label[LABEL];
        row r = {.count = 0};
        add_text(&r, "file", f->path, true);
        add_detail(&r, "band", band_number(&figure->band));
        add_number(&r, "IACC", figure->ears.all);
        add_number(&r, "early", figure->ears.early);
        add_number(&r, "late", figure->ears.late);
        gc_report_cells(report, "binaural", label_of(f, many, -1, &figure->band, label), r.count, r.cell);
    }
}

void gc_describe(const gc_figures *f, const gc_figures_options *o, bool many, gpuconv_report *report) {
    report_file(f, many, report);
    for (int c = 0; c < f->channels; c++)
        for (int b = 0; b < f->bands; b++)
            report_figure(f, o, many, gc_figure_at(f, c, b), report);
    report_speech(f, many, report);
    if (f->channels == 2 && !o->lateral)
        report_ears(f, many, report);
}

/* ---- Several bands, several positions ---------------------------------------------------------------------------- */

enum { SINGLES = 7 };
static const char *const single_names[SINGLES] = {"T mid s", "bass ratio", "EDT s", "C80 dB", "D50 %", "Ts ms", "G dB"};

/* Fills T mid, the bass ratio, and the others at 500 Hz and 1 kHz (ISO 3382-1, table A.1). */
static void fill_singles(const gc_figures *f, int channel, double value[SINGLES]) {
    value[0] = gc_mid_of(f, channel, GC_T30);
    value[1] = gc_bass_ratio(f, channel);
    value[2] = gc_mid_of(f, channel, GC_EDT);
    value[3] = gc_mid_of(f, channel, GC_C80);
    value[4] = gc_mid_of(f, channel, GC_D50);
    value[5] = gc_mid_of(f, channel, GC_CENTRE);
    value[6] = isnan(f->figure->strength) ? (double)NAN : gc_mid_of(f, channel, GC_LEVEL);
}

/* Reports one row of single numbers. @param has_strength the files have G */
static void report_singles(const char *label, const char *file, const double *value, bool has_strength,
                           gpuconv_report *report) {
    row r = {.count = 0};
    add_text(&r, "file", file, true);
    for (int k = 0; k < SINGLES - !has_strength; k++)
        add_number(&r, single_names[k], value[k]);
    gc_report_cells(report, "single numbers", label, r.count, r.cell);
}

/* Reports the mean and the standard deviation of the parameters by band. */
static void report_means(const gc_positions *p, int count, gpuconv_report *report) {
    static const gc_quantity shown[] = {GC_EDT, GC_T20, GC_T30, GC_C80, GC_D50, GC_CENTRE};
    enum { SHOWN = sizeof shown / sizeof *shown };
    const gc_figures *widest = gc_positions_widest(p);
    char list[40], label[LABEL], name[SHOWN][2][24];
    (void)snprintf(list, sizeof list, "mean of %d", count);
    for (int b = 0; b < widest->bands; b++) {
        const gc_octave_band *band = &widest->figure[b].band;
        row r = {.count = 0};
        add_detail(&r, "band", band_number(band));
        for (int k = 0; k < SHOWN; k++) {
            const gc_quantity_info *about = &gc_quantity_about[shown[k]];
            gc_mean m = gc_positions_mean(p, band->nominal, shown[k]);
            (void)snprintf(name[k][0], sizeof name[k][0], "%s %s", about->name, about->unit);
            (void)snprintf(name[k][1], sizeof name[k][1], "+- %s", about->name);
            add_number(&r, name[k][0], m.mean);
            add_number(&r, name[k][1], m.deviation);
        }
        gc_report_cells(report, list, label_of(widest, false, -1, band, label), r.count, r.cell);
    }
}

void gc_describe_positions(const gc_positions *p, gpuconv_report *report) {
    const int count = gc_positions_count(p);
    const bool has_strength = !isnan(p->figures->figure->strength);
    const bool has_bands = gc_positions_widest(p)->bands > 1;
    gc_mean mean[SINGLES] = {{0}};
    double value[SINGLES], deviation[SINGLES];
    char label[LABEL];
    for (int k = 0; has_bands && k < count; k++) {
        int channel;
        const gc_figures *f = gc_positions_at(p, k, &channel);
        fill_singles(f, channel, value);
        for (int i = 0; i < SINGLES; i++)
            gc_mean_add(&mean[i], value[i]);
        report_singles(label_of(f, p->files > 1, channel, NULL, label), f->path, value, has_strength, report);
    }
    if (count < 2)
        return;
    for (int i = 0; i < SINGLES; i++) {
        const gc_mean m = gc_mean_finish(mean[i]);
        value[i] = m.mean;
        deviation[i] = m.deviation;
    }
    if (has_bands) {
        report_singles("mean", "", value, has_strength, report);
        report_singles("standard deviation", "", deviation, has_strength, report);
    }
    report_means(p, count, report);
}

/* ---- SOFA -------------------------------------------------------------------------------------------------------- */

/* Reports the extent of the directions of a set, and their distances. */
static void report_directions(const gpuconv_sofa *s, gpuconv_report *report) {
    const double degree = 180 / M_PI;
    double low = 90, high = -90, nearest = HUGE_VAL, farthest = 0;
    for (int m = 0; m < s->measurements; m++) {
        const double *p = s->position + 3 * (int64_t)m;
        const double flat = sqrt(p[0] * p[0] + p[1] * p[1]), distance = sqrt(flat * flat + p[2] * p[2]);
        const double elevation = atan2(p[2], flat) * degree;
        low = fmin(low, elevation);
        high = fmax(high, elevation);
        nearest = fmin(nearest, distance);
        farthest = fmax(farthest, distance);
    }
    gc_report_count(report, "responses", "directions", s->measurements);
    gc_report_measure(report, "responses", "lowest elevation", low, "degrees", 1, 0);
    gc_report_measure(report, "responses", "highest elevation", high, "degrees", 1, 0);
    gc_report_measure(report, "responses", "nearest source", nearest, "m", 1, 0);
    gc_report_measure(report, "responses", "farthest source", farthest, "m", 1, 0);
}

/* Returns the widest gap: the largest angle from any direction of a dense spiral to the nearest measured one. Ends
 * early when the thread's flag is raised. */
static double widest_gap(const gpuconv_sofa *s) {
    enum { POINTS = 2000 };
    double widest = 0;
    for (int p = 0; p < POINTS && !gc_cancelled(); p++) {
        const double z = 1 - (2 * p + 1.0) / POINTS, around = p * M_PI * (3 - sqrt(5)), flat = sqrt(1 - z * z);
        const double at[3] = {flat * cos(around), flat * sin(around), z};
        double degrees;
        (void)gc_sofa_nearest(s, at, &degrees);
        widest = fmax(widest, degrees);
    }
    return widest;
}

gpuconv_status gc_describe_sofa(const char *path, gpuconv_report *report, gpuconv_error *error) {
    gpuconv_sofa *s;
    gpuconv_status status = gc_sofa_load(path, GPUCONV_INTERPOLATE_NEAREST, &s, error);
    if (status)
        return status;
    char shown[256];
    gc_report_text(report, "responses", "file", path);
    if (*s->conventions)
        gc_report_text(report, "responses", "conventions", gc_visible(shown, sizeof shown, s->conventions));
    if (*s->title)
        gc_report_text(report, "responses", "title", gc_visible(shown, sizeof shown, s->title));
    if (*s->listener)
        gc_report_text(report, "responses", "listener", gc_visible(shown, sizeof shown, s->listener));
    gc_report_measure(report, "responses", "rate", s->responses->rate, "Hz", 1, 0);
    gc_report_count(report, "responses", "receivers", s->receivers);
    if (s->exchanged)
        gc_report_text(report, "responses", "order", "the file has the right receiver first: both are exchanged");
    gc_report_measure(report, "responses", "length",
                      (double)(s->responses->frames + (int64_t)ceil(s->longest_delay)) / s->responses->rate, "s", 1, 0);
    gc_report_count(report, "responses", "frames", s->responses->frames);
    gc_report_measure(report, "responses", "longest delay", 1e3 * s->longest_delay / s->responses->rate, "ms", 1, 0);
    report_directions(s, report);
    gc_report_measure(report, "responses", "widest gap", widest_gap(s), "degrees", 1, 0);
    gpuconv_sofa_free(s);
    return gc_cancelled() ? gc_fail_cancelled(error, path) : GPUCONV_OK;
}
