/* gpuconv IN IR OUT: one file through one response. */
#include "cli.h"

typedef struct options {
    char *backend, *algorithm, *report;
    int device, threads, quiet, compare, version;
    double gain;
} options;

static void note(void *context, const char *text) {
    const options *o = context;
    if (!o->quiet)
        fprintf(stderr, "gpuconv: %s\n", text);
}

static int configure(const options *o, gpuconv_config *config, gpuconv_report_format *format) {
    int backend = gc_choose("--backend", o->backend, GC_WORDS_BACKEND);
    int algorithm = backend < 0 ? -1 : gc_choose("--algorithm", o->algorithm, GC_WORDS_ALGORITHM);
    int report = algorithm < 0 ? -1 : gc_choose("--report", o->report, GC_WORDS_REPORT);
    if (report < 0)
        return GC_EXIT_USAGE;
    if (o->device < -1 || o->threads < 0 || o->threads > 1024)
        return gc_exit(GC_EXIT_USAGE, "--device is 0 or more, --threads 1 to 1024; try --help");
    if (!(o->gain >= -200 && o->gain <= 200))
        return gc_exit(GC_EXIT_USAGE, "--gain lies within -200 and 200 dB; try --help");
    *config = gpuconv_config_default();
    config->backend = (gpuconv_backend)backend;
    config->algorithm = (gpuconv_algorithm)algorithm;
    config->device = o->device;
    config->threads = o->threads;
    *format = (gpuconv_report_format)report;
    return GC_EXIT_DONE;
}

static int run(const options *o, const char *in, const char *response, const char *out) {
    gpuconv_config config;
    gpuconv_report_format format = GPUCONV_REPORT_TEXT;
    int status = configure(o, &config, &format);
    if (status)
        return status;
    gpuconv_report *report = NULL;
    if ((o->report || o->compare) && gpuconv_report_new(&report) != GPUCONV_OK)
        return gc_exit(GC_EXIT_FAILED, "out of memory");
    gpuconv_error error = {0};
    gpuconv_job job = gpuconv_job_default();
    job.input = in;
    job.response = response;
    job.output = out;
    job.gain = o->gain;
    job.compare = o->compare;
    job.note = note;
    job.context = (void *)o;
    job.cancel = gc_catch_signals();
    gpuconv_status failed = gpuconv_convolve_file(&job, &config, report, &error);
    if (!failed)
        return gc_print_report(report, format);
    gpuconv_report_free(report);
    return gc_exit(gc_exit_of(failed), "%s", error.message);
}

static options given = {.device = -1};

static int command(const char **arguments, int count) {
    if (given.version)
        return printf("gpuconv %s\n", gpuconv_version()) < 0 ? GC_EXIT_FAILED : GC_EXIT_DONE;
    if (count != 3)
        return gc_exit(GC_EXIT_USAGE, "three files are needed, IN IR OUT; try --help");
    return run(&given, arguments[0], arguments[1], arguments[2]);
}

static struct poptOption table[] = {
    {"backend", 'b', POPT_ARG_STRING, &given.backend, 0, "where to compute (default: auto)", GC_WORDS_BACKEND},
    {"algorithm", 'a', POPT_ARG_STRING, &given.algorithm, 0, "how (default: auto)", GC_WORDS_ALGORITHM},
    {"device", 'd', POPT_ARG_INT, &given.device, 0, "CUDA device number (default: the largest)", "NUMBER"},
    {"threads", 't', POPT_ARG_INT, &given.threads, 0, "CPU threads (default: one a core)", "COUNT"},
    {"gain", 'g', POPT_ARG_DOUBLE, &given.gain, 0, "gain of the response in decibels (default: 0)", "DB"},
    {"report", 'r', POPT_ARG_STRING, &given.report, 0, "print what ran and how long it took", GC_WORDS_REPORT},
    {"compare", 'c', POPT_ARG_NONE, &given.compare, 0, "report also how much slower other ways are", NULL},
    {"quiet", 'q', POPT_ARG_NONE, &given.quiet, 0, "say nothing but errors", NULL},
    {"version", 'V', POPT_ARG_NONE, &given.version, 0, "print the version", NULL},
    POPT_AUTOHELP POPT_TABLEEND};

const gc_command gc_command_convolve = {"gpuconv", "IN IR OUT",
                                        "Convolves the audio file IN with the impulse response IR into OUT.\n"
                                        "Also: gpuconv play, live, batch, bench, calibrate (--help tells more).",
                                        table, command};
