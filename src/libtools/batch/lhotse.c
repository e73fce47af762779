/* Reads lhotse's recordings and cuts, as lhotse 1.x writes them. */
#include "lhotse.h"
#include "libgpuconv/core/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What makes files of everything that lhotse computes when it loads. */
#define GC_LHOTSE_SAVE "write files first, by cuts.save_audios(FOLDER), and use what it returns"

/* Returns the path of a recording that is one file. NULL: *why is the reason. */
static const char *path_of(const json_t *recording, const char **why) {
    const json_t *sources = json_object_get(recording, "sources"), *source = json_array_get(sources, 0);
    const char *type = json_string_value(json_object_get(source, "type"));
    const char *path = json_string_value(json_object_get(source, "source"));
    *why = NULL;
    if (json_array_size(sources) != 1)
        *why = "the recording must have one source; " GC_LHOTSE_SAVE;
    else if (!type || strcmp(type, "file") != 0)
        *why = "the recording's source is a command, an address or memory, and only files are read; " GC_LHOTSE_SAVE;
    else if (!path || !*path)
        *why = "the recording's source has no path";
    else if (json_array_size(json_object_get(recording, "transforms")) > 0)
        *why = "lhotse changes the recording when it loads (speed, volume, reverb); " GC_LHOTSE_SAVE;
    return *why ? NULL : path;
}

char *gc_lhotse_path(const char *line, const char **why) {
    json_error_t error;
    json_t *object = json_loads(line, 0, &error);
    const char *path = object ? path_of(object, why) : NULL;
    char *copy = path ? strdup(path) : NULL;
    if (!object)
        *why = "is not JSON";
    json_decref(object);
    return copy;
}

static bool is_type(const json_t *object, const char *type) {
    const char *own = json_string_value(json_object_get(object, "type"));
    return own && strcmp(own, type) == 0;
}

bool gc_lhotse_is(const json_t *object) {
    return json_object_get(object, "sources") || json_object_get(object, "recording") ||
           json_object_get(object, "tracks") || is_type(object, "PaddingCut") || is_type(object, "MonoCut");
}

/* Sets the part of its recording that a cut is. @return false: out of memory */
static bool fill_part(gc_row *row, const json_t *cut, const json_t *recording) {
    char text[GC_NUMBER_TEXT];
    double start = json_number_value(json_object_get(cut, "start"));
    double duration = json_number_value(json_object_get(cut, "duration"));
    const json_t *channel = json_object_get(cut, "channel");
    size_t channels =
        json_array_size(json_object_get(json_array_get(json_object_get(recording, "sources"), 0), "channels"));
    if (channel && (json_is_array(channel) ? json_array_size(channel) : 1) < channels)
        return gc_row_refuse(row, "the cut has only some channels of its recording; " GC_LHOTSE_SAVE ":",
                             json_string_value(json_object_get(cut, "id")));
    if (start < 0 || !(duration > 0))
        return gc_row_refuse(row, "a cut needs a start from 0 up and a duration", NULL);
    if (start > 0) {
        (void)gc_format(text, sizeof text, "%.17g", start);
        if (!gc_row_set(row, GC_COLUMN_OFFSET, text))
            return false;
    }
    double whole = json_number_value(json_object_get(recording, "duration"));
    if (start == 0 && duration == whole)
        return true;
    (void)gc_format(text, sizeof text, "%.17g", duration);
    return gc_row_set(row, GC_COLUMN_LENGTH, text);
}

/* Keeps the fields of the object that stay true for the output. @return false: out of memory */
static bool keep(gc_row *row, json_t *object) {
    static const char *const dropped[] = {"recording",     "features",    "start",      "duration",
                                          "channel",       "sources",     "transforms", "num_samples",
                                          "sampling_rate", "channel_ids", "id"};
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
        (void)json_object_del(object, dropped[i]);
    if (json_object_size(object) > 0)
        row->origin = json_dumps(object, JSON_COMPACT | JSON_PRESERVE_ORDER);
    return json_object_size(object) == 0 || row->origin;
}

bool gc_lhotse_fill(gc_row *row, json_t *object, gc_list_kind *kind) {
    const json_t *recording = json_object_get(object, "recording");
    const char *id = json_string_value(json_object_get(object, "id")), *why;
    *kind = recording || json_object_get(object, "tracks") ? GC_LIST_CUTS : GC_LIST_RECORDINGS;
    if (!id || !*id)
        return gc_row_refuse(row, "the recording or cut has no id", NULL);
    if (json_object_get(object, "tracks"))
        return gc_row_refuse(row, "the cut is mixed or padded; " GC_LHOTSE_SAVE ":", id);
    if (!recording && !json_object_get(object, "sources"))
        return gc_row_refuse(row, "the cut has no recording:", id);
    const char *path = path_of(recording ? recording : object, &why);
    if (!path) {
        char reason[200];
        (void)snprintf(reason, sizeof reason, "%s:", why);
        return gc_row_refuse(row, reason, id);
    }
    row->stem = strdup(id);
    return row->stem && gc_row_set(row, GC_COLUMN_ID, id) && gc_row_set(row, GC_COLUMN_INPUT, path) &&
           (!recording || fill_part(row, object, recording)) && keep(row, object);
}
