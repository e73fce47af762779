/* gpuconv: the command. First words that name a subcommand choose it; a file of that name is reached as ./NAME. */
#include "cli/cli.h"
#include "commands.h"

#include <stdio.h>
#include <string.h>

/* How many arguments the name of a subcommand takes up; 0: another one is meant. */
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

/* Explains a word that begins the names of subcommands and is none itself: "gpuconv ir". @return the exit status; -1:
 * the word is not of that sort. */
static int explain(int argc, char **argv) {
    char words[256] = "";
    size_t used = 0, room = argc > 1 ? strlen(argv[1]) : 0;
    for (int i = 1; room && gc_commands[i]; i++) {
        const char *name = strchr(gc_commands[i]->name, ' ') + 1;
        if (strncmp(name, argv[1], room) == 0 && name[room] == ' ' && used < sizeof words)
            used += (size_t)snprintf(words + used, sizeof words - used, "%s%s", used ? "|" : "", name + room + 1);
    }
    if (!used)
        return -1;
    if (argc > 2 && (strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-?") == 0)) {
        printf("Usage: gpuconv %s %s [OPTION...]\n\ngpuconv %s SUBCOMMAND --help tells more.\n", argv[1], words,
               argv[1]);
        return GC_EXIT_DONE;
    }
    (void)gc_choose(argv[1], argc > 2 ? argv[2] : "", words);
    return GC_EXIT_USAGE;
}

static int run(int argc, char **argv) {
    for (int i = 1; gc_commands[i]; i++) {
        int words = match(gc_commands[i]->name, argc, argv);
        if (words) {
            const char **rest = (const char **)argv + words;
            rest[0] = gc_commands[i]->name;
            return gc_command_run(gc_commands[i], argc - words, rest);
        }
    }
    int status = explain(argc, argv);
    return status >= 0 ? status : gc_command_run(&gc_command_convolve, argc, (const char **)argv);
}

int main(int argc, char **argv) {
    gc_begin("gpuconv");
    return gc_end(run(argc, argv));
}
