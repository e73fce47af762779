/* gpuconv ir clean: removes hum, offset and noise from a measured response. */
#include "cli/cli.h"
#include "commands.h"
#include "libgpuconv/audio/file.h"
#include "libgpuconv/ir/read_files.h"
#include "libgpuconv/report/report.h"
#include "libtools/room/charts.h"
#include "libtools/room/clean.h"

#include <math.h>
#include <stdlib.h>

static const char words_tail[] = "extend|cut";

static struct {
    gc_clean_options options;
    gc_ir_form form;
    char *tail, *plot, *report;
    int quiet;
} clean = {.form = {.kind = GC_INPUT_REGULAR}};

/* Draws the response before and after, on the same scales. */
static gpuconv_status draw(const gpuconv_ir *before, const gpuconv_ir *after, const char *const *paths,
                           gpuconv_error *error) {
    const gc_figures_options options = gc_figures_default();
    gc_figures figures[2] = {{0}};
    gpuconv_status status = gc_figures_of(before, paths[0], &options, &figures[0], error);
    if (!status)
        status = gc_figures_of(after, paths[1], &options, &figures[1], error);
    if (!status)
        status = gc_charts_draw(figures, 2, 1.0 / 6, clean.plot, error);
    gc_figures_free(&figures[0]);
    gc_figures_free(&figures[1]);
    return status;
}

/* Cleans paths[0] into paths[1], and prints what was done. */
static gpuconv_status run_files(const char *const *paths, gpuconv_report *report, gpuconv_error *error) {
    gpuconv_ir *ir = NULL, *cleaned = NULL;
    gc_clean_channel *channel = NULL;
    gpuconv_status status = gc_ir_keep_files(paths[1], paths, 1, error);
    if (!status && clean.plot && (status = gc_ir_keep_files(clean.plot, paths, 1, error)) == GPUCONV_OK)
        status = gc_plot_check(clean.plot, error);
    if (!status)
        status = gc_ir_load_from(paths[0], &clean.form, &ir, error);
    if (!status)
        status = gc_clean(ir, &clean.options, &cleaned, &channel, error);
    if (!status)
        status = gc_ir_write(cleaned, paths[1], true, error);
    if (!status && clean.plot)
        status = draw(ir, cleaned, paths, error);
    if (!status)
        gc_clean_report(channel, gpuconv_ir_outputs(ir), report);
    free(channel);
    gpuconv_ir_free(cleaned);
    gpuconv_ir_free(ir);
    return status;
}

static int run_clean(const char **arguments, int count) {
    gpuconv_error error = {0};
    gpuconv_report *report = NULL;
    if (count != 2)
        return gc_print_error(GC_EXIT_USAGE, "two files are needed, IR OUT, not %d; try --help", count);
    clean.options.cut = gc_choose("--tail", clean.tail, words_tail) == 1;
    if (gpuconv_report_new(&report))
        return gc_print_error(GC_EXIT_FAILED, "out of memory");
    (void)gc_catch_signals();
    const gpuconv_status status = run_files(arguments, report, &error);
    if (!status && !clean.quiet)
        return gc_print_report(report, clean.report);
    gpuconv_report_free(report);
    return gc_print_refusal(status, &error);
}

static struct poptOption clean_table[] = {
    {"tail", '\0', POPT_ARG_STRING, &clean.tail, 0,
     "where noise begins, let the decay go on as it fell before, or end it (default: extend)", words_tail},
    {"length", '\0', POPT_ARG_DOUBLE, &clean.options.seconds, GC_RANGE_SWEEP_LENGTH,
     "length of OUT, at least that of IR, which the decay fills (default: that of IR)", "SECONDS"},
    GC_FORM_OPTIONS(clean.form.rate, clean.form.raw),
    {"report", 'r', POPT_ARG_STRING, &clean.report, 0, "print what was done as text or JSON (default: text)",
     GC_WORDS_REPORT},
    {"plot", '\0', POPT_ARG_STRING, &clean.plot, 0,
     "draw the response before and after on the same scales, as .svg, .png or .pdf (needs gnuplot)", "FILE"},
    {"quiet", 'q', POPT_ARG_NONE, &clean.quiet, 0, "print only errors", NULL},
    GC_OPTIONS_END};

const gc_command gc_command_ir_clean = {
    .name = "gpuconv ir clean",
    .arguments = "IR OUT",
    .about = "Removes noise behind the decay, hum and offset from a measured impulse response.",
    .details =
        "In each octave, the decay is followed to where it meets the noise, as gpuconv ir info does, and from 20 dB above the "
        "noise on it is replaced by noise that falls on at the same rate. Everything before stays as it is, bit for bit. An "
        "offset, and harmonics of 50 or 60 Hz that stand out of the noise, are subtracted from the whole response. What was "
        "done to each channel and octave is printed.",
    .options = clean_table,
    .run = run_clean,
    .examples = {{"gpuconv ir clean impulses/studio.flac clean.wav", "removes the noise of a response"},
                 {"gpuconv ir clean impulses/studio.flac clean.wav --tail cut -q", "ends the decay in silence"}}};
