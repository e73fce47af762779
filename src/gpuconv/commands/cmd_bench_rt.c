/* gpuconv bench rt: what this machine plays through without a gap. */
#include "cli/cli.h"
#include "commands.h"
#include "gpuconv/bench/realtime.h"
#include "libgpuconv/report/plot.h"
#include "libgpuconv/report/report.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct options {
    char *plot, *report, *backend;
    double length, rate, seconds;
    int channels, block, threads, search, device;
} options;

static const char words_backend[] = "cpu|cuda|both";

static int run(const options *o) {
    int format = gc_choose("--report", o->report, GC_WORDS_REPORT);
    if (format < 0)
        return GC_EXIT_USAGE;
    int backend = gc_choose("--backend", o->backend, words_backend);
    if (backend < 0)
        return GC_EXIT_USAGE;
    int most = backend == 1 ? 1 << 20 : 1024;
    if (o->channels > most)
        return gc_exit(GC_EXIT_USAGE, "--channels %d: COUNT is 1 to 1024, with --backend=cuda to 1048576; try --help",
                       o->channels);
    if (o->length * o->rate < 1)
        return gc_exit(GC_EXIT_USAGE, "--length %g: less than one frame at %.10g Hz; try --help", o->length, o->rate);
    gpuconv_error error = {0};
    gc_bench b = {0};
    if (gpuconv_report_new(&b.report) != GPUCONV_OK)
        return gc_exit(GC_EXIT_FAILED, "out of memory");
    b.cancel = gc_catch_signals();
    gc_bench_realtime_case what = {.backend = backend == 1 ? GPUCONV_BACKEND_CUDA : GPUCONV_BACKEND_CPU,
                                   .device = o->device,
                                   .channels = o->channels,
                                   .taps = (int64_t)(o->length * o->rate),
                                   .block = o->block,
                                   .rate = o->rate,
                                   .seconds = o->seconds,
                                   .threads = o->threads,
                                   .search = o->search,
                                   .plot = o->plot};
    gpuconv_status status = o->plot ? gc_plot_check(o->plot, &error) : GPUCONV_OK;
    if (!status)
        status = backend == 2 ? gc_bench_crossover(&b, &what, &error) : gc_bench_realtime(&b, &what, &error);
    bool measured = !status || (status != GPUCONV_ERROR_CANCELLED && gc_report_has(b.report, "block times"));
    return gc_finish_bench(status, &error, measured, b.report, (gpuconv_report_format)format);
}

static options given = {.device = -1, .length = 2, .rate = 48000, .seconds = 10, .channels = 2, .block = 64};

static int command(const char **arguments, int count) {
    return count ? gc_exit(GC_EXIT_USAGE, "bench rt takes options only, not '%.60s'; try --help", arguments[0])
                 : run(&given);
}

static struct poptOption table[] = {
    {"backend", 'b', POPT_ARG_STRING, &given.backend, 0,
     "where to compute (default: cpu); both: in turn, until the CPU no longer keeps up", words_backend},
    {"device", 'd', POPT_ARG_INT, &given.device, GC_RANGE_DEVICE, "CUDA device number (default: the largest)",
     "NUMBER"},
    {"channels", 'c', POPT_ARG_INT, &given.channels, GC_RANGE_RT_CHANNELS,
     "channels, each with its response (default: 2)", "COUNT"},
    {"length", 'l', POPT_ARG_DOUBLE, &given.length, GC_RANGE_RT_LENGTH, "seconds of a response (default: 2)",
     "SECONDS"},
    {"block", 'B', POPT_ARG_INT, &given.block, GC_RANGE_RT_BLOCK, "frames of a block (default: 64)", "FRAMES"},
    {"rate", 'r', POPT_ARG_DOUBLE, &given.rate, GC_RANGE_RATE, "frames a second (default: 48000)", "HZ"},
    {"seconds", 's', POPT_ARG_DOUBLE, &given.seconds, GC_RANGE_BENCH_SECONDS, "how long (default: 10)", "SECONDS"},
    {"search", 'S', POPT_ARG_NONE, &given.search, 0, "double the channels as long as the machine keeps up", NULL},
    {"threads", 't', POPT_ARG_INT, &given.threads, GC_RANGE_RT_THREADS, "for the tail (default: 1)", "COUNT"},
    {"plot", 'p', POPT_ARG_STRING, &given.plot, 0, "draw how long blocks took, as .svg or .png (needs gnuplot)",
     "FILE"},
    {"report", 'R', POPT_ARG_STRING, &given.report, 0, "form of the figures (default: text)", GC_WORDS_REPORT},
    GC_OPTIONS_END};

const gc_command gc_command_bench_rt = {"gpuconv bench rt", "",
                                        "Plays noise through responses, paced by the clock, without a sound device.",
                                        table, command};
