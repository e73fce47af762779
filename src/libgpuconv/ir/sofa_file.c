/*
 * Reading of SOFA files: the data sets that AES69 names, from an HDF5 file. The responses are taken as they are
 * measured, without normalisation, and their delays beside them. Places become relative to the head, as AES69 defines
 * ListenerPosition, ListenerView and ListenerUp.
 *
 * Measured spectra become responses by the inverse real transform. Their length is any even number, so that the
 * transform is computed as a convolution with a chirp (Bluestein, IEEE Trans. Audio Electroacoust. 18 (1970), 451).
 */
#include "sofa.h"

#include "hdf5.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/dsp/finite.h"
#include "libgpuconv/dsp/fourier.h"
#include "object.h"
#include "sphere.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Places of one kind: a row of three values for each measurement (or emitter), or one row for all; count 0: none. */
typedef struct gc_places {
    int64_t count; /* of values */
    const float *value;
    bool spherical; /* degrees, degrees, metres instead of x, y, z in metres */
} gc_places;

/* The places of a file. The emitters are relative to the source, and without any the source is one itself. */
typedef struct gc_room {
    gc_places source, emitter, listener, view, up;
} gc_room;

/* ---- Places ------------------------------------------------------------------------------------------------------ */

/* Converts a row to x, y, z. */
static void to_cartesian(const gc_places *p, int64_t row, double to[3]) {
    const float *from = p->value + (p->count == 3 ? 0 : 3 * row);
    for (int k = 0; k < 3; k++)
        to[k] = (double)from[k];
    if (p->spherical) {
        const double azimuth = to[0] * M_PI / 180, elevation = to[1] * M_PI / 180, radius = to[2];
        to[0] = radius * cos(elevation) * cos(azimuth);
        to[1] = radius * cos(elevation) * sin(azimuth);
        to[2] = radius * sin(elevation);
    }
}

static void cross(const double a[3], const double b[3], double to[3]) {
    for (int k = 0; k < 3; k++)
        to[k] = a[(k + 1) % 3] * b[(k + 2) % 3] - a[(k + 2) % 3] * b[(k + 1) % 3];
}

/* Computes the axes of the head: unit vectors to the front, to the left and up. A view in spherical coordinates has no
 * roll: the files do not tell in which coordinates they give the direction up beside it. */
static void find_axes(const gc_room *room, int64_t measurement, double axis[3][3]) {
    const double least = 1e-6;
    double view[3], up[3] = {0, 0, 1}, left[3];
    to_cartesian(&room->view, measurement, view);
    if (room->up.count && !room->view.spherical)
        to_cartesian(&room->up, measurement, up);
    (void)gc_unit_vector(view, axis[0]);
    cross(up, axis[0], left);
    if (gc_unit_vector(left, axis[1]) < least) { /* looks along its direction up: any roll */
        const double other[3] = {axis[0][2], axis[0][0], axis[0][1]};
        cross(other, axis[0], left);
        (void)gc_unit_vector(left, axis[1]);
    }
    cross(axis[0], axis[1], axis[2]);
}

/* Computes where an emitter is, from the listener of a measurement: along the axes of the room, or `turned` into those
 * of the head (x to the front, y to the left, z up). In metres. */
static void locate(const gc_room *room, int64_t measurement, int64_t emitter, bool turned, double to[3]) {
    double other[3];
    to_cartesian(&room->source, measurement, to);
    if (room->emitter.count) {
        to_cartesian(&room->emitter, emitter, other);
        for (int k = 0; k < 3; k++)
            to[k] += other[k];
    }
    if (room->listener.count) {
        to_cartesian(&room->listener, measurement, other);
        for (int k = 0; k < 3; k++)
            to[k] -= other[k];
    }
    if (turned && room->view.count) {
        double axis[3][3];
        find_axes(room, measurement, axis);
        memcpy(other, to, sizeof other);
        for (int k = 0; k < 3; k++)
            to[k] = axis[k][0] * other[0] + axis[k][1] * other[1] + axis[k][2] * other[2];
    }
}

/* ---- Spectra ----------------------------------------------------------------------------------------------------- */

enum { MAX_BINS = 1 << 20 };

/* The memory of a transform of `frames` frames: arrays of `points` values; `chirp` has as many as frames. */
typedef struct workspace {
    int64_t frames, points;
    double *re, *im, *filter_re, *filter_im, *chirp_re, *chirp_im;
} workspace;

