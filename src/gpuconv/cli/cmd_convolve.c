/* gpuconv IN IR OUT: one file through one response. */
#include "cli.h"
#include "progress.h"
#include "response_options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char words_mode[] = "full|same|valid", words_dither[] = "none|tpdf";

typedef struct options {
    char *backend, *algorithm, *report, *raw, *format, *encoding, *mode, *tail, *plot, *dither;
    int device, threads, quiet, compare, version;
    double gain;
    gc_response_options response;
    gc_meter meter;
} options;

static void note(void *context, const char *text) {
    options *o = context;
    gc_meter_clear(&o->meter);
    if (!o->quiet)
        fprintf(stderr, "gpuconv: %s\n", text);
}

static void progress(void *context, const gpuconv_progress *p) {
    options *o = context;
    double done = (double)p->frames / p->rate, speed = p->seconds > 0 ? done / p->seconds : 0;
    if (!gc_meter_begin_line(&o->meter, p->seconds))
        return;
    if (p->total > 0) {
        double share = (double)p->frames / (double)p->total;
        if (o->meter.terminal)
            gc_meter_bar(share);
        fprintf(stderr, " %.0f %%, ", 100 * share);
    }
    gc_print_time(done);
    fprintf(stderr, " of audio, %.3g million frames a second, %.0f times real time",
            (double)p->frames / p->seconds / 1e6, speed);
    if (p->total > 0 && speed > 0) {
        fputs(", ", stderr);
        gc_print_time((double)(p->total - p->frames) / p->rate / speed);
        fputs(" left", stderr);
    }
    gc_meter_end_line(&o->meter);
}

static int configure(const options *o, gpuconv_config *config, gpuconv_report_format *format) {
    int backend = gc_choose("--backend", o->backend, GC_WORDS_BACKEND);
    int algorithm = backend < 0 ? -1 : gc_choose("--algorithm", o->algorithm, GC_WORDS_ALGORITHM);
    int report = algorithm < 0 ? -1 : gc_choose("--report", o->report, GC_WORDS_REPORT);
    if (report < 0)
        return GC_EXIT_USAGE;
    if (o->device < -1 || o->threads < 0 || o->threads > 1024)
        return gc_exit(GC_EXIT_USAGE, "--device is 0 or more, --threads 1 to 1024; try --help");
    *config = gpuconv_config_default();
    config->backend = (gpuconv_backend)backend;
    config->algorithm = (gpuconv_algorithm)algorithm;
    config->device = o->device;
    config->threads = o->threads;
    *format = (gpuconv_report_format)report;
    return GC_EXIT_DONE;
}

/* --tail: "2.5" seconds, "auto" down to -90 dBFS, "auto:-60" down to there. */
static bool parse_tail(const char *text, gpuconv_job *job) {
    char *end;
    if (strcmp(text, "auto") == 0) {
        job->tail_floor = -90;
        return true;
    }
    bool floor = strncmp(text, "auto:", 5) == 0;
    double value = strtod(floor ? text + 5 : text, &end);
    if (*end || end == text + 5 * floor || !isfinite(value))
        return false;
    if (floor)
        job->tail_floor = value;
    else
        job->tail = value;
    return floor ? value < 0 && value >= -300 : value >= 0;
}

static int fill_job(options *o, gpuconv_job *job) {
    int mode = gc_choose("--mode", o->mode, words_mode);
    int dither = mode < 0 ? -1 : gc_choose("--dither", o->dither, words_dither);
    if (dither < 0)
        return GC_EXIT_USAGE;
    if (!(o->gain >= -200 && o->gain <= 200))
        return gc_exit(GC_EXIT_USAGE, "--gain lies within -200 and 200 dB; try --help");
    if (o->tail && !parse_tail(o->tail, job))
        return gc_exit(GC_EXIT_USAGE, "--tail '%s': seconds, auto, or auto:DB with DB under 0; try --help", o->tail);
    if (o->tail && mode)
        return gc_exit(GC_EXIT_USAGE, "--tail goes with --mode full; try --help");
    job->mode = (gpuconv_mode)mode;
    job->dither = dither == 1;
    job->gain = o->gain;
    job->raw = o->raw;
    job->format = o->format;
    job->encoding = o->encoding;
    job->plot = o->plot;
    job->compare = o->compare;
    job->note = note;
    job->progress = o->quiet ? NULL : progress;
    job->context = o;
    return gc_response_options_apply(&o->response, &job->preparation);
}

