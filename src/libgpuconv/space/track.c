/* Rows from text files and from recordings of OSC. A message sets one channel; the values of the others at that time
 * are interpolated between their own messages once all are read. */
#include "track.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/lines.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LINE = 1 << 17, MAX_TEXT = 1 << 28 /* bytes */ };

/* Messages of a recording that are nearer to each other are one row. */
static const double together = 0.001; /* s */

static const char blanks[] = " \t\r\n,;";

void gc_track_free(gc_track *t) {
    free(t->seconds);
    free(t->value);
}

/* Makes room for `rows` rows. Returns false without memory. */
static bool reserve(gc_track *t, int64_t rows) {
    double *seconds = gc_calloc(rows, sizeof *seconds), *value = gc_calloc(rows, t->width * (int64_t)sizeof *value);
    if (!seconds || !value) {
        free(seconds);
        free(value);
        return false;
    }
    if (t->count) {
        memcpy(seconds, t->seconds, (size_t)t->count * sizeof *seconds);
        memcpy(value, t->value, (size_t)(t->count * t->width) * sizeof *value);
    }
    gc_track_free(t);
    t->seconds = seconds;
    t->value = value;
    t->room = rows;
    return true;
}

gpuconv_status gc_track_append(gc_track *t, double seconds, const double *value, gpuconv_error *error) {
    if (t->count == t->room && !reserve(t, gc_max(64, 2 * t->room)))
        return gc_fail_memory(error, "the path");
    memcpy(t->value + t->count * t->width, value, (size_t)t->width * sizeof *value);
    t->seconds[t->count++] = seconds;
    return GPUCONV_OK;
}

/* ---- Text -------------------------------------------------------------------------------------------------------- */

/* A text that is read. */
typedef struct reading {
    gc_track *track;
    const gc_track_form *form;
    double *row;    /* 1 + width, in which a line is parsed; a row of a recording */
    bool recording; /* it has messages of OSC */
    double first;   /* time of the first message */
    int64_t number; /* of the line */
} reading;

/* Parses the numbers of a line. Returns their count, -1 if the first word is no number, and -2 for any other line. */
static int parse_numbers(char *line, int most, double *value) {
    int count = 0;
    char *rest = NULL;
    for (char *word = strtok_r(line, blanks, &rest); word && *word != '#'; word = strtok_r(NULL, blanks, &rest))
        if (count == most || !gc_number_parse(word, &value[count++]))
            return count == 1 ? -1 : -2;
    return count;
}

/* Parses the time of a message, SSSSSSSS.FFFFFFFF: seconds and their 2^-32 in hexadecimal digits, before an address.
 * Returns whether a line begins with one. */
static bool parse_time(const char *line, double *seconds) {
    enum { DIGITS = 8, TIME = 2 * DIGITS + 1 };
    if (strspn(line, "0123456789abcdef") != DIGITS || line[DIGITS] != '.' ||
        strspn(line + DIGITS + 1, "0123456789abcdef") != DIGITS || line[TIME] != ' ' || line[TIME + 1] != '/')
        return false;
    *seconds = (double)strtoul(line, NULL, 16) + ldexp((double)strtoul(line + DIGITS + 1, NULL, 16), -32);
    return true;
}

/* Returns an angle that is 360 degrees times a whole number from `angle`, and at most 180 from the last one before the
 * row `at` of the same value. */
static double unwrap(const gc_track *t, int64_t value, double angle) {
    int64_t row = t->count - 1;
    while (row >= 0 && isnan(t->value[row * t->width + value]))
        row--;
    return row < 0 ? angle : angle + 360 * nearbyint((t->value[row * t->width + value] - angle) / 360);
}

/* Adds a message to the rows; leaves out those for no channel. Returns FORMAT, MEMORY. */
static gpuconv_status take_message(reading *r, double seconds, char *line, gpuconv_error *error) {
    gc_track *t = r->track;
    double value[4];
    char *rest = NULL;
    (void)strtok_r(line, blanks, &rest);
    const char *address = strtok_r(NULL, blanks, &rest), *types = strtok_r(NULL, blanks, &rest);
    const int64_t channel = types ? r->form->find_channel(address) : -1;
    if (channel < 0 || 3 * channel >= t->width || parse_numbers(rest, 3, value + 1) != 3)
        return GPUCONV_OK;
    value[0] = seconds - r->first;
    if (t->count && value[0] < t->seconds[t->count - 1])
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%g s is before the line above", value[0]);
    for (int k = 0; k < r->form->angles; k++)
        value[k + 1] = unwrap(t, 3 * channel + k, value[k + 1]);
    if (t->count == 0 || value[0] >= t->seconds[t->count - 1] + together) {
        for (int k = 0; k < t->width; k++)
            r->row[k] = (double)NAN;
        gpuconv_status status = gc_track_append(t, value[0], r->row, error);
        if (status)
            return status;
    }
    memcpy(t->value + (t->count - 1) * t->width + 3 * channel, value + 1, 3 * sizeof *value);
    return GPUCONV_OK;
}

