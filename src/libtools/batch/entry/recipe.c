/* Parses the columns of a recipe, and stores equal recipes once. A value is converted into a canonical text first, so
 * that -3 and -3.0 give the same recipe; a text that says what is the default anyway counts as empty. */
#include "entry.h"
#include "libgpuconv/audio/names.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum kind { NUMBER, FLAG, WORD, FILES, TAIL, LEVEL, FORMAT, ENCODING } kind;

/* How a column is read. A number or the index of a word is stored `at` bytes into the recipe. */
typedef struct rule {
    kind kind;
    size_t at;
    double least, most, fallback;
    const char *words; /* separated by |; the first is the default */
    const char *why;   /* what a refusal says */
} rule;

#define OF_PREPARATION(member) (offsetof(gc_recipe, preparation) + offsetof(gpuconv_preparation, member))
#define SECONDS(member)                                                                                                \
    { NUMBER, OF_PREPARATION(member), 0, 1e6, 0, NULL, "must be 0 to 1000000 seconds, not" }

static const rule rules[GC_RECIPE_COLUMNS] = {
    [GC_COLUMN_IR_LAYOUT - GC_COLUMN_RECIPE] = {WORD, OF_PREPARATION(layout), 0, 0, 0,
                                                "auto|source|output|packed|stereo",
                                                "must be auto, source, output, packed or stereo, not"},
    [GC_COLUMN_IR_START - GC_COLUMN_RECIPE] = SECONDS(start),
    [GC_COLUMN_IR_LENGTH - GC_COLUMN_RECIPE] = SECONDS(length),
    [GC_COLUMN_TRIM - GC_COLUMN_RECIPE] = {NUMBER, OF_PREPARATION(trim), -300, 0, 0, NULL, "must be -300 to 0 dB, not"},
    [GC_COLUMN_ALIGN - GC_COLUMN_RECIPE] = {WORD, OF_PREPARATION(align), 0, 0, 0, "none|onset|peak",
                                            "must be none, onset or peak, not"},
    [GC_COLUMN_REVERSE - GC_COLUMN_RECIPE] = {FLAG, OF_PREPARATION(reverse), 0, 0, 0, NULL, "must be 0 or 1, not"},
    [GC_COLUMN_STRETCH -
        GC_COLUMN_RECIPE] = {NUMBER, OF_PREPARATION(stretch), 0.01, 100, 1, NULL, "must be 0.01 to 100, not"},
    [GC_COLUMN_MINIMUM_PHASE -
        GC_COLUMN_RECIPE] = {FLAG, OF_PREPARATION(minimum_phase), 0, 0, 0, NULL, "must be 0 or 1, not"},
    [GC_COLUMN_FADE - GC_COLUMN_RECIPE] = SECONDS(fade),
    [GC_COLUMN_SERIES - GC_COLUMN_RECIPE] = {.kind = FILES},
    [GC_COLUMN_PREDELAY - GC_COLUMN_RECIPE] = SECONDS(predelay),
    [GC_COLUMN_NORMALIZE - GC_COLUMN_RECIPE] = {WORD, OF_PREPARATION(normalize), 0, 0, 0,
                                                "none|peak|l1|energy|loudness",
                                                "must be none, peak, l1, energy or loudness, not"},
    [GC_COLUMN_IR_GAIN -
        GC_COLUMN_RECIPE] = {NUMBER, OF_PREPARATION(gain), -200, 200, 0, NULL, "must be between -200 and 200 dB, not"},
    [GC_COLUMN_MODE - GC_COLUMN_RECIPE] = {WORD, offsetof(gc_recipe, mode), 0, 0, 0, "full|same|valid",
                                           "must be full, same or valid, not"},
    [GC_COLUMN_TAIL - GC_COLUMN_RECIPE] = {.kind = TAIL, .why = "must be all, seconds, auto or auto:DB, not"},
    [GC_COLUMN_LEVEL -
        GC_COLUMN_RECIPE] = {.kind = LEVEL, .why = "must be peak:DB, rms:DB, loudness:LUFS, input or input:DB, not"},
    [GC_COLUMN_EARLY_MS - GC_COLUMN_RECIPE] = {NUMBER, offsetof(gc_recipe, early), 0, 1e6, 0, NULL,
                                               "must be 0 to 1000000 milliseconds, not"},
    [GC_COLUMN_FORMAT - GC_COLUMN_RECIPE] = {.kind = FORMAT, .why = "is no format such as wav, flac or opus:"},
    [GC_COLUMN_ENCODING - GC_COLUMN_RECIPE] = {.kind = ENCODING, .why = "is no encoding such as s16 or float:"},
    [GC_COLUMN_DITHER -
        GC_COLUMN_RECIPE] = {WORD, offsetof(gc_recipe, dither), 0, 0, 0, "none|tpdf", "must be none or tpdf, not"},
    [GC_COLUMN_COMPRESSION - GC_COLUMN_RECIPE] = {WORD, offsetof(gc_recipe, compression), 0, 0, 0,
                                                  "5|0|1|2|3|4|5|6|7|8", "must be 0 to 8, not"},
};

