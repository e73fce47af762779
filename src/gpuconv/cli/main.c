/* gpuconv: the command. First words that name a subcommand choose it; a file of that name is reached as ./NAME. */
#include "cli.h"

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

int main(int argc, char **argv) {
    for (int i = 1; gc_commands[i]; i++) {
        int words = match(gc_commands[i]->name, argc, argv);
        if (words) {
            const char **rest = (const char **)argv + words;
            rest[0] = gc_commands[i]->name;
            return gc_command_run(gc_commands[i], argc - words, rest);
        }
    }
    return gc_command_run(&gc_command_convolve, argc, (const char **)argv);
}
