/* Draws sweeps and the roofline. The two lines of a drawing differ in colour (blue and vermilion, which the
 * colour-blind can tell apart) and in their dashes, which remain on paper without colours. */
#include "html_plots.h"

#include "libgpuconv/core/number.h"
#include "libgpuconv/core/visible.h"

#include <math.h>
#include <string.h>

/* Size of a plot and its margins, in SVG units. */
enum {
    WIDTH = 720,
    HEIGHT = 320,
    LEFT = 64,
    RIGHT = 20,
    TOP = 12,
    BOTTOM = 44,
    LEGEND = 24 /* above a sweep */,
    SAMPLE = 24
};

static const char *const line_colours[] = {"#0072b2", "#c04a00"}, *const dashes[] = {"", " stroke-dasharray='7 4'"};

static const char *text_of(const json_t *row, const char *name) {
    const char *text = json_string_value(json_object_get(row, name));
    return text ? text : "";
}

static double number_of(const json_t *row, const char *name) {
    return json_number_value(json_object_get(row, name));
}

void gc_html_put_text(FILE *to, const char *text) {
    char line[4096], shown[4096];
    while (text && *text) {
        size_t length = strcspn(text, "\n"), taken = length < sizeof line ? length : sizeof line - 1;
        memcpy(line, text, taken);
        line[taken] = '\0';
        for (const char *c = gc_visible(shown, sizeof shown, line); *c; c++) {
            const char *entity = gc_entity(*c);
            if (entity)
                fputs(entity, to);
            else
                fputc(*c, to);
        }
        text += length;
        if (*text) {
            fputc('\n', to);
            text++;
        }
    }
}

/* ---- Axes -------------------------------------------------------------------------------------------------------- */

typedef struct axis {
    double low, high;
    int logarithmic;
    double from, to; /* SVG coordinates of low and high */
} axis;

/* Returns the SVG coordinate of a value. */
static double to_svg(const axis *a, double v) {
    double t = a->logarithmic ? log(v / a->low) / log(a->high / a->low) : (v - a->low) / (a->high - a->low);
    return a->from + t * (a->to - a->from);
}

/* Returns a step of 2, 5 or 10 times a power of ten that divides the range into at most five intervals. */
static double grid_step(double range) {
    double power = pow(10, floor(log10(range / 5)));
    double mantissa = range / 5 / power;
    return power * (mantissa < 2 ? 2 : mantissa < 5 ? 5 : 10);
}

static void grid_line(FILE *to, const axis *x, const axis *y, double v, int horizontal) {
    if (horizontal)
        gc_print(
            to,
            "<line x1='%.1f' x2='%.1f' y1='%.1f' y2='%.1f' class='g'/><text x='%.1f' y='%.1f' class='e'>%.3g</text>\n",
            x->from, x->to, to_svg(y, v), to_svg(y, v), x->from - 6, to_svg(y, v) + 4, v);
    else
        gc_print(
            to,
            "<line x1='%.1f' x2='%.1f' y1='%.1f' y2='%.1f' class='g'/><text x='%.1f' y='%.1f' class='m'>%.4g</text>\n",
            to_svg(x, v), to_svg(x, v), y->from, y->to, to_svg(x, v), y->from + 16, v);
}

/* Returns the number of grid lines for a number of steps: at most 40, and 0 if `steps` is negative or NaN. */
static int count_lines(double steps) {
    return steps >= 0 ? 1 + (int)fmin(steps, 39) : 0;
}

static void draw_grid(FILE *to, const axis *x, const axis *y) {
    for (int horizontal = 0; horizontal < 2; horizontal++) {
        const axis *a = horizontal ? y : x;
        if (a->logarithmic) {
            double factor = a->high / a->low > 1e5 ? 100 : a->high / a->low > 40 ? 10 : 2;
            double first = pow(factor, ceil(log(a->low) / log(factor) - 1e-9));
            int lines = count_lines(log(a->high * 1.0001 / first) / log(factor));
            for (int i = 0; i < lines; i++)
                grid_line(to, x, y, first * pow(factor, i), horizontal);
        } else {
            double step = grid_step(a->high - a->low);
            double first = ceil(a->low / step) * step;
            int lines = count_lines((a->high - first) / step + 1e-3);
            for (int i = 0; i < lines; i++)
                grid_line(to, x, y, first + i * step, horizontal);
        }
    }
}

static void begin_svg(FILE *to, const char *label) {
    fprintf(to, "<svg viewBox='0 0 %d %d' role='img' aria-label='", WIDTH, HEIGHT);
    gc_html_put_text(to, label);
    fputs("'>\n", to);
}

