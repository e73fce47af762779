/* Compares gpuconv with other installed programs, as whole processes from file to file. */
#ifndef GPUCONV_BENCH_PROCESSES_H
#define GPUCONV_BENCH_PROCESSES_H

#include "bench.h"

/* Writes the case as float WAV files to a temporary folder and runs `program` (the path of this command) and each of
 * these tools that is installed: ffmpeg's afir, SoX's fir, fconvolver, SciPy's oaconvolve. The tools run in turn,
 * `runs` times each, after one warm-up run whose output is compared with the convolution at the best-fitting level.
 * Reports rows of "processes": wall and processor time, error, level and missing frames. A tool that fails or is wrong
 * causes a note.
 * @return STATE if gpuconv itself fails or is wrong; FILE, MEMORY, CANCELLED */
gpuconv_status gc_bench_processes(const gc_bench *bench, const gc_bench_case *what, const char *program,
                                  gpuconv_error *error);

#endif