/* Takes a line. Returns FORMAT, MEMORY. */
static gpuconv_status take_line(reading *r, char *line, gpuconv_error *error) {
    double seconds = 0;
    if (parse_time(line, &seconds) && (r->recording || r->track->count == 0)) {
        r->first = r->recording ? r->first : seconds;
        r->recording = true;
        return take_message(r, seconds, line, error);
    }
    const int count = parse_numbers(line, 1 + r->track->width, r->row);
    if (count == 0 || (count == -1 && (r->number == 1 || r->recording))) /* a heading, or a message of the program */
        return GPUCONV_OK;
    return r->recording ? gc_fail(error, GPUCONV_ERROR_FORMAT, "is no OSC message as those above")
                        : r->form->append(r->track, r->row, count, error);
}

/* Fills in the values that have no message at the time of their row. Returns FORMAT. */
static gpuconv_status fill_gaps(gc_track *t, gpuconv_error *error) {
    for (int k = 0; k < t->width; k++) {
        double *value = t->value + k;
        const int64_t w = t->width;
        int64_t known = -1;
        for (int64_t row = 0; row < t->count; row++) {
            if (isnan(value[row * w]))
                continue;
            const double span = known < 0 ? 0 : t->seconds[row] - t->seconds[known];
            for (int64_t gap = known + 1; gap < row; gap++) {
                const double part = span > 0 ? (t->seconds[gap] - t->seconds[known]) / span : 1;
                const double from = known < 0 ? value[row * w] : value[known * w];
                value[gap * w] = from + part * (value[row * w] - from);
            }
            known = row;
        }
        if (known < 0)
            return gc_fail(error, GPUCONV_ERROR_FORMAT, "has no OSC message for channel %d", k / 3 + 1);
        for (int64_t gap = known + 1; gap < t->count; gap++)
            value[gap * w] = value[known * w];
    }
    return GPUCONV_OK;
}

/* Checks the rows of a recording, as those of numbers are checked. Returns FORMAT, MEMORY. */
static gpuconv_status check_recording(reading *r, gpuconv_error *error) {
    gc_track filled = *r->track;
    *r->track = (gc_track){.width = filled.width};
    gpuconv_status status = fill_gaps(&filled, error);
    for (int64_t row = 0; row < filled.count && !status; row++) {
        r->row[0] = filled.seconds[row];
        memcpy(r->row + 1, filled.value + row * filled.width, (size_t)filled.width * sizeof *r->row);
        status = r->form->append(r->track, r->row, 1 + filled.width, error);
    }
    gc_track_free(&filled);
    return status;
}

gpuconv_status gc_track_read(gc_track *track, const gc_track_form *form, const char *name, gpuconv_error *error) {
    reading r = {.track = track, .form = form, .row = gc_calloc(1 + (int64_t)track->width, sizeof *r.row)};
    gpuconv_error inner = {0};
    gc_lines lines;
    char *line;
    if (!r.row)
        return gc_fail_memory(error, name);
    gpuconv_status status = gc_lines_open_regular(&lines, name, MAX_LINE, MAX_TEXT, error);
    while (!status && !(status = gc_lines_next(&lines, &line, error)) && line) {
        r.number = lines.number;
        status = take_line(&r, line, &inner);
        if (status)
            gc_fail(error, status, "%s, line %lld: %s", name, (long long)lines.number, inner.message);
    }
    gc_lines_close(&lines);
    if (!status && r.track->count == 0)
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: contains no %s", name, form->what);
    if (!status && r.recording && (status = check_recording(&r, &inner)))
        gc_fail(error, status, "%s: %s", name, inner.message);
    free(r.row);
    return status;
}

/* ---- Values ------------------------------------------------------------------------------------------------------ */

/* Returns the last row at or before a time, or the first. */
static int64_t find_row(const gc_track *t, double seconds) {
    int64_t low = 0, high = t->count;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (t->seconds[middle] <= seconds)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void gc_track_at(const gc_track *t, double seconds, int first, int count, double *to) {
    const int64_t row = find_row(t, seconds), next = gc_min(row + 1, t->count - 1);
    const double span = t->seconds[next] - t->seconds[row];
    const double part = span > 0 ? fmin(1, fmax(0, (seconds - t->seconds[row]) / span)) : 0;
    const double *a = t->value + row * t->width + first, *b = t->value + next * t->width + first;
    for (int k = 0; k < count; k++)
        to[k] = a[k] + part * (b[k] - a[k]);
}
