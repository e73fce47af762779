/* gpuconv bench: measures convolutions and compares them with the peak rates of this machine. */
#include "cli/cli.h"
#include "commands.h"
#include "gpuconv/bench/bench.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/report/plot.h"
#include "libgpuconv/report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct options {
    char *backend, *algorithm, *wanted, *sweep, *plot, *roofline, *report;
    double frames, taps, most;
    int channels, runs, threads, device, peers, stream, list, quiet;
} options;

static bool is_case(const char *wanted) {
    int count;
    const gc_bench_case *cases = gc_bench_cases(&count);
    bool found = !wanted || strcmp(wanted, "all") == 0;
    for (int i = 0; i < count && !found; i++)
        found = strcmp(wanted, cases[i].name) == 0;
    return found;
}

static int configure(const options *o, gc_bench *b) {
    if (o->peers && (o->stream || o->sweep))
        return gc_print_error(GC_EXIT_USAGE, "--peers cannot be combined with --stream or --sweep; try --help");
    if ((o->stream != 0) + (o->sweep != NULL) + (o->roofline != NULL) > 1)
        return gc_print_error(GC_EXIT_USAGE, "--sweep, --stream and --roofline cannot be combined; try --help");
    if (o->plot && !o->sweep)
        return gc_print_error(GC_EXIT_USAGE, "--plot needs --sweep; try --help");
    if (!is_case(o->wanted))
        return gc_print_error(GC_EXIT_USAGE, "--case '%.60s': no such case; NAME is all, or a name that --list prints",
                              o->wanted);
    b->config = gpuconv_config_default();
    b->config.backend = (gpuconv_backend)gc_choose("--backend", o->backend, GC_WORDS_BACKEND);
    b->config.algorithm = (gpuconv_algorithm)gc_choose("--algorithm", o->algorithm, gc_words_algorithm);
    b->config.threads = o->threads;
    b->config.device = o->device;
    b->runs = o->runs;
    b->time_reference = o->peers;
    b->note = o->quiet ? NULL : gc_print_note;
    return GC_EXIT_DONE;
}

static int list_cases(void) {
    int count;
    const gc_bench_case *cases = gc_bench_cases(&count);
    for (int i = 0; i < count; i++)
        printf("%-24s %d x %lld frames, responses of %lld\n", cases[i].name, cases[i].channels,
               (long long)cases[i].frames, (long long)cases[i].taps);
    return GC_EXIT_DONE;
}

/* Measures the named case, all cases, or the case that --frames, --taps and --channels describe. */
static gpuconv_status measure_cases(const options *o, const gc_bench *b, gpuconv_error *error) {
    int count;
    const gc_bench_case *cases = gc_bench_cases(&count);
    gc_bench_case own = {"own case", (int64_t)o->frames, (int64_t)o->taps, o->channels, 0};
    gpuconv_status status = GPUCONV_OK;
    gpuconv_status (*measure)(const gc_bench *, const gc_bench_case *, gpuconv_error *) =
        o->stream ? gc_bench_stream : gc_bench_convolve;
    if (!o->wanted)
        return measure(b, &own, error);
    for (int i = 0; i < count && !status; i++)
        if (strcmp(o->wanted, "all") == 0 || strcmp(o->wanted, cases[i].name) == 0)
            status = measure(b, &cases[i], error);
    return status;
}

int gc_finish_bench(gpuconv_status status, const gpuconv_error *error, gpuconv_report *report, const char *name,
                    const char *format) {
    const int result = gc_print_failure(status, error);
    if (status && (status == GPUCONV_ERROR_CANCELLED || !gc_report_has(report, name))) {
        gpuconv_report_free(report);
        return result;
    }
    const int printed = gc_print_report(report, format);
    return printed ? printed : result;
}

static int run(const options *o) {
    gc_bench b = {0};
    gc_roofline roofline = {0};
    gpuconv_error error = {0};
    int usage = configure(o, &b);
    if (usage)
        return usage;
    if (o->list)
        return list_cases();
    if (gpuconv_report_new(&b.report) != GPUCONV_OK)
        return gc_print_error(GC_EXIT_FAILED, "out of memory");
    (void)gc_catch_signals();
    b.roofline = &roofline;
    gpuconv_status status = o->plot ? gc_plot_check(o->plot, &error) : GPUCONV_OK;
    if (!status && o->roofline)
        status = gc_plot_check(o->roofline, &error);
    if (!status)
        status = gc_bench_peak_rates(&b, &error);
    if (!status && o->sweep) {
        char title[96];
        gc_bench_axis axis = strcmp(o->sweep, "taps") == 0 ? GC_BENCH_TAPS : GC_BENCH_FRAMES;
        gc_format(title, sizeof title, "%d x %.0f frames", o->channels, axis == GC_BENCH_TAPS ? o->frames : o->taps);
        gc_bench_case base = {title, (int64_t)o->frames, (int64_t)o->taps, o->channels, 0};
        status = gc_bench_sweep(&b, &base, axis, (int64_t)o->most, o->plot, &error);
    } else if (!status) {
        status = measure_cases(o, &b, &error);
    }
    if (!status && o->roofline)
        status = gc_bench_draw_roofline(&b, o->roofline, &error);
    return gc_finish_bench(status, &error, b.report, o->sweep ? "sweep" : "convolutions", o->report);
}

