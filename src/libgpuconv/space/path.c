/* Paths from arrays and from text files. */
#include "path.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/limits.h"
#include "libgpuconv/core/lines.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LINE = 1 << 17, MAX_TEXT = 1 << 28 /* bytes */ };

static const double pi = 3.14159265358979323846, most_azimuth = 1e6, most_seconds = 1e9;

/* Returns whether the values of a row are in their ranges. */
static bool is_row(const gpuconv_path *p, double seconds, const double *direction) {
    bool good = seconds >= 0 && seconds <= most_seconds;
    for (int c = 0; c < p->channels; c++) {
        const double *d = direction + 3 * (int64_t)c;
        good = good && fabs(d[0]) <= most_azimuth && fabs(d[1]) <= 90 && d[2] >= 0.01 && d[2] <= 1000;
    }
    return good;
}

/* Makes room for `rows` rows. Returns false without memory. */
static bool reserve(gpuconv_path *p, int64_t rows) {
    const int64_t width = 3 * (int64_t)p->channels;
    if (rows <= p->room)
        return true;
    double *seconds = gc_calloc(rows, sizeof *seconds), *direction = gc_calloc(rows, width * (int64_t)sizeof *seconds);
    if (!seconds || !direction) {
        free(seconds);
        free(direction);
        return false;
    }
    if (p->count) {
        memcpy(seconds, p->seconds, (size_t)p->count * sizeof *seconds);
        memcpy(direction, p->direction, (size_t)(p->count * width) * sizeof *direction);
    }
    free(p->seconds);
    free(p->direction);
    p->seconds = seconds;
    p->direction = direction;
    p->room = rows;
    return true;
}

static gpuconv_path *blank(int channels) {
    gpuconv_path *p = gc_calloc(1, sizeof *p);
    if (p)
        p->channels = channels;
    return p;
}

static gpuconv_status check_channels(int channels, gpuconv_error *error) {
    if (channels >= 1 && channels <= GC_MAX_CHANNELS)
        return GPUCONV_OK;
    return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a path has 1 to %d channels, not %d", GC_MAX_CHANNELS, channels);
}

gpuconv_status gpuconv_path_new(const double *seconds, const double *directions, int64_t count, int channels,
                                gpuconv_path **path, gpuconv_error *error) {
    if (!gc_begin(path, seconds, __func__, error) || !directions)
        return gc_fail_null(error, __func__);
    gpuconv_status status = check_channels(channels, error);
    if (status)
        return status;
    if (count < 1)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a path has 1 row or more, not %lld", (long long)count);
    gpuconv_path *p = blank(channels);
    if (!p || !reserve(p, count))
        status = gc_fail_memory(error, "the path");
    for (int64_t i = 0; i < count && !status; i++) {
        const double *row = directions + 3 * i * channels;
        if (!is_row(p, seconds[i], row) || (i > 0 && seconds[i] < seconds[i - 1]))
            status =
                gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                        "row %lld of the path: times rise from 0 s, azimuths are up to 1000000 degrees, elevations "
                        "-90 to 90, distances 0.01 to 1000 m",
                        (long long)i + 1);
        else {
            p->seconds[i] = seconds[i];
            memcpy(p->direction + 3 * i * channels, row, 3 * (size_t)channels * sizeof *row);
            p->count = i + 1;
        }
    }
    if (status)
        gpuconv_path_free(p);
    else
        *path = p;
    return status;
}

void gpuconv_path_free(gpuconv_path *p) {
    if (!p)
        return;
    free(p->seconds);
    free(p->direction);
    free(p);
}

/* Parses a line into the row behind the last one: a time, and for each channel two or three numbers. Returns how many
 * numbers there are, -1 if the first word is none, -2 for other words or too many. `value` has room for all. */
static int parse_line(char *line, int most, double *value) {
    int count = 0;
    char *rest = NULL;
    for (char *word = strtok_r(line, " \t\r\n,;", &rest); word && *word != '#';
         word = strtok_r(NULL, " \t\r\n,;", &rest))
        if (count == most || !gc_number_parse(word, &value[count++]))
            return count == 1 ? -1 : -2;
    return count;
}

