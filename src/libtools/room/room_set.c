/* Draws rooms from ranges, simulates them (gpuconv_rooms.h) in groups on all cores, and writes a file for each. */
#include "room_set.h"

#include "libgpuconv/audio/file.h"
#include "libgpuconv/conv/rooms.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/output_file.h"
#include "libgpuconv/core/random.h"
#include "libgpuconv/core/table.h"
#include "libgpuconv/core/visible.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP = 32 /* responses that are simulated together */, MOST_POINTS = 1024, TRIES = 10000 };
#define LONGEST 20.0 /* seconds of a response */

/* ---- Materials and positions ------------------------------------------------------------------------------------- */

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
const char gc_material_words[] =
    "brick|painted-brick|concrete|block|painted-block|plaster|plasterboard|glass|window|tile|"
    "wood|parquet|linoleum|plywood|carpet|carpet-on-foam|curtain|heavy-curtain|seats|audience";

void gc_material_absorption(int material, double absorption[GPUCONV_ROOM_BANDS]) {
    (void)gc_room_spread(materials[material], 6, absorption);
}

bool gc_room_spread(const double *values, int count, double octaves[GPUCONV_ROOM_BANDS]) {
    for (int b = 0; b < GPUCONV_ROOM_BANDS; b++)
        octaves[b] = values[count == 1 ? 0 : count == 6 ? (b < 1 ? 0 : b > 6 ? 5 : b - 1) : b];
    return count == 1 || count == 6 || count == GPUCONV_ROOM_BANDS;
}

gpuconv_status gc_room_points_read(const char *path, gpuconv_room_point **points, int *count, gpuconv_error *error) {
    static const gc_table_form form = {.kind = GC_TABLE_NUMBERS, .most = 5, .comments = true, .quotes = true};
    gc_lines lines;
    gc_table table = {0};
    *count = 0;
    *points = gc_calloc(MOST_POINTS, sizeof **points);
    gpuconv_status status = gc_lines_open(&lines, path, GC_TEXT_LONGEST, GC_TEXT_MOST, error);
    if (!status)
        status = *points ? gc_table_open(&table, &form, &lines, error) : gc_fail_memory(error, path);
    for (bool more = true; more && !status;) {
        double v[5] = {0};
        bool good = *count < MOST_POINTS;
        status = gc_table_next(&table, &more, error);
        if (status || !more)
            break;
        good = good && (table.fields == 3 || table.fields == 5);
        for (int f = 0; f < table.fields && good; f++)
            good = gc_table_number(&table, f, &v[f]);
        if (good)
            (*points)[(*count)++] = (gpuconv_room_point){{v[0], v[1], v[2]}, v[3], v[4], 1};
        else
            status = gc_table_fail(&table, error, "is not X Y Z or X Y Z AZIMUTH ELEVATION, in at most %d lines",
                                   MOST_POINTS);
    }
    gc_table_close(&table);
    gc_lines_close(&lines);
    if (!status && *count == 0)
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: has no line of X Y Z", path);
    return status;
}

/* ---- Drawing ----------------------------------------------------------------------------------------------------- */

/* Rooms that are simulated together. */
typedef struct group {
    gpuconv_room room[GROUP];
    gpuconv_room_point *source, *receiver; /* of every room */
    int64_t frames[GROUP];
    int sources, receivers, channels;
} group;

static double draw(uint64_t *state, gc_span span) {
    return span.low + (span.high - span.low) * gc_unit_of_bits(gc_random_bits(state));
}

/* Draws a place at least 0.5 m, or a fifth of the side, from the walls. */
static gpuconv_room_point draw_point(uint64_t *state, const gpuconv_room *room, double omni) {
    gpuconv_room_point p = {.omni = omni};
    for (int a = 0; a < 3; a++) {
        const double margin = fmin(0.5, 0.2 * room->size[a]);
        p.at[a] = draw(state, (gc_span){margin, room->size[a] - margin});
    }
    return p;
}

