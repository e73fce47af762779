/* The list of subcommands. */
#include "commands.h"

#include "cli/cli.h"
#include <stdio.h>
#include <string.h>

const gc_command *const gc_commands[] = {
    &gc_command_convolve,   &gc_command_batch,
    &gc_command_bench_rows, &gc_command_bench_rt,
    &gc_command_bench,      &gc_command_calibrate,
    &gc_command_ir_clean,   &gc_command_ir_correct,
    &gc_command_ir_info,    &gc_command_ir_measure,
    &gc_command_ir_synth,   &gc_command_live,
    &gc_command_play,       NULL,
};

char gc_words_algorithm[256];

void gc_fill_words(void) {
    size_t used = 0;
    const char *name;
    for (int id = 0; used < sizeof gc_words_algorithm &&
                     strcmp(name = gpuconv_algorithm_name((gpuconv_algorithm)id), "unknown") != 0;
         id++)
        used +=
            (size_t)snprintf(gc_words_algorithm + used, sizeof gc_words_algorithm - used, "%s%s", id ? "|" : "", name);
}
