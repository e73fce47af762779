/* The table of settings, and checks of structures that a program has filled. */
#include "settings.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/number.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define LINE(id, column, option, letter, kind, member, least, most, other, value, unit, help)                          \
    {column, option, GC_KIND_##kind, offsetof(gc_settings, member), least, most, other, value, unit},
const gc_setting gc_settings_table[GC_SETTINGS] = {GC_ALL_SETTINGS(LINE)};

/* Writes the words of a list as "a, b or c". */
static void print_words(const char *words, char *text, size_t room) {
    size_t used = 0;
    for (const char *at = words; *at && used + 5 < room; at++) {
        const char *put = *at != '|' ? (char[2]){*at, '\0'} : strchr(at + 1, '|') ? ", " : " or ";
        used += (size_t)snprintf(text + used, room - used, "%s", put);
    }
}

void gc_setting_range(const gc_setting *s, char text[GC_SETTING_TEXT_ROOM]) {
    if (s->kind == GC_KIND_WORD || s->kind == GC_KIND_SWITCH || s->kind == GC_KIND_FLAG)
        print_words(s->kind == GC_KIND_FLAG ? "0|1" : s->value, text, GC_SETTING_TEXT_ROOM);
    else if (s->kind <= GC_KIND_MIX || s->kind == GC_KIND_COMPRESSION)
        gc_format(text, GC_SETTING_TEXT_ROOM, "%.10g to %.10g%s", s->least, s->most, s->unit);
    else
        (void)snprintf(text, GC_SETTING_TEXT_ROOM, "%s", s->unit);
}

bool gc_setting_takes(const gc_setting *s, double value) {
    return (value >= s->least && value <= s->most) || (s->kind == GC_KIND_MIX && value <= -HUGE_VAL);
}

static gpuconv_status refuse(const gc_setting *s, double value, gpuconv_error *error) {
    char range[GC_SETTING_TEXT_ROOM];
    gc_setting_range(s, range);
    return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s must be %s, not %g", s->column, range, value);
}

gpuconv_status gc_setting_check(gc_setting_id id, double value, gpuconv_error *error) {
    const gc_setting *s = &gc_settings_table[id];
    return gc_setting_takes(s, value) ? GPUCONV_OK : refuse(s, value, error);
}

/* Returns whether a structure may have the value of a setting at `at`. 0 is the default of every number. */
static bool is_valid(const gc_setting *s, const void *at, double *value) {
    double most = s->most + 1; /* of 1 + a level of compression */
    if (s->kind <= GC_KIND_MIX)
        return (*value = *(const double *)at) == 0 || gc_setting_takes(s, *value);
    if (s->kind != GC_KIND_WORD && s->kind != GC_KIND_COMPRESSION)
        return true;
    if (s->kind == GC_KIND_WORD)
        most = 0;
    for (const char *c = s->kind == GC_KIND_WORD ? s->value : ""; *c; c++)
        most += *c == '|';
    return (*value = *(const int *)at) >= 0 && *value <= most;
}

gpuconv_status gc_settings_check(const void *structure, size_t at, size_t size, gpuconv_error *error) {
    for (const gc_setting *s = gc_settings_table; s < gc_settings_table + GC_SETTINGS; s++) {
        double value;
        if (s->at >= at && s->at < at + size && !is_valid(s, (const char *)structure + (s->at - at), &value))
            return refuse(s, value, error);
    }
    return GPUCONV_OK;
}