/* Computes the chirp exp(i pi n^2 / frames) and the spectrum of its conjugate. Returns false without memory. */
static bool make_workspace(workspace *w, int64_t frames) {
    const int64_t points = gc_power_of_two(frames + frames / 2 + 1);
    double *memory = gc_calloc(6 * points, sizeof *memory);
    *w = (workspace){frames, points, memory, NULL, NULL, NULL, NULL, NULL};
    if (!memory)
        return false;
    w->im = memory + points;
    w->filter_re = memory + 2 * points;
    w->filter_im = memory + 3 * points;
    w->chirp_re = memory + 4 * points;
    w->chirp_im = memory + 5 * points;
    for (int64_t n = 0; n < frames; n++) {
        const double phase = M_PI * (double)(n * n % (2 * frames)) / (double)frames;
        w->filter_re[n] = w->chirp_re[n] = cos(phase);
        w->filter_im[n] = -(w->chirp_im[n] = sin(phase));
        if (n > 0 && n <= frames / 2) {
            w->filter_re[points - n] = w->filter_re[n];
            w->filter_im[points - n] = w->filter_im[n];
        }
    }
    return gc_fourier(w->filter_re, w->filter_im, points, -1);
}

/* Transforms the values at 0 .. frames / 2 in `re` and `im`; the response is left in `re`. Returns false as gc_fourier.
 */
static bool invert(workspace *w) {
    const int64_t last = w->frames / 2;
    for (int64_t k = 0; k <= last; k++) {
        /* The frequencies between count twice: for their conjugates at the negative frequencies. */
        const double scale = (k == 0 || k == last ? 1 : 2) / (double)w->frames, re = scale * w->re[k],
                     im = k == 0 || k == last ? 0 : scale * w->im[k];
        w->re[k] = re * w->chirp_re[k] - im * w->chirp_im[k];
        w->im[k] = re * w->chirp_im[k] + im * w->chirp_re[k];
    }
    memset(w->re + last + 1, 0, (size_t)(w->points - last - 1) * sizeof *w->re);
    memset(w->im + last + 1, 0, (size_t)(w->points - last - 1) * sizeof *w->im);
    if (!gc_fourier(w->re, w->im, w->points, -1))
        return false;
    for (int64_t k = 0; k < w->points; k++) {
        const double re = w->re[k], im = w->im[k];
        w->re[k] = (re * w->filter_re[k] - im * w->filter_im[k]) / (double)w->points;
        w->im[k] = (re * w->filter_im[k] + im * w->filter_re[k]) / (double)w->points;
    }
    if (!gc_fourier(w->re, w->im, w->points, 1))
        return false;
    for (int64_t n = 0; n < w->frames; n++)
        w->re[n] = w->re[n] * w->chirp_re[n] - w->im[n] * w->chirp_im[n];
    return true;
}

/* Returns the value at 0 Hz of a spectrum that begins at its first step. A head does not shade wavelengths that are
 * much longer than itself, and so the magnitude is that of the lowest frequency; a line through the phases of the two
 * lowest ones tells the sign. A value of 0 instead would make the response's sum 0: a high-pass. */
static double extrapolate_to_zero(const double re[2], const double im[2]) {
    const double square_re = re[0] * re[0] - im[0] * im[0], square_im = 2 * re[0] * im[0];
    const double sign = square_re * re[1] + square_im * im[1] < 0 ? -1 : 1;
    return sign * hypot(re[0], im[0]);
}

/* Checks the frequencies. *first gets the number of the first one in steps: 0 or 1. Returns FORMAT. */
static gpuconv_status check_frequencies(const char *path, const gc_spectra *s, int64_t *first, gpuconv_error *error) {
    const float *f = s->frequency;
    const double last = s->bins < 2 ? 0 : (double)f[s->bins - 1];
    if (s->bins < 2 || s->bins > MAX_BINS || !gc_is_rate(2 * last))
        return gc_fail(error, GPUCONV_ERROR_FORMAT,
                       "%s: has %lld frequencies up to %g Hz; 2 to %d up to %g Hz are read", path, (long long)s->bins,
                       last, MAX_BINS, GC_MAX_RATE / 2.0);
    const double step = (last - (double)f[0]) / (double)(s->bins - 1), allowed = 0.01 * step + 1e-6 * last;
    for (int64_t k = 1; k < s->bins; k++)
        if (!(step > 0 && fabs((double)f[0] + (double)k * step - (double)f[k]) <= allowed))
            return gc_fail(error, GPUCONV_ERROR_FORMAT,
                           "%s: its frequencies are not uniform: %g Hz is number %lld from %g Hz on in mean steps of "
                           "%g Hz; only spectra of equal steps are read",
                           path, (double)f[k], (long long)k, (double)f[0], step);
    if (fabs((double)f[0]) > allowed && fabs((double)f[0] - step) > allowed)
        return gc_fail(error, GPUCONV_ERROR_FORMAT,
                       "%s: its frequencies begin at %g Hz in steps of %g Hz; they must begin at 0 or at one step",
                       path, (double)f[0], step);
    *first = fabs((double)f[0]) > allowed ? 1 : 0;
    return GPUCONV_OK;
}

