/* Draws rooms from ranges, simulates them (gpuconv_rooms.h) and writes a file for each. */
#include "room_set.h"

#include "libgpuconv/audio/file.h"
#include "libgpuconv/conv/plan.h"
#include "libgpuconv/conv/rooms.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/files.h"
#include "libgpuconv/core/limits.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/pool.h"
#include "libgpuconv/core/random.h"
#include "libgpuconv/core/table.h"
#include "libgpuconv/core/visible.h"
#include "libgpuconv/ir/object.h"

#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES = 10000 };
#define SOFA_KEY "sofa="
#define LONGEST 20.0 /* seconds of a response */

/* ---- Texts ------------------------------------------------------------------------------------------------------- */

/* Octaves from 125 to 4000 Hz, from the tables of building materials of the Acoustical Materials Association, as
 * handbooks reprint them (Everest, Master Handbook of Acoustics, appendix; Barron, Industrial Noise Control and
 * Acoustics, 2003, appendix D). */
static const double materials[][6] = {
    {0.03, 0.03, 0.03, 0.04, 0.05, 0.07},   {0.01, 0.01, 0.02, 0.02, 0.02, 0.03}, /* brick, painted */
    {0.01, 0.01, 0.015, 0.02, 0.02, 0.02},                                        /* concrete or terrazzo */
    {0.36, 0.44, 0.31, 0.29, 0.39, 0.25},   {0.10, 0.05, 0.06, 0.07, 0.09, 0.08}, /* concrete block, painted */
    {0.013, 0.015, 0.02, 0.03, 0.04, 0.05}, {0.29, 0.10, 0.05, 0.04, 0.07, 0.09}, /* on brick; 13 mm on studs */
    {0.18, 0.06, 0.04, 0.03, 0.02, 0.02},   {0.35, 0.25, 0.18, 0.12, 0.07, 0.04}, /* plate glass; window glass */
    {0.01, 0.01, 0.01, 0.01, 0.02, 0.02},   {0.15, 0.11, 0.10, 0.07, 0.06, 0.07}, /* glazed; on joists */
    {0.04, 0.04, 0.07, 0.06, 0.06, 0.07},   {0.02, 0.03, 0.03, 0.03, 0.03, 0.02}, /* on concrete */
    {0.28, 0.22, 0.17, 0.09, 0.10, 0.11},                                         /* 10 mm panels */
    {0.02, 0.06, 0.14, 0.37, 0.60, 0.65},   {0.08, 0.24, 0.57, 0.69, 0.71, 0.73}, /* on concrete, on foam */
    {0.07, 0.31, 0.49, 0.75, 0.70, 0.60},   {0.14, 0.35, 0.55, 0.72, 0.70, 0.65}, /* draped to half the area */
    {0.49, 0.66, 0.80, 0.88, 0.82, 0.70},   {0.60, 0.74, 0.88, 0.96, 0.93, 0.85}, /* upholstered, empty and taken */
};
static const char material_words[] =
    "brick|painted-brick|concrete|block|painted-block|plaster|plasterboard|glass|window|tile|"
    "wood|parquet|linoleum|plywood|carpet|carpet-on-foam|curtain|heavy-curtain|seats|audience";

static const char pattern_words[] = "omni|wide-cardioid|cardioid|supercardioid|hypercardioid|figure-eight";
static const double pattern_omni[] = {1, 0.75, 0.5, 0.37, 0.25, 0};

/* Returns which of 1, 6 (125 to 4000 Hz) or 9 values belongs to an octave; -1 for another number of values. */
static int value_of(int octave, int count) {
    return count == 1                    ? 0
           : count == 6                  ? (int)gc_min(gc_max(octave - 1, 0), 5)
           : count == GPUCONV_ROOM_BANDS ? octave
                                         : -1;
}

/* Parses LOW:HIGH or one number, within a range. */
static bool parse_span(const char *text, gc_room_span range, gc_room_span *span) {
    double value[2] = {0};
    const int count = gc_numbers_parse(text, ":", value, 2);
    *span = (gc_room_span){value[0], value[count > 1]};
    return count && span->low <= span->high && span->low >= range.low && span->high <= range.high;
}

