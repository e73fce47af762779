/* Draws the status line of playing, and handles keys and remote control. */
#include "play_screen.h"

#include "cli/terminal.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/os.h"
#include "libgpuconv/core/visible.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    METER_LEAST = 10,
    METER_MOST = 24,
    NOTE_DRAWS = 40,
    HOLD_LOOKS = 40,
    EVENTS = 1000 /* of a control that are taken at a time */
};

static bool is_raw;

static void leave_raw(void) {
    if (is_raw)
        gc_os_leave_raw();
    is_raw = false;
}

void gc_play_screen_begin(gc_play_screen *s) {
    if (!s->shown)
        return;
    is_raw = gc_os_enter_raw();
    if (is_raw)
        (void)atexit(leave_raw);
    if (is_raw)
        (void)snprintf(s->note, sizeof s->note, "? lists the keys");
    s->note_left = NOTE_DRAWS;
}

/* Prints how many lines were left out. */
static void print_left_out(gc_play_screen *s) {
    if (s->left_out)
        fprintf(stderr, "%sgpuconv: %d more such lines were left out\n", s->shown ? "\r\033[K" : "", s->left_out);
    s->left_out = 0;
}

/* Prints a line about a change of the response, unless quiet. A remote control may ask for thousands a second: after a
 * line the next ones are counted until two seconds have passed without one. */
static void say(gc_play_screen *s, const char *about, const char *text) {
    char shown[256];
    if (s->quiet)
        return;
    if (s->hold)
        s->left_out++;
    else
        fprintf(stderr, "%sgpuconv: %s%s%s\n", s->shown ? "\r\033[K" : "", gc_visible(shown, sizeof shown, about),
                *about ? ": " : "", text);
    s->hold = HOLD_LOOKS;
}

void gc_play_screen_end(gc_play_screen *s) {
    leave_raw();
    print_left_out(s);
    if (s->shown)
        fputs("\r\033[K", stderr);
}

/* ---- The line ---------------------------------------------------------------------------------------------------- */

/* Appends a level meter, which is as wide at every level. */
static void add_meter(gc_status_line *line, int cells, float peak, bool clipped) {
    double level = peak > 0 ? 20 * log10((double)peak) : -99;
    const int all = clipped ? cells - 4 : cells; /* the last four cells say CLIP */
    int lit = (int)((level + 60) / 60 * cells);
    lit = lit < 0 ? 0 : lit > all ? all : lit;
    gc_status_part(line, 1, "[%.*s%*s%s]", lit, "########################", all - lit, "", clipped ? "CLIP" : "");
}

void gc_play_screen_draw(gc_play_screen *s, const gc_player_view *v) {
    gc_status_line line = {0};
    const gc_names names = {s->names, s->count, v->response};
    if (!s->shown)
        return;
    const int cells = (gc_terminal_columns(STDERR_FILENO) - 50) / 3;
    gc_status_time(&line, 0, v->paused ? "|| " : ">  ", v->position, "");
    if (v->duration >= 0)
        gc_status_time(&line, 3, " / ", v->duration, "");
    gc_status_part(&line, 0, " ");
    for (int c = 0; c < v->outputs && c < 2; c++)
        add_meter(&line,
                  cells < METER_LEAST  ? METER_LEAST
                  : cells > METER_MOST ? METER_MOST
                                       : cells,
                  v->peak[c], v->clipped[c]);
    gc_status_part(&line, 5, " %s,", v->gpu ? "GPU" : "CPU");
    gc_status_part(&line, 4, " load %.1f %%,", 100 * v->mean_load);
    gc_status_part(&line, 5, " worst %.0f %%,", 100 * v->worst_load);
    if (v->late_blocks || v->xruns || v->underruns)
        gc_status_part(&line, 2, " missed %lld, late %lld, starved %lld,", (long long)v->late_blocks,
                       (long long)v->xruns, (long long)v->underruns);
    if (s->count > 1)
        gc_status_part(&line, 2, " %d/%d", v->response + 1, s->count);
    gc_status_part(&line, 0, " ");
    gc_status_name(&line, &names);
    if (v->bypassed)
        gc_status_part(&line, 1, " (bypassed)");
    if (s->note_left > 0)
        gc_status_part(&line, 0, " | %s", s->note);
    s->note_left -= s->note_left > 0;
    gc_meter_draw(&line);
}

/* ---- Changes ----------------------------------------------------------------------------------------------------- */

/* Shows a level as the value that was changed last. */
static void note_level(gc_play_screen *s, const char *name, double level) {
    if (level <= -200) /* a factor of zero, or less than any sample holds */
        (void)snprintf(s->note, sizeof s->note, "%s off", name);
    else
        (void)gc_format(s->note, sizeof s->note, "%s %+.1f dB", name, level);
    s->note_left = NOTE_DRAWS;
}

static void note(gc_play_screen *s, const char *text) {
    (void)snprintf(s->note, sizeof s->note, "%s", text);
    s->note_left = NOTE_DRAWS;
}

