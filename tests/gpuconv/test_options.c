/* Tests every option of every subcommand. A value that is not a number, out of range, empty, or not one of the words is
 * refused with exit status 2 and one line that names the option, the value and the accepted values. Both ends of a
 * range and every word are accepted. A letter has one meaning. */
#include "check.h"
#include "cli/cli.h"
#include "gpuconv/commands/commands.h"
#include "libgpuconv/conv/backend.h"
#include "libgpuconv/core/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct limits {
    double least, most;
} limits;

#define LIMITS(name, least, most) [GC_RANGE_##name] = {(double)(least), (double)(most)},
static const limits range[GC_RANGE_COUNT] = {GC_RANGES(LIMITS)};

static int runs;
static char message[4096];

static const struct poptOption *text_option; /* whose value run_nothing keeps; NULL: none */
static char kept[16];

static int run_nothing(const char **arguments, int count) {
    (void)arguments;
    (void)count;
    runs++;
    if (text_option)
        (void)snprintf(kept, sizeof kept, "%s", *(char **)text_option->arg ? *(char **)text_option->arg : "none");
    return GC_EXIT_DONE;
}

/* Reads a command line of the subcommand's name and up to two words; `message` receives standard error. */
static int read_words(const gc_command *c, const char *first, const char *second) {
    gc_command tried = *c;
    const char *words[] = {c->name, first, second, NULL};
    tried.run = run_nothing;
    FILE *file = tmpfile();
    CHECK(file, "no temporary file");
    (void)fflush(stderr);
    int before = dup(STDERR_FILENO);
    CHECK(before >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0, "standard error cannot be redirected");
    runs = 0;
    int status = gc_command_run(&tried, second ? 3 : 2, words);
    (void)fflush(stderr);
    CHECK(dup2(before, STDERR_FILENO) >= 0, "standard error is lost");
    close(before);
    rewind(file);
    message[fread(message, 1, sizeof message - 1, file)] = '\0';
    (void)fclose(file);
    return status;
}

static void check_refused(const gc_command *c, const struct poptOption *o, const char *value, const char *expected) {
    char joined[512], name[64], shown[61]; /* as much of the value as a message shows */
    (void)snprintf(joined, sizeof joined, "--%s=%s", o->longName, value);
    (void)snprintf(name, sizeof name, "--%s", o->longName);
    (void)snprintf(shown, sizeof shown, "%.60s", value);
    for (int apart = 0; apart < (gc_option_value_is_optional(o) ? 1 : 2); apart++) {
        int status = apart ? read_words(c, name, value) : read_words(c, joined, NULL);
        CHECK(status == GC_EXIT_USAGE && !runs, "%s %s '%s': status %d", c->name, name, value, status);
        size_t length = strlen(message);
        CHECK(length && strchr(message, '\n') == message + length - 1, "%s %s '%s': not one line: '%s'", c->name, name,
              value, message);
        CHECK(strncmp(message, "gpuconv: ", 9) == 0 && strstr(message, name) && strstr(message, shown) &&
                  strstr(message, expected),
              "%s %s '%s' says: %s", c->name, name, value, message);
    }
}

static void check_accepted(const gc_command *c, const struct poptOption *o, const char *value) {
    char joined[512];
    (void)snprintf(joined, sizeof joined, "--%s=%s", o->longName, value);
    int status = read_words(c, joined, NULL);
    CHECK(status == GC_EXIT_DONE && runs == 1, "%s %s: status %d: %s", c->name, joined, status, message);
}