const gc_recipe *gc_recipe_default(void) {
    static const gc_recipe recipe = {.preparation = {.size = sizeof recipe.preparation, .dry = -HUGE_VAL, .stretch = 1},
                                     .tail = HUGE_VAL};
    return &recipe;
}

/* Returns the index of a word in `words`, or -1. */
static int find_word(const char *word, const char *words) {
    size_t length = strlen(word);
    for (int i = 0;; i++) {
        size_t n = strcspn(words, "|");
        if (n == length && strncmp(words, word, n) == 0)
            return i;
        if (!words[n])
            return -1;
        words += n + 1;
    }
}

/* Writes a number behind a beginning. */
static void print_canonical(char *canonical, size_t room, const char *beginning, double value) {
    char number[GC_NUMBER_TEXT];
    gc_number_print(value, number);
    (void)snprintf(canonical, room, "%s%s", beginning, number);
}

/* Parses "all", "2.5", "auto" and "auto:-60". */
static bool parse_tail(const char *text, gc_recipe *r, char *canonical, size_t room) {
    double value = -90;
    bool floor = strncmp(text, "auto", 4) == 0 && (!text[4] || text[4] == ':');
    if (strcmp(text, "all") == 0)
        return true;
    if (!(floor && !text[4]) && !gc_number_parse(floor ? text + 5 : text, &value))
        return false;
    if (floor)
        r->tail_floor = value;
    else
        r->tail = value;
    print_canonical(canonical, room, floor ? "auto:" : "", value);
    return floor ? value < 0 && value >= -300 : value >= 0 && value <= 1e6;
}

/* Parses "peak:-1", "rms:-26", "loudness:-23", "input" and "input:3". */
static bool parse_level(const char *text, gc_recipe *r, char *canonical, size_t room) {
    static const char words[] = "none|peak|rms|loudness|input";
    char word[16]; /* and a colon */
    const char *colon = strchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : strlen(text);
    if (length + 1 >= sizeof word)
        return false;
    memcpy(word, text, length);
    word[length] = '\0';
    int found = find_word(word, words);
    word[length] = ':';
    word[length + 1] = '\0';
    r->level = found > 0 ? (gc_level_kind)found : GC_LEVEL_NONE;
    if (found <= 0)
        return found == 0 && !colon;
    if (!colon && r->level != GC_LEVEL_INPUT)
        return false;
    if (colon && !gc_number_parse(colon + 1, &r->level_db))
        return false;
    print_canonical(canonical, room, word, r->level_db);
    return fabs(r->level_db) <= 200;
}

