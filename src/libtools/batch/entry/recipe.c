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

/* Adds the files of a list separated by |, of which *list gets a copy. @return false: out of memory */
static bool add_files(gc_settings *settings, int id, const char *text, char **list) {
    const size_t length = strlen(text);
    char *copy = *list = strdup(text);
    bool good = copy != NULL;
    for (size_t i = 0, begin = 0; good && i <= length; i++) {
        if (copy[i] && copy[i] != '|')
            continue;
        copy[i] = '\0';
        good = i == begin || !gc_setting_set(settings, (gc_setting_id)id, copy + begin);
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
    for (int i = 0; i < GC_RECIPE_COLUMNS && *column < 0; i++) {
        const gc_setting_kind k = gc_settings_table[i].kind;
        const bool as_is = k == GC_KIND_FILES || k == GC_KIND_FORMAT || k == GC_KIND_ENCODING;
        if (!text[i] || !*text[i])
            continue;
        if (as_is && !(r->text[i] = strdup(text[i])))
            return false;
        if (k == GC_KIND_FILES && !add_files(&r->settings, i, text[i], &r->series_text))
            return false;
        if (k != GC_KIND_FILES && (gc_setting_set(&r->settings, (gc_setting_id)i, as_is ? r->text[i] : text[i]) ||
                                   (k == GC_KIND_FORMAT && strcmp(text[i], "raw") == 0)))
            *column = GC_COLUMN_RECIPE + i;
        const char *made = as_is ? NULL : gc_setting_print(&r->settings, (gc_setting_id)i, canonical);
        if (made && *column < 0 && !(r->text[i] = strdup(made)))
            return false;
    }
    return true;
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
