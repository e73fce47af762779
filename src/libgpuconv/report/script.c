/* Writes the gnuplot scripts of a gc_plot and of several gc_panels. */
#include "script.h"

#include "libgpuconv/core/number.h"
#include "libgpuconv/core/visible.h"

#include <math.h>

enum { TITLE = 90, LABEL = 60 }; /* bytes of a title and of a label that fit into a drawing */

/* Writes a text as a string of octal escapes: "\141\142". gnuplot expands backquotes, macros and quotes before it
 * decodes escapes, so an escaped text contains none. Control characters are made visible first, because XML allows few
 * of them. */
static void put_text(FILE *to, const char *text, size_t room) {
    char shown[TITLE + 1];
    gc_visible(shown, room, text ? text : "");
    fputc('"', to);
    for (const char *c = shown; *c; c++)
        fprintf(to, "\\%03o", (unsigned)(unsigned char)*c);
    fputc('"', to);
}

/* Writes `set OPTION TEXT`. */
static void set_text(FILE *to, const char *option, const char *text) {
    fprintf(to, "set %s ", option);
    put_text(to, text, TITLE + 1);
    fputs(" noenhanced\n", to);
}

/* Writes the settings of a drawing. */
static void begin_script(FILE *to, gc_plot_format format, int width, int height) {
    fputs("set encoding utf8\nset datafile missing 'nan'\nset key noenhanced\n", to);
    if (format == GC_PLOT_SVG)
        fprintf(to, "set terminal svg size %d,%d dynamic enhanced background 'white' font 'sans,14'\n", width, height);
    else if (format == GC_PLOT_PNG)
        fprintf(to, "set terminal pngcairo size %d,%d font 'sans,14'\n", width * 4 / 3, height * 4 / 3);
    else
        gc_print(to, "set terminal pdfcairo size %.3fin,%.3fin font 'sans,10'\n", width / 96.0, height / 96.0);
}

/* Writes the colour of one of many series, such as bands: from violet over green to red, all different. Few series have
 * gnuplot's own colours. */
static void put_colour(FILE *to, int series, int count) {
    static const char *const colour[GC_PLOT_SERIES] = {"440154", "3b3b8f", "2a6a9e", "1f8f8c", "2fa25e", "77b843",
                                                       "c0c22b", "e8a72c", "e5792e", "d1462f", "a3203a", "6b1035"};
    if (count > 8)
        fprintf(to, " lc rgb '#%s'", colour[series % GC_PLOT_SERIES]);
}

/* Writes the plot command; the data of the series must follow in their order. */
static void plot_series(FILE *to, const char *const *label, int series, const bool *points, const char *lines) {
    fputs(series ? "plot " : "plot NaN notitle", to); /* an empty diagram keeps its axes */
    for (int s = 0; s < series; s++) {
        fprintf(to, "%s'-' using 1:2 with %s", s ? ", " : "", points && points[s] ? "points pt 7 ps 1" : lines);
        put_colour(to, s, series);
        fputs(" title ", to);
        put_text(to, label[s], LABEL + 1);
    }
    fputc('\n', to);
}

void gc_script_plot(const gc_plot *p, gc_plot_format format, FILE *to) {
    begin_script(to, format, 900, 600);
    set_text(to, "title", p->title);
    set_text(to, "xlabel", p->x_label);
    set_text(to, "ylabel", p->y_label);
    fputs("set logscale x 2\nset logscale y 10\nset format x '2^{%L}'\nset grid\n"
          "set key bmargin center horizontal Left reverse samplen 2 width 1\n",
          to);
    plot_series(to, p->label, p->series, p->points, "linespoints lw 2 pt 7 ps 0.5");
    for (int s = 0; s < p->series; s++) {
        int drawn = 0;
        for (int i = 0; i < p->steps; i++) {
            if (!isfinite(p->y[s][i]))
                continue;
            gc_print(to, "%.17g %.17g\n", p->x[i], p->y[s][i]);
            drawn++;
        }
        if (!drawn)
            fputs("1 nan\n", to); /* keeps a series without points in the key */
        fputs("e\n", to);
    }
}

static void panel_axes(FILE *to, const gc_panel *p) {
    set_text(to, "title", p->title);
    set_text(to, "xlabel", p->x_label);
    set_text(to, "ylabel", p->y_label);
    gc_print(to, "%s logscale x\nset xrange [%.9g:%.9g]\nset yrange [%.9g:%.9g]\n", p->logarithmic ? "set" : "unset",
             p->x_range[0], p->x_range[1], p->y_range[0], p->y_range[1]);
    fprintf(to, "set format x '%%g'\nset lmargin 9\n%s grid\n", p->image ? "unset" : "set");
}