/* Divides a copy of a text, which has room for GC_ROOM_WALLS bytes. Returns the number of parts; 0: more than `most`.
 */
static int divide(const char *text, const char *dividers, char *copy, char *part[], int most) {
    int count = 0;
    if (strlen(text) >= GC_ROOM_WALLS)
        return 0;
    memcpy(copy, text, strlen(text) + 1);
    for (char *at = copy; at; count++) {
        char *end = strpbrk(at, dividers);
        if (count == most)
            return 0;
        part[count] = at;
        if (end)
            *end++ = 0;
        at = end;
    }
    return count;
}

/* Parses spans, each within `range`. Returns how many; 0: one is wrong, or there are more than `most`. */
static int parse_spans(const char *text, const char *dividers, gc_room_span range, gc_room_span *span, int most) {
    char copy[GC_ROOM_WALLS], *part[GPUCONV_ROOM_BANDS];
    const int count = divide(text, dividers, copy, part, most);
    bool good = true;
    for (int i = 0; i < count && good; i++)
        good = parse_span(part[i], range, &span[i]);
    return good ? count : 0;
}

static bool parse_rt60(const char *text, gc_room_set *set) {
    gc_room_span span[GPUCONV_ROOM_BANDS];
    const int count = parse_spans(text, ",", (gc_room_span){0.1, 20}, span, GPUCONV_ROOM_BANDS);
    for (int b = 0; b < GPUCONV_ROOM_BANDS && value_of(b, count) >= 0; b++)
        set->rt60[b] = span[value_of(b, count)];
    return value_of(0, count) >= 0;
}

/* Parses walls divided by slashes, each with 1, 6 or 9 numbers, or names of materials divided by commas. */
static bool parse_walls(const char *key, const char *text, gc_room_set *set) {
    char copy[GC_ROOM_WALLS], *part[6];
    const bool named = *key == 'm';
    const int walls = divide(text, named ? "," : "/", copy, part, 6);
    bool good = (walls == 1 || walls == 6) &&
                gc_format(set->walls, sizeof set->walls, "%s=%s", key, text) < (int)sizeof set->walls;
    for (int w = 0; w < 6 && good; w++) {
        const char *wall = part[walls == 1 ? 0 : w];
        double value[GPUCONV_ROOM_BANDS];
        const int material = named ? gc_word_find(wall, strlen(wall), material_words) : 0;
        const int count = named ? 6 : gc_numbers_parse(wall, ",", value, GPUCONV_ROOM_BANDS);
        good = material >= 0 && value_of(0, count) >= 0;
        for (int b = 0; b < GPUCONV_ROOM_BANDS && good; b++) {
            set->absorption[w][b] = (named ? materials[material] : value)[value_of(b, count)];
            good = set->absorption[w][b] >= 0 && set->absorption[w][b] <= 1;
        }
    }
    return good;
}

static bool parse_point(const char *text, gpuconv_room_point *points, int *count, int most) {
    double v[5] = {0};
    const int numbers = gc_numbers_parse(text, ",", v, 5);
    if ((numbers != 3 && numbers != 5) || *count == most)
        return false;
    points[(*count)++] = (gpuconv_room_point){{v[0], v[1], v[2]}, v[3], v[4], 1};
    return true;
}

/* Reads rows of X Y Z, or of X Y Z AZIMUTH ELEVATION, as receivers. */
static gpuconv_status read_receivers(const char *path, gc_room_set *set, gpuconv_error *error) {
    static const gc_table_form form = {.kind = GC_TABLE_NUMBERS, .most = 5, .comments = true, .quotes = true};
    gc_lines lines;
    gc_table table = {0};
    const int before = set->receivers;
    gpuconv_status status = gc_lines_open(&lines, path, GC_TEXT_LONGEST, GC_TEXT_MOST, error);
    if (!status)
        status = gc_table_open(&table, &form, &lines, error);
    while (gc_table_next(&table, &status, error)) {
        double v[5] = {0};
        bool good = set->receivers < GC_ROOM_RECEIVERS && (table.fields == 3 || table.fields == 5);
        for (int f = 0; f < table.fields && good; f++)
            good = gc_table_number(&table, f, &v[f]);
        if (good)
            set->receiver[set->receivers++] = (gpuconv_room_point){{v[0], v[1], v[2]}, v[3], v[4], 1};
        else
            status = gc_table_fail(&table, error, "is not X Y Z or X Y Z AZIMUTH ELEVATION, in at most %d lines",
                                   GC_ROOM_RECEIVERS);
    }
    gc_table_close(&table);
    gc_lines_close(&lines);
    if (!status && set->receivers == before)
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: has no line of X Y Z", path);
    return status;
}

