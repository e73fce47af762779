/* gpuconv ir info: figures, drawings and a page of one or several impulse responses. */
#include "cli/cli.h"
#include "commands.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/ir/read_files.h"
#include "libgpuconv/ir/sofa.h"
#include "libgpuconv/report/report.h"
#include "libtools/room/charts.h"
#include "libtools/room/describe.h"
#include "libtools/room/page.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char words_bands[] = "octave|third-octave|none";

static struct {
    char *report, *plot, *plot_bands, *html, *sound, *bands, *reference, *noise, *raw;
    double distance, speech, smoothing, file_rate;
    int csv, lateral;
} info = {.distance = 10, .speech = (double)NAN, .smoothing = 6};

/* Parses the levels of --noise-levels: seven numbers, or one for every octave. */
static bool parse_levels(const char *text, gc_speech_levels *levels) {
    const int count = gc_numbers_parse(text, ",", levels->noise, GC_SPEECH_BANDS);
    for (int k = 0; k < count; k++)
        if (!(levels->noise[k] >= -100 && levels->noise[k] <= 200))
            return false;
    for (int k = 1; k < GC_SPEECH_BANDS && count == 1; k++)
        levels->noise[k] = levels->noise[0];
    levels->has_noise = true;
    return count == 1 || count == GC_SPEECH_BANDS;
}

static int fill_options(gc_figures_options *o) {
    int bands = gc_choose("--bands", info.bands, words_bands);
    *o = gc_figures_default();
    o->per_octave = bands == 0 ? 1 : bands == 1 ? 3 : 0;
    o->levels.speech = info.speech;
    o->lateral = info.lateral;
    o->file_rate = info.file_rate;
    o->raw = info.raw;
    o->reference_distance = info.distance;
    if (info.reference && !gc_number_parse(info.reference, &o->reference_level))
        o->reference = info.reference;
    if (info.noise && !parse_levels(info.noise, &o->levels))
        return gc_print_error(
            GC_EXIT_USAGE,
            "--noise-levels '%.60s': seven levels in dB from -100 to 200 for the octaves from 125 Hz to 8 kHz "
            "are needed, such as 41,43,50,47,42,42,39, or one for all; try --help",
            info.noise);
    if (info.noise && isnan(info.speech))
        o->levels.speech = 60; /* normal vocal effort at 1 m: ISO 9921 */
    return GC_EXIT_DONE;
}

/* Prints the figures and frees the report. */
static int print_figures(gpuconv_report *report) {
    if (!info.csv)
        return gc_print_report(report, info.report);
    errno = 0;
    gpuconv_status status = gc_report_write_csv(report, "acoustics", stdout);
    int why = errno;
    gpuconv_report_free(report);
    if (status)
        return gc_print_error(GC_EXIT_FAILED, "standard output: the table cannot be written: %s",
                              why ? strerror(why) : gpuconv_status_text(status));
    return GC_EXIT_DONE;
}

/* Draws and writes the page. @return GC_EXIT_DONE, or another status after a message */
static int write_drawings(const gc_figures *figures, int count, const gc_figures_options *o) {
    gpuconv_error error = {0};
    double smoothing = info.smoothing > 0 ? 1 / info.smoothing : 0;
    gpuconv_status status = GPUCONV_OK;
    if (info.plot && count > GC_CHARTS_FILES)
        (void)gc_print_error(GC_EXIT_DONE,
                             "%s: the first %d of %d files are drawn; --plot-bands and --html draw all of them",
                             info.plot, GC_CHARTS_FILES, count);
    if (info.plot)
        status = gc_charts_draw(figures, count, smoothing, info.plot, &error);
    if (!status && info.plot_bands)
        status = gc_band_charts_draw(&(gc_positions){figures, count, o->lateral}, info.plot_bands, &error);
    if (!status && info.html) {
        gc_page_config page = {.path = info.html,
                               .figures = figures,
                               .count = count,
                               .smoothing = smoothing,
                               .before = info.sound,
                               .options = o};
        status = gc_page_write(&page, &error);
    }
    return gc_print_failure(status, &error);
}

/* Describes a set of responses, which is not drawn. */
static gpuconv_status describe_set(const char *path, gpuconv_report *report, gpuconv_error *error) {
    if (info.plot || info.plot_bands || info.html || info.csv)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s: is a set of responses, which has no figures to draw", path);
    return gc_describe_sofa(path, report, error);
}

