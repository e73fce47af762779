/* Parses the columns of a recipe, and stores equal recipes once. A value is converted into a canonical text first, so
 * that -3 and -3.0 give the same recipe; a text that says what is the default anyway counts as empty. */
#include "entry.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
