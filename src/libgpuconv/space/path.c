/* Paths from arrays, from files, and of sources that stay where they are. */
#include "path.h"

#include "gpuconv_rooms.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/limits.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/ir/ambisonic.h"
#include "libgpuconv/ir/spatial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double most_azimuth = 1e6, most_seconds = 1e9;

/* Returns whether a row of a channel is in its ranges. */
static bool is_row(double seconds, const double d[3]) {
    return seconds >= 0 && seconds <= most_seconds && fabs(d[0]) <= most_azimuth && fabs(d[1]) <= 90 && d[2] >= 0.01 &&
           d[2] <= 1000;
}

/* Makes a path without rows. Returns ARGUMENT, MEMORY. */
static gpuconv_status blank(int channels, int most, gpuconv_path **path, gpuconv_error *error) {
    if (channels < 1 || channels > most)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a path has 1 to %d channels, not %d", most, channels);
    gpuconv_path *p = gc_calloc(1, sizeof *p);
    *path = p;
    if (p)
        p->track = gc_calloc(channels, sizeof *p->track);
    if (!p || !p->track)
        return gc_fail_memory(error, "the path");
    p->channels = channels;
    return GPUCONV_OK;
}

/* Hands a path over, or frees it after a failure. Returns the status. */
static gpuconv_status finish(gpuconv_status status, gpuconv_path *made, gpuconv_path **path) {
    if (status)
        gpuconv_path_free(made);
    else
        *path = made;
    return status;
}

/* Returns whether a row of a channel in a room is in its ranges. */
static bool is_row_in_room(double seconds, const double at[3]) {
    return seconds >= 0 && seconds <= most_seconds && at[0] >= 0 && at[0] <= 1000 && at[1] >= 0 && at[1] <= 1000 &&
           at[2] >= 0 && at[2] <= 1000;
}

/* Returns the channel of an address that ends in NUMBER/aed, as those of ADM-OSC do. */
static int64_t find_channel(const char *address) {
    static const char aed[] = "/aed";
    const size_t length = strlen(address), end = length - gc_min((int64_t)length, sizeof aed - 1);
    char digits[8] = "";
    int64_t number;
    size_t begin = end;
    while (begin > 0 && address[begin - 1] != '/')
        begin--;
    if (strcmp(address + end, aed) != 0 || begin == 0 || end - begin >= sizeof digits)
        return -1;
    memcpy(digits, address + begin, end - begin);
    return gc_integer_parse(digits, &number) ? number - 1 : -1;
}

/* Refuses all messages: those of ADM-OSC are not in metres. */
static int64_t find_none(const char *address) {
    (void)address;
    return -1;
}

static const gc_track_form around_a_head = {.what = "direction",
                                            .syntax = "SECONDS and AZIMUTH, ELEVATION[, DISTANCE]",
                                            .ranges = "times are 0 s or more, elevations -90 to 90 degrees, distances "
                                                      "0.01 to 1000 m",
                                            .least = 2,
                                            .missing = {0, 0, 1},
                                            .is_row = is_row,
                                            .find_channel = find_channel,
                                            .angles = 1};
static const gc_track_form in_room = {.what = "place",
                                      .syntax = "SECONDS and X, Y, Z",
                                      .ranges = "times are 0 s or more, places 0 to 1000 m",
                                      .least = 3,
                                      .is_row = is_row_in_room,
                                      .find_channel = find_none};

/* Makes a path of rows. Returns ARGUMENT, MEMORY. */
static gpuconv_status make(const double *seconds, const double *places, int64_t count, int channels,
                           const gc_track_form *form, gpuconv_path **path, gpuconv_error *error) {
    gpuconv_path *p = NULL;
    gpuconv_status status = blank(channels, GC_MAX_SOURCES, &p, error);
    if (!status && count < 1)
        status = gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a path has 1 row or more, not %lld", (long long)count);
    for (int64_t i = 0; i < count && !status; i++) {
        bool good = i == 0 || seconds[i] >= seconds[i - 1];
        for (int c = 0; c < channels && !status; c++) {
            const double *row = places + 3 * (i * channels + c);
            good = good && form->is_row(seconds[i], row);
            if (good)
                status = gc_track_append(&p->track[c], seconds[i], row, error);
        }
        if (!status && !good)
            status = gc_fail(error, GPUCONV_ERROR_ARGUMENT, "row %lld of the path: times rise from 0 s, %s",
                             (long long)i + 1,
                             form == &in_room ? "places are 0 to 1000 m"
                                              : "azimuths are up to 1000000 degrees, elevations -90 to 90, distances "
                                                "0.01 to 1000 m");
    }
    if (!status)
        p->metres = form == &in_room;
    return finish(status, p, path);
}

