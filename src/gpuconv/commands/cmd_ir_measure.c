/* gpuconv ir measure: measures impulse responses with a sine sweep. */
#include "cli/cli.h"
#include "commands.h"
#include "gpuconv/measure/measurement.h"

#include <stdlib.h>

static struct {
    gc_sweep sweep;
    double length;
    int play, list, no_check, quiet;
    gc_measurement_config config;
    char *output, *input, *recording;
} measure = {.sweep = {.rate = 48000, .seconds = 10, .from = 10, .level = -6, .silence = 3},
             .config = {.output = 1, .inputs = 1, .repeat = 1, .noise = 1}};

/* Warns of what makes the response of a channel doubtful. @param what "channel" or "input" */
static void warn_of(const char *name, const char *what, int number, const gc_sweep_channel *c) {
    if (!c->held)
        (void)gc_print_error(GC_EXIT_DONE, "%s: %s %d does not hold the sweep", name, what, number);
    if (c->clipped)
        (void)gc_print_error(GC_EXIT_DONE, "%s: %s %d clips; lower the gain and measure again", name, what, number);
    if (c->held && c->inr < 35)
        (void)gc_print_error(GC_EXIT_DONE,
                             "%s: %s %d: the noise is only %.0f dB below the decay; T20 needs 35 dB, T30 45 dB; use a "
                             "longer or louder sweep, or average several",
                             name, what, number, c->inr);
    else if (c->held && c->inr < 45)
        (void)gc_print_error(GC_EXIT_DONE, "%s: %s %d: the noise is %.0f dB below the decay; T30 needs 45 dB", name,
                             what, number, c->inr);
}

/* Prints the devices. */
static int list_devices(void) {
    gpuconv_error error = {0};
    char *text = gc_sound_devices(GC_SOUND_PORTAUDIO, &error);
    if (!text)
        return gc_print_error(GC_EXIT_FAILED, "%s", error.message);
    int written = fputs(text, stdout);
    free(text);
    return written < 0 ? GC_EXIT_FAILED : GC_EXIT_DONE;
}

/* Plays, records and computes. */
static int run_play(const char *response) {
    gpuconv_error error = {0};
    gc_measurement result;
    gc_measurement_config *c = &measure.config;
    c->sweep = measure.sweep;
    c->length = measure.length;
    c->output_device = measure.output;
    c->input_device = measure.input;
    c->recording = measure.recording;
    c->check = !measure.no_check;
    c->note = measure.quiet ? NULL : gc_print_note;
    c->cancel = gc_catch_signals();
    gpuconv_status status = gc_measure(c, response, &result, &error);
    if (status)
        return gc_print_error(status == GPUCONV_ERROR_ARGUMENT ? GC_EXIT_USAGE : gc_exit_of(status), "%s",
                              error.message);
    if (measure.quiet)
        return GC_EXIT_DONE;
    for (int i = 0; i < result.inputs; i++)
        if (i + 1 != c->loopback || result.channel[i].clipped)
            warn_of(response, "input", i + 1, &result.channel[i]);
    if (result.left_out)
        (void)gc_print_error(GC_EXIT_DONE, "%s: %d of %d sweeps were recorded with a gap and are left out", response,
                             result.left_out, result.left_out + result.repeats);
    if (result.xruns)
        (void)gc_print_error(GC_EXIT_DONE, "%s: the device reports %lld gaps; use larger blocks (--block)", response,
                             (long long)result.xruns);
    if (result.nonfinite)
        (void)gc_print_error(GC_EXIT_DONE,
                             "%s: %lld recorded samples were not finite (NaN or infinity) and taken as silence",
                             response, (long long)result.nonfinite);
    return gc_print_error(
        GC_EXIT_DONE, "%s: mean of %d, latency %lld frames, direct sound after %.2f ms%s; gpuconv ir info prints more",
        response, result.repeats, (long long)result.latency, 1e3 * result.delay,
        c->loopback ? "" : " (without loopback: not the travel time)");
}

/* Computes the response from a recording. */
static int run_recording(const char *recording, const char *sweep, const char *response) {
    gpuconv_error error = {0};
    gc_sweep_found found;
    (void)gc_catch_signals();
    gpuconv_status status = gc_sweep_read(recording, sweep, measure.length, response, &found, &error);
    int result = GC_EXIT_DONE;
    if (status) {
        result = gc_print_error(gc_exit_of(status), "%s", error.message);
    } else if (!measure.quiet) {
        for (int c = 0; c < found.channels; c++)
            warn_of(recording, "channel", c + 1, &found.channel[c]);
        result = gc_print_error(GC_EXIT_DONE, "%s: direct sound after %.2f ms; gpuconv ir info prints more", response,
                                1e3 * found.delay);
    }
    free(found.channel);
    return result;
}

