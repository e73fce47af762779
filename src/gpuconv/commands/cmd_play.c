/* gpuconv play and gpuconv live: real-time convolution on a sound device. */
#include "cli/cli.h"
#include "commands.h"
#include "gpuconv/play/device.h"
#include "gpuconv/play/player.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/visible.h"
#include "progress.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static const char words_backend[] = "cpu|cuda";

enum { RESPONSES_MOST = 256, METER = 24 };

typedef struct options {
    char *output, *source, *record;
    double rate, seek, gain, wet, dry, crossfade, seconds;
    char *backend;
    int block, channels, threads, loop, list, quiet, device, latency, backend_index;
} options;

static int list_devices(void) {
    gpuconv_error error = {0};
    const gc_sound_system *system;
    char *text = gc_sound_load(&system, &error) == GPUCONV_OK ? system->list(&error) : NULL;
    if (!text)
        return gc_print_error(GC_EXIT_FAILED, "%s", error.message);
    (void)fputs(text, stdout); /* gc_end_program reports a failure */
    free(text);
    return GC_EXIT_DONE;
}

/* ---- On a terminal ----------------------------------------------------------------------------------------------- */

static struct termios saved_terminal;
static bool is_raw;

static void leave_raw(void) {
    if (is_raw)
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &saved_terminal);
    is_raw = false;
}

/* Makes the terminal deliver keys at once, without echo. */
static void enter_raw(void) {
    struct termios now;
    if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &saved_terminal) != 0)
        return;
    now = saved_terminal;
    now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    now.c_cc[VMIN] = 0;
    now.c_cc[VTIME] = 0;
    is_raw = tcsetattr(STDIN_FILENO, TCSANOW, &now) == 0;
    if (is_raw)
        (void)atexit(leave_raw);
}

static void add_meter(gc_status_line *line, int rank, float peak, bool clipped) {
    double level = peak > 0 ? 20 * log10((double)peak) : -99;
    int lit = (int)((level + 60) / 60 * METER);
    lit = lit < 0 ? 0 : lit > METER ? METER : lit;
    gc_status_part(line, rank, "[%.*s%*s%s]", lit, "########################", METER - lit, "", clipped ? "CLIP" : "");
}

static void print_view(const gc_player_view *v, const char *name) {
    gc_status_line line = {0};
    gc_status_time(&line, 0, v->paused ? "|| " : ">  ", v->position, "");
    if (v->duration >= 0)
        gc_status_time(&line, 1, " / ", v->duration, "");
    gc_status_part(&line, 0, " ");
    for (int c = 0; c < v->outputs && c < 2; c++)
        add_meter(&line, 3 + c, v->peak[c], v->clipped[c]);
    gc_status_part(&line, 5, " %s,", v->gpu ? "GPU" : "CPU");
    gc_status_part(&line, 2, " load %.1f %%,", 100 * v->mean_load);
    gc_status_part(&line, 5, " worst %.0f %%,", 100 * v->worst_load);
    if (v->late_blocks || v->xruns || v->underruns)
        gc_status_part(&line, 1, " missed %lld, late %lld, starved %lld,", (long long)v->late_blocks,
                       (long long)v->xruns, (long long)v->underruns);
    char shown[256];
    gc_status_part(&line, 0, " ");
    gc_status_name(&line, gc_visible(shown, sizeof shown, name));
    if (v->bypassed)
        gc_status_part(&line, 1, " (bypassed)");
    gc_meter_draw(&line);
}