static int run(options *o, const char *in, const char *response, const char *out) {
    gpuconv_config config;
    gpuconv_report_format format = GPUCONV_REPORT_TEXT;
    gpuconv_job job = gpuconv_job_default();
    int status = configure(o, &config, &format);
    if (!status)
        status = fill_job(o, &job);
    if (status)
        return status;
    bool piped = strcmp(out, "-") == 0;
    gpuconv_report *report = NULL;
    if (piped && (o->report || o->compare))
        return gc_exit(GC_EXIT_USAGE, "a report has no place beside a sound on standard output; try --help");
    if ((o->report || o->compare) && gpuconv_report_new(&report) != GPUCONV_OK)
        return gc_exit(GC_EXIT_FAILED, "out of memory");
    gpuconv_error error = {0};
    job.input = in;
    job.response = response;
    job.output = out;
    job.cancel = gc_catch_signals();
    o->meter = gc_meter_begin(o->quiet);
    gpuconv_status failed = gpuconv_convolve_file(&job, &config, report, &error);
    gc_meter_clear(&o->meter);
    if (!failed)
        return gc_print_report(report, format);
    gpuconv_report_free(report);
    return gc_exit(gc_exit_of(failed), "%s", error.message);
}

static options given = {.device = -1, .response = GC_RESPONSE_OPTIONS};

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
    {"gain", 'g', POPT_ARG_DOUBLE, &given.gain, 0, "of the whole result, in decibels (default: 0)", "DB"},
    GC_RESPONSE_TABLE(given.response){
        "mode", 'm', POPT_ARG_STRING, &given.mode, 0,
        "frames to keep: all, the input's count from the middle, or those that lack nothing at either end (default: full)",
        words_mode},
    {"tail", 'T', POPT_ARG_STRING, &given.tail, 0,
     "of the tail keep SECONDS, or with auto down to -90 dBFS, with auto:DB down to DB (default: all)", "SECONDS|auto"},
    {"format", 'f', POPT_ARG_STRING, &given.format, 0,
     "container of OUT, such as wav, flac or raw (default: by its extension)", "NAME"},
    {"encoding", 'e', POPT_ARG_STRING, &given.encoding, 0,
     "of OUT's samples, such as s16, s24, float or vorbis (default: as IN's)", "NAME"},
    {"dither", 'D', POPT_ARG_STRING, &given.dither, 0, "noise before rounding to integers (default: none)",
     words_dither},
    {"input-raw", 'R', POPT_ARG_STRING, &given.raw, 0, "IN has no header: such as 48000,2,s16",
     "RATE,CHANNELS,ENCODING"},
    {"plot", 'p', POPT_ARG_STRING, &given.plot, 0, "draw before and after, as .svg or .png (needs gnuplot)", "FILE"},
    {"report", 'r', POPT_ARG_STRING, &given.report, 0, "print what ran and how long it took", GC_WORDS_REPORT},
    {"compare", 'c', POPT_ARG_NONE, &given.compare, 0, "report also how much slower other ways are", NULL},
    {"quiet", 'q', POPT_ARG_NONE, &given.quiet, 0, "say nothing but errors", NULL},
    {"version", 'V', POPT_ARG_NONE, &given.version, 0, "print the version", NULL},
    GC_OPTIONS_END};

const gc_command gc_command_convolve = {
    "gpuconv", "IN IR OUT",
    "Convolves the audio file IN with the impulse response IR into OUT; IN and OUT may be -, for a pipe.\n"
    "IR is a file of 1 channel, as many as IN's, or 4 for stereo (true stereo), or any matrix: a text file .txt or\n"
    ".matrix with lines INPUT OUTPUT FILE [CHANNEL [GAIN [DELAY [OFFSET [LENGTH]]]]], or jconvolver's .conf.\n"
    "Also: gpuconv play, live, batch, ir, bench, calibrate (--help tells more).",
    table, command};
