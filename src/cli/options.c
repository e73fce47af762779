/* Reads options and converts their values. */
#include "options.h"

#include "cli.h"
#include "libgpuconv/core/number.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct range {
    double least, most;
} range;

#define GC_RANGE_LINE(name, least, most) [GC_RANGE_##name] = {(double)(least), (double)(most)},
static const range ranges[GC_RANGE_COUNT] = {GC_RANGES(GC_RANGE_LINE)};

static int kind_of(const struct poptOption *o) {
    return (int)(o->argInfo & POPT_ARG_MASK);
}

bool gc_option_takes_value(const struct poptOption *o) {
    return kind_of(o) != POPT_ARG_NONE && kind_of(o) != POPT_ARG_INCLUDE_TABLE;
}

bool gc_option_takes_words(const struct poptOption *o) {
    return gc_option_takes_value(o) && o->argDescrip && strchr(o->argDescrip, '|') &&
           islower((unsigned char)*o->argDescrip);
}

bool gc_option_takes_number(const struct poptOption *o) {
    return kind_of(o) == POPT_ARG_INT || kind_of(o) == POPT_ARG_LONGLONG || kind_of(o) == POPT_ARG_DOUBLE;
}

bool gc_option_value_is_optional(const struct poptOption *o) {
    return o->argInfo & POPT_ARGFLAG_OPTIONAL;
}

static bool is_end(const struct poptOption *o) {
    return !o->longName && !o->shortName && !o->arg;
}

/* Returns whether a DOUBLE option with this range takes whole numbers only. */
static bool is_count(int range_name) {
    return range_name == GC_RANGE_BENCH_FRAMES || range_name == GC_RANGE_BENCH_MOST ||
           range_name == GC_RANGE_BENCH_TAPS;
}

static int refuse_number(const struct poptOption *o, const char *value, bool whole) {
    const range *r = &ranges[o->val];
    const char *what = whole ? "a whole number" : "a number";
    if (o->val == GC_RANGE_ANY_COUNT)
        return gc_print_error(GC_EXIT_USAGE, "--%s '%.60s': %s is %s, 0 or more; try --help", o->longName, value,
                              o->argDescrip, what);
    return gc_print_error(GC_EXIT_USAGE, "--%s '%.60s': %s is %s from %.10g to %.10g; try --help", o->longName, value,
                          o->argDescrip, what, r->least, r->most);
}

/* Converts a number, checks its range and stores it in the option's variable. */
static int set_number(const struct poptOption *o, const char *value) {
    const range *r = &ranges[o->val];
    int kind = kind_of(o);
    bool whole = kind != POPT_ARG_DOUBLE || is_count(o->val), valid;
    int64_t integer = 0;
    double number = 0;
    if (kind == POPT_ARG_DOUBLE) {
        valid = gc_number_parse(value, &number) && (!whole || number == floor(number));
    } else {
        valid = gc_integer_parse(value, &integer);
        number = (double)integer;
    }
    if (!valid || !(number >= r->least && number <= r->most))
        return refuse_number(o, value, whole);
    if (kind == POPT_ARG_DOUBLE)
        *(double *)o->arg = number;
    else if (kind == POPT_ARG_INT)
        *(int *)o->arg = (int)integer;
    else
        *(long long *)o->arg = integer;
    return GC_EXIT_DONE;
}

/* Appends a value to a list of strings that ends with NULL. The list owns the value after success. */
static bool append(char ***list, char *value) {
    size_t count = 0;
    while (*list && (*list)[count])
        count++;
    char **longer = realloc((void *)*list, (count + 2) * sizeof *longer);
    if (!longer)
        return false;
    longer[count] = value;
    longer[count + 1] = NULL;
    *list = longer;
    return true;
}

/* Stores a value in the option's variable, or frees it and prints why it is refused. */
static int set_value(const struct poptOption *o, char *value) {
    int status = GC_EXIT_DONE;
    char name[64];
    if (!value)
        return gc_print_error(GC_EXIT_FAILED, "out of memory");
    (void)snprintf(name, sizeof name, "--%s", o->longName);
    if (gc_option_takes_number(o))
        status = set_number(o, value);
    else if (gc_option_takes_words(o))
        status = gc_choose(name, value, o->argDescrip) < 0 ? GC_EXIT_USAGE : GC_EXIT_DONE;
    else if (!*value)
        status = gc_print_error(GC_EXIT_USAGE, "%s '': %s is needed; try --help", name, o->argDescrip);
    if (!status && kind_of(o) == POPT_ARG_STRING) {
        free(*(char **)o->arg);
        *(char **)o->arg = value;
        return status;
    }
    if (!status && kind_of(o) == POPT_ARG_ARGV) {
        if (append(o->arg, value))
            return status;
        status = gc_print_error(GC_EXIT_FAILED, "out of memory");
    }
    free(value);
    return status;
}

