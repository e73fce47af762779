/* gpuconv ir measure: measures impulse responses with a sine sweep. */
#include "cli/cli.h"
#include "commands.h"
#include "gpuconv/room/sine_sweep.h"

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
        return gc_exit(GC_EXIT_USAGE, "one file is needed, SWEEP, or three, RECORDING SWEEP IR, not %d; try --help",
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
        return gc_exit(GC_EXIT_DONE, "%s: direct sound after %.2f ms; gpuconv ir info prints more", arguments[2],
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
