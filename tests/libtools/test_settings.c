/* Tests the table of settings, from which all doors follow: which values each one takes, as a text, in a structure and
 * as a column of a recipe, and which text a value gives. */
#include "check.h"

#include "libtools/batch/entry/entry.h"

#include <math.h>

/* Fails unless a text is taken and gives a value that prints the canonical text, which gives the same value again. */
static void takes(int id, const char *text, const char *canonical) {
    const char *column = gc_settings_table[id].column;
    char printed[GC_SETTING_TEXT_ROOM], again[GC_SETTING_TEXT_ROOM];
    gc_settings s = gc_settings_default(), t = gc_settings_default();
    CHECK(gc_setting_set(&s, (gc_setting_id)id, text) == GPUCONV_OK, "%s %s: refused", column, text);
    const char *got = gc_setting_print(&s, (gc_setting_id)id, printed);
    CHECK(!got == !canonical && (!got || strcmp(got, canonical) == 0), "%s %s: prints %s, not %s", column, text,
          got ? got : "nothing", canonical ? canonical : "nothing");
    if (got)
        CHECK(gc_setting_set(&t, (gc_setting_id)id, got) == GPUCONV_OK &&
                  strcmp(gc_setting_print(&t, (gc_setting_id)id, again), got) == 0,
              "%s %s: another value after printing", column, got);
    gpuconv_error error = {0};
    CHECK(gc_settings_check(&s.preparation, offsetof(gc_settings, preparation), sizeof s.preparation, &error) ==
                  GPUCONV_OK &&
              gc_settings_check(&s.job, offsetof(gc_settings, job), sizeof s.job, &error) == GPUCONV_OK,
          "%s %s: refused in its structure: %s", column, text, error.message);
    gc_settings_free(&s);
}

static void refuses(int id, const char *text) {
    gc_settings s = gc_settings_default();
    CHECK(gc_setting_set(&s, (gc_setting_id)id, text) == GPUCONV_ERROR_ARGUMENT, "%s '%s': not refused",
          gc_settings_table[id].column, text);
}

/* Fails unless a structure with the value at `at` is refused with the range. */
static void is_refused(const gc_settings *s, int id) {
    gpuconv_error error = {0};
    char range[GC_SETTING_TEXT_ROOM];
    const gc_setting *setting = &gc_settings_table[id];
    gc_setting_range(setting, range);
    const bool is_job = setting->at >= offsetof(gc_settings, job);
    const gpuconv_status status =
        is_job ? gc_settings_check(&s->job, offsetof(gc_settings, job), sizeof s->job, &error)
               : gc_settings_check(&s->preparation, offsetof(gc_settings, preparation), sizeof s->preparation, &error);
    CHECK(status == GPUCONV_ERROR_ARGUMENT && strstr(error.message, setting->column) && strstr(error.message, range),
          "%s: a value out of its range says: %s", setting->column, error.message);
}

static void check_number(int id) {
    const gc_setting *setting = &gc_settings_table[id];
    static const char *const wrong[] = {"", " 1", "1 ", "1x", "x", "nan", "-nan", "inf", "1e400", "0x10", "1,5"};
    const double taken[] = {setting->least, setting->most, 0.3 * setting->least + 0.7 * setting->most};
    const double outside[] = {nextafter(setting->least, -HUGE_VAL), nextafter(setting->most, HUGE_VAL), (double)NAN,
                              HUGE_VAL};
    char text[GC_NUMBER_TEXT];
    for (int i = 0; i < COUNT(taken); i++) {
        gc_number_print(taken[i], text);
        takes(id, text, taken[i] == setting->other ? NULL : text);
    }
    for (int i = 0; i < COUNT(wrong); i++)
        refuses(id, wrong[i]);
    for (int i = 0; i < COUNT(outside); i++) {
        gc_settings s = gc_settings_default();
        gc_number_print(outside[i], text);
        refuses(id, text);
        void *at = (char *)&s + setting->at;
        *(double *)at = outside[i];
        if (outside[i] != 0 && setting->at < offsetof(gc_settings, level))
            is_refused(&s, id);
    }
    if (setting->kind == GC_KIND_MIX)
        takes(id, "-inf", id == GC_SETTING_DRY ? NULL : "-inf");
    else
        refuses(id, "-inf");
}

