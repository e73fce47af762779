/* gpuconv ir correct: makes filters that correct measured responses. */
#include "cli/cli.h"
#include "commands.h"
#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/ir/read_files.h"
#include "libgpuconv/report/plot.h"
#include "libgpuconv/report/report.h"
#include "libtools/room/correct.h"
#include "libtools/room/page.h"

#include <math.h>
#include <string.h>

static const char words_phase[] = "minimum|linear|mixed", words_mean[] = "power|vector",
                  words_smooth[] = "power|complex";

static struct {
    gc_correction_options options;
    char *target, *eq, *limit, *phase, *average, *smooth, *crossover, *plot, *html, *report;
    int no_align, quiet, matrix;
} correct = {.options = GC_CORRECTION_DEFAULT};

/* Fills the options that are words. @return GC_EXIT_DONE, or GC_EXIT_USAGE after a message */
static int fill_options(const char **arguments, int count) {
    gc_correction_options *o = &correct.options;
    o->target = correct.target;
    o->eq = correct.eq;
    if (correct.limit && !gc_number_parse(correct.limit, &o->limit))
        o->limit_curve = correct.limit;
    if (correct.crossover && !gc_crossover_parse(correct.crossover, &o->crossover))
        return gc_print_error(
            GC_EXIT_USAGE,
            "--crossover '%.60s': a kind and up to %d rising frequencies in Hz, such as lr4:80,2500; the "
            "kinds are lr2, lr4, lr8, bessel2, bessel4 and bessel8; try --help",
            correct.crossover, GC_CROSSOVERS);
    if (count < 1 || (count == 1 && !o->eq && !o->target && !o->crossover.count))
        return gc_print_error(GC_EXIT_USAGE,
                              "measured responses and a file are needed, MEASURED... FILTER, or with --eq, --target or "
                              "--crossover a file, FILTER; try --help");
    o->phase = (gc_correction_phase)gc_choose("--phase", correct.phase, words_phase);
    o->vector_mean = gc_choose("--average", correct.average, words_mean) == 1;
    o->complex_mean = gc_choose("--smooth", correct.smooth, words_smooth) == 1;
    o->align = !correct.no_align;
    o->matrix = correct.matrix != 0;
    if (o->matrix && (correct.target || correct.eq || correct.crossover || correct.phase || correct.average ||
                      correct.smooth || correct.plot || correct.html))
        return gc_print_error(GC_EXIT_USAGE, "--matrix has --from, --to, --max-gain, --delay, --length and --rate; try "
                                             "--help");
    if (!o->matrix && o->delay != 0)
        return gc_print_error(GC_EXIT_USAGE, "--delay needs --matrix; try --help");
    o->note = correct.quiet ? NULL : gc_print_note;
    o->measured = (const char *const *)arguments;
    o->files = count - 1;
    return GC_EXIT_DONE;
}

/* Checks that no output would replace an input, and that drawings can be made. */
static gpuconv_status check_outputs(const char *filter, gpuconv_error *error) {
    const gc_correction_options *o = &correct.options;
    const char *const written[] = {filter, correct.plot, correct.html}, *const more[] = {o->eq, o->limit_curve,
                                                                                         o->target};
    gpuconv_status status = GPUCONV_OK;
    for (int i = 0; i < 3 && !status; i++)
        if (written[i] && (status = gc_ir_keep_files(written[i], o->measured, o->files, error)) == GPUCONV_OK)
            status = gc_ir_keep_files(written[i], more, 3, error);
    if (!status && correct.plot)
        status = gc_plot_check(correct.plot, error);
    if (!status && correct.html)
        status = gc_page_check(correct.html, NULL, error);
    return status;
}

/* Writes the filter, and what was asked for about it. */
static gpuconv_status write_outputs(const gc_correction *c, const char *filter, gpuconv_error *error) {
    gpuconv_status status = gc_ir_write(c->filter, filter, true, error);
    if (!status && correct.plot)
        status = gc_correction_draw(c, correct.plot, error);
    if (!status && correct.html)
        status = gc_correction_page(c, correct.html, error);
    return status;
}

static int run_correct(const char **arguments, int count) {
    gc_correction correction = {0};
    gpuconv_error error = {0};
    gpuconv_report *report = NULL;
    int result = fill_options(arguments, count);
    if (result)
        return result;
    (void)gc_catch_signals();
    const char *filter = arguments[count - 1];
    gpuconv_status status = check_outputs(filter, &error);
    if (!status)
        status = gc_correct(&correct.options, &correction, &error);
    if (!status)
        status = write_outputs(&correction, filter, &error);
    if (!status && !correct.quiet && (status = gpuconv_report_new(&report)) == GPUCONV_OK) {
        gc_correction_report(&correction, report);
        result = gc_print_report(report, correct.report);
    }
    gc_correction_free(&correction);
    return status ? gc_print_refusal(status, &error) : result;
}