static options given = {.device = -1, .runs = 11, .frames = 8388608, .taps = 512, .channels = 1, .most = 1048576};

static int command(const char **arguments, int count) {
    return count ? gc_print_error(
                       GC_EXIT_USAGE,
                       "bench takes options only, not '%.60s'; or gpuconv bench rows, gpuconv bench rt; try --help",
                       arguments[0])
                 : run(&given);
}

static struct poptOption table[] = {
    {"case", '\0', POPT_ARG_STRING, &given.wanted, 0,
     "measure a case of --list, or all (default: the size that the options below give)", "NAME"},
    {"list", '\0', POPT_ARG_NONE, &given.list, 0, "list the cases", NULL},
    {"sweep", '\0', POPT_ARG_STRING, &given.sweep, 0, "measure time against the length of the response or the input",
     "taps|frames"},
    {"stream", '\0', POPT_ARG_NONE, &given.stream, 0, "measure an engine that is fed chunks from memory", NULL},
    {"frames", '\0', POPT_ARG_DOUBLE, &given.frames, GC_RANGE_BENCH_FRAMES, "frames of the input (default: 8388608)",
     "COUNT"},
    {"taps", '\0', POPT_ARG_DOUBLE, &given.taps, GC_RANGE_BENCH_TAPS, "frames of the response (default: 512)", "COUNT"},
    {"channels", '\0', POPT_ARG_INT, &given.channels, GC_RANGE_BENCH_CHANNELS,
     "channels, each with its own response (default: 1)", "COUNT"},
    {"most", '\0', POPT_ARG_DOUBLE, &given.most, GC_RANGE_BENCH_MOST, "last length of --sweep (default: 1048576)",
     "LENGTH"},
    {"runs", '\0', POPT_ARG_INT, &given.runs, GC_RANGE_BENCH_RUNS, "timed runs of each measurement (default: 11)",
     "COUNT"},
    {"backend", 'b', POPT_ARG_STRING, &given.backend, 0, "where to compute (default: on every backend)",
     GC_WORDS_BACKEND},
    {"algorithm", 'a', POPT_ARG_STRING, &given.algorithm, 0, "convolution algorithm (default: every one)",
     gc_words_algorithm},
    {"peers", '\0', POPT_ARG_NONE, &given.peers, 0, "also measure FFTW and cuFFT, if installed", NULL},
    {"device", '\0', POPT_ARG_INT, &given.device, GC_RANGE_DEVICE,
     "number of the CUDA device (default: the largest GPU)", "NUMBER"},
    {"threads", 't', POPT_ARG_INT, &given.threads, GC_RANGE_THREADS, "CPU threads (default: one per core)", "COUNT"},
    {"report", 'r', POPT_ARG_STRING, &given.report, 0, "print the figures as text or JSON (default: text)",
     GC_WORDS_REPORT},
    {"plot", '\0', POPT_ARG_STRING, &given.plot, 0, "draw the --sweep, as .svg, .png or .pdf (needs gnuplot)", "FILE"},
    {"roofline", '\0', POPT_ARG_STRING, &given.roofline, 0,
     "draw the cases below the machine's peak rates, as .svg, .png or .pdf (needs gnuplot)", "FILE"},
    {"quiet", 'q', POPT_ARG_NONE, &given.quiet, 0, "print only errors", NULL},
    GC_OPTIONS_END};

static const gc_option_group groups[] = {
    {"case", "What to measure"}, {"frames", "Size"}, {"backend", "Computation"}, {"report", "Results"}, {NULL, NULL}};

const gc_command gc_command_bench = {
    .name = "gpuconv bench",
    .arguments = "",
    .about = "Measures convolutions on this machine and checks every output.",
    .options = table,
    .run = command,
    .groups = groups,
    .examples = {{"gpuconv bench --frames 1e6 --taps 48000 --backend cpu", "times one size on the CPU"},
                 {"gpuconv bench --sweep taps --most 65536 --report json", "times responses of up to 65536 taps"}}};
