/* gpuconv IN IR OUT: one file through one response. */
#include "../gpuconv.h"
#include "cli.h"

#include <popt.h>
#include <stdio.h>
#include <stdlib.h>

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

static int usage(const char *what, const char *value, const char *allowed) {
    fprintf(stderr, "gpuconv: %s '%s': %s; try --help\n", what, value, allowed);
    return GC_EXIT_USAGE;
}

static int configure(const options *o, gpuconv_config *config, gpuconv_report_format *format) {
    int backend = gc_choose(o->backend ? o->backend : "auto", gc_backend_words, 3);
    int algorithm = gc_choose(o->algorithm ? o->algorithm : "auto", gc_algorithm_words, 4);
    int report = gc_choose(o->report ? o->report : "text", gc_report_words, 2);
    if (backend < 0)
        return usage("--backend", o->backend, "auto, cpu or cuda");
    if (algorithm < 0)
        return usage("--algorithm", o->algorithm, "auto, direct, overlap-save or partitioned");
    if (report < 0)
        return usage("--report", o->report, "text or json");
    if (o->device < -1 || o->threads < 0 || o->threads > 1024) {
        fprintf(stderr, "gpuconv: --device is 0 or more, --threads 1 to 1024; try --help\n");
        return GC_EXIT_USAGE;
    }
    if (!(o->gain >= -200 && o->gain <= 200)) {
        fprintf(stderr, "gpuconv: --gain lies within -200 and 200 dB; try --help\n");
        return GC_EXIT_USAGE;
    }
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
    gpuconv_report_format format;
    int status = configure(o, &config, &format);
    if (status)
        return status;
    gpuconv_report *report = NULL;
    if ((o->report || o->compare) && gpuconv_report_new(&report) != GPUCONV_OK) {
        fprintf(stderr, "gpuconv: out of memory\n");
        return GC_EXIT_FAILED;
    }
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
    if (failed)
        fprintf(stderr, "gpuconv: %s\n", error.message);
    else if (report && gpuconv_report_write(report, format, stdout) != GPUCONV_OK) {
        fprintf(stderr, "gpuconv: the report cannot be written\n");
        failed = GPUCONV_ERROR_FILE;
    }
    gpuconv_report_free(report);
    return !failed ? GC_EXIT_DONE : failed == GPUCONV_ERROR_CANCELLED ? GC_EXIT_INTERRUPTED : GC_EXIT_FAILED;
}

int gc_cmd_convolve(int argc, const char **argv) {
    options o = {.device = -1};
    struct poptOption table[] = {
        {"backend", 'b', POPT_ARG_STRING, &o.backend, 0, "where to compute: auto (default), cpu or cuda", "WHERE"},
        {"algorithm", 'a', POPT_ARG_STRING, &o.algorithm, 0, "how: auto (default), direct, overlap-save or partitioned",
         "HOW"},
        {"device", 'd', POPT_ARG_INT, &o.device, 0, "CUDA device number (default: the largest)", "NUMBER"},
        {"threads", 't', POPT_ARG_INT, &o.threads, 0, "CPU threads (default: one a core)", "COUNT"},
        {"gain", 'g', POPT_ARG_DOUBLE, &o.gain, 0, "gain of the response in decibels (default: 0)", "DB"},
        {"report", 'r', POPT_ARG_STRING, &o.report, 0, "print what ran and how long it took: text or json", "FORMAT"},
        {"compare", 'c', POPT_ARG_NONE, &o.compare, 0, "report also how much slower other ways are", NULL},
        {"quiet", 'q', POPT_ARG_NONE, &o.quiet, 0, "say nothing but errors", NULL},
        {"version", 'V', POPT_ARG_NONE, &o.version, 0, "print the version", NULL},
        POPT_AUTOHELP POPT_TABLEEND};
    poptContext context = poptGetContext("gpuconv", argc, argv, table, 0);
    if (!context) {
        fprintf(stderr, "gpuconv: out of memory\n");
        return GC_EXIT_FAILED;
    }
    poptSetOtherOptionHelp(context,
                           "IN IR OUT\nConvolves the audio file IN with the impulse response IR into OUT.\n"
                           "Also: gpuconv play, live, batch, bench, calibrate (--help tells more).\n\nOptions:");
    int status = GC_EXIT_DONE, bad = poptGetNextOpt(context);
    const char *paths[3] = {poptGetArg(context), poptGetArg(context), poptGetArg(context)};
    if (bad < -1) {
        fprintf(stderr, "gpuconv: %s: %s; try --help\n", poptBadOption(context, 0), poptStrerror(bad));
        status = GC_EXIT_USAGE;
    } else if (o.version) {
        printf("gpuconv %s\n", gpuconv_version());
    } else if (!paths[2] || poptPeekArg(context)) {
        fprintf(stderr, "gpuconv: three files are needed, IN IR OUT; try --help\n");
        status = GC_EXIT_USAGE;
    } else {
        status = run(&o, paths[0], paths[1], paths[2]);
    }
    poptFreeContext(context);
    free(o.backend);
    free(o.algorithm);
    free(o.report);
    return status;
}
