/* gpuconv ir: what a response is like, how one is measured, and how one is made. */
#include "cli.h"
#include "gpuconv/room/describe.h"
#include "gpuconv/room/make.h"
#include "gpuconv/room/sine_sweep.h"

#include <stdlib.h>
#include <string.h>

/* ---- ir info ----------------------------------------------------------------------------------------------------- */

static struct { char *report, *plot; } info;

static int run_info(const char **arguments, int count) {
    int format = gc_choose("--report", info.report, GC_WORDS_REPORT);
    if (format < 0)
        return GC_EXIT_USAGE;
    if (count != 1)
        return gc_exit(GC_EXIT_USAGE, "one response is needed, IR; try --help");
    gpuconv_report *report = NULL;
    gpuconv_error error = {0};
    if (gpuconv_report_new(&report) != GPUCONV_OK)
        return gc_exit(GC_EXIT_FAILED, "out of memory");
    gpuconv_status status = gc_describe(arguments[0], info.plot, report, &error);
    if (!status)
        return gc_print_report(report, (gpuconv_report_format)format);
    gpuconv_report_free(report);
    return gc_exit(GC_EXIT_FAILED, "%s", error.message);
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
    double delay = 0;
    if (count != 1 && count != 3)
        return gc_exit(GC_EXIT_USAGE, "a sweep to make, SWEEP, or three files, RECORDING SWEEP IR; try --help");
    if (count == 1)
        status = gc_sweep_write(&measure.sweep, arguments[0], &error);
    else
        status = gc_sweep_read(arguments[0], arguments[1], measure.length, arguments[2], &delay, &error);
    if (status)
        return gc_exit(status == GPUCONV_ERROR_ARGUMENT && count == 1 ? GC_EXIT_USAGE : GC_EXIT_FAILED, "%s",
                       error.message);
    if (count == 3 && !measure.quiet)
        fprintf(stderr, "gpuconv: %s: direct sound after %.2f ms; gpuconv ir info tells more\n", arguments[2],
                1e3 * delay);
    return GC_EXIT_DONE;
}

static struct poptOption measure_table[] = {
    {"seconds", 's', POPT_ARG_DOUBLE, &measure.sweep.seconds, 0, "of the sweep (default: 10)", "SECONDS"},
    {"rate", 'r', POPT_ARG_DOUBLE, &measure.sweep.rate, 0, "of the sweep (default: 48000)", "HZ"},
    {"from", 'f', POPT_ARG_DOUBLE, &measure.sweep.from, 0, "where it begins (default: 10)", "HZ"},
    {"to", 't', POPT_ARG_DOUBLE, &measure.sweep.to, 0, "where it ends (default: half of the rate)", "HZ"},
    {"level", 'l', POPT_ARG_DOUBLE, &measure.sweep.level, 0, "of its peaks (default: -6)", "DBFS"},
    {"silence", 'S', POPT_ARG_DOUBLE, &measure.sweep.silence, 0, "behind it, to ring out (default: 3)", "SECONDS"},
    {"length", 'L', POPT_ARG_DOUBLE, &measure.length, 0,
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
        char *end;
        size[axis] = strtod(text, &end);
        if (end == text || !(size[axis] > 0))
            return false;
        if (!*end)
            return axis > 0;
        if (*end != 'x' && *end != ',')
            return false;
        text = end + 1;
    }
    return false;
}

static int run_synth(const char **arguments, int count) {
    gc_synth wish = gc_synth_default();
    gpuconv_error error = {0};
    if (count != 2)
        return gc_exit(GC_EXIT_USAGE, "a kind and a file are needed, KIND IR; try --help");
    int kind = gc_choose("KIND", arguments[0], words_kind);
    if (kind < 0)
        return GC_EXIT_USAGE;
    if (synth.size && !parse_size(synth.size, wish.size))
        return gc_exit(GC_EXIT_USAGE, "--size '%s': metres such as 8x6x3.2, of a plate 2x1; try --help", synth.size);
    if (synth.seed < 0)
        return gc_exit(GC_EXIT_USAGE, "--seed is 0 or more; try --help");
    wish.kind = (gc_synth_kind)kind;
    wish.rt60 = synth.rt60;
    wish.distance = synth.distance;
    wish.channels = synth.channels;
    wish.rate = synth.rate;
    wish.seed = (uint64_t)synth.seed;
    gpuconv_status status = gc_synth_write(&wish, arguments[1], &error);
    if (status)
        return gc_exit(status == GPUCONV_ERROR_ARGUMENT ? GC_EXIT_USAGE : GC_EXIT_FAILED, "%s", error.message);
    return GC_EXIT_DONE;
}

static struct poptOption synth_table[] = {
    {"size", 's', POPT_ARG_STRING, &synth.size, 0, "of the room (default: 8x6x3.2) or plate (2.02x0.993), in metres",
     "XxYxZ"},
    {"rt60", 't', POPT_ARG_DOUBLE, &synth.rt60, 0, "at 1 kHz (default: of a room by its volume, of a plate 2.1)",
     "SECONDS"},
    {"distance", 'd', POPT_ARG_DOUBLE, &synth.distance, 0,
     "from source to microphones of a room (default: 0.35 of its length)", "METRES"},
    {"channels", 'c', POPT_ARG_INT, &synth.channels, 0, "of a room: 1, 2, or 4 for true stereo (default: 2)", "COUNT"},
    {"rate", 'r', POPT_ARG_DOUBLE, &synth.rate, 0, "frames a second (default: 48000)", "HZ"},
    {"seed", 'S', POPT_ARG_LONGLONG, &synth.seed, 0, "of a room's irregularities (default: 1)", "NUMBER"},
    GC_OPTIONS_END};

const gc_command gc_command_ir_synth = {
    "gpuconv ir synth", "room|plate|spring|cabinet|telephone IR",
    "Makes a response: a room by image sources and a diffuse tail, a steel plate mode by mode, a spring tank, a guitar\n"
    "cabinet or a telephone, at unity gain for pink noise.",
    synth_table, run_synth};
