/*
 * Draws with gnuplot, which runs without a shell and without the user's settings. Its standard streams are files in
 * memory: the script, the drawing and the error messages. It inherits no other descriptor and does not know the name of
 * the output file.
 *
 * A script consists of constant text and numbers. Every byte of a title or label is written as an octal escape in a
 * double-quoted string, so that no title or label can become a gnuplot or shell command, or a macro.
 */
#include "plot.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/descriptor.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/files.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/os.h"
#include "libgpuconv/core/visible.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Scripts ----------------------------------------------------------------------------------------------------- */

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

/* Writes a script, data included, that makes gnuplot print the drawing on its standard output. The caller checks
 * ferror(to). */
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

/* Returns how many labels a line of the key has: two, unless one is longer than half of the narrowest diagram. */
static int key_columns(const gc_panel *p) {
    bool two = true;
    for (int k = 0; k < p->count; k++)
        two = two && (!p->series[k].label || strlen(p->series[k].label) <= 14);
    return two ? 2 : 1;
}

/* Returns the place of a part of the y range, 0..1; an image has a linear axis of logarithms. */
static double image_row(const gc_panel *p, double part) {
    bool is_image = p->image && !p->waterfall;
    double low = is_image ? log10(p->y_range[0]) : p->y_range[0],
           high = is_image ? log10(p->y_range[1]) : p->y_range[1];
    return low + (high - low) * part;
}

/* Writes titles, ranges and margins. The right margin has room for the key or for the scale of an image. A panel
 * without a key has the margin of an image, so that a waveform and its spectrogram have the same time axis. */
static void panel_axes(FILE *to, const gc_panel *p) {
    set_text(to, "title", p->title);
    set_text(to, "xlabel", p->x_label);
    set_text(to, "ylabel", p->y_label);
    gc_print(to, "%s logscale x\n%s logscale y\nset xrange [%.9g:%.9g]\nset yrange [%.9g:%.9g]\n",
             p->logarithmic ? "set" : "unset", p->y_logarithmic ? "set" : "unset", p->x_range[0], p->x_range[1],
             image_row(p, 0), image_row(p, 1));
    fprintf(to, "set ytics autofreq\nset format '%%g'\n%s grid\n", p->image ? "unset" : "set");
    int labels = labels_of(p);
    fprintf(to, "set lmargin 10\nset rmargin %d\nset tmargin 2.5\nset bmargin %d\n",
            p->key_right ? 16
            : labels     ? 3
                         : 13,
            p->key_right ? 5 : 5 + (labels - 1) / key_columns(p));
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
    if (p->key_right)
        fputs("set key rmargin vertical Left reverse samplen 1 width 0 spacing 0.9 maxcols auto\n", to);
    else
        fprintf(to, "set key bmargin center horizontal Left reverse samplen 1 width 0 spacing 1 maxcols %d\n",
                key_columns(p));
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

/* Writes the script of panels in the same way. */
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

/* ---- gnuplot ----------------------------------------------------------------------------------------------------- */

enum { PATH_ROOM = 4352 };

static const double poll_interval = 5e-3; /* seconds between two checks of gnuplot and the cancel flag */

/* ---- Checks before a drawing ------------------------------------------------------------------------------------ */

/* Sets *format by the extension. Returns false for another extension. */
static bool find_format(const char *path, gc_plot_format *format) {
    static const char *const extension[GC_PLOT_FORMATS] = {".svg", ".png", ".pdf"};
    const char *dot = strrchr(path, '.');
    for (int k = 0; dot && k < GC_PLOT_FORMATS; k++)
        if (strcmp(dot, extension[k]) == 0) {
            *format = (gc_plot_format)k;
            return true;
        }
    return false;
}

static gpuconv_status refuse_without_gnuplot(const char *name, gpuconv_error *error) {
    return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED,
                   "%s: drawing needs gnuplot, which is not installed; install the package gnuplot-nox or gnuplot",
                   name);
}

/* Returns the folder of a path, "." if it names none; NULL if there is too little memory. The caller frees it. */
static char *folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
}

