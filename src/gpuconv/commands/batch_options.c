/* Turns the options of a batch into a row of defaults. */
#include "batch_options.h"

#include <stdio.h>
#include <string.h>

/* Sets a column unless an option has set it. @return false: out of memory */
static bool set_default(gc_row *row, int column, const char *text) {
    return row->text[column] || gc_row_set(row, column, text);
}

static bool fill_row(const gc_batch_defaults *d, gc_row *row) {
    bool good = true;
    for (int c = 0; c < GC_COLUMNS && good; c++)
        good = !d->text[c] || gc_row_set(row, c, d->text[c]);
    for (char **s = d->series; s && *s && good; s++)
        good = gc_row_append(row, GC_COLUMN_SERIES, *s);
    if (good && d->reverse)
        good = gc_row_set(row, GC_COLUMN_REVERSE, "1");
    if (good && d->minimum_phase)
        good = gc_row_set(row, GC_COLUMN_MINIMUM_PHASE, "1");
    if (good && d->length && strcmp(d->length, "input") == 0)
        good = gc_row_set(row, GC_COLUMN_TAIL, "0");
    if (good && d->preset && strcmp(d->preset, "speech") == 0)
        good = set_default(row, GC_COLUMN_ALIGN, "peak") &&
               (row->text[GC_COLUMN_MODE] || (d->length && strcmp(d->length, "full") == 0) ||
                set_default(row, GC_COLUMN_TAIL, "0"));
    return good;
}

/* Returns the option of a column, as the user spells it. */
static void option_name(int column, char *name, size_t room) {
    (void)snprintf(name, room, "--%s", column == GC_COLUMN_EARLY_MS ? "early" : gc_columns[column]);
    for (char *c = name; *c; c++)
        *c = *c == '_' ? '-' : *c;
}

/* Checks the values that entries get from the row, with an entry of no other use. */
static int check(const gc_row *row) {
    gc_row example = {.stem = NULL};
    gc_entry e = {.dry = -1e300, .length = -1};
    gc_recipes recipes = {NULL};
    const char *texts[GC_RECIPE_COLUMNS], *why;
    const gc_recipe *recipe;
    int column, status = GC_EXIT_DONE;
    char name[40];
    for (int i = 0; i < GC_RECIPE_COLUMNS; i++)
        texts[i] = row->text[GC_COLUMN_RECIPE + i];
    bool good = gc_recipes_find(&recipes, texts, &recipe, &column, &why);
    if (good && !recipe) {
        option_name(column, name, sizeof name);
        status = gc_print_error(GC_EXIT_USAGE, "%s %s '%.60s'; try --help", name, why, row->text[column]);
    }
    good = good && gc_row_set(&example, GC_COLUMN_INPUT, "x.wav") &&
           gc_row_set(&example, GC_COLUMN_RESPONSE, "h.wav") &&
           (!row->text[GC_COLUMN_SNR] || gc_row_set(&example, GC_COLUMN_NOISE, "n.wav")) &&
           (status || gc_entry_fill(&e, &example, row, &recipes));
    if (good && e.refusal)
        status = gc_print_error(GC_EXIT_USAGE, "the options are not valid for any file: %s; try --help", e.refusal);
    gc_entry_clear(&e);
    gc_recipes_free(&recipes);
    gc_row_clear(&example);
    return good ? status : gc_print_error(GC_EXIT_FAILED, "out of memory");
}

int gc_batch_defaults_row(const gc_batch_defaults *d, gc_row *row) {
    *row = (gc_row){.stem = NULL};
    if (d->text[GC_COLUMN_TAIL] && d->length)
        return gc_print_error(GC_EXIT_USAGE, "--tail and --length exclude each other; try --help");
    if (!fill_row(d, row))
        return gc_print_error(GC_EXIT_FAILED, "out of memory");
    if (d->noises && !row->text[GC_COLUMN_SNR])
        return gc_print_error(GC_EXIT_USAGE, "--noises needs --snr, such as --snr 5:20; try --help");
    return check(row);
}