void gc_room_set_init(gc_room_set *set) {
    memset(set, 0, sizeof *set);
    set->images = -1;
    set->drawn = 1;
    set->seed = 1;
}

/* The keys, and what their values are. */
static const char *const keys[][2] = {
    {"size", "metres such as 8x6x3.2 or 3:10x3:8x2.4:4, each from 0.1 to 1000; of a plate 2x1"},
    {"rt60", "SECONDS is a number from 0.1 to 20 or LOW:HIGH; use 1, 6 (125 to 4000 Hz) or 9 (62.5 Hz to 16 kHz)"},
    {"distance", "METRES is a number from 0.3 to 200, or LOW:HIGH"},
    {"absorption", "one wall or six divided by /, each with 1, 6 or 9 numbers from 0 to 1 divided by commas"},
    {"materials", "one name or six, of x low, x high, y low, y high, floor and ceiling, of "},
    {"pattern", "one of "},
    {"channels", "a number of receivers from 1 to 64"},
    {"ambisonic", "an order from 0 to 4"},
    {"sofa", "a SOFA file, in a text the last key; its name has none of =, | and \""},
    {"images", "a number of seconds from 0 to 20"},
    {"seed", "a whole number from 0 on"},
    {"source", "X,Y,Z or X,Y,Z,AZIMUTH,ELEVATION, at most 300 times"},
    {"receiver", "X,Y,Z or X,Y,Z,AZIMUTH,ELEVATION, at most 1024 times"},
    {"receivers", "a file"}};
enum {
    SIZE,
    RT60,
    DISTANCE,
    ABSORPTION,
    MATERIALS,
    PATTERN,
    CHANNELS,
    AMBISONIC,
    SOFA,
    IMAGES,
    SEED,
    SOURCE,
    RECEIVER
};

/* Parses the value of a key but `receivers`. */
static bool parse_value(gc_room_set *set, int key, const char *value) {
    const int64_t most = key == CHANNELS ? 64 : key == AMBISONIC ? 4 : INT64_MAX;
    int64_t number = 0;
    switch (key) {
    case SIZE:
        return parse_spans(value, "x,", (gc_room_span){0.1, 1000}, set->size, 3) > 1;
    case RT60:
        return parse_rt60(value, set);
    case DISTANCE:
        return parse_span(value, (gc_room_span){0.3, 200}, &set->distance);
    case ABSORPTION:
    case MATERIALS:
        return parse_walls(keys[key][0], value, set);
    case PATTERN:
        return (set->pattern = gc_word_find(value, strlen(value), pattern_words)) >= 0;
    case SOFA:
        return *value && !strpbrk(value, "=|\"") && strlen(value) < sizeof set->sofa &&
               memcpy(set->sofa, value, strlen(value) + 1);
    case IMAGES:
        return gc_number_parse(value, &set->images) && set->images >= 0 && set->images <= 20;
    case SOURCE:
        return parse_point(value, set->source, &set->sources, GC_ROOM_SOURCES);
    case RECEIVER:
        return parse_point(value, set->receiver, &set->receivers, GC_ROOM_RECEIVERS);
    default:
        if (!gc_integer_parse(value, &number) || number < (key == CHANNELS) || number > most)
            return false;
        if (key == SEED)
            set->seed = (uint64_t)number;
        else
            *(key == CHANNELS ? &set->drawn : &set->ambisonic) = (int)number;
        return true;
    }
}

