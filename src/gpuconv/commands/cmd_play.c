/* gpuconv play and gpuconv live: real-time convolution on a sound device. */
#include "cli/cli.h"
#include "commands.h"
#include "gpuconv/play/player.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/visible.h"
#include "libtools/room/room_set.h"
#include "osc/osc.h"
#include "play_screen.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- The responses: files, and the files of folders -------------------------------------------------------------- */

enum { RESPONSES_MOST = 256 };

typedef struct play_files {
    char *path[RESPONSES_MOST];
    int count;
} play_files;

static int add_response(play_files *files, char *path) {
    if (!path)
        return gc_print_error(GC_EXIT_FAILED, "out of memory");
    if (files->count == RESPONSES_MOST) {
        free(path);
        return gc_print_error(GC_EXIT_USAGE, "more than %d responses; name fewer, or a smaller folder; try --help",
                              RESPONSES_MOST);
    }
    files->path[files->count++] = path;
    return GC_EXIT_DONE;
}

static int is_response(const struct dirent *entry) {
    return *entry->d_name != '.' &&
           gc_ending_find(entry->d_name, "wav|flac|aif|aiff|ogg|opus|mp3|caf|w64|rf64|au|conf|matrix") >= 0;
}

static int compare_names(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int add_folder(play_files *files, const char *folder) {
    struct dirent **list;
    int n = scandir(folder, &list, is_response, compare_names), result = GC_EXIT_DONE;
    if (n < 0)
        return gc_print_error(GC_EXIT_FAILED, "%s: %s", folder, strerror(errno));
    for (int i = 0; i < n; i++) {
        char *path = NULL;
        if (result == GC_EXIT_DONE)
            result = add_response(files, asprintf(&path, "%s/%s", folder, list[i]->d_name) < 0 ? NULL : path);
        free(list[i]);
    }
    free(list);
    if (n == 0)
        return gc_print_error(GC_EXIT_FAILED,
                              "%s: the folder has no response; responses end in .wav, .flac or the like", folder);
    return result;
}

/* Copies the paths; a folder is replaced by its files of audio and .conf and .matrix files in the order of their names,
 * without hidden ones. Prints an error. @return an exit status; the files must be freed in any case */
static int collect_responses(play_files *files, const char *const *paths, int count) {
    int result = GC_EXIT_DONE;
    files->count = 0;
    for (int i = 0; i < count && result == GC_EXIT_DONE; i++) {
        struct stat s;
        if (stat(paths[i], &s) == 0 && S_ISDIR(s.st_mode))
            result = add_folder(files, paths[i]);
        else
            result = add_response(files, strdup(paths[i]));
    }
    return result;
}

static void free_responses(play_files *files) {
    for (int i = 0; i < files->count; i++)
        free(files->path[i]);
    files->count = 0;
}

/* ---- The command ------------------------------------------------------------------------------------------------- */

int gc_list_devices(gc_sound_choice sound) {
    gpuconv_error error = {0};
    char *text = gc_sound_devices(sound, &error);
    if (!text)
        return gc_print_error(GC_EXIT_FAILED, "%s", error.message);
    (void)fputs(text, stdout); /* gc_end_program reports a failure */
    free(text);
    return GC_EXIT_DONE;
}

static const char words_backend[] = "cpu|cuda";

typedef struct options {
    gc_player_config config;
    char *osc, *midi, *backend, *sound;
    int list, quiet;
} options;

static gc_given given_settings[GC_SETTINGS];

/* Displays the state and handles keys until playing ends: at the end of IN, on a key, after --seconds, on a signal, or
 * when the device fails, which sets *failed. */
static int run_player(const options *o, gc_play_screen *screen, const volatile int *cancel, bool *failed) {
    gc_player *p = screen->player;
    const double period = o->config.follow ? 0.02 : 0.05;
    struct timespec interval = {0, (long)(1e9 * period)};
    gpuconv_error error = {0};
    gc_player_view v;
    int result = GC_EXIT_DONE;
    bool gpu = false;
    gc_player_get_view(p, &v);
    gc_sound_watch watch = {.rate = v.rate, .block = o->config.block};
    gc_play_screen_begin(screen);
    for (bool go = true; go;) {
        nanosleep(&interval, NULL);
        gc_player_get_view(p, &v);
        if (gpu && !v.gpu && v.device_active)
            fprintf(stderr, "%sgpuconv: the GPU was late for too long; the CPU now computes the tail\n",
                    screen->shown ? "\r\033[K" : "");
        gpu = v.gpu;
        if (v.rate != watch.rate && !o->quiet)
            gc_print(stderr, "%sgpuconv: PipeWire now runs at %.0f Hz\n", screen->shown ? "\r\033[K" : "", v.rate);
        watch.rate = v.rate;
        gc_play_screen_draw(screen, &v);
        go = gc_play_screen_handle(screen, &v);
        if (gc_player_follow(p, &error)) {
            result = gc_print_error(GC_EXIT_FAILED, "%s", error.message);
            break;
        }
        if (v.finished)
            break;
        if (gc_flag_is_raised(cancel)) {
            result = GC_EXIT_INTERRUPTED;
            break;
        }
        *failed = !gc_sound_works(&watch, v.device_active, v.frames, period);
        if (*failed)
            break;
    }
    gc_play_screen_end(screen);
    if (!o->quiet)
        gc_print(
            stderr,
            "gpuconv: load %.2f %% of real time, worst block %.1f %%; %lld late parts of the tail, %lld blocks that the "
            "device reports as late, %lld times the file was read too late\n",
            100 * v.mean_load, 100 * v.worst_load, (long long)v.late_blocks, (long long)v.xruns,
            (long long)v.underruns);
    return result;
}

/* Opens one remote control. @return an exit status */
static int open_control(const options *o, gc_play_screen *screen, const gc_control_system *system, const char *where) {
    gpuconv_error error = {0};
    int i = screen->controls;
    screen->control[i].system = system;
    gpuconv_status status = system->open(where, &screen->control[i].control, &error);
    if (status)
        return gc_print_failure(status, &error);
    screen->controls++;
    if (!o->quiet)
        fprintf(stderr, "gpuconv: remote control: %s\n", system->where(screen->control[i].control));
    return GC_EXIT_DONE;
}

static int open_controls(const options *o, gc_play_screen *screen) {
    int result = GC_EXIT_DONE;
    if (o->osc)
        result = open_control(o, screen, gc_control_osc(), o->osc);
    if (result != GC_EXIT_DONE || !o->midi)
        return result;
    gpuconv_error error = {0};
    const gc_control_system *midi;
    gpuconv_status status = gc_control_midi(&midi, &error);
    return status ? gc_print_failure(status, &error)
                  : open_control(o, screen, midi, strcmp(o->midi, "none") == 0 ? "" : o->midi);
}

static void close_controls(gc_play_screen *screen) {
    for (int i = 0; i < screen->controls; i++)
        screen->control[i].system->close(screen->control[i].control);
}

/* Prints how many samples of the input were replaced by silence. */
static void note_not_finite(const options *o, const gc_player *player, const char *input) {
    const long long count = (long long)gc_player_nonfinite(player);
    if (count && !o->quiet)
        (void)gc_print_error(0, "%s: %lld sample%s not finite (NaN or infinity) and taken as silence",
                             input ? input : "the input", count, count == 1 ? " was" : "s were");
}

/* Starts the player, runs it until playing ends, and stops it. @return an exit status */
static int start_and_stop(const options *o, gc_play_screen *screen, const volatile int *cancel) {
    gpuconv_error error = {0};
    int result = GC_EXIT_DONE;
    bool failed = false, recorded = false;
    gpuconv_status status = gc_player_start(screen->player, &error);
    if (!status) {
        result = run_player(o, screen, cancel, &failed);
        status = gc_player_stop(screen->player, failed, &recorded, &error);
    }
    if (failed && !status)
        status = gc_fail(&error, GPUCONV_ERROR_DEVICE, "the sound device has failed or was removed");
    return status ? gc_print_error(gc_exit_of(status), "%s%s%s", error.message,
                                   recorded ? "; what was played before is in " : "", recorded ? o->config.record : "")
                  : result;
}

static int play(const options *o, const char *input, const char *const *responses, int count) {
    static gc_room_job room;
    gpuconv_error error = {0};
    gc_player *player;
    gc_player_config config = o->config;
    gpuconv_job *job = &config.settings.job;
    gpuconv_status status = GPUCONV_OK;
    config.input = input;
    config.responses = responses;
    config.response_count = count;
    config.cancel = gc_catch_signals();
    if (gc_is_room(responses[0])) {
        status = gc_room_job_read(responses[0], job->receiver_path, &room, &error);
        job->room = &room.job;
    }
    if (!status)
        status = gc_player_new(&config, &player, &error);
    if (status)
        return gc_print_failure(status, &error);
    gc_player_view v;
    gc_player_get_view(player, &v);
    if (!o->quiet)
        gc_print(stderr, "gpuconv: %s, %.0f Hz, %s; %lld frames of latency added\n", v.system, v.rate, v.plan,
                 (long long)v.latency);
    char shown[256];
    if (!o->quiet && *v.applied)
        fprintf(stderr, "gpuconv: %s: %s\n", gc_visible(shown, sizeof shown, responses[0]), v.applied);
    gc_play_screen screen = {.player = player,
                             .names = responses,
                             .count = count,
                             .shown = isatty(STDERR_FILENO) && !o->quiet,
                             .quiet = o->quiet,
                             .live = !input};
    int result = open_controls(o, &screen);
    if (result == GC_EXIT_DONE)
        result = start_and_stop(o, &screen, config.cancel);
    note_not_finite(o, player, input);
    close_controls(&screen);
    gc_player_free(player);
    return result;
}

static int run(options *o, bool live, const char **paths, int count) {
    o->config.sound = (gc_sound_choice)gc_choose("--sound", o->sound, GC_WORDS_SOUND);
    if (o->list)
        return gc_list_devices(o->config.sound);
    const int backend = gc_choose("--backend", o->backend, words_backend);
    o->config.backend = backend > 0 ? GPUCONV_BACKEND_CUDA : GPUCONV_BACKEND_CPU;
    const int status = gc_given_settings_read(given_settings, &o->config.settings);
    if (status)
        return status;
    if (o->config.sink && (o->config.input_device || o->config.sound >= GC_SOUND_JACK || o->config.channels == 1 ||
                           o->config.channels > 16))
        return gc_print_error(GC_EXIT_USAGE,
                              "--sink is a sink of PipeWire with 2 to 16 --channels; it excludes --input "
                              "and other sound systems; try --help");
    gpuconv_error error = {0};
    if (o->osc && gc_osc_check(o->osc, &error))
        return gc_print_error(GC_EXIT_USAGE, "--osc: %s; try --help", error.message);
    if (count < (live ? 1 : 2))
        return gc_print_error(GC_EXIT_USAGE, live ? "a response is needed, IR; try --help"
                                                  : "a file and a response are needed, IN IR; try --help");
    play_files files;
    int result = collect_responses(&files, paths + !live, count - !live);
    if (result == GC_EXIT_DONE)
        result = play(o, live ? NULL : paths[0], (const char *const *)files.path, files.count);
    free_responses(&files);
    return result;
}

static options given = {.config = {.device = -1, .crossfade = 0.1}};

static int play_command(const char **arguments, int count) {
    return run(&given, false, arguments, count);
}

static int live_command(const char **arguments, int count) {
    return run(&given, true, arguments, count);
}

// clang-format off
#define COMMON_OPTIONS \
    {"output", '\0', POPT_ARG_STRING, &given.config.output_device, 0, "sound device to play on: its number, or a part of its name", "DEVICE"}, \
    {"block", '\0', POPT_ARG_INT, &given.config.block, GC_RANGE_BLOCK, "frames per block (default: the device's choice)", "FRAMES"}, \
    {"sound", '\0', POPT_ARG_STRING, &given.sound, 0, \
     "sound system (default: auto, PipeWire if it runs, else PortAudio)", GC_WORDS_SOUND}, \
    {"list-devices", '\0', POPT_ARG_NONE, &given.list, 0, "list the sound devices", NULL}, \
    GC_SETTINGS_OF_LEVELS(GC_SETTING_OPTION) \
    {"crossfade", '\0', POPT_ARG_DOUBLE, &given.config.crossfade, GC_RANGE_CROSSFADE, \
     "crossfade between responses (default: 0.1)", "SECONDS"}, \
    GC_SETTINGS_OF_LAYOUT(GC_SETTING_OPTION) GC_SETTINGS_OF_SPACE(GC_SETTING_OPTION) GC_SETTINGS_OF_MOTION(GC_SETTING_OPTION) \
    {"follow", '\0', POPT_ARG_STRING, &given.config.follow, 0, \
     "turn the head of a SOFA file: a text file with lines SECONDS YAW [PITCH [ROLL]], or a head tracker that sends OSC " \
     "messages /ypr with three floats to a UDP port, as --osc (default: 9000)", "FILE|osc[:[ADDRESS:]PORT]"}, \
    {"record", '\0', POPT_ARG_STRING, &given.config.record, 0, "also write the output to FILE, as floats", "FILE"}, \
    {"osc", '\0', POPT_ARG_STRING, &given.osc, 0, \
     "listen to OSC messages of this machine on a UDP port, or at the numeric ADDRESS of a network interface, such as " \
     "0.0.0.0 or [::] for all", "[ADDRESS:]PORT"}, \
    {"midi", '\0', POPT_ARG_STRING, &given.midi, 0, \
     "listen to MIDI through JACK, connected to this output port, or to none", "SOURCE|none"}, \
    {"seconds", '\0', POPT_ARG_DOUBLE, &given.config.seconds, GC_RANGE_TIME, \
     "stop after SECONDS of sound, which --record then has", "SECONDS"}, \
    {"backend", 'b', POPT_ARG_STRING, &given.backend, 0, \
     "where to compute the tail; the CPU takes over if the GPU is late for too long (default: cpu)", words_backend}, \
    {"device", '\0', POPT_ARG_INT, &given.config.device, GC_RANGE_DEVICE, "number of the CUDA device (default: the largest GPU)", "NUMBER"}, \
    {"latency", '\0', POPT_ARG_INT, &given.config.latency, GC_RANGE_LATENCY, \
     "latency that may be added to save work in each block (default: 0)", "FRAMES"}, \
    {"threads", 't', POPT_ARG_INT, &given.config.threads, GC_RANGE_RT_THREADS, "CPU threads for the tail (default: 1), or for --path and --head (default: one per core)", "COUNT"}, \
    {"quiet", 'q', POPT_ARG_NONE, &given.quiet, 0, "print only errors", NULL}, \
    GC_OPTIONS_END
// clang-format on

static struct poptOption play_table[] = {
    {"loop", '\0', POPT_ARG_NONE, &given.config.loop, 0, "start again at the end of IN", NULL},
    {"seek", '\0', POPT_ARG_DOUBLE, &given.config.seek, GC_RANGE_TIME, "start SECONDS after the beginning of IN",
     "SECONDS"},
    {"rate", '\0', POPT_ARG_DOUBLE, &given.config.rate, GC_RANGE_PLAYED_RATE,
     "sampling rate of the sound device (default: that of IN)", "HZ"},
    COMMON_OPTIONS};

static struct poptOption live_table[] = {
    {"input", '\0', POPT_ARG_STRING, &given.config.input_device, 0,
     "sound device to record from: its number, or a part of its name", "DEVICE"},
    {"sink", '\0', POPT_ARG_STRING | POPT_ARGFLAG_OPTIONAL, &given.config.sink, 0,
     "instead of recording be a sink of PipeWire that programs play into (default: "
     "gpuconv-sink)",
     "NAME"},
    {"channels", '\0', POPT_ARG_INT, &given.config.channels, GC_RANGE_PLAYED_CHANNELS,
     "channels of the input (default: 1) or of the sink (2 to 16, default: 2)", "COUNT"},
    {"rate", '\0', POPT_ARG_DOUBLE, &given.config.rate, GC_RANGE_PLAYED_RATE,
     "sampling rate of the sound device (default: 48000; a sink follows that of "
     "PipeWire unless a length, a recording or a head is asked for)",
     "HZ"},
    COMMON_OPTIONS};

static const gc_option_group play_groups[] = {{"loop", "Input"},
                                              {"rate", "Sound device"},
                                              {"gain", "Levels and output"},
                                              {"backend", "Computation"},
                                              {NULL, NULL}};

static const gc_option_group live_groups[] = {
    {"input", "Sound device"}, {"gain", "Levels and output"}, {"backend", "Computation"}, {NULL, NULL}};

#define REMOTE                                                                                                            \
    " OSC messages are /gpuconv/wet, /gpuconv/dry and /gpuconv/gain with decibels, /gpuconv/bypass and /gpuconv/pause "   \
    "with 0 or 1, /gpuconv/response with a number from 1, /gpuconv/next, /gpuconv/previous, /gpuconv/seek with seconds. " \
    "MIDI controllers are 91 wet, 92 dry, 7 gain, 80 bypass, 81 next, 82 previous; a program change chooses an IR."

const gc_command gc_command_play = {
    .name = "gpuconv play",
    .arguments = "IN IR...",
    .about = "Plays an audio file through an impulse response.",
    .details =
        "Keys: space pauses, b bypasses, + and - change the gain, w and W wet, d and D dry, n and p choose the next or "
        "previous IR, 1 to 9 choose one by its number, comma and full stop skip 5 seconds back or forward, ? lists the keys and "
        "the responses, q quits. An IR that is a folder stands for the responses in it." REMOTE,
    .options = play_table,
    .run = play_command,
    .groups = play_groups,
    .examples = {{"gpuconv play samples/speech.flac impulses/hall.flac", "plays speech in a hall"},
                 {"gpuconv play samples/drums.flac impulses --loop", "repeats drums; n and p walk through a folder"}}};

const gc_command gc_command_live = {
    .name = "gpuconv live",
    .arguments = "IR...",
    .about = "Plays a live input or other programs through an impulse response, without added latency.",
    .details =
        "Keys: space pauses, b bypasses, + and - change the gain, w and W wet, d and D dry, n and p choose the next or "
        "previous IR, 1 to 9 choose one by its number, ? lists the keys and the responses, q quits. An IR that is a folder stands "
        "for the responses in it." REMOTE,
    .options = live_table,
    .run = live_command,
    .groups = live_groups,
    .examples = {{"gpuconv live impulses/hall.flac --dry -6", "plays the default input in a hall"},
                 {"gpuconv live impulses/hall.flac --sink", "is a sink of PipeWire for other programs"}}};
