/* Loudspeaker layouts and files of directions. */
#include "directions.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_WORDS = GC_MAX_CHANNELS + 1 };

static const gc_table_form words_form = {.kind = GC_TABLE_WORDS, .most = MAX_WORDS, .comments = true},
                           direction_form = {.kind = GC_TABLE_WORDS, .most = 3};

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
    char copy[96], *field[3];
    const char *wrong;
    const char separator = strchr(text, ';') ? ';' : ',';
    gc_table one = {.separator = separator, .field = field};
    if (strlen(text) >= sizeof copy)
        return false;
    (void)snprintf(copy, sizeof copy, "%s", text);
    one.fields = gc_table_split(&direction_form, separator, copy, field, &wrong);
    for (; count < one.fields; count++)
        if (!gc_table_number(&one, count, &value[count]))
            return false;
    if (count < 2 || !(fabs(value[0]) <= 360 && fabs(value[1]) <= 90 && value[2] >= 0.01 && value[2] <= 1000))
        return false;
    const double azimuth = value[0] * pi / 180, elevation = value[1] * pi / 180;
    at[0] = value[2] * cos(elevation) * cos(azimuth);
    at[1] = value[2] * cos(elevation) * sin(azimuth);
    at[2] = value[2] * sin(elevation);
    return true;
}

/* Adds directions. Returns false at the first word that is none; *wrong gets it. */
static bool take_words(char *const *word, int words, gc_directions *d, const char **wrong) {
    for (int i = 0; i < words; i++, d->count++) {
        *wrong = word[i];
        if (d->count == GC_MAX_CHANNELS || !gc_direction_parse(word[i], d->at[d->count]))
            return false;
    }
    return true;
}

/* Reads a text file. Returns ARGUMENT, FILE, FORMAT, MEMORY, CANCELLED. */
static gpuconv_status read_file(const char *path, gc_directions *d, gpuconv_error *error) {
    gc_lines lines;
    gc_table table = {0};
    const char *wrong = "";
    gpuconv_status status = gc_lines_open_regular(&lines, path, GC_TEXT_LONGEST, GC_TEXT_MOST, error);
    if (status && access(path, F_OK) != 0)
        status = gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                         "'%s' is neither a layout nor a file; layouts are mono, stereo, 5.1, 7.1, 5.1.4, 7.1.4 and "
                         "ambisonic",
                         path);
    if (!status)
        status = gc_table_open(&table, &words_form, &lines, error);
    for (bool more = true; more && !status;) {
        status = gc_table_next(&table, &more, error);
        if (!status && more && !take_words(table.field, table.fields, d, &wrong))
            status =
                gc_table_fail(&table, error,
                              "'%.32s' is not AZIMUTH,ELEVATION[,DISTANCE] in degrees and metres (with decimal commas "
                              "30,5;15), or one of more than %d",
                              wrong, GC_MAX_CHANNELS);
    }
    gc_table_close(&table);
    gc_lines_close(&lines);
    if (!status && d->count == 0)
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: contains no direction", path);
    return status;
}

gpuconv_status gc_directions_of_layout(const char *name, gc_directions *d, gpuconv_error *error) {
    d->count = 0;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (strcmp(name, layouts[i].name) == 0) {
            char text[128], *word[MAX_WORDS];
            const char *wrong;
            (void)snprintf(text, sizeof text, "%s", layouts[i].directions);
            (void)take_words(word, gc_table_split(&words_form, ' ', text, word, &wrong), d, &wrong);
            return GPUCONV_OK;
        }
    return read_file(name, d, error);
}
