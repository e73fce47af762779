/* Recipes: the settings that many entries of a batch have in common. Equal recipes are stored once. */
#ifndef GPUCONV_BATCH_RECIPE_H
#define GPUCONV_BATCH_RECIPE_H

#include "column.h"
#include "gpuconv.h"

typedef enum gc_level_kind {
    GC_LEVEL_NONE = 0,
    GC_LEVEL_PEAK,     /* largest magnitude, dBFS */
    GC_LEVEL_RMS,      /* root of the mean power of all channels, dBFS */
    GC_LEVEL_LOUDNESS, /* integrated loudness, LUFS (BS.1770) */
    GC_LEVEL_INPUT     /* the RMS of the input, plus decibels */
} gc_level_kind;

typedef struct gc_recipe {
    gpuconv_preparation preparation; /* wet and dry are the entry's */
    char *series_text;               /* owned names of preparation.series, each terminated by a zero byte */
    gpuconv_mode mode;
    double tail, tail_floor; /* as gpuconv_job */
    bool dither;
    int compression; /* as gc_output_options */
    gc_level_kind level;
    double level_db;
    double early; /* seconds after the direct sound that the second output keeps */
    /* The canonical text of each column of a recipe; NULL: the default. Owned. format and encoding point here. */
    char *text[GC_RECIPE_COLUMNS];
    const char *format, *encoding; /* NULL: from the name of the output; from the input */
    struct gc_recipe *next;
} gc_recipe;

/* A list of recipes that are all different. */
typedef struct gc_recipes {
    gc_recipe *first;
} gc_recipes;

/* Returns the recipe without settings. */
const gc_recipe *gc_recipe_default(void);

/* Returns the recipe with these texts, one for each column of a recipe, NULL or empty where it is the default.
 * *recipe is NULL if a text is invalid: *column is its column then and *why the reason. @return false: out of memory */
bool gc_recipes_find(gc_recipes *recipes, const char *const text[GC_RECIPE_COLUMNS], const gc_recipe **recipe,
                     int *column, const char **why);

void gc_recipes_free(gc_recipes *recipes);

/* Returns the extension for outputs of the recipe without an output name: "wav" or that of the format. */
const char *gc_recipe_extension(const gc_recipe *recipe);

#endif
