/* gpuconv play and gpuconv live: through a response, and heard at once. */
#include "cli/cli.h"
#include "commands.h"
#include "gpuconv/play/device.h"
#include "gpuconv/play/player.h"
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
    int block, channels, threads, loop, list, quiet, device, latency, chosen;
} options;

static int list_devices(void) {
    gpuconv_error error = {0};
    const gc_sound_system *system;
    char *text = gc_sound_load(&system, &error) == GPUCONV_OK ? system->list(&error) : NULL;
    if (!text)
        return gc_exit(GC_EXIT_FAILED, "%s", error.message);
    (void)fputs(text, stdout); /* gc_end tells of a failure */
    free(text);
    return GC_EXIT_DONE;
}

/* ---- On a terminal ----------------------------------------------------------------------------------------------- */

static struct termios before;
static bool raw;

static void leave_raw(void) {
    if (raw)
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &before);
    raw = false;
}

/* Keys come one by one and are not shown. */
static void enter_raw(void) {
    struct termios now;
    if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &before) != 0)
        return;
    now = before;
    now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    now.c_cc[VMIN] = 0;
    now.c_cc[VTIME] = 0;
    raw = tcsetattr(STDIN_FILENO, TCSANOW, &now) == 0;
    if (raw)
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

/* What a key does; false: quit. */
static bool obey(gc_player *p, const gc_player_view *v, int key, int responses) {
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
    case 'D': /* from none at all upwards: where it can be heard */
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

/* Until it is through, is told to end, or the device is gone. */
static int follow(const options *o, gc_player *p, const char *const *names, int count, const volatile int *cancel) {
    bool shown = isatty(STDERR_FILENO) && !o->quiet;
    struct timespec turn = {0, 50000000};
    gc_player_view v;
    int result = GC_EXIT_DONE;
    bool gpu = false;
    double played = 0;
    if (shown)
        enter_raw();
    for (bool go = true; go; played += 0.05) {
        nanosleep(&turn, NULL);
        gc_player_get_view(p, &v);
        if (gpu && !v.gpu && v.device_active)
            fprintf(stderr, "%sgpuconv: the GPU was late for too long; the CPU has taken the tail over\n",
                    shown ? "\r\033[K" : "");
        gpu = v.gpu;
        if (shown)
            print_view(&v, names[v.response]);
        unsigned char key;
        while (go && raw && read(STDIN_FILENO, &key, 1) == 1)
            go = obey(p, &v, key, count);
        if (v.finished || (o->seconds > 0 && played >= o->seconds))
            break;
        if (*cancel) {
            result = GC_EXIT_INTERRUPTED;
            break;
        }
        if (!v.device_active) {
            result = gc_exit(GC_EXIT_FAILED, "the sound device is gone; what was recorded is kept");
            break;
        }
    }
    leave_raw();
    if (shown)
        fputs("\r\033[K", stderr);
    if (!o->quiet)
        fprintf(stderr,
                "gpuconv: load %.2f %% of the time there was, worst block %.1f %%; %lld parts of the tail missed, "
                "%lld blocks late by the device's word, %lld times the file came too late\n",
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
                               .backend = (gpuconv_backend)(o->chosen + GPUCONV_BACKEND_CPU),
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
        return gc_exit(gc_exit_of(status), "%s", error.message);
    gc_player_view v;
    gc_player_get_view(player, &v);
    if (!o->quiet)
        fprintf(stderr, "gpuconv: %.0f Hz, %s; %lld frames of latency added\n", v.rate, v.plan, (long long)v.latency);
    int result = GC_EXIT_FAILED;
    status = gc_player_start(player, &error);
    if (!status)
        result = follow(o, player, responses, count, config.cancel);
    if (!status)
        status = gc_player_stop(player, &error);
    if (status)
        result = gc_exit(gc_exit_of(status), "%s", error.message);
    gc_player_free(player);
    return result;
}

static int run(options *o, bool live, const char **paths, int count) {
    if (o->list)
        return list_devices();
    o->chosen = gc_choose("--backend", o->backend, words_backend);
    if (o->chosen < 0)
        return GC_EXIT_USAGE;
    if (count < (live ? 1 : 2))
        return gc_exit(GC_EXIT_USAGE, live ? "a response is needed; try --help"
                                           : "a file and a response are needed, IN IR; try --help");
    if (count > RESPONSES_MOST)
        return gc_exit(GC_EXIT_USAGE, "%d files are too many; %d are taken; try --help", count, RESPONSES_MOST);
    return play(o, live ? NULL : paths[0], paths + !live, count - !live);
}

static options given = {.device = -1, .dry = -HUGE_VAL, .crossfade = 0.1, .channels = 1};

static int play_command(const char **arguments, int count) {
    return run(&given, false, arguments, count);
}

static int live_command(const char **arguments, int count) {
    return run(&given, true, arguments, count);
}

static struct poptOption table[] = {
    {"list-devices", 'L', POPT_ARG_NONE, &given.list, 0, "tell the sound devices", NULL},
    {"output", 'o', POPT_ARG_STRING, &given.output, 0, "device: its number, or part of its name", "DEVICE"},
    {"input", 'i', POPT_ARG_STRING, &given.source, 0, "live: device to listen to", "DEVICE"},
    {"channels", 'c', POPT_ARG_INT, &given.channels, GC_RANGE_PLAYED_CHANNELS,
     "live: channels of the input (default: 1)", "COUNT"},
    {"block", 'B', POPT_ARG_INT, &given.block, GC_RANGE_BLOCK, "frames of a block (default: the device's choice)",
     "FRAMES"},
    {"rate", 'r', POPT_ARG_DOUBLE, &given.rate, GC_RANGE_PLAYED_RATE,
     "frames a second of the device (default: the file's, live 48000)", "HZ"},
    {"gain", 'g', POPT_ARG_DOUBLE, &given.gain, GC_RANGE_LEVEL, "of everything, in decibels (default: 0)", "DB"},
    {"wet", 'w', POPT_ARG_DOUBLE, &given.wet, GC_RANGE_LEVEL, "of what was convolved (default: 0)", "DB"},
    {"dry", 'd', POPT_ARG_DOUBLE, &given.dry, GC_RANGE_LEVEL, "of the input itself (default: none)", "DB"},
    {"crossfade", 'x', POPT_ARG_DOUBLE, &given.crossfade, GC_RANGE_CROSSFADE,
     "between responses, in seconds (default: 0.1)", "SECONDS"},
    {"loop", 'l', POPT_ARG_NONE, &given.loop, 0, "play: again and again", NULL},
    {"seek", 's', POPT_ARG_DOUBLE, &given.seek, GC_RANGE_TIME, "play: begin there", "SECONDS"},
    {"seconds", 'S', POPT_ARG_DOUBLE, &given.seconds, GC_RANGE_TIME, "end after so long", "SECONDS"},
    {"record", 'R', POPT_ARG_STRING, &given.record, 0, "a file that gets what is heard, as floats", "FILE"},
    {"backend", 'b', POPT_ARG_STRING, &given.backend, 0,
     "where the tail is computed (default: cpu); a GPU that is late for too long is given up", words_backend},
    {"device", '\0', POPT_ARG_INT, &given.device, GC_RANGE_DEVICE, "CUDA device number (default: the largest)",
     "NUMBER"},
    {"latency", '\0', POPT_ARG_INT, &given.latency, GC_RANGE_LATENCY,
     "may be added, for less work in each block (default: 0)", "FRAMES"},
    {"threads", 't', POPT_ARG_INT, &given.threads, GC_RANGE_RT_THREADS, "for the tail (default: 1)", "COUNT"},
    {"quiet", 'q', POPT_ARG_NONE, &given.quiet, 0, "say nothing but errors", NULL},
    GC_OPTIONS_END};

const gc_command gc_command_play = {
    "gpuconv play", "IN IR...",
    "Plays a file through a response.\n"
    "Keys: space pause, b bypass, + - gain, w W wet, d D dry, n p next and previous response,\n"
    ", . five seconds back and on, q quit.",
    table, play_command};

const gc_command gc_command_live = {
    "gpuconv live", "IR...",
    "Plays the microphone or line through a response, without added latency.\n"
    "Keys: space pause, b bypass, + - gain, w W wet, d D dry, n p next and previous response, q quit.",
    table, live_command};