/* Puts a spectrum into the workspace, and its value at 0 Hz if it has none. */
static void load(const gc_spectra *s, int64_t number, int64_t first, workspace *w) {
    for (int64_t k = 0; k < s->bins; k++) {
        w->re[first + k] = (double)s->real[number * s->bins + k];
        w->im[first + k] = (double)s->imag[number * s->bins + k];
    }
    if (first) {
        w->re[0] = extrapolate_to_zero(w->re + 1, w->im + 1);
        w->im[0] = 0;
    }
}

gpuconv_status gc_spectra_invert(const char *path, const gc_spectra *s, gc_from_spectra *to, gpuconv_error *error) {
    /* A spectrum may be relative to the centre of the head, which sound reaches up to 0.3 ms after the nearer ear. */
    const double before_zero = 1e-3;
    int64_t first = 0;
    workspace w = {0};
    *to = (gc_from_spectra){0};
    gpuconv_status status = check_frequencies(path, s, &first, error);
    if (status)
        return status;
    const int64_t frames = 2 * (s->bins + first - 1);
    to->frames = frames;
    to->rate = 2 * (double)s->frequency[s->bins - 1];
    to->lead = gc_min(llrint(before_zero * to->rate), frames / 4);
    status = gc_ir_check_memory(1, (double)s->count * (double)frames, 0, error);
    if (status)
        return status;
    to->taps = gc_alloc(s->count * frames, sizeof *to->taps);
    bool ok = to->taps && make_workspace(&w, frames);
    for (int64_t i = 0; i < s->count && ok; i++) {
        load(s, i, first, &w);
        ok = invert(&w);
        for (int64_t n = 0; n < frames; n++)
            to->taps[i * frames + (n + to->lead) % frames] = (float)w.re[n];
    }
    free(w.re);
    if (ok)
        return GPUCONV_OK;
    free(to->taps);
    to->taps = NULL;
    return gc_cancelled() ? gc_fail_cancelled(error, path) : gc_fail_memory(error, path);
}

/* ---- The file ---------------------------------------------------------------------------------------------------- */

enum {
    MAX_DELAY = 1 << 20, /* frames */
    MAX_MEASUREMENTS = 1 << 20
};

/* A data set and its values; count 0: the file has none of this name. */
typedef struct numbers {
    gc_hdf5_space space;
    int64_t count;
    float *value;
} numbers;

/* The places of a file. */
enum { SOURCE, EMITTER, LISTENER_AT, VIEW, UP, PLACES };

/* A file that is read. Its responses are those of measurements x receivers x emitters, and after
 * separate_emitters() those of (measurements x emitters) x receivers. */
typedef struct contents {
    const char *path;
    gc_hdf5 *file;
    gpuconv_error *error;
    int64_t measurements, receivers, emitters, taps, lead;
    double rate;
    numbers ir, delay, place[PLACES];
    bool spherical[PLACES];
    bool right_first; /* the file has the right one of two receivers first */
} contents;

/* The texts that describe a file. */
enum { CONVENTIONS, SOFA_CONVENTIONS, DATA_TYPE, TITLE, LISTENER, TEXTS };

/* Reads a data set if the file has one of this name, and the texts of it that are looked for. */
static gpuconv_status read_numbers(contents *c, const char *name, gc_hdf5_text *texts, int text_count, numbers *n) {
    gc_hdf5_set set;
    bool found;
    gpuconv_status status = gc_hdf5_find(c->file, name, texts, text_count, &set, &found);
    if (status || !found)
        return status;
    n->space = set.space;
    n->count = set.space.values;
    status = gc_ir_check_memory(1, (double)n->count, 0, c->error);
    return status ? status : gc_hdf5_read(c->file, &set, &n->value);
}