/* Stores a list of file names separated by |. @return false: out of memory */
static bool parse_files(const char *text, gc_recipe *r) {
    size_t length = strlen(text);
    int count = 1;
    for (const char *at = text; *at; at++)
        count += *at == '|';
    const char **series = gc_calloc(count, sizeof *series);
    r->series_text = strdup(text);
    r->preparation.series = series;
    if (!series || !r->series_text)
        return false;
    for (size_t i = 0, begin = 0; i <= length; i++) {
        if (r->series_text[i] && r->series_text[i] != '|')
            continue;
        if (i > begin)
            series[r->preparation.series_count++] = r->series_text + begin;
        r->series_text[i] = '\0';
        begin = i + 1;
    }
    return true;
}

/* Parses one column into the recipe and writes its canonical text, empty for the default; files and names are copied
 * as they are. @return false: invalid */
static bool parse_value(gc_recipe *r, int index, const char *text, char *canonical, size_t room) {
    const rule *u = &rules[index];
    void *at = (char *)r + u->at;
    double number;
    int word;
    *canonical = '\0';
    switch (u->kind) {
    case NUMBER:
        if (!gc_number_parse(text, &number) || !(number >= u->least && number <= u->most))
            return false;
        *(double *)at = index == GC_COLUMN_EARLY_MS - GC_COLUMN_RECIPE ? number / 1000 : number;
        if (number != u->fallback)
            print_canonical(canonical, room, "", number);
        return true;
    case FLAG:
    case WORD:
        word = find_word(text, u->kind == FLAG ? "0|1" : u->words);
        if (word < 0)
            return false;
        if (u->kind == FLAG || index == GC_COLUMN_DITHER - GC_COLUMN_RECIPE)
            *(bool *)at = word == 1;
        else
            *(int *)at = word; /* the enumerations of gpuconv.h are stored as int */
        if (word > 0)
            (void)snprintf(canonical, room, "%s", text);
        return true;
    case TAIL:
        return parse_tail(text, r, canonical, room);
    case LEVEL:
        return parse_level(text, r, canonical, room);
    case FORMAT:
        return gc_is_format_name(text) && strcmp(text, "raw") != 0;
    case ENCODING:
        return gc_is_encoding_name(text);
    default:
        return true;
    }
}

/* Frees what a recipe owns. */
static void clear_recipe(gc_recipe *r) {
    for (int i = 0; i < GC_RECIPE_COLUMNS; i++)
        free(r->text[i]);
    free((void *)r->preparation.series);
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
    char canonical[64];
    *column = -1;
    for (int i = 0; i < GC_RECIPE_COLUMNS && *column < 0; i++) {
        if (!text[i] || !*text[i])
            continue;
        const kind k = rules[i].kind;
        const bool as_is = k == FILES || k == FORMAT || k == ENCODING;
        if (!parse_value(r, i, text[i], canonical, sizeof canonical))
            *column = GC_COLUMN_RECIPE + i;
        else if ((as_is || *canonical) && !(r->text[i] = strdup(as_is ? text[i] : canonical)))
            return false;
        if (k == FILES && !parse_files(text[i], r))
            return false;
    }
    r->format = r->text[GC_COLUMN_FORMAT - GC_COLUMN_RECIPE];
    r->encoding = r->text[GC_COLUMN_ENCODING - GC_COLUMN_RECIPE];
    return true;
}

/* Allocates only for a new recipe: an aligned block for each row would leave gaps that double the size of the list. */
bool gc_recipes_find(gc_recipes *recipes, const char *const text[GC_RECIPE_COLUMNS], const gc_recipe **recipe,
                     int *column, const char **why) {
    gc_recipe made = *gc_recipe_default(), *known = recipes->first;
    *recipe = NULL;
    *why = NULL;
    bool good = parse_texts(&made, text, column);
    if (!good || *column >= 0) {
        *why = good ? rules[*column - GC_COLUMN_RECIPE].why : NULL;
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
    return !r->format ? "wav" : strcmp(r->format, "rf64") == 0 ? "wav" : r->format;
}
