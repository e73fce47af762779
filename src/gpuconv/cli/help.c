/* --help, made from a subcommand's table of options. */
#include "cli.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { COLUMN = 30, WIDTH = 100 };

int gc_help_wanted;

void gc_option_name(const struct poptOption *o, char *text, size_t size) {
    int used = 0;
    bool list = (o->argInfo & POPT_ARG_MASK) == POPT_ARG_ARGV;
    if (o->shortName)
        used = snprintf(text, size, "-%c, ", o->shortName);
    (void)snprintf(text + used, size - (size_t)used, "--%s%s%s", o->longName,
                   !o->argDescrip ? ""
                   : list         ? " "
                                  : "=",
                   o->argDescrip ? o->argDescrip : "");
}

/* Words from column `at` on, lines of `width` beginning at `from`. */
static void print_words(const char *words, int at, int from, int width) {
    while (*words) {
        int length = (int)strcspn(words, " ");
        if (at > from && at + 1 + length > width) {
            printf("\n%*s", from, "");
            at = from;
        } else if (at > from) {
            putchar(' ');
            at++;
        }
        printf("%.*s", length, words);
        at += length;
        words += length;
        words += strspn(words, " ");
    }
    putchar('\n');
}

int gc_print_help(const gc_command *c) {
    struct winsize window;
    int width = ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col >= 60 ? window.ws_col : WIDTH;
    printf("Usage: %s%s%s [OPTION...]\n\n%s\n\n", c->name, *c->arguments ? " " : "", c->arguments, c->about);
    for (const struct poptOption *o = c->options; o->longName; o++) {
        char name[160];
        gc_option_name(o, name, sizeof name);
        int used = printf("  %s%s", o->shortName ? "" : "    ", name);
        if (used > COLUMN - 2) {
            putchar('\n');
            used = 0;
        }
        printf("%*s", COLUMN - used, "");
        print_words(o->descrip, COLUMN, COLUMN, width);
    }
    return fflush(stdout) != 0 ? gc_exit(GC_EXIT_FAILED, "the help cannot be written") : GC_EXIT_DONE;
}
