/* The list of subcommands. */
#include "cli.h"

const gc_command *const gc_commands[] = {
    &gc_command_convolve,
    &gc_command_batch,
    &gc_command_bench_rt,
    &gc_command_bench,
    &gc_command_calibrate,
    &gc_command_ir_info,
    &gc_command_ir_measure,
    &gc_command_ir_synth,
    &gc_command_live,
    &gc_command_play,
    NULL,
};
