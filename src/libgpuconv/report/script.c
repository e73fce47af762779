/* Writes the gnuplot scripts of a gc_plot and of several gc_panels. */
#include "script.h"

#include "libgpuconv/core/number.h"
#include "libgpuconv/core/visible.h"

#include <math.h>

enum { TITLE = 90, LABEL = 60 }; /* bytes of a title and of a label that fit into a drawing */

/* Writes a text as a string of octal escapes: "\141\142". gnuplot expands backquotes, macros and quotes before it
 * decodes escapes, so an escaped text contains none. Control characters are made visible first, because XML allows few
 * of them; it allows no "]]>", which becomes "]] >". */
static void put_text(FILE *to, const char *text, size_t room) {
    char shown[TITLE + 1];
    gc_visible(shown, room, text ? text : "");
    fputc('"', to);
    for (const char *c = shown; *c; c++)
        fprintf(to, "%s\\%03o", *c == '>' && c - shown >= 2 && c[-1] == ']' && c[-2] == ']' ? " " : "",
                (unsigned)(unsigned char)*c);
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

static const char *const band_colour[] = {"#5b1a73", "#8a1c78", "#b02371", "#cf3361", "#de4a48",
                                          "#e2682f", "#d9801e", "#bf8f12", "#94980f"};
enum { BAND_COLOURS = 9 };

const char *gc_channel_colour(int channel) {
    static const char *const colour[GC_PLOT_CHANNELS] = {"#1764ab", "#2a9d3a", "#14b4c8", "#22304a"};
    return channel < GC_PLOT_CHANNELS ? colour[channel] : GC_COLOUR_NOISE;
}

const char *gc_band_colour(int band, int count) {
    return band_colour[count > 1 ? band * (BAND_COLOURS - 1) / (count - 1) : 0];
}

/* Writes the plot command; the data of the series must follow in their order. */
static void plot_series(FILE *to, const gc_plot *p) {
    fputs("plot ", to);
    for (int s = 0; s < p->series; s++) {
        fprintf(to, "%s'-' using 1:2 with %s", s ? ", " : "",
                p->points[s] ? "points pt 7 ps 1" : "linespoints lw 2 pt 7 ps 0.5");
        if (p->series > 8) /* few series have gnuplot's own colours */
            fprintf(to, " lc rgb '%s'", gc_band_colour(s, p->series));
        fputs(" title ", to);
        put_text(to, p->label[s], LABEL + 1);
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
    plot_series(to, p);
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

/* ---- Panels ------------------------------------------------------------------------------------------------------ */

/* Writes the ticks of an axis of frequency: 1, 2 and 5 times powers of ten, only the powers, or octaves.
 * @param logarithm the axis is linear and has the logarithm of the frequency */
static void frequency_ticks(FILE *to, char axis, const double range[2], const gc_panel *p, bool logarithm) {
    static const double tick[] = {1,     2,   5,   10,   20, 50,  100, 200, 500,  1000, 2000, 5000, 10000, 20000,
                                  50000, 1e5, 2e5, 31.5, 63, 125, 250, 500, 1000, 2000, 4000, 8000, 16000};
    enum { DECADES = 17, ALL = sizeof tick / sizeof *tick };
    const char *comma = "";
    fprintf(to, "set %ctics (", axis);
    for (int k = p->octaves ? DECADES : 0; k < (p->octaves ? (int)ALL : DECADES); k += p->waterfall ? 3 : 1) {
        if (tick[k] < range[0] * 0.999 || tick[k] > range[1])
            continue;
        gc_print(to, "%s'%g%s' %.9g", comma, tick[k] < 1000 ? tick[k] : tick[k] / 1000, tick[k] < 1000 ? "" : "k",
                 logarithm ? log10(tick[k]) : tick[k]);
        comma = ", ";
    }
    fputs(")\n", to);
}

/* Returns a step of 1, 2 or 5 times a power of ten that divides a range into about four. */
static double coarse_step(double range) {
    const double exact = range / 4, power = pow(10, floor(log10(exact))), ratio = exact / power;
    return power * (ratio < 1.5 ? 1 : ratio < 3.5 ? 2 : ratio < 7.5 ? 5 : 10);
}

/* Returns the number of series with an entry in the key. */
static int labels_of(const gc_panel *p) {
    int labels = 0;
    for (int k = 0; k < p->count; k++)
        labels += p->series[k].label != NULL;
    return labels;
}

/* Returns the place of a part of the y range, 0..1; an image has a linear axis of logarithms. */
static double image_row(const gc_panel *p, double part) {
    bool is_image = p->image && !p->waterfall;
    double low = is_image ? log10(p->y_range[0]) : p->y_range[0],
           high = is_image ? log10(p->y_range[1]) : p->y_range[1];
    return low + (high - low) * part;
}

/* Writes titles, ranges and margins. The right margin has room for the key or for the scale of an image. A panel
 * without a key has the margin of an image, so that a waveform and its spectrogram have the same time axis. A
 * key has two labels a line. */
static void panel_axes(FILE *to, const gc_panel *p) {
    set_text(to, "title", p->title);
    set_text(to, "xlabel", p->x_label);
    set_text(to, "ylabel", p->y_label);
    gc_print(to, "%s logscale x\n%s logscale y\nset xrange [%.9g:%.9g]\nset yrange [%.9g:%.9g]\n",
             p->logarithmic ? "set" : "unset", p->y_logarithmic ? "set" : "unset", p->x_range[0], p->x_range[1],
             image_row(p, 0), image_row(p, 1));
    fprintf(to, "set ytics autofreq\nset format '%%g'\n%s grid\n", p->image ? "unset" : "set");
    int labels = labels_of(p);
    fprintf(to, "set lmargin 9\nset rmargin %d\nset tmargin 2.5\nset bmargin %d\n",
            p->key_right ? 16
            : labels     ? 3
                         : 13,
            p->key_right ? 5 : 5 + (labels > 2) + (labels > 4));
    if (p->logarithmic)
        frequency_ticks(to, 'x', p->x_range, p, false);
    else
        gc_print(to, "set xtics %.9g\n", coarse_step(p->x_range[1] - p->x_range[0]));
}

static void panel_image(FILE *to, const gc_panel *p) {
    frequency_ticks(to, 'y', p->y_range, p, true);
    gc_print(to,
             "set cbrange [%.9g:%.9g]\nset format cb '%%g dB'\n"
             "set colorbox user origin graph 1.04, graph 0 size graph 0.04, graph 1\n"
             "plot '-' using 1:2:3 with image notitle\n",
             p->level_range[0], p->level_range[1]);
    for (int c = 0; c < p->columns; c++)
        for (int r = 0; r < p->rows; r++) {
            double x = p->x_range[0] + p->seconds * (c + 0.5) / p->columns;
            gc_print(to, "%.7g %.7g %.2f\n", x, image_row(p, (r + 0.5) / p->rows),
                     fmax((double)p->image[c * p->rows + r], p->level_range[0]));
        }
    fputs("e\nunset colorbox\n", to);
}

/* Draws slices of a surface, the first one in the background. */
static void panel_waterfall(FILE *to, const gc_panel *p) {
    fputs("set zlabel 'dB' rotate\nset view 52,14,1,1.1\nset hidden3d\nset xyplane 0\nset lmargin 4\n"
          "set xtics offset 0,-0.4\n",
          to);
    gc_print(to,
             "set format y '%%g s'\nset ytics %.9g\nset yrange [%.9g:0]\nset zrange [%.9g:%.9g]\n"
             "splot '-' using 1:2:3 with lines lw 0.6 lc rgb '%s' notitle\n",
             coarse_step(2 * p->seconds), p->seconds, p->level_range[0], p->level_range[1], gc_channel_colour(0));
    for (int c = 0; c < p->columns; c++, fputc('\n', to))
        for (int r = 0; r < p->rows; r++)
            gc_print(to, "%.7g %.7g %.2f\n", p->x[r], p->seconds * c / p->columns,
                     fmax((double)p->image[c * p->rows + r], p->level_range[0]));
    fputs("e\nunset hidden3d\nunset zlabel\n"
          "set xtics offset 0,0\n",
          to);
}

static const char *const mark_style[] = {
    [GC_MARK_LINE] = "1:2 with lines lw 2",
    [GC_MARK_THIN] = "1:2 with lines lw 0.7",
    [GC_MARK_POINTS] = "1:2 with linespoints lw 1 pt 7 ps 0.4",
    [GC_MARK_BARS] = "1:2:3:4 with yerrorlines lw 2 pt 7 ps 0.6",
    [GC_MARK_AREA] = "1:3:4 with filledcurves",
};

/* Returns whether a value of a series can be drawn. */
static bool is_drawn(const gc_series *s, int i) {
    return (!s->y || isfinite(s->y[i])) && (!s->low || (isfinite(s->low[i]) && isfinite(s->high[i])));
}

static void panel_lines(FILE *to, const gc_panel *p) {
    fputs(p->key_right ? "set key rmargin vertical Left reverse samplen 1 width 0 spacing 0.9\n"
                       : "set key bmargin center horizontal Left reverse samplen 1 width 0 spacing 1\n",
          to);
    fputs(p->count ? "plot " : "plot NaN notitle", to); /* an empty diagram keeps its axes */
    for (int k = 0; k < p->count; k++) {
        const gc_series *s = &p->series[k];
        fprintf(to, "%s'-' using %s lc rgb '%s' %s", k ? ", " : "", mark_style[s->mark], s->colour,
                s->label ? "title " : "notitle");
        if (s->label)
            put_text(to, s->label, LABEL + 1);
    }
    fputc('\n', to);
    for (int k = 0; k < p->count; k++) {
        const gc_series *s = &p->series[k];
        for (int i = 0; i < p->steps; i++)
            if (is_drawn(s, i))
                gc_print(to, "%.9g %.7g %.7g %.7g\n", p->x[i], s->y ? s->y[i] : 0, s->low ? s->low[i] : 0,
                         s->high ? s->high[i] : 0);
            else
                fputc('\n', to);                              /* a gap */
        gc_print(to, "%.9g nan nan nan\ne\n", p->x_range[0]); /* keeps a series without points in the key */
    }
}

void gc_script_panels(const gc_panel *panel, int count, int columns, gc_plot_format format, FILE *to) {
    int rows = columns > 0 ? (count + columns - 1) / columns : 0;
    if (columns)
        begin_script(to, format, 600 * columns, 320 * rows);
    else
        begin_script(to, format, 480, 340);
    if (columns)
        fprintf(to, "set multiplot layout %d,%d\n", rows, columns);
    fputs("set border front lc rgb '#555555'\nset tics nomirror out\nunset colorbox\nset style fill solid 1 noborder\n"
          "set palette defined (0 '#ffffff', 0.25 '#d6e6f4', 0.5 '#6aaed6', 0.75 '#1764ab', 1 '#08204a')\n",
          to);
    for (int i = 0; i < count; i++) {
        panel_axes(to, &panel[i]);
        if (panel[i].waterfall)
            panel_waterfall(to, &panel[i]);
        else if (panel[i].image)
            panel_image(to, &panel[i]);
        else
            panel_lines(to, &panel[i]);
    }
    if (columns)
        fputs("unset multiplot\n", to);
}