gpuconv_status gc_plot_check(const char *path, gpuconv_error *error) {
    char program[PATH_ROOM];
    gc_plot_format format;
    struct stat st;
    if (!find_format(path, &format))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s: a drawing is named .svg, .png or .pdf", path);
    if (!gc_os_find_program("gnuplot", program, sizeof program))
        return refuse_without_gnuplot(path, error);
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: is a directory", path);
    char *folder = folder_of(path);
    if (!folder)
        return gc_fail_memory(error, path);
    gpuconv_status status = GPUCONV_OK;
    bool exists = stat(folder, &st) == 0;
    if (exists && !S_ISDIR(st.st_mode))
        status = gc_fail(error, GPUCONV_ERROR_FILE, "%s: cannot be written: %s", path, strerror(ENOTDIR));
    else if (!exists || access(folder, W_OK | X_OK) != 0)
        status = gc_fail(error, GPUCONV_ERROR_FILE, "%s: cannot be written: %s", path, strerror(errno));
    free(folder);
    return status;
}

/* ---- Running gnuplot -------------------------------------------------------------------------------------------- */

/* Returns the environment without gnuplot's variables; NULL if there is too little memory. The caller frees it. */
static char **plain_environment(void) {
    int64_t count = 0;
    while (environ[count])
        count++;
    char **plain = gc_calloc(count + 1, (int64_t)sizeof *plain);
    for (int64_t i = 0, n = 0; plain && i < count; i++)
        if (strncmp(environ[i], "GNUTERM", 7) != 0 && strncmp(environ[i], "GNUPLOT", 7) != 0)
            plain[n++] = environ[i];
    return plain;
}

/* gnuplot reads a named file in blocks, but its "-" with one system call per byte. */
static char script_name[] = "/dev/stdin";

/* Starts gnuplot with the three files as its standard streams. Returns 0 or an errno value. */
static int start_gnuplot(const char *program, const int stream[3], pid_t *child) {
    char name[] = "gnuplot", plain[] = "-d", *const argv[] = {name, plain, script_name, NULL};
    char **environment = plain_environment();
    int err = environment ? gc_os_start(program, argv, environment, stream, child) : ENOMEM;
    free((void *)environment);
    return err;
}

/* Waits for gnuplot and ends it when the thread's cancel flag is raised. Returns whether gnuplot exited with status 0,
 * or true if its status is unknown: is_whole decides then. */
static bool wait_for_gnuplot(pid_t child) {
    int status = 0;
    while (!gc_os_wait(child, poll_interval, gc_cancelled(), &status))
        ;
    return status == 0;
}

/* Reads the last line of gnuplot's error messages, or "". */
static void read_last_error(int fd, char *line, size_t room) {
    ssize_t got = pread(fd, line, room - 1, 0);
    off_t length = lseek(fd, 0, SEEK_END);
    if (length >= (off_t)room)
        got = pread(fd, line, room - 1, length - (off_t)room + 1);
    size_t end = got > 0 ? (size_t)got : 0;
    while (end > 0 && (line[end - 1] == '\n' || line[end - 1] == ' '))
        end--;
    line[end] = '\0';
    const char *newline = strrchr(line, '\n');
    if (newline)
        memmove(line, newline + 1, strlen(newline));
}

/* Returns whether the drawing has its end mark. It is truncated if memory was full. */
static bool is_whole(int fd, gc_plot_format format) {
    static const char *const mark[GC_PLOT_FORMATS] = {"</svg>", "IEND", "%%EOF"};
    char end[17] = "";
    off_t length = lseek(fd, 0, SEEK_END);
    return length > 16 && pread(fd, end, 16, length - 16) == 16 &&
           memmem(end, 16, mark[format], strlen(mark[format])) != NULL;
}

/* ---- A drawing -------------------------------------------------------------------------------------------------- */

/* The content of a drawing: one plot, or several panels. */
typedef struct sheet {
    const gc_plot *plot;
    const gc_panel *panel;
    int count, columns; /* columns 0: every panel is a document of its own */
    gc_plot_format format;
} sheet;

/* Writes the script and rewinds the file. Returns false if that fails. */
static bool write_script(const sheet *s, int fd) {
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    FILE *to = own < 0 ? NULL : fdopen(own, "w");
    if (!to) {
        if (own >= 0)
            close(own);
        return false;
    }
    if (s->plot)
        gc_script_plot(s->plot, s->format, to);
    else
        gc_script_panels(s->panel, s->count, s->columns, s->format, to);
    bool has_error = ferror(to) != 0;
    return fclose(to) == 0 && !has_error && lseek(fd, 0, SEEK_SET) == 0;
}