/* Handles a key. Returns false for the key that quits. */
static bool handle_key(gc_player *p, const gc_player_view *v, int key, int responses) {
    gpuconv_error error = {0};
    gpuconv_status status = GPUCONV_OK;
    switch (key) {
    case 'q':
        return false;
    case ' ':
        gc_player_pause(p, !v->paused);
        break;
    case 'b':
        gc_player_bypass(p, !v->bypassed);
        break;
    case '+':
    case '-':
        gc_player_set_levels(p, v->gain + (key == '+' ? 1 : -1), v->wet, v->dry);
        break;
    case 'w':
    case 'W':
        gc_player_set_levels(p, v->gain, v->wet + (key == 'W' ? 1 : -1), v->dry);
        break;
    case 'd':
    case 'D': /* a dry level below -60 dB is inaudible: begin there */
        gc_player_set_levels(p, v->gain, v->wet, (v->dry < -60 ? -60 : v->dry) + (key == 'D' ? 1 : -1));
        break;
    case 'n':
    case 'p':
        status = gc_player_select_response(p, (v->response + (key == 'n' ? 1 : responses - 1)) % responses, &error);
        break;
    case ',':
    case '.':
        gc_player_seek(p, v->position + (key == '.' ? 5 : -5));
        break;
    default:
        break;
    }
    if (status)
        fprintf(stderr, "\r\033[Kgpuconv: %s\n", error.message);
    return true;
}

/* Displays the state and handles keys until playing ends: at the end of IN, on a key, after --seconds, on a signal, or
 * when the device fails. */
static int run_player(const options *o, gc_player *p, const char *const *names, int count, const volatile int *cancel) {
    bool shown = isatty(STDERR_FILENO) && !o->quiet;
    struct timespec interval = {0, 50000000};
    gc_player_view v;
    int result = GC_EXIT_DONE;
    bool gpu = false;
    double played = 0;
    if (shown)
        enter_raw();
    for (bool go = true; go; played += 0.05) {
        nanosleep(&interval, NULL);
        gc_player_get_view(p, &v);
        if (gpu && !v.gpu && v.device_active)
            fprintf(stderr, "%sgpuconv: the GPU was late for too long; the CPU now computes the tail\n",
                    shown ? "\r\033[K" : "");
        gpu = v.gpu;
        if (shown)
            print_view(&v, names[v.response]);
        unsigned char key;
        while (go && is_raw && read(STDIN_FILENO, &key, 1) == 1)
            go = handle_key(p, &v, key, count);
        if (v.finished || (o->seconds > 0 && played >= o->seconds))
            break;
        if (gc_flag_is_raised(cancel)) {
            result = GC_EXIT_INTERRUPTED;
            break;
        }
        if (!v.device_active) {
            result =
                gc_print_error(GC_EXIT_FAILED, "the sound device has failed or was removed; the recording is kept");
            break;
        }
    }
    leave_raw();
    if (shown)
        fputs("\r\033[K", stderr);
    if (!o->quiet)
        fprintf(
            stderr,
            "gpuconv: load %.2f %% of real time, worst block %.1f %%; %lld late parts of the tail, %lld blocks that the "
            "device reports as late, %lld times the file was read too late\n",
            100 * v.mean_load, 100 * v.worst_load, (long long)v.late_blocks, (long long)v.xruns,
            (long long)v.underruns);
    return result;
}

static int play(const options *o, const char *input, const char *const *responses, int count) {
    gpuconv_error error = {0};
    gc_player *player;
    gc_player_config config = {.input = input,
                               .responses = responses,
                               .response_count = count,
                               .output_device = o->output,
                               .input_device = o->source,
                               .record = o->record,
                               .rate = o->rate,
                               .block = o->block,
                               .channels = o->channels,
                               .threads = o->threads,
                               .backend = (gpuconv_backend)(o->backend_index + GPUCONV_BACKEND_CPU),
                               .device = o->device,
                               .latency = o->latency,
                               .loop = o->loop,
                               .seek = o->seek,
                               .gain = o->gain,
                               .wet = o->wet,
                               .dry = o->dry,
                               .crossfade = o->crossfade,
                               .cancel = gc_catch_signals()};
    gpuconv_status status = gc_player_new(&config, &player, &error);
    if (status)
        return gc_print_error(gc_exit_of(status), "%s", error.message);
    gc_player_view v;
    gc_player_get_view(player, &v);
    if (!o->quiet)
        fprintf(stderr, "gpuconv: %.0f Hz, %s; %lld frames of latency added\n", v.rate, v.plan, (long long)v.latency);
    int result = GC_EXIT_FAILED;
    status = gc_player_start(player, &error);
    if (!status)
        result = run_player(o, player, responses, count, config.cancel);
    if (!status)
        status = gc_player_stop(player, &error);
    if (status)
        result = gc_print_error(gc_exit_of(status), "%s", error.message);
    gc_player_free(player);
    return result;
}