gpuconv_status gc_room_set_put(gc_room_set *set, const char *key, const char *value, gpuconv_error *error) {
    const int count = (int)(sizeof keys / sizeof *keys);
    char names[GC_ROOM_WALLS] = "";
    int k = 0;
    while (k < count && strcmp(keys[k][0], key) != 0)
        k++;
    if (k == count)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "'%.60s': a room has no such key", key);
    if (k == count - 1)
        return read_receivers(value, set, error);
    if (k == PATTERN || k == MATERIALS)
        gc_word_list(k == PATTERN ? pattern_words : material_words, names, sizeof names);
    if (!parse_value(set, k, value))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s '%.60s': %s%s", key, value, keys[k][1], names);
    if ((k == RT60 && *set->walls) || ((k == ABSORPTION || k == MATERIALS) && set->rt60[0].high > 0))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s '%.60s': use one of rt60, absorption and materials", key,
                       value);
    return GPUCONV_OK;
}

bool gc_is_room(const char *response) {
    return strncmp(response, GC_ROOM_PREFIX, strlen(GC_ROOM_PREFIX)) == 0;
}

const char *gc_response_path(const char *response) {
    const char *sofa = response && gc_is_room(response) ? strstr(response, SOFA_KEY) : NULL;
    return sofa ? sofa + strlen(SOFA_KEY) : response && gc_is_room(response) ? NULL : response;
}

gpuconv_status gc_room_set_parse(const char *text, gc_room_set *set, gpuconv_error *error) {
    gpuconv_status status = GPUCONV_OK;
    gc_room_set_init(set);
    char *copy = strdup(gc_is_room(text) ? text + strlen(GC_ROOM_PREFIX) : text), *rest = copy;
    for (char *word; !status && copy && (word = strtok_r(rest, " ", &rest));) {
        char *value = strchr(word, '=');
        if (value)
            *value++ = 0;
        if (strcmp(word, keys[SOFA][0]) == 0 && *rest) { /* has the rest of the text */
            rest[-1] = ' ';
            rest += strlen(rest);
        }
        status = gc_room_set_put(set, word, value ? value : "", error);
    }
    free(copy);
    return copy ? status : gc_fail_memory(error, text);
}

