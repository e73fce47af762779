/* Orientations from a file are kept as a table; those from OSC as the latest one. */
#include "follow.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/lines.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "osc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LINE = 256, MAX_TEXT = 1 << 26 /* bytes */, MESSAGES = 1000 /* that are taken at a time */ };

typedef struct moment {
    double seconds, angle[3];
} moment;

struct gc_follow {
    moment *moments; /* of a file */
    int64_t count, capacity;
    gc_osc *osc;           /* NULL: a file */
    gc_orientation latest; /* of OSC */
};

void gc_follow_free(gc_follow *f) {
    if (!f)
        return;
    gc_osc_close(f->osc);
    free(f->moments);
    free(f);
}

/* Parses a line into *to. Returns false for anything but two to four numbers; *blank is set for a line without any. */
static bool parse_line(char *line, moment *to, bool *blank) {
    double value[4] = {0};
    int count = 0;
    char *rest = NULL;
    for (char *word = strtok_r(line, " \t\r\n,", &rest); word && *word != '#'; word = strtok_r(NULL, " \t\r\n,", &rest))
        if (count == 4 || !gc_number_parse(word, &value[count++]))
            return false;
    *blank = count == 0;
    *to = (moment){value[0], {value[1], value[2], value[3]}};
    return *blank || (count >= 2 && value[0] >= 0 && value[0] <= 1e9 && fabs(value[1]) <= 36000 &&
                      fabs(value[2]) <= 360 && fabs(value[3]) <= 360);
}

/* Appends a moment. Returns false without memory. */
static bool append(gc_follow *f, const moment *m) {
    if (f->count == f->capacity) {
        const int64_t capacity = f->capacity ? 2 * f->capacity : 256;
        moment *larger = gc_calloc(capacity, sizeof *larger);
        if (!larger)
            return false;
        if (f->count)
            memcpy(larger, f->moments, (size_t)f->count * sizeof *larger);
        free(f->moments);
        f->moments = larger;
        f->capacity = capacity;
    }
    f->moments[f->count++] = *m;
    return true;
}

static gpuconv_status read_file(gc_follow *f, const char *path, gpuconv_error *error) {
    gc_lines lines;
    char *line;
    gpuconv_status status = gc_lines_open(&lines, path, MAX_LINE, MAX_TEXT, error);
    while (!status && !(status = gc_lines_next(&lines, &line, error)) && line) {
        const long long number = lines.number;
        moment m;
        bool blank = false;
        if (!parse_line(line, &m, &blank))
            status = gc_fail(error, GPUCONV_ERROR_FORMAT,
                             "%s, line %lld: is not SECONDS YAW [PITCH [ROLL]] in seconds and degrees", path, number);
        else if (!blank && f->count && m.seconds < f->moments[f->count - 1].seconds)
            status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s, line %lld: %g s is before the line above", path, number,
                             m.seconds);
        else if (!blank && !append(f, &m))
            status = gc_fail_memory(error, path);
    }
    gc_lines_close(&lines);
    if (!status && f->count == 0)
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: contains no orientation", path);
    return status;
}

/* Takes the messages that have arrived. One whose address ends in ypr turns the head. */
static void take_messages(gc_follow *f) {
    gc_osc_message m;
    for (int taken = 0; taken < MESSAGES && gc_osc_take(f->osc, &m); taken++) {
        const size_t length = strlen(m.address);
        const double *v = m.value;
        if (m.count == 3 && length >= 3 && strcmp(m.address + length - 3, "ypr") == 0 && fabs(v[0]) <= 360 &&
            fabs(v[1]) <= 360 && fabs(v[2]) <= 360)
            f->latest = (gc_orientation){v[0], v[1], v[2]};
    }
}

gpuconv_status gc_follow_open(const char *source, gc_follow **follow, gpuconv_error *error) {
    *follow = NULL;
    gc_follow *f = gc_calloc(1, sizeof *f);
    if (!f)
        return gc_fail_memory(error, "following a head");
    const bool osc = strcmp(source, "osc") == 0 || strncmp(source, "osc:", 4) == 0;
    gpuconv_status status =
        osc ? gc_osc_open(source[3] ? source + 4 : "9000", &f->osc, error) : read_file(f, source, error);
    if (status) {
        gc_follow_free(f);
        return status;
    }
    *follow = f;
    return GPUCONV_OK;
}

/* Returns an angle in -180 to 180 degrees. */
static double wrap(double angle) {
    return remainder(angle, 360);
}

gc_orientation gc_follow_at(gc_follow *f, double seconds) {
    if (f->osc) {
        take_messages(f);
        return f->latest;
    }
    int64_t low = 0, high = f->count - 1;
    while (low < high) { /* the last moment that is not later */
        const int64_t middle = (low + high + 1) / 2;
        if (f->moments[middle].seconds <= seconds)
            low = middle;
        else
            high = middle - 1;
    }
    const moment *a = &f->moments[low], *b = low + 1 < f->count && seconds > a->seconds ? a + 1 : a;
    const double span = b->seconds - a->seconds, share = span > 0 ? (seconds - a->seconds) / span : 0;
    double angle[3];
    for (int i = 0; i < 3; i++)
        angle[i] = wrap(a->angle[i] + share * (b->angle[i] - a->angle[i]));
    return (gc_orientation){angle[0], angle[1], angle[2]};
}
