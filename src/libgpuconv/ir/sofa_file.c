/*
 * Reading of SOFA files: the data sets that AES69 names, from an HDF5 file. The responses are taken as they are
 * measured, without normalisation, and their delays beside them.
 */
#include "sofa.h"

#include "hdf5.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/finite.h"
#include "sofa_spectra.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_DELAY = 1 << 20, /* frames */
    MAX_MEASUREMENTS = 1 << 20
};

static const double pi = 3.14159265358979323846;

/* A data set and its values; count 0: the file has none of this name. */
typedef struct numbers {
    gc_hdf5_space space;
    int64_t count;
    float *value;
} numbers;

/* A file that is read. */
typedef struct contents {
    const char *path;
    gc_hdf5 *file;
    gpuconv_error *error;
    int64_t measurements, receivers, taps, lead;
    double rate;
    numbers ir, position, delay;
    bool spherical;
} contents;

/* The texts that describe a file. */
enum { CONVENTIONS, SOFA_CONVENTIONS, DATA_TYPE, TITLE, LISTENER, TEXTS };

/* Reads a data set if the file has one of this name. `text` (may be NULL) is a text of the data set that is looked for.
 */
static gpuconv_status read_numbers(contents *c, const char *name, gc_hdf5_text *text, numbers *n) {
    gc_hdf5_set set;
    bool found;
    gpuconv_status status = gc_hdf5_find(c->file, name, text, text ? 1 : 0, &set, &found);
    if (status || !found)
        return status;
    n->space = set.space;
    n->count = set.space.values;
    status = gc_ir_check_memory(1, (double)n->count, 0, c->error);
    return status ? status : gc_hdf5_read(c->file, &set, &n->value);
}