/* Appends a formatted text. Returns false without memory. */
static bool put(gc_buffer *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool put(gc_buffer *t, const char *format, ...) {
    char text[GC_ROOM_WALLS + 64];
    va_list args;
    va_start(args, format);
    const int length = gc_vformat(text, sizeof text, format, args);
    va_end(args);
    return length >= 0 && length < (int)sizeof text && gc_buffer_append(t, text, (size_t)length);
}

static bool put_points(gc_buffer *t, const char *key, const gpuconv_room_point *p, int count) {
    bool good = true;
    for (int i = 0; i < count && good; i++, p++) {
        good = put(t, " %s=%.7g,%.7g,%.7g", key, p->at[0], p->at[1], p->at[2]) &&
               ((p->azimuth == 0 && p->elevation == 0) || put(t, ",%.7g,%.7g", p->azimuth, p->elevation));
    }
    return good;
}

char *gc_room_set_text(const gc_room_set *set, int source) {
    gc_buffer t = {0};
    bool good = put(&t, GC_ROOM_PREFIX "size=%.7gx%.7gx%.7g", set->size[0].low, set->size[1].low, set->size[2].low);
    int octaves = 1;
    for (int b = 1; b < GPUCONV_ROOM_BANDS; b++)
        octaves = set->rt60[b].low != set->rt60[0].low ? GPUCONV_ROOM_BANDS : octaves;
    for (int b = 0; b < octaves && !*set->walls && good; b++)
        good = put(&t, b ? ",%.7g" : " rt60=%.7g", set->rt60[b].low);
    good = good && (!*set->walls || put(&t, " %s", set->walls)) &&
           put_points(&t, "source", set->source + (source < 0 ? 0 : source), source < 0 ? set->sources : 1) &&
           put_points(&t, "receiver", set->receiver, set->receivers);
    if (set->pattern) {
        const char *word = pattern_words;
        for (int i = 0; i < set->pattern; i++)
            word = strchr(word, '|') + 1;
        good = good && put(&t, " pattern=%.*s", (int)strcspn(word, "|"), word);
    }
    good = good && (!set->ambisonic || put(&t, " ambisonic=%d", set->ambisonic)) &&
           (set->images < 0 || put(&t, " images=%.7g", set->images)) &&
           put(&t, " seed=%llu", (unsigned long long)set->seed + (source < 0 ? 0 : (unsigned)source)) &&
           (!*set->sofa || put(&t, " " SOFA_KEY "%s", set->sofa));
    if (good)
        return t.bytes;
    free(t.bytes);
    return NULL;
}

/* ---- Drawing ----------------------------------------------------------------------------------------------------- */

static double rounded(double value) {
    return round(value * 1000) / 1000;
}

static double draw(uint64_t *state, gc_room_span span) {
    return rounded(span.low + (span.high - span.low) * gc_unit_of_bits(gc_random_bits(state)));
}

/* Draws a place at least 0.5 m, or a fifth of the side, from the walls. */
static gpuconv_room_point draw_point(uint64_t *state, const gc_room_set *set, double omni) {
    gpuconv_room_point p = {.omni = omni};
    for (int a = 0; a < 3; a++) {
        const double margin = fmin(0.5, 0.2 * set->size[a].low);
        p.at[a] = draw(state, (gc_room_span){margin, set->size[a].low - margin});
    }
    return p;
}

/* Draws the receivers of a room, and a first source for each try if it was not given. */
static gpuconv_status draw_receivers(gc_room_set *to, uint64_t *state, bool with_source, gpuconv_error *error) {
    const double degrees = 180 / acos(-1), far = to->distance.high > 0 ? to->distance.high : HUGE_VAL;
    const double near = fmax(to->distance.low, 0.1);
    for (int tried = 0; to->receivers < to->drawn && tried < TRIES; tried++) {
        if (with_source && to->receivers == 0)
            to->source[0] = draw_point(state, to, 1);
        gpuconv_room_point *p = &to->receiver[to->receivers];
        *p = draw_point(state, to, 1);
        const double apart = gc_room_distance(to->source[0].at, p->at);
        if (apart < near || apart > far)
            continue;
        if (!to->ambisonic && to->pattern) {
            p->azimuth = rounded(atan2(to->source[0].at[1] - p->at[1], to->source[0].at[0] - p->at[0]) * degrees);
            p->elevation = rounded(asin((to->source[0].at[2] - p->at[2]) / apart) * degrees);
        }
        to->receivers++;
    }
    return to->receivers == to->drawn ? GPUCONV_OK
                                      : gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                                                "a room of %g x %g x %g m has no receiver %g to %g m from the source",
                                                to->size[0].low, to->size[1].low, to->size[2].low, near, far);
}

gpuconv_status gc_room_set_draw(const gc_room_set *set, int64_t index, int sources, gc_room_set *to,
                                gpuconv_error *error) {
    static const double standard[3] = {8, 6, 3.2};
    uint64_t state = gc_mix_bits(gc_mix_bits(set->seed) + (uint64_t)index * GC_SPLITMIX_STEP);
    double volume = 1;
    *to = *set;
    if (set->receivers && set->distance.high > 0)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "distance is for receivers that are drawn; leave out receiver and receivers");
    for (int a = 0; a < 3; a++) {
        to->size[a].low = set->size[a].high > 0 ? draw(&state, set->size[a]) : standard[a];
        to->size[a].high = to->size[a].low;
        volume *= to->size[a].low;
    }
    const double part = gc_unit_of_bits(gc_random_bits(&state));
    const bool given = set->rt60[0].high > 0 || *set->walls;
    for (int b = 0; b < GPUCONV_ROOM_BANDS && !*set->walls; b++)
        to->rt60[b].low = to->rt60[b].high =
            rounded(given ? set->rt60[b].low + part * (set->rt60[b].high - set->rt60[b].low) : 0.15 * cbrt(volume));
    to->sources = sources;
    if (set->receivers && !set->sources)
        to->source[0] = draw_point(&state, to, 1);
    gpuconv_status status = set->receivers ? GPUCONV_OK : draw_receivers(to, &state, !set->sources, error);
    for (int i = set->sources > 0 ? set->sources : 1; i < sources && !status; i++)
        to->source[i] = draw_point(&state, to, 1);
    for (int i = 0; i < to->receivers; i++)
        to->receiver[i].omni = pattern_omni[set->pattern];
    to->distance = (gc_room_span){0};
    if (set->count || !set->sources || !set->receivers)
        to->seed = gc_random_bits(&state) >> 32;
    return status;
}

