/*
 * Reading of SOFA files: the data sets that AES69 names, from an HDF5 file. The responses are taken as they are
 * measured, without normalisation, and their delays beside them.
 */
#include "sofa.h"

#include "hdf5.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
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

static const double pi = 3.14159265358979323846;

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

/* Units of a coordinate, and their value in degrees or metres. */
static const struct unit {
    const char *name;
    bool is_angle;
    double value;
} units[] = {
    {"degree", true, 1},
    {"degrees", true, 1},
    {"deg", true, 1},
    {"radian", true, 57.29577951308232},
    {"radians", true, 57.29577951308232},
    {"rad", true, 57.29577951308232},
    {"metre", false, 1},
    {"metres", false, 1},
    {"meter", false, 1},
    {"meters", false, 1},
    {"m", false, 1},
    {"centimetre", false, 0.01},
    {"centimetres", false, 0.01},
    {"centimeter", false, 0.01},
    {"centimeters", false, 0.01},
    {"cm", false, 0.01},
    {"millimetre", false, 0.001},
    {"millimetres", false, 0.001},
    {"millimeter", false, 0.001},
    {"millimeters", false, 0.001},
    {"mm", false, 0.001},
};

/* Finds the units of three coordinates in a text such as "degree, degree, metre", or "metre" for all of them. Returns
 * their number; 0 if one is not known, or there are neither 1 nor 3. */
static int find_units(const char *text, const struct unit *found[3]) {
    char word[32];
    int count = 0;
    for (const char *at = text; *(at += strspn(at, ", ;\t")); count++) {
        const size_t length = strcspn(at, ", ;\t");
        if (count == 3 || length >= sizeof word)
            return 0;
        (void)snprintf(word, sizeof word, "%.*s", (int)length, at);
        at += length;
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
            left[r] = is_spherical ? sin((double)at[3 * r] * pi / 180) : (double)at[3 * r + 1];
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
        gc_room_locate(room, m, e, true, s->position + 3 * i);
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