static void check_number(const gc_command *c, const struct poptOption *o) {
    static const char *const wrong[] = {"",         " ",     " 1",     "1 ",   "1x",  "x",   "1,5",
                                        "--1",      "+-1",   "nan",    "-nan", "NAN", "inf", "-inf",
                                        "infinity", "1e400", "-1e400", "0x10", "1e",  "."};
    static const char *const fractions[] = {"1.5", "1e-3"};
    CHECK(o->val > GC_RANGE_NONE && o->val < GC_RANGE_COUNT, "%s --%s has no range", c->name, o->longName);
    const limits *r = &range[o->val];
    bool integer = (o->argInfo & POPT_ARG_MASK) != POPT_ARG_DOUBLE;
    for (int i = 0; i < COUNT(wrong); i++)
        check_refused(c, o, wrong[i], "number");
    for (int i = 0; integer && i < COUNT(fractions); i++)
        check_refused(c, o, fractions[i], "whole number");
    check_refused(c, o, "-99999999999999999999999999", "number");
    if (o->val != GC_RANGE_ANY_COUNT || !integer)
        check_refused(c, o, "9223372036854775807", "number");
    check_refused(c, o, "9999999999999999999999999999", "number");
    char text[64];
    (void)gc_format(text, sizeof text, "%.17g", r->least - (integer ? 1 : fabs(r->least) * 0.01 + 1e-9));
    check_refused(c, o, text, "number");
    (void)gc_format(text, sizeof text, integer ? "%.0f" : "%.17g",
                    r->most + (integer ? 1 : fabs(r->most) * 0.01 + 1e-9));
    check_refused(c, o, text, "number");
    (void)gc_format(text, sizeof text, "%.17g", r->least);
    check_accepted(c, o, text);
    if (o->val == GC_RANGE_ANY_COUNT)
        (void)snprintf(text, sizeof text, "%" PRId64, INT64_MAX);
    else
        (void)gc_format(text, sizeof text, integer ? "%.0f" : "%.17g", r->most);
    check_accepted(c, o, text);
    if (r->least <= 0 && r->most >= 0) {
        check_accepted(c, o, "-0");
        bool zero = integer || !signbit(*(double *)o->arg);
        CHECK(zero, "%s --%s=-0 is negative", c->name, o->longName);
    }
}

static void check_words(const gc_command *c, const struct poptOption *o) {
    char word[64];
    check_refused(c, o, "", " or ");
    check_refused(c, o, "nonsense", " or ");
    check_refused(c, o, o->argDescrip, " or ");
    for (const char *at = o->argDescrip; *at;) {
        size_t length = strcspn(at, "|");
        CHECK(length < sizeof word, "a long word");
        memcpy(word, at, length);
        word[length] = '\0';
        check_accepted(c, o, word);
        at += length + (at[length] == '|');
    }
}

static void every_value_of_every_option_is_checked(void **state) {
    (void)state;
    int numbers = 0, lists = 0, texts = 0;
    for (int i = 0; gc_commands[i]; i++)
        for (const struct poptOption *o = gc_commands[i]->options; o->longName; o++) {
            if (gc_option_takes_number(o)) {
                check_number(gc_commands[i], o);
                numbers++;
            } else if (gc_option_takes_words(o)) {
                check_words(gc_commands[i], o);
                lists++;
            } else if (gc_option_takes_value(o)) {
                check_refused(gc_commands[i], o, "", "is needed");
                check_accepted(gc_commands[i], o, "any text");
                texts++;
            }
            if (!gc_option_takes_number(o))
                CHECK(o->val == GC_RANGE_NONE, "%s --%s is no number and has a range", gc_commands[i]->name,
                      o->longName);
        }
    print_message("%d numbers, %d lists of words, %d other values\n", numbers, lists, texts);
    CHECK(numbers >= 50 && lists >= 15 && texts >= 20, "options are missing");
}

/* An option whose value is optional takes none of the words behind it, and is 0 without one. */
static void an_optional_value_follows_an_equals_sign(void **state) {
    (void)state;
    int found = 0;
    for (int i = 0; gc_commands[i]; i++)
        for (const struct poptOption *o = gc_commands[i]->options; o->longName; o++) {
            char name[64];
            if (!gc_option_value_is_optional(o))
                continue;
            (void)snprintf(name, sizeof name, "--%s", o->longName);
            const bool text = (o->argInfo & POPT_ARG_MASK) == POPT_ARG_STRING;
            text_option = text ? o : NULL;
            check_accepted(gc_commands[i], o, "7");
            CHECK(text ? !strcmp(kept, "7") : *(double *)o->arg == 7, "%s=7 is another value", name);
            assert_int_equal(read_words(gc_commands[i], name, "7"), GC_EXIT_DONE);
            CHECK(runs == 1 && (text ? !*kept : *(double *)o->arg == 0), "%s without a value has one", name);
            text_option = NULL;
            found++;
        }
    CHECK(found > 0, "no option has an optional value");
}