/* Reads frequencies, in hertz unless their units are kilohertz. */
static gpuconv_status read_hertz(contents *c, const char *name, numbers *n) {
    gc_hdf5_text unit = {.name = "Units"};
    gpuconv_status status = read_numbers(c, name, &unit, 1, n);
    const bool is_kilo = gc_same_word(unit.value, "kilohertz") || gc_same_word(unit.value, "kHz");
    if (!status && *unit.value && !is_kilo && !gc_same_word(unit.value, "hertz") && !gc_same_word(unit.value, "Hz"))
        status = gc_fail(c->error, GPUCONV_ERROR_FORMAT, "%s: the unit of %s is '%s'; hertz and kilohertz are read",
                         c->path, name, unit.value);
    for (int64_t i = 0; i < n->count && !status && is_kilo; i++)
        n->value[i] *= 1000;
    return status;
}

/* Reads spectra, and replaces them by their responses. */
static gpuconv_status read_spectra(contents *c) {
    numbers imag = {0}, frequency = {0};
    gc_from_spectra made = {0};
    gpuconv_status status = read_numbers(c, "Data.Real", NULL, 0, &c->ir);
    if (!status)
        status = read_numbers(c, "Data.Imag", NULL, 0, &imag);
    if (!status)
        status = read_hertz(c, "N", &frequency);
    const gc_hdf5_space *space = &c->ir.space;
    if (!status &&
        (space->rank != 3 || c->ir.count == 0 || imag.count != c->ir.count || frequency.count != space->size[2]))
        status =
            gc_fail(c->error, GPUCONV_ERROR_FORMAT,
                    "%s: has no data sets Data.Real and Data.Imag of measurements x receivers x frequencies, and N "
                    "of frequencies",
                    c->path);
    if (!status)
        status = gc_spectra_invert(
            c->path,
            &(gc_spectra){space->size[0] * space->size[1], space->size[2], frequency.value, c->ir.value, imag.value},
            &made, c->error);
    free(imag.value);
    free(frequency.value);
    free(c->ir.value);
    c->ir.value = made.taps;
    c->ir.space.size[2] = made.frames;
    c->ir.count = made.taps ? space->size[0] * space->size[1] * made.frames : 0;
    c->rate = made.rate;
    c->lead = made.lead;
    return status;
}

/* Reads the sampling rate, which must be the same for all measurements. */
static gpuconv_status read_rate(contents *c) {
    numbers rate = {0};
    gpuconv_status status = read_hertz(c, "Data.SamplingRate", &rate);
    if (!status && (rate.count < 1 || !gc_is_rate((double)rate.value[0])))
        status = gc_fail(c->error, GPUCONV_ERROR_FORMAT, "%s: has no valid sampling rate", c->path);
    for (int64_t i = 1; i < rate.count && !status; i++)
        if (rate.value[i] != rate.value[0])
            status = gc_fail(c->error, GPUCONV_ERROR_FORMAT,
                             "%s: has sampling rates of %g and %g Hz; the same rate is needed for all measurements",
                             c->path, (double)rate.value[0], (double)rate.value[i]);
    if (!status)
        c->rate = (double)rate.value[0];
    free(rate.value);
    return status;
}

/* Reorders the responses of measurements x receivers x taps x emitters, or of measurements x receivers x emitters x
 * taps (`taps_last`), such that every emitter of a measurement is a measurement of its own. */
static gpuconv_status separate_emitters(contents *c, bool taps_last) {
    const int64_t inner = c->emitters * c->taps;
    gpuconv_status status = gc_ir_check_memory(1, (double)c->ir.count, 0, c->error);
    float *to = status ? NULL : gc_alloc(c->ir.count, sizeof *to);
    if (!to)
        return status ? status : gc_fail_memory(c->error, c->path);
    for (int64_t row = 0; row < c->measurements * c->emitters * c->receivers; row++) {
        if (row % 1024 == 0 && gc_cancelled())
            break;
        const int64_t r = row % c->receivers, e = row / c->receivers % c->emitters,
                      m = row / c->receivers / c->emitters;
        const float *from = c->ir.value + (m * c->receivers + r) * inner + e * (taps_last ? c->taps : 1);
        for (int64_t n = 0; n < c->taps; n++)
            to[row * c->taps + n] = from[n * (taps_last ? 1 : c->emitters)];
    }
    free(c->ir.value);
    c->ir.value = to;
    return gc_cancelled() ? gc_fail_cancelled(c->error, c->path) : GPUCONV_OK;
}