static void check_words(int id, const char *words) {
    char word[64];
    int count = 0;
    refuses(id, "");
    refuses(id, "nonsense");
    refuses(id, words);
    for (const char *at = words; *at; count++) {
        const int length = (int)strcspn(at, "|");
        (void)snprintf(word, sizeof word, "%.*s", length, at);
        takes(id, word, count ? word : NULL);
        at += length + (at[length] == '|');
    }
    for (int bad = -1; bad <= count && gc_settings_table[id].kind == GC_KIND_WORD; bad += count + 1) {
        gc_settings s = gc_settings_default();
        void *at = (char *)&s + gc_settings_table[id].at;
        *(int *)at = bad;
        is_refused(&s, id);
    }
}

static void every_setting_takes_its_range_and_nothing_else(void **state) {
    (void)state;
    for (int id = 0; id < GC_SETTINGS; id++) {
        const gc_setting *s = &gc_settings_table[id];
        if (s->kind <= GC_KIND_MIX)
            check_number(id);
        else if (s->kind <= GC_KIND_WORD)
            check_words(id, s->value);
    }
}

/* The ranges that gpuconv.h and the documents promise. */
static void ranges_and_defaults_are_those_of_the_header(void **state) {
    static const struct {
        int id;
        double least, most, other;
    } numbers[] = {{GC_SETTING_IR_START, 0, 1e6, 0},       {GC_SETTING_IR_LENGTH, 0, 1e6, 0},
                   {GC_SETTING_TRIM, -300, 0, 0},          {GC_SETTING_STRETCH, 0.01, 100, 1},
                   {GC_SETTING_FADE, 0, 1e6, 0},           {GC_SETTING_PREDELAY, 0, 1e6, 0},
                   {GC_SETTING_IR_GAIN, -200, 200, 0},     {GC_SETTING_EARLY_MS, 0, 1e6, 0},
                   {GC_SETTING_GAIN, -200, 200, 0},        {GC_SETTING_WET, -200, 200, 0},
                   {GC_SETTING_DRY, -200, 200, -HUGE_VAL}, {GC_SETTING_INTERVAL, 1e-4, 1, 0.005},
                   {GC_SETTING_YAW, -360, 360, 0},         {GC_SETTING_PITCH, -360, 360, 0},
                   {GC_SETTING_ROLL, -360, 360, 0},        {GC_SETTING_IR_RATE, 1, 1e7, 0}};
    int count = 0;
    (void)state;
    for (int i = 0; i < COUNT(numbers); i++) {
        const gc_setting *s = &gc_settings_table[numbers[i].id];
        CHECK(s->least == numbers[i].least && s->most == numbers[i].most && s->other == numbers[i].other,
              "%s: %g to %g, by default %g", s->column, s->least, s->most, s->other);
    }
    for (int id = 0; id < GC_SETTINGS; id++)
        count += gc_settings_table[id].kind <= GC_KIND_MIX;
    assert_int_equal(count, COUNT(numbers));
}

