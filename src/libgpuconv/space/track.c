/* Rows from tables and from recordings of OSC. Each channel has its own rows, so that a message takes the memory of a
 * message, whatever the number of channels. */
#include "track.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLE = 1 << 16 /* bytes */ };

/* Messages to a channel that are nearer to each other are one row. */
static const double together = 0.001; /* s */

void gc_track_free(gc_track *t) {
    free(t->seconds);
    free(t->value);
}

/* Makes room for `rows` rows. Returns false without memory. */
static bool reserve(gc_track *t, int64_t rows) {
    double *seconds = gc_alloc(rows, sizeof *seconds),
           *value = gc_alloc(rows, GC_TRACK_VALUES * (int64_t)sizeof *value);
    if (!seconds || !value) {
        free(seconds);
        free(value);
        return false;
    }
    if (t->count) {
        memcpy(seconds, t->seconds, (size_t)t->count * sizeof *seconds);
        memcpy(value, t->value, (size_t)(t->count * GC_TRACK_VALUES) * sizeof *value);
    }
    gc_track_free(t);
    t->seconds = seconds;
    t->value = value;
    t->room = rows;
    return true;
}

gpuconv_status gc_track_append(gc_track *t, double seconds, const double value[GC_TRACK_VALUES], gpuconv_error *error) {
    if (t->count == t->room && !reserve(t, gc_max(4, 2 * t->room)))
        return gc_fail_memory(error, "the path");
    memcpy(t->value + t->count * GC_TRACK_VALUES, value, GC_TRACK_VALUES * sizeof *value);
    t->seconds[t->count++] = seconds;
    return GPUCONV_OK;
}

/* ---- Text -------------------------------------------------------------------------------------------------------- */

/* A text that is read. */
typedef struct reading {
    gc_table table;
    gc_track *track; /* of each channel */
    int channels;
    const gc_track_form *form;
    double first; /* time of the first message */
} reading;

/* Checks and appends a row of a channel. Returns FORMAT, MEMORY. */
static gpuconv_status append(reading *r, gc_track *t, double seconds, const double *value, gpuconv_error *error) {
    if (!r->form->is_row(seconds, value))
        return gc_table_fail(&r->table, error, "%s", r->form->ranges);
    if (t->count && seconds < t->seconds[t->count - 1])
        return gc_table_fail(&r->table, error, "%g s is before the line above", seconds);
    return gc_track_append(t, seconds, value, error);
}

/* Takes a row of a table. Returns FORMAT, MEMORY. */
static gpuconv_status take_row(reading *r, gpuconv_error *error) {
    gc_table *t = &r->table;
    const int each = (t->fields - 1) / r->channels;
    double seconds = 0;
    if (each < r->form->least || each > GC_TRACK_VALUES || each * r->channels != t->fields - 1)
        return gc_table_fail(t, error, r->channels == 1 ? "is not %s" : "is not %s for each of %d channels",
                             r->form->syntax, r->channels);
    gpuconv_status status =
        gc_table_number(t, 0, &seconds) ? GPUCONV_OK : gc_table_fail(t, error, "'%.40s' is not a number", t->field[0]);
    for (int c = 0; c < r->channels && !status; c++) {
        double value[GC_TRACK_VALUES];
        memcpy(value, r->form->missing, sizeof value);
        for (int k = 0; k < each && !status; k++)
            if (!gc_table_number(t, 1 + c * each + k, &value[k]))
                status = gc_table_fail(t, error, "'%.40s' is not a number", t->field[1 + c * each + k]);
        if (!status)
            status = append(r, &r->track[c], seconds, value, error);
    }
    return status;
}

/* Parses the time of a message, SSSSSSSS.FFFFFFFF: seconds and their 2^-32 in hexadecimal digits, before an address.
 * Returns whether the bytes of a line begin with one. */
static bool parse_time(const char *line, int64_t bytes, double *seconds) {
    enum { DIGITS = 8, TIME = 2 * DIGITS + 1 };
    char text[TIME + 1] = "";
    if (bytes < TIME + 2 || line[DIGITS] != '.' || line[TIME] != ' ' || line[TIME + 1] != '/')
        return false;
    memcpy(text, line, TIME);
    if (strspn(text, "0123456789abcdef") != DIGITS || strspn(text + DIGITS + 1, "0123456789abcdef") != DIGITS)
        return false;
    *seconds = (double)strtoul(text, NULL, 16) + ldexp((double)strtoul(text + DIGITS + 1, NULL, 16), -32);
    return true;
}

/* Returns whether a line of a sample begins with the time of a message. */
static bool has_message(const char *sample, int64_t length) {
    double seconds;
    for (int64_t i = 0; i < length; i++)
        if ((i == 0 || strchr("\r\n", sample[i - 1])) && parse_time(sample + i, length - i, &seconds))
            return true;
    return false;
}

