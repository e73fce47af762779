/* gpuconv IN IR OUT: convolves one audio file with one impulse response. */
#include "cli/cli.h"
#include "cli/terminal.h"
#include "commands.h"
#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/files.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/pool.h"
#include "libgpuconv/ir/read_files.h"
#include "libgpuconv/report/report.h"
#include "libtools/room/page.h"
#include "libtools/room/room_set.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct options {
    char *backend, *algorithm, *report, *raw, *plot, *html;
    int device, threads, quiet, no_clobber, force;
    double compare; /* seconds; 0: the default; negative: none */
    gc_settings settings;
    gc_meter meter;
} options;

static gc_given given_settings[GC_SETTINGS];

static void note(void *context, const char *text) {
    options *o = context;
    gc_meter_clear(&o->meter);
    if (!o->quiet)
        fprintf(stderr, "gpuconv: %s\n", text);
}

static void progress(void *context, const gpuconv_progress *p) {
    options *o = context;
    double done = (double)p->frames / p->rate, speed = p->seconds > 0 ? done / p->seconds : 0;
    gc_status_line line = {0};
    if (!gc_meter_due(&o->meter, p->seconds) && !(p->step && o->meter.terminal))
        return;
    if (p->step) {
        gc_status_part(&line, 0, "comparing: %s", p->step);
        gc_meter_print(&o->meter, &line);
        return;
    }
    if (p->total > 0) {
        double share = (double)p->frames / (double)p->total;
        if (o->meter.terminal)
            gc_meter_bar(&line, 4, share);
        gc_status_part(&line, 0, "%.0f %%, ", 100 * share);
    }
    gc_status_time(&line, 0, "", done, " of audio");
    if (p->seconds > 0)
        gc_status_part(&line, 3, ", %.3g million frames a second", (double)p->frames / p->seconds / 1e6);
    gc_status_part(&line, 2, ", %.0f times real time", speed);
    if (p->total > 0 && speed > 0)
        gc_status_time(&line, 1, ", ", (double)(p->total - p->frames) / p->rate / speed, " left");
    gc_meter_print(&o->meter, &line);
}

static gpuconv_config make_config(const options *o) {
    gpuconv_config config = gpuconv_config_default();
    config.backend = (gpuconv_backend)gc_choose("--backend", o->backend, GC_WORDS_BACKEND);
    config.algorithm = (gpuconv_algorithm)gc_choose("--algorithm", o->algorithm, gc_words_algorithm);
    config.device = o->device;
    config.threads = o->threads;
    return config;
}

/* Reads the room that a response describes, if it does. */
static int read_room(const char *response, gc_room_job *room, gpuconv_job *job) {
    gpuconv_error error = {0};
    if (!gc_is_room(response))
        return GC_EXIT_DONE;
    const gpuconv_status status = gc_room_job_read(response, job->receiver_path, room, &error);
    job->room = &room->job;
    return gc_print_failure(status, &error);
}

/* Reads the settings and fills in the job, which points to them. */
static int fill_job(options *o, const char *response, gpuconv_job *job) {
    static gc_room_job room;
    const int status = gc_given_settings_read(given_settings, &o->settings);
    if (status)
        return status;
    *job = o->settings.job;
    if (o->raw && !gc_is_raw_format(o->raw))
        return gc_print_error(
            GC_EXIT_USAGE,
            "--input-raw '%.60s': RATE,CHANNELS,ENCODING is needed, such as 48000,2,s16; RATE is 1 to "
            "10000000, CHANNELS 1 to 1024; try --help",
            o->raw);
    if (given_settings[GC_SETTING_TAIL].text && job->mode)
        return gc_print_error(GC_EXIT_USAGE, "--tail needs --mode full; try --help");
    job->raw = o->raw;
    job->plot = o->plot;
    job->compare = o->compare >= 0;
    job->compare_seconds = o->compare > 0 ? o->compare : 0;
    job->note = note;
    job->progress = o->quiet ? NULL : progress;
    job->context = o;
    job->preparation = &o->settings.preparation;
    if ((job->path || job->head || gc_is_room(response)) && (o->html || o->plot || job->compare))
        return gc_print_error(GC_EXIT_USAGE,
                              "--path, --head and a room exclude --html, --plot and --compare; try --help");
    return read_room(response, &room, job);
}

