/* Columns, rows, entries: converts the texts of a row into an entry and back. */
#include "entry.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/files.h"
#include "libgpuconv/core/limits.h"
#include "libgpuconv/core/map.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/random.h"
#include "libgpuconv/core/visible.h"
#include "text.h"

#include <csv.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Columns ---- */

#define COLUMN_NAME(id, column, ...) [GC_COLUMN_##id] = column,
const char *const gc_columns[GC_COLUMNS] = {GC_ENTRY_COLUMNS(COLUMN_NAME) GC_SETTINGS_OF_RECIPE(COLUMN_NAME)};

static bool same_name(const char *text, const char *name) {
    while (*text && (*text == *name || (*text == '-' && *name == '_'))) {
        text++;
        name++;
    }
    return !*text && !*name;
}

int gc_column_find(const char *name) {
    for (int c = 0; c < GC_COLUMNS; c++)
        if (same_name(name, gc_columns[c]))
            return c;
    return -1;
}

/* ---- Rows ---- */

bool gc_texts_set(gc_entry_texts *row, int column, const char *text) {
    char *copy = strdup(text);
    free(row->text[column]);
    row->text[column] = copy;
    return copy != NULL;
}

bool gc_texts_set_file(gc_entry_texts *row, const char *list, const char *file) {
    char *path = gc_path_beside(list, file);
    free(row->stem); /* a header may name the column twice */
    row->stem = strndup(file, gc_stem_length(file));
    const bool good =
        path && row->stem && gc_texts_set(row, GC_COLUMN_INPUT, path) && gc_texts_set(row, GC_COLUMN_ID, file);
    free(path);
    return good;
}

bool gc_texts_append(gc_entry_texts *row, int column, const char *text) {
    char **list = &row->text[column];
    return gc_text_append(list, "%s%s", *list ? "|" : "", text);
}

/* Formats a reason: "WHAT 'VALUE'", to be freed. */
static char *refusal_text(const char *what, const char *value) {
    char text[400], shown[201];
    gc_visible(shown, sizeof shown, value ? value : "");
    (void)snprintf(text, sizeof text, "%.190s%s%s%s", what, value ? " '" : "", shown, value ? "'" : "");
    return strdup(text);
}

bool gc_texts_refuse(gc_entry_texts *row, const char *what, const char *value) {
    if (!row->refusal)
        row->refusal = refusal_text(what, value);
    return row->refusal != NULL;
}

void gc_texts_clear(gc_entry_texts *row) {
    for (int c = 0; c < GC_COLUMNS; c++)
        free(row->text[c]);
    free(row->stem);
    free(row->origin);
    free(row->refusal);
    *row = (gc_entry_texts){.stem = NULL};
}

void gc_path_stem(const char *path, const char **from, int *length) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    *from = name;
    *length = (int)(dot && dot > name ? (size_t)(dot - name) : strlen(name));
}

/* ---- Entries ---- */

static void free_extra(gc_extra *x) {
    if (!x)
        return;
    for (int i = 0; i < x->sources; i++) {
        free(x->source[i].input);
        free(x->source[i].response);
    }
    free(x->source);
    free(x->noise);
    free(x->noise_response);
    free(x->early);
    free(x->id);
    free(x->origin);
    free(x);
}

void gc_entry_clear(gc_entry *e) {
    free(e->input);
    free(e->response);
    free(e->output);
    free(e->refusal);
    free_extra(e->extra);
    *e = (gc_entry){.line = e->line, .dry = -HUGE_VAL, .length = -1};
}

bool gc_entry_refuse(gc_entry *e, const char *what, const char *value) {
    if (!e->refusal)
        e->refusal = refusal_text(what, value);
    return e->refusal != NULL;
}

bool gc_manifest_add_list(gc_manifest *m, const char *path) {
    char **larger = realloc((void *)m->list, ((size_t)m->lists + 1) * sizeof *larger);
    if (!larger)
        return false;
    m->list = larger;
    m->list[m->lists] = strdup(path);
    return m->list[m->lists] && ++m->lists;
}

void gc_manifest_free(gc_manifest *m) {
    for (int64_t i = 0; i < m->entries; i++)
        gc_entry_clear(&m->entry[i]);
    free(m->entry);
    for (int i = 0; i < m->lists; i++)
        free(m->list[i]);
    free((void *)m->list);
    free(m->header);
    gc_recipes_free(&m->recipes);
    *m = (gc_manifest){0};
}

