/* Writes the page. It loads nothing from elsewhere, and its widths are relative, so that it is readable on a phone. */
#include "html.h"

#include "libgpuconv/core/visible.h"
#include "run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Size of a plot and its margins, in SVG units. */
enum { WIDTH = 720, HEIGHT = 320, LEFT = 64, RIGHT = 20, TOP = 12, BOTTOM = 44, LEGEND = 24 /* above a sweep */ };

static const char *const line_colours[] = {"#0b6e8a", "#c2571a"};

static const char *text_of(const json_t *row, const char *name) {
    const char *text = json_string_value(json_object_get(row, name));
    return text ? text : "";
}

static double number_of(const json_t *row, const char *name) {
    return json_number_value(json_object_get(row, name));
}

/* Writes a text with markup and quotes as entities and control characters as escapes. Every text of a report and of a
 * module is written by this function. Line breaks are kept; a line of more than 4095 bytes is shortened in the middle.
 * NULL is an empty text. */
static void put_text(FILE *to, const char *text) {
    char line[4096], shown[4096];
    while (text && *text) {
        size_t length = strcspn(text, "\n"), taken = length < sizeof line ? length : sizeof line - 1;
        memcpy(line, text, taken);
        line[taken] = '\0';
        for (const char *c = gc_visible(shown, sizeof shown, line); *c; c++) {
            const char *entity = *c == '<'    ? "&lt;"
                                 : *c == '>'  ? "&gt;"
                                 : *c == '&'  ? "&amp;"
                                 : *c == '"'  ? "&quot;"
                                 : *c == '\'' ? "&#39;"
                                              : NULL;
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

/* Writes a text whose paragraphs are separated by empty lines. */
static void put_paragraphs(FILE *to, const char *text) {
    fputs("<p>", to);
    for (const char *end; (end = strstr(text, "\n\n")) != NULL; text = end + 2) {
        char *part = strndup(text, (size_t)(end - text));
        put_text(to, part);
        free(part);
        fputs("</p>\n<p>", to);
    }
    put_text(to, text);
    fputs("</p>\n", to);
}

static void put_time(FILE *to, double seconds) {
    if (seconds >= 1e-3)
        fprintf(to, "%.3f ms", seconds * 1e3);
    else
        fprintf(to, "%.2f µs", seconds * 1e6);
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
        fprintf(
            to,
            "<line x1='%.1f' x2='%.1f' y1='%.1f' y2='%.1f' class='g'/><text x='%.1f' y='%.1f' class='e'>%.3g</text>\n",
            x->from, x->to, to_svg(y, v), to_svg(y, v), x->from - 6, to_svg(y, v) + 4, v);
    else
        fprintf(
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
    put_text(to, label);
    fputs("'>\n", to);
}

static void label_x_axis(FILE *to, const char *text) {
    fprintf(to, "<text x='%d' y='%d' class='m'>", (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8);
    put_text(to, text);
    fputs("</text>\n", to);
}

/* ---- Sweeps ------------------------------------------------------------------------------------------------------ */

/* Draws one column of a sweep as a line, with its legend. */
static void draw_column(FILE *to, const json_t *sweep, size_t column, const axis *x, const axis *y) {
    const json_t *points = json_object_get(sweep, "points"), *point;
    const char *colour = line_colours[column - 1];
    size_t i;
    fprintf(to, "<polyline fill='none' stroke='%s' stroke-width='2' points='", colour);
    json_array_foreach(points, i, point) {
        const json_t *v = json_array_get(point, column);
        if (json_is_number(v) && (!y->logarithmic || json_number_value(v) > 0))
            fprintf(to, "%.1f,%.1f ", to_svg(x, json_number_value(json_array_get(point, 0))),
                    to_svg(y, json_number_value(v)));
    }
    fprintf(to, "'/>\n<text x='%d' y='%d' style='fill:%s'>", LEFT + 10 + (WIDTH - LEFT) / 2 * (int)(column - 1),
            TOP + 4, colour);
    put_text(to, json_string_value(json_array_get(json_object_get(sweep, "columns"), column - 1)));
    fputs("</text>\n", to);
}

/* Draws the first two columns of a sweep over its axis. */
static void draw_sweep(FILE *to, const char *name, const json_t *sweep) {
    const json_t *points = json_object_get(sweep, "points"), *point;
    size_t count = json_array_size(points), columns = json_array_size(json_object_get(sweep, "columns")), i;
    fputs("<section><h3>", to);
    put_text(to, name);
    fputs("</h3>\n", to);
    double most = 0, least = HUGE_VAL;
    json_array_foreach(points, i, point) for (size_t c = 1; c < json_array_size(point); c++) {
        double v = json_number_value(json_array_get(point, c));
        most = fmax(most, v);
        least = v > 0 ? fmin(least, v) : least;
    }
    if (count < 2 || !(most > 0)) {
        fputs("<p>Not measured: ", to);
        put_text(to, text_of(sweep, "missing"));
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
    fprintf(to,
            "<polyline fill='none' stroke='%s' stroke-width='2' points='%.1f,%.1f %.1f,%.1f %.1f,%.1f'/>"
            "<text x='%.1f' y='%.1f' class='e' style='fill:%s'>%s %.0f TFLOP/s</text>\n",
            line_colours[colour], to_svg(x, x->low), to_svg(y, x->low * copy * 1e-12), to_svg(x, rate / copy), level,
            to_svg(x, x->high), level, x->to - 4, level - 5, line_colours[colour],
            colour ? "fp16 with cuBLAS" : "fp32 multiply-add loop", rate * 1e-12);
}

static void draw_roofline(FILE *to, const json_t *report) {
    const json_t *peak = json_object_get(report, "ceilings"), *row;
    double copy = number_of(peak, "copy"), fp32 = number_of(peak, "fp32"), fp16 = number_of(peak, "fp16");
    size_t i;
    if (!(copy > 0 && fp32 > 0))
        return;
    axis x = {1.0 / 32, 4096, 1, LEFT, WIDTH - RIGHT}, y = {1e-3, 2e3, 1, HEIGHT - BOTTOM, TOP};
    fputs("<section><h3>Roofline</h3>\n<p>Every variant on the GPU, by its operations per byte. The sloped line is the "
          "peak rate of memory, the level lines are the peak rates of arithmetic.</p>\n",
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
        fprintf(to, "<circle cx='%.1f' cy='%.1f' r='3'><title>", to_svg(&x, intensity), to_svg(&y, rate));
        put_text(to, text_of(row, "module"));
        fputs(": ", to);
        put_text(to, text_of(row, "variant"));
        fputs("</title></circle>\n", to);
    }
    label_x_axis(to, "operations per byte (y: TFLOP/s)");
    fputs("</svg></section>\n", to);
}

/* ---- Results ----------------------------------------------------------------------------------------------------- */

static void put_row(FILE *to, const json_t *row, double longest) {
    fputs("<tr><th>", to);
    put_text(to, text_of(row, "variant"));
    fputs("</th><td class='w'>", to);
    put_text(to, text_of(row, "where"));
    fputs("</td>", to);
    if (strcmp(text_of(row, "state"), "measured") != 0) {
        fputs("<td colspan='3' class='s'>", to);
        put_text(to, text_of(row, "state"));
        fputs(": ", to);
        put_text(to, text_of(row, "why"));
        fputs("</td></tr>\n", to);
        return;
    }
    double median = number_of(row, "median"), bytes = number_of(row, "bytes"), work = number_of(row, "operations"),
           share = number_of(row, "share");
    int has_figure = json_object_get(row, "figure") != NULL;
    fputs("<td class='n'>", to);
    if (has_figure) {
        fprintf(to, "%.4g ", number_of(row, "figure"));
        put_text(to, text_of(row, "unit"));
    } else {
        put_time(to, median);
    }
    fprintf(to, "</td><td><span class='bar' style='width:%.1f%%'></span>", longest > 0 ? 100 * median / longest : 0);
    if (bytes > 0 && !has_figure)
        fprintf(to, " %.1f GB/s", bytes / median * 1e-9);
    if (work / (bytes > 0 ? bytes : 1) > 1 && !has_figure)
        fprintf(to, " %.2f TFLOP/s", work / median * 1e-12);
    if (share > 0) {
        fprintf(to, " <b>%.0f %%</b> of ", 100 * share);
        put_text(to, text_of(row, "bound"));
    }
    fputs("</td><td class='c'>", to);
    put_text(to, text_of(row, "course"));
    fputs("</td></tr>\n", to);
}

/* Writes the results of a module, one table per size. */
static void put_tables(FILE *to, const json_t *report, const gc_lab_module *module) {
    const json_t *rows = json_object_get(report, "results"), *row, *other;
    const char *size = "";
    size_t i, k;
    json_array_foreach(rows, i, row) {
        if (strcmp(text_of(row, "module"), module->name) != 0)
            continue;
        if (strcmp(size, text_of(row, "size")) != 0) {
            double longest = 0;
            if (*size)
                fputs("</table>\n", to);
            size = text_of(row, "size");
            json_array_foreach(rows, k, other) if (strcmp(text_of(other, "module"), module->name) == 0 &&
                                                   strcmp(text_of(other, "size"), size) == 0) longest =
                fmax(longest, number_of(other, "median"));
            fputs("<h4>", to);
            put_text(to, size);
            fputs("</h4><table>\n", to);
            for (k = i; k < json_array_size(rows); k++) {
                other = json_array_get(rows, k);
                if (strcmp(text_of(other, "module"), module->name) != 0 || strcmp(text_of(other, "size"), size) != 0)
                    break;
                put_row(to, other, longest);
            }
        }
    }
    if (*size)
        fputs("</table>\n", to);
}

static void put_module(FILE *to, const json_t *report, const gc_lab_module *module) {
    const json_t *effect;
    size_t i;
    fprintf(to, "<section id='%s'><h2>", module->name);
    put_text(to, module->title);
    fputs("</h2>\n<p class='c'>", to);
    put_text(to, module->course);
    fputs("</p>\n<details><summary>The idea</summary>\n", to);
    put_paragraphs(to, module->idea);
    fputs("</details>\n", to);
    put_tables(to, report, module);
    json_array_foreach(json_object_get(report, "effects"), i, effect) {
        if (strcmp(text_of(effect, "module"), module->name) != 0)
            continue;
        int holds = json_is_true(json_object_get(effect, "holds"));
        fprintf(to, "<p class='%s'>%s ", holds ? "y" : "x", holds ? "&#10003;" : "&#10007;");
        put_text(to, text_of(effect, "what"));
        fprintf(to, " <span class='c'>(%.3g, expected %s %.3g)</span></p>\n", number_of(effect, "ratio"),
                json_is_true(json_object_get(effect, "agree")) ? "within" : "at least", number_of(effect, "wanted"));
    }
    fputs("<p>", to);
    put_text(to, module->see);
    fputs("</p></section>\n", to);
}

static const char head[] =
    "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>\n"
    "<meta name='viewport' content='width=device-width, initial-scale=1'>\n<title>gpulab</title>\n<style>\n"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:0 "
    "1rem;color:#222;background:#fff}\n"
    "h1,h2,h3,h4{line-height:1.2}h2{border-top:1px solid #ccc;padding-top:1.2rem}h4{margin:.8rem 0 .2rem}\n"
    "table{border-collapse:collapse;width:100%;font-size:.9rem}th,td{text-align:left;vertical-align:top;padding:."
    "15rem "
    ".5rem .15rem 0;border-bottom:1px solid #eee}th{font-weight:500;width:26%}\n"
    ".n{white-space:nowrap;text-align:right;width:16%}.w{width:3rem;color:#777}.c,.s{color:#666;font-size:.85rem}"
    "td:nth-child(4){width:30%}\n"
    ".bar{display:block;height:.45rem;background:#0b6e8a;margin-top:.45rem;min-width:1px}\n"
    ".y{color:#1a6b2b;margin:.2rem 0}.x{color:#b00020;margin:.2rem 0}\n"
    "svg{width:100%;height:auto}svg text{font:12px system-ui,sans-serif;fill:#444}svg .e{text-anchor:end}svg "
    ".m{text-anchor:middle}svg .g{stroke:#e4e4e4}svg circle{fill:#333;fill-opacity:.6}\n"
    "nav a{margin-right:.8rem;display:inline-block}\n"
    "@media(max-width:40rem){table,tbody,tr,th,td{display:block;width:auto}tr{padding:.3rem 0;border-bottom:1px "
    "solid "
    "#ddd}th,td{border:0;padding:0}.n{text-align:left;width:auto}td:nth-child(4){width:auto}"
    "section{overflow-x:auto}svg{min-width:44rem}}\n"
    "@media print{nav{display:none}section{break-inside:avoid-page}details>*{display:block}}\n"
    "</style></head><body>\n<h1>The kernels of the courses, measured</h1>\n";

static void put_device(FILE *to, const json_t *report) {
    const json_t *device = json_object_get(report, "device"), *peak = json_object_get(report, "ceilings");
    fputs("<p>", to);
    if (number_of(peak, "copy") > 0) {
        put_text(to, text_of(device, "name"));
        fprintf(
            to,
            ". Measured in this run: copy %.2f TB/s, multiply-add loop %.1f TFLOP/s, cuBLAS fp16 %.0f and tf32 %.0f "
            "TFLOP/s, an empty launch %.1f µs.",
            number_of(peak, "copy") * 1e-12, number_of(peak, "fp32") * 1e-12, number_of(peak, "fp16") * 1e-12,
            number_of(peak, "tf32") * 1e-12, number_of(peak, "launch") * 1e6);
    } else {
        put_text(to, "Measured without a GPU: variants on the CPU only.");
    }
    fputs("</p>\n", to);
}

void gc_lab_write_page(const json_t *report, FILE *to) {
    const gc_lab_module *const *modules;
    int count = gc_lab_modules(&modules);
    json_t *sweep;
    const char *name;
    fputs(head, to);
    put_device(to, report);
    fputs("<nav>", to);
    for (int i = 0; i < count; i++)
        fprintf(to, "<a href='#%s'>%s</a>", modules[i]->name, modules[i]->name);
    fputs("</nav>\n", to);
    draw_roofline(to, report);
    json_object_foreach(json_object_get(report, "sweeps"), name, sweep) draw_sweep(to, name, sweep);
    for (int i = 0; i < count; i++)
        put_module(to, report, modules[i]);
    fputs("</body></html>\n", to);
}