static int run_measure(const char **arguments, int count) {
    if (measure.list)
        return list_devices();
    if (measure.play && count != 1)
        return gc_print_error(GC_EXIT_USAGE, "with --play one file is needed, IR, not %d; try --help", count);
    if (measure.play)
        return run_play(arguments[0]);
    if (count != 1 && count != 3)
        return gc_print_error(GC_EXIT_USAGE,
                              "one file is needed, SWEEP, or three, RECORDING SWEEP IR, not %d; try --help", count);
    if (count == 3)
        return run_recording(arguments[0], arguments[1], arguments[2]);
    gpuconv_error error = {0};
    (void)gc_catch_signals();
    gpuconv_status status = gc_sweep_write(&measure.sweep, arguments[0], &error);
    if (status)
        return gc_print_error(status == GPUCONV_ERROR_ARGUMENT ? GC_EXIT_USAGE : gc_exit_of(status), "%s",
                              error.message);
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
     "length of IR (default: what is recorded after the sweep)", "SECONDS"},
    {"play", '\0', POPT_ARG_NONE, &measure.play, 0,
     "play the sweep and record it at the same time, and write IR: levels are checked first", NULL},
    {"output", '\0', POPT_ARG_STRING, &measure.output, 0, "sound device that plays: its number, or a part of its name",
     "DEVICE"},
    {"input", '\0', POPT_ARG_STRING, &measure.input, 0, "sound device that records: its number, or a part of its name",
     "DEVICE"},
    {"output-channel", '\0', POPT_ARG_INT, &measure.config.output, GC_RANGE_PLAYED_CHANNELS,
     "channel of the loudspeaker (default: 1)", "CHANNEL"},
    {"inputs", '\0', POPT_ARG_INT, &measure.config.inputs, GC_RANGE_PLAYED_CHANNELS,
     "number of inputs that are recorded, one for each microphone and the loopback (default: 1)", "COUNT"},
    {"loopback", '\0', POPT_ARG_INT, &measure.config.loopback, GC_RANGE_INPUT,
     "input that is wired to the output: its sweep is time zero of IR, which leaves it out", "INPUT"},
    {"repeat", '\0', POPT_ARG_INT, &measure.config.repeat, GC_RANGE_REPEAT,
     "number of sweeps that are averaged; doubling it lowers noise by 3 dB (default: 1)", "COUNT"},
    {"noise", '\0', POPT_ARG_DOUBLE, &measure.config.noise, GC_RANGE_NOISE_TIME,
     "background noise that is recorded before the sweeps (default: 1)", "SECONDS"},
    {"no-check", '\0', POPT_ARG_NONE, &measure.no_check, 0, "do not check the levels first", NULL},
    {"recording", '\0', POPT_ARG_STRING, &measure.recording, 0, "also write the averaged recording to FILE", "FILE"},
    {"block", '\0', POPT_ARG_INT, &measure.config.block, GC_RANGE_BLOCK, "frames per block (default: 4096)", "FRAMES"},
    {"list-devices", '\0', POPT_ARG_NONE, &measure.list, 0, "list the sound devices", NULL},
    {"quiet", 'q', POPT_ARG_NONE, &measure.quiet, 0, "print only errors", NULL},
    GC_OPTIONS_END};

static const gc_option_group measure_groups[] = {
    {"seconds", "Making SWEEP"}, {"length", "Computing IR"}, {"play", "Sound devices"}, {NULL, NULL}};

const gc_command gc_command_ir_measure = {
    .name = "gpuconv ir measure",
    .arguments = "SWEEP | RECORDING SWEEP IR | --play IR",
    .about = "Measures an impulse response with an exponential sine sweep.",
    .details =
        "With one file, writes the sweep, which is then played in the room or through the device and recorded. With "
        "three files, divides the recording by the sweep and writes IR, without the harmonic distortion of the "
        "loudspeaker.\n\n"
        "With --play, checks the levels with a short sweep, then plays the sweep and records all inputs, measures "
        "the background noise, and writes IR. Warnings name inputs that clip, that do not hold the sweep, and whose "
        "noise is too close to the decay.",
    .options = measure_table,
    .run = run_measure,
    .groups = measure_groups,
    .examples = {{"gpuconv ir measure sweep.wav --seconds 15", "writes a sweep of 15 seconds"},
                 {"gpuconv ir measure recording.wav sweep.wav room.wav", "computes the response from its recording"}}};