static int run(options *o, bool live, const char **paths, int count) {
    if (o->list)
        return list_devices();
    o->backend_index = gc_choose("--backend", o->backend, words_backend);
    if (o->backend_index < 0)
        return GC_EXIT_USAGE;
    if (count < (live ? 1 : 2))
        return gc_print_error(GC_EXIT_USAGE, live ? "a response is needed, IR; try --help"
                                                  : "a file and a response are needed, IN IR; try --help");
    if (count > RESPONSES_MOST)
        return gc_print_error(GC_EXIT_USAGE, "%d files are too many; the limit is %d; try --help", count,
                              RESPONSES_MOST);
    return play(o, live ? NULL : paths[0], paths + !live, count - !live);
}

static options given = {.device = -1, .dry = -HUGE_VAL, .crossfade = 0.1, .channels = 1};

static int play_command(const char **arguments, int count) {
    return run(&given, false, arguments, count);
}

static int live_command(const char **arguments, int count) {
    return run(&given, true, arguments, count);
}

// clang-format off
#define COMMON_OPTIONS \
    {"output", '\0', POPT_ARG_STRING, &given.output, 0, "sound device to play on: its number, or a part of its name", "DEVICE"}, \
    {"block", '\0', POPT_ARG_INT, &given.block, GC_RANGE_BLOCK, "frames per block (default: the device's choice)", "FRAMES"}, \
    {"list-devices", '\0', POPT_ARG_NONE, &given.list, 0, "list the sound devices", NULL}, \
    {"gain", 'g', POPT_ARG_DOUBLE, &given.gain, GC_RANGE_LEVEL, "gain of the whole output in decibels (default: 0)", "DB"}, \
    {"wet", 'w', POPT_ARG_DOUBLE, &given.wet, GC_RANGE_LEVEL, "gain of the convolved signal in decibels (default: 0)", "DB"}, \
    {"dry", 'y', POPT_ARG_DOUBLE, &given.dry, GC_RANGE_LEVEL, \
     "gain in decibels at which the input itself is added (default: not added)", "DB"}, \
    {"crossfade", '\0', POPT_ARG_DOUBLE, &given.crossfade, GC_RANGE_CROSSFADE, \
     "crossfade between responses (default: 0.1)", "SECONDS"}, \
    {"record", '\0', POPT_ARG_STRING, &given.record, 0, "also write the output to FILE, as floats", "FILE"}, \
    {"seconds", '\0', POPT_ARG_DOUBLE, &given.seconds, GC_RANGE_TIME, "stop after SECONDS", "SECONDS"}, \
    {"backend", 'b', POPT_ARG_STRING, &given.backend, 0, \
     "where to compute the tail; the CPU takes over if the GPU is late for too long (default: cpu)", words_backend}, \
    {"device", '\0', POPT_ARG_INT, &given.device, GC_RANGE_DEVICE, "number of the CUDA device (default: the largest GPU)", "NUMBER"}, \
    {"latency", '\0', POPT_ARG_INT, &given.latency, GC_RANGE_LATENCY, \
     "latency that may be added to save work in each block (default: 0)", "FRAMES"}, \
    {"threads", 't', POPT_ARG_INT, &given.threads, GC_RANGE_RT_THREADS, "CPU threads for the tail (default: 1)", "COUNT"}, \
    {"quiet", 'q', POPT_ARG_NONE, &given.quiet, 0, "print only errors", NULL}, \
    GC_OPTIONS_END
