/* gpuconv ir: what a response is like, how one is measured, and how one is made. */
#include "cli/cli.h"
#include "commands.h"
#include "gpuconv/room/describe.h"
#include "gpuconv/room/make.h"
#include "gpuconv/room/sine_sweep.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/report/report.h"

#include <stdlib.h>
#include <string.h>

/* ---- ir info ----------------------------------------------------------------------------------------------------- */

static struct { char *report, *plot; } info;

static int run_info(const char **arguments, int count) {
    int format = gc_choose("--report", info.report, GC_WORDS_REPORT);
    if (format < 0)
        return GC_EXIT_USAGE;
    if (count != 1)
        return gc_exit(GC_EXIT_USAGE, "one response is needed, IR, not %d files; try --help", count);
    gpuconv_report *report = NULL;
    gpuconv_error error = {0};
    if (gpuconv_report_new(&report) != GPUCONV_OK)
        return gc_exit(GC_EXIT_FAILED, "out of memory");
    (void)gc_catch_signals();
    gpuconv_status status = gc_describe(arguments[0], info.plot, report, &error);
    if (!status)
        return gc_print_report(report, (gpuconv_report_format)format);
    if (status != GPUCONV_ERROR_CANCELLED && gc_report_has(report, "acoustics")) /* only the drawing failed */
        (void)gc_print_report(report, (gpuconv_report_format)format);
    else
        gpuconv_report_free(report);
    return gc_exit(gc_exit_of(status), "%s", error.message);
}

static struct poptOption info_table[] = {
    {"plot", 'p', POPT_ARG_STRING, &info.plot, 0, "draw decay and spectrum, as .svg or .png (needs gnuplot)", "FILE"},
    {"report", 'r', POPT_ARG_STRING, &info.report, 0, "form of the figures (default: text)", GC_WORDS_REPORT},
    GC_OPTIONS_END};

const gc_command gc_command_ir_info = {
    "gpuconv ir info", "IR",
    "Tells a response's length, level and delay, and after ISO 3382 of every channel, whole and in octaves: early decay\n"
    "time, RT60 from 20 and 30 dB, clarity C80, definition D50, centre time, and the noise behind its decay.",
    info_table, run_info};

/* ---- ir measure -------------------------------------------------------------------------------------------------- */

static struct {
    gc_sweep sweep;
    double length;
    int quiet;
} measure = {.sweep = {.rate = 48000, .seconds = 10, .from = 10, .level = -6, .silence = 3}};

static int run_measure(const char **arguments, int count) {
    gpuconv_error error = {0};
    gpuconv_status status;
    gc_sweep_found found = {0};
    if (count != 1 && count != 3)
        return gc_exit(GC_EXIT_USAGE,
                       "a sweep to make, SWEEP, or three files, RECORDING SWEEP IR, "
                       "not %d; try --help",
                       count);
    (void)gc_catch_signals();
    if (count == 1)
        status = gc_sweep_write(&measure.sweep, arguments[0], &error);
    else
        status = gc_sweep_read(arguments[0], arguments[1], measure.length, arguments[2], &found, &error);
    if (status)
        return gc_exit(status == GPUCONV_ERROR_ARGUMENT && count == 1 ? GC_EXIT_USAGE : gc_exit_of(status), "%s",
                       error.message);
    if (count == 3 && !measure.quiet && found.without)
        (void)gc_exit(GC_EXIT_DONE, "%s: %d of %d channels do not hold the sweep, the first is channel %d",
                      arguments[0], found.without, found.channels, found.first_without);
    if (count == 3 && !measure.quiet)
        return gc_exit(GC_EXIT_DONE, "%s: direct sound after %.2f ms; gpuconv ir info tells more", arguments[2],
                       1e3 * found.delay);
    return GC_EXIT_DONE;
}

static struct poptOption measure_table[] = {
    {"seconds", 's', POPT_ARG_DOUBLE, &measure.sweep.seconds, GC_RANGE_SWEEP_SECONDS, "of the sweep (default: 10)",
     "SECONDS"},
    {"rate", 'r', POPT_ARG_DOUBLE, &measure.sweep.rate, GC_RANGE_RATE, "of the sweep (default: 48000)", "HZ"},
    {"from", 'f', POPT_ARG_DOUBLE, &measure.sweep.from, GC_RANGE_FREQUENCY, "where it begins (default: 10)", "HZ"},
    {"to", 't', POPT_ARG_DOUBLE, &measure.sweep.to, GC_RANGE_FREQUENCY, "where it ends (default: half of the rate)",
     "HZ"},
    {"level", 'l', POPT_ARG_DOUBLE, &measure.sweep.level, GC_RANGE_SWEEP_LEVEL, "of its peaks (default: -6)", "DBFS"},
    {"silence", 'S', POPT_ARG_DOUBLE, &measure.sweep.silence, GC_RANGE_SWEEP_LENGTH,
     "behind it, to ring out (default: 3)", "SECONDS"},
    {"length", 'L', POPT_ARG_DOUBLE, &measure.length, GC_RANGE_SWEEP_LENGTH,
     "of the response (default: what was recorded behind the sweep)", "SECONDS"},
    {"quiet", 'q', POPT_ARG_NONE, &measure.quiet, 0, "say nothing but errors", NULL},
    GC_OPTIONS_END};