gpuconv_status gpuconv_path_new(const double *seconds, const double *directions, int64_t count, int channels,
                                gpuconv_path **path, gpuconv_error *error) {
    if (!gc_begin(path, seconds, __func__, error) || !directions)
        return gc_fail_null(error, __func__);
    return make(seconds, directions, count, channels, &around_a_head, path, error);
}

gpuconv_status gpuconv_path_new_in_room(const double *seconds, const double *places, int64_t count, int channels,
                                        gpuconv_path **path, gpuconv_error *error) {
    if (!gc_begin(path, seconds, __func__, error) || !places)
        return gc_fail_null(error, __func__);
    return make(seconds, places, count, channels, &in_room, path, error);
}

void gpuconv_path_free(gpuconv_path *p) {
    if (!p)
        return;
    for (int c = 0; c < p->channels; c++)
        gc_track_free(&p->track[c]);
    free(p->track);
    free(p);
}

static gpuconv_status load(const char *name, int channels, const gc_track_form *form, gpuconv_path **path,
                           gpuconv_error *error) {
    gpuconv_path *p = NULL;
    gpuconv_status status = blank(channels, GC_MAX_CHANNELS, &p, error);
    if (!status) {
        p->metres = form == &in_room;
        status = gc_track_read(p->track, channels, form, name, &p->text, error);
    }
    return finish(status, p, path);
}

gpuconv_status gpuconv_path_load(const char *name, int channels, gpuconv_path **path, gpuconv_error *error) {
    if (!gc_begin(path, name, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    return load(name, channels, &around_a_head, path, error);
}

gpuconv_status gpuconv_path_load_in_room(const char *name, int channels, gpuconv_path **path, gpuconv_error *error) {
    if (!gc_begin(path, name, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    return load(name, channels, &in_room, path, error);
}

/* Finds the directions of a place. Returns ARGUMENT, FILE, FORMAT. */
static gpuconv_status find_directions(const char *place, gc_directions *d, gpuconv_error *error) {
    d->count = 1;
    return gc_direction_parse(place, d->at[0]) ? GPUCONV_OK : gc_directions_of_layout(place, d, error);
}

gpuconv_status gpuconv_path_new_still(const char *place, int channels, gpuconv_path **path, gpuconv_error *error) {
    gpuconv_path *p = NULL;
    if (!gc_begin(path, place, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    gpuconv_status status = blank(channels, GC_MAX_CHANNELS, &p, error);
    gc_directions *d = gc_calloc(1, sizeof *d);
    if (!status && !d)
        status = gc_fail_memory(error, "the path");
    if (!status && strcmp(place, "ambisonic") == 0) {
        p->ambisonic = true;
        if (!gc_ambisonic_order(channels))
            status = gc_fail(error, GPUCONV_ERROR_TOPOLOGY,
                             "ambisonics of order 1 to 7 have 4, 9, 16, 25, 36, 49 or 64 channels, not %d", channels);
    } else if (!status && !(status = find_directions(place, d, error)) && d->count != channels)
        status = gc_fail(error, GPUCONV_ERROR_TOPOLOGY, "%s: %d direction%s for %d channel%s", place, d->count,
                         d->count == 1 ? "" : "s", channels, channels == 1 ? "" : "s");
    for (int c = 0; c < channels && !status; c++) {
        static const double nowhere[3] = {0};
        const double *at = p->ambisonic ? nowhere : d->at[c], flat = hypot(at[0], at[1]);
        const double row[3] = {atan2(at[1], at[0]) * 180 / M_PI, atan2(at[2], flat) * 180 / M_PI, hypot(flat, at[2])};
        status = gc_track_append(&p->track[c], 0, row, error);
    }
    free(d);
    return finish(status, p, path);
}

void gc_path_at(const gpuconv_path *p, double seconds, int channel, double at[3]) {
    double place[3];
    gc_track_at(&p->track[channel], seconds, place);
    if (p->metres)
        memcpy(at, place, sizeof place);
    else
        gc_path_point(place, at);
}

void gc_path_point(const double place[3], double at[3]) {
    const double azimuth = place[0] * M_PI / 180, elevation = place[1] * M_PI / 180;
    at[0] = place[2] * cos(elevation) * cos(azimuth);
    at[1] = place[2] * cos(elevation) * sin(azimuth);
    at[2] = place[2] * sin(elevation);
}

void gc_path_distances(const gpuconv_path *p, double *least, double *most) {
    *least = HUGE_VAL;
    *most = 0;
    for (int c = 0; c < p->channels; c++)
        for (int64_t i = 2; i < p->track[c].count * GC_TRACK_VALUES; i += GC_TRACK_VALUES) {
            *least = fmin(*least, p->track[c].value[i]);
            *most = fmax(*most, p->track[c].value[i]);
        }
}
