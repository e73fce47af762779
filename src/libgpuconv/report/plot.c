/* Drawings through gnuplot: a script with its data goes through a pipe. */
#include "plot.h"

#include "libgpuconv/core/error.h"

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

static void begin(FILE *f, const char *path, bool svg, int width, int height) {
    if (svg)
        fprintf(f, "set terminal svg size %d,%d dynamic enhanced background 'white' font 'sans,14'\n", width, height);
    else
        fprintf(f, "set terminal pngcairo size %d,%d font 'sans,14'\n", width * 4 / 3, height * 4 / 3);
    fputs("set output ", f);
    quote(f, path);
    fputc('\n', f);
}

static void draw(FILE *f, const gc_plot *p, const char *path, bool svg) {
    begin(f, path, svg, 900, 600);
    fputs("set title ", f);
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

static void panel_axes(FILE *f, const gc_panel *p) {
    const char *const names[] = {"title", "xlabel", "ylabel"}, *const texts[] = {p->title, p->x_label, p->y_label};
    for (int i = 0; i < 3; i++) {
        fprintf(f, "set %s ", names[i]);
        quote(f, texts[i]);
        fputs(" noenhanced\n", f);
    }
    fprintf(f, "%s logscale x\nset xrange [%.9g:%.9g]\nset yrange [%.9g:%.9g]\n", p->logarithmic ? "set" : "unset",
            p->x_range[0], p->x_range[1], p->y_range[0], p->y_range[1]);
    fprintf(f, "set format x '%%g'\nset lmargin 9\n%s grid\n", p->image ? "unset" : "set");
}

static void panel_image(FILE *f, const gc_panel *p) {
    fprintf(f, "set cbrange [%.9g:%.9g]\nplot '-' using 1:2:3 with image notitle\n", p->level_range[0],
            p->level_range[1]);
    for (int c = 0; c < p->columns; c++)
        for (int r = 0; r < p->rows; r++) {
            double x = p->x_range[0] + p->seconds * (c + 0.5) / p->columns;
            double y = p->y_range[0] + (p->y_range[1] - p->y_range[0]) * (r + 0.5) / p->rows;
            fprintf(f, "%.7g %.7g %.2f\n", x, y, fmax((double)p->image[c * p->rows + r], p->level_range[0]));
        }
    fputs("e\n", f);
}

static void panel_lines(FILE *f, const gc_panel *p) {
    if (p->filled) {
        fputs("plot '-' using 1:2:3 with filledcurves lc rgb '#1764ab' notitle\n", f);
        for (int i = 0; i < p->steps; i++)
            fprintf(f, "%.9g %.7g %.7g\n", p->x[i], p->y[0][i], p->y[1][i]);
        fputs("e\n", f);
        return;
    }
    fputs("plot ", f);
    for (int s = 0; s < p->series; s++) {
        fprintf(f, "%s'-' using 1:2 with lines lw 2 title ", s ? ", " : "");
        quote(f, p->label[s] ? p->label[s] : "");
        fputs(" noenhanced", f);
    }
    fputc('\n', f);
    for (int s = 0; s < p->series; s++) {
        for (int i = 0; i < p->steps; i++)
            if (isfinite(p->y[s][i]))
                fprintf(f, "%.9g %.7g\n", p->x[i], p->y[s][i]);
        fprintf(f, "%.9g nan\ne\n", p->x_range[0]); /* a line without points still stands in the key */
    }
}

static void draw_panels(FILE *f, const gc_panel *panel, int count, int columns, const char *path, bool svg) {
    int rows = columns > 0 ? (count + columns - 1) / columns : 0;
    begin(f, path, svg, 600 * columns, 300 * rows);
    fprintf(f,
            "set multiplot layout %d,%d\nset border lc rgb '#555555'\nset tics nomirror out\nset key top right\n"
            "unset colorbox\nset style fill solid 1 noborder\nset datafile missing 'nan'\n"
            "set palette defined (0 '#ffffff', 0.25 '#d6e6f4', 0.5 '#6aaed6', 0.75 '#1764ab', 1 '#08204a')\n",
            rows, columns);
    for (int i = 0; i < count; i++) {
        panel_axes(f, &panel[i]);
        if (panel[i].image)
            panel_image(f, &panel[i]);
        else
            panel_lines(f, &panel[i]);
    }
    fputs("unset multiplot\n", f);
}

/* What is drawn: one plot, or panels. */
typedef struct sheet {
    const gc_plot *plot;
    const gc_panel *panel;
    int count, columns;
} sheet;

static bool is_svg(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot && strcmp(dot, ".svg") == 0;
}

gpuconv_status gc_plot_check(const char *path, gpuconv_error *error) {
    const char *dot = strrchr(path, '.');
    if (is_svg(path) || (dot && strcmp(dot, ".png") == 0))
        return GPUCONV_OK;
    return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s: a drawing is named .svg or .png", path);
}

static gpuconv_status write_sheet(const sheet *s, const char *path, gpuconv_error *error) {
    gpuconv_status named = gc_plot_check(path, error);
    if (named)
        return named;
    bool svg = is_svg(path);
    /* What went wrong is ours to say. A gnuplot that is not there, or gives up, must not take us with it. */
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    sigaction(SIGPIPE, &ignore, &before);
    FILE *f = popen("gnuplot >/dev/null 2>&1", "w");
    int ended = -1;
    if (f) {
        if (s->plot)
            draw(f, s->plot, path, svg);
        else
            draw_panels(f, s->panel, s->count, s->columns, path, svg);
        ended = pclose(f);
    }
    sigaction(SIGPIPE, &before, NULL);
    if (ended == 0)
        return GPUCONV_OK;
    if (f && WIFEXITED(ended) && WEXITSTATUS(ended) == 127)
        return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED, "%s: drawing needs gnuplot, which is not installed", path);
    return gc_fail(error, GPUCONV_ERROR_FILE, "%s: gnuplot could not write it", path);
}

gpuconv_status gc_plot_write(const gc_plot *plot, const char *path, gpuconv_error *error) {
    return write_sheet(&(sheet){.plot = plot}, path, error);
}

gpuconv_status gc_plot_panels(const gc_panel *panel, int count, int columns, const char *path, gpuconv_error *error) {
    return write_sheet(&(sheet){.panel = panel, .count = count, .columns = columns}, path, error);
}