/* The types of data that are read, and the numbers of the dimensions of the taps and of the emitters. */
static const struct data_type {
    const char *name;
    int rank, taps, emitters;
} data_types[] = {{"FIR", 3, 2, -1}, {"FIR-E", 4, 2, 3}, {"FIRE", 4, 3, 2}, {"TF", 3, 2, -1}};

/* Reads responses or spectra, and their sizes. */
static gpuconv_status read_data(contents *c, const struct data_type *type, const char *conventions) {
    const bool is_spectra = strcmp(type->name, "TF") == 0;
    const gc_hdf5_space *space = &c->ir.space;
    gpuconv_status status = is_spectra ? read_spectra(c) : read_numbers(c, "Data.IR", NULL, 0, &c->ir);
    if (!status && (space->rank != type->rank || c->ir.count == 0))
        status = gc_fail(c->error, GPUCONV_ERROR_FORMAT,
                         "%s: has no data set Data.IR of measurements x receivers x %s (%s)", c->path,
                         type->rank == 3   ? "taps"
                         : type->taps == 2 ? "taps x emitters"
                                           : "emitters x taps",
                         conventions);
    if (!status && !is_spectra)
        status = read_rate(c);
    if (status)
        return status;
    c->measurements = space->size[0];
    c->receivers = space->size[1];
    c->taps = space->size[type->taps];
    c->emitters = type->emitters < 0 ? 1 : space->size[type->emitters];
    const int64_t all = c->measurements * c->emitters;
    if (all > MAX_MEASUREMENTS || c->receivers > GC_MAX_CHANNELS)
        return gc_fail(c->error, GPUCONV_ERROR_FORMAT,
                       "%s: has %lld measurements and %lld receivers; at most %d and %d are read", c->path,
                       (long long)all, (long long)c->receivers, MAX_MEASUREMENTS, GC_MAX_CHANNELS);
    return type->emitters < 0 ? GPUCONV_OK : separate_emitters(c, type->taps == 3);
}

/* Chooses the type of the data, and reads them. */
static gpuconv_status read_responses(contents *c, const gc_hdf5_text *texts, bool *has_emitters) {
    const char *conventions = texts[SOFA_CONVENTIONS].value,
               *name = texts[DATA_TYPE].found ? texts[DATA_TYPE].value : "FIR";
    if (strcmp(texts[CONVENTIONS].value, "SOFA") != 0)
        return gc_fail(c->error, GPUCONV_ERROR_FORMAT,
                       "%s: is HDF5, but no SOFA file: its attribute Conventions is '%s'", c->path,
                       texts[CONVENTIONS].value);
    for (size_t i = 0; i < sizeof data_types / sizeof *data_types; i++)
        if (strcmp(name, data_types[i].name) == 0) {
            *has_emitters = data_types[i].emitters >= 0;
            return read_data(c, &data_types[i], conventions);
        }
    return gc_fail(
        c->error, GPUCONV_ERROR_FORMAT,
        "%s: its data are of the type '%s' (%s); only responses and spectra are read, types FIR, FIR-E, FIRE "
        "and TF, such as those of SimpleFreeFieldHRIR, SingleRoomSRIR, MultiSpeakerBRIR and "
        "SimpleFreeFieldHRTF",
        c->path, name, conventions);
}

/* Units of a coordinate, and their value in degrees or metres. Those of more than four letters have a plural. */
static const struct unit {
    const char *name;
    bool is_angle;
    double value;
} units[] = {{"degree", true, 1},
             {"deg", true, 1},
             {"radian", true, 57.29577951308232},
             {"rad", true, 57.29577951308232},
             {"metre", false, 1},
             {"meter", false, 1},
             {"m", false, 1},
             {"centimetre", false, 0.01},
             {"centimeter", false, 0.01},
             {"cm", false, 0.01},
             {"millimetre", false, 0.001},
             {"millimeter", false, 0.001},
             {"mm", false, 0.001}};

/* Finds the units of three coordinates in a text such as "degree, degree, metre", or "metre" for all of them. Returns
 * their number; 0 if one is not known, or there are neither 1 nor 3. */
