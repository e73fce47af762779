/* gpuconv ir measure: measures impulse responses with a sine sweep. */
#include "cli/cli.h"
#include "commands.h"
#include "gpuconv/measure/measurement.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/ir/read_files.h"
#include "libgpuconv/report/plot.h"
#include "libgpuconv/report/report.h"
#include "libtools/room/describe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    gc_sweep sweep;
    double length, spl;
    int play, positions, list, no_check, quiet, csv;
    gc_measurement_config config;
    char *output, *input, *recording, *sound, *calibrator, *distortion, **calibration;
} measure = {.spl = 94,
             .positions = 1,
             .sweep = {.rate = 48000, .seconds = 10, .from = 10, .level = -6, .silence = 3},
             .config = {.output = 1, .inputs = 1, .repeat = 1, .noise = 1}};

/* Warns of what makes the response of a channel doubtful. @param what "channel" or "input" */
static void warn_of(const char *name, const char *what, int number, const gc_sweep_channel *c) {
    if (!c->held)
        (void)gc_print_error(GC_EXIT_DONE, "%s: %s %d does not hold the sweep", name, what, number);
    if (c->clipped)
        (void)gc_print_error(GC_EXIT_DONE, "%s: %s %d clips; lower the gain and measure again", name, what, number);
    if (!c->held || !c->decays)
        return;
    if (c->ends_early)
        (void)gc_print_error(GC_EXIT_DONE,
                             "%s: %s %d ends before its decay does, so that decay times are too short; record more "
                             "silence after the sweep (--silence), or a longer IR (--length)",
                             name, what, number);
    if (c->inr < 35)
        (void)gc_print_error(GC_EXIT_DONE,
                             "%s: %s %d: the noise is only %.0f dB below the decay; T20 needs 35 dB, T30 45 dB; use a "
                             "longer or louder sweep, or average several",
                             name, what, number, c->inr);
    else if (c->inr < 45)
        (void)gc_print_error(GC_EXIT_DONE, "%s: %s %d: the noise is %.0f dB below the decay; T30 needs 45 dB", name,
                             what, number, c->inr);
}

/* Warns of drift and lost frames. */
static void warn_of_timing(const char *name, const gc_sweep_timing *t) {
    if (t->drift != 0)
        (void)gc_print_error(GC_EXIT_DONE,
                             "%s: the recorder's clock runs about %.0f ppm %s than the player's, which blurs the "
                             "direct sound; play and record with one device, or synchronise both",
                             name, fabs(t->drift), t->drift > 0 ? "faster" : "slower");
    if (t->lost)
        (void)gc_print_error(GC_EXIT_DONE,
                             "%s: about %lld frames were %s near %.1f s; measure again, with larger blocks", name,
                             llabs((long long)t->lost), t->lost > 0 ? "lost" : "inserted", t->place);
}

/* Prints the levels of a channel in dB SPL, if the microphone's sensitivity is known. */
static void print_spl(const char *name, const char *what, int number, const gc_sweep_channel *c) {
    char noise[60] = "";
    if (!isfinite(c->sensitivity) || !isfinite(c->level))
        return;
    if (isfinite(c->noise))
        (void)gc_format(noise, sizeof noise, ", background noise %.1f dB SPL", c->noise + c->sensitivity);
    (void)gc_print_error(GC_EXIT_DONE, "%s: %s %d: sweep %.1f dB SPL%s", name, what, number, c->level + c->sensitivity,
                         noise);
}

/* Draws and prints the distortion, and frees it. */
static int show_distortion(gc_distortion *distortion, int channels, const char *response) {
    gpuconv_error error = {0};
    gpuconv_report *report = NULL;
    gpuconv_status status = GPUCONV_OK;
    if (!distortion)
        return GC_EXIT_DONE;
    for (int c = 0; c < channels && !measure.quiet; c++)
        (void)gc_print_error(GC_EXIT_DONE, "%s: channel %d: THD %.3g %% at 1 kHz (harmonics 2 to %d)", response, c + 1,
                             gc_distortion_at(&distortion[c], 1000), GC_HARMONICS);
    if (measure.distortion)
        status = gc_distortion_draw(distortion, channels, measure.distortion, &error);
    if (!status && measure.csv) {
        status = gpuconv_report_new(&report);
        if (!status) {
            gc_distortion_report(distortion, channels, report);
            status = gc_report_write_csv(report, "distortion", stdout);
        }
        gpuconv_report_free(report);
        if (status)
            status = gc_fail(&error, status, "standard output: the table cannot be written: %s",
                             gpuconv_status_text(status));
    }
    free(distortion);
    return gc_print_failure(status, &error);
}