static void panel_image(FILE *to, const gc_panel *p) {
    gc_print(to, "set cbrange [%.9g:%.9g]\nplot '-' using 1:2:3 with image notitle\n", p->level_range[0],
             p->level_range[1]);
    for (int c = 0; c < p->columns; c++)
        for (int r = 0; r < p->rows; r++) {
            double x = p->x_range[0] + p->seconds * (c + 0.5) / p->columns;
            double y = p->y_range[0] + (p->y_range[1] - p->y_range[0]) * (r + 0.5) / p->rows;
            gc_print(to, "%.7g %.7g %.2f\n", x, y, fmax((double)p->image[c * p->rows + r], p->level_range[0]));
        }
    fputs("e\n", to);
}

/* Draws slices of a surface, the first one in the background. */
static void panel_waterfall(FILE *to, const gc_panel *p) {
    fputs(
        "set zlabel 'dB' rotate\nset view 52,14,1.08,1.15\nset hidden3d\nset xyplane 0\nset lmargin 2\nset rmargin 9\nset xtics offset 0,-0.4\n",
        to);
    set_text(to, "ylabel", p->y_label);
    gc_print(
        to,
        "set yrange [%.9g:0]\nset zrange [%.9g:%.9g]\nsplot '-' using 1:2:3 with lines lw 0.6 lc rgb '#1764ab' notitle\n",
        p->seconds, p->level_range[0], p->level_range[1]);
    for (int c = 0; c < p->columns; c++, fputc('\n', to))
        for (int r = 0; r < p->rows; r++)
            gc_print(to, "%.7g %.7g %.2f\n", p->x[r], p->seconds * c / p->columns,
                     fmax((double)p->image[c * p->rows + r], p->level_range[0]));
    fputs("e\nunset hidden3d\nunset zlabel\nset rmargin -1\nset xtics offset 0,0\n", to);
}

/* Returns a step of 1, 2 or 5 times a power of ten that divides a range into about four. */
static double coarse_step(double range) {
    const double exact = range / 4, power = pow(10, floor(log10(exact))), ratio = exact / power;
    return power * (ratio < 1.5 ? 1 : ratio < 3.5 ? 2 : ratio < 7.5 ? 5 : 10);
}

static void panel_lines(FILE *to, const gc_panel *p) {
    if (p->filled) {
        fputs("plot '-' using 1:2:3 with filledcurves lc rgb '#1764ab' notitle\n", to);
        for (int i = 0; i < p->steps; i++)
            gc_print(to, "%.9g %.7g %.7g\n", p->x[i], p->y[0][i], p->y[1][i]);
        fputs("e\n", to);
        return;
    }
    fputs(p->series > 8 ? "set key rmargin vertical Left reverse samplen 1.5 width 0\n"
                        : "set key bmargin center horizontal Left reverse samplen 2 width 1\n",
          to);
    if (p->series > 8 && !p->logarithmic) /* the key leaves less room for numbers */
        gc_print(to, "set xtics %.9g\n", coarse_step(p->x_range[1] - p->x_range[0]));
    plot_series(to, p->label, p->series, NULL, "lines lw 2");
    for (int s = 0; s < p->series; s++) {
        for (int i = 0; i < p->steps; i++)
            if (isfinite(p->y[s][i]))
                gc_print(to, "%.9g %.7g\n", p->x[i], p->y[s][i]);
        gc_print(to, "%.9g nan\ne\n", p->x_range[0]); /* keeps a series without points in the key */
    }
    fputs("set xtics autofreq\n", to);
}

void gc_script_panels(const gc_panel *panel, int count, int columns, gc_plot_format format, FILE *to) {
    int rows = columns > 0 ? (count + columns - 1) / columns : 0;
    begin_script(to, format, 600 * columns, 300 * rows);
    fprintf(to,
            "set multiplot layout %d,%d\nset border lc rgb '#555555'\nset tics nomirror out\n"
            "set key bmargin center horizontal Left reverse samplen 2 width 1\n"
            "unset colorbox\nset style fill solid 1 noborder\n"
            "set palette defined (0 '#ffffff', 0.25 '#d6e6f4', 0.5 '#6aaed6', 0.75 '#1764ab', 1 '#08204a')\n",
            rows, columns);
    for (int i = 0; i < count; i++) {
        panel_axes(to, &panel[i]);
        if (panel[i].waterfall)
            panel_waterfall(to, &panel[i]);
        else if (panel[i].image)
            panel_image(to, &panel[i]);
        else
            panel_lines(to, &panel[i]);
    }
    fputs("unset multiplot\n", to);
}