/* Draws the receivers of a room, and a source for each try if it was not given. */
static gpuconv_status draw_receivers(const gc_room_set *set, uint64_t *state, const gpuconv_room *room,
                                     gpuconv_room_point *source, gpuconv_room_point *receiver, gpuconv_error *error) {
    const double degrees = 180 / acos(-1), far = set->distance.high > 0 ? set->distance.high : HUGE_VAL;
    const double near = fmax(set->distance.low, 0.1);
    int made = 0;
    for (int tried = 0; made < set->drawn && tried < TRIES; tried++) {
        if (!set->sources && made == 0)
            *source = draw_point(state, room, 1);
        gpuconv_room_point *p = &receiver[made];
        *p = draw_point(state, room, set->omni);
        const double apart = gc_room_distance(source->at, p->at);
        if (apart < near || apart > far)
            continue;
        if (!set->ambisonic && set->omni < 1) {
            p->azimuth = atan2(source->at[1] - p->at[1], source->at[0] - p->at[0]) * degrees;
            p->elevation = asin((source->at[2] - p->at[2]) / apart) * degrees;
        }
        made++;
    }
    return made == set->drawn ? GPUCONV_OK
                              : gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                                        "a room of %g x %g x %g m has no receiver %g to %g m from the source",
                                        room->size[0], room->size[1], room->size[2], near, far);
}

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

/* Draws room `index` of the set into place `i` of the group. */
static gpuconv_status draw_room(const gc_room_set *set, int64_t index, group *g, int i, gpuconv_error *error) {
    uint64_t state = gc_mix_bits(gc_mix_bits(set->seed) + (uint64_t)index * GC_SPLITMIX_STEP);
    gpuconv_room *room = &g->room[i];
    gpuconv_room_point *source = g->source + (int64_t)i * g->sources,
                       *receiver = g->receiver + (int64_t)i * g->receivers;
    memset(room, 0, sizeof *room);
    memcpy(room->absorption, set->absorption, sizeof room->absorption);
    for (int a = 0; a < 3; a++)
        room->size[a] = draw(&state, set->size[a]);
    const double part = draw(&state, (gc_span){0, 1}), speed = gc_speed_of_sound(20);
    for (int b = 0; b < GPUCONV_ROOM_BANDS; b++)
        room->rt60[b] = set->rt60[b].low + part * (set->rt60[b].high - set->rt60[b].low);
    if (set->sources)
        memcpy(source, set->source, (size_t)set->sources * sizeof *source);
    gpuconv_status status = GPUCONV_OK;
    if (set->receivers) {
        memcpy(receiver, set->receiver, (size_t)set->receivers * sizeof *receiver);
        if (!set->sources)
            *source = draw_point(&state, room, 1);
    } else {
        status = draw_receivers(set, &state, room, source, receiver, error);
    }
    const double direct = hypot(hypot(room->size[0], room->size[1]), room->size[2]) / speed;
    g->frames[i] = (int64_t)(fmin(1.1 * longest_decay(room, speed) + 0.1 + direct, LONGEST) * set->rate);
    return status;
}

/* ---- Files ------------------------------------------------------------------------------------------------------- */

static bool append(gc_buffer *t, const char *words) {
    return gc_buffer_append(t, words, strlen(words));
}

static bool append_numbers(gc_buffer *t, const double *values, int count) {
    char word[GC_NUMBER_TEXT + 1];
    bool good = true;
    for (int i = 0; i < count && good; i++) {
        (void)gc_format(word, sizeof word, ",%.7g", values[i]);
        good = append(t, word);
    }
    return good;
}

static bool append_points(gc_buffer *t, const char *name, const gpuconv_room_point *points, int count) {
    char word[128];
    bool good = true;
    for (int i = 0; i < count && good; i++) {
        if (name) {
            (void)gc_format(word, sizeof word, ",%s%d_x,%s%d_y,%s%d_z,%s%d_azimuth,%s%d_elevation", name, i + 1, name,
                            i + 1, name, i + 1, name, i + 1, name, i + 1);
            good = append(t, word);
        } else {
            good = append_numbers(t, points[i].at, 3) && append_numbers(t, &points[i].azimuth, 1) &&
                   append_numbers(t, &points[i].elevation, 1);
        }
    }
    return good;
}

/* Writes "STEM-INDEX.EXTENSION", or "STEM.csv" without an index, into `to`. */
static void name_file(const char *path, int64_t index, int digits, char *to, size_t room) {
    const int stem = (int)gc_stem_length(path);
    if (index > 0)
        (void)gc_format(to, room, "%.*s-%0*lld%s", stem, path, digits, (long long)index, path + stem);
    else
        (void)gc_format(to, room, "%.*s.csv", stem, path);
}

static gpuconv_status write_response(const gc_room_set *set, const group *g, const float *samples, int64_t frames,
                                     int64_t stride, const char *path, gpuconv_error *error) {
    const float **plane = gc_calloc(g->channels, sizeof *plane);
    gpuconv_ir *ir = NULL;
    for (int c = 0; c < g->channels && plane; c++)
        plane[c] = samples + c * stride;
    gpuconv_status status = plane ? gpuconv_ir_new(plane, g->channels, frames, set->rate, &ir, error)
                                  : gc_fail_memory(error, "the response");
    if (!status)
        status = gc_ir_write(ir, path, true, error);
    gpuconv_ir_free(ir);
    free(plane);
    return status;
}