/* Checks, before the job, that a page can be made of it. */
static int check_page(const options *o, const gpuconv_preparation *p, const char *in, const char *response,
                      const char *out) {
    gpuconv_error error = {0};
    if (strcmp(in, "-") == 0 || strcmp(out, "-") == 0 || o->raw)
        return gc_print_error(GC_EXIT_USAGE, "--html needs IN and OUT as files with headers; try --help");
    if (gc_is_same_file(in, out))
        return gc_print_error(GC_EXIT_USAGE,
                              "--html plays IN and OUT, which are the same file; name another OUT; try --help");
    const char *const files[] = {in, response, out, p->speakers};
    gpuconv_status status = gc_ir_keep_files(o->html, files, 4, &error);
    if (!status)
        status = gc_ir_keep_files(o->html, p->series, p->series_count, &error);
    if (!status)
        status = gc_page_check(o->html, NULL, &error);
    return gc_print_failure(status, &error);
}

/* Writes the page of a finished job: its response as it was applied, without the mix with IN. */
static int write_page(const options *o, const gpuconv_job *job) {
    gpuconv_error error = {0};
    gpuconv_preparation preparation = *job->preparation;
    gc_figures_options figures_options = gc_figures_default();
    gc_figures figures;
    preparation.wet = 0;
    preparation.dry = -HUGE_VAL;
    gpuconv_status status =
        gc_figures_prepared(job->input, job->response, &preparation, &figures_options, &figures, &error);
    if (!status) {
        const gc_page_config page = {.path = o->html,
                                     .figures = &figures,
                                     .count = 1,
                                     .options = &figures_options,
                                     .smoothing = 1.0 / 6,
                                     .before = job->input,
                                     .after = job->output};
        status = gc_page_write(&page, &error);
        gc_figures_free(&figures);
    }
    return gc_print_failure(status, &error);
}

/* Writes the line that ends a job at a terminal: what was written, how long, where it was computed, and how fast. */
static void describe_job(const gpuconv_report *r, const gpuconv_config *config, const gc_names *name,
                         gc_status_line *line) {
    const double seconds = (double)gpuconv_report_count(r, "files", 0, "output frames") /
                           (double)gpuconv_report_count(r, "files", 0, "input rate");
    const char *backend = gpuconv_report_text(r, "convolution", 0, "backend");
    const bool on_gpu = backend ? strcmp(backend, "cuda") == 0 : config->backend == GPUCONV_BACKEND_CUDA;
    const char *device = gpuconv_report_text(r, "convolution", 0, "device");
    int threads = (int)gpuconv_report_count(r, "convolution", 0, "threads"); /* 0: moving sources have no plan */
    if (threads == 0)
        threads = config->threads ? config->threads : gc_processor_count();
    gc_status_part(line, 1, "gpuconv: ");
    gc_status_name(line, name);
    gc_status_time(line, 0, ": ", seconds, " of audio");
    if (on_gpu)
        gc_status_part(line, 3, ", computed on %s", device ? device : "the GPU");
    else if (threads == 1)
        gc_status_part(line, 3, ", computed on one core");
    else
        gc_status_part(line, 3, ", computed on %d cores", threads);
    gc_status_part(line, 4, " in %.3g s", gpuconv_report_number(r, "times", 0, "wall"));
    gc_status_part(line, 2, ", %.0f times real time", gpuconv_report_number(r, "times", 0, "times real time"));
}