static void texts_of_other_kinds_are_refused_or_become_canonical(void **state) {
    static const struct {
        int id;
        const char *text, *canonical; /* NULL: the default; "!": refused */
    } cases[] = {
        {GC_SETTING_TAIL, "all", NULL},
        {GC_SETTING_TAIL, "0", "0"},
        {GC_SETTING_TAIL, "2.50", "2.5"},
        {GC_SETTING_TAIL, "1000000", "1000000"},
        {GC_SETTING_TAIL, "1000001", "!"},
        {GC_SETTING_TAIL, "-1", "!"},
        {GC_SETTING_TAIL, "auto", "auto:-90"},
        {GC_SETTING_TAIL, "auto:-60.0", "auto:-60"},
        {GC_SETTING_TAIL, "auto:-300", "auto:-300"},
        {GC_SETTING_TAIL, "auto:nan", "!"},
        {GC_SETTING_TAIL, "auto:0", "!"},
        {GC_SETTING_TAIL, "auto:-301", "!"},
        {GC_SETTING_TAIL, "auto:", "!"},
        {GC_SETTING_TAIL, "autos", "!"},
        {GC_SETTING_TAIL, "", "!"},
        {GC_SETTING_TAIL, "nan", "!"},
        {GC_SETTING_TAIL, "inf", "!"},
        {GC_SETTING_TAIL, " 1", "!"},
        {GC_SETTING_LEVEL, "none", NULL},
        {GC_SETTING_LEVEL, "none:1", "!"},
        {GC_SETTING_LEVEL, "input", "input:0"},
        {GC_SETTING_LEVEL, "input:3", "input:3"},
        {GC_SETTING_LEVEL, "rms", "!"},
        {GC_SETTING_LEVEL, "rms:-200", "rms:-200"},
        {GC_SETTING_LEVEL, "rms:-201", "!"},
        {GC_SETTING_LEVEL, "loudness:-23.0", "loudness:-23"},
        {GC_SETTING_LEVEL, "peak:x", "!"},
        {GC_SETTING_LEVEL, "peak:nan", "!"},
        {GC_SETTING_LEVEL, "loud:-23", "!"},
        {GC_SETTING_LEVEL, "", "!"},
        {GC_SETTING_COMPRESSION, "0", "0"},
        {GC_SETTING_COMPRESSION, "8", "8"},
        {GC_SETTING_COMPRESSION, "5", "5"},
        {GC_SETTING_COMPRESSION, "9", "!"},
        {GC_SETTING_COMPRESSION, "-1", "!"},
        {GC_SETTING_COMPRESSION, "4.0", "!"},
        {GC_SETTING_FORMAT, "zip", "!"},
        {GC_SETTING_FORMAT, " wav", "!"},
        {GC_SETTING_FORMAT, "wav1", "!"},
        {GC_SETTING_ENCODING, " s16", "!"},

        {GC_SETTING_FORMAT, "", "!"},
        {GC_SETTING_FORMAT, "flac", NULL},
        {GC_SETTING_ENCODING, "s17", "!"},
        {GC_SETTING_ENCODING, "s16", NULL},
        {GC_SETTING_SERIES, "a.wav", NULL},
    };
    (void)state;
    for (int i = 0; i < COUNT(cases); i++)
        if (cases[i].canonical && strcmp(cases[i].canonical, "!") == 0)
            refuses(cases[i].id, cases[i].text);
        else
            takes(cases[i].id, cases[i].text, cases[i].canonical);
    gc_settings s = gc_settings_default();
    s.job.compression = 10;
    is_refused(&s, GC_SETTING_COMPRESSION);
    for (int i = 0; i < 3; i++) {
        s = gc_settings_default();
        s.job.tail = i == 0 ? -1 : i == 1 ? 1000001 : (double)NAN;
        is_refused(&s, GC_SETTING_TAIL);
        s = gc_settings_default();
        s.job.tail_floor = i == 0 ? 1 : i == 1 ? -301 : (double)NAN;
        is_refused(&s, GC_SETTING_TAIL);
    }
    s = gc_settings_default();
    assert_int_equal(gc_setting_set(&s, GC_SETTING_TAIL, "auto:-50"), GPUCONV_OK);
    assert_true(s.job.tail_floor == -50 && s.job.tail == HUGE_VAL);
    assert_int_equal(gc_setting_set(&s, GC_SETTING_TAIL, "0.5"), GPUCONV_OK);
    assert_true(s.job.tail_floor == 0 && s.job.tail == 0.5);
}