static gc_microphone_files microphone_files(void) {
    return (gc_microphone_files){(const char *const *)measure.calibration, measure.calibrator, measure.spl,
                                 measure.quiet ? NULL : gc_print_note};
}

/* Prints warnings about the sweeps, their timing and the sound pressure levels. */
static void print_sweeps(const char *response, const gc_measurement *m) {
    for (int i = 0; i < m->inputs; i++) {
        if (i + 1 != measure.config.loopback || m->channel[i].clipped)
            warn_of(response, "input", i + 1, &m->channel[i]);
        warn_of_timing(response, &m->channel[i].timing);
        print_spl(response, "input", i + 1, &m->channel[i]);
    }
    if (m->left_out)
        (void)gc_print_error(GC_EXIT_DONE, "%s: %d of %d sweeps were recorded with a gap and are left out", response,
                             m->left_out, measure.config.repeat);
    if (m->xruns)
        (void)gc_print_error(GC_EXIT_DONE, "%s: the device reports %lld gap%s; use larger blocks (--block)", response,
                             (long long)m->xruns, m->xruns == 1 ? "" : "s");
    if (m->nonfinite)
        (void)gc_print_error(GC_EXIT_DONE,
                             "%s: %lld recorded samples were not finite (NaN or infinity) and taken as silence",
                             response, (long long)m->nonfinite);
}

/* Plays, records and computes. */
static int run_play(const char *response, int sound) {
    gpuconv_error error = {0};
    gc_measurement result;
    gc_measurement_config *c = &measure.config;
    c->sound = (gc_sound_choice)sound;
    c->sweep = measure.sweep;
    c->length = measure.length;
    c->output_device = measure.output;
    c->input_device = measure.input;
    c->recording = measure.recording;
    c->microphones = microphone_files();
    c->distortion = measure.distortion || measure.csv;
    c->check = !measure.no_check;
    c->note = measure.quiet ? NULL : gc_print_note;
    c->cancel = gc_catch_signals();
    gpuconv_status status = gc_measure(c, response, &result, &error);
    if (status) {
        free(result.distortion);
        return gc_print_refusal(status, &error);
    }
    if (!measure.quiet) {
        print_sweeps(response, &result);
        (void)gc_print_error(
            GC_EXIT_DONE,
            "%s: mean of %d, latency %lld frames, direct sound after %.2f ms%s; gpuconv ir info prints more", response,
            result.repeats, (long long)result.latency, 1e3 * result.delay,
            c->loopback ? "" : " (without loopback: not the travel time)");
    }
    return show_distortion(result.distortion, result.channels, response);
}

/* Returns the name of a position's file, hall-2.wav for hall.wav; NULL: out of memory. */
static char *position_name(const char *response, int number) {
    const char *slash = strrchr(response, '/'), *dot = strrchr(slash ? slash : response, '.');
    const int stem = (int)(dot ? dot - response : (ptrdiff_t)strlen(response));
    char *name = NULL;
    return asprintf(&name, "%.*s-%d%s", stem, response, number, dot ? dot : "") < 0 ? NULL : name;
}

/* Asks for a position and waits for Return. @return false: interrupted, or the input has ended */
static bool wait_for_position(int number, const char *why) {
    int c = EOF;
    (void)gc_print_error(GC_EXIT_DONE, "position %d of %d%s: press Return when the microphones are there", number,
                         measure.positions, why);
    while (!*measure.config.cancel && (c = getchar()) != EOF && c != '\n') {
    }
    return !*measure.config.cancel && c == '\n';
}

/* Measures at a position until it works. @param figures of its response */
static int measure_position(const char *name, int number, int sound, gc_figures *figures) {
    const gc_figures_options options = gc_figures_default();
    gpuconv_error error = {0};
    int status = GC_EXIT_DONE;
    measure.config.cancel = gc_catch_signals();
    do {
        if ((number > 1 || status) && !wait_for_position(number, status ? " once more" : ""))
            return *measure.config.cancel
                       ? GC_EXIT_INTERRUPTED
                       : gc_print_error(GC_EXIT_FAILED, "standard input has ended before position %d of %d", number,
                                        measure.positions);
        status = run_play(name, sound);
    } while (status == GC_EXIT_FAILED);
    if (status)
        return status;
    const gpuconv_status failed = gc_figures_new(name, &options, figures, &error);
    if (failed)
        return gc_print_failure(failed, &error);
    gc_figures_shrink(figures);
    return GC_EXIT_DONE;
}

