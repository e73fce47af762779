/* Checks a row of defaults, which has no file of its own, with an entry of no other use. */
#include "row.h"

#include <stdlib.h>
#include <string.h>

/* Checks what does not belong to a recipe. @return false: out of memory */
static bool check_entry(const gc_row *row, gc_recipes *recipes, char **why) {
    gc_row example = {.stem = NULL};
    gc_entry e = {.dry = -1e300, .length = -1};
    bool good = gc_row_set(&example, GC_COLUMN_INPUT, "x.wav") && gc_row_set(&example, GC_COLUMN_RESPONSE, "h.wav") &&
                (!row->text[GC_COLUMN_SNR] || gc_row_set(&example, GC_COLUMN_NOISE, "n.wav")) &&
                gc_entry_fill(&e, &example, row, recipes);
    if (good && e.refusal)
        good = (*why = strdup(e.refusal)) != NULL;
    gc_entry_clear(&e);
    gc_row_clear(&example);
    return good;
}

bool gc_defaults_check(const gc_row *row, int *column, char **why) {
    gc_recipes recipes = {NULL};
    const char *texts[GC_RECIPE_COLUMNS], *wrong = NULL;
    const gc_recipe *recipe;
    *column = -1;
    *why = NULL;
    for (int i = 0; i < GC_RECIPE_COLUMNS; i++)
        texts[i] = row->text[GC_COLUMN_RECIPE + i];
    bool good = gc_recipes_find(&recipes, texts, &recipe, column, &wrong);
    if (good && !recipe) {
        good = (*why = strdup(wrong)) != NULL;
    } else if (good) {
        *column = -1;
        good = check_entry(row, &recipes, why);
    }
    gc_recipes_free(&recipes);
    return good;
}
