/* What the subcommands share: reading options, words, complaints, and how they are interrupted. */
#include "cli.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static volatile int interrupted;

int gc_exit(int status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("gpuconv: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return status;
}

int gc_exit_of(gpuconv_status status) {
    return !status ? GC_EXIT_DONE : status == GPUCONV_ERROR_CANCELLED ? GC_EXIT_INTERRUPTED : GC_EXIT_FAILED;
}

int gc_print_report(gpuconv_report *report, gpuconv_report_format format) {
    gpuconv_status status = report ? gpuconv_report_write(report, format, stdout) : GPUCONV_OK;
    gpuconv_report_free(report);
    return status ? gc_exit(GC_EXIT_FAILED, "the report cannot be written") : GC_EXIT_DONE;
}

int gc_choose(const char *option, const char *word, const char *words) {
    if (!word)
        return 0;
    size_t length = strlen(word);
    const char *at = words;
    for (int i = 0; at; i++) {
        size_t next = strcspn(at, "|");
        if (length == next && strncmp(at, word, next) == 0)
            return i;
        at = at[next] ? at + next + 1 : NULL;
    }
    char list[256];
    size_t n = 0;
    for (at = words; *at && n < sizeof list - 8; at++) {
        const char *put = *at != '|' ? (char[2]){*at, '\0'} : strchr(at + 1, '|') ? ", " : " or ";
        n += (size_t)snprintf(list + n, sizeof list - n, "%s", put);
    }
    return gc_exit(-1, "%s '%s': %s; try --help", option, word, list);
}

static void interrupt(int signal_number) {
    (void)signal_number;
    interrupted = 1;
}

const volatile int *gc_catch_signals(void) {
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND}, before;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) /* nohup keeps its word */
        sigaction(SIGHUP, &action, NULL);
    /* A file size limit then shows as an error of the write, like a full disk. */
    signal(SIGXFSZ, SIG_IGN);
    return &interrupted;
}

/* What popt allocated for the variables of a table. */
static void free_strings(const struct poptOption *options) {
    for (const struct poptOption *o = options; o->longName; o++) {
        int kind = (int)(o->argInfo & POPT_ARG_MASK);
        if (kind == POPT_ARG_STRING) {
            free(*(char **)o->arg);
            *(char **)o->arg = NULL;
        } else if (kind == POPT_ARG_ARGV) {
            char **list = *(char ***)o->arg;
            for (char **s = list; s && *s; s++)
                free(*s);
            free((void *)list);
            *(char ***)o->arg = NULL;
        }
    }
}

int gc_command_run(const gc_command *c, int argc, const char **argv) {
    poptContext context = poptGetContext(c->name, argc, argv, c->options, 0);
    if (!context)
        return gc_exit(GC_EXIT_FAILED, "out of memory");
    int status, bad = poptGetNextOpt(context), count = 0;
    const char **arguments = poptGetArgs(context);
    while (arguments && arguments[count])
        count++;
    if (bad < -1)
        status = gc_exit(GC_EXIT_USAGE, "%s: %s; try --help", poptBadOption(context, 0), poptStrerror(bad));
    else if (gc_help_wanted)
        status = gc_print_help(c);
    else
        status = c->run(arguments, count);
    poptFreeContext(context);
    free_strings(c->options);
    return status;
}
