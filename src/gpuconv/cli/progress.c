/* Progress lines. */
#include "progress.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

enum { BAR = 24 };

gc_meter gc_meter_begin(bool quiet) {
    return (gc_meter){.quiet = quiet, .terminal = isatty(STDERR_FILENO) != 0};
}

bool gc_meter_begin_line(gc_meter *m, double seconds) {
    if (m->quiet || seconds < m->told + (m->terminal ? 0.2 : 10))
        return false;
    m->told = seconds;
    fputs(m->terminal ? "\r\033[K" : "gpuconv: ", stderr);
    return true;
}

void gc_meter_end_line(gc_meter *m) {
    if (!m->terminal)
        fputc('\n', stderr);
    m->drawn = m->terminal;
}

void gc_meter_clear(gc_meter *m) {
    if (m->drawn)
        fputs("\r\033[K", stderr);
    m->drawn = false;
}

void gc_meter_bar(double share) {
    int lit = (int)(fmin(fmax(share, 0), 1) * BAR);
    fprintf(stderr, "[%.*s%*s]", lit, "########################", BAR - lit, "");
}

void gc_print_time(double seconds) {
    long long s = llrint(seconds);
    if (s >= 3600)
        fprintf(stderr, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    else
        fprintf(stderr, "%lld:%02lld", s / 60, s % 60);
}