/* Reads spectra, and replaces them by their responses. */
static gpuconv_status read_spectra(contents *c) {
    numbers imag = {0}, frequency = {0};
    gc_from_spectra made = {0};
    gpuconv_status status = read_numbers(c, "Data.Real", NULL, &c->ir);
    if (!status)
        status = read_numbers(c, "Data.Imag", NULL, &imag);
    if (!status)
        status = read_numbers(c, "N", NULL, &frequency);
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
    gpuconv_status status = read_numbers(c, "Data.SamplingRate", NULL, &rate);
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

/* Reads responses and their rate. */
static gpuconv_status read_taps(contents *c, const char *conventions) {
    gpuconv_status status = read_numbers(c, "Data.IR", NULL, &c->ir);
    if (!status && c->ir.space.rank != 3)
        status = gc_fail(c->error, GPUCONV_ERROR_FORMAT,
                         "%s: has no data set Data.IR of measurements x receivers x taps (%s)", c->path, conventions);
    return status ? status : read_rate(c);
}

/* Reads the responses, and their sizes. Only conventions of measurements x receivers are read. */
static gpuconv_status read_responses(contents *c, const gc_hdf5_text *texts) {
    const char *conventions = texts[SOFA_CONVENTIONS].value, *type = texts[DATA_TYPE].value;
    if (strcmp(texts[CONVENTIONS].value, "SOFA") != 0)
        return gc_fail(c->error, GPUCONV_ERROR_FORMAT,
                       "%s: is HDF5, but no SOFA file: its attribute Conventions is '%s'", c->path,
                       texts[CONVENTIONS].value);
    const bool is_fir = !texts[DATA_TYPE].found || strcmp(type, "FIR") == 0;
    if (!is_fir && strcmp(type, "TF") != 0)
        return gc_fail(c->error, GPUCONV_ERROR_FORMAT,
                       "%s: its data are of the type '%s' (%s); only responses and spectra of measurements x receivers "
                       "are read, types FIR and TF, such as those of SimpleFreeFieldHRIR, GeneralFIR and "
                       "SimpleFreeFieldHRTF",
                       c->path, type, conventions);
    gpuconv_status status = is_fir ? read_taps(c, conventions) : read_spectra(c);
    if (status)
        return status;
    c->measurements = c->ir.space.size[0];
    c->receivers = c->ir.space.size[1];
    c->taps = c->ir.space.size[2];
    if (c->measurements > MAX_MEASUREMENTS || c->receivers > GC_MAX_CHANNELS)
        return gc_fail(c->error, GPUCONV_ERROR_FORMAT,
                       "%s: has %lld measurements and %lld receivers; at most %d and %d are read", c->path,
                       (long long)c->measurements, (long long)c->receivers, MAX_MEASUREMENTS, GC_MAX_CHANNELS);
    return GPUCONV_OK;
}

/* Reads the source positions and their coordinates. */
static gpuconv_status read_positions(contents *c) {
    gc_hdf5_text type = {.name = "Type"};
    gpuconv_status status = read_numbers(c, "SourcePosition", &type, &c->position);
    if (status)
        return status;
    if (c->position.count != 3 && c->position.count != 3 * c->measurements)
        return gc_fail(c->error, GPUCONV_ERROR_FORMAT, "%s: has %lld values of source positions for %lld measurements",
                       c->path, (long long)c->position.count, (long long)c->measurements);
    c->spherical = !type.found || strcmp(type.value, "spherical") == 0;
    if (!c->spherical && strcmp(type.value, "cartesian") != 0)
        return gc_fail(c->error, GPUCONV_ERROR_FORMAT,
                       "%s: its source positions are of the type '%s'; spherical and cartesian are read", c->path,
                       type.value);
    return GPUCONV_OK;
}

static gpuconv_status read_delays(contents *c) {
    gpuconv_status status = read_numbers(c, "Data.Delay", NULL, &c->delay);
    if (status)
        return status;
    if (c->delay.count && c->delay.count != c->receivers && c->delay.count != c->measurements * c->receivers)
        return gc_fail(c->error, GPUCONV_ERROR_FORMAT, "%s: has %lld delays for %lld measurements x %lld receivers",
                       c->path, (long long)c->delay.count, (long long)c->measurements, (long long)c->receivers);
    for (int64_t i = 0; i < c->delay.count; i++)
        if (!(c->delay.value[i] >= 0 && c->delay.value[i] <= MAX_DELAY))
            return gc_fail(c->error, GPUCONV_ERROR_FORMAT, "%s: a delay of %g frames; 0 to %d are allowed", c->path,
                           (double)c->delay.value[i], MAX_DELAY);
    return GPUCONV_OK;
}

/* Reads and checks the data sets. Returns FILE, FORMAT, MEMORY, CANCELLED. */
static gpuconv_status read_contents(contents *c, gc_hdf5_text *texts) {
    gpuconv_status status = gc_hdf5_find_texts(c->file, texts, TEXTS);
    if (!status)
        status = read_responses(c, texts);
    if (!status)
        status = read_positions(c);
    if (!status)
        status = read_delays(c);
    if (!status && (gc_find_not_finite(c->ir.value, c->ir.count) < c->ir.count ||
                    gc_find_not_finite(c->position.value, c->position.count) < c->position.count))
        status = gc_fail(c->error, GPUCONV_ERROR_FORMAT, "%s: a response or a position is not finite", c->path);
    return status;
}

static double delay_of(const contents *c, int64_t measurement, int64_t receiver) {
    const numbers *d = &c->delay;
    if (d->count == 0)
        return 0;
    return (double)d->value[d->count == c->receivers ? receiver : measurement * c->receivers + receiver];
}

/* Converts a source position to x, y, z. */
static void place(const contents *c, int64_t measurement, double to[3]) {
    const float *from = c->position.value + (c->position.count == 3 ? 0 : 3 * measurement);
    const double x = (double)from[0], y = (double)from[1], z = (double)from[2];
    if (!c->spherical) {
        to[0] = x;
        to[1] = y;
        to[2] = z;
        return;
    }
    const double azimuth = x * pi / 180, elevation = y * pi / 180, radius = z > 0 ? z : 1;
    to[0] = radius * cos(elevation) * cos(azimuth);
    to[1] = radius * cos(elevation) * sin(azimuth);
    to[2] = radius * sin(elevation);
}

/* Fills in the positions and delays of a set. */
static void fill(const contents *c, gpuconv_sofa *s) {
    for (int64_t m = 0; m < c->measurements; m++) {
        place(c, m, s->position + 3 * m);
        for (int64_t r = 0; r < c->receivers; r++) {
            const double delay = delay_of(c, m, r);
            s->delay[m * c->receivers + r] = delay;
            s->longest_delay = fmax(s->longest_delay, delay);
            s->fractions = s->fractions || delay != floor(delay);
        }
    }
}

/* Makes the set, which takes the responses over. Returns FORMAT, MEMORY. */
static gpuconv_status convert(contents *c, const gc_hdf5_text *texts, gpuconv_sofa **sofa) {
    const int64_t responses = c->measurements * c->receivers;
    float *taps = c->ir.value;
    c->ir.value = NULL;
    gpuconv_sofa *s =
        gc_sofa_new(gc_ir_own(taps, (int)responses, c->taps, c->rate), (int)c->measurements, (int)c->receivers);
    if (!s)
        return gc_fail_memory(c->error, c->path);
    s->responses->lead = c->lead;
    (void)snprintf(s->conventions, sizeof s->conventions, "%s", texts[SOFA_CONVENTIONS].value);
    (void)snprintf(s->title, sizeof s->title, "%s", texts[TITLE].value);
    (void)snprintf(s->listener, sizeof s->listener, "%s", texts[LISTENER].value);
    fill(c, s);
    s->name = strdup(c->path);
    gpuconv_status status = s->name ? gc_sofa_make_shells(s, c->error) : gc_fail_memory(c->error, c->path);
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
    free(c.position.value);
    free(c.delay.value);
    if (!status && how != GPUCONV_INTERPOLATE_NEAREST)
        status = gc_sofa_make_meshes(*sofa, how, error);
    if (status) {
        gpuconv_sofa_free(*sofa);
        *sofa = NULL;
    }
    return status;
}
