/* Whole processes side by side: gpuconv and the tools that are installed, from file to file. */
#ifndef GPUCONV_BENCH_PROCESSES_H
#define GPUCONV_BENCH_PROCESSES_H

#include "bench.h"

/* The case as float WAVs in a folder of its own, through `program` (this command's path) and every tool of these that
 * is found: ffmpeg's afir, SoX's fir, fconvolver, SciPy's oaconvolve. Tools take turns, runs times; each output is held
 * against the convolution, at the level that fits it best. Rows of "processes": wall and processor time, memory, error
 * and level. A tool that fails or is wrong is told and stays; gpuconv's own failure is one: STATE. FILE, MEMORY,
 * CANCELLED. */
gpuconv_status gc_bench_processes(const gc_bench *bench, const gc_bench_case *what, const char *program,
                                  gpuconv_error *error);

#endif