static int find_units(const char *text, const struct unit *found[3]) {
    char word[32];
    int count = 0;
    for (const char *at = text; *(at += strspn(at, ", ;\t")); count++) {
        size_t length = strcspn(at, ", ;\t");
        const char *next = at + length;
        length -= length > 5 && (next[-1] == 's' || next[-1] == 'S');
        if (count == 3 || length >= sizeof word)
            return 0;
        (void)snprintf(word, sizeof word, "%.*s", (int)length, at);
        at = next;
        found[count] = NULL;
        for (size_t i = 0; i < sizeof units / sizeof *units; i++)
            if (gc_same_word(word, units[i].name))
                found[count] = &units[i];
        if (!found[count])
            return 0;
    }
    for (int k = 1; k < 3 && count == 1; k++)
        found[k] = found[0];
    return count == 2 ? 0 : count;
}

/* Converts places to degrees and metres. `type` and `unit` are the texts of the data set; without a type, the places
 * have that of the units, and without both `is_spherical`. */
static gpuconv_status convert_units(const contents *c, const char *name, const gc_hdf5_text *type,
                                    const gc_hdf5_text *unit, numbers *n, bool *is_spherical) {
    const struct unit *found[3];
    const bool has_units = unit->found && unit->value[strspn(unit->value, " ")];
    const bool has_type = type->found && type->value[strspn(type->value, " ")];
    if (has_type && !gc_same_word(type->value, "spherical") && !gc_same_word(type->value, "cartesian"))
        return gc_fail(c->error, GPUCONV_ERROR_FORMAT, "%s: %s is of the type '%s'; spherical and cartesian are read",
                       c->path, name, type->value);
    if (has_type)
        *is_spherical = gc_same_word(type->value, "spherical");
    if (!has_units)
        return GPUCONV_OK;
    if (!find_units(unit->value, found) || found[0]->is_angle != found[1]->is_angle || found[2]->is_angle ||
        (has_type && found[0]->is_angle != *is_spherical))
        return gc_fail(
            c->error, GPUCONV_ERROR_FORMAT,
            "%s: the units of %s are '%s'%s%s; three of degree, radian, metre and millimetre are read that fit "
            "the type",
            c->path, name, unit->value, has_type ? " and its type is " : "", has_type ? type->value : "");
    *is_spherical = found[0]->is_angle;
    for (int64_t i = 0; i < n->count; i++)
        n->value[i] = (float)((double)n->value[i] * found[i % 3]->value);
    return GPUCONV_OK;
}

/* Reads places and their coordinates, if the file has them. */
static gpuconv_status read_places(contents *c, int kind, const char *conventions) {
    static const char *const names[] = {"SourcePosition", "EmitterPosition", "ListenerPosition", "ListenerView",
                                        "ListenerUp"};
    gc_hdf5_text texts[] = {{.name = "Type"}, {.name = "Units"}};
    numbers *n = &c->place[kind];
    const int64_t rows = kind == EMITTER ? c->emitters : c->measurements;
    gpuconv_status status = read_numbers(c, names[kind], texts, 2, n);
    const bool is_needed = kind == SOURCE || kind == EMITTER;
    if (status || (n->count == 0 && !is_needed))
        return status;
    if (n->count != 3 * rows && (n->count != 3 || kind == EMITTER))
        return gc_fail(c->error, GPUCONV_ERROR_FORMAT, "%s: has %lld values of %s for %lld %s (%s)", c->path,
                       (long long)n->count, names[kind], (long long)rows, kind == EMITTER ? "emitters" : "measurements",
                       conventions);
    c->spherical[kind] = kind == SOURCE;
    status = convert_units(c, names[kind], &texts[0], &texts[1], n, &c->spherical[kind]);
    if (status)
        return status;
    if (gc_find_not_finite(n->value, n->count) < n->count)
        return gc_fail(c->error, GPUCONV_ERROR_FORMAT, "%s: %s is not finite", c->path, names[kind]);
    return GPUCONV_OK;
}

/* Reads what says where the sources are. In SimpleFreeFieldHRIR and its like the source moves around a listener at
 * rest: old files of theirs say anything about the listener, and no program looks at it. */
static gpuconv_status read_room(contents *c, const char *conventions, bool has_emitters) {
    const bool is_free_field = strncmp(conventions, "SimpleFreeField", strlen("SimpleFreeField")) == 0;
    gpuconv_status status = read_places(c, SOURCE, conventions);
    if (!status && has_emitters)
        status = read_places(c, EMITTER, conventions);
    for (int kind = LISTENER_AT; kind < PLACES && !status && !is_free_field; kind++)
        status = read_places(c, kind, conventions);
    return status;
}