const gc_recipe *gc_entry_recipe(const gc_entry *e) {
    return e->recipe ? e->recipe : gc_recipe_default();
}

int gc_entry_sources(const gc_entry *e) {
    return e->extra ? 1 + e->extra->sources : 1;
}

gc_source gc_entry_source(const gc_entry *e, int index) {
    if (index > 0)
        return e->extra->source[index - 1];
    return (gc_source){e->input, e->response, e->extra ? e->extra->gain : 0, e->extra ? e->extra->start : 0};
}

const char *gc_entry_noise(const gc_entry *e) {
    return e->extra ? e->extra->noise : NULL;
}

const char *gc_entry_early(const gc_entry *e) {
    return e->extra ? e->extra->early : NULL;
}

/* ---- From a row to an entry, with a check of every value ---- */

typedef struct filling {
    gc_entry *e;
    const gc_entry_texts *row, *defaults;
} filling;

/* Returns the text of a column, from the row or the defaults; NULL: neither has one. */
static const char *text_of(const filling *f, int column) {
    const char *own = f->row->text[column], *other = f->defaults ? f->defaults->text[column] : NULL;
    return own && *own ? own : other && *other ? other : NULL;
}

/* Parses a number, which blanks may precede. */
static bool parse_number(const char *text, double *value) {
    return gc_number_parse(text + strspn(text, " \t"), value);
}

/* Draws a number of the range "LOW:HIGH" from the entry's seed; each column has a sequence of its own.
 * @return false: not a range */
static bool draw(const filling *f, int column, const char *text, double *value) {
    char low[64];
    const char *colon = strchr(text, ':');
    double from, to;
    if (!colon || (size_t)(colon - text) >= sizeof low)
        return false;
    memcpy(low, text, (size_t)(colon - text));
    low[colon - text] = '\0';
    if (!parse_number(low, &from) || !parse_number(colon + 1, &to) || !(from <= to))
        return false;
    uint64_t state = f->e->seed ^ (uint64_t)(column + 1) * UINT64_C(0xd1342543de82ef95);
    double drawn = from + (to - from) * gc_unit_of_bits(gc_random_bits(&state));
    *value = round(drawn * 1000) / 1000; /* short in lists, and finer than is heard */
    return true;
}

/* Parses a level in decibels or a range of levels. @return false: out of memory */
static bool fill_level(const filling *f, int column, double *value) {
    const char *text = text_of(f, column);
    const bool silent = text && strcmp(text, "-inf") == 0 && (column == GC_COLUMN_WET || column == GC_COLUMN_DRY);
    *value = silent ? -HUGE_VAL : *value;
    if (!text || silent)
        return true;
    if (!draw(f, column, text, value) && !parse_number(text, value)) {
        char what[64];
        (void)snprintf(what, sizeof what, "%s is a number, or a range LOW:HIGH with LOW up to HIGH, not",
                       gc_columns[column]);
        return gc_entry_refuse(f->e, what, text);
    }
    return gc_is_gain(*value) || gc_entry_refuse(f->e, "a level must be between -200 and 200 dB, not", text);
}

/* Parses a time in seconds of at least `least`. @return false: out of memory */
static bool fill_time(const filling *f, int column, double least, const char *why, double *value) {
    const char *text = text_of(f, column);
    if (!text)
        return true;
    if (!parse_number(text, value))
        return gc_entry_refuse(f->e, "not a number of seconds:", text);
    return (*value >= least && *value <= 1e9) || gc_entry_refuse(f->e, why, text);
}

static bool fill_seed(const filling *f) {
    const char *text = text_of(f, GC_COLUMN_SEED);
    char *end;
    if (!text)
        return true;
    errno = 0;
    f->e->seed = strtoull(text, &end, 10);
    return (!*end && !errno && *text != '-') ||
           gc_entry_refuse(f->e, "the seed must be an integer from 0 up, not", text);
}