static struct poptOption correct_table[] = {
    {"target", '\0', POPT_ARG_STRING, &correct.target, 0,
     "response after the correction: flat, house (falls by 6 dB from 200 Hz to 20 kHz), x-curve (SMPTE ST 202), or a file "
     "with lines of Hz and dB (default: flat)",
     "NAME|FILE"},
    {"from", '\0', POPT_ARG_DOUBLE, &correct.options.low, GC_RANGE_FREQUENCY,
     "lowest frequency that is corrected (default: 20)", "HZ"},
    {"to", '\0', POPT_ARG_DOUBLE, &correct.options.high, GC_RANGE_FREQUENCY,
     "highest frequency that is corrected (default: 20000, or 0.45 of the rate)", "HZ"},
    {"max-gain", '\0', POPT_ARG_STRING, &correct.limit, 0,
     "most gain of the filter, 0 to 60, or a file with lines of Hz and dB (default: 12)", "DB|FILE"},
    {"window", '\0', POPT_ARG_DOUBLE, &correct.options.window, GC_RANGE_CYCLES,
     "cycles of each frequency that count after the direct sound: fewer leave more of the room out; 0: the whole response "
     "(default: 15)",
     "CYCLES"},
    {"smoothing", '\0', POPT_ARG_DOUBLE, &correct.options.smoothing, GC_RANGE_SMOOTHING,
     "smooth the measured response over 1/N octave; 0: not (default: 6)", "N"},
    {"smooth", '\0', POPT_ARG_STRING, &correct.smooth, 0, "smooth powers, or complex values (default: power)",
     words_smooth},
    {"average", '\0', POPT_ARG_STRING, &correct.average, 0,
     "average the powers of the positions, or their complex responses (default: power)", words_mean},
    {"phase", '\0', POPT_ARG_STRING, &correct.phase, 0,
     "phase of the filter; mixed also corrects the excess phase of the response (default: minimum)", words_phase},
    {"excess-to", '\0', POPT_ARG_DOUBLE, &correct.options.excess_to, GC_RANGE_FREQUENCY,
     "--phase mixed: frequency up to which the excess phase is corrected (default: 500)", "HZ"},
    {"pre-ringing", '\0', POPT_ARG_DOUBLE, &correct.options.pre_ringing, GC_RANGE_PRE_RINGING,
     "--phase mixed: most level earlier than 2 ms before the peak, relative to the peak, in any corrected response "
     "(default: -40)",
     "DB"},
    {"no-align", '\0', POPT_ARG_NONE, &correct.no_align, 0, "keep the levels and delays of the channels as they are",
     NULL},
    {"eq", '\0', POPT_ARG_STRING, &correct.eq, 0, "add parametric equalisers: a list of REW, AutoEq or Equalizer APO",
     "FILE"},
    {"crossover", '\0', POPT_ARG_STRING, &correct.crossover, 0,
     "divide every channel into ways, lowest first: lr2, lr4 or lr8 (Linkwitz-Riley), bessel2, bessel4 or bessel8, and "
     "frequencies, such as lr4:80,2500",
     "KIND:HZ,..."},
    {"matrix", '\0', POPT_ARG_NONE, &correct.matrix, 0,
     "invert the responses from all loudspeakers to all ears, so that each ear hears its own signal alone (cross-talk); "
     "each MEASURED is an ear, or the only one has all ears of each loudspeaker in turn",
     NULL},
    {"delay", '\0', POPT_ARG_DOUBLE, &correct.options.delay, GC_RANGE_FILTER_LENGTH,
     "--matrix: delay of the filters, within which they are causal (default: half of their length)", "SECONDS"},
    {"length", '\0', POPT_ARG_DOUBLE, &correct.options.seconds, GC_RANGE_FILTER_LENGTH,
     "length of FILTER (default: 0.5)", "SECONDS"},
    {"rate", '\0', POPT_ARG_DOUBLE, &correct.options.rate, GC_RANGE_RATE,
     "sampling rate of FILTER (default: that of MEASURED, else 48000)", "HZ"},
    GC_FORM_OPTIONS(correct.options.file_rate, correct.options.raw),
    {"report", 'r', POPT_ARG_STRING, &correct.report, 0, "print the figures as text or JSON (default: text)",
     GC_WORDS_REPORT},
    {"plot", '\0', POPT_ARG_STRING, &correct.plot, 0,
     "draw the response before and after, the target and the filter, as .svg, .png or .pdf (needs gnuplot)", "FILE"},
    {"html", '\0', POPT_ARG_STRING, &correct.html, 0, "write a page with figures and drawings (needs gnuplot)", "FILE"},
    {"quiet", 'q', POPT_ARG_NONE, &correct.quiet, 0, "print only errors", NULL},
    GC_OPTIONS_END};

static const gc_option_group correct_groups[] = {
    {"target", "Correction"}, {"phase", "Filter"}, {"report", "Output"}, {NULL, NULL}};

const gc_command gc_command_ir_correct = {
    .name = "gpuconv ir correct",
    .arguments = "MEASURED... FILTER",
    .about = "Makes a filter that corrects measured loudspeakers, headphones or rooms.",
    .details =
        "Each MEASURED is a position of the microphone, and each of its channels a loudspeaker; FILTER has a channel for each. "
        "The response is analysed in a window around the direct sound that is as long as some cycles of each frequency, "
        "smoothed, averaged over the positions, and inverted up to the target where that needs no more than --max-gain. "
        "Channels get the same level and delay.\n\n"
        "The figures are those of the corrected responses, which are computed with the finished filter: deviation from the "
        "target before and after, where the gain is limited, pre-ringing, and the headroom that a signal at full scale needs. "
        "A measurement without a direct sound, or whose noise is less than 10 dB below the decay in an octave of the range, "
        "is refused.\n\n"
        "With --matrix FILTER has, for each ear, a channel for each loudspeaker: of two by two it is true stereo, else it needs "
        "--ir-layout source.\n\n"
        "Without MEASURED the filter has the target, the equalisers and the crossovers alone.",
    .options = correct_table,
    .run = run_correct,
    .groups = correct_groups,
    .examples = {
        {"gpuconv ir correct impulses/studio.flac filter.wav --target house", "corrects two loudspeakers in a room"},
        {"gpuconv ir correct ways.wav --crossover lr4:80,2500", "makes the filters of three ways"}}};