/* Reads the delays: of one measurement or all x receivers (x one emitter or all). */
static gpuconv_status read_delays(contents *c) {
    gpuconv_status status = read_numbers(c, "Data.Delay", NULL, 0, &c->delay);
    if (status || c->delay.count == 0)
        return status;
    const gc_hdf5_space *space = &c->delay.space;
    const int64_t one = c->receivers * (space->rank == 3 ? space->size[2] : 1);
    if ((one != c->receivers && one != c->receivers * c->emitters) ||
        (c->delay.count != one && c->delay.count != c->measurements * one))
        return gc_fail(c->error, GPUCONV_ERROR_FORMAT, "%s: has %lld delays for %lld measurements x %lld receivers",
                       c->path, (long long)c->delay.count, (long long)c->measurements, (long long)c->receivers);
    for (int64_t i = 0; i < c->delay.count; i++)
        if (!(c->delay.value[i] >= 0 && c->delay.value[i] <= MAX_DELAY))
            return gc_fail(c->error, GPUCONV_ERROR_FORMAT, "%s: a delay of %g frames; 0 to %d are allowed", c->path,
                           (double)c->delay.value[i], MAX_DELAY);
    return GPUCONV_OK;
}

/* Exchanges the receivers of a set of two if the second one is the left one: its y is positive, and that of the first
 * one negative. */
static gpuconv_status put_left_first(contents *c) {
    gc_hdf5_text texts[] = {{.name = "Type"}, {.name = "Units"}};
    numbers n = {0};
    bool is_spherical = false;
    gpuconv_status status = c->receivers == 2 ? read_numbers(c, "ReceiverPosition", texts, 2, &n) : GPUCONV_OK;
    if (!status && n.count > 0 && n.count % 6 == 0) {
        float at[6]; /* those of the first measurement */
        double left[2];
        for (int i = 0; i < 6; i++)
            at[i] = n.value[i * (n.count / 6)];
        status = convert_units(c, "ReceiverPosition", &texts[0], &texts[1], &(numbers){.count = 6, .value = at},
                               &is_spherical);
        for (int r = 0; r < 2; r++)
            left[r] = is_spherical ? sin((double)at[3 * r] * M_PI / 180) : (double)at[3 * r + 1];
        c->right_first = left[0] < -1e-6 && left[1] > 1e-6;
    }
    free(n.value);
    for (int64_t m = 0; m < c->measurements * c->emitters && c->right_first && !status; m++) {
        float *first = c->ir.value + 2 * m * c->taps, *second = first + c->taps;
        for (int64_t i = 0; i < c->taps; i++) {
            const float right = first[i];
            first[i] = second[i];
            second[i] = right;
        }
    }
    return status;
}

/* Reads and checks the data sets. Returns FILE, FORMAT, MEMORY, CANCELLED. */
static gpuconv_status read_contents(contents *c, gc_hdf5_text *texts) {
    bool has_emitters = false;
    gpuconv_status status = gc_hdf5_find_texts(c->file, texts, TEXTS);
    if (!status)
        status = read_responses(c, texts, &has_emitters);
    if (!status)
        status = read_room(c, texts[SOFA_CONVENTIONS].value, has_emitters);
    if (!status)
        status = put_left_first(c);
    if (!status)
        status = read_delays(c);
    if (!status && gc_find_not_finite(c->ir.value, c->ir.count) < c->ir.count)
        status = gc_fail(c->error, GPUCONV_ERROR_FORMAT, "%s: a response is not finite", c->path);
    return status;
}

static double delay_of(const contents *c, int64_t measurement, int64_t receiver, int64_t emitter) {
    const numbers *d = &c->delay;
    if (d->count == 0)
        return 0;
    const int64_t emitters = d->space.rank == 3 ? d->space.size[2] : 1, one = c->receivers * emitters;
    return (double)
        d->value[(d->count == one ? 0 : measurement * one) + receiver * emitters + (emitters == 1 ? 0 : emitter)];
}

/* Gives sources at the distance 0 the distance 1: only their direction is known. */
static void set_distance(numbers *source) {
    for (int64_t i = 2; i < source->count; i += 3)
        if (!(source->value[i] > 0))
            source->value[i] = 1;
}