/* ---- Responses --------------------------------------------------------------------------------------------------- */

/* Returns the longest decay time of a room in seconds: what was asked, or Eyring's. */
static double longest_decay(const gpuconv_room *room, double speed) {
    double longest = 0;
    for (int b = 0; b < GPUCONV_ROOM_BANDS; b++) {
        double loss = 0;
        for (int w = 0; w < 6; w++)
            loss -= log1p(-fmin(room->absorption[w][b], 0.99)) / room->size[w / 2];
        longest = fmax(longest, room->rt60[b] > 0 ? room->rt60[b] : 4 * log(1e6) / (speed * loss));
    }
    return longest;
}

/* Returns the time in seconds until which a room has images. */
static double images_of(const gc_room_set *set) {
    return set->images >= 0 ? set->images
                            : 0.075 + 0.005 * cbrt(set->size[0].low * set->size[1].low * set->size[2].low);
}

double gc_room_seconds(const char *response, const gpuconv_ir *ir) {
    gc_room_set *set = gc_is_room(response) ? gc_alloc(1, sizeof *set) : NULL;
    double seconds = 0;
    if (set && !gc_room_set_parse(response, set, NULL)) {
        const double far = 343 * fmin(images_of(set), (double)ir->frames / ir->rate);
        bool alike = true;
        for (int b = 1; b < GPUCONV_ROOM_BANDS; b++)
            for (int w = 0; w < 6; w++)
                alike = alike && set->rt60[b].low == set->rt60[0].low && set->absorption[w][b] == set->absorption[w][0];
        seconds = 4.19 * pow(far, 3) / (set->size[0].low * set->size[1].low * set->size[2].low) * gc_image_seconds +
                  (double)ir->frames * (*set->sofa ? gc_room_ears_seconds
                                        : alike    ? gc_room_frame_seconds
                                                   : gc_room_octaves_seconds);
    }
    free(set);
    return seconds * ir->planes;
}

/* Returns the job of a drawn room, which is written to *room. */
static gpuconv_rooms_job job_of(const gc_room_set *set, double rate, gpuconv_room *room) {
    gpuconv_rooms_job job = gpuconv_rooms_job_default();
    *room = (gpuconv_room){.size = {set->size[0].low, set->size[1].low, set->size[2].low}};
    const double speed = gc_speed_of_sound(20);
    const double direct = hypot(hypot(room->size[0], room->size[1]), room->size[2]) / speed;
    memcpy(room->absorption, set->absorption, sizeof room->absorption);
    for (int b = 0; b < GPUCONV_ROOM_BANDS; b++)
        room->rt60[b] = set->rt60[b].low;
    job.room = room;
    job.rooms = 1;
    job.source = set->source;
    job.sources = set->sources;
    job.receiver = set->receiver;
    job.receivers = set->receivers;
    job.ambisonic = set->ambisonic;
    job.rate = rate;
    job.frames = (int64_t)(fmin(1.1 * longest_decay(room, speed) + 0.1 + direct, LONGEST) * rate);
    job.air = job.tail = true;
    job.images_seconds = images_of(set);
    job.images_order = set->images == 0 ? 0 : -1;
    job.highpass = 25;
    job.seed = gc_mix_bits(set->seed);
    return job;
}

