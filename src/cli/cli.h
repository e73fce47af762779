/* The subcommands of gpuconv: each takes its own argument vector, its name first, and gives the process's exit status.
 */
#ifndef GC_CLI_CLI_H
#define GC_CLI_CLI_H

enum { GC_EXIT_DONE = 0, GC_EXIT_FAILED = 1, GC_EXIT_USAGE = 2, GC_EXIT_INTERRUPTED = 130 };

int gc_cmd_convolve(int argc, const char **argv);
int gc_cmd_batch(int argc, const char **argv);
int gc_cmd_bench(int argc, const char **argv);
int gc_cmd_bench_rt(int argc, const char **argv);
int gc_cmd_play(int argc, const char **argv);
int gc_cmd_live(int argc, const char **argv);
int gc_cmd_calibrate(int argc, const char **argv);

/* Words that options take, in the order of the enumerations that they stand for. */
extern const char *const gc_backend_words[3], *const gc_algorithm_words[4], *const gc_report_words[2];

/* The position of a word among `count` names, or -1. */
int gc_choose(const char *word, const char *const *names, int count);

/* From now on the first interrupt sets the flag that is returned; the second ends the process as usual. */
const volatile int *gc_catch_signals(void);

#endif