const gc_command gc_command_ir_measure = {
    "gpuconv ir measure", "SWEEP | RECORDING SWEEP IR",
    "With one file: makes an exponential sine sweep, to be played in the room or through the device. With three: divides\n"
    "the recording of it by the sweep into the response; what the loudspeaker distorts is cut away.",
    measure_table, run_measure};

/* ---- ir synth ---------------------------------------------------------------------------------------------------- */

static struct {
    char *size;
    double rt60, distance, rate;
    int channels;
    long long seed;
} synth = {.channels = 2, .rate = 48000, .seed = 1};

static const char words_kind[] = "room|plate|spring|cabinet|telephone";

static bool parse_size(const char *text, double size[3]) {
    for (int axis = 0; axis < 3; axis++) {
        char word[32];
        size_t length = strcspn(text, "x,");
        if (length >= sizeof word)
            return false;
        memcpy(word, text, length);
        word[length] = '\0';
        if (!gc_number_parse(word, &size[axis]) || !(size[axis] > 0))
            return false;
        if (!text[length])
            return axis > 0;
        text += length + 1;
    }
    return false;
}

static int run_synth(const char **arguments, int count) {
    gc_synth wish = gc_synth_default();
    gpuconv_error error = {0};
    if (count != 2)
        return gc_exit(GC_EXIT_USAGE, "a kind and a file are needed, KIND IR, not %d words; try --help", count);
    int kind = gc_choose("KIND", arguments[0], words_kind);
    if (kind < 0)
        return GC_EXIT_USAGE;
    if (synth.size && !parse_size(synth.size, wish.size))
        return gc_exit(GC_EXIT_USAGE, "--size '%.60s': metres such as 8x6x3.2, of a plate 2x1; try --help", synth.size);
    wish.kind = (gc_synth_kind)kind;
    wish.rt60 = synth.rt60;
    wish.distance = synth.distance;
    wish.channels = synth.channels;
    wish.rate = synth.rate;
    wish.seed = (uint64_t)synth.seed;
    (void)gc_catch_signals();
    gpuconv_status status = gc_synth_write(&wish, arguments[1], &error);
    if (status)
        return gc_exit(status == GPUCONV_ERROR_ARGUMENT ? GC_EXIT_USAGE : gc_exit_of(status), "%s", error.message);
    return GC_EXIT_DONE;
}

static struct poptOption synth_table[] = {
    {"size", 's', POPT_ARG_STRING, &synth.size, 0, "of the room (default: 8x6x3.2) or plate (2.02x0.993), in metres",
     "XxYxZ"},
    {"rt60", 't', POPT_ARG_DOUBLE, &synth.rt60, GC_RANGE_RT60,
     "at 1 kHz (default: of a room by its volume, of a plate 2.1)", "SECONDS"},
    {"distance", 'd', POPT_ARG_DOUBLE, &synth.distance, GC_RANGE_DISTANCE,
     "from source to microphones of a room (default: 0.35 of its length)", "METRES"},
    {"channels", 'c', POPT_ARG_INT, &synth.channels, GC_RANGE_SYNTH_CHANNELS,
     "of a room: 1, 2, or 4 for true stereo (default: 2)", "COUNT"},
    {"rate", 'r', POPT_ARG_DOUBLE, &synth.rate, GC_RANGE_RATE, "frames a second (default: 48000)", "HZ"},
    {"seed", 'S', POPT_ARG_LONGLONG, &synth.seed, GC_RANGE_ANY_COUNT, "of a room's irregularities (default: 1)",
     "NUMBER"},
    GC_OPTIONS_END};

const gc_command gc_command_ir_synth = {
    "gpuconv ir synth", "room|plate|spring|cabinet|telephone IR",
    "Makes a response: a room by image sources and a diffuse tail, a steel plate mode by mode, a spring tank, a guitar\n"
    "cabinet or a telephone, at unity gain for pink noise.",
    synth_table, run_synth};
