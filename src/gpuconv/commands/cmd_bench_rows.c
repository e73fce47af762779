/* gpuconv bench rows: measures convolutions of many rows of arrays. */
#include "cli/cli.h"
#include "commands.h"
#include "gpuconv/bench/bench.h"

typedef struct options {
    char *backend, *report;
    double most;
    int device, threads, runs, quiet;
} options;

static int run(const options *o) {
    gpuconv_error error = {0};
    gc_bench b = {.config = gpuconv_config_default(), .runs = o->runs, .note = o->quiet ? NULL : gc_print_note};
    b.config.backend = (gpuconv_backend)gc_choose("--backend", o->backend, GC_WORDS_BACKEND);
    b.config.device = o->device;
    b.config.threads = o->threads;
    if (gpuconv_report_new(&b.report) != GPUCONV_OK)
        return gc_print_error(GC_EXIT_FAILED, "out of memory");
    (void)gc_catch_signals();
    gpuconv_status status = gc_bench_peak_rates(&b, &error);
    if (!status)
        status = gc_bench_rows(&b, (int64_t)o->most, &error);
    return gc_finish_bench(status, &error, b.report, "rows", o->report);
}

static options given = {.device = -1, .runs = 11, .most = 1e6};

static int command(const char **arguments, int count) {
    return count ? gc_print_error(GC_EXIT_USAGE, "bench rows takes options only, not '%.60s'; try --help", arguments[0])
                 : run(&given);
}

static struct poptOption table[] = {
    {"backend", 'b', POPT_ARG_STRING, &given.backend, 0, "where to compute (default: on every backend)",
     GC_WORDS_BACKEND},
    {"device", '\0', POPT_ARG_INT, &given.device, GC_RANGE_DEVICE,
     "number of the CUDA device (default: the largest GPU)", "NUMBER"},
    {"threads", 't', POPT_ARG_INT, &given.threads, GC_RANGE_THREADS, "CPU threads (default: one per core)", "COUNT"},
    {"most", '\0', POPT_ARG_DOUBLE, &given.most, GC_RANGE_BENCH_MOST, "rows of at most LENGTH frames (default: all)",
     "LENGTH"},
    {"runs", '\0', POPT_ARG_INT, &given.runs, GC_RANGE_BENCH_RUNS, "timed runs of each measurement (default: 11)",
     "COUNT"},
    {"report", 'r', POPT_ARG_STRING, &given.report, 0, "print the figures as text or JSON (default: text)",
     GC_WORDS_REPORT},
    {"quiet", 'q', POPT_ARG_NONE, &given.quiet, 0, "print only errors", NULL},
    GC_OPTIONS_END};

const gc_command gc_command_bench_rows = {
    .name = "gpuconv bench rows",
    .arguments = "",
    .about = "Measures convolutions of many rows of arrays and checks every output.",
    .options = table,
    .run = command,
    .examples = {{"gpuconv bench rows --backend cpu --most 4096", "times rows of up to 4096 frames on the CPU"},
                 {"gpuconv bench rows --backend cuda --report json", "prints the figures of a GPU as JSON"}}};
