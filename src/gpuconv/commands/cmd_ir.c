/* gpuconv ir: describes, measures and synthesizes impulse responses. */
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
        return gc_print_error(GC_EXIT_USAGE, "one file is needed, IR, not %d; try --help", count);
    gpuconv_report *report = NULL;
    gpuconv_error error = {0};
    if (gpuconv_report_new(&report) != GPUCONV_OK)
        return gc_print_error(GC_EXIT_FAILED, "out of memory");
    (void)gc_catch_signals();
    gpuconv_status status = gc_describe(arguments[0], info.plot, report, &error);
    if (!status)
        return gc_print_report(report, (gpuconv_report_format)format);
    if (status != GPUCONV_ERROR_CANCELLED && gc_report_has(report, "acoustics")) /* the drawing failed */
        (void)gc_print_report(report, (gpuconv_report_format)format);
    else
        gpuconv_report_free(report);
    return gc_print_error(gc_exit_of(status), "%s", error.message);
}

static struct poptOption info_table[] = {
    {"report", 'r', POPT_ARG_STRING, &info.report, 0, "print the figures as text or JSON (default: text)",
     GC_WORDS_REPORT},
    {"plot", '\0', POPT_ARG_STRING, &info.plot, 0, "draw decay and spectrum, as .svg or .png (needs gnuplot)", "FILE"},
    GC_OPTIONS_END};

static const gc_renamed_option info_renamed[] = {{"-p", "--plot"}, {NULL, NULL}};

const gc_command gc_command_ir_info = {
    .name = "gpuconv ir info",
    .arguments = "IR",
    .about = "Prints the length, level, delay and room-acoustic parameters of an impulse response.",
    .details =
        "Parameters of ISO 3382, for every channel, broadband and in octave bands: early decay time, RT60 from 20 and "
        "30 dB of decay, clarity C80, definition D50, centre time, and the level of the noise floor.",
    .options = info_table,
    .run = run_info,
    .renamed = info_renamed,
    .examples = {{"gpuconv ir info impulses/hall.flac", "prints the parameters of a hall"},
                 {"gpuconv ir info impulses/hall.flac --report json", "prints them as JSON"}}};

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
        return gc_print_error(GC_EXIT_USAGE,
                              "one file is needed, SWEEP, or three, RECORDING SWEEP IR, not %d; try --help", count);
    (void)gc_catch_signals();
    if (count == 1)
        status = gc_sweep_write(&measure.sweep, arguments[0], &error);
    else
        status = gc_sweep_read(arguments[0], arguments[1], measure.length, arguments[2], &found, &error);
    if (status)
        return gc_print_error(status == GPUCONV_ERROR_ARGUMENT && count == 1 ? GC_EXIT_USAGE : gc_exit_of(status), "%s",
                              error.message);
    if (count == 3 && !measure.quiet && found.without)
        (void)gc_print_error(GC_EXIT_DONE, "%s: %d of %d channels do not hold the sweep, the first is channel %d",
                             arguments[0], found.without, found.channels, found.first_without);
    if (count == 3 && !measure.quiet)
        return gc_print_error(GC_EXIT_DONE, "%s: direct sound after %.2f ms; gpuconv ir info prints more", arguments[2],
                              1e3 * found.delay);
    return GC_EXIT_DONE;
}

static struct poptOption measure_table[] = {
    {"seconds", '\0', POPT_ARG_DOUBLE, &measure.sweep.seconds, GC_RANGE_SWEEP_SECONDS,
     "duration of the sweep (default: 10)", "SECONDS"},
    {"rate", '\0', POPT_ARG_DOUBLE, &measure.sweep.rate, GC_RANGE_RATE, "sampling rate of the sweep (default: 48000)",
     "HZ"},
    {"from", '\0', POPT_ARG_DOUBLE, &measure.sweep.from, GC_RANGE_FREQUENCY,
     "first frequency of the sweep (default: 10)", "HZ"},
    {"to", '\0', POPT_ARG_DOUBLE, &measure.sweep.to, GC_RANGE_FREQUENCY,
     "last frequency of the sweep (default: half of the sampling rate)", "HZ"},
    {"level", '\0', POPT_ARG_DOUBLE, &measure.sweep.level, GC_RANGE_SWEEP_LEVEL,
     "peak level of the sweep (default: -6)", "DBFS"},
    {"silence", '\0', POPT_ARG_DOUBLE, &measure.sweep.silence, GC_RANGE_SWEEP_LENGTH,
     "silence after the sweep, in which the room decays (default: 3)", "SECONDS"},
    {"length", '\0', POPT_ARG_DOUBLE, &measure.length, GC_RANGE_SWEEP_LENGTH,
     "length of IR (default: what RECORDING has after the sweep)", "SECONDS"},
    {"quiet", 'q', POPT_ARG_NONE, &measure.quiet, 0, "print only errors", NULL},
    GC_OPTIONS_END};