/* Simulates rooms from..from + count - 1, writes their files and appends their rows. The length of a simulation is that
 * of the longest of `together` rooms, so that the bytes do not depend on how many there are. */
static gpuconv_status write_group(const gc_room_set *set, gpuconv_arrays *place, group *g, int64_t from, int count,
                                  int together, const char *path, gc_buffer *table, gpuconv_error *error) {
    gpuconv_rooms_job job = gpuconv_rooms_job_default();
    gpuconv_status status = GPUCONV_OK;
    const int digits = gc_format(NULL, 0, "%lld", (long long)set->count);
    double volume = 1;
    job.frames = 0;
    for (int i = 0; i < together && !status; i++) {
        status = draw_room(set, from + i, g, i, i < count ? error : NULL);
        status = i < count ? status : GPUCONV_OK;
        job.frames = gc_max(job.frames, g->frames[i]);
    }
    for (int a = 0; a < 3; a++)
        volume *= set->size[a].low;
    job.room = g->room;
    job.rooms = count;
    job.source = g->source;
    job.sources = g->sources;
    job.receiver = g->receiver;
    job.receivers = g->receivers;
    job.ambisonic = set->ambisonic;
    job.rate = set->rate;
    job.air = job.tail = true;
    job.images_seconds = set->images >= 0 ? set->images : 0.075 + 0.005 * cbrt(volume);
    job.images_order = set->images == 0 ? 0 : -1;
    job.highpass = 25;
    job.seed = gc_mix_bits(set->seed + (uint64_t)from * GC_SPLITMIX_STEP);
    float *samples = status ? NULL : gc_calloc(job.frames * g->channels * count, sizeof *samples);
    if (!status)
        status = samples ? gpuconv_rooms_simulate(place, &job, samples, error) : gc_fail_memory(error, "the responses");
    for (int i = 0; i < count && !status; i++) {
        char name[4096];
        name_file(path, from + i + 1, digits, name, sizeof name);
        status = write_response(set, g, samples + i * job.frames * g->channels, g->frames[i], job.frames,
                                set->count ? name : path, error);
        if (!status &&
            !(append(table, "\"") && append(table, gc_file_name(name)) && append(table, "\"") &&
              append_numbers(table, g->room[i].size, 3) && append_numbers(table, g->room[i].rt60 + 4, 1) &&
              append_points(table, NULL, g->source + (int64_t)i * g->sources, g->sources) &&
              append_points(table, NULL, g->receiver + (int64_t)i * g->receivers, g->receivers) && append(table, "\n")))
            status = gc_fail_memory(error, "the table");
    }
    free(samples);
    return status;
}

gpuconv_status gc_room_set_write(const gc_room_set *set, const char *path, gpuconv_error *error) {
    group g = {.sources = set->sources ? set->sources : 1, .receivers = set->receivers ? set->receivers : set->drawn};
    g.channels = g.sources * g.receivers * (set->ambisonic + 1) * (set->ambisonic + 1);
    const int64_t count = gc_max(set->count, 1), together = gc_max(GROUP / g.channels, 1);
    gpuconv_arrays *place = NULL;
    gc_buffer table = {0};
    if (strchr(path, '"') || strlen(path) > 4000)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s: a name without quotation marks, of at most 4000 bytes",
                       path);
    g.source = gc_calloc(together * g.sources, sizeof *g.source);
    g.receiver = gc_calloc(together * g.receivers, sizeof *g.receiver);
    gpuconv_status status = g.source && g.receiver && append(&table, "file,size_x,size_y,size_z,rt60") &&
                                    append_points(&table, "source", g.source, g.sources) &&
                                    append_points(&table, "receiver", g.receiver, g.receivers) && append(&table, "\n")
                                ? gpuconv_arrays_new_cpu(0, &place, error)
                                : gc_fail_memory(error, "the rooms");
    for (int64_t from = 0; from < count && !status; from += together)
        status =
            write_group(set, place, &g, from, (int)gc_min(together, count - from), (int)together, path, &table, error);
    if (!status && set->count) {
        char name[4096];
        name_file(path, 0, 0, name, sizeof name);
        status = gc_output_file_write(name, GC_OUTPUT_USER_PATH, table.bytes, table.length, error);
    }
    gpuconv_arrays_free(place);
    free(table.bytes);
    free(g.source);
    free(g.receiver);
    return status;
}
