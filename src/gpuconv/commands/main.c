/* The main program of gpuconv: chooses the subcommand by the first words of the command line. A file whose name is a
 * subcommand is reached as ./NAME. */
#include "cli/cli.h"
#include "commands.h"
#include "libgpuconv/core/os.h"

#include <stdio.h>
#include <string.h>

/* Returns how many words of the command line are the subcommand's name; 0 if it is another subcommand. */
static int match(const char *name, int argc, char **argv) {
    int words = 0;
    for (const char *at = strchr(name, ' '); at; at = strchr(at + 1, ' ')) {
        const char *word = at + 1;
        size_t length = strcspn(word, " ");
        if (++words >= argc || strlen(argv[words]) != length || strncmp(argv[words], word, length) != 0)
            return 0;
    }
    return words;
}

/* Returns the subcommand that the command line begins with, and in *words the length of its name; NULL if there is
 * none. */
static const gc_command *find_command(int argc, char **argv, int *words) {
    for (int i = 1; gc_commands[i]; i++) {
        *words = match(gc_commands[i]->name, argc, argv);
        if (*words)
            return gc_commands[i];
    }
    return NULL;
}

static bool is_help(const char *word) {
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "-?") == 0;
}

/* Handles a word that begins the names of several subcommands and is not a subcommand itself, such as "ir". Prints the
 * list of these subcommands as help or in a message. @return the exit status; -1 if the word is not of this kind */
static int explain_group(int argc, char **argv, bool help) {
    char words[256] = "";
    size_t used = 0, length = argc > 1 ? strlen(argv[1]) : 0;
    help |= argc > 2 && is_help(argv[2]);
    for (int i = 1; length && gc_commands[i]; i++) {
        const char *name = strchr(gc_commands[i]->name, ' ') + 1;
        if (strncmp(name, argv[1], length) == 0 && name[length] == ' ' && used < sizeof words)
            used += (size_t)snprintf(words + used, sizeof words - used, "%s%s", used ? "|" : "", name + length + 1);
    }
    if (!used)
        return -1;
    if (!help) {
        char name[64];
        (void)snprintf(name, sizeof name, "subcommand of %s", argv[1]);
        (void)gc_choose(name, argc > 2 ? argv[2] : "", words);
        return GC_EXIT_USAGE;
    }
    printf("Usage: gpuconv %s %s [OPTION...]\n\n", argv[1], words);
    for (int i = 1; gc_commands[i]; i++) {
        const char *name = strchr(gc_commands[i]->name, ' ') + 1;
        if (strncmp(name, argv[1], length) == 0 && name[length] == ' ')
            printf("  %-26s  %s\n", gc_commands[i]->name, gc_commands[i]->about);
    }
    printf("\ngpuconv help %s SUBCOMMAND prints the options of one.\n", argv[1]);
    return GC_EXIT_DONE;
}

/* Runs "gpuconv help [SUBCOMMAND]"; argv begins with "help". */
static int print_help_of(int argc, char **argv) {
    int words = 0;
    if (argc < 2 || is_help(argv[1]))
        return gc_print_help(&gc_command_convolve);
    const gc_command *command = find_command(argc, argv, &words);
    if (command && words == argc - 1)
        return gc_print_help(command);
    int status = command ? -1 : explain_group(argc, argv, argc == 2);
    if (status >= 0)
        return status;
    return gc_print_error(
        GC_EXIT_USAGE,
        "help '%.60s': no such subcommand; there are batch, bench, bench rows, bench rt, calibrate, ir info, "
        "ir measure, ir synth, live and play; try --help",
        argv[command ? words + 1 : 1]);
}

static int run(int argc, char **argv) {
    int words = 0;
    if (argc > 1 && strcmp(argv[1], "help") == 0)
        return print_help_of(argc - 1, argv + 1);
    const gc_command *command = find_command(argc, argv, &words);
    if (command) {
        const char **rest = (const char **)argv + words;
        rest[0] = command->name;
        return gc_command_run(command, argc - words, rest);
    }
    int status = explain_group(argc, argv, false);
    if (status < 0 && argc > 1 && argv[1][0] != '-' && gc_refuse_mistyped(argv[1])) /* before its options are read */
        return GC_EXIT_USAGE;
    return status >= 0 ? status : gc_command_run(&gc_command_convolve, argc, (const char **)argv);
}

int main(int argc, char **argv) {
    gc_os_begin_program(&argc, &argv);
    gc_start_program("gpuconv");
    gc_fill_words();
    return gc_end_program(run(argc, argv));
}
