/* Prints a subcommand's help, made from its gc_command. */
#include "cli.h"
#include "terminal.h"
#include "wrap.h"

#include <string.h>
#include <unistd.h>

enum { COLUMN = 30, WIDTH = 100, LEAST = 50 };

int gc_help_wanted, gc_version_wanted;

void gc_option_name(const struct poptOption *o, char *text, size_t size) {
    int used = 0;
    bool list = (o->argInfo & POPT_ARG_MASK) == POPT_ARG_ARGV;
    if (o->shortName)
        used = snprintf(text, size, "-%c, ", o->shortName);
    const bool optional = gc_option_value_is_optional(o);
    (void)snprintf(text + used, size - (size_t)used, "--%s%s%s%s", o->longName,
                   !o->argDescrip ? ""
                   : list         ? " "
                   : optional     ? "[="
                                  : "=",
                   o->argDescrip ? o->argDescrip : "", optional ? "]" : "");
}

const char *gc_group_title(const gc_command *c, const struct poptOption *o) {
    for (const gc_option_group *g = c->groups; g && g->first; g++)
        if (strcmp(g->first, o->longName) == 0)
            return g->title;
    return NULL;
}

/* Prints a text whose lines are wrapped one by one; a line that begins with a blank stays as it is. */
static void print_lines(const char *text, int width) {
    while (*text) {
        size_t length = strcspn(text, "\n");
        if (*text == ' ')
            printf("%.*s\n", (int)length, text);
        else
            gc_print_words(stdout, text, length, (gc_wrap){0, width});
        text += length + (text[length] == '\n');
    }
}

static void print_entry(const char *name, const char *text, int indent, int width) {
    int used = printf("%*s%s", indent, "", name);
    if (used > COLUMN - 2) {
        putchar('\n');
        used = 0;
    }
    printf("%*s", COLUMN - used, "");
    gc_print_words(stdout, text, strlen(text), (gc_wrap){COLUMN, width});
}

static void print_options(const gc_command *c, int width) {
    puts(c->groups ? "" : "\nOptions:");
    bool first = true;
    for (const struct poptOption *o = c->options; o->longName; o++) {
        char name[160];
        const char *title = gc_group_title(c, o);
        if (title)
            printf("%s%s:\n", first ? "" : "\n", title);
        gc_option_name(o, name, sizeof name);
        print_entry(name, o->descrip, o->shortName ? 2 : 6, width);
        first = false;
    }
}

int gc_print_help(const gc_command *c) {
    int width = isatty(STDOUT_FILENO) ? gc_terminal_columns(STDOUT_FILENO) : WIDTH;
    width = width < LEAST ? LEAST : width;
    printf("Usage: %s%s%s [OPTION...]\n\n", c->name, *c->arguments ? " " : "", c->arguments);
    print_lines(c->about, width);
    if (c->details) {
        putchar('\n');
        print_lines(c->details, width);
    }
    print_options(c, width);
    if (c->subcommands) {
        puts("\nSubcommands (gpuconv help SUBCOMMAND prints the options of one):");
        for (const gc_command *const *other = c->subcommands + 1; *other; other++)
            print_entry((*other)->name, (*other)->about, 2, width);
    }
    if (c->examples[0].line)
        puts("\nExamples:");
    for (int i = 0; i < GC_EXAMPLES && c->examples[i].line; i++)
        printf("  %s\n      %s\n", c->examples[i].line, c->examples[i].purpose);
    return GC_EXIT_DONE;
}