static void set_level(gc_play_screen *s, const gc_player_view *v, gc_control_kind kind, double level) {
    level = fmin(level, 24);
    gc_player_set_levels(s->player, kind == GC_CONTROL_GAIN ? level : v->gain, kind == GC_CONTROL_WET ? level : v->wet,
                         kind == GC_CONTROL_DRY ? level : v->dry);
    note_level(s, kind == GC_CONTROL_GAIN ? "gain" : kind == GC_CONTROL_WET ? "wet" : "dry", level);
}

static void select_response(gc_play_screen *s, int number) {
    gpuconv_error error = {0};
    gc_player_view v;
    if (gc_player_select_response(s->player, number, &error)) {
        say(s, "", error.message);
        return;
    }
    note(s, "response changed");
    gc_player_get_view(s->player, &v);
    if (*v.applied)
        say(s, s->names[number], v.applied);
}

/* Makes the change that a key or a remote control asked for; one of the response only in *number, because it takes
 * time and only the last one counts. */
static void apply(gc_play_screen *s, const gc_player_view *v, const gc_control_event *e, int *number) {
    switch (e->kind) {
    case GC_CONTROL_WET:
    case GC_CONTROL_DRY:
    case GC_CONTROL_GAIN:
        set_level(s, v, e->kind, e->value);
        break;
    case GC_CONTROL_BYPASS:
        gc_player_bypass(s->player, e->value > 0);
        note(s, e->value > 0 ? "bypass on" : "bypass off");
        break;
    case GC_CONTROL_PAUSE:
        gc_player_pause(s->player, e->value > 0);
        note(s, e->value > 0 ? "paused" : "playing");
        break;
    case GC_CONTROL_RESPONSE:
        *number = (int)e->value - 1;
        break;
    case GC_CONTROL_STEP:
        *number = ((*number < 0 || *number >= s->count ? v->response : *number) + (e->value > 0 ? 1 : s->count - 1)) %
                  s->count;
        break;
    case GC_CONTROL_SEEK:
        gc_player_seek(s->player, e->value);
        break;
    }
}

static void print_keys(const gc_play_screen *s) {
    static const char *const keys[] = {"space  pause or go on",
                                       "b      bypass: the input alone",
                                       "+ -    gain",
                                       "W w    wet, the convolved signal",
                                       "D d    dry, the input",
                                       "n p    next or previous response",
                                       "1..9   response of that number",
                                       ", .    5 seconds back or forward",
                                       "?      this list",
                                       "q      quit"};
    fputs("\r\033[K", stderr);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!s->live || keys[i][0] != ',')
            fprintf(stderr, "%s\n", keys[i]);
    for (int i = 0; i < s->count; i++) {
        char name[400];
        const gc_names names = {s->names, s->count, i};
        gc_shorten_among(&names, gc_terminal_columns(STDERR_FILENO) - 8, name, sizeof name);
        fprintf(stderr, "%5d  %s\n", i + 1, name);
    }
}

/* Returns whether a key asks for a change, which `*e` receives. */
static bool read_key(const gc_player_view *v, int key, gc_control_event *e) {
    double step = strchr("+WD", key) ? 1 : -1;
    if (key >= '1' && key <= '9') {
        *e = (gc_control_event){GC_CONTROL_RESPONSE, key - '0'};
        return true;
    }
    switch (key) {
    case ' ':
        *e = (gc_control_event){GC_CONTROL_PAUSE, !v->paused};
        return true;
    case 'b':
        *e = (gc_control_event){GC_CONTROL_BYPASS, !v->bypassed};
        return true;
    case '+':
    case '-':
        *e = (gc_control_event){GC_CONTROL_GAIN, fmax(v->gain, -60) + step};
        return true;
    case 'w':
    case 'W': /* a level below -60 dB is inaudible: begin there */
        *e = (gc_control_event){GC_CONTROL_WET, fmax(v->wet, -60) + step};
        return true;
    case 'd':
    case 'D':
        *e = (gc_control_event){GC_CONTROL_DRY, fmax(v->dry, -60) + step};
        return true;
    case 'n':
    case 'p':
        *e = (gc_control_event){GC_CONTROL_STEP, key == 'n' ? 1 : -1};
        return true;
    case ',':
    case '.':
        *e = (gc_control_event){GC_CONTROL_SEEK, v->position + (key == '.' ? 5 : -5)};
        return true;
    default:
        return false;
    }
}

bool gc_play_screen_handle(gc_play_screen *s, const gc_player_view *view) {
    gc_player_view v = *view;
    gc_control_event e;
    unsigned char key;
    int number = -1;
    while (is_raw && read(STDIN_FILENO, &key, 1) == 1) {
        if (key == 'q')
            return false;
        if (key == '?')
            print_keys(s);
        if (read_key(&v, key, &e)) {
            apply(s, &v, &e, &number);
            gc_player_get_view(s->player, &v);
        }
    }
    for (int i = 0; i < s->controls; i++)
        for (int n = 0; n < EVENTS && s->control[i].system->take(s->control[i].control, &e); n++) {
            apply(s, &v, &e, &number);
            gc_player_get_view(s->player, &v);
        }
    if (number >= 0)
        select_response(s, number);
    if (s->hold && --s->hold == 0)
        print_left_out(s);
    return true;
}
