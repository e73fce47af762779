/* Writes the page. It loads nothing from elsewhere, and its widths are relative, so that it is readable on a phone. */
#include "html.h"

#include "code.h"
#include "html_plots.h"
#include "libgpuconv/core/number.h"
#include "recorded.h"
#include "run.h"
#include "text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *text_of(const json_t *row, const char *name) {
    const char *text = json_string_value(json_object_get(row, name));
    return text ? text : "";
}

static double number_of(const json_t *row, const char *name) {
    return json_number_value(json_object_get(row, name));
}

/* Writes a text whose paragraphs are separated by empty lines. */
static void put_paragraphs(FILE *to, const char *text) {
    fputs("<p>", to);
    for (const char *end; (end = strstr(text, "\n\n")) != NULL; text = end + 2) {
        char *part = strndup(text, (size_t)(end - text));
        gc_html_put_text(to, part);
        free(part);
        fputs("</p>\n<p>", to);
    }
    gc_html_put_text(to, text);
    fputs("</p>\n", to);
}

static void put_time(FILE *to, double seconds) {
    if (seconds >= 1e-3)
        gc_print(to, "%.3f ms", seconds * 1e3);
    else
        gc_print(to, "%.2f µs", seconds * 1e6);
}

/* ---- Results ----------------------------------------------------------------------------------------------------- */

/* What the page is made from. */
typedef struct page {
    FILE *to;
    const json_t *report;
    json_t *recorded; /* or NULL */
} page;

/* Returns the row to show: the recorded one for a variant that was skipped because there is no GPU. */
static const json_t *shown_row(const page *p, const json_t *row, bool *is_recorded) {
    const json_t *other =
        gc_lab_is_skipped_without_gpu(p->report, row)
            ? gc_lab_recorded_find(p->recorded, text_of(row, "module"), text_of(row, "variant"), text_of(row, "size"))
            : NULL;
    *is_recorded = other != NULL;
    return other ? other : row;
}

/* Writes the cells with the time or figure, its bar and its rates. */
static void put_measured(FILE *to, const json_t *row, bool is_recorded, double longest) {
    double median = number_of(row, "median"), bytes = number_of(row, "bytes"), work = number_of(row, "operations"),
           share = number_of(row, "share");
    bool has_figure = json_object_get(row, "figure") != NULL;
    fprintf(to, "<td class='n'>%s", is_recorded ? "* " : "");
    if (has_figure) {
        gc_print(to, "%.4g ", number_of(row, "figure"));
        gc_html_put_text(to, text_of(row, "unit"));
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
        gc_html_put_text(to, text_of(row, "bound"));
    }
    fputs("</td>", to);
}

static void put_row(const page *p, const json_t *row, double longest) {
    bool is_recorded;
    const json_t *shown = shown_row(p, row, &is_recorded);
    fputs("<tr><th>", p->to);
    gc_html_put_text(p->to, text_of(row, "variant"));
    fputs("</th><td class='w'>", p->to);
    gc_html_put_text(p->to, text_of(row, "where"));
    fputs("</td>", p->to);
    if (strcmp(text_of(shown, "state"), "measured") != 0) {
        fputs("<td colspan='3' class='s'>", p->to);
        gc_html_put_text(p->to, text_of(row, "state"));
        fputs(": ", p->to);
        gc_html_put_text(p->to, text_of(row, "why"));
        fputs("</td></tr>\n", p->to);
        return;
    }
    put_measured(p->to, shown, is_recorded, longest);
    fputs("<td class='c'>", p->to);
    gc_html_put_text(p->to, text_of(row, "course"));
    fputs("</td></tr>\n", p->to);
}

static bool is_of(const json_t *row, const gc_lab_module *module, const char *size) {
    return strcmp(text_of(row, "module"), module->name) == 0 && (!size || strcmp(text_of(row, "size"), size) == 0);
}

