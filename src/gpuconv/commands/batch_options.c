/* Turns the options of a batch into a row of defaults. */
#include "batch_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sets a column unless an option has set it. @return false: out of memory */
static bool set_default(gc_entry_texts *row, int column, const char *text) {
    return row->text[column] || gc_texts_set(row, column, text);
}

static bool fill_row(const gc_batch_defaults *d, gc_entry_texts *row) {
    bool good = true;
    for (int c = 0; c < GC_COLUMNS && good; c++)
        good = !d->text[c] || gc_texts_set(row, c, d->text[c]);
    for (char **s = d->series; s && *s && good; s++)
        good = gc_texts_append(row, GC_COLUMN_SERIES, *s);
    if (good && d->reverse)
        good = gc_texts_set(row, GC_COLUMN_REVERSE, "1");
    if (good && d->minimum_phase)
        good = gc_texts_set(row, GC_COLUMN_MINIMUM_PHASE, "1");
    if (good && d->level_match)
        good = gc_texts_set(row, GC_COLUMN_LEVEL, "input");
    if (good && d->length && strcmp(d->length, "input") == 0)
        good = gc_texts_set(row, GC_COLUMN_TAIL, "0");
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

static int check(const gc_entry_texts *row) {
    int column, status = GC_EXIT_DONE;
    char *reason, name[40];
    if (!gc_texts_check(row, &column, &reason))
        return gc_print_error(GC_EXIT_FAILED, "out of memory");
    if (reason && column >= 0) {
        option_name(column, name, sizeof name);
        status = gc_print_error(GC_EXIT_USAGE, "%s %s; try --help", name, reason);
    } else if (reason) {
        status = gc_print_error(GC_EXIT_USAGE, "the options are not valid for any file: %s; try --help", reason);
    }
    free(reason);
    return status;
}

int gc_batch_defaults_row(const gc_batch_defaults *d, gc_entry_texts *row) {
    *row = (gc_entry_texts){.stem = NULL};
    if (d->text[GC_COLUMN_TAIL] && d->length)
        return gc_print_error(GC_EXIT_USAGE, "--tail and --length exclude each other; try --help");
    if (d->text[GC_COLUMN_LEVEL] && d->level_match)
        return gc_print_error(GC_EXIT_USAGE, "--level and --level-match exclude each other; try --help");
    if (!fill_row(d, row))
        return gc_print_error(GC_EXIT_FAILED, "out of memory");
    if (d->noises && !row->text[GC_COLUMN_SNR])
        return gc_print_error(GC_EXIT_USAGE, "--noises needs --snr, such as --snr 5:20; try --help");
    return check(row);
}