// clang-format on

static struct poptOption play_table[] = {
    {"loop", '\0', POPT_ARG_NONE, &given.loop, 0, "start again at the end of IN", NULL},
    {"seek", '\0', POPT_ARG_DOUBLE, &given.seek, GC_RANGE_TIME, "start SECONDS after the beginning of IN", "SECONDS"},
    {"rate", '\0', POPT_ARG_DOUBLE, &given.rate, GC_RANGE_PLAYED_RATE,
     "sampling rate of the sound device (default: that of IN)", "HZ"},
    COMMON_OPTIONS};

static struct poptOption live_table[] = {{"input", '\0', POPT_ARG_STRING, &given.source, 0,
                                          "sound device to record from: its number, or a part of its name", "DEVICE"},
                                         {"channels", '\0', POPT_ARG_INT, &given.channels, GC_RANGE_PLAYED_CHANNELS,
                                          "channels of the input (default: 1)", "COUNT"},
                                         {"rate", '\0', POPT_ARG_DOUBLE, &given.rate, GC_RANGE_PLAYED_RATE,
                                          "sampling rate of the sound device (default: 48000)", "HZ"},
                                         COMMON_OPTIONS};

static const gc_option_group play_groups[] = {{"loop", "Input"},
                                              {"rate", "Sound device"},
                                              {"gain", "Levels and output"},
                                              {"backend", "Computation"},
                                              {NULL, NULL}};

static const gc_option_group live_groups[] = {
    {"input", "Sound device"}, {"gain", "Levels and output"}, {"backend", "Computation"}, {NULL, NULL}};

static const gc_renamed_option play_renamed[] = {{"-L", "--list-devices"}, {"-o", "--output"},  {"-B", "--block"},
                                                 {"-r", "--rate"},         {"-d", "-y, --dry"}, {"-x", "--crossfade"},
                                                 {"-S", "--seconds"},      {"-R", "--record"},  {"-l", "--loop"},
                                                 {"-s", "--seek"},         {NULL, NULL}};

static const gc_renamed_option live_renamed[] = {{"-L", "--list-devices"}, {"-o", "--output"},  {"-B", "--block"},
                                                 {"-r", "--rate"},         {"-d", "-y, --dry"}, {"-x", "--crossfade"},
                                                 {"-S", "--seconds"},      {"-R", "--record"},  {"-i", "--input"},
                                                 {"-c", "--channels"},     {NULL, NULL}};

const gc_command gc_command_play = {
    .name = "gpuconv play",
    .arguments = "IN IR...",
    .about = "Plays an audio file through an impulse response.",
    .details =
        "Keys: space pauses, b bypasses, + and - change the gain, w and W wet, d and D dry, n and p choose the next or "
        "previous IR, comma and full stop skip 5 seconds back or forward, q quits.",
    .options = play_table,
    .run = play_command,
    .groups = play_groups,
    .renamed = play_renamed,
    .examples = {{"gpuconv play samples/speech.flac impulses/hall.flac", "plays speech in a hall"},
                 {"gpuconv play samples/speech.flac impulses/hall.flac impulses/studio.flac --loop",
                  "repeats it; n and p change the response"}}};

const gc_command gc_command_live = {
    .name = "gpuconv live",
    .arguments = "IR...",
    .about = "Plays the microphone or line input through an impulse response, without added latency.",
    .details =
        "Keys: space pauses, b bypasses, + and - change the gain, w and W wet, d and D dry, n and p choose the next or "
        "previous IR, q quits.",
    .options = live_table,
    .run = live_command,
    .groups = live_groups,
    .renamed = live_renamed,
    .examples = {{"gpuconv live impulses/hall.flac --dry -6", "plays the default input in a hall"},
                 {"gpuconv live --list-devices", "lists the sound devices for --input and --output"}}};