/* Returns an angle that is 360 degrees times a whole number from `angle`, and at most 180 from `last`. */
static double unwrap(double last, double angle) {
    return angle + 360 * nearbyint((last - angle) / 360);
}

/* Takes a line of a recording; leaves out messages for no channel, and what the recording program printed. Returns
 * FORMAT, MEMORY. */
static gpuconv_status take_message(reading *r, gpuconv_error *error) {
    enum { TIME, ADDRESS, TYPES, VALUES, END = VALUES + GC_TRACK_VALUES };
    gc_table *t = &r->table;
    double seconds = 0, value[GC_TRACK_VALUES];
    char line[sizeof t->shown];
    (void)snprintf(line, sizeof line, "%s %s", t->field[0], t->fields > 1 ? t->field[1] : "");
    const int64_t channel = t->fields == END ? r->form->find_channel(t->field[ADDRESS]) : -1;
    if (!parse_time(line, (int64_t)strlen(line), &seconds)) {
        t->others++;
        t->rows--;
        return gc_table_number(t, 0, &seconds) ? gc_table_fail(t, error, "is no OSC message as those above")
                                               : GPUCONV_OK;
    }
    r->first = r->first < 0 ? seconds : r->first;
    bool taken = channel >= 0 && channel < r->channels;
    for (int k = 0; k < GC_TRACK_VALUES && taken; k++)
        taken = gc_table_number(t, VALUES + k, &value[k]);
    if (!taken) {
        t->others++;
        t->rows--;
        return GPUCONV_OK;
    }
    gc_track *track = &r->track[channel];
    const int64_t last = track->count - 1;
    for (int k = 0; k < r->form->angles && last >= 0; k++)
        value[k] = unwrap(track->value[last * GC_TRACK_VALUES + k], value[k]);
    gpuconv_status status = append(r, track, seconds - r->first, value, error);
    if (!status && last >= 0 && track->seconds[last + 1] < track->seconds[last] + together) {
        memcpy(track->value + last * GC_TRACK_VALUES, value, sizeof value);
        track->count--;
    }
    return status;
}

/* Reads all rows. Returns FORMAT, FILE, MEMORY, CANCELLED. */
static gpuconv_status read_rows(reading *r, gc_lines *lines, gpuconv_error *error) {
    const char *sample = "", *name = lines->name;
    int64_t length = 0;
    gpuconv_status status = gc_lines_peek(lines, SAMPLE, &sample, &length, error);
    const bool recording = !status && has_message(sample, gc_min(length, SAMPLE));
    const gc_table_form form = recording ? (gc_table_form){.kind = GC_TABLE_WORDS, .most = 7, .last = 7}
                                         : (gc_table_form){.kind = GC_TABLE_NUMBERS,
                                                           .most = 2 + GC_TRACK_VALUES * r->channels,
                                                           .comments = true,
                                                           .quotes = true};
    if (!status)
        status = gc_table_open(&r->table, &form, lines, error);
    while (gc_table_next(&r->table, &status, error))
        status = recording ? take_message(r, error) : take_row(r, error);
    for (int c = 0; c < r->channels && !status; c++)
        if (r->track[c].count == 0)
            status = r->table.rows == 0
                         ? gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: contains no %s", name, r->form->what)
                         : gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: has no OSC message for channel %d", name, c + 1);
    return status;
}

gpuconv_status gc_track_read(gc_track *tracks, int channels, const gc_track_form *form, const char *name,
                             gc_track_text *text, gpuconv_error *error) {
    reading r = {.track = tracks, .channels = channels, .form = form, .first = -1};
    gc_lines lines;
    gpuconv_status status =
        gc_lines_open_regular(&lines, name, 4 * (int64_t)GC_TEXT_LONGEST, 4 * (int64_t)GC_TEXT_MOST, error);
    if (!status)
        status = read_rows(&r, &lines, error);
    *text = (gc_track_text){r.table.rows, r.table.others};
    gc_table_close(&r.table);
    gc_lines_close(&lines);
    return status;
}

/* ---- Values ------------------------------------------------------------------------------------------------------ */

/* Returns the last row at or before a time, or the first. */
void gc_track_describe(const gc_track_text *text, char to[64]) {
    char rows[48];
    gc_table_describe(text->rows, text->others, rows, sizeof rows);
    (void)snprintf(to, 64, " (%s)", rows);
}

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

void gc_track_at(const gc_track *t, double seconds, double to[GC_TRACK_VALUES]) {
    const int64_t row = find_row(t, seconds), next = gc_min(row + 1, t->count - 1);
    const double span = t->seconds[next] - t->seconds[row];
    const double part = span > 0 ? fmin(1, fmax(0, (seconds - t->seconds[row]) / span)) : 0;
    const double *a = t->value + row * GC_TRACK_VALUES, *b = t->value + next * GC_TRACK_VALUES;
    for (int k = 0; k < GC_TRACK_VALUES; k++)
        to[k] = a[k] + part * (b[k] - a[k]);
}
