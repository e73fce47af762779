/* Converts an entry back into the texts of a row, for manifests and results. */
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "row.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes a number, or returns NULL if it is the default. */
static const char *number(double value, double fallback, char room[GC_NUMBER_TEXT]) {
    if (value == fallback)
        return NULL;
    gc_number_print(value, room);
    return room;
}

/* Returns one value of each source, separated by |, to be freed; NULL: all are the default, or out of memory. */
static char *list_of(const gc_entry *e, int column) {
    gc_row row = {.stem = NULL};
    char room[GC_NUMBER_TEXT];
    bool good = true, other = column == GC_COLUMN_INPUTS || column == GC_COLUMN_RESPONSES;
    for (int i = 0; i < gc_entry_sources(e) && good; i++) {
        gc_source s = gc_entry_source(e, i);
        double value = column == GC_COLUMN_GAINS ? s.gain : s.start;
        const char *text = column == GC_COLUMN_INPUTS ? s.input : column == GC_COLUMN_RESPONSES ? s.response : room;
        other |= value != 0;
        gc_number_print(value, room);
        good = text && gc_row_append(&row, 0, text);
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