static bool fill_numbers(const filling *f) {
    gc_entry *e = f->e;
    const char *offset = text_of(f, GC_COLUMN_OFFSET);
    e->random_offset = offset && strcmp(offset, "random") == 0;
    return fill_seed(f) && fill_level(f, GC_COLUMN_GAIN, &e->gain) && fill_level(f, GC_COLUMN_WET, &e->wet) &&
           fill_level(f, GC_COLUMN_DRY, &e->dry) &&
           (e->random_offset || fill_time(f, GC_COLUMN_OFFSET, 0, "an offset must be 0 or more, not", &e->offset)) &&
           fill_time(f, GC_COLUMN_LENGTH, 1e-9, "a length must be positive, not", &e->length);
}

/* Returns the part of a list before the next |, to be freed, and moves *at behind it. *at NULL: the list has ended.
 * NULL: out of memory, or no part is left. */
static char *next_part(const char **at) {
    if (!*at)
        return NULL;
    size_t length = strcspn(*at, "|");
    char *part = strndup(*at, length);
    *at = (*at)[length] ? *at + length + 1 : NULL;
    return part;
}

int gc_parts_count(const char *list) {
    int count = list != NULL;
    for (; list && *list; list++)
        count += *list == '|';
    return count;
}

/* Parses the numbers of a list into the gain or start of each source. @return false: out of memory */
static bool fill_source_numbers(const filling *f, int column, int sources) {
    const char *list = text_of(f, column), *at = list;
    gc_extra *x = f->e->extra;
    if (list && gc_parts_count(list) != sources)
        return gc_entry_refuse(f->e, "gains and starts need one number for each of the responses, unlike", list);
    for (int i = 0; at; i++) {
        char *part = next_part(&at);
        double value = 0;
        if (!part)
            return false;
        bool good = !*part || parse_number(part, &value);
        free(part);
        if (!good || (column == GC_COLUMN_GAINS ? !gc_is_gain(value) : !(value >= 0 && value <= 1e6)))
            return gc_entry_refuse(f->e, "not a list of levels or times:", list);
        double *to = column == GC_COLUMN_GAINS ? (i ? &x->source[i - 1].gain : &x->gain)
                                               : (i ? &x->source[i - 1].start : &x->start);
        *to = value;
    }
    return true;
}

/* Stores the files of a list in the entry and its further sources. A list of one file serves all sources. */
static bool fill_source_files(gc_entry *e, const char *list, bool inputs, int sources) {
    const char *at = list;
    char *part = NULL;
    for (int i = 0; i < sources; i++) {
        if (at) {
            free(part);
            part = next_part(&at);
        }
        char *copy = part ? strdup(part) : NULL;
        char **to = i == 0 ? (inputs ? &e->input : &e->response)
                           : (inputs ? &e->extra->source[i - 1].input : &e->extra->source[i - 1].response);
        *to = copy;
        if (!copy) {
            free(part);
            return false;
        }
    }
    free(part);
    return true;
}

static bool has_empty_part(const char *list) {
    const size_t length = strlen(list);
    return length == 0 || *list == '|' || list[length - 1] == '|' || strstr(list, "||");
}

