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
#include "sofa_place.h"
#include "sofa_spectra.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Reorders the responses of measurements x receivers x taps x emitters, or of measurements x receivers x emitters x
 * taps (`taps_last`), such that every emitter of a measurement is a measurement of its own. */
static gpuconv_status separate_emitters(contents *c, bool taps_last) {
    const int64_t inner = c->emitters * c->taps;
    gpuconv_status status = gc_ir_check_memory(1, (double)c->ir.count, 0, c->error);
    float *to = status ? NULL : gc_alloc(c->ir.count, sizeof *to);
    if (!to)
        return status ? status : gc_fail_memory(c->error, c->path);
    for (int64_t row = 0; row < c->measurements * c->emitters * c->receivers; row++) {
        const int64_t r = row % c->receivers, e = row / c->receivers % c->emitters,
                      m = row / c->receivers / c->emitters;
        const float *from = c->ir.value + (m * c->receivers + r) * inner + e * (taps_last ? c->taps : 1);
        for (int64_t n = 0; n < c->taps; n++)
            to[row * c->taps + n] = from[n * (taps_last ? 1 : c->emitters)];
    }
    free(c->ir.value);
    c->ir.value = to;
    return GPUCONV_OK;
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
    gpuconv_status status = is_spectra ? read_spectra(c) : read_numbers(c, "Data.IR", NULL, &c->ir);
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

/* Reads places and their coordinates, if the file has them. */
static gpuconv_status read_places(contents *c, int kind, const char *conventions) {
    static const char *const names[] = {"SourcePosition", "EmitterPosition", "ListenerPosition", "ListenerView",
                                        "ListenerUp"};
    gc_hdf5_text type = {.name = "Type"};
    numbers *n = &c->place[kind];
    const int64_t rows = kind == EMITTER ? c->emitters : c->measurements;
    gpuconv_status status = read_numbers(c, names[kind], &type, n);
    const bool is_needed = kind == SOURCE || kind == EMITTER;
    if (status || (n->count == 0 && !is_needed))
        return status;
    if (n->count != 3 * rows && (n->count != 3 || kind == EMITTER))
        return gc_fail(c->error, GPUCONV_ERROR_FORMAT, "%s: has %lld values of %s for %lld %s (%s)", c->path,
                       (long long)n->count, names[kind], (long long)rows, kind == EMITTER ? "emitters" : "measurements",
                       conventions);
    c->spherical[kind] = type.found ? strcmp(type.value, "spherical") == 0 : kind == SOURCE;
    if (!c->spherical[kind] && type.found && strcmp(type.value, "cartesian") != 0)
        return gc_fail(c->error, GPUCONV_ERROR_FORMAT,
                       "%s: %s is of the type '%s' (%s); spherical and cartesian are read", c->path, names[kind],
                       type.value, conventions);
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
    gpuconv_status status = read_numbers(c, "Data.Delay", NULL, &c->delay);
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

/* Reads and checks the data sets. Returns FILE, FORMAT, MEMORY, CANCELLED. */
static gpuconv_status read_contents(contents *c, gc_hdf5_text *texts) {
    bool has_emitters = false;
    gpuconv_status status = gc_hdf5_find_texts(c->file, texts, TEXTS);
    if (!status)
        status = read_responses(c, texts, &has_emitters);
    if (!status)
        status = read_room(c, texts[SOFA_CONVENTIONS].value, has_emitters);
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
    for (int64_t i = 0; i < s->measurements; i++) {
        const int64_t m = i / c->emitters, e = i % c->emitters;
        gc_room_locate(room, m, e, true, s->position + 3 * i);
        for (int64_t r = 0; r < c->receivers; r++) {
            const double delay = delay_of(c, m, r, e);
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
        gc_room_locate(room, 0, e, false, at);
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
