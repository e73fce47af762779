/* gpuconv: the command. A first word that names a subcommand chooses it; a file of that name is reached as ./NAME. */
#include "cli.h"

#include <string.h>

int main(int argc, char **argv) {
    static const struct {
        const char *name, *whole; /* the whole one is what --help calls it */
        int (*run)(int argc, const char **argv);
    } commands[] = {{"batch", "gpuconv batch", gc_cmd_batch},
                    {"bench", "gpuconv bench", gc_cmd_bench},
                    {"calibrate", "gpuconv calibrate", gc_cmd_calibrate},
                    {"live", "gpuconv live", gc_cmd_live},
                    {"play", "gpuconv play", gc_cmd_play}};
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            const char **rest = (const char **)argv + 1;
            rest[0] = commands[i].whole;
            return commands[i].run(argc - 1, rest);
        }
    }
    return gc_cmd_convolve(argc, (const char **)argv);
}