/* Measures at all positions, each into a file, and prints the means of their figures. */
static int run_positions(const char *response, int sound) {
    int status = GC_EXIT_DONE, done = 0;
    char *name[GC_MEASURE_REPEAT]; /* which the figures refer to */
    gpuconv_report *report = NULL;
    gc_figures *figures = calloc((size_t)measure.positions, sizeof *figures);
    while (figures && done < measure.positions && !status) {
        name[done] = position_name(response, done + 1);
        status = name[done] ? measure_position(name[done], done + 1, sound, &figures[done])
                            : gc_print_error(GC_EXIT_FAILED, "out of memory");
        if (status)
            free(name[done]);
        done += !status;
    }
    if (!status && (!figures || gpuconv_report_new(&report)))
        status = gc_print_error(GC_EXIT_FAILED, "out of memory");
    if (!status) {
        gc_describe_positions(&(gc_positions){figures, done, 0}, report);
        status = gc_print_report(report, NULL);
    }
    for (int i = 0; i < done; i++) {
        gc_figures_free(&figures[i]);
        free(name[i]);
    }
    free(figures);
    return status;
}

/* Computes the response from a recording. */
static int run_recording(const char *const *path) {
    gpuconv_error error = {0};
    gc_sweep_found found;
    const gc_sweep_job job = {.recording = path[0],
                              .sweep = path[1],
                              .response = path[2],
                              .seconds = measure.length,
                              .microphones = microphone_files(),
                              .distortion = measure.distortion || measure.csv};
    (void)gc_catch_signals();
    gpuconv_status status = gc_sweep_read(&job, &found, &error);
    int result = GC_EXIT_DONE;
    if (status) {
        result = gc_print_failure(status, &error);
        free(found.distortion);
    } else {
        for (int c = 0; c < found.channels && !measure.quiet; c++) {
            warn_of(path[0], "channel", c + 1, &found.channel[c]);
            warn_of_timing(path[0], &found.channel[c].timing);
            print_spl(path[0], "channel", c + 1, &found.channel[c]);
        }
        if (!measure.quiet)
            (void)gc_print_error(GC_EXIT_DONE, "%s: direct sound after %.2f ms; gpuconv ir info prints more", path[2],
                                 1e3 * found.delay);
        result = show_distortion(found.distortion, found.channels, path[2]);
    }
    free(found.channel);
    return result;
}

/* Checks, before a measurement, that the distortion can be drawn and replaces no file that is read. */
static int check_drawing(const char *const *paths, int count) {
    gpuconv_error error = {0};
    if (!measure.distortion)
        return GC_EXIT_DONE;
    const gc_microphone_files microphones = microphone_files();
    gpuconv_status status = gc_ir_keep_files(measure.distortion, paths, count, &error);
    if (!status)
        status = gc_microphones_keep(&microphones, measure.distortion, &error);
    if (!status)
        status = gc_plot_check(measure.distortion, &error);
    return gc_print_failure(status, &error);
}