static void label_x_axis(FILE *to, const char *text) {
    fprintf(to, "<text x='%d' y='%d' class='m'>", (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8);
    gc_html_put_text(to, text);
    fputs("</text>\n", to);
}

/* ---- Sweeps ------------------------------------------------------------------------------------------------------ */

/* Draws one column of a sweep as a line, with its legend. */
static void draw_column(FILE *to, const json_t *sweep, size_t column, const axis *x, const axis *y) {
    const json_t *points = json_object_get(sweep, "points"), *point;
    const char *colour = line_colours[column - 1];
    size_t i;
    int left = LEFT + 10 + (WIDTH - LEFT) / 2 * (int)(column - 1);
    fprintf(to, "<polyline fill='none' stroke='%s' stroke-width='2'%s points='", colour, dashes[column - 1]);
    json_array_foreach(points, i, point) {
        const json_t *v = json_array_get(point, column);
        if (json_is_number(v) && (!y->logarithmic || json_number_value(v) > 0))
            gc_print(to, "%.1f,%.1f ", to_svg(x, json_number_value(json_array_get(point, 0))),
                     to_svg(y, json_number_value(v)));
    }
    fprintf(to,
            "'/>\n<line x1='%d' x2='%d' y1='%d' y2='%d' stroke='%s' stroke-width='2'%s/>\n"
            "<text x='%d' y='%d' style='fill:%s'>",
            left, left + SAMPLE, TOP, TOP, colour, dashes[column - 1], left + SAMPLE + 6, TOP + 4, colour);
    gc_html_put_text(to, json_string_value(json_array_get(json_object_get(sweep, "columns"), column - 1)));
    fputs("</text>\n", to);
}

/* Draws the first two columns of a sweep over its axis. */
void gc_html_draw_sweep(FILE *to, const char *name, const json_t *sweep) {
    const json_t *points = json_object_get(sweep, "points"), *point;
    size_t count = json_array_size(points), columns = json_array_size(json_object_get(sweep, "columns")), i;
    fputs("<section><h3>", to);
    gc_html_put_text(to, name);
    fputs("</h3>\n", to);
    double most = 0, least = HUGE_VAL;
    json_array_foreach(points, i, point) for (size_t c = 1; c < json_array_size(point); c++) {
        double v = json_number_value(json_array_get(point, c));
        most = fmax(most, v);
        least = v > 0 ? fmin(least, v) : least;
    }
    if (count < 2 || !(most > 0)) {
        fputs("<p>Not measured: ", to);
        gc_html_put_text(to, text_of(sweep, "missing"));
        fputs("</p></section>\n", to);
        return;
    }
    double first = json_number_value(json_array_get(json_array_get(points, 0), 0)),
           last = json_number_value(json_array_get(json_array_get(points, count - 1), 0));
    int logarithmic = most / least > 30;
    axis x = {first, last, last / first > 30, LEFT, WIDTH - RIGHT};
    axis y = {logarithmic ? least : 0, most * 1.05, logarithmic, HEIGHT - BOTTOM, TOP + LEGEND};
    begin_svg(to, name);
    draw_grid(to, &x, &y);
    for (size_t c = 1; c <= columns && c <= 2; c++)
        draw_column(to, sweep, c, &x, &y);
    label_x_axis(to, text_of(sweep, "across"));
    fputs("</svg></section>\n", to);
}

/* ---- Roofline ---------------------------------------------------------------------------------------------------- */

/* Draws the bound for one peak rate of arithmetic: slope `copy` bytes per second up to the rate, then level. */
static void draw_roof(FILE *to, int colour, double copy, double rate, const axis *x, const axis *y) {
    double level = to_svg(y, rate * 1e-12);
    gc_print(to,
             "<polyline fill='none' stroke='%s' stroke-width='2'%s points='%.1f,%.1f %.1f,%.1f %.1f,%.1f'/>"
             "<text x='%.1f' y='%.1f' class='e' style='fill:%s'>%s %.0f TFLOP/s</text>\n",
             line_colours[colour], dashes[colour], to_svg(x, x->low), to_svg(y, x->low * copy * 1e-12),
             to_svg(x, rate / copy), level, to_svg(x, x->high), level, x->to - 4, level - 5, line_colours[colour],
             colour ? "fp16 with cuBLAS" : "fp32 multiply-add loop", rate * 1e-12);
}

void gc_html_draw_roofline(FILE *to, const json_t *report) {
    const json_t *peak = json_object_get(report, "ceilings"), *row;
    double copy = number_of(peak, "copy"), fp32 = number_of(peak, "fp32"), fp16 = number_of(peak, "fp16");
    size_t i;
    if (!(copy > 0 && fp32 > 0))
        return;
    axis x = {1.0 / 32, 4096, 1, LEFT, WIDTH - RIGHT}, y = {1e-3, 2e3, 1, HEIGHT - BOTTOM, TOP};
    fputs("<section><h3>Roofline: ", to);
    gc_html_put_text(to, text_of(json_object_get(report, "device"), "name"));
    fputs(
        "</h3>\n<p>Every variant on the GPU, by its operations per byte. The sloped line is the peak rate of memory, the "
        "level lines are the peak rates of arithmetic. <span class='lm'>&#9679;</span> limited by memory, <span "
        "class='la'>&#9675;</span> limited by arithmetic.</p>\n",
        to);
    begin_svg(to, "roofline");
    draw_grid(to, &x, &y);
    draw_roof(to, 0, copy, fp32, &x, &y);
    if (fp16 > 0)
        draw_roof(to, 1, copy, fp16, &x, &y);
    json_array_foreach(json_object_get(report, "results"), i, row) {
        double bytes = number_of(row, "bytes"), work = number_of(row, "operations"), median = number_of(row, "median");
        if (strcmp(text_of(row, "where"), "GPU") != 0 || !(bytes > 0 && work > 0 && median > 0))
            continue;
        double intensity = fmin(fmax(work / bytes, x.low), x.high),
               rate = fmin(fmax(work / median * 1e-12, y.low), y.high);
        gc_print(to, "<circle cx='%.1f' cy='%.1f' r='3.5' class='%s'><title>", to_svg(&x, intensity), to_svg(&y, rate),
                 strcmp(text_of(row, "bound"), "arithmetic") == 0 ? "a" : "b");
        gc_html_put_text(to, text_of(row, "module"));
        fputs(": ", to);
        gc_html_put_text(to, text_of(row, "variant"));
        fputs("</title></circle>\n", to);
    }
    label_x_axis(to, "operations per byte (y: TFLOP/s)");
    fputs("</svg></section>\n", to);
}
