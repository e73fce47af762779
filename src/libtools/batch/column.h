/* The columns of a manifest: names, and texts of one row. */
#ifndef GPUCONV_BATCH_COLUMN_H
#define GPUCONV_BATCH_COLUMN_H

#include <stdbool.h>

enum {
    GC_COLUMN_INPUT,
    GC_COLUMN_RESPONSE,
    GC_COLUMN_OUTPUT,
    GC_COLUMN_GAIN,
    GC_COLUMN_WET,
    GC_COLUMN_DRY,
    GC_COLUMN_OFFSET,
    GC_COLUMN_LENGTH,
    GC_COLUMN_SEED,
    GC_COLUMNS_ALWAYS, /* the columns above are written into every manifest */
    GC_COLUMN_INPUTS = GC_COLUMNS_ALWAYS,
    GC_COLUMN_RESPONSES,
    GC_COLUMN_GAINS,
    GC_COLUMN_STARTS,
    GC_COLUMN_NOISE,
    GC_COLUMN_SNR,
    GC_COLUMN_NOISE_OFFSET,
    GC_COLUMN_EARLY,
    GC_COLUMN_ID,
    GC_COLUMN_RECIPE, /* the columns from here on are a recipe's */
    GC_COLUMN_IR_LAYOUT = GC_COLUMN_RECIPE,
    GC_COLUMN_IR_START,
    GC_COLUMN_IR_LENGTH,
    GC_COLUMN_TRIM,
    GC_COLUMN_ALIGN,
    GC_COLUMN_REVERSE,
    GC_COLUMN_STRETCH,
    GC_COLUMN_MINIMUM_PHASE,
    GC_COLUMN_FADE,
    GC_COLUMN_SERIES,
    GC_COLUMN_PREDELAY,
    GC_COLUMN_NORMALIZE,
    GC_COLUMN_IR_GAIN,
    GC_COLUMN_MODE,
    GC_COLUMN_TAIL,
    GC_COLUMN_LEVEL,
    GC_COLUMN_EARLY_MS,
    GC_COLUMN_FORMAT,
    GC_COLUMN_ENCODING,
    GC_COLUMN_DITHER,
    GC_COLUMN_COMPRESSION,
    GC_COLUMNS
};
enum { GC_RECIPE_COLUMNS = GC_COLUMNS - GC_COLUMN_RECIPE };

/* The columns' names. */
extern const char *const gc_columns[GC_COLUMNS];

/* Returns the column with a name, in which - counts as _; -1: there is none. */
int gc_column_find(const char *name);

#endif
