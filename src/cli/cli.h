/* The command line of gpuconv and gpulab. A subcommand is a gc_command: a table of options, texts, and a function that
 * runs after the options have been read. --help, the manual pages and the completions are all made from gc_command. */
#ifndef GC_CLI_CLI_H
#define GC_CLI_CLI_H

#include "gpuconv.h"

#include "options.h"

#include <popt.h>
#include <stdio.h>

enum { GC_EXIT_DONE = 0, GC_EXIT_FAILED = 1, GC_EXIT_USAGE = 2, GC_EXIT_INTERRUPTED = 130 };

/* A heading in the list of options. */
typedef struct gc_option_group {
    const char *first; /* long name of the option that the heading precedes */
    const char *title;
} gc_option_group;

typedef struct gc_example {
    const char *line;    /* a command line that works as it stands */
    const char *purpose; /* what it does */
} gc_example;

enum { GC_EXAMPLES = 2 };

typedef struct gc_command {
    const char *name;      /* the words that call it: "gpuconv batch" */
    const char *arguments; /* "[MANIFEST] --out FOLDER" */
    const char *about;     /* one sentence */
    /* If the value is one of several words, argDescrip lists these words with | between them. If it is a number, `val`
     * is its gc_range. Strings and lists of strings are freed after the run. */
    struct poptOption *options;
    int (*run)(const char **arguments, int count);
    /* The fields below may be NULL. */
    const char *details;                         /* paragraphs, each one line, with a blank line between them */
    const gc_option_group *groups;               /* ends with a NULL name */
    gc_example examples[GC_EXAMPLES];            /* the end of the help */
    const struct gc_command *const *subcommands; /* listed in the help, from the second on; ends with NULL */
} gc_command;

/* Options of every subcommand, the last lines of a table. The line without a long name makes -? an alias of -h; it must
 * be the last one because loops over the documented options end there. */
extern int gc_help_wanted, gc_version_wanted;
#define GC_OPTIONS_END                                                                                                 \
    {"help", 'h', POPT_ARG_NONE, &gc_help_wanted, 0, "print this help", NULL},                                         \
        {"version", 'V', POPT_ARG_NONE, &gc_version_wanted, 0, "print the version", NULL},                             \
        {NULL, '?', POPT_ARG_NONE | POPT_ARGFLAG_DOC_HIDDEN, &gc_help_wanted, 0, NULL, NULL}, POPT_TABLEEND

/* Prints the help on standard output, as wide as the terminal. @return GC_EXIT_DONE */
int gc_print_help(const gc_command *command);

/* Returns the heading that precedes the option, or NULL. */
const char *gc_group_title(const gc_command *command, const struct poptOption *option);

/* Writes an option with its value: "-b, --backend=auto|cpu|cuda". */
void gc_option_name(const struct poptOption *option, char *text, size_t size);

/* Reads the options in argv (argv[0] is the command's name) and runs the command. @return the exit status */
int gc_command_run(const gc_command *command, int argc, const char **argv);

/* The program's name at the beginning of each message; "gpuconv" by default. */
extern const char *gc_program;

/* Prints "PROGRAM: TEXT" on standard error as one line. Control characters in file names are escaped; a text of more
 * than 1023 bytes is shortened in the middle. @return `status` */
int gc_print_error(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints a note in the same way. */
void gc_print_note(const char *text);

/* The words that an option accepts, for argDescrip and gc_choose. */
#define GC_WORDS_BACKEND "auto|cpu|cuda"
#define GC_WORDS_REPORT "text|json"

/* Returns the index of a word in a list such as GC_WORDS_BACKEND; NULL stands for the first. Prints a message about
 * `option` and returns -1 if the word is not there, which a command does not see of its options: their words are
 * checked when they are read. */
int gc_choose(const char *option, const char *word, const char *words);

/* Opens /dev/null for each of the descriptors 0 to 2 that is closed and sets gc_program; the first call of every main.
 * Without it the next file that is opened would get a closed descriptor's number, and messages or a report would be
 * written into that file. Ends the process if /dev/null cannot be opened. */
void gc_start_program(const char *program);

/* Returns whether the descriptor 0, 1 or 2 was closed when the program began. Reading and writing it fails. */
bool gc_was_closed(int descriptor);

/* Closes standard output; the last call of every main.
 * @return `status`, or GC_EXIT_FAILED after a message if `status` is GC_EXIT_DONE but the output was not written */
int gc_end_program(int status);

/* Installs handlers for SIGINT, SIGTERM and SIGHUP. The first signal sets the flag that is returned, which also cancels
 * library calls of the calling thread (gpuconv_cancel_set); the second signal ends the process. */
const volatile int *gc_catch_signals(void);

/* Returns the exit status for a status of the library. */
int gc_exit_of(gpuconv_status status);

/* Prints the message of a failure. @return the exit status, GC_EXIT_DONE if `status` is OK */
int gc_print_failure(gpuconv_status status, const gpuconv_error *error);

/* Prints the message of a failure that the user's arguments decide. @return the exit status, GC_EXIT_USAGE for
 * ARGUMENT */
int gc_print_refusal(gpuconv_status status, const gpuconv_error *error);

/* Checks that standard output can take a report, before a job begins. @return GC_EXIT_DONE, or GC_EXIT_FAILED after a
 * message */
int gc_check_report(void);

/* Writes the report to standard output and frees it. `report` may be NULL. `format`: of GC_WORDS_REPORT.
 * @return GC_EXIT_DONE, or GC_EXIT_FAILED after a message */
int gc_print_report(gpuconv_report *report, const char *format);

/* ---- Manual pages, made from the tables that --help prints. A file that cannot be written ends the process ---- */

/* Creates a file in the folder. */
FILE *gc_manual_open(const char *folder, const char *name);

/* Closes a file, and checks that it was written. */
void gc_manual_close(FILE *file);

/* Writes the page of a command into the folder. `all` ends with NULL; the page refers to the other ones. */
void gc_manual_page_write(const char *folder, const gc_command *command, const gc_command *const *all);

#endif
