/* Loudspeaker layouts and files of directions. */
#include "directions.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/lines.h"
#include "libgpuconv/core/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_LINE = 512, MAX_TEXT = 1 << 20 }; /* bytes */

typedef struct layout {
    const char *name, *directions;
} layout;

/* The low-frequency channel has no direction of its own and comes from the front. */
static const layout layouts[] = {
    {"mono", "0,0"},
    {"stereo", "30,0 -30,0"},
    {"5.1", "30,0 -30,0 0,0 0,0 110,0 -110,0"},
    {"7.1", "30,0 -30,0 0,0 0,0 135,0 -135,0 90,0 -90,0"},
    {"5.1.4", "30,0 -30,0 0,0 0,0 110,0 -110,0 45,30 -45,30 135,30 -135,30"},
    {"7.1.4", "30,0 -30,0 0,0 0,0 135,0 -135,0 90,0 -90,0 45,30 -45,30 135,30 -135,30"},
};

bool gc_direction_parse(const char *text, double at[3]) {
    const double pi = 3.14159265358979323846;
    double value[3] = {0, 0, 1};
    int count = 0;
    for (const char *from = text; from; count++) {
        char word[32];
        const char *comma = strchr(from, ',');
        const size_t length = comma ? (size_t)(comma - from) : strlen(from);
        if (count == 3 || length >= sizeof word)
            return false;
        memcpy(word, from, length);
        word[length] = '\0';
        if (!gc_number_parse(word, &value[count]))
            return false;
        from = comma ? comma + 1 : NULL;
    }
    if (count < 2 || !(fabs(value[0]) <= 360 && fabs(value[1]) <= 90 && value[2] >= 0.01 && value[2] <= 1000))
        return false;
    const double azimuth = value[0] * pi / 180, elevation = value[1] * pi / 180;
    at[0] = value[2] * cos(elevation) * cos(azimuth);
    at[1] = value[2] * cos(elevation) * sin(azimuth);
    at[2] = value[2] * sin(elevation);
    return true;
}

/* Parses the words of a line. Returns false at the first that is no direction; *wrong gets it. */
static bool parse_line(char *line, gc_directions *d, const char **wrong) {
    char *rest = NULL;
    for (char *word = strtok_r(line, " \t\r\n", &rest); word && *word != '#'; word = strtok_r(NULL, " \t\r\n", &rest)) {
        *wrong = word;
        if (d->count == GC_MAX_CHANNELS || !gc_direction_parse(word, d->at[d->count]))
            return false;
        d->count++;
    }
    return true;
}

/* Reads a text file. Returns ARGUMENT, FILE, FORMAT, MEMORY, CANCELLED. */
static gpuconv_status read_file(const char *path, gc_directions *d, gpuconv_error *error) {
    gc_lines lines;
    char *line;
    const char *wrong = "";
    gpuconv_status status = gc_lines_open_regular(&lines, path, MAX_LINE, MAX_TEXT, error);
    if (status && access(path, F_OK) != 0)
        status = gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                         "'%s' is neither a layout nor a file; layouts are mono, stereo, 5.1, 7.1, 5.1.4, 7.1.4 and "
                         "ambisonic",
                         path);
    while (!status && !(status = gc_lines_next(&lines, &line, error)) && line)
        if (!parse_line(line, d, &wrong))
            status =
                gc_fail(error, GPUCONV_ERROR_FORMAT,
                        "%s, line %lld: '%.32s' is not AZIMUTH,ELEVATION[,DISTANCE] in degrees and metres, or one of "
                        "more than %d",
                        path, (long long)lines.number, wrong, GC_MAX_CHANNELS);
    gc_lines_close(&lines);
    if (!status && d->count == 0)
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: contains no direction", path);
    return status;
}

gpuconv_status gc_directions_of_layout(const char *name, gc_directions *d, gpuconv_error *error) {
    d->count = 0;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (strcmp(name, layouts[i].name) == 0) {
            char text[128];
            const char *wrong;
            (void)snprintf(text, sizeof text, "%s", layouts[i].directions);
            (void)parse_line(text, d, &wrong);
            return GPUCONV_OK;
        }
    return read_file(name, d, error);
}
