/* Prints the list of modules and reports as text. */
#include "text.h"

#include "cli/terminal.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/visible.h"
#include "recorded.h"
#include "run.h"

#include <stdarg.h>

#include <string.h>

const char gc_lab_courses[] = "Stahl: GPU Programming with CUDA (2025)\n"
                              "Khunjush: GPU Programming (2025)\n"
                              "CUDA tutorial: vector add to flash attention\n"
                              "Filipovi\u010d: GPU Architecture and Programming Model (2025)\n"
                              "Antolin: MATH-454, lecture 8 (2025)\n";

void gc_lab_write_list(FILE *to) {
    const gc_lab_module *const *modules;
    int count = gc_lab_modules(&modules);
    for (int i = 0; i < count; i++)
        fprintf(to, "%-16s %2d variants  %s\n", modules[i]->name, modules[i]->variant_count, modules[i]->title);
    fprintf(to, "\nThe courses that gpulab show names:\n%s", gc_lab_courses);
}

/* ---- Tables ------------------------------------------------------------------------------------------------------ */

enum { INDENT = 8 }; /* of the lines that continue a row */

static const char *text_of(const json_t *row, const char *name) {
    const char *text = json_string_value(json_object_get(row, name));
    return text ? text : "";
}

static double number_of(const json_t *row, const char *name) {
    return json_number_value(json_object_get(row, name));
}

/* Prints a text on one line, padded to `width`, with control characters as escapes. All texts of a report are printed
 * by this function because a report may come from an untrusted file. */
static void print_text(FILE *to, const char *text, int width) {
    char shown[1024];
    fprintf(to, "%*s", width, gc_visible(shown, sizeof shown, text ? text : ""));
}

/* Prints the parts of a row, wrapped to the terminal. */
typedef struct row_printer {
    FILE *to;
    int column, width;
} row_printer;

