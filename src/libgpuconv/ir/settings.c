/* The table of settings, and checks of structures that a program has filled. */
#include "settings.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/sized_struct.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define WORDS(kind, value) (GC_KIND_##kind == GC_KIND_FLAG ? "0|1" : (value))
#define LINE(id, column, option, letter, kind, member, least, most, other, value, unit, help)                          \
    {column, option, GC_KIND_##kind, offsetof(gc_settings, member), least, most, other, WORDS(kind, value), unit},
const gc_setting gc_settings_table[GC_SETTINGS] = {GC_ALL_SETTINGS(LINE)};

void gc_setting_range(const gc_setting *s, char text[GC_SETTING_TEXT_ROOM]) {
    if (s->kind >= GC_KIND_FLAG && s->kind <= GC_KIND_WORD)
        gc_word_list(s->value, text, GC_SETTING_TEXT_ROOM);
    else if (s->kind <= GC_KIND_COMPRESSION)
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
    double most = s->most + (s->kind == GC_KIND_COMPRESSION); /* 1 + a level */
    *value = 0;
    if (s->kind <= GC_KIND_MIX)
        return (*value = *(const double *)at) == 0 || gc_setting_takes(s, *value);
    if (s->kind == GC_KIND_TAIL) {
        const void *begin = (const char *)at - offsetof(gpuconv_job, tail);
        const gpuconv_job *job = begin;
        const bool has_tail = gc_setting_takes(s, job->tail) || job->tail >= HUGE_VAL;
        *value = has_tail ? job->tail_floor : job->tail;
        return has_tail && job->tail_floor >= -300 && job->tail_floor <= 0;
    }
    if (s->kind != GC_KIND_WORD && s->kind != GC_KIND_COMPRESSION)
        return true;
    for (const char *c = s->value; s->kind == GC_KIND_WORD && *c; c++)
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

void gpuconv_job_init(gpuconv_job *job, size_t size) {
    const gpuconv_job defaults = {.tail = HUGE_VAL};
    gc_sized_struct_init(job, size, &defaults, sizeof defaults);
}
