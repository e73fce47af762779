/* Names of the columns of a manifest. */
#include "column.h"

#include <stddef.h>

const char *const gc_columns[GC_COLUMNS] = {
    [GC_COLUMN_INPUT] = "input",
    [GC_COLUMN_RESPONSE] = "response",
    [GC_COLUMN_OUTPUT] = "output",
    [GC_COLUMN_GAIN] = "gain",
    [GC_COLUMN_WET] = "wet",
    [GC_COLUMN_DRY] = "dry",
    [GC_COLUMN_OFFSET] = "offset",
    [GC_COLUMN_LENGTH] = "length",
    [GC_COLUMN_SEED] = "seed",
    [GC_COLUMN_INPUTS] = "inputs",
    [GC_COLUMN_RESPONSES] = "responses",
    [GC_COLUMN_GAINS] = "gains",
    [GC_COLUMN_STARTS] = "starts",
    [GC_COLUMN_NOISE] = "noise",
    [GC_COLUMN_SNR] = "snr",
    [GC_COLUMN_NOISE_OFFSET] = "noise_offset",
    [GC_COLUMN_EARLY] = "early",
    [GC_COLUMN_ID] = "id",
    [GC_COLUMN_IR_LAYOUT] = "ir_layout",
    [GC_COLUMN_IR_START] = "ir_start",
    [GC_COLUMN_IR_LENGTH] = "ir_length",
    [GC_COLUMN_TRIM] = "trim",
    [GC_COLUMN_ALIGN] = "align",
    [GC_COLUMN_REVERSE] = "reverse",
    [GC_COLUMN_STRETCH] = "stretch",
    [GC_COLUMN_MINIMUM_PHASE] = "minimum_phase",
    [GC_COLUMN_FADE] = "fade",
    [GC_COLUMN_SERIES] = "series",
    [GC_COLUMN_PREDELAY] = "predelay",
    [GC_COLUMN_NORMALIZE] = "normalize",
    [GC_COLUMN_IR_GAIN] = "ir_gain",
    [GC_COLUMN_MODE] = "mode",
    [GC_COLUMN_TAIL] = "tail",
    [GC_COLUMN_LEVEL] = "level",
    [GC_COLUMN_EARLY_MS] = "early_ms",
    [GC_COLUMN_FORMAT] = "format",
    [GC_COLUMN_ENCODING] = "encoding",
    [GC_COLUMN_DITHER] = "dither",
    [GC_COLUMN_COMPRESSION] = "compression",
};

static bool is_name(const char *text, const char *name) {
    while (*text && (*text == *name || (*text == '-' && *name == '_'))) {
        text++;
        name++;
    }
    return !*text && !*name;
}

int gc_column_find(const char *name) {
    for (int c = 0; c < GC_COLUMNS; c++)
        if (is_name(name, gc_columns[c]))
            return c;
    return -1;
}
