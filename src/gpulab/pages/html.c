/*
 * Writes a report as a page. It loads nothing from elsewhere, and its widths are relative, so that it is readable on a
 * phone. Sweeps and the roofline are drawn as SVG. The two lines of a drawing differ in colour (blue and vermilion,
 * which the colour-blind can tell apart) and in their dashes, which remain on paper without colours.
 */
#include "pages.h"

#include "libgpuconv/core/number.h"
#include "libgpuconv/core/visible.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Drawings ---------------------------------------------------------------------------------------------------- */

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

/* Writes a text between two pieces of markup. */
static void put_in(FILE *to, const char *before, const char *text, const char *after) {
    fputs(before, to);
    put_text(to, text);
    fputs(after, to);
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
    put_in(to, "", label, "'>\n");
}

static void label_x_axis(FILE *to, const char *text) {
    fprintf(to, "<text x='%d' y='%d' class='m'>", (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8);
    put_in(to, "", text, "</text>\n");
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
    put_text(to, json_string_value(json_array_get(json_object_get(sweep, "columns"), column - 1)));
    fputs("</text>\n", to);
}

/* Draws the first two columns of a sweep over its axis. */
static void draw_sweep(FILE *to, const char *name, const json_t *sweep) {
    const json_t *points = json_object_get(sweep, "points"), *point;
    size_t count = json_array_size(points), columns = json_array_size(json_object_get(sweep, "columns")), i;
    put_in(to, "<section><h3>", name, "</h3>\n");
    double most = 0, least = HUGE_VAL;
    json_array_foreach(points, i, point) for (size_t c = 1; c < json_array_size(point); c++) {
        double v = json_number_value(json_array_get(point, c));
        most = fmax(most, v);
        least = v > 0 ? fmin(least, v) : least;
    }
    if (count < 2 || !(most > 0)) {
        put_in(to, "<p>Not measured: ", gc_lab_row_text(sweep, "missing"), "</p></section>\n");
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
    label_x_axis(to, gc_lab_row_text(sweep, "across"));
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

/* Draws the variants of a report under its peak rates. */
static void draw_roofline(FILE *to, const json_t *report) {
    const json_t *peak = json_object_get(report, "ceilings"), *row;
    double copy = gc_lab_row_number(peak, "copy"), fp32 = gc_lab_row_number(peak, "fp32"),
           fp16 = gc_lab_row_number(peak, "fp16");
    size_t i;
    if (!(copy > 0 && fp32 > 0))
        return;
    axis x = {1.0 / 32, 4096, 1, LEFT, WIDTH - RIGHT}, y = {1e-3, 2e3, 1, HEIGHT - BOTTOM, TOP};
    put_in(to, "<section><h3>Roofline: ", gc_lab_row_text(json_object_get(report, "device"), "name"), "");
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
        double bytes = gc_lab_row_number(row, "bytes"), work = gc_lab_row_number(row, "operations"),
               median = gc_lab_row_number(row, "median");
        if (strcmp(gc_lab_row_text(row, "where"), "GPU") != 0 || !(bytes > 0 && work > 0 && median > 0))
            continue;
        double intensity = fmin(fmax(work / bytes, x.low), x.high),
               rate = fmin(fmax(work / median * 1e-12, y.low), y.high);
        gc_print(to, "<circle cx='%.1f' cy='%.1f' r='3.5' class='%s'><title>", to_svg(&x, intensity), to_svg(&y, rate),
                 strcmp(gc_lab_row_text(row, "bound"), "arithmetic") == 0 ? "a" : "b");
        put_text(to, gc_lab_row_text(row, "module"));
        put_in(to, ": ", gc_lab_row_text(row, "variant"), "</title></circle>\n");
    }
    label_x_axis(to, "operations per byte (y: TFLOP/s)");
    fputs("</svg></section>\n", to);
}

/* ---- The page ---------------------------------------------------------------------------------------------------- */

/* Writes a text whose paragraphs are separated by empty lines. */
static void put_paragraphs(FILE *to, const char *text) {
    fputs("<p>", to);
    for (const char *end; (end = strstr(text, "\n\n")) != NULL; text = end + 2) {
        char *part = strndup(text, (size_t)(end - text));
        put_text(to, part);
        free(part);
        fputs("</p>\n<p>", to);
    }
    put_in(to, "", text, "</p>\n");
}

static void put_time(FILE *to, double seconds) {
    if (seconds >= 1e-3)
        gc_print(to, "%.3f ms", seconds * 1e3);
    else
        gc_print(to, "%.2f µs", seconds * 1e6);
}

/* ---- Results ----------------------------------------------------------------------------------------------------- */

/* The report of a page. */
typedef struct page {
    FILE *to;
    const json_t *report;
    json_t *recorded; /* or NULL */
} page;

/* Returns the row to show: the recorded one for a variant that was skipped because there is no GPU. */
static const json_t *shown_row(const page *p, const json_t *row, bool *is_recorded) {
    const json_t *other = gc_lab_recorded_instead(p->report, p->recorded, row);
    *is_recorded = other != NULL;
    return other ? other : row;
}

/* Writes the cells with the time or figure, its bar and its rates. */
static void put_measured(FILE *to, const json_t *row, bool is_recorded, double longest) {
    double median = gc_lab_row_number(row, "median"), bytes = gc_lab_row_number(row, "bytes"),
           work = gc_lab_row_number(row, "operations"), share = gc_lab_row_number(row, "share");
    bool has_figure = json_object_get(row, "figure") != NULL;
    fprintf(to, "<td class='n'>%s", is_recorded ? "* " : "");
    if (has_figure) {
        gc_print(to, "%.4g ", gc_lab_row_number(row, "figure"));
        put_text(to, gc_lab_row_text(row, "unit"));
    } else {
        put_time(to, median);
    }
    gc_print(to, "</td><td><span class='bar' style='width:%.1f%%'></span>", longest > 0 ? 100 * median / longest : 0);
    if (bytes > 0 && !has_figure)
        gc_print(to, " %.1f GB/s", bytes / median * 1e-9);
    if (work / (bytes > 0 ? bytes : 1) > 1 && !has_figure)
        gc_print(to, " %.2f TFLOP/s", work / median * 1e-12);
    if (share > 0) {
        gc_print(to, " <b>%.*f %%</b> of ", share < 0.01 ? 3 : 0, 100 * share);
        put_text(to, gc_lab_row_text(row, "bound"));
    }
    fputs("</td>", to);
}

static void put_row(const page *p, const json_t *row, double longest) {
    bool is_recorded;
    const json_t *shown = shown_row(p, row, &is_recorded);
    put_in(p->to, "<tr><th>", gc_lab_row_text(row, "variant"), "</th><td class='w'>");
    put_in(p->to, "", gc_lab_row_text(row, "where"), "</td>");
    if (strcmp(gc_lab_row_text(shown, "state"), "measured") != 0) {
        put_in(p->to, "<td colspan='3' class='s'>", gc_lab_row_text(row, "state"), ": ");
        put_in(p->to, "", gc_lab_row_text(row, "why"), "</td></tr>\n");
        return;
    }
    put_measured(p->to, shown, is_recorded, longest);
    put_in(p->to, "<td class='c'>", gc_lab_row_text(row, "course"), "</td></tr>\n");
}

static bool is_of(const json_t *row, const gc_lab_module *module, const char *size) {
    return strcmp(gc_lab_row_text(row, "module"), module->name) == 0 &&
           (!size || strcmp(gc_lab_row_text(row, "size"), size) == 0);
}

/* Writes the table of one size, whose rows begin at `first`. */
static void put_table(const page *p, const gc_lab_module *module, size_t first) {
    const json_t *rows = json_object_get(p->report, "results"), *row;
    const char *size = gc_lab_row_text(json_array_get(rows, first), "size");
    double longest = 0;
    bool ignored;
    size_t i;
    json_array_foreach(rows, i, row) if (is_of(row, module, size)) longest =
        fmax(longest, gc_lab_row_number(shown_row(p, row, &ignored), "median"));
    put_in(p->to, "<h4>", size, "</h4><table>\n");
    for (i = first; i < json_array_size(rows) && is_of(json_array_get(rows, i), module, size); i++)
        put_row(p, json_array_get(rows, i), longest);
    fputs("</table>\n", p->to);
}

/* Writes the results of a module, one table per size. */
static void put_tables(const page *p, const gc_lab_module *module) {
    const json_t *rows = json_object_get(p->report, "results"), *row;
    const char *size = "";
    size_t i;
    json_array_foreach(rows, i, row) {
        if (!is_of(row, module, NULL) || strcmp(size, gc_lab_row_text(row, "size")) == 0)
            continue;
        size = gc_lab_row_text(row, "size");
        put_table(p, module, i);
    }
}

/* Writes the lines of a rung's code; lines that are new or gone have marks and colours. */
static void put_lines(FILE *to, const gc_lab_code *code) {
    fputs("<pre>", to);
    for (int i = 0; i < code->count; i++) {
        const gc_lab_code_line *line = &code->line[i];
        char text[1000];
        if (line->mark == GC_LAB_LEFT_OUT)
            (void)snprintf(text, sizeof text, "  ... %d lines as in the rung before", line->length);
        else
            (void)snprintf(text, sizeof text, "%c %.*s", line->mark, line->length, line->text);
        const char *kind = line->mark == '+'               ? "p"
                           : line->mark == '-'             ? "m"
                           : line->mark == GC_LAB_LEFT_OUT ? "l"
                                                           : NULL;
        if (kind)
            fprintf(to, "<span class='%s'>", kind);
        put_text(to, code->against ? text : text + 2);
        fputs(kind ? "</span>\n" : "\n", to);
    }
    fputs("</pre>\n", to);
}

/* Writes the rungs: what each one changed, and its code. */
static void put_rungs(const page *p, const gc_lab_module *module) {
    for (int i = 0; i < module->variant_count; i++) {
        const gc_lab_variant *v = &module->variants[i];
        gc_lab_code code;
        put_in(p->to, "<h4>", v->name, "</h4>\n<p>");
        put_text(p->to, v->changed);
        if (gc_lab_code_find(module, i, &code, NULL) != GPUCONV_OK)
            code = (gc_lab_code){0};
        if (code.same) {
            put_in(p->to, " (the code of <b>", code.same->name, "</b>)");
        }
        if (v->limit) {
            put_in(p->to, "</p>\n<p><b>Limit:</b> ", v->limit, "");
        }
        fputs("</p>\n", p->to);
        if (code.count && !code.same)
            put_lines(p->to, &code);
        gc_lab_code_free(&code);
    }
}

/* Returns whether the report has rows of a module. */
static bool is_measured(const page *p, const gc_lab_module *module) {
    const json_t *row;
    size_t i;
    json_array_foreach(json_object_get(p->report, "results"), i, row) if (is_of(row, module, NULL)) return true;
    return false;
}

/* Writes a chapter. The code is left out if the report does not have the module. */
static void put_module(const page *p, const gc_lab_module *module) {
    FILE *to = p->to;
    const json_t *effect;
    size_t i;
    fprintf(to, "<section id='%s'><h2>", module->name);
    put_text(to, module->title);
    put_in(to, "</h2>\n<p class='c'>", module->course, "</p>\n");
    put_paragraphs(to, module->idea);
    put_tables(p, module);
    json_array_foreach(json_object_get(p->report, "effects"), i, effect) {
        if (strcmp(gc_lab_row_text(effect, "module"), module->name) != 0)
            continue;
        int holds = json_is_true(json_object_get(effect, "holds"));
        fprintf(to, "<p class='%s'>%s ", holds ? "y" : "x", holds ? "&#10003;" : "&#10007;");
        put_text(to, gc_lab_row_text(effect, "what"));
        gc_print(to, " <span class='c'>(%.3g, expected %s %.3g)</span></p>\n", gc_lab_row_number(effect, "ratio"),
                 json_is_true(json_object_get(effect, "agree")) ? "within" : "at least",
                 gc_lab_row_number(effect, "wanted"));
    }
    fputs("<h3>What to see</h3>\n", to);
    put_paragraphs(to, module->see);
    if (is_measured(p, module)) {
        fputs("<h3>The code of the rungs</h3>\n", to);
        put_rungs(p, module);
    }
    fputs("<h3>What to try next</h3>\n", to);
    put_paragraphs(to, module->next);
    fputs("</section>\n", to);
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
    ".bar{display:block;height:.45rem;background:#0072b2;margin-top:.45rem;min-width:1px}\n"
    ".y{color:#1a6b2b;margin:.2rem 0}.x{color:#b00020;margin:.2rem 0}\n"
    "svg{width:100%;height:auto}svg text{font:12px system-ui,sans-serif;fill:#444}svg .e{text-anchor:end}svg "
    ".m{text-anchor:middle}svg .g{stroke:#e4e4e4}svg circle.b{fill:#0072b2;fill-opacity:.7}svg circle.a{fill:none;stroke:#c04a00;stroke-width:1.5}\n"
    ".lm{color:#0072b2}.la{color:#c04a00}"
    "pre{font:13px/1.35 ui-monospace,monospace;background:#f7f7f5;padding:.5rem;overflow-x:auto;margin:.3rem 0 1rem}"
    "pre span{display:inline-block;min-width:100%}.p{background:#dff0d8}.m{background:#f6dcd8;color:#6b2b22}.l{color:#777}\n"
    "nav a{margin-right:.8rem;display:inline-block}\n"
    "@media(max-width:40rem){table,tbody,tr,th,td{display:block;width:auto}tr{padding:.3rem 0;border-bottom:1px "
    "solid "
    "#ddd}th,td{border:0;padding:0}.n{text-align:left;width:auto}td:nth-child(4){width:auto}"
    "section{overflow-x:auto}svg{min-width:32rem}}\n"
    "@media print{nav{display:none}body{max-width:none;font-size:10pt}h2{break-before:page}h3,h4,tr,svg{break-inside:avoid}"
    "h3,h4{break-after:avoid}pre{white-space:pre-wrap;font-size:7pt;border:1px solid #ddd}}\n"
    "</style></head><body>\n<h1>The kernels of the courses, measured</h1>\n";

static void put_device(FILE *to, const json_t *report, const json_t *recorded) {
    const json_t *device = json_object_get(report, "device"), *peak = json_object_get(report, "ceilings");
    fputs("<p>", to);
    if (gc_lab_row_number(peak, "copy") > 0) {
        put_text(to, gc_lab_row_text(device, "name"));
        gc_print(
            to,
            ". Measured in this run: copy %.2f TB/s, read %.2f TB/s, multiply-add loop %.1f TFLOP/s, cuBLAS fp16 %.0f and tf32 %.0f "
            "TFLOP/s, an empty launch %.1f µs.",
            gc_lab_row_number(peak, "copy") * 1e-12, gc_lab_row_number(peak, "read") * 1e-12,
            gc_lab_row_number(peak, "fp32") * 1e-12, gc_lab_row_number(peak, "fp16") * 1e-12,
            gc_lab_row_number(peak, "tf32") * 1e-12, gc_lab_row_number(peak, "launch") * 1e6);
    } else {
        put_text(to, "Measured without a GPU. Figures with * were recorded on an ");
        put_text(to, gc_lab_recorded_device(recorded));
        put_text(to, ".");
    }
    fputs(" In the code, lines with + are not in the rung before, and lines with - are gone from it.</p>\n", to);
}

void gc_lab_write_page(const json_t *report, FILE *to) {
    const gc_lab_module *const *modules;
    int count = gc_lab_modules(&modules);
    json_t *sweep, *sweeps, *recorded = gc_lab_recorded_load();
    const page p = {to, report, recorded};
    const char *name;
    fputs(head, to);
    put_device(to, report, recorded);
    fputs("<nav>", to);
    for (int i = 0; i < count; i++)
        fprintf(to, "<a href='#%s'>%s</a>", modules[i]->name, modules[i]->name);
    put_in(to, "</nav>\n<p class='c' style='white-space:pre-line'>", gc_lab_courses, "</p>\n");
    draw_roofline(to, json_object_get(json_object_get(report, "device"), "missing") ? recorded : report);
    sweeps = json_object_get(report, "sweeps");
    if (json_object_size(sweeps) == 0 && json_object_get(json_object_get(report, "device"), "missing"))
        sweeps = json_object_get(recorded, "sweeps");
    json_object_foreach(sweeps, name, sweep) draw_sweep(to, name, sweep);
    for (int i = 0; i < count; i++)
        put_module(&p, modules[i]);
    fputs("</body></html>\n", to);
    json_decref(recorded);
}
