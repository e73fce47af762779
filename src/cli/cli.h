/* What the command lines of gpuconv and gpulab share: a command is a table of options, from which --help, the manual
 * page and the completions of shells are made, and a function that runs once the table's variables are set. */
#ifndef GC_CLI_CLI_H
#define GC_CLI_CLI_H

#include "gpuconv.h"

#include "options.h"

#include <popt.h>

enum { GC_EXIT_DONE = 0, GC_EXIT_FAILED = 1, GC_EXIT_USAGE = 2, GC_EXIT_INTERRUPTED = 130 };

typedef struct gc_command {
    const char *name;      /* the words that call it: "gpuconv batch" */
    const char *arguments; /* "[MANIFEST] --out FOLDER" */
    const char *about;     /* what it does, lines that are wrapped already */
    /* Where a value is one of several words, its description is those words with | between them; where it is a number,
     * `val` is its gc_range. Strings and lists of strings that were set are freed afterwards. */
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

/* Sets the options by the arguments, argv[0] being the command's name, and runs it. Gives the exit status. */
int gc_command_run(const gc_command *command, int argc, const char **argv);

/* The name that messages begin with: "gpuconv" unless the program sets it. */
extern const char *gc_program;

/* Prints "PROGRAM: TEXT" on standard error as one line: control characters of file names become escapes, and a text of
 * more than 1023 bytes is shortened in the middle. @return `status` */
int gc_exit(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What an option's words are; the tables and gc_choose read the same text. */
#define GC_WORDS_BACKEND "auto|cpu|cuda"
#define GC_WORDS_ALGORITHM "auto|direct|overlap-save|partitioned"
#define GC_WORDS_REPORT "text|json"

/* The place of a word in such a text, the first one's for NULL; -1, and a line about `option`: it is none of them. */
int gc_choose(const char *option, const char *word, const char *words);

/* Makes descriptors 0 to 2 safe and sets the name of messages; the first call of every main. A descriptor that is
 * closed would otherwise be the next file that is opened, so that a message or a report lands in that file. Ends the
 * process where /dev/null cannot be opened. */
void gc_begin(const char *program);

/* Whether the descriptor 0, 1 or 2 was closed when the program began; reading and writing it fails. */
bool gc_was_closed(int descriptor);

/* Closes standard output; the last call of every main.
 * @return `status`, or GC_EXIT_FAILED after a message where all was done but the output was not written. */
int gc_end(int status);

/* From now on the first interrupt sets the flag that is returned, which cancels the calling thread's work too; the
 * second ends the process as usual. */
const volatile int *gc_catch_signals(void);

/* The exit status that stands for a status of the library. */
int gc_exit_of(gpuconv_status status);

/* Checks before a job begins that standard output can take its report; else says so. @return GC_EXIT_DONE or
 * GC_EXIT_FAILED */
int gc_check_report(void);

/* Writes the report, or says that it cannot, and frees it; a NULL report is none. */
int gc_print_report(gpuconv_report *report, gpuconv_report_format format);

/* Ends a benchmark: prints the error of a status that is not OK, and the report if it holds measurements; frees the
 * report.
 * @return the exit status */
int gc_finish_bench(gpuconv_status status, const gpuconv_error *error, bool measured, gpuconv_report *report,
                    gpuconv_report_format format);

#endif
