/* The subcommands of gpuconv: each takes its own argument vector and gives the process's exit status. */
#ifndef GC_CLI_CLI_H
#define GC_CLI_CLI_H

enum { GC_EXIT_DONE = 0, GC_EXIT_FAILED = 1, GC_EXIT_USAGE = 2, GC_EXIT_INTERRUPTED = 130 };

int gc_cmd_convolve(int argc, const char **argv);

#endif
