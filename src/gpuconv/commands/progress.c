/* Progress on standard error. */
#include "progress.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

enum { BAR = 24, LINE = 4096 };

gc_meter gc_meter_begin(bool quiet) {
    return (gc_meter){.quiet = quiet, .terminal = isatty(STDERR_FILENO) != 0};
}

bool gc_meter_due(gc_meter *m, double seconds) {
    if (m->quiet || seconds < m->printed + (m->terminal ? 0.2 : 10))
        return false;
    m->printed = seconds;
    return true;
}

void gc_meter_draw(const gc_status_line *line) {
    char text[LINE];
    int columns = gc_terminal_columns(STDERR_FILENO) - 1; /* some terminals wrap after the last column */
    gc_status_write(line, columns > 0 ? columns : 1, text, sizeof text);
    fprintf(stderr, "\r\033[K%s", text);
}

void gc_meter_print(gc_meter *m, const gc_status_line *line) {
    char text[LINE];
    if (m->terminal) {
        gc_meter_draw(line);
    } else {
        gc_status_write(line, 0, text, sizeof text);
        fprintf(stderr, "gpuconv: %s\n", text);
    }
    m->drawn = m->terminal;
}

void gc_meter_clear(gc_meter *m) {
    if (m->drawn)
        fputs("\r\033[K", stderr);
    m->drawn = false;
}

void gc_meter_bar(gc_status_line *line, int rank, double share) {
    int lit = (int)(fmin(fmax(share, 0), 1) * BAR);
    gc_status_part(line, rank, "[%.*s%*s] ", lit, "########################", BAR - lit, "");
}