/* Writes the table of one size, whose rows begin at `first`. */
static void put_table(const page *p, const gc_lab_module *module, size_t first) {
    const json_t *rows = json_object_get(p->report, "results"), *row;
    const char *size = text_of(json_array_get(rows, first), "size");
    double longest = 0;
    bool ignored;
    size_t i;
    json_array_foreach(rows, i, row) if (is_of(row, module, size)) longest =
        fmax(longest, number_of(shown_row(p, row, &ignored), "median"));
    fputs("<h4>", p->to);
    gc_html_put_text(p->to, size);
    fputs("</h4><table>\n", p->to);
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
        if (!is_of(row, module, NULL) || strcmp(size, text_of(row, "size")) == 0)
            continue;
        size = text_of(row, "size");
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
        gc_html_put_text(to, code->against ? text : text + 2);
        fputs(kind ? "</span>\n" : "\n", to);
    }
    fputs("</pre>\n", to);
}

/* Writes the rungs: what each one changed, and its code. */
static void put_rungs(const page *p, const gc_lab_module *module) {
    for (int i = 0; i < module->variant_count; i++) {
        const gc_lab_variant *v = &module->variants[i];
        gc_lab_code code;
        fputs("<h4>", p->to);
        gc_html_put_text(p->to, v->name);
        fputs("</h4>\n<p>", p->to);
        gc_html_put_text(p->to, v->changed);
        if (gc_lab_code_find(module, i, &code, NULL) != GPUCONV_OK)
            code = (gc_lab_code){0};
        if (code.same) {
            fputs(" (the code of <b>", p->to);
            gc_html_put_text(p->to, code.same->name);
            fputs("</b>)", p->to);
        }
        if (v->limit) {
            fputs("</p>\n<p><b>Limit:</b> ", p->to);
            gc_html_put_text(p->to, v->limit);
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
    gc_html_put_text(to, module->title);
    fputs("</h2>\n<p class='c'>", to);
    gc_html_put_text(to, module->course);
    fputs("</p>\n", to);
    put_paragraphs(to, module->idea);
    put_tables(p, module);
    json_array_foreach(json_object_get(p->report, "effects"), i, effect) {
        if (strcmp(text_of(effect, "module"), module->name) != 0)
            continue;
        int holds = json_is_true(json_object_get(effect, "holds"));
        fprintf(to, "<p class='%s'>%s ", holds ? "y" : "x", holds ? "&#10003;" : "&#10007;");
        gc_html_put_text(to, text_of(effect, "what"));
        gc_print(to, " <span class='c'>(%.3g, expected %s %.3g)</span></p>\n", number_of(effect, "ratio"),
                 json_is_true(json_object_get(effect, "agree")) ? "within" : "at least", number_of(effect, "wanted"));
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
    if (number_of(peak, "copy") > 0) {
        gc_html_put_text(to, text_of(device, "name"));
        gc_print(
            to,
            ". Measured in this run: copy %.2f TB/s, read %.2f TB/s, multiply-add loop %.1f TFLOP/s, cuBLAS fp16 %.0f and tf32 %.0f "
            "TFLOP/s, an empty launch %.1f µs.",
            number_of(peak, "copy") * 1e-12, number_of(peak, "read") * 1e-12, number_of(peak, "fp32") * 1e-12,
            number_of(peak, "fp16") * 1e-12, number_of(peak, "tf32") * 1e-12, number_of(peak, "launch") * 1e6);
    } else {
        gc_html_put_text(to, "Measured without a GPU. Figures with * were recorded on an ");
        gc_html_put_text(to, gc_lab_recorded_device(recorded));
        gc_html_put_text(to, ".");
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
    fputs("</nav>\n<p class='c' style='white-space:pre-line'>", to);
    gc_html_put_text(to, gc_lab_courses);
    fputs("</p>\n", to);
    gc_html_draw_roofline(to, json_object_get(json_object_get(report, "device"), "missing") ? recorded : report);
    sweeps = json_object_get(report, "sweeps");
    if (json_object_size(sweeps) == 0 && json_object_get(json_object_get(report, "device"), "missing"))
        sweeps = json_object_get(recorded, "sweeps");
    json_object_foreach(sweeps, name, sweep) gc_html_draw_sweep(to, name, sweep);
    for (int i = 0; i < count; i++)
        put_module(&p, modules[i]);
    fputs("</body></html>\n", to);
    json_decref(recorded);
}