/* Computes the figures of every file. A file that fails is reported and left out. @return the first failure's status */
static int read_files(const char **paths, int count, const gc_figures_options *o, gpuconv_report *report,
                      gc_figures *figures, int *done) {
    int result = GC_EXIT_DONE;
    for (int i = 0; i < count && result != GC_EXIT_INTERRUPTED; i++) {
        gpuconv_error error = {0};
        const bool is_set = gc_is_sofa(paths[i]);
        gpuconv_status status =
            is_set ? describe_set(paths[i], report, &error) : gc_figures_new(paths[i], o, &figures[*done], &error);
        if (status) {
            int exit = gc_print_failure(status, &error);
            result = result && exit != GC_EXIT_INTERRUPTED ? result : exit;
        }
        if (status || is_set)
            continue;
        gc_describe(&figures[*done], o, count > 1, report);
        if (!info.plot && !info.html)
            gc_figures_shrink(&figures[*done]);
        ++*done;
    }
    return result;
}

/* Checks, before the work begins, that drawings can be made and replace no file that is read. */
static int check_drawings(const char *const *paths, int count) {
    gpuconv_error error = {0};
    const char *const more[] = {info.reference, info.sound}, *const drawn[] = {info.plot, info.plot_bands, info.html};
    gpuconv_status status = GPUCONV_OK;
    for (int i = 0; i < 3 && !status; i++)
        if (drawn[i] && (status = gc_ir_keep_files(drawn[i], paths, count, &error)) == GPUCONV_OK)
            status = gc_ir_keep_files(drawn[i], more, 2, &error);
    if (!status && info.plot)
        status = gc_plot_check(info.plot, &error);
    if (!status && info.plot_bands)
        status = gc_plot_check(info.plot_bands, &error);
    if (!status && info.html)
        status = gc_page_check(info.html, info.sound, &error);
    return gc_print_failure(status, &error);
}

static int run_info(const char **arguments, int count) {
    gc_figures_options options;
    gpuconv_report *report = NULL;
    int done = 0, status = fill_options(&options);
    if (status)
        return status;
    if (count < 1)
        return gc_print_error(GC_EXIT_USAGE, "at least one file is needed, IR, not 0; try --help");
    if (info.csv && info.report)
        return gc_print_error(GC_EXIT_USAGE, "--csv and --report exclude each other; try --help");
    if (info.sound && !info.html)
        return gc_print_error(GC_EXIT_USAGE, "--sound is played by the page of --html; try --help");
    if (info.plot_bands && !options.per_octave)
        return gc_print_error(GC_EXIT_USAGE, "--plot-bands needs bands, not --bands none; try --help");
    gc_figures *figures = calloc((size_t)count, sizeof *figures);
    if (!figures || gpuconv_report_new(&report) != GPUCONV_OK) {
        free(figures);
        return gc_print_error(GC_EXIT_FAILED, "out of memory");
    }
    (void)gc_catch_signals();
    status = check_drawings(arguments, count);
    if (!status)
        status = read_files(arguments, count, &options, report, figures, &done);
    if ((gc_report_has(report, "acoustics") || gc_report_has(report, "responses")) && status != GC_EXIT_INTERRUPTED) {
        if (done)
            gc_describe_positions(&(gc_positions){figures, done, options.lateral}, report);
        int drawn = done ? write_drawings(figures, done, &options) : GC_EXIT_DONE; /* a failure is told first */
        int printed = print_figures(report);
        status = status ? status : drawn ? drawn : printed;
    } else {
        gpuconv_report_free(report);
    }
    for (int i = 0; i < done; i++)
        gc_figures_free(&figures[i]);
    free(figures);
    return status;
}

