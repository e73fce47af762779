/* Options and their values. */
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

static bool is_end(const struct poptOption *o) {
    return !o->longName && !o->shortName && !o->arg;
}

/* Whether a DOUBLE option counts things. */
static bool counts(int named) {
    return named == GC_RANGE_BENCH_FRAMES || named == GC_RANGE_BENCH_MOST || named == GC_RANGE_BENCH_SIGNALS ||
           named == GC_RANGE_BENCH_TAPS;
}

static int refuse_number(const struct poptOption *o, const char *value, bool whole) {
    const range *r = &ranges[o->val];
    const char *what = whole ? "a whole number" : "a number";
    if (o->val == GC_RANGE_ANY_COUNT)
        return gc_exit(GC_EXIT_USAGE, "--%s '%.60s': %s is %s, 0 or more; try --help", o->longName, value,
                       o->argDescrip, what);
    return gc_exit(GC_EXIT_USAGE, "--%s '%.60s': %s is %s from %.10g to %.10g; try --help", o->longName, value,
                   o->argDescrip, what, r->least, r->most);
}

/* Stores a number in the option's variable. */
static int set_number(const struct poptOption *o, const char *value) {
    const range *r = &ranges[o->val];
    int kind = kind_of(o);
    bool whole = kind != POPT_ARG_DOUBLE || counts(o->val), good;
    int64_t integer = 0;
    double number = 0;
    if (kind == POPT_ARG_DOUBLE) {
        good = gc_number_parse(value, &number) && (!whole || number == floor(number));
    } else {
        good = gc_integer_parse(value, &integer);
        number = (double)integer;
    }
    if (!good || !(number >= r->least && number <= r->most))
        return refuse_number(o, value, whole);
    if (kind == POPT_ARG_DOUBLE)
        *(double *)o->arg = number;
    else if (kind == POPT_ARG_INT)
        *(int *)o->arg = (int)integer;
    else
        *(long long *)o->arg = integer;
    return GC_EXIT_DONE;
}

/* Appends to a list of strings that ends with NULL; takes the value over. */
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

/* Stores a value in the option's variable, or frees it. */
static int set(const struct poptOption *o, char *value) {
    int status = GC_EXIT_DONE;
    char name[64];
    if (!value)
        return gc_exit(GC_EXIT_FAILED, "out of memory");
    (void)snprintf(name, sizeof name, "--%s", o->longName);
    if (gc_option_takes_number(o))
        status = set_number(o, value);
    else if (gc_option_takes_words(o))
        status = gc_choose(name, value, o->argDescrip) < 0 ? GC_EXIT_USAGE : GC_EXIT_DONE;
    else if (!*value)
        status = gc_exit(GC_EXIT_USAGE, "%s '': %s is needed; try --help", name, o->argDescrip);
    if (!status && kind_of(o) == POPT_ARG_STRING) {
        free(*(char **)o->arg);
        *(char **)o->arg = value;
        return status;
    }
    if (!status && kind_of(o) == POPT_ARG_ARGV) {
        if (append(o->arg, value))
            return status;
        status = gc_exit(GC_EXIT_FAILED, "out of memory");
    }
    free(value);
    return status;
}

/* Copies a table so that popt hands every value out as text, with the line's number plus one. The caller frees it. */
static struct poptOption *as_text(const struct poptOption *table) {
    size_t count = 0;
    while (!is_end(&table[count]))
        count++;
    struct poptOption *copy = calloc(count + 1, sizeof *copy); /* the end is all zeros */
    for (size_t i = 0; copy && i < count; i++) {
        copy[i] = table[i];
        if (!gc_option_takes_value(&table[i]))
            continue;
        copy[i].argInfo = POPT_ARG_STRING;
        copy[i].arg = NULL;
        copy[i].val = (int)i + 1;
    }
    return copy;
}

int gc_options_read(gc_line *line, const char *name, const struct poptOption *table, int argc, const char **argv) {
    *line = (gc_line){.table = as_text(table)};
    line->context = line->table ? poptGetContext(name, argc, argv, line->table, 0) : NULL;
    if (!line->context)
        return gc_exit(GC_EXIT_FAILED, "out of memory");
    int status = GC_EXIT_DONE, code = 0;
    while (!status && (code = poptGetNextOpt(line->context)) > 0)
        status = set(&table[code - 1], poptGetOptArg(line->context));
    if (!status && code < -1)
        return gc_exit(GC_EXIT_USAGE, "%.200s: %s; try --help", poptBadOption(line->context, 0), poptStrerror(code));
    line->argument = poptGetArgs(line->context);
    while (line->argument && line->argument[line->count])
        line->count++;
    return status;
}

void gc_options_free(gc_line *line, const struct poptOption *table) {
    if (line->context)
        poptFreeContext(line->context);
    free(line->table);
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
