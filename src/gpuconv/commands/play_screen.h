/* The terminal of `gpuconv play` and `gpuconv live`: the status line, the keys and remote control. */
#ifndef GPUCONV_COMMANDS_PLAY_SCREEN_H
#define GPUCONV_COMMANDS_PLAY_SCREEN_H

#include "gpuconv/play/control.h"
#include "gpuconv/play/player.h"

enum { GC_CONTROLS_MOST = 2 };

typedef struct gc_play_screen {
    gc_player *player;
    const char *const *names; /* of the responses */
    int count;
    bool shown, quiet, live;
    char note[100]; /* the value that was changed last */
    int note_left;  /* draws for which it is shown */
    int hold;       /* looks at the controls for which lines are counted instead of printed */
    int left_out;   /* lines that were counted */
    struct {
        const gc_control_system *system;
        gc_control *control;
    } control[GC_CONTROLS_MOST];
    int controls;
} gc_play_screen;

/* Makes the terminal deliver keys at once; undone by _end, and when the program exits. */
void gc_play_screen_begin(gc_play_screen *screen);
void gc_play_screen_end(gc_play_screen *screen);

/* Draws the status line, within the width of the terminal. */
void gc_play_screen_draw(gc_play_screen *screen, const gc_player_view *view);

/* Handles the keys and the remote control's events that have arrived. @return false: the user quits */
bool gc_play_screen_handle(gc_play_screen *screen, const gc_player_view *view);

#endif