static const gc_option_group measure_groups[] = {{"seconds", "Making SWEEP"}, {"length", "Computing IR"}, {NULL, NULL}};

static const gc_renamed_option measure_renamed[] = {{"-s", "--seconds"}, {"-r", "--rate"},  {"-f", "--from"},
                                                    {"-t", "--to"},      {"-l", "--level"}, {"-S", "--silence"},
                                                    {"-L", "--length"},  {NULL, NULL}};

const gc_command gc_command_ir_measure = {
    .name = "gpuconv ir measure",
    .arguments = "SWEEP | RECORDING SWEEP IR",
    .about = "Measures an impulse response with an exponential sine sweep.",
    .details =
        "With one file, writes the sweep, which is then played in the room or through the device and recorded. With "
        "three files, divides the recording by the sweep and writes IR, without the harmonic distortion of the "
        "loudspeaker.",
    .options = measure_table,
    .run = run_measure,
    .groups = measure_groups,
    .renamed = measure_renamed,
    .examples = {{"gpuconv ir measure sweep.wav --seconds 15", "writes a sweep of 15 seconds"},
                 {"gpuconv ir measure recording.wav sweep.wav room.wav", "computes the response from its recording"}}};

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
    gc_synth settings = gc_synth_default();
    gpuconv_error error = {0};
    if (count != 2)
        return gc_print_error(GC_EXIT_USAGE, "a kind and a file are needed, KIND IR, not %d words; try --help", count);
    int kind = gc_choose("KIND", arguments[0], words_kind);
    if (kind < 0)
        return GC_EXIT_USAGE;
    if (synth.size && !parse_size(synth.size, settings.size))
        return gc_print_error(GC_EXIT_USAGE, "--size '%.60s': metres such as 8x6x3.2, of a plate 2x1; try --help",
                              synth.size);
    settings.kind = (gc_synth_kind)kind;
    settings.rt60 = synth.rt60;
    settings.distance = synth.distance;
    settings.channels = synth.channels;
    settings.rate = synth.rate;
    settings.seed = (uint64_t)synth.seed;
    (void)gc_catch_signals();
    gpuconv_status status = gc_synth_write(&settings, arguments[1], &error);
    if (status)
        return gc_print_error(status == GPUCONV_ERROR_ARGUMENT ? GC_EXIT_USAGE : gc_exit_of(status), "%s",
                              error.message);
    return GC_EXIT_DONE;
}

static struct poptOption synth_table[] = {
    {"size", '\0', POPT_ARG_STRING, &synth.size, 0,
     "room, plate: size in metres (default: 8x6x3.2 for a room, 2.02x0.993 for a plate)", "XxYxZ"},
    {"rt60", '\0', POPT_ARG_DOUBLE, &synth.rt60, GC_RANGE_RT60,
     "room, plate: reverberation time at 1 kHz (default: from the volume of a room, 2.1 for a plate)", "SECONDS"},
    {"distance", '\0', POPT_ARG_DOUBLE, &synth.distance, GC_RANGE_DISTANCE,
     "room: distance from the source to the microphones (default: 0.35 of the room's length)", "METRES"},
    {"channels", '\0', POPT_ARG_INT, &synth.channels, GC_RANGE_SYNTH_CHANNELS,
     "room: 1, 2, or 4 for true stereo (default: 2)", "COUNT"},
    {"rate", '\0', POPT_ARG_DOUBLE, &synth.rate, GC_RANGE_RATE, "sampling rate (default: 48000)", "HZ"},
    {"seed", '\0', POPT_ARG_LONGLONG, &synth.seed, GC_RANGE_ANY_COUNT, "room: seed of its diffuse tail (default: 1)",
     "NUMBER"},
    GC_OPTIONS_END};

static const gc_renamed_option synth_renamed[] = {{"-s", "--size"},     {"-t", "--rt60"}, {"-d", "--distance"},
                                                  {"-c", "--channels"}, {"-r", "--rate"}, {"-S", "--seed"},
                                                  {NULL, NULL}};

const gc_command gc_command_ir_synth = {
    .name = "gpuconv ir synth",
    .arguments = "room|plate|spring|cabinet|telephone IR",
    .about = "Synthesizes the impulse response of a room, a plate, a spring, a guitar cabinet or a telephone.",
    .details = "A room is made of image sources and a diffuse tail, a steel plate mode by mode, a spring tank by its "
               "dispersion. The response has unity gain for pink noise.",
    .options = synth_table,
    .run = run_synth,
    .renamed = synth_renamed,
    .examples = {{"gpuconv ir synth room room.wav --size 12x9x4 --rt60 1.5", "makes a stereo response of a room"},
                 {"gpuconv ir synth plate plate.flac --rate 44100", "makes a plate at 44100 Hz"}}};