static int run(options *o, const char *in, const char *response, const char *out) {
    const gpuconv_config config = make_config(o);
    gpuconv_job job;
    struct stat existing;
    int status = fill_job(o, response, &job);
    if (status)
        return status;
    bool piped = strcmp(out, "-") == 0;
    gpuconv_report *report = NULL;
    if (piped && gc_was_closed(STDOUT_FILENO))
        return gc_print_error(GC_EXIT_FAILED, "standard output: is closed; name a file for OUT");
    if (strcmp(in, "-") == 0 && gc_was_closed(STDIN_FILENO))
        return gc_print_error(GC_EXIT_FAILED, "standard input: is closed; name a file for IN");
    if (piped && (o->report || job.compare))
        return gc_print_error(GC_EXIT_USAGE,
                              "standard output cannot take both the sound (OUT is -) and a report; name a file for "
                              "OUT; try --help");
    if (o->no_clobber && o->force)
        return gc_print_error(GC_EXIT_USAGE, "--no-clobber and --force exclude each other; try --help");
    if ((o->report || job.compare) && gc_check_report() != GC_EXIT_DONE)
        return GC_EXIT_FAILED;
    o->meter = gc_meter_begin(o->quiet);
    const bool wanted = o->report || job.compare, told = o->meter.terminal && !o->quiet;
    if ((wanted || told) && gpuconv_report_new(&report) != GPUCONV_OK && wanted)
        return gc_print_error(GC_EXIT_FAILED, "out of memory");
    gpuconv_error error = {0};
    if (o->html && (status = check_page(o, job.preparation, in, response, out)) != GC_EXIT_DONE) {
        gpuconv_report_free(report);
        return status;
    }
    if (o->no_clobber && !piped && lstat(out, &existing) == 0) {
        gpuconv_report_free(report);
        return gc_print_error(GC_EXIT_FAILED, "%s: exists, and --no-clobber is given; choose another name for OUT",
                              out);
    }
    job.input = in;
    job.response = response;
    job.output = out;
    job.force = o->force != 0;
    job.cancel = gc_catch_signals();
    gpuconv_status err = gpuconv_convolve_file(&job, &config, report, &error);
    gc_meter_clear(&o->meter);
    const bool written = gc_report_has(report, "files");
    gc_status_line line = {0};
    const gc_names name = {(const char *const[]){piped ? "standard output" : out}, 1, 0};
    if (told && written)
        describe_job(report, &config, &name, &line);
    /* After an error the output may be complete: a later step, such as the drawing, failed. */
    if (wanted && (!err || (err != GPUCONV_ERROR_CANCELLED && written)))
        status = gc_print_report(report, o->report);
    else
        gpuconv_report_free(report);
    if (err)
        return gc_print_failure(err, &error);
    const int page = o->html ? write_page(o, &job) : GC_EXIT_DONE;
    if (told && written && fflush(stdout) == 0) {
        gc_meter_draw(&line);
        fputc('\n', stderr);
    }
    return status ? status : page;
}

static options given = {.device = -1, .compare = -1};

/* Returns the subcommand that a word was probably meant as: its name, mistyped, or its last word alone, as "info" of
 * "ir info". NULL: none. */
static const char *subcommand_like(const char *word) {
    gc_suggestion near = {.typed = word};
    for (int i = 1; gc_commands[i]; i++) {
        const char *name = strchr(gc_commands[i]->name, ' ') + 1, *last = strchr(name, ' ');
        if (last && strcmp(last + 1, word) == 0)
            return name;
        gc_suggestion_try(&near, name);
    }
    gc_suggestion_try(&near, "help");
    return near.best;
}

bool gc_refuse_mistyped(const char *word) {
    const char *meant = access(word, F_OK) != 0 ? subcommand_like(word) : NULL;
    if (meant)
        (void)gc_print_error(GC_EXIT_USAGE,
                             "'%.60s' is neither a file nor a subcommand; did you mean gpuconv %s? try --help", word,
                             meant);
    return meant != NULL;
}

static int command(const char **arguments, int count) {
    if (count > 0 && gc_refuse_mistyped(arguments[0]))
        return GC_EXIT_USAGE;
    if (count == 1)
        return gc_print_error(
            GC_EXIT_USAGE,
            "three files are needed, IN IR OUT, not 1, beginning with '%.60s', which is no subcommand either "
            "(batch, bench, calibrate, help, ir, live or play); try --help",
            arguments[0]);
    if (count != 3)
        return gc_print_error(GC_EXIT_USAGE, "three files are needed, IN IR OUT, not %d%s%.60s%s; try --help", count,
                              count ? ", beginning with '" : "", count ? arguments[0] : "", count ? "'" : "");
    const int status = run(&given, arguments[0], arguments[1], arguments[2]);
    gc_settings_free(&given.settings);
    return status;
}

