/* gpuconv play and gpuconv live: through a response, and heard at once. */
#include "cli.h"
#include "gpuconv/play/device.h"
#include "gpuconv/play/player.h"
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
    char *text = gc_sound_find(&system, &error) == GPUCONV_OK ? system->list(&error) : NULL;
    if (!text)
        return gc_exit(GC_EXIT_FAILED, "%s", error.message);
    bool bad = fputs(text, stdout) < 0 || fflush(stdout) != 0;
    free(text);
    return bad ? gc_exit(GC_EXIT_FAILED, "the list cannot be written") : GC_EXIT_DONE;
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

static void print_meter(float peak, bool clipped) {
    double level = peak > 0 ? 20 * log10((double)peak) : -99;
    int lit = (int)((level + 60) / 60 * METER);
    lit = lit < 0 ? 0 : lit > METER ? METER : lit;
    fprintf(stderr, "[%.*s%*s%s]", lit, "########################", METER - lit, "", clipped ? "CLIP" : "");
}

static void print_view(const gc_player_view *v, const char *name) {
    fprintf(stderr, "\r\033[K%s ", v->paused ? "||" : "> ");
    gc_print_time(v->position);
    if (v->duration >= 0) {
        fputs(" / ", stderr);
        gc_print_time(v->duration);
    }
    fputc(' ', stderr);
    for (int c = 0; c < v->outputs && c < 2; c++)
        print_meter(v->peak[c], v->clipped[c]);
    fprintf(stderr, " %s, load %.1f %%, worst %.0f %%", v->gpu ? "GPU" : "CPU", 100 * v->mean, 100 * v->worst);
    if (v->missed || v->gaps || v->starved)
        fprintf(stderr, ", missed %lld, late %lld, starved %lld", (long long)v->missed, (long long)v->gaps,
                (long long)v->starved);
    fprintf(stderr, " %s%s", name, v->bypassed ? " (bypassed)" : "");
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
        gc_player_level(p, v->gain + (key == '+' ? 1 : -1), v->wet, v->dry);
        break;
    case 'w':
    case 'W':
        gc_player_level(p, v->gain, v->wet + (key == 'W' ? 1 : -1), v->dry);
        break;
    case 'd':
    case 'D': /* from none at all upwards: where it can be heard */
        gc_player_level(p, v->gain, v->wet, (v->dry < -60 ? -60 : v->dry) + (key == 'D' ? 1 : -1));
        break;
    case 'n':
    case 'p':
        status = gc_player_choose(p, (v->response + (key == 'n' ? 1 : responses - 1)) % responses, &error);
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
static int follow(const options *o, gc_player *p, const char *const *names, int count) {
    const volatile int *cancel = gc_catch_signals();
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
        gc_player_look(p, &v);
        if (gpu && !v.gpu && v.alive)
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
        if (!v.alive) {
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
                100 * v.mean, 100 * v.worst, (long long)v.missed, (long long)v.gaps, (long long)v.starved);
    return result;
}

static int play(const options *o, const char *input, const char *const *responses, int count) {
    gpuconv_error error = {0};
    gc_player *player;
    gc_player_config config = {.input = input,
                               .responses = responses,
                               .count = count,
                               .output = o->output,
                               .source = o->source,
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
                               .crossfade = o->crossfade};
    gpuconv_status status = gc_player_new(&config, &player, &error);
    if (status)
        return gc_exit(GC_EXIT_FAILED, "%s", error.message);
    gc_player_view v;
    gc_player_look(player, &v);
    if (!o->quiet)
        fprintf(stderr, "gpuconv: %.0f Hz, %s; %lld frames of latency added\n", v.rate, v.plan, (long long)v.latency);
    int result = GC_EXIT_FAILED;
    status = gc_player_start(player, &error);
    if (!status)
        result = follow(o, player, responses, count);
    if (!status)
        status = gc_player_stop(player, &error);
    if (status)
        result = gc_exit(GC_EXIT_FAILED, "%s", error.message);
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
        return gc_exit(GC_EXIT_USAGE, "that many responses are not taken; 255 are");
    if (o->latency < 0 || o->latency > 1 << 20 || o->device < -1)
        return gc_exit(GC_EXIT_USAGE, "--latency is 0 to 1048576 frames, --device 0 or more; try --help");
    if (o->block < 0 || o->block > 65536 || o->channels < 1 || o->channels > GC_PLAYER_CHANNELS || o->threads < 0 ||
        o->threads > 64)
        return gc_exit(GC_EXIT_USAGE, "--block is 1 to 65536, --channels 1 to 64, --threads 1 to 64; try --help");
    if (!(o->gain >= -200 && o->gain <= 200 && o->wet >= -200 && o->wet <= 200 && o->dry <= 200) ||
        !(o->crossfade >= 0 && o->crossfade <= 60) || !(o->seek >= 0) || !(o->rate >= 0 && o->rate <= 1e6))
        return gc_exit(GC_EXIT_USAGE,
                       "levels lie within -200 and 200 dB, --crossfade is 0 to 60, --seek 0 or more; try "
                       "--help");
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
    {"channels", 'c', POPT_ARG_INT, &given.channels, 0, "live: channels of the input (default: 1)", "COUNT"},
    {"block", 'B', POPT_ARG_INT, &given.block, 0, "frames of a block (default: the device's choice)", "FRAMES"},
    {"rate", 'r', POPT_ARG_DOUBLE, &given.rate, 0, "frames a second of the device (default: the file's, live 48000)",
     "HZ"},
    {"gain", 'g', POPT_ARG_DOUBLE, &given.gain, 0, "of everything, in decibels (default: 0)", "DB"},
    {"wet", 'w', POPT_ARG_DOUBLE, &given.wet, 0, "of what was convolved (default: 0)", "DB"},
    {"dry", 'd', POPT_ARG_DOUBLE, &given.dry, 0, "of the input itself (default: none)", "DB"},
    {"crossfade", 'x', POPT_ARG_DOUBLE, &given.crossfade, 0, "between responses, in seconds (default: 0.1)", "SECONDS"},
    {"loop", 'l', POPT_ARG_NONE, &given.loop, 0, "play: again and again", NULL},
    {"seek", 's', POPT_ARG_DOUBLE, &given.seek, 0, "play: begin there", "SECONDS"},
    {"seconds", 'S', POPT_ARG_DOUBLE, &given.seconds, 0, "end after so long", "SECONDS"},
    {"record", 'R', POPT_ARG_STRING, &given.record, 0, "a file that gets what is heard, as floats", "FILE"},
    {"backend", 'b', POPT_ARG_STRING, &given.backend, 0,
     "where the tail is computed (default: cpu); a GPU that is late for too long is given up", words_backend},
    {"device", '\0', POPT_ARG_INT, &given.device, 0, "CUDA device number (default: the largest)", "NUMBER"},
    {"latency", '\0', POPT_ARG_INT, &given.latency, 0, "may be added, for less work in each block (default: 0)",
     "FRAMES"},
    {"threads", 't', POPT_ARG_INT, &given.threads, 0, "for the tail (default: 1)", "COUNT"},
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