/* Writes the script and runs gnuplot; the drawing is in stream[1]. `name` begins the messages. */
static gpuconv_status draw(const sheet *s, const char *name, const int stream[3], gpuconv_error *error) {
    char program[PATH_ROOM], last_error[256];
    pid_t child = -1;
    if (!gc_os_find_program("gnuplot", program, sizeof program))
        return refuse_without_gnuplot(name, error);
    if (!write_script(s, stream[0]))
        return gc_fail_memory(error, name);
    int err = start_gnuplot(program, stream, &child);
    if (err)
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s cannot be started: %s", name, program, strerror(err));
    bool succeeded = wait_for_gnuplot(child);
    if (gc_cancelled())
        return gc_fail(error, GPUCONV_ERROR_CANCELLED, "interrupted");
    if (succeeded && is_whole(stream[1], s->format))
        return GPUCONV_OK;
    read_last_error(stream[2], last_error, sizeof last_error);
    return gc_fail(error, GPUCONV_ERROR_FILE, "%s: gnuplot could not draw it%s%s", name, *last_error ? ": " : "",
                   last_error);
}

/* Reads the drawing into a text that the caller frees. *size gets its bytes. */
static gpuconv_status read_drawing(int fd, char **text, off_t *size, gpuconv_error *error) {
    off_t length = lseek(fd, 0, SEEK_END), done = 0;
    char *made = length < 0 ? NULL : malloc((size_t)length + 1);
    if (!made)
        return gc_fail_memory(error, "a drawing");
    while (done < length) {
        ssize_t got = pread(fd, made + done, (size_t)(length - done), done);
        if (got <= 0 && !(got < 0 && errno == EINTR)) {
            free(made);
            return gc_fail(error, GPUCONV_ERROR_FILE, "a drawing cannot be read: %s", strerror(got ? errno : EIO));
        }
        done += got > 0 ? got : 0;
    }
    made[length] = '\0';
    *text = made;
    *size = length;
    return GPUCONV_OK;
}

/* Writes the file at `path`, which is replaced atomically. */
static gpuconv_status save(const char *drawing, int64_t size, const char *path, gpuconv_error *error) {
    gc_output_file *file;
    gpuconv_status status = gc_output_file_new(path, GC_OUTPUT_USER_PATH, NULL, &file, error);
    if (status)
        return status;
    const gc_pipe_out out = {.fd = gc_output_file_descriptor(file), .hide_signal = true};
    const int err = gc_pipe_out_write(&out, drawing, size);
    status = err ? gc_fail(error, GPUCONV_ERROR_FILE, "%s: cannot be written: %s", path, strerror(err))
                 : gc_output_file_commit(file, error);
    gc_output_file_free(file);
    return status;
}

/* Creates the three files in memory, draws, and saves the drawing at `path`, or in *text if `path` is NULL. */
static gpuconv_status write_sheet(const sheet *s, const char *path, char **text, gpuconv_error *error) {
    const char *name = path ? path : "a drawing";
    gpuconv_status status = path ? gc_plot_check(path, error) : GPUCONV_OK;
    int stream[3] = {-1, -1, -1};
    char *drawing = NULL;
    off_t size = 0;
    sheet formatted = *s;
    if (!status && path)
        (void)find_format(path, &formatted.format);
    for (int i = 0; i < 3 && !status; i++)
        if ((stream[i] = gc_os_memory_file()) < 0)
            status = gc_fail(error, GPUCONV_ERROR_MEMORY, "%s: no memory for the drawing: %s", name, strerror(errno));
    if (!status)
        status = draw(&formatted, name, stream, error);
    if (!status)
        status = read_drawing(stream[1], &drawing, &size, error);
    if (!status && path)
        status = save(drawing, size, path, error);
    if (!status && !path)
        *text = drawing;
    else
        free(drawing);
    for (int i = 0; i < 3; i++)
        if (stream[i] >= 0)
            close(stream[i]);
    return status;
}

gpuconv_status gc_plot_write(const gc_plot *plot, const char *path, gpuconv_error *error) {
    return write_sheet(&(sheet){.plot = plot}, path, NULL, error);
}

gpuconv_status gc_plot_panels(const gc_panel *panel, int count, int columns, const char *path, gpuconv_error *error) {
    return write_sheet(&(sheet){.panel = panel, .count = count, .columns = columns}, path, NULL, error);
}

gpuconv_status gc_plot_panels_svg(const gc_panel *panel, int count, char **svg, gpuconv_error *error) {
    *svg = NULL;
    return write_sheet(&(sheet){.panel = panel, .count = count}, NULL, svg, error);
}