static struct poptOption info_table[] = {
    {"bands", '\0', POPT_ARG_STRING, &info.bands, 0, "bands besides the whole spectrum (default: octave)", words_bands},
    {"lateral", '\0', POPT_ARG_INT, &info.lateral, GC_RANGE_CHANNEL,
     "channel of a figure-eight microphone whose null points to the source: adds the lateral energy fraction LF of "
     "channel 1",
     "CHANNEL"},
    {"reference", '\0', POPT_ARG_STRING, &info.reference, 0,
     "adds the sound strength G: a response of the same source and gains in a free field, or the level of its energy "
     "in dB",
     "FILE|DB"},
    {"reference-distance", '\0', POPT_ARG_DOUBLE, &info.distance, GC_RANGE_DISTANCE,
     "distance at which the reference was measured (default: 10)", "METRES"},
    {"speech-level", '\0', POPT_ARG_DOUBLE, &info.speech, GC_RANGE_SOUND_LEVEL,
     "A-weighted level of speech at the listener, for STI with masking and hearing threshold (default: without)",
     "DBA"},
    {"noise-levels", '\0', POPT_ARG_STRING, &info.noise, 0,
     "levels of the noise in the octaves from 125 Hz to 8 kHz in dB, for STI; one level counts for all (default: no "
     "noise; with noise, speech has 60 dBA)",
     "DB,..."},
    GC_FORM_OPTIONS(info.file_rate, info.raw),
    {"report", 'r', POPT_ARG_STRING, &info.report, 0, "print the figures as text or JSON (default: text)",
     GC_WORDS_REPORT},
    {"csv", '\0', POPT_ARG_NONE, &info.csv, 0, "print all figures as one table with commas", NULL},
    {"plot", '\0', POPT_ARG_STRING, &info.plot, 0,
     "draw decay, decay by bands, frequency response, waterfall, group delay and spectrogram, of up to four "
     "files on the same scales, as .svg, .png or .pdf (needs gnuplot)",
     "FILE"},
    {"plot-bands", '\0', POPT_ARG_STRING, &info.plot_bands, 0,
     "draw T20, T30, EDT, C80, D50 and level by band, of all files and channels with their mean and standard deviation "
     "(needs gnuplot)",
     "FILE"},
    {"smoothing", '\0', POPT_ARG_DOUBLE, &info.smoothing, GC_RANGE_SMOOTHING,
     "smooth the drawn frequency response over 1/N octave; 0: not (default: 6)", "N"},
    {"html", '\0', POPT_ARG_STRING, &info.html, 0,
     "write a page with figures, drawings and a player that switches between the responses (needs gnuplot)", "FILE"},
    {"sound", '\0', POPT_ARG_STRING, &info.sound, 0,
     "the page plays this sound, and the sound through each IR, instead of the responses themselves", "FILE"},
    GC_OPTIONS_END};

static const gc_option_group info_groups[] = {
    {"bands", "Figures"}, {"report", "Output"}, {"plot", "Drawings and page"}, {NULL, NULL}};

const gc_command gc_command_ir_info = {
    .name = "gpuconv ir info",
    .arguments = "IR...",
    .about = "Prints the length, level, delay and room-acoustic parameters of impulse responses.",
    .details =
        "For every channel, for the whole spectrum and in octaves from 63 Hz or in third-octaves (IEC 61260-1, class 1): early "
        "decay time, T20 and T30, clarity C50 and C80, definition D50, centre time (ISO 3382-1), and the "
        "impulse-to-noise ratio INR. The column doubt names what decides other than the room: filter (bandwidth "
        "times decay time below 4), noise T20 or noise T30 (INR below 35 or 45 dB), end T20 or end T30 (the response ends less than 10 to 15 dB below their range), nonlinear (above 10 per mille), "
        "curved (T30 and T20 differ by more than 10 %; ISO 3382-2, annex B). A value that cannot be determined is "
        "-. Single numbers follow: T mid (T30 at 500 Hz and 1 kHz), the bass ratio (125 and 250 Hz against 500 Hz and "
        "1 kHz) and others; and of several files or channels, which are positions, mean and standard deviation.\n\n"
        "For speech: the index STI with the modulation transfer indices of its octaves (IEC 60268-16). For two channels, as at "
        "two ears: the interaural cross-correlation IACC of the whole response, of its first 80 ms and of the rest.",
    .options = info_table,
    .run = run_info,
    .groups = info_groups,
    .examples = {{"gpuconv ir info impulses/hall.flac", "prints the parameters of a hall"},
                 {"gpuconv ir info impulses/hall.flac impulses/studio.flac --bands none --csv",
                  "prints those of two responses as a table with commas"}}};