gpuconv_status gc_room_job_read(const char *text, bool receiver_moves, gc_room_job *to, gpuconv_error *error) {
    gc_room_set *given = gc_alloc(1, sizeof *given);
    gpuconv_status status = given ? gc_room_set_parse(text, given, error) : gc_fail_memory(error, text);
    if (!status && !given->receivers && !receiver_moves)
        status =
            gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s: has no receiver; name receiver=X,Y,Z, or a path for it", text);
    if (!status && *given->sofa)
        status = gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                         "%s: ears of a set are for ends that rest; leave out sofa, or name the set with a path", text);
    if (!status && !given->receivers)
        given->receiver[given->receivers++] = (gpuconv_room_point){{0}, 0, 0, 1};
    if (!status)
        status = gc_room_set_draw(given, 0, given->sources ? given->sources : 1, &to->set, error);
    if (!status) {
        to->job = job_of(&to->set, 48000, &to->room);
        to->job.source = given->sources ? to->set.source : NULL;
    }
    free(given);
    return status;
}

gpuconv_status gc_room_set_simulate(const gc_room_set *set, const gpuconv_sofa *ears, gpuconv_arrays *place,
                                    double rate, gpuconv_ir **ir, gpuconv_error *error) {
    gpuconv_room room;
    gpuconv_rooms_job job = job_of(set, rate, &room);
    const int each = ears ? gpuconv_sofa_receivers(ears) : (set->ambisonic + 1) * (set->ambisonic + 1);
    const int channels = set->sources * set->receivers * each;
    job.ears = ears;
    float *samples = gc_alloc(job.frames * channels, sizeof *samples);
    *ir = NULL;
    gpuconv_status status = !samples ? gc_fail_memory(error, "the responses")
                            : channels > GC_MAX_CHANNELS
                                ? gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a response has 1 to %d channels, not %d",
                                          GC_MAX_CHANNELS, channels)
                                : gpuconv_rooms_simulate(place, &job, samples, error);
    if (!status && !(*ir = gc_ir_own(samples, channels, job.frames, rate)))
        return gc_fail_memory(error, "the responses");
    if (status)
        free(samples);
    return status;
}

/* ---- Files ------------------------------------------------------------------------------------------------------- */

/* Appends the columns of points, or their names if `p` is NULL. */
static bool put_columns(gc_buffer *t, const char *name, const gpuconv_room_point *p, int count) {
    static const char *const ends[] = {"x", "y", "z", "azimuth", "elevation"};
    bool good = true;
    for (int i = 0; i < count && good; i++)
        for (int k = 0; k < 5 && good; k++)
            good = p ? put(t, ",%.7g",
                           k < 3    ? p[i].at[k]
                           : k == 3 ? p[i].azimuth
                                    : p[i].elevation)
                     : put(t, ",%s%d_%s", name, i + 1, ends[k]);
    return good;
}

/* Writes "STEM-INDEX.EXTENSION", "STEM.csv" with index 0, or the name itself for one room. */
static void name_file(const gc_room_set *set, const char *path, int64_t index, char *to, size_t room) {
    const int stem = (int)gc_stem_length(path), digits = gc_format(NULL, 0, "%lld", (long long)set->count);
    if (!set->count)
        (void)gc_format(to, room, "%s", path);
    else if (index > 0)
        (void)gc_format(to, room, "%.*s-%0*lld%s", stem, path, digits, (long long)index, path + stem);
    else
        (void)gc_format(to, room, "%.*s.csv", stem, path);
}

/* Rooms that threads write. */
typedef struct writing {
    const gc_room_set *set;
    gpuconv_sofa *ears; /* of set->sofa; NULL: none */
    double rate;
    const char *path;
    int threads;            /* of a simulation */
    gc_buffer *row;         /* of the table, for each room */
    gpuconv_arrays **place; /* of each thread */
    atomic_int status;      /* the first that is not OK, with its error */
    gpuconv_error *error;
} writing;