/* Prints one part after two blanks, on a new line if it does not fit. */
static void print_part(row_printer *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void print_part(row_printer *p, const char *format, ...) {
    char part[400], shown[400];
    va_list args;
    va_start(args, format);
    (void)gc_vformat(part, sizeof part, format, args);
    va_end(args);
    int columns = gc_display_columns(gc_visible(shown, sizeof shown, part));
    if (p->column + 2 + columns > p->width && p->column > INDENT) {
        fprintf(p->to, "\n%*s", INDENT - 2, "");
        p->column = INDENT - 2;
    }
    fprintf(p->to, "  %s", shown);
    p->column += 2 + columns;
}

static void format_time(double seconds, char *text, size_t room) {
    if (seconds >= 1)
        (void)gc_format(text, room, "%8.3f s ", seconds);
    else if (seconds >= 1e-3)
        (void)gc_format(text, room, "%8.3f ms", seconds * 1e3);
    else
        (void)gc_format(text, room, "%8.2f us", seconds * 1e6);
}

static void print_measured(const json_t *row, row_printer *p) {
    double median = number_of(row, "median"), bytes = number_of(row, "bytes"), work = number_of(row, "operations");
    char time[40];
    format_time(median, time, sizeof time);
    print_part(p, "%s +-%4.1f%%", time, 100 * number_of(row, "spread") / median);
    if (number_of(row, "cold") > 0) {
        format_time(number_of(row, "cold"), time, sizeof time);
        print_part(p, "cold%s", time);
    }
    if (bytes > 0)
        print_part(p, "%7.1f GB/s", bytes / median * 1e-9);
    if (work > 0)
        print_part(p, "%8.3f TFLOP/s", work / median * 1e-12);
    if (number_of(row, "share") > 0)
        print_part(p, "%5.1f%% of %.200s", 100 * number_of(row, "share"), text_of(row, "bound"));
    if (json_object_get(row, "figure"))
        print_part(p, "%.4g %.200s", number_of(row, "figure"), text_of(row, "unit"));
    const json_t *facts = json_object_get(row, "facts");
    if (facts)
        print_part(p, "%.0f registers, %.0f bytes local, %.0f blocks of %.0f per multiprocessor",
                   number_of(facts, "registers"), number_of(facts, "local_bytes"), number_of(facts, "blocks"),
                   number_of(facts, "threads"));
}

/* Prints a row. A variant that was skipped because there is no GPU has its recorded figure after a mark. */
static void print_row(const json_t *report, const json_t *recorded, const json_t *row, FILE *to) {
    static const char *const notes[][2] = {{"said", "observed"}, {"course", "course"}};
    char text[300];
    const json_t *other =
        gc_lab_is_skipped_without_gpu(report, row)
            ? gc_lab_recorded_find(recorded, text_of(row, "module"), text_of(row, "variant"), text_of(row, "size"))
            : NULL;
    row_printer p = {to, 2 + 32 + 4, gc_terminal_columns(fileno(to))};
    fputs("  ", to);
    print_text(to, text_of(row, "variant"), -32);
    fputc(' ', to);
    print_text(to, text_of(row, "where"), -3);
    if (other) {
        gc_lab_recorded_format(other, GC_LAB_FIGURE, text, sizeof text);
        fprintf(to, "  * %s\n", text);
    } else if (strcmp(text_of(row, "state"), "measured") != 0) {
        fputc(' ', to);
        print_text(to, text_of(row, "state"), 0);
        fputs(": ", to);
        print_text(to, text_of(row, "why"), 0);
        fputc('\n', to);
        return;
    } else {
        print_measured(row, &p);
        fputc('\n', to);
    }
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
        if (json_object_get(row, notes[i][0])) {
            fprintf(to, "    %s: ", notes[i][1]);
            print_text(to, text_of(row, notes[i][0]), 0);
            fputc('\n', to);
        }
}

static void print_sweep(const char *name, const json_t *sweep, FILE *to) {
    size_t i;
    const json_t *point;
    fputs("\nsweep ", to);
    print_text(to, name, 0);
    fputs("\n  ", to);
    print_text(to, text_of(sweep, "across"), 12);
    const json_t *columns = json_object_get(sweep, "columns"), *column;
    json_array_foreach(columns, i, column) {
        fputs("  ", to);
        print_text(to, json_string_value(column), 24);
    }
    fprintf(to, "\n");
    json_array_foreach(json_object_get(sweep, "points"), i, point) {
        size_t k;
        const json_t *value;
        json_array_foreach(point, k, value) {
            if (k == 0)
                gc_print(to, "  %12.0f", json_number_value(value));
            else if (json_is_number(value))
                gc_print(to, "  %24.5g", json_number_value(value));
            else
                fprintf(to, "  %24s", "-");
        }
        fprintf(to, "\n");
    }
}

static void print_device(const json_t *report, const json_t *recorded, FILE *to) {
    const json_t *peak = json_object_get(report, "ceilings"), *device = json_object_get(report, "device");
    if (number_of(peak, "copy") > 0) {
        print_text(to, text_of(device, "name"), 0);
        gc_print(
            to,
            "\nmeasured in this run: copy %.1f GB/s, read %.1f GB/s, multiply-add loop %.2f TFLOP/s, cuBLAS fp16 %.1f and tf32 "
            "%.1f TFLOP/s, an empty launch %.2f us\n",
            number_of(peak, "copy") * 1e-9, number_of(peak, "read") * 1e-9, number_of(peak, "fp32") * 1e-12,
            number_of(peak, "fp16") * 1e-12, number_of(peak, "tf32") * 1e-12, number_of(peak, "launch") * 1e6);
    } else if (json_object_get(device, "missing")) {
        fputs("There is no GPU (", to);
        print_text(to, text_of(device, "missing"), 0);
        fprintf(to, "). The figures after * were recorded on an %s.\n", gc_lab_recorded_device(recorded));
    }
}

static void print_effect(const json_t *row, FILE *to) {
    fprintf(to, "  %-5s ", json_is_true(json_object_get(row, "holds")) ? "holds" : "FAILS");
    print_text(to, text_of(row, "module"), -16);
    fputc(' ', to);
    print_text(to, text_of(row, "what"), 0);
    fputs(" (", to);
    print_text(to, text_of(row, "size"), 0);
    gc_print(to, "): %.3g, expected %s %.3g\n", number_of(row, "ratio"),
             json_is_true(json_object_get(row, "agree")) ? "within" : "at least", number_of(row, "wanted"));
}

void gc_lab_write_tables(const json_t *report, FILE *to) {
    const json_t *row;
    const char *module = "", *size = "";
    size_t i;
    json_t *recorded = gc_lab_recorded_load();
    print_device(report, recorded, to);
    json_array_foreach(json_object_get(report, "results"), i, row) {
        if (strcmp(module, text_of(row, "module")) != 0 || strcmp(size, text_of(row, "size")) != 0) {
            fputc('\n', to);
            print_text(to, text_of(row, "module"), 0);
            fputs(", ", to);
            print_text(to, text_of(row, "size"), 0);
            fputc('\n', to);
        }
        module = text_of(row, "module");
        size = text_of(row, "size");
        print_row(report, recorded, row, to);
    }
    if (json_array_size(json_object_get(report, "effects")))
        fprintf(to, "\neffects\n");
    json_array_foreach(json_object_get(report, "effects"), i, row) print_effect(row, to);
    const char *name;
    json_t *sweep;
    json_object_foreach(json_object_get(report, "sweeps"), name, sweep) print_sweep(name, sweep, to);
    json_decref(recorded);
}