static void a_flag_takes_no_value_and_an_unknown_option_is_named(void **state) {
    (void)state;
    for (int i = 0; gc_commands[i]; i++) {
        assert_int_equal(read_words(gc_commands[i], "--nonsense", NULL), GC_EXIT_USAGE);
        CHECK(strstr(message, "--nonsense"), "%s", message);
        assert_int_equal(read_words(gc_commands[i], "--help=yes", NULL), GC_EXIT_USAGE);
        CHECK(strstr(message, "--help"), "%s", message);
        for (const struct poptOption *o = gc_commands[i]->options; o->longName; o++) {
            char name[64];
            (void)snprintf(name, sizeof name, "--%s", o->longName);
            if (!gc_option_takes_value(o) || gc_option_value_is_optional(o))
                continue;
            assert_int_equal(read_words(gc_commands[i], name, NULL), GC_EXIT_USAGE);
            CHECK(strstr(message, name), "%s", message);
        }
    }
}

/* The letters that options may have, with the same meaning in every subcommand. */
static const struct {
    char letter;
    const char *name;
} letters[] = {{'a', "algorithm"}, {'b', "backend"},   {'e', "encoding"}, {'f', "format"}, {'g', "gain"},
               {'h', "help"},      {'n', "normalize"}, {'o', "out"},      {'q', "quiet"},  {'r', "report"},
               {'t', "threads"},   {'V', "version"},   {'w', "wet"},      {'y', "dry"}};

static void a_letter_means_the_same_in_every_subcommand(void **state) {
    (void)state;
    for (int i = 0; gc_commands[i]; i++)
        for (const struct poptOption *o = gc_commands[i]->options; o->longName; o++) {
            char expected = '\0';
            for (int j = 0; j < COUNT(letters); j++)
                if (strcmp(letters[j].name, o->longName) == 0)
                    expected = letters[j].letter;
            CHECK(o->shortName == expected, "%s --%s has the letter '%c'", gc_commands[i]->name, o->longName,
                  o->shortName ? o->shortName : ' ');
        }
}

static int find_word(const char *word, const char *words) {
    return gc_word_find(word, strlen(word), words);
}

static void the_words_of_a_choice_are_the_names_of_the_library(void **state) {
    (void)state;
    for (int b = 0; b <= GC_BACKENDS; b++)
        assert_int_equal(find_word(gpuconv_backend_name((gpuconv_backend)b), GC_WORDS_BACKEND),
                         b < GC_BACKENDS ? b : -1);
    const char first[] = "auto|direct|overlap-save|partitioned|matrix";
    assert_memory_equal(gc_words_algorithm, first, strlen(first));
    for (int b = 1; b < GC_BACKENDS; b++) {
        const gc_backend *backend = gc_backend_find((gpuconv_backend)b);
        for (const gc_algorithm *const *row = backend ? backend->algorithms : NULL; row && *row; row++)
            assert_int_equal(find_word((*row)->name, gc_words_algorithm), (*row)->id);
    }
}

static char *text;
static char **list;
static int twice_runs;

static int check_arguments(const char **arguments, int count) {
    twice_runs++;
    assert_int_equal(count, 1);
    assert_string_equal(arguments[0], "file");
    assert_string_equal(text, "second");
    assert_string_equal(list[0], "one");
    assert_string_equal(list[1], "two");
    assert_null(list[2]);
    return GC_EXIT_DONE;
}

static void the_last_of_two_texts_counts_and_lists_grow(void **state) {
    (void)state;
    struct poptOption table[] = {{"text", 't', POPT_ARG_STRING, &text, 0, "text", "TEXT"},
                                 {"list", 'l', POPT_ARG_ARGV, &list, 0, "texts", "TEXT"},
                                 GC_OPTIONS_END};
    const gc_command c = {
        .name = "gpuconv twice", .arguments = "", .about = "", .options = table, .run = check_arguments};
    const char *line[] = {c.name, "--text=first", "-l", "one", "file", "--list", "two", "-t", "second", NULL};
    assert_int_equal(gc_command_run(&c, COUNT(line) - 1, line), GC_EXIT_DONE);
    assert_int_equal(twice_runs, 1);
    assert_null(text);
    assert_null((void *)list);
}

int main(void) {
    gc_fill_words();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_of_every_option_is_checked),
        cmocka_unit_test(an_optional_value_follows_an_equals_sign),
        cmocka_unit_test(a_flag_takes_no_value_and_an_unknown_option_is_named),
        cmocka_unit_test(a_letter_means_the_same_in_every_subcommand),
        cmocka_unit_test(the_words_of_a_choice_are_the_names_of_the_library),
        cmocka_unit_test(the_last_of_two_texts_counts_and_lists_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