/* Fills in several sources from the columns inputs, responses, gains and starts. @return false: out of memory */
static bool fill_sources(const filling *f) {
    gc_entry *e = f->e;
    const char *inputs = text_of(f, GC_COLUMN_INPUTS), *responses = text_of(f, GC_COLUMN_RESPONSES);
    if (!inputs)
        inputs = text_of(f, GC_COLUMN_INPUT);
    if (!responses)
        responses = text_of(f, GC_COLUMN_RESPONSE);
    if (!inputs || !responses)
        return true; /* refused later */
    if ((!text_of(f, GC_COLUMN_INPUTS) && strchr(inputs, '|')) ||
        (!text_of(f, GC_COLUMN_RESPONSES) && strchr(responses, '|')))
        return gc_entry_refuse(
            e, "a name with | cannot be one of several sources:", text_of(f, GC_COLUMN_INPUTS) ? responses : inputs);
    const int x = gc_parts_count(inputs), h = gc_parts_count(responses), sources = x > h ? x : h;
    if ((x > 1 && h > 1 && x != h) || sources > 256)
        return gc_entry_refuse(e, "inputs and responses must name as many files as each other, or one, up to 256:",
                               x > h ? responses : inputs);
    if (has_empty_part(inputs) || has_empty_part(responses))
        return gc_entry_refuse(e, "a list of files has an empty name:", has_empty_part(inputs) ? inputs : responses);
    if (sources > 1) {
        e->extra->source = gc_calloc(sources - 1, sizeof *e->extra->source);
        if (!e->extra->source)
            return false;
        e->extra->sources = sources - 1;
    }
    return fill_source_files(e, inputs, true, sources) && fill_source_files(e, responses, false, sources) &&
           fill_source_numbers(f, GC_COLUMN_GAINS, sources) && fill_source_numbers(f, GC_COLUMN_STARTS, sources);
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

/* Sets the path of the output and checks it. @return false: out of memory */
static bool fill_output(const filling *f) {
    gc_entry *e = f->e;
    const char *given = text_of(f, GC_COLUMN_OUTPUT), *stem = f->row->stem;
    int length = stem ? (int)strlen(stem) : 0;
    if (given) {
        e->output = strdup(given);
    } else {
        if (!stem)
            gc_path_stem(e->input, &stem, &length);
        e->output = gc_text_of("%.*s.%s", length, stem, gc_recipe_extension(gc_entry_recipe(e)));
    }
    if (!e->output)
        return false;
    if (!is_below_folder(e->output))
        return gc_entry_refuse(e, "an output must be below the batch's folder, unlike", e->output);
    gc_path_normalise(e->output);
    return true;
}

/* Sets the path of the second output. @return false: out of memory */
static bool fill_early(const filling *f) {
    gc_entry *e = f->e;
    const char *given = text_of(f, GC_COLUMN_EARLY);
    if (!(gc_entry_recipe(e)->settings.early_ms > 0))
        return !given || gc_entry_refuse(e, "a second output needs early_ms, the length of what it keeps:", given);
    const int stem = (int)gc_stem_length(e->output);
    e->extra->early = given ? strdup(given) : gc_text_of("%.*s.early%s", stem, e->output, e->output + stem);
    if (!e->extra->early)
        return false;
    if (!is_below_folder(e->extra->early))
        return gc_entry_refuse(e, "an output must be below the batch's folder, unlike", e->extra->early);
    gc_path_normalise(e->extra->early);
    return true;
}

/* Refuses a row that itself fills a column which means nothing without another one; a default may be meant for other
 * rows. @return false: out of memory */
static bool check_alone(const filling *f, int column, const char *why) {
    const char *own = f->row->text[column];
    return !own || !*own || gc_entry_refuse(f->e, why, own);
}

static bool copy_text(char **to, const char *from) {
    *to = from ? strdup(from) : NULL;
    return !from || *to;
}

static bool fill_noise(const filling *f) {
    gc_extra *x = f->e->extra;
    const char *noise = text_of(f, GC_COLUMN_NOISE), *offset = text_of(f, GC_COLUMN_NOISE_OFFSET);
    if (!noise)
        return check_alone(f, GC_COLUMN_SNR, "an SNR needs a noise, in the column noise:") &&
               check_alone(f, GC_COLUMN_NOISE_OFFSET, "an offset of the noise needs a noise, in the column noise:") &&
               check_alone(f, GC_COLUMN_NOISE_RESPONSE, "a response of the noise needs a noise, in the column noise:");
    x->noise_random = offset && strcmp(offset, "random") == 0;
    if (!copy_text(&x->noise, noise) || !copy_text(&x->noise_response, text_of(f, GC_COLUMN_NOISE_RESPONSE)))
        return false;
    if (!text_of(f, GC_COLUMN_SNR))
        return gc_entry_refuse(f->e, "noise needs an SNR in decibels, in the column snr:", noise);
    return fill_level(f, GC_COLUMN_SNR, &x->snr) &&
           (x->noise_random ||
            fill_time(f, GC_COLUMN_NOISE_OFFSET, 0, "an offset must be 0 or more, not", &x->noise_offset));
}

/* Finds the recipe. @return false: out of memory */
static bool fill_recipe(const filling *f, gc_recipes *recipes) {
    const char *texts[GC_RECIPE_COLUMNS];
    char range[GC_SETTING_TEXT_ROOM], what[200];
    int column;
    for (int i = 0; i < GC_RECIPE_COLUMNS; i++)
        texts[i] = text_of(f, GC_COLUMN_RECIPE + i);
    if (!gc_recipes_find(recipes, texts, &f->e->recipe, &column))
        return false;
    if (f->e->recipe)
        return true;
    gc_setting_range(&gc_settings_table[column - GC_COLUMN_RECIPE], range);
    (void)snprintf(what, sizeof what, "%s must be %s, not", gc_columns[column], range);
    return gc_entry_refuse(f->e, what, text_of(f, column));
}

/* Allocates `extra` if a column of the row needs it. @return false: out of memory */
static bool make_extra(const filling *f) {
    bool needed = f->row->origin != NULL || text_of(f, GC_COLUMN_EARLY_MS);
    for (int c = GC_COLUMNS_ALWAYS; c < GC_COLUMN_RECIPE; c++)
        needed |= text_of(f, c) != NULL;
    if (needed)
        f->e->extra = calloc(1, sizeof *f->e->extra); /* gc_calloc aligns, which doubles its size */
    return !needed || f->e->extra;
}

bool gc_entry_fill(gc_entry *e, const gc_entry_texts *row, const gc_entry_texts *defaults, gc_recipes *recipes) {
    filling f = {e, row, defaults};
    if (!make_extra(&f) || (row->refusal && !gc_entry_refuse(e, row->refusal, NULL)))
        return false;
    if (!fill_recipe(&f, recipes) || !fill_numbers(&f))
        return false;
    if (e->extra &&
        (!copy_text(&e->extra->id, text_of(&f, GC_COLUMN_ID)) || !copy_text(&e->extra->origin, row->origin)))
        return false;
    if (text_of(&f, GC_COLUMN_INPUTS) || text_of(&f, GC_COLUMN_RESPONSES)) {
        if (!fill_sources(&f))
            return false;
    } else if (!check_alone(&f, GC_COLUMN_GAINS, "gains are those of inputs or responses:") ||
               !check_alone(&f, GC_COLUMN_STARTS, "starts are those of inputs or responses:") ||
               !copy_text(&e->input, text_of(&f, GC_COLUMN_INPUT)) ||
               !copy_text(&e->response, text_of(&f, GC_COLUMN_RESPONSE))) {
        return false;
    }
    if (!e->input)
        return gc_entry_refuse(e, "the input is missing", NULL);
    if (!e->response)
        return gc_entry_refuse(e, "the response is missing", NULL);
    if (!fill_output(&f) || (e->extra && (!fill_early(&f) || !fill_noise(&f))))
        return false;
    if (e->random_offset && e->length < 0)
        return gc_entry_refuse(e, "a random offset needs a length", NULL);
    return true;
}

bool gc_texts_check(const gc_entry_texts *row, int *column, char **reason) {
    gc_entry_texts example = {.stem = NULL};
    gc_entry e = {.dry = -1e300, .length = -1};
    gc_recipes recipes = {NULL};
    const char *texts[GC_RECIPE_COLUMNS];
    char range[GC_SETTING_TEXT_ROOM];
    const gc_recipe *recipe;
    *reason = NULL;
    for (int i = 0; i < GC_RECIPE_COLUMNS; i++)
        texts[i] = row->text[GC_COLUMN_RECIPE + i];
    bool good = gc_recipes_find(&recipes, texts, &recipe, column);
    if (good && !recipe) {
        gc_setting_range(&gc_settings_table[*column - GC_COLUMN_RECIPE], range);
        *reason = strdup(range);
        good = *reason != NULL;
    } else if (good) {
        good = gc_texts_set(&example, GC_COLUMN_INPUT, "x.wav") &&
               gc_texts_set(&example, GC_COLUMN_RESPONSE, "h.wav") &&
               (!row->text[GC_COLUMN_SNR] || gc_texts_set(&example, GC_COLUMN_NOISE, "n.wav")) &&
               gc_entry_fill(&e, &example, row, &recipes);
        *column = -1;
        *reason = e.refusal;
        e.refusal = NULL;
    }
    gc_entry_clear(&e);
    gc_recipes_free(&recipes);
    gc_texts_clear(&example);
    return good;
}

/* ---- From an entry to texts ---- */

/* Writes a number, or returns NULL if it is the default. */
static const char *number(double value, double fallback, char room[GC_NUMBER_TEXT]) {
    if (value == fallback)
        return NULL;
    gc_number_print(value, room);
    return room;
}

/* Returns one value of each source, separated by |, to be freed; NULL: all are the default, or out of memory. */
static char *list_of(const gc_entry *e, int column) {
    gc_entry_texts row = {.stem = NULL};
    char room[GC_NUMBER_TEXT];
    bool good = true, other = column == GC_COLUMN_INPUTS || column == GC_COLUMN_RESPONSES;
    for (int i = 0; i < gc_entry_sources(e) && good; i++) {
        gc_source s = gc_entry_source(e, i);
        double value = column == GC_COLUMN_GAINS ? s.gain : s.start;
        const char *text = column == GC_COLUMN_INPUTS ? s.input : column == GC_COLUMN_RESPONSES ? s.response : room;
        other |= value != 0;
        gc_number_print(value, room);
        good = text && gc_texts_append(&row, 0, text);
    }
    char *list = row.text[0];
    if (!good || !other) {
        free(list);
        list = NULL;
    }
    return list;
}

/* Returns the text of a column of sources. An entry with one source has it only for a gain or start. */
static const char *text_of_sources(const gc_entry *e, int column, char **list) {
    bool files = column == GC_COLUMN_INPUTS || column == GC_COLUMN_RESPONSES;
    if (!e->extra || (files && e->extra->sources == 0 && e->extra->gain == 0 && e->extra->start == 0))
        return NULL;
    return *list = list_of(e, column);
}

static const char *text_of_extra(const gc_entry *e, int column, char room[GC_NUMBER_TEXT], char **list) {
    const gc_extra *x = e->extra;
    if (!x)
        return NULL;
    switch (column) {
    case GC_COLUMN_NOISE:
        return x->noise;
    case GC_COLUMN_SNR:
        gc_number_print(x->snr, room);
        return x->noise ? room : NULL;
    case GC_COLUMN_NOISE_OFFSET:
        return !x->noise ? NULL : x->noise_random ? "random" : number(x->noise_offset, 0, room);
    case GC_COLUMN_NOISE_RESPONSE:
        return x->noise_response;
    case GC_COLUMN_EARLY:
        return x->early;
    case GC_COLUMN_ID:
        return x->id;
    default:
        return text_of_sources(e, column, list);
    }
}

const char *gc_entry_text(const gc_entry *e, int column, char room[GC_NUMBER_TEXT], char **list) {
    *list = NULL;
    switch (column) {
    case GC_COLUMN_INPUT:
        return e->input;
    case GC_COLUMN_RESPONSE:
        return e->response;
    case GC_COLUMN_OUTPUT:
        return e->output;
    case GC_COLUMN_GAIN:
        return number(e->gain, 0, room);
    case GC_COLUMN_WET:
        return number(e->wet, 0, room);
    case GC_COLUMN_DRY:
        return number(e->dry, -HUGE_VAL, room);
    case GC_COLUMN_OFFSET:
        return e->random_offset ? "random" : number(e->offset, 0, room);
    case GC_COLUMN_LENGTH:
        return number(e->length, -1, room);
    case GC_COLUMN_SEED:
        (void)snprintf(room, GC_NUMBER_TEXT, "%llu", (unsigned long long)e->seed);
        return e->seed ? room : NULL;
    default:
        return column >= GC_COLUMN_RECIPE ? gc_entry_recipe(e)->text[column - GC_COLUMN_RECIPE]
                                          : text_of_extra(e, column, room, list);
    }
}

/* ---- Outputs and responses that several entries name ---- */

/* Returns the first entry with a name: an earlier one, or `e` itself. NULL: out of memory. */
static gc_entry *find_or_insert(gc_map *map, const char *name, gc_entry *e) {
    void **first = gc_map_put(map, name, strlen(name));
    if (first && !*first)
        *first = e;
    return first ? *first : NULL;
}

/* Inserts an output, or refuses the entry if an earlier output has the name. @return false: out of memory */
static bool add_output(gc_map *outputs, const char *name, gc_entry *e) {
    const int64_t before = outputs->count;
    return !name || (find_or_insert(outputs, name, e) &&
                     (outputs->count > before || gc_entry_refuse(e, "an earlier entry has the output", name)));
}

gpuconv_status gc_find_duplicates(gc_manifest *m, gpuconv_error *error) {
    gc_map outputs = {0}, responses = {0};
    bool good = true;
    for (int64_t i = 0; i < m->entries && good; i++) {
        gc_entry *e = &m->entry[i];
        if (e->refusal)
            continue;
        good = add_output(&outputs, e->output, e) && (e->refusal || add_output(&outputs, gc_entry_early(e), e));
        gc_entry *first = good && !e->refusal ? find_or_insert(&responses, e->response, e) : e;
        good = good && first;
        if (first && first != e)
            first->shared = e->shared = true;
    }
    gc_map_free(&outputs);
    gc_map_free(&responses);
    return good ? GPUCONV_OK : gc_fail_memory(error, "the manifest");
}

/* ---- Writing of manifests as CSV ---- */

/* Marks the columns that an entry has. */
static void mark_columns(const gc_entry *e, bool used[GC_COLUMNS]) {
    char room[GC_NUMBER_TEXT], *list;
    for (int c = e->extra ? GC_COLUMNS_ALWAYS : GC_COLUMN_RECIPE; c < GC_COLUMNS; c++) {
        if (used[c])
            continue;
        used[c] = gc_entry_text(e, c, room, &list) != NULL;
        free(list);
    }
}

static bool put(const char *text, FILE *f) {
    return fwrite(text, 1, strlen(text), f) == strlen(text);
}

/* Writes a text in quotes, a number as it is. */
static bool write_field(const char *text, bool quoted, FILE *f) {
    return quoted ? csv_fwrite(f, text, strlen(text)) == 0 : put(text, f);
}

static bool write_entry(const gc_entry *e, const bool used[GC_COLUMNS], FILE *f) {
    char room[GC_NUMBER_TEXT], *list;
    bool good = true;
    for (int c = 0; c < GC_COLUMNS && good; c++) {
        if (!used[c])
            continue;
        const char *text = gc_entry_text(e, c, room, &list);
        const bool quoted = text && text != room;
        good = (c == 0 || put(",", f)) && (!text || write_field(text, quoted, f));
        free(list);
    }
    return good && put("\n", f);
}

bool gc_manifest_print(const gc_manifest *m, FILE *f) {
    bool used[GC_COLUMNS] = {false}, good = true;
    const gc_recipe *last = NULL;
    for (int c = 0; c < GC_COLUMNS_ALWAYS; c++)
        used[c] = true;
    for (int64_t i = 0; i < m->entries; i++)
        if (m->entry[i].extra || gc_entry_recipe(&m->entry[i]) != last) {
            mark_columns(&m->entry[i], used);
            last = gc_entry_recipe(&m->entry[i]);
        }
    for (int c = 0; c < GC_COLUMNS && good; c++)
        if (used[c])
            good = (c == 0 || put(",", f)) && put(gc_columns[c], f);
    good = good && put("\n", f);
    for (int64_t i = 0; i < m->entries && good; i++)
        if (m->entry[i].input && m->entry[i].response && m->entry[i].output)
            good = write_entry(&m->entry[i], used, f);
    return good;
}

gpuconv_status gc_manifest_write(const gc_manifest *m, const char *path, gpuconv_error *error) {
    gc_output_file *file;
    gpuconv_status status = gc_create_parent_folders(path, error);
    if (!status)
        status = gc_output_file_new(path, GC_OUTPUT_PROGRAM_PATH, NULL, &file, error);
    if (status)
        return status;
    int fd = dup(gc_output_file_descriptor(file));
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    bool good = f && gc_manifest_print(m, f);
    int reason = errno;
    if (f && fclose(f) != 0 && good) {
        good = false;
        reason = errno;
    } else if (!f && fd >= 0) {
        close(fd);
    }
    status = good ? gc_output_file_commit(file, error)
                  : gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", path, strerror(reason));
    gc_output_file_free(file);
    return status;
}

/* ---- Recipes ---- */

/* A value is converted into a canonical text first, so that -3 and -3.0 give the same recipe; a text that says what is
 * the default anyway counts as empty. */

const gc_recipe *gc_recipe_default(void) {
    static const gc_recipe recipe = {
        .settings = {.preparation = {.size = sizeof recipe.settings.preparation, .dry = -HUGE_VAL, .stretch = 1},
                     .job = {.size = sizeof recipe.settings.job, .tail = HUGE_VAL, .interval = 0.005}}};
    return &recipe;
}

/* Adds the files of the column `series`, which are separated by |, to the settings. @return false: out of memory */
static bool add_files(gc_recipe *r) {
    const char *list = r->text[GC_SETTING_SERIES];
    const size_t length = strlen(list);
    bool good = (r->series_text = strdup(list)) != NULL;
    for (size_t i = 0, begin = 0; good && i <= length; i++) {
        if (list[i] && list[i] != '|')
            continue;
        r->series_text[i] = '\0';
        good = i == begin || !gc_setting_set(&r->settings, GC_SETTING_SERIES, r->series_text + begin);
        begin = i + 1;
    }
    return good;
}

/* Frees what a recipe owns. */
static void clear_recipe(gc_recipe *r) {
    for (int i = 0; i < GC_RECIPE_COLUMNS; i++)
        free(r->text[i]);
    gc_settings_free(&r->settings);
    free(r->series_text);
}

void gc_recipes_free(gc_recipes *recipes) {
    while (recipes->first) {
        gc_recipe *next = recipes->first->next;
        clear_recipe(recipes->first);
        free(recipes->first);
        recipes->first = next;
    }
}

static bool same_texts(const gc_recipe *a, const gc_recipe *b) {
    for (int i = 0; i < GC_RECIPE_COLUMNS; i++)
        if (!a->text[i] != !b->text[i] || (a->text[i] && strcmp(a->text[i], b->text[i]) != 0))
            return false;
    return true;
}

/* Parses all texts into *r. *column -1: all are valid. @return false: out of memory */
static bool parse_texts(gc_recipe *r, const char *const text[GC_RECIPE_COLUMNS], int *column) {
    char canonical[GC_SETTING_TEXT_ROOM];
    *column = -1;
    for (int i = 0; i < GC_RECIPE_COLUMNS; i++) {
        const gc_setting_kind k = gc_settings_table[i].kind;
        const gc_setting_id id = (gc_setting_id)i;
        if (!text[i] || !*text[i])
            continue;
        if (k != GC_KIND_FILES &&
            (gc_setting_set(&r->settings, id, text[i]) || (k == GC_KIND_FORMAT && strcmp(text[i], "raw") == 0))) {
            *column = GC_COLUMN_RECIPE + i;
            return true;
        }
        const bool as_is = k >= GC_KIND_TEXT && k <= GC_KIND_FILES;
        const char *made = as_is ? text[i] : gc_setting_print(&r->settings, id, canonical);
        if (made && !(r->text[i] = strdup(made)))
            return false;
    }
    r->settings.preparation.raw = r->text[GC_SETTING_IR_RAW];
    r->settings.job.format = r->text[GC_SETTING_FORMAT];
    r->settings.job.encoding = r->text[GC_SETTING_ENCODING];
    return !r->text[GC_SETTING_SERIES] || add_files(r);
}

/* Allocates only for a new recipe: an aligned block for each row would leave gaps that double the size of the list. */
bool gc_recipes_find(gc_recipes *recipes, const char *const text[GC_RECIPE_COLUMNS], const gc_recipe **recipe,
                     int *column) {
    gc_recipe made = *gc_recipe_default(), *known = recipes->first;
    *recipe = NULL;
    bool good = parse_texts(&made, text, column);
    if (!good || *column >= 0) {
        clear_recipe(&made);
        return good;
    }
    if (same_texts(&made, gc_recipe_default())) {
        clear_recipe(&made);
        *recipe = gc_recipe_default();
        return true;
    }
    while (known && !same_texts(known, &made))
        known = known->next;
    if (known) {
        clear_recipe(&made);
    } else if ((known = gc_calloc(1, sizeof *known))) {
        *known = made;
        known->next = recipes->first;
        recipes->first = known;
    } else {
        clear_recipe(&made);
        return false;
    }
    *recipe = known;
    return true;
}

const char *gc_recipe_extension(const gc_recipe *r) {
    const char *format = r->settings.job.format;
    return !format || strcmp(format, "rf64") == 0 ? "wav" : format;
}