static size_t count_options(const struct poptOption *table) {
    size_t count = 0;
    while (!is_end(&table[count]))
        count++;
    return count;
}

/* Makes the table that popt reads: every value is handed out as text, and `val` is the line's number plus one. The
 * caller frees the table. */
static struct poptOption *make_popt_table(const gc_command *c) {
    size_t count = count_options(c->options);
    struct poptOption *copy = calloc(count + 1, sizeof *copy); /* the end is all zeros */
    for (size_t i = 0; copy && i < count; i++) {
        copy[i] = c->options[i];
        if (!gc_option_takes_value(&copy[i]))
            continue;
        copy[i].argInfo = POPT_ARG_STRING;
        copy[i].arg = NULL;
        copy[i].val = (int)i + 1;
    }
    return copy;
}

/* Returns whether the option takes all words up to the next option, so that the shell may expand a pattern: a list of
 * strings whose argDescrip ends in "...". */
static bool takes_many(const struct poptOption *o) {
    const size_t length = o->argDescrip ? strlen(o->argDescrip) : 0;
    return kind_of(o) == POPT_ARG_ARGV && length > 3 && strcmp(o->argDescrip + length - 3, "...") == 0;
}

/* Returns the option that a word of the command line names, with or without =VALUE; NULL: it is none. */
static const struct poptOption *find_option(const gc_command *c, const char *word) {
    const size_t length = strcspn(word, "=");
    if (strncmp(word, "--", 2) != 0)
        return NULL;
    for (const struct poptOption *o = c->options; !is_end(o); o++)
        if (o->longName && strlen(o->longName) == length - 2 && strncmp(word + 2, o->longName, length - 2) == 0)
            return o;
    return NULL;
}

/* Repeats an option that takes several values before each of them, because popt knows one value per option. Appends the
 * copies of such options to `owned`. An option without its optional value is stored and left out: popt would take the
 * next word for the value. @return the number of words; -1: out of memory */
static int prepare_words(const gc_command *c, int argc, const char **argv, const char **words, char ***owned) {
    int count = 0;
    char *many = NULL; /* the option to repeat */
    bool first = true; /* the next value is preceded by the option itself */
    for (int i = 0; i < argc; i++) {
        if (argv[i][0] == '-' && argv[i][1]) {
            const struct poptOption *o = find_option(c, argv[i]);
            if (o && gc_option_value_is_optional(o) && !strchr(argv[i], '=')) {
                if (kind_of(o) == POPT_ARG_DOUBLE)
                    *(double *)o->arg = 0;
                else if (!*(char **)o->arg && !(*(char **)o->arg = strdup("")))
                    return -1;
                continue;
            }
            many = o && takes_many(o) ? strndup(argv[i], strcspn(argv[i], "=")) : NULL;
            first = !strchr(argv[i], '=');
            if (many && !append(owned, many)) {
                free(many);
                many = NULL;
            }
        } else if (many && !first) {
            words[count++] = many;
        } else {
            first = false;
        }
        words[count++] = argv[i];
    }
    return count;
}

/* ---- The word that was probably meant ---- */

enum { LETTERS = 32 };