/* Appends a row of numbers. Returns FORMAT, MEMORY. */
static gpuconv_status append(gpuconv_path *p, const double *value, int count, gpuconv_error *error) {
    const int each = (count - 1) / p->channels;
    if ((each != 2 && each != 3) || each * p->channels != count - 1)
        return gc_fail(error, GPUCONV_ERROR_FORMAT,
                       "is not SECONDS and AZIMUTH, ELEVATION[, DISTANCE] for each of %d channel%s", p->channels,
                       p->channels == 1 ? "" : "s");
    if (p->count == p->room && !reserve(p, gc_max(64, 2 * p->room)))
        return gc_fail_memory(error, "the path");
    double *to = p->direction + 3 * p->count * p->channels;
    for (int c = 0; c < p->channels; c++) {
        const double *from = value + 1 + (int64_t)c * each;
        to[3 * c] = from[0];
        to[3 * c + 1] = from[1];
        to[3 * c + 2] = each == 3 ? from[2] : 1;
    }
    if (!is_row(p, value[0], to))
        return gc_fail(error, GPUCONV_ERROR_FORMAT,
                       "times are 0 s or more, elevations -90 to 90 degrees, distances 0.01 to 1000 m");
    if (p->count && value[0] < p->seconds[p->count - 1])
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%g s is before the line above", value[0]);
    p->seconds[p->count++] = value[0];
    return GPUCONV_OK;
}

/* Reads the lines of a file. A first line of words is a heading. */
static gpuconv_status read_file(gpuconv_path *p, const char *name, gpuconv_error *error) {
    const int most = 1 + 3 * p->channels;
    gpuconv_error inner = {0};
    gc_lines lines;
    char *line;
    double *value = gc_calloc(most, sizeof *value);
    if (!value)
        return gc_fail_memory(error, name);
    gpuconv_status status = gc_lines_open_regular(&lines, name, MAX_LINE, MAX_TEXT, error);
    while (!status && !(status = gc_lines_next(&lines, &line, error)) && line) {
        const int count = parse_line(line, most, value);
        if (count == 0 || (count == -1 && lines.number == 1))
            continue;
        status = append(p, value, count, &inner);
        if (status)
            gc_fail(error, status, "%s, line %lld: %s", name, (long long)lines.number, inner.message);
    }
    gc_lines_close(&lines);
    free(value);
    if (!status && p->count == 0)
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: contains no direction", name);
    return status;
}

gpuconv_status gpuconv_path_load(const char *name, int channels, gpuconv_path **path, gpuconv_error *error) {
    if (!gc_begin(path, name, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    gpuconv_status status = check_channels(channels, error);
    if (status)
        return status;
    gpuconv_path *p = blank(channels);
    status = p ? read_file(p, name, error) : gc_fail_memory(error, name);
    if (status)
        gpuconv_path_free(p);
    else
        *path = p;
    return status;
}

/* Returns the last row at or before a time, or the first. */
static int64_t find_row(const gpuconv_path *p, double seconds) {
    int64_t low = 0, high = p->count;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (p->seconds[middle] <= seconds)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void gc_path_at(const gpuconv_path *p, double seconds, int channel, double at[3]) {
    const int64_t row = find_row(p, seconds), next = gc_min(row + 1, p->count - 1);
    const double span = p->seconds[next] - p->seconds[row];
    const double part = span > 0 ? fmin(1, fmax(0, (seconds - p->seconds[row]) / span)) : 0;
    const double *a = p->direction + 3 * (row * p->channels + channel);
    const double *b = p->direction + 3 * (next * p->channels + channel);
    const double azimuth = (a[0] + part * (b[0] - a[0])) * pi / 180;
    const double elevation = (a[1] + part * (b[1] - a[1])) * pi / 180, distance = a[2] + part * (b[2] - a[2]);
    at[0] = distance * cos(elevation) * cos(azimuth);
    at[1] = distance * cos(elevation) * sin(azimuth);
    at[2] = distance * sin(elevation);
}
