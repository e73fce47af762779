/* Settings from texts and back: options, columns of lists, keywords of Python. */
#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/number.h"
#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char level_words[] = "none|peak|rms|loudness|input";

gc_settings gc_settings_default(void) {
    gc_settings made = {.preparation = gpuconv_preparation_default(), .job = gpuconv_job_default()};
    for (const gc_setting *s = gc_settings_table; s < gc_settings_table + GC_SETTINGS; s++) {
        void *at = (char *)&made + s->at;
        if (s->kind <= GC_KIND_MIX)
            *(double *)at = s->other;
    }
    return made;
}

/* Writes the word with an index. */
static const char *print_word(const char *words, int index, char *text) {
    for (; index > 0; index--)
        words += strcspn(words, "|") + 1;
    (void)snprintf(text, GC_SETTING_TEXT_ROOM, "%.*s", (int)strcspn(words, "|"), words);
    return text;
}

static bool set_number(const gc_setting *s, const char *text, double *value) {
    if (s->kind == GC_KIND_MIX && strcmp(text, "-inf") == 0)
        *value = -HUGE_VAL;
    else if (!gc_number_parse(text, value))
        return false;
    return gc_setting_takes(s, *value);
}

static bool set_compression(const gc_setting *s, const char *text, int *level) {
    int64_t given;
    if (!gc_integer_parse(text, &given) || !gc_setting_takes(s, (double)given))
        return false;
    *level = 1 + (int)given;
    return true;
}

/* Adds a path to the responses in series. */
static gpuconv_status add_file(gpuconv_preparation *p, const char *path) {
    const char **longer = realloc((void *)p->series, ((size_t)p->series_count + 1) * sizeof *longer);
    if (!longer)
        return GPUCONV_ERROR_MEMORY;
    longer[p->series_count++] = path;
    p->series = longer;
    return GPUCONV_OK;
}

static bool set_tail(const gc_setting *s, const char *text, gpuconv_job *job) {
    const bool is_floor = strncmp(text, "auto", 4) == 0 && (!text[4] || text[4] == ':');
    double value = is_floor ? -90 : HUGE_VAL;
    if (strcmp(text, "all") != 0 && strcmp(text, "auto") != 0 &&
        !(gc_number_parse(is_floor ? text + 5 : text, &value) &&
          (is_floor ? value < 0 && value >= -300 : gc_setting_takes(s, value))))
        return false;
    job->tail_floor = is_floor ? value : 0;
    job->tail = is_floor ? HUGE_VAL : value;
    return true;
}

static bool set_level(const char *text, gc_settings *to) {
    const size_t length = strcspn(text, ":");
    const int found = gc_word_find(text, length, level_words);
    to->level = found > 0 ? (gc_level_kind)found : GC_LEVEL_NONE;
    to->level_db = 0;
    if (!text[length])
        return found == GC_LEVEL_NONE || found == GC_LEVEL_INPUT;
    return found > 0 && gc_number_parse(text + length + 1, &to->level_db) && gc_is_gain(to->level_db);
}

gpuconv_status gc_setting_set(gc_settings *to, gc_setting_id id, const char *text) {
    const gc_setting *s = &gc_settings_table[id];
    void *at = (char *)to + s->at;
    bool valid = true;
    int word;
    switch (s->kind) {
    case GC_KIND_NUMBER:
    case GC_KIND_MIX:
        valid = set_number(s, text, at);
        break;
    case GC_KIND_FLAG:
    case GC_KIND_SWITCH:
    case GC_KIND_WORD:
        valid = (word = gc_word_find(text, strlen(text), s->value)) >= 0;
        if (s->kind == GC_KIND_WORD)
            *(int *)at = word; /* the enumerations of gpuconv.h are stored as int */
        else
            *(bool *)at = word == 1;
        break;
    case GC_KIND_COMPRESSION:
        valid = set_compression(s, text, at);
        break;
    case GC_KIND_TAIL:
        valid = set_tail(s, text, &to->job);
        break;
    case GC_KIND_LEVEL:
        valid = set_level(text, to);
        break;
    case GC_KIND_FILES:
        return add_file(&to->preparation, text);
    default:
        *(const char **)at = text;
        valid = s->kind == GC_KIND_FORMAT     ? gc_is_format_name(text)
                : s->kind == GC_KIND_ENCODING ? gc_is_encoding_name(text)
                                              : s->kind != GC_KIND_RAW || gc_is_raw_format(text);
        break;
    }
    return valid ? GPUCONV_OK : GPUCONV_ERROR_ARGUMENT;
}

/* Writes a number behind a beginning. */
static const char *print_number(const char *beginning, double value, char *text) {
    char number[GC_NUMBER_TEXT];
    gc_number_print(value, number);
    (void)snprintf(text, GC_SETTING_TEXT_ROOM, "%s%s", beginning, number);
    return text;
}

const char *gc_setting_print(const gc_settings *from, gc_setting_id id, char text[GC_SETTING_TEXT_ROOM]) {
    const gc_setting *s = &gc_settings_table[id];
    const void *at = (const char *)from + s->at;
    char word[16];
    double number;
    int index;
    switch (s->kind) {
    case GC_KIND_NUMBER:
    case GC_KIND_MIX: /* 0 that is out of range stands for the default */
        number = *(const double *)at;
        return number == s->other || (number == 0 && !gc_setting_takes(s, 0)) ? NULL : print_number("", number, text);
    case GC_KIND_FLAG:
    case GC_KIND_SWITCH:
    case GC_KIND_WORD:
        index = s->kind == GC_KIND_WORD ? *(const int *)at : *(const bool *)at;
        return index ? print_word(s->value, index, text) : NULL;
    case GC_KIND_COMPRESSION:
        return *(const int *)at ? print_number("", *(const int *)at - 1, text) : NULL;
    case GC_KIND_TAIL:
        return from->job.tail_floor < 0    ? print_number("auto:", from->job.tail_floor, text)
               : from->job.tail < HUGE_VAL ? print_number("", from->job.tail, text)
                                           : NULL;
    case GC_KIND_LEVEL:
        (void)snprintf(word, sizeof word, "%s:", print_word(level_words, from->level, text));
        return from->level ? print_number(word, from->level_db, text) : NULL;
    default:
        return NULL;
    }
}

void gc_settings_free(gc_settings *settings) {
    free((void *)settings->preparation.series);
    settings->preparation.series = NULL;
    settings->preparation.series_count = 0;
}