/* Parses one column of a recipe. @return the recipe, or NULL if the text is invalid */
static const gc_recipe *parse(gc_recipes *recipes, int column, const char *value) {
    const char *text[GC_RECIPE_COLUMNS] = {NULL};
    const gc_recipe *recipe;
    int at;
    text[column - GC_COLUMN_RECIPE] = value;
    assert_true(gc_recipes_find(recipes, text, &recipe, &at));
    assert_int_equal(at, recipe ? -1 : column);
    return recipe;
}

static void equal_settings_are_one_recipe(void **state) {
    gc_recipes recipes = {NULL};
    (void)state;
    const gc_recipe *a = parse(&recipes, GC_COLUMN_TRIM, "-60");
    assert_ptr_equal(parse(&recipes, GC_COLUMN_TRIM, "-60.0"), a);
    assert_string_equal(a->text[GC_COLUMN_TRIM - GC_COLUMN_RECIPE], "-60");
    assert_ptr_not_equal(parse(&recipes, GC_COLUMN_TRIM, "-61"), a);
    assert_ptr_not_equal(parse(&recipes, GC_COLUMN_PREDELAY, "1"), parse(&recipes, GC_COLUMN_FADE, "1"));
    assert_ptr_equal(parse(&recipes, GC_COLUMN_STRETCH, "1.0"), gc_recipe_default());
    assert_null(parse(&recipes, GC_COLUMN_STRETCH, "0"));
    assert_null(parse(&recipes, GC_COLUMN_FORMAT, "raw"));
    assert_string_equal(gc_recipe_extension(gc_recipe_default()), "wav");
    assert_string_equal(gc_recipe_extension(parse(&recipes, GC_COLUMN_FORMAT, "rf64")), "wav");
    assert_string_equal(gc_recipe_extension(parse(&recipes, GC_COLUMN_FORMAT, "flac")), "flac");
    gc_recipes_free(&recipes);
}

static void a_recipe_has_the_files_of_a_list(void **state) {
    gc_recipes recipes = {NULL};
    (void)state;
    const gc_recipe *series = parse(&recipes, GC_COLUMN_SERIES, "|a.wav||b.wav|");
    assert_int_equal(series->settings.preparation.series_count, 2);
    assert_string_equal(series->settings.preparation.series[0], "a.wav");
    assert_string_equal(series->settings.preparation.series[1], "b.wav");
    assert_string_equal(series->text[GC_COLUMN_SERIES - GC_COLUMN_RECIPE], "|a.wav||b.wav|");
    gc_recipes_free(&recipes);
}

/* A recipe without settings is a constant, made without the function. */
static void the_default_recipe_has_the_defaults_of_the_table(void **state) {
    const gc_settings made = gc_settings_default(), *kept = &gc_recipe_default()->settings;
    char text[GC_SETTING_TEXT_ROOM];
    (void)state;
    const gc_settings plain = {.preparation = gpuconv_preparation_default(), .job = gpuconv_job_default()};
    for (int id = 0; id < GC_SETTINGS; id++) {
        assert_null(gc_setting_print(&plain, (gc_setting_id)id, text));
        assert_null(gc_setting_print(&made, (gc_setting_id)id, text));
        CHECK(!gc_setting_print(kept, (gc_setting_id)id, text), "%s is %s in the default recipe",
              gc_settings_table[id].column, text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_setting_takes_its_range_and_nothing_else),
        cmocka_unit_test(ranges_and_defaults_are_those_of_the_header),
        cmocka_unit_test(texts_of_other_kinds_are_refused_or_become_canonical),
        cmocka_unit_test(equal_settings_are_one_recipe),
        cmocka_unit_test(a_recipe_has_the_files_of_a_list),
        cmocka_unit_test(the_default_recipe_has_the_defaults_of_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