static int run_measure(const char **arguments, int count) {
    const int sound = gc_choose("--sound", measure.sound, GC_WORDS_SOUND);
    if (measure.list)
        return gc_list_devices((gc_sound_choice)sound);
    if (measure.play && count != 1)
        return gc_print_error(GC_EXIT_USAGE, "with --play one file is needed, IR, not %d; try --help", count);
    if ((measure.distortion || measure.csv || measure.calibration || measure.calibrator) && !measure.play && count != 3)
        return gc_print_error(GC_EXIT_USAGE, "distortion and microphones need --play IR, or RECORDING SWEEP IR; try "
                                             "--help");
    if (measure.positions > 1 && (!measure.play || measure.distortion || measure.csv || measure.recording))
        return gc_print_error(GC_EXIT_USAGE, "--positions needs --play, and excludes --distortion, --csv and "
                                             "--recording, which are of one position; try --help");
    int refused = check_drawing(arguments, count);
    if (refused)
        return refused;
    if (measure.play && measure.positions > 1)
        return run_positions(arguments[0], sound);
    if (measure.play)
        return run_play(arguments[0], sound);
    if (count != 1 && count != 3)
        return gc_print_error(GC_EXIT_USAGE,
                              "one file is needed, SWEEP, or three, RECORDING SWEEP IR, not %d; try --help", count);
    if (count == 3)
        return run_recording(arguments);
    gpuconv_error error = {0};
    (void)gc_catch_signals();
    return gc_print_refusal(gc_sweep_write(&measure.sweep, arguments[0], &error), &error);
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
    {"calibration", '\0', POPT_ARG_ARGV, &measure.calibration, 0,
     "calibration file of the microphone, lines of frequency and dB, whose response is removed; once for all "
     "microphones, or once for each",
     "FILE"},
    {"calibrator", '\0', POPT_ARG_STRING, &measure.calibrator, 0,
     "recording of a calibrator with the same gain, for levels in dB SPL; one channel counts for all microphones",
     "FILE"},
    {"calibrator-level", '\0', POPT_ARG_DOUBLE, &measure.spl, GC_RANGE_SOUND_LEVEL,
     "level of the calibrator (default: 94)", "DB"},
    {"distortion", '\0', POPT_ARG_STRING, &measure.distortion, 0,
     "draw the harmonic distortion over frequency, as .svg, .png or .pdf (needs gnuplot)", "FILE"},
    {"csv", '\0', POPT_ARG_NONE, &measure.csv, 0, "print the harmonic distortion as a table with commas", NULL},
    {"play", '\0', POPT_ARG_NONE, &measure.play, 0,
     "play the sweep and record it at the same time, and write IR: levels are checked first", NULL},
    {"output", '\0', POPT_ARG_STRING, &measure.output, 0,
     "sound device that plays: its number or a part of its name; pulse:SINK for a sink of PulseAudio", "DEVICE"},
    {"input", '\0', POPT_ARG_STRING, &measure.input, 0,
     "sound device that records: its number or a part of its name; pulse:SOURCE for a source of PulseAudio", "DEVICE"},
    {"output-channel", '\0', POPT_ARG_INT, &measure.config.output, GC_RANGE_PLAYED_CHANNELS,
     "channel of the loudspeaker (default: 1)", "CHANNEL"},
    {"inputs", '\0', POPT_ARG_INT, &measure.config.inputs, GC_RANGE_PLAYED_CHANNELS,
     "number of inputs that are recorded, one for each microphone and the loopback (default: 1)", "COUNT"},
    {"loopback", '\0', POPT_ARG_INT, &measure.config.loopback, GC_RANGE_INPUT,
     "input that is wired to the output: its sweep is time zero of IR, which leaves it out", "INPUT"},
    {"repeat", '\0', POPT_ARG_INT, &measure.config.repeat, GC_RANGE_REPEAT,
     "number of sweeps that are averaged; doubling it lowers noise by 3 dB (default: 1)", "COUNT"},
    {"positions", '\0', POPT_ARG_INT, &measure.positions, GC_RANGE_REPEAT,
     "number of positions of the microphones: waits for Return before each, writes IR-1, IR-2 and so on, and prints the "
     "means of the figures (default: 1)",
     "COUNT"},
    {"noise", '\0', POPT_ARG_DOUBLE, &measure.config.noise, GC_RANGE_NOISE_TIME,
     "background noise that is recorded before the sweeps (default: 1)", "SECONDS"},
    {"no-check", '\0', POPT_ARG_NONE, &measure.no_check, 0, "do not check the levels first", NULL},
    {"recording", '\0', POPT_ARG_STRING, &measure.recording, 0, "also write the averaged recording to FILE", "FILE"},
    {"block", '\0', POPT_ARG_INT, &measure.config.block, GC_RANGE_BLOCK, "frames per block (default: 4096)", "FRAMES"},
    {"sound", '\0', POPT_ARG_STRING, &measure.sound, 0,
     "sound system (default: auto, PipeWire if it runs, else PortAudio, which has ALSA and JACK)", GC_WORDS_SOUND},
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
        "noise is too close to the decay. Of three or more sweeps (--repeat), one that a noise disturbed is named and "
        "left out.",
    .options = measure_table,
    .run = run_measure,
    .groups = measure_groups,
    .examples = {{"gpuconv ir measure sweep.wav --seconds 15", "writes a sweep of 15 seconds"},
                 {"gpuconv ir measure recording.wav sweep.wav room.wav", "computes the response from its recording"}}};
