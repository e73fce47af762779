/* Drawings through gnuplot: a script with its data goes through a pipe. */
#include "plot.h"

#include "../core/error.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* A text in gnuplot's single quotes, which are doubled inside. */
static void quote(FILE *f, const char *text) {
    fputc('\'', f);
    for (; *text; text++)
        fputs(*text == '\'' ? "''" : (char[2]){*text, '\0'}, f);
    fputc('\'', f);
}

static void draw(FILE *f, const gc_plot *p, const char *path, bool svg) {
    fputs(svg ? "set terminal svg size 900,600 dynamic enhanced background 'white' font 'sans,14'\n"
              : "set terminal pngcairo size 1200,800 font 'sans,14'\n",
          f);
    fputs("set output ", f);
    quote(f, path);
    fputs("\nset title ", f);
    quote(f, p->title);
    fputs(" noenhanced\nset xlabel ", f);
    quote(f, p->x_label);
    fputs("\nset ylabel ", f);
    quote(f, p->y_label);
    fputs("\nset logscale x 2\nset logscale y 10\nset format x '2^{%L}'\nset grid\nset key top left\n"
          "set datafile missing 'nan'\nplot ",
          f);
    for (int s = 0; s < p->series; s++) {
        fprintf(f, "%s'-' using 1:2 with %s title ", s ? ", " : "",
                p->points[s] ? "points pt 7 ps 1" : "linespoints lw 2 pt 7 ps 0.5");
        quote(f, p->label[s]);
        fputs(" noenhanced", f);
    }
    fputc('\n', f);
    for (int s = 0; s < p->series; s++) {
        int drawn = 0;
        for (int i = 0; i < p->steps; i++) {
            if (!isfinite(p->y[s][i]))
                continue;
            fprintf(f, "%.17g %.17g\n", p->x[i], p->y[s][i]);
            drawn++;
        }
        if (!drawn)
            fputs("1 nan\n", f); /* a line without points still stands in the key */
        fputs("e\n", f);
    }
}

gpuconv_status gc_plot_write(const gc_plot *p, const char *path, gpuconv_error *error) {
    const char *dot = strrchr(path, '.');
    bool svg = dot && strcmp(dot, ".svg") == 0;
    if (!svg && !(dot && strcmp(dot, ".png") == 0))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s: a drawing is named .svg or .png", path);
    /* What went wrong is ours to say. A gnuplot that is not there, or gives up, must not take us with it. */
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    sigaction(SIGPIPE, &ignore, &before);
    FILE *f = popen("gnuplot >/dev/null 2>&1", "w");
    int ended = -1;
    if (f) {
        draw(f, p, path, svg);
        ended = pclose(f);
    }
    sigaction(SIGPIPE, &before, NULL);
    if (ended == 0)
        return GPUCONV_OK;
    if (f && WIFEXITED(ended) && WEXITSTATUS(ended) == 127)
        return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED, "%s: drawing needs gnuplot, which is not installed", path);
    return gc_fail(error, GPUCONV_ERROR_FILE, "%s: gnuplot could not write it", path);
}