static gpuconv_status write_room(const writing *w, int64_t index, int worker, gpuconv_error *error) {
    char name[4096], *text = NULL;
    gpuconv_ir *ir = NULL;
    gc_buffer *row = &w->row[index];
    gc_room_set *to = gc_alloc(1, sizeof *to);
    gpuconv_status status = to ? GPUCONV_OK : gc_fail_memory(error, "a room");
    if (!status && !w->place[worker])
        status = gpuconv_arrays_new_cpu(w->threads, &w->place[worker], error);
    if (!status)
        status = gc_room_set_draw(w->set, index, w->set->sources ? w->set->sources : 1, to, error);
    if (!status)
        status = gc_room_set_simulate(to, w->ears, w->place[worker], w->rate, &ir, error);
    name_file(w->set, w->path, index + 1, name, sizeof name);
    if (!status)
        status = gc_ir_write(ir, name, true, error);
    if (!status &&
        !((text = gc_room_set_text(to, GC_ROOM_ALL_SOURCES)) &&
          put(row, "\"%s\",%.7g,%.7g,%.7g,%.7g", gc_file_name(name), to->size[0].low, to->size[1].low, to->size[2].low,
              to->rt60[4].low) &&
          put_columns(row, NULL, to->source, to->sources) && put_columns(row, NULL, to->receiver, to->receivers) &&
          put(row, ",\"") && gc_buffer_append(row, text, strlen(text)) && put(row, "\"\n")))
        status = gc_fail_memory(error, "the table");
    free(text);
    free(to);
    gpuconv_ir_free(ir);
    return status;
}

static void write_one(void *context, int64_t index, int worker) {
    writing *w = context;
    gpuconv_error error = {0};
    int none = GPUCONV_OK;
    const gpuconv_status status = atomic_load(&w->status) ? GPUCONV_OK : write_room(w, index, worker, &error);
    if (status && atomic_compare_exchange_strong(&w->status, &none, (int)status) && w->error)
        *w->error = error;
}

static gpuconv_status write_table(const writing *w, gpuconv_error *error) {
    const gc_room_set *set = w->set;
    char name[4096];
    gc_buffer table = {0};
    bool good = put(&table, "file,size_x,size_y,size_z,rt60") &&
                put_columns(&table, "source", NULL, set->sources ? set->sources : 1) &&
                put_columns(&table, "receiver", NULL, set->receivers ? set->receivers : set->drawn) &&
                put(&table, ",room\n");
    for (int64_t i = 0; i < set->count && good; i++)
        good = gc_buffer_append(&table, w->row[i].bytes, w->row[i].length);
    name_file(set, w->path, 0, name, sizeof name);
    gpuconv_status status = good ? gc_output_file_write(name, GC_OUTPUT_USER_PATH, table.bytes, table.length, error)
                                 : gc_fail_memory(error, "the table");
    free(table.bytes);
    return status;
}

gpuconv_status gc_room_set_write(const gc_room_set *set, double rate, const char *path, gpuconv_error *error) {
    const int64_t count = gc_max(set->count, 1);
    if (strchr(path, '"') || strlen(path) > 4000)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s: a name without quotation marks, of at most 4000 bytes",
                       path);
    gc_pool *pool = gc_pool_new(set->count ? gc_processor_count() : 1);
    const int workers = pool ? gc_pool_threads(pool) : 0;
    writing w = {.set = set, .rate = rate, .path = path, .threads = set->count ? 1 : 0, .error = error};
    w.row = gc_calloc(count, sizeof *w.row);
    w.place = gc_calloc(workers, sizeof(void *));
    gpuconv_status status = pool && w.row && w.place ? GPUCONV_OK : gc_fail_memory(error, "the rooms");
    if (!status && *set->sofa)
        status = gpuconv_sofa_open(set->sofa, rate, &w.ears, error);
    if (!status) {
        gc_pool_run(pool, write_one, &w, count);
        status = (gpuconv_status)atomic_load(&w.status);
    }
    if (!status && gc_cancelled())
        status = gc_fail_cancelled(error, path);
    if (!status && set->count)
        status = write_table(&w, error);
    for (int64_t i = 0; i < count && w.row; i++)
        free(w.row[i].bytes);
    for (int i = 0; i < workers && w.place; i++)
        gpuconv_arrays_free(w.place[i]);
    free(w.row);
    free((void *)w.place);
    gpuconv_sofa_free(w.ears);
    gc_pool_free(pool);
    return status;
}