static int least_of(int a, int b, int c) {
    const int ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* Returns the optimal string alignment distance of two words of fewer than LETTERS letters. */
static int distance_of(const char *a, size_t rows, const char *b, size_t columns) {
    int d[LETTERS][LETTERS];
    for (size_t i = 0; i <= rows; i++)
        for (size_t j = 0; j <= columns; j++) {
            if (i == 0 || j == 0) {
                d[i][j] = (int)(i + j);
                continue;
            }
            const int replaced = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            d[i][j] = least_of(replaced, d[i - 1][j] + 1, d[i][j - 1] + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < d[i][j])
                d[i][j] = d[i - 2][j - 2] + 1;
        }
    return d[rows][columns];
}

void gc_suggestion_try(gc_suggestion *s, const char *word) {
    const size_t typed = strlen(s->typed), length = strlen(word);
    if (typed == 0 || typed >= LETTERS || length >= LETTERS)
        return;
    const int allowed = typed < 6 ? 1 : (int)(typed / 3), distance = distance_of(s->typed, typed, word, length);
    if (distance <= allowed && (!s->best || distance < s->distance)) {
        s->best = word;
        s->distance = distance;
    }
}

/* ---- A command line ---- */

/* Prints why popt refuses an option, with the option that was probably meant. */
static int refuse_option(const gc_command *c, const char *word, int code) {
    char typed[64];
    (void)snprintf(typed, sizeof typed, "%.*s", (int)strcspn(word, "="), word);
    gc_suggestion near = {.typed = strncmp(typed, "--", 2) == 0 ? typed + 2 : ""};
    for (const struct poptOption *o = c->options; code == POPT_ERROR_BADOPT && !is_end(o); o++)
        if (o->longName)
            gc_suggestion_try(&near, o->longName);
    if (near.best)
        return gc_print_error(GC_EXIT_USAGE, "%.200s: %s; did you mean --%s? try --help", word, poptStrerror(code),
                              near.best);
    return gc_print_error(GC_EXIT_USAGE, "%.200s: %s; try --help", word, poptStrerror(code));
}

/* A command line after reading. */
typedef struct command_line {
    poptContext context;
    struct poptOption *table;
    const char **words;    /* the command line, with an option before each of several values */
    char **repeated;       /* the options that were added to them, owned */
    const char **argument; /* the words that are not options; NULL if there are none */
    int count;
} command_line;

/* Reads the command line into the variables of the command's table and fills *line, which the caller frees in every
 * case. If an option comes twice, the last string counts.
 * @return GC_EXIT_DONE; GC_EXIT_USAGE after a message that names the option, its value and the accepted values;
 *         GC_EXIT_FAILED if there is no memory */
static int read_line(command_line *line, const gc_command *c, int argc, const char **argv) {
    *line = (command_line){.table = make_popt_table(c), .words = calloc(2 * (size_t)argc + 1, sizeof *line->words)};
    const int count = line->words ? prepare_words(c, argc, argv, line->words, &line->repeated) : 0;
    line->context =
        line->table && line->words && count >= 0 ? poptGetContext(c->name, count, line->words, line->table, 0) : NULL;
    if (!line->context)
        return gc_print_error(GC_EXIT_FAILED, "out of memory");
    int status = GC_EXIT_DONE, code = 0;
    while (!status && (code = poptGetNextOpt(line->context)) > 0)
        status = set_value(&c->options[code - 1], poptGetOptArg(line->context));
    if (!status && code < -1)
        return refuse_option(c, poptBadOption(line->context, 0), code);
    line->argument = poptGetArgs(line->context);
    while (line->argument && line->argument[line->count])
        line->count++;
    return status;
}

/* Frees the line and the strings in the variables of the table, and sets them to NULL. */
static void free_line(command_line *line, const struct poptOption *table) {
    if (line->context)
        poptFreeContext(line->context);
    free(line->table);
    free((void *)line->words);
    for (char **s = line->repeated; s && *s; s++)
        free(*s);
    free((void *)line->repeated);
    for (const struct poptOption *o = table; !is_end(o); o++) {
        if (kind_of(o) == POPT_ARG_STRING) {
            free(*(char **)o->arg);
            *(char **)o->arg = NULL;
        } else if (kind_of(o) == POPT_ARG_ARGV) {
            char **list = *(char ***)o->arg;
            for (char **s = list; s && *s; s++)
                free(*s);
            free((void *)list);
            *(char ***)o->arg = NULL;
        }
    }
}

int gc_command_run(const gc_command *c, int argc, const char **argv) {
    command_line line;
    gc_help_wanted = gc_version_wanted = 0;
    int status = read_line(&line, c, argc, argv);
    if (!status && gc_help_wanted)
        status = gc_print_help(c);
    else if (!status && gc_version_wanted)
        status = printf("%s %s\n", gc_program, gpuconv_version()) < 0 ? GC_EXIT_FAILED : GC_EXIT_DONE;
    else if (!status)
        status = c->run(line.argument, line.count);
    free_line(&line, c->options);
    return status;
}
