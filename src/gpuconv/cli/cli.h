/* The subcommands of gpuconv, and what they share. A subcommand is its table of options, from which --help, the manual
 * page and the shells' completions are made, and a function that runs once the table's variables are set. */
#ifndef GPUCONV_CLI_CLI_H
#define GPUCONV_CLI_CLI_H

#include "gpuconv.h"

#include <popt.h>

enum { GC_EXIT_DONE = 0, GC_EXIT_FAILED = 1, GC_EXIT_USAGE = 2, GC_EXIT_INTERRUPTED = 130 };

typedef struct gc_command {
    const char *name;      /* the words that call it: "gpuconv batch" */
    const char *arguments; /* "[MANIFEST] --out FOLDER" */
    const char *about;     /* what it does, lines that are wrapped already */
    /* Where a value is one of several words, its description is those words with | between them. Strings and lists of
     * strings that were set are freed afterwards. */
    struct poptOption *options;
    int (*run)(const char **arguments, int count);
} gc_command;

/* The last lines of a table. */
extern int gc_help_wanted;
#define GC_OPTIONS_END {"help", '?', POPT_ARG_NONE, &gc_help_wanted, 0, "print this help", NULL}, POPT_TABLEEND

/* The help on standard output, as wide as the terminal. */
int gc_print_help(const gc_command *command);

/* "-b, --backend=auto|cpu|cuda" */
void gc_option_name(const struct poptOption *option, char *text, size_t size);

/* All of them, the plain `gpuconv IN IR OUT` first, where a longer name stands before the shorter that begins it. */
extern const gc_command gc_command_convolve, gc_command_batch, gc_command_bench_rt, gc_command_bench,
    gc_command_calibrate, gc_command_ir_info, gc_command_ir_measure, gc_command_ir_synth, gc_command_live,
    gc_command_play;
extern const gc_command *const gc_commands[]; /* NULL at the end */

/* Sets the options by the arguments, argv[0] being the command's name, and runs it. Gives the exit status. */
int gc_command_run(const gc_command *command, int argc, const char **argv);

/* "gpuconv: TEXT" on standard error; gives back `status`. */
int gc_exit(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What an option's words are; the tables and gc_choose read the same text. */
#define GC_WORDS_BACKEND "auto|cpu|cuda"
#define GC_WORDS_ALGORITHM "auto|direct|overlap-save|partitioned"
#define GC_WORDS_REPORT "text|json"

/* The place of a word in such a text, the first one's for NULL; -1, and a line about `option`: it is none of them. */
int gc_choose(const char *option, const char *word, const char *words);

/* From now on the first interrupt sets the flag that is returned; the second ends the process as usual. */
const volatile int *gc_catch_signals(void);

/* The exit status that stands for a status of the library. */
int gc_exit_of(gpuconv_status status);

/* Writes the report, or says that it cannot, and frees it; a NULL report is none. */
int gc_print_report(gpuconv_report *report, gpuconv_report_format format);

#endif
