/* Entries of a manifest: adds them, sets and checks their fields. */
#include "manifest_entry.h"

#include "libgpuconv/core/limits.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/visible.h"
#include "targets.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const gc_columns[GC_COLUMNS] = {"input", "response", "output", "gain", "wet",
                                            "dry",   "offset",   "length", "seed"};

void gc_manifest_free(gc_manifest *m) {
    for (int64_t i = 0; i < m->entries; i++) {
        free(m->entry[i].input);
        free(m->entry[i].response);
        free(m->entry[i].output);
        free(m->entry[i].refusal);
    }
    free(m->entry);
    *m = (gc_manifest){0};
}

gc_entry *gc_manifest_add(gc_manifest *m, int64_t *capacity, int64_t line) {
    if (m->entries == *capacity) {
        int64_t more = gc_max(64, 2 * *capacity);
        gc_entry *larger = gc_calloc(more, sizeof *larger);
        if (!larger)
            return NULL;
        if (m->entries)
            memcpy(larger, m->entry, (size_t)m->entries * sizeof *larger);
        free(m->entry);
        m->entry = larger;
        *capacity = more;
    }
    gc_entry *e = &m->entry[m->entries++];
    *e = (gc_entry){.line = line, .dry = -HUGE_VAL, .length = -1};
    return e;
}

bool gc_entry_refuse(gc_entry *e, const char *what, const char *value) {
    char text[400], shown[201];
    if (e->refusal)
        return true;
    gc_visible(shown, sizeof shown, value ? value : "");
    (void)snprintf(text, sizeof text, "%.190s%s%s%s", what, value ? " '" : "", shown, value ? "'" : "");
    e->refusal = strdup(text);
    return e->refusal != NULL;
}

static bool parse_number(const char *text, double *value) {
    char *end;
    *value = strtod(text, &end);
    return end != text && !*end && isfinite(*value);
}

bool gc_entry_set(gc_entry *e, int column, const char *text) {
    double value = 0;
    if (!*text)
        return true;
    if (column <= GC_COLUMN_OUTPUT) {
        char **to = column == GC_COLUMN_INPUT ? &e->input : column == GC_COLUMN_RESPONSE ? &e->response : &e->output;
        return (*to = strdup(text)) != NULL;
    }
    if (column == GC_COLUMN_SEED) {
        char *end;
        errno = 0;
        e->seed = strtoull(text, &end, 10);
        return *end || errno || *text == '-' ? gc_entry_refuse(e, "the seed must be an integer from 0 up, not", text)
                                             : true;
    }
    if (column == GC_COLUMN_OFFSET && strcmp(text, "random") == 0) {
        e->random_offset = true;
        return true;
    }
    if (column == GC_COLUMN_DRY && strcmp(text, "-inf") == 0)
        return true;
    if (!parse_number(text, &value))
        return gc_entry_refuse(e, "not a number:", text);
    bool level = column == GC_COLUMN_GAIN || column == GC_COLUMN_WET || column == GC_COLUMN_DRY;
    if (level && !gc_is_gain(value))
        return gc_entry_refuse(e, "a level must be between -200 and 200 dB, not", text);
    if (!level && !(value >= (column == GC_COLUMN_LENGTH ? 1e-9 : 0) && value <= 1e9))
        return gc_entry_refuse(
            e, column == GC_COLUMN_LENGTH ? "a length must be positive, not" : "an offset must be 0 or more, not",
            text);
    *(column == GC_COLUMN_GAIN     ? &e->gain
      : column == GC_COLUMN_WET    ? &e->wet
      : column == GC_COLUMN_DRY    ? &e->dry
      : column == GC_COLUMN_OFFSET ? &e->offset
                                   : &e->length) = value;
    return true;
}

/* Decides whether a relative path names a file below its folder: no "..", no trailing slash or dot. */
static bool is_below_folder(const char *path) {
    if (*path == '/')
        return false;
    for (const char *part = path; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL) {
        size_t length = strcspn(part, "/");
        if (length == 2 && part[0] == '.' && part[1] == '.')
            return false;
    }
    size_t length = strlen(path);
    bool folder = length > 0 && (path[length - 1] == '/' || strcmp(path, ".") == 0 ||
                                 (length > 1 && strcmp(path + length - 2, "/.") == 0));
    return length > 0 && !folder;
}

void gc_path_stem(const char *path, const char **from, int *length) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    *from = name;
    *length = (int)(dot && dot > name ? (size_t)(dot - name) : strlen(name));
}

bool gc_entry_complete(gc_entry *e) {
    if (!e->input)
        return gc_entry_refuse(e, "the input is missing", NULL);
    if (!e->response)
        return gc_entry_refuse(e, "the response is missing", NULL);
    if (!e->output) {
        const char *stem;
        int length;
        gc_path_stem(e->input, &stem, &length);
        size_t room = (size_t)length + sizeof ".wav";
        e->output = gc_calloc((int64_t)room, 1);
        if (!e->output)
            return false;
        (void)snprintf(e->output, room, "%.*s.wav", length, stem);
    }
    if (!is_below_folder(e->output))
        return gc_entry_refuse(e, "an output must be below the batch's folder, unlike", e->output);
    gc_path_normalise(e->output);
    if (e->random_offset && e->length < 0)
        return gc_entry_refuse(e, "a random offset needs a length", NULL);
    return true;
}
