/* gpuconv bench rt: measures real-time convolution without a sound device. */
#include "cli/cli.h"
#include "commands.h"
#include "gpuconv/bench/bench.h"
#include "libgpuconv/core/limits.h"
#include "libgpuconv/report/plot.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct options {
    char *plot, *report, *backend, *matrix, *moving;
    double length, rate, seconds;
    int channels, block, threads, search, device;
} options;

static const char words_backend[] = "cpu|cuda|both";

/* Parses INPUTSxOUTPUTS. */
static bool parse_matrix(const char *text, int *inputs, int *outputs) {
    char *end;
    long i = strtol(text, &end, 10), o = *end == 'x' ? strtol(end + 1, &end, 10) : 0;
    *inputs = (int)i;
    *outputs = (int)o;
    return !*end && i >= 1 && i <= GC_MAX_CHANNELS && o >= 1 && o <= GC_MAX_CHANNELS;
}

static int run(const options *o) {
    const int backend = gc_choose("--backend", o->backend, words_backend);
    int most = o->moving ? GC_MAX_SOURCES : backend == 1 ? 1 << 20 : 1024;
    if (o->channels > most)
        return gc_print_error(
            GC_EXIT_USAGE,
            "--channels %d: COUNT is 1 to 1024, with --backend=cuda to 1048576, with --moving to %d; try "
            "--help",
            o->channels, GC_MAX_SOURCES);
    if (o->length * o->rate < 1)
        return gc_print_error(GC_EXIT_USAGE, "--length %g: is less than one frame at %.10g Hz; try --help", o->length,
                              o->rate);
    int inputs = o->channels, outputs = 0;
    if (o->matrix && (backend == 2 || o->search || !parse_matrix(o->matrix, &inputs, &outputs)))
        return gc_print_error(
            GC_EXIT_USAGE,
            "--matrix %.40s: is INPUTSxOUTPUTS, each 1 to %d, without --backend=both and --search; try --help",
            o->matrix, GC_MAX_CHANNELS);
    if (o->moving && (backend == 2 || o->matrix))
        return gc_print_error(GC_EXIT_USAGE, "--moving needs --backend=cpu or cuda and no --matrix; try --help");
    gpuconv_error error = {0};
    gc_bench b = {0};
    if (gpuconv_report_new(&b.report) != GPUCONV_OK)
        return gc_print_error(GC_EXIT_FAILED, "out of memory");
    (void)gc_catch_signals();
    gc_bench_realtime_case test_case = {.backend = backend == 1 ? GPUCONV_BACKEND_CUDA : GPUCONV_BACKEND_CPU,
                                        .device = o->device,
                                        .channels = inputs,
                                        .outputs = outputs,
                                        .moving = o->moving,
                                        .taps = (int64_t)(o->length * o->rate),
                                        .block = o->block,
                                        .rate = o->rate,
                                        .seconds = o->seconds,
                                        .threads = o->threads,
                                        .search = o->search,
                                        .plot = o->plot};
    gpuconv_status status = o->plot ? gc_plot_check(o->plot, &error) : GPUCONV_OK;
    if (!status)
        status = backend == 2 ? gc_bench_crossover(&b, &test_case, &error) : gc_bench_realtime(&b, &test_case, &error);
    return gc_finish_bench(status, &error, b.report, "block times", o->report);
}

static options given = {.device = -1, .length = 2, .rate = 48000, .seconds = 10, .channels = 2, .block = 64};

static int command(const char **arguments, int count) {
    return count ? gc_print_error(GC_EXIT_USAGE, "bench rt takes options only, not '%.60s'; try --help", arguments[0])
                 : run(&given);
}

static struct poptOption table[] = {
    {"backend", 'b', POPT_ARG_STRING, &given.backend, 0,
     "where to compute the tail; both: CPU and GPU in turn, with more channels until the CPU is too slow (default: cpu)",
     words_backend},
    {"device", '\0', POPT_ARG_INT, &given.device, GC_RANGE_DEVICE,
     "number of the CUDA device (default: the largest GPU)", "NUMBER"},
    {"channels", '\0', POPT_ARG_INT, &given.channels, GC_RANGE_RT_CHANNELS,
     "channels, each with its own response (default: 2)", "COUNT"},
    {"matrix", '\0', POPT_ARG_STRING, &given.matrix, 0,
     "instead of --channels: a response from every input to every output, such as 64x64", "INxOUT"},
    {"moving", '\0', POPT_ARG_STRING, &given.moving, 0,
     "the channels are sources that move in circles before the responses of SET, a SOFA file, rendered by --threads or a "
     "GPU",
     "SET"},
    {"length", '\0', POPT_ARG_DOUBLE, &given.length, GC_RANGE_RT_LENGTH,
     "length of the response in seconds (default: 2)", "SECONDS"},
    {"block", '\0', POPT_ARG_INT, &given.block, GC_RANGE_RT_BLOCK, "frames per block (default: 64)", "FRAMES"},
    {"rate", '\0', POPT_ARG_DOUBLE, &given.rate, GC_RANGE_RATE, "sampling rate (default: 48000)", "HZ"},
    {"seconds", '\0', POPT_ARG_DOUBLE, &given.seconds, GC_RANGE_BENCH_SECONDS, "duration of a run (default: 10)",
     "SECONDS"},
    {"search", '\0', POPT_ARG_NONE, &given.search, 0,
     "double the channels until fewer than 99.9 % of the blocks are in time", NULL},
    {"threads", 't', POPT_ARG_INT, &given.threads, GC_RANGE_RT_THREADS,
     "CPU threads for the tail (default: 1), or for --moving (default: one per core)", "COUNT"},
    {"plot", '\0', POPT_ARG_STRING, &given.plot, 0,
     "draw the times of the blocks, as .svg, .png or .pdf (needs gnuplot)", "FILE"},
    {"report", 'r', POPT_ARG_STRING, &given.report, 0, "print the figures as text or JSON (default: text)",
     GC_WORDS_REPORT},
    GC_OPTIONS_END};

const gc_command gc_command_bench_rt = {
    .name = "gpuconv bench rt",
    .arguments = "",
    .about = "Convolves noise in real time, paced by the clock, without a sound device.",
    .options = table,
    .run = command,
    .examples = {{"gpuconv bench rt --channels 8 --length 3 --seconds 5", "runs 8 channels with 3 s of response each"},
                 {"gpuconv bench rt --search --seconds 2", "finds how many channels the machine can play"}}};
