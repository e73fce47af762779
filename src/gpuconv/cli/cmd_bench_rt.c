/* gpuconv bench rt: what this machine plays through without a gap. */
#include "cli.h"
#include "gpuconv/bench/realtime.h"

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
    if (o->channels < 1 || o->channels > most || o->block < 1 || o->block > 65536 || o->threads < 0 || o->threads > 64)
        return gc_exit(
            GC_EXIT_USAGE,
            "--channels are 1 to 1024, on a GPU to 1048576, --block 1 to 65536, --threads 1 to 64; try --help");
    if (!(o->rate >= 1000 && o->rate <= 1e6 && o->length * o->rate >= 1 && o->length <= 600 && o->seconds >= 0.1 &&
          o->seconds <= 86400))
        return gc_exit(GC_EXIT_USAGE,
                       "--rate is 1000 to 1000000, --length up to 600, --seconds 0.1 to 86400; try --help");
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
    gpuconv_status status = backend == 2 ? gc_bench_crossover(&b, &what, &error) : gc_bench_realtime(&b, &what, &error);
    int result = !status ? GC_EXIT_DONE : status == GPUCONV_ERROR_CANCELLED ? GC_EXIT_INTERRUPTED : GC_EXIT_FAILED;
    if (status)
        fprintf(stderr, "gpuconv: %s\n", error.message);
    else if (gpuconv_report_write(b.report, (gpuconv_report_format)format, stdout) != GPUCONV_OK)
        result = gc_exit(GC_EXIT_FAILED, "the report cannot be written");
    gpuconv_report_free(b.report);
    return result;
}

static options given = {.device = -1, .length = 2, .rate = 48000, .seconds = 10, .channels = 2, .block = 64};

static int command(const char **arguments, int count) {
    (void)arguments;
    return count ? gc_exit(GC_EXIT_USAGE, "bench rt takes options only; try --help") : run(&given);
}

static struct poptOption table[] = {
    {"backend", 'b', POPT_ARG_STRING, &given.backend, 0,
     "where to compute (default: cpu); both: in turn, until the CPU no longer keeps up", words_backend},
    {"device", 'd', POPT_ARG_INT, &given.device, 0, "CUDA device number (default: the largest)", "NUMBER"},
    {"channels", 'c', POPT_ARG_INT, &given.channels, 0, "channels, each with its response (default: 2)", "COUNT"},
    {"length", 'l', POPT_ARG_DOUBLE, &given.length, 0, "seconds of a response (default: 2)", "SECONDS"},
    {"block", 'B', POPT_ARG_INT, &given.block, 0, "frames of a block (default: 64)", "FRAMES"},
    {"rate", 'r', POPT_ARG_DOUBLE, &given.rate, 0, "frames a second (default: 48000)", "HZ"},
    {"seconds", 's', POPT_ARG_DOUBLE, &given.seconds, 0, "how long (default: 10)", "SECONDS"},
    {"search", 'S', POPT_ARG_NONE, &given.search, 0, "double the channels as long as the machine keeps up", NULL},
    {"threads", 't', POPT_ARG_INT, &given.threads, 0, "for the tail (default: 1)", "COUNT"},
    {"plot", 'p', POPT_ARG_STRING, &given.plot, 0, "draw how long blocks took, as .svg or .png (needs gnuplot)",
     "FILE"},
    {"report", 'R', POPT_ARG_STRING, &given.report, 0, "form of the figures (default: text)", GC_WORDS_REPORT},
    GC_OPTIONS_END};

const gc_command gc_command_bench_rt = {"gpuconv bench rt", "",
                                        "Plays noise through responses, paced by the clock, without a sound device.",
                                        table, command};