/* Returns the places as values of the file. */
static gc_room room_of(contents *c) {
    gc_places place[PLACES];
    if (c->spherical[SOURCE] && c->place[EMITTER].count == 0)
        set_distance(&c->place[SOURCE]);
    for (int k = 0; k < PLACES; k++)
        place[k] = (gc_places){c->place[k].count, c->place[k].value, c->spherical[k]};
    return (gc_room){place[SOURCE], place[EMITTER], place[LISTENER_AT], place[VIEW], place[UP]};
}

/* Fills in the positions and delays of a set. */
static void fill(const contents *c, const gc_room *room, gpuconv_sofa *s) {
    s->speakers = c->measurements > 1 ? (int)c->emitters : 1;
    for (int64_t i = 0; i < s->measurements && (i % 1024 || !gc_cancelled()); i++) {
        const int64_t m = i / c->emitters, e = i % c->emitters;
        locate(room, m, e, true, s->position + 3 * i);
        for (int64_t r = 0; r < c->receivers; r++) {
            const double delay = delay_of(c, m, c->right_first ? 1 - r : r, e);
            s->delay[i * c->receivers + r] = delay;
            s->longest_delay = fmax(s->longest_delay, delay);
            s->fractions = s->fractions || delay != floor(delay);
        }
    }
}

/* Makes the shells of a set, and notes where in the room its loudspeakers are, at the first measurement. */
static gpuconv_status make_shells(const contents *c, const gc_room *room, gpuconv_sofa *s) {
    gpuconv_status status = gc_sofa_make_shells(s, c->error);
    for (int e = 0; e < s->speakers && s->speakers > 1 && !status; e++) {
        double at[3];
        locate(room, 0, e, false, at);
        (void)gc_unit_vector(at, s->shell[e].speaker);
    }
    return status;
}

/* Makes the set, which takes the responses over. Returns FORMAT, MEMORY. */
static gpuconv_status convert(contents *c, const gc_hdf5_text *texts, gpuconv_sofa **sofa) {
    const int64_t measurements = c->measurements * c->emitters;
    float *taps = c->ir.value;
    c->ir.value = NULL;
    gpuconv_sofa *s = gc_sofa_new(gc_ir_own(taps, (int)(measurements * c->receivers), c->taps, c->rate),
                                  (int)measurements, (int)c->receivers);
    if (!s)
        return gc_fail_memory(c->error, c->path);
    s->responses->lead = c->lead;
    (void)snprintf(s->conventions, sizeof s->conventions, "%s", texts[SOFA_CONVENTIONS].value);
    (void)snprintf(s->title, sizeof s->title, "%s", texts[TITLE].value);
    (void)snprintf(s->listener, sizeof s->listener, "%s", texts[LISTENER].value);
    s->exchanged = c->right_first;
    const gc_room room = room_of(c);
    fill(c, &room, s);
    s->name = strdup(c->path);
    gpuconv_status status = s->name ? make_shells(c, &room, s) : gc_fail_memory(c->error, c->path);
    if (status)
        gpuconv_sofa_free(s);
    else
        *sofa = s;
    return status;
}

gpuconv_status gc_sofa_load(const char *path, gpuconv_interpolate how, gpuconv_sofa **sofa, gpuconv_error *error) {
    gc_hdf5_text texts[TEXTS] = {[CONVENTIONS] = {.name = "Conventions"},
                                 [SOFA_CONVENTIONS] = {.name = "SOFAConventions"},
                                 [DATA_TYPE] = {.name = "DataType"},
                                 [TITLE] = {.name = "Title"},
                                 [LISTENER] = {.name = "ListenerShortName"}};
    contents c = {.path = path, .error = error};
    *sofa = NULL;
    gpuconv_status status = gc_hdf5_open(path, &c.file, error);
    if (status)
        return status;
    status = read_contents(&c, texts);
    gc_hdf5_close(c.file);
    if (!status)
        status = convert(&c, texts, sofa);
    free(c.ir.value);
    for (int k = 0; k < PLACES; k++)
        free(c.place[k].value);
    free(c.delay.value);
    if (!status && how != GPUCONV_INTERPOLATE_NEAREST)
        status = gc_sofa_make_meshes(*sofa, how, error);
    if (status) {
        gpuconv_sofa_free(*sofa);
        *sofa = NULL;
    }
    return status;
}