static struct poptOption table[] = {
    // clang-format off
    GC_SETTINGS_OF_RESULT(GC_SETTING_OPTION)
    GC_SETTINGS_OF_LEVELS(GC_SETTING_OPTION)
    GC_SETTINGS_OF_SPACE(GC_SETTING_OPTION)
    GC_SETTINGS_OF_MOTION(GC_SETTING_OPTION)
    GC_SETTINGS_OF_LAYOUT(GC_SETTING_OPTION)
    GC_SETTINGS_OF_RESPONSE(GC_SETTING_OPTION)
    GC_SETTINGS_OF_FILE(GC_SETTING_OPTION)
    // clang-format on
    {"input-raw", '\0', POPT_ARG_STRING, &given.raw, 0, "read IN as samples without a header, such as 48000,2,s16",
     "RATE,CHANNELS,ENCODING"},
    {"no-clobber", '\0', POPT_ARG_NONE, &given.no_clobber, 0, "fail if OUT exists", NULL},
    {"force", '\0', POPT_ARG_NONE, &given.force, 0,
     "replace OUT even if it is IR, or if IR and OUT have changed places", NULL},
    {"backend", 'b', POPT_ARG_STRING, &given.backend, 0, "where to compute (default: auto)", GC_WORDS_BACKEND},
    {"algorithm", 'a', POPT_ARG_STRING, &given.algorithm, 0, "convolution algorithm (default: auto)",
     gc_words_algorithm},
    {"device", '\0', POPT_ARG_INT, &given.device, GC_RANGE_DEVICE,
     "number of the CUDA device (default: the largest GPU)", "NUMBER"},
    {"threads", 't', POPT_ARG_INT, &given.threads, GC_RANGE_THREADS, "CPU threads (default: one per core)", "COUNT"},
    {"report", 'r', POPT_ARG_STRING, &given.report, 0, "print the plan and its times as text or JSON", GC_WORDS_REPORT},
    {"compare", '\0', POPT_ARG_DOUBLE | POPT_ARGFLAG_OPTIONAL, &given.compare, GC_RANGE_COMPARE,
     "afterwards time this job on the GPU, on all cores, on one core, and directly on one core, in about SECONDS in all "
     "(default: 10), and report how many times as long each takes",
     "SECONDS"},
    {"plot", '\0', POPT_ARG_STRING, &given.plot, 0, "draw IN and OUT, as .svg, .png or .pdf (needs gnuplot)", "FILE"},
    {"html", '\0', POPT_ARG_STRING, &given.html, 0,
     "write a page with drawings, the figures of IR, and a player that switches between IN, OUT and IR (needs gnuplot)",
     "FILE"},
    {"quiet", 'q', POPT_ARG_NONE, &given.quiet, 0, "print only errors", NULL},
    GC_OPTIONS_END};

static const gc_option_group groups[] = {{"mode", "Output"},
                                         {"direction", "Directions, heads and moving sources"},
                                         {"ir-layout", "Impulse response, in the order of application"},
                                         {"format", "Files"},
                                         {"backend", "Computation"},
                                         {"report", "Messages"},
                                         {NULL, NULL}};

const gc_command gc_command_convolve = {
    .name = "gpuconv",
    .arguments = "IN IR OUT",
    .about = "Convolves the audio file IN with the impulse response IR and writes OUT.",
    .details =
        "IN and OUT may be -, for a pipe. IR has 1 channel, as many as IN, or 4 for a stereo IN (true stereo), or it is a "
        "matrix: a text file .txt or .matrix with lines INPUT OUTPUT FILE [CHANNEL [GAIN [DELAY [OFFSET [LENGTH]]]]], or "
        "a .conf file of jconvolver, mcfx or BruteFIR; or a SOFA file, of which --direction, --layout, --path or --head choose; "
        "or a simulated room in which sources and receivers move, such as \"room:size=5x4x3 rt60=0.5 receiver=2,2,1.5\", with "
        "the keys of gpuconv ir synth, and source for each channel that stays.\n\n"
        "An existing OUT is replaced, and it may be the same file as IN. gpuconv fails and changes nothing if OUT is a "
        "file that IR is read from, or if IR and OUT have changed places: IR has exactly the frames of IN convolved with "
        "OUT, and OUT has at most 60 s. --force replaces OUT then.",
    .options = table,
    .run = command,
    .groups = groups,
    .examples = {{"gpuconv samples/speech.flac impulses/hall.flac wet.wav", "puts speech into a hall"},
                 {"gpuconv samples/drums.flac impulses/plate.flac wet.flac --gain -3 --dry 0",
                  "adds a plate reverb to drums and lowers the result by 3 dB"}},
    .subcommands = gc_commands};
