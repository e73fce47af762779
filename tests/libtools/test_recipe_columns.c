/* Tests the columns of a recipe: which texts are valid, and which canonical text and values they give. */
#include "check.h"

#include "libtools/batch/entry/entry.h"

#include <math.h>

/* Parses one column. @return the recipe, or NULL if the text is invalid */
static const gc_recipe *parse(gc_recipes *recipes, int column, const char *value) {
    const char *text[GC_RECIPE_COLUMNS] = {NULL}, *why;
    const gc_recipe *recipe;
    int at;
    text[column - GC_COLUMN_RECIPE] = value;
    assert_true(gc_recipes_find(recipes, text, &recipe, &at, &why));
    assert_int_equal(at, recipe ? -1 : column);
    assert_true(recipe || why);
    return recipe;
}

static void texts_are_refused_or_become_canonical(void **state) {
    static const struct {
        int column;
        const char *text, *canonical; /* NULL: the default; "!": refused */
    } cases[] = {
        {GC_COLUMN_TAIL, "all", NULL},         {GC_COLUMN_TAIL, "0", "0"},
        {GC_COLUMN_TAIL, "2.50", "2.5"},       {GC_COLUMN_TAIL, "1000000", "1000000"},
        {GC_COLUMN_TAIL, "1000001", "!"},      {GC_COLUMN_TAIL, "-1", "!"},
        {GC_COLUMN_TAIL, "auto", "auto:-90"},  {GC_COLUMN_TAIL, "auto:-60.0", "auto:-60"},
        {GC_COLUMN_TAIL, "auto:0", "!"},       {GC_COLUMN_TAIL, "auto:-301", "!"},
        {GC_COLUMN_TAIL, "auto:", "!"},        {GC_COLUMN_TAIL, "autos", "!"},
        {GC_COLUMN_LEVEL, "none", NULL},       {GC_COLUMN_LEVEL, "none:1", "!"},
        {GC_COLUMN_LEVEL, "input", "input:0"}, {GC_COLUMN_LEVEL, "input:3", "input:3"},
        {GC_COLUMN_LEVEL, "rms", "!"},         {GC_COLUMN_LEVEL, "rms:-200", "rms:-200"},
        {GC_COLUMN_LEVEL, "rms:-201", "!"},    {GC_COLUMN_LEVEL, "loudness:-23.0", "loudness:-23"},
        {GC_COLUMN_LEVEL, "peak:x", "!"},      {GC_COLUMN_TRIM, "-300", "-300"},
        {GC_COLUMN_TRIM, "0", NULL},           {GC_COLUMN_TRIM, "1", "!"},
        {GC_COLUMN_STRETCH, "1.0", NULL},      {GC_COLUMN_STRETCH, "0.01", "0.01"},
        {GC_COLUMN_STRETCH, "100", "100"},     {GC_COLUMN_STRETCH, "101", "!"},
        {GC_COLUMN_STRETCH, "0", "!"},         {GC_COLUMN_STRETCH, "nan", "!"},
        {GC_COLUMN_EARLY_MS, "50", "50"},      {GC_COLUMN_EARLY_MS, "-1", "!"},
        {GC_COLUMN_REVERSE, "1", "1"},         {GC_COLUMN_REVERSE, "0", NULL},
        {GC_COLUMN_REVERSE, "2", "!"},         {GC_COLUMN_DITHER, "tpdf", "tpdf"},
        {GC_COLUMN_DITHER, "none", NULL},      {GC_COLUMN_ALIGN, "peak", "peak"},
        {GC_COLUMN_ALIGN, "pea", "!"},         {GC_COLUMN_MODE, "valid", "valid"},
        {GC_COLUMN_FORMAT, "flac", "flac"},    {GC_COLUMN_FORMAT, "raw", "!"},
        {GC_COLUMN_ENCODING, "s16", "s16"},    {GC_COLUMN_SERIES, "a.wav||b.wav|", "a.wav||b.wav|"},
    };
    gc_recipes recipes = {NULL};
    (void)state;
    for (int i = 0; i < COUNT(cases); i++) {
        const gc_recipe *r = parse(&recipes, cases[i].column, cases[i].text);
        const char *got = !r ? "!" : r == gc_recipe_default() ? NULL : r->text[cases[i].column - GC_COLUMN_RECIPE];
        CHECK(!got == !cases[i].canonical && (!got || strcmp(got, cases[i].canonical) == 0), "%s %s: %s, not %s",
              gc_columns[cases[i].column], cases[i].text, got ? got : "(default)",
              cases[i].canonical ? cases[i].canonical : "(default)");
    }
    gc_recipes_free(&recipes);
}

static void values_are_stored(void **state) {
    gc_recipes recipes = {NULL};
    (void)state;
    assert_true(parse(&recipes, GC_COLUMN_EARLY_MS, "50")->early == 0.05);
    assert_true(parse(&recipes, GC_COLUMN_DITHER, "tpdf")->dither && !gc_recipe_default()->dither);
    assert_true(parse(&recipes, GC_COLUMN_TAIL, "auto")->tail_floor == -90);
    assert_true(parse(&recipes, GC_COLUMN_TAIL, "auto:-50")->tail == HUGE_VAL);
    assert_true(parse(&recipes, GC_COLUMN_TAIL, "0.5")->tail == 0.5);
    assert_int_equal(parse(&recipes, GC_COLUMN_LEVEL, "loudness:-23")->level, GC_LEVEL_LOUDNESS);
    assert_true(parse(&recipes, GC_COLUMN_LEVEL, "input:-3")->level_db == -3);
    assert_int_equal(parse(&recipes, GC_COLUMN_MODE, "same")->mode, GPUCONV_MODE_SAME);
    assert_true(parse(&recipes, GC_COLUMN_REVERSE, "1")->preparation.reverse);
    const gc_recipe *series = parse(&recipes, GC_COLUMN_SERIES, "|a.wav||b.wav|");
    assert_int_equal(series->preparation.series_count, 2);
    assert_string_equal(series->preparation.series[0], "a.wav");
    assert_string_equal(series->preparation.series[1], "b.wav");
    assert_string_equal(gc_recipe_extension(gc_recipe_default()), "wav");
    assert_string_equal(gc_recipe_extension(parse(&recipes, GC_COLUMN_FORMAT, "rf64")), "wav");
    assert_string_equal(gc_recipe_extension(parse(&recipes, GC_COLUMN_FORMAT, "flac")), "flac");
    gc_recipes_free(&recipes);
}

static void equal_settings_are_one_recipe(void **state) {
    gc_recipes recipes = {NULL};
    (void)state;
    const gc_recipe *a = parse(&recipes, GC_COLUMN_TRIM, "-60");
    assert_ptr_equal(parse(&recipes, GC_COLUMN_TRIM, "-60.0"), a);
    assert_ptr_not_equal(parse(&recipes, GC_COLUMN_TRIM, "-61"), a);
    assert_ptr_not_equal(parse(&recipes, GC_COLUMN_PREDELAY, "1"), parse(&recipes, GC_COLUMN_FADE, "1"));
    gc_recipes_free(&recipes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_refused_or_become_canonical),
        cmocka_unit_test(values_are_stored),
        cmocka_unit_test(equal_settings_are_one_recipe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
