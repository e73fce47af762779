/*
 * Prints the lab as text: the list of modules, a module as a chapter (as text or Markdown), the tables of a report, the
 * device with the occupancy of a launch, and Amdahl's law.
 *
 * Occupancy follows the rules of the CUDA programming guide: registers are allocated to warps in units of 256, shared
 * memory to blocks in units of 128 bytes, and the runtime reserves some shared memory in each block.
 *
 * Amdahl's law is applied to an addition of ten million floats: the parallel share of the time is computed from the
 * measured speedup of all CPU cores over one, and the copies' share from the GPU's times with and without copies.
 */
#include "pages.h"

#include "cli/terminal.h"
#include "cli/wrap.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/os.h"
#include "libgpuconv/core/visible.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    double median = gc_lab_row_number(row, "median"), bytes = gc_lab_row_number(row, "bytes"),
           work = gc_lab_row_number(row, "operations");
    char time[40];
    format_time(median, time, sizeof time);
    print_part(p, "%s +-%4.1f%%", time, 100 * gc_lab_row_number(row, "spread") / median);
    if (gc_lab_row_number(row, "cold") > 0) {
        format_time(gc_lab_row_number(row, "cold"), time, sizeof time);
        print_part(p, "cold%s", time);
    }
    if (bytes > 0)
        print_part(p, "%7.1f GB/s", bytes / median * 1e-9);
    if (work > 0)
        print_part(p, "%8.3f TFLOP/s", work / median * 1e-12);
    if (gc_lab_row_number(row, "share") > 0)
        print_part(p, "%5.1f%% of %.200s", 100 * gc_lab_row_number(row, "share"), gc_lab_row_text(row, "bound"));
    if (json_object_get(row, "figure"))
        print_part(p, "%.4g %.200s", gc_lab_row_number(row, "figure"), gc_lab_row_text(row, "unit"));
    const json_t *facts = json_object_get(row, "facts");
    if (facts)
        print_part(p, "%.0f registers, %.0f bytes local, %.0f blocks of %.0f per multiprocessor",
                   gc_lab_row_number(facts, "registers"), gc_lab_row_number(facts, "local_bytes"),
                   gc_lab_row_number(facts, "blocks"), gc_lab_row_number(facts, "threads"));
}

/* Prints a row. A variant that was skipped because there is no GPU has its recorded figure after a mark. */
static void print_row(const json_t *report, const json_t *recorded, const json_t *row, FILE *to) {
    static const char *const notes[][2] = {{"said", "observed"}, {"course", "course"}};
    char text[300];
    const json_t *other = gc_lab_recorded_instead(report, recorded, row);
    row_printer p = {to, 2 + 32 + 4, gc_terminal_columns(fileno(to))};
    fputs("  ", to);
    print_text(to, gc_lab_row_text(row, "variant"), -32);
    fputc(' ', to);
    print_text(to, gc_lab_row_text(row, "where"), -3);
    if (other) {
        gc_lab_recorded_format(other, GC_LAB_FIGURE, text, sizeof text);
        fprintf(to, "  * %s\n", text);
    } else if (strcmp(gc_lab_row_text(row, "state"), "measured") != 0) {
        fputc(' ', to);
        print_text(to, gc_lab_row_text(row, "state"), 0);
        fputs(": ", to);
        print_text(to, gc_lab_row_text(row, "why"), 0);
        fputc('\n', to);
        return;
    } else {
        print_measured(row, &p);
        fputc('\n', to);
    }
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
        if (json_object_get(row, notes[i][0])) {
            fprintf(to, "    %s: ", notes[i][1]);
            print_text(to, gc_lab_row_text(row, notes[i][0]), 0);
            fputc('\n', to);
        }
}

static void print_sweep(const char *name, const json_t *sweep, FILE *to) {
    size_t i;
    const json_t *point;
    fputs("\nsweep ", to);
    print_text(to, name, 0);
    fputs("\n  ", to);
    print_text(to, gc_lab_row_text(sweep, "across"), 12);
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
    if (gc_lab_row_number(peak, "copy") > 0) {
        print_text(to, gc_lab_row_text(device, "name"), 0);
        gc_print(
            to,
            "\nmeasured in this run: copy %.1f GB/s, read %.1f GB/s, multiply-add loop %.2f TFLOP/s, cuBLAS fp16 %.1f and tf32 "
            "%.1f TFLOP/s, an empty launch %.2f us\n",
            gc_lab_row_number(peak, "copy") * 1e-9, gc_lab_row_number(peak, "read") * 1e-9,
            gc_lab_row_number(peak, "fp32") * 1e-12, gc_lab_row_number(peak, "fp16") * 1e-12,
            gc_lab_row_number(peak, "tf32") * 1e-12, gc_lab_row_number(peak, "launch") * 1e6);
    } else if (json_object_get(device, "missing")) {
        fputs("There is no GPU (", to);
        print_text(to, gc_lab_row_text(device, "missing"), 0);
        fprintf(to, "). The figures after * were recorded on an %s.\n", gc_lab_recorded_device(recorded));
    }
}

static void print_effect(const json_t *row, FILE *to) {
    fprintf(to, "  %-5s ", json_is_true(json_object_get(row, "holds")) ? "holds" : "FAILS");
    print_text(to, gc_lab_row_text(row, "module"), -16);
    fputc(' ', to);
    print_text(to, gc_lab_row_text(row, "what"), 0);
    fputs(" (", to);
    print_text(to, gc_lab_row_text(row, "size"), 0);
    gc_print(to, "): %.3g, expected %s %.3g\n", gc_lab_row_number(row, "ratio"),
             json_is_true(json_object_get(row, "agree")) ? "within" : "at least", gc_lab_row_number(row, "wanted"));
}

void gc_lab_write_tables(const json_t *report, FILE *to) {
    const json_t *row;
    const char *module = "", *size = "";
    size_t i;
    json_t *recorded = gc_lab_recorded_load();
    print_device(report, recorded, to);
    json_array_foreach(json_object_get(report, "results"), i, row) {
        if (strcmp(module, gc_lab_row_text(row, "module")) != 0 || strcmp(size, gc_lab_row_text(row, "size")) != 0) {
            fputc('\n', to);
            print_text(to, gc_lab_row_text(row, "module"), 0);
            fputs(", ", to);
            print_text(to, gc_lab_row_text(row, "size"), 0);
            fputc('\n', to);
        }
        module = gc_lab_row_text(row, "module");
        size = gc_lab_row_text(row, "size");
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

enum { MIN_WIDTH = 40, MAX_WIDTH = 100 };

/* How a chapter is printed. */
typedef struct chapter {
    const gc_lab_module *module;
    FILE *to;
    int width; /* columns */
    bool markdown, brief;
    json_t *recorded; /* or NULL */
} chapter;

/* Wraps the paragraphs of a text, which blank lines separate, and begins every line with `margin` blanks. */
static void write_wrapped(const chapter *c, const char *text, int margin) {
    for (;;) {
        const char *end = strstr(text, "\n\n");
        fprintf(c->to, "%*s", margin, "");
        gc_print_words(c->to, text, end ? (size_t)(end - text) : strlen(text), (gc_wrap){margin, c->width});
        if (!end)
            return;
        fputc('\n', c->to);
        text = end + 2;
    }
}

/* Writes the name of a module's source files: the module's name with underscores instead of hyphens. */
static void format_stem(const gc_lab_module *module, char *stem, size_t room) {
    (void)snprintf(stem, room, "%s", module->name);
    for (char *c = stem; *c; c++)
        if (*c == '-')
            *c = '_';
}

/* Writes the folder of the sources with a slash at its end: that of the installation that the program belongs to; "" in
 * a build, whose sources are named relative to the checkout. */
static const char *find_sources(char *folder, size_t room) {
    char program[4096], path[4200];
    char *slash = gc_os_program_path(program, sizeof program) ? strrchr(program, '/') : NULL;
    (void)snprintf(path, sizeof path, "%.*s" LAB_SOURCES_FROM_PROGRAM, slash ? (int)(slash + 1 - program) : 0, program);
    char *absolute = slash ? realpath(path, NULL) : NULL;
    (void)snprintf(folder, room, "%s%s", absolute ? absolute : "", absolute ? "/" : "");
    free(absolute);
    return folder;
}

/* ---- The ladder -------------------------------------------------------------------------------------------------- */

static void write_lines(const chapter *c, const gc_lab_code *code) {
    const char *fence = c->markdown ? "```" : "";
    if (c->markdown)
        fprintf(c->to, "%s%s\n", fence, code->against ? "diff" : "cuda");
    for (int i = 0; i < code->count; i++) {
        const gc_lab_code_line *line = &code->line[i];
        if (line->mark == GC_LAB_LEFT_OUT) {
            fprintf(c->to, "%s  ... %d lines as in the rung before\n", c->markdown ? "" : "    ", line->length);
            continue;
        }
        char mark[3] = {line->mark, ' ', '\0'};
        bool marked = code->against && line->length > 0;
        fprintf(c->to, "%s%s%.*s\n", c->markdown || !line->length ? "" : "    ", marked ? mark : "", line->length,
                line->text);
    }
    fprintf(c->to, "%s%s", fence, c->markdown ? "\n" : "");
}

/* Writes that a rung has the code of another one. */
static void write_same(const chapter *c, const gc_lab_variant *v, const gc_lab_variant *same) {
    const char *quote = c->markdown ? "*" : "\"";
    fprintf(c->to, "%sThe code of %s%s%s", c->markdown ? "" : "      ", quote, same->name, quote);
    if (same->parameter != v->parameter)
        fprintf(c->to, ", with the parameter %d instead of %d", v->parameter, same->parameter);
    fputs(".\n", c->to);
}

/* Writes the code of a rung, or names the rung that has the same code. */
static gpuconv_status write_code(const chapter *c, int rung, gpuconv_error *error) {
    gc_lab_code code;
    gpuconv_status err = gc_lab_code_find(c->module, rung, &code, error);
    if (!err && code.count > 0) {
        fputc('\n', c->to);
        if (code.same)
            write_same(c, &c->module->variants[rung], code.same);
        else
            write_lines(c, &code);
    }
    gc_lab_code_free(&code);
    return err;
}

/* Writes the recorded figure of a rung, if there is one. */
static void write_figure(const chapter *c, const gc_lab_variant *v) {
    char text[300];
    const json_t *row = gc_lab_recorded_find(c->recorded, c->module->name, v->name, NULL);
    if (!row)
        return;
    (void)snprintf(text, sizeof text, "%s", c->markdown ? "Recorded: " : "> ");
    gc_lab_recorded_format(row, GC_LAB_ARITHMETIC, text + strlen(text), sizeof text - strlen(text));
    fputs(c->markdown ? "\n" : "", c->to);
    write_wrapped(c, text, c->markdown ? 0 : 6);
}

static gpuconv_status write_rung(const chapter *c, int rung, gpuconv_error *error) {
    const gc_lab_variant *v = &c->module->variants[rung];
    const char *where = v->where == LAB_CPU ? "CPU" : "GPU";
    fprintf(c->to, c->markdown ? "\n### %s (%s)\n\n" : "\n  %s (%s)\n", v->name, where);
    write_wrapped(c, v->changed, c->markdown ? 0 : 6);
    write_figure(c, v);
    if (v->limit) {
        char text[1500];
        (void)snprintf(text, sizeof text, "%s %s", c->markdown ? "**Limit:**" : "Limit:", v->limit);
        fputs(c->markdown ? "\n" : "", c->to);
        write_wrapped(c, text, c->markdown ? 0 : 6);
    }
    if (v->course)
        fprintf(c->to, "%s: %s\n", c->markdown ? "\nThe course" : "      course", v->course);
    return c->brief ? GPUCONV_OK : write_code(c, rung, error);
}

static const char marks[] = "Lines with + are not in the rung before, lines with - are gone from it.";

static gpuconv_status write_ladder(const chapter *c, gpuconv_error *error) {
    gpuconv_status err = GPUCONV_OK;
    char text[400];
    (void)snprintf(text, sizeof text, "The figures%s were recorded on an %s; gpulab run %s measures this machine.%s%s",
                   c->markdown ? "" : " after >", gc_lab_recorded_device(c->recorded), c->module->name,
                   c->brief ? "" : " ", c->brief ? "" : marks);
    write_wrapped(c, text, 0);
    for (int i = 0; i < c->module->variant_count && !err; i++)
        err = write_rung(c, i, error);
    return err;
}

/* ---- Chapters ---------------------------------------------------------------------------------------------------- */

gpuconv_status gc_lab_write_module(const gc_lab_module *module, bool brief, FILE *to, gpuconv_error *error) {
    char stem[64], size[100], sources[4200];
    int columns = gc_terminal_columns(fileno(to));
    chapter c = {module, to,
                 columns < MIN_WIDTH   ? MIN_WIDTH
                 : columns > MAX_WIDTH ? MAX_WIDTH
                                       : columns,
                 .brief = brief, .recorded = gc_lab_recorded_load()};
    format_stem(module, stem, sizeof stem);
    (void)snprintf(sources + strlen(find_sources(sources, sizeof sources - 200)), 200, "kernels/course/%s.c and .cu",
                   stem);
    write_wrapped(&c, module->title, 0);
    fprintf(to, "\nModule:  %s\nCourses: %s\nSource:  %s\n\n", module->name, module->course, sources);
    write_wrapped(&c, module->idea, 0);
    fprintf(to, "\nThe ladder of variants and what each one changed\n\n");
    gpuconv_status err = write_ladder(&c, error);
    fprintf(to, "\nSizes (");
    for (int d = 0; d < LAB_DIMENSIONS && module->dimension[d]; d++)
        fprintf(to, "%s%s", d ? " x " : "", module->dimension[d]);
    fprintf(to, "):");
    for (int i = 0; i < module->size_count; i++) {
        gc_lab_format_size(module, module->sizes[i].value, size, sizeof size);
        fprintf(to, " %s", size);
    }
    fprintf(to, "\n\nWhat to see\n\n");
    write_wrapped(&c, module->see, 2);
    fprintf(to, "\nWhat to try next\n\n");
    write_wrapped(&c, module->next, 2);
    json_decref(c.recorded);
    return err;
}

static void write_effects(const gc_lab_module *module, FILE *to) {
    if (module->effect_count)
        fprintf(to, "\nOn a GPU, `gpulab check` and `gpulab run` check these effects:\n\n");
    for (int i = 0; i < module->effect_count; i++) {
        const gc_lab_effect *e = &module->effects[i];
        if (e->slower)
            gc_print(to, "- %s: *%s* compared with *%s*, %s %g\n", e->what, e->slower, e->faster,
                     e->agree ? "within a factor of" : "at least", e->ratio);
        else
            gc_print(to, "- %s: *%s* reaches at least %g of its peak rate\n", e->what, e->faster, e->ratio);
    }
}

gpuconv_status gc_lab_write_chapter(const gc_lab_module *module, bool brief, FILE *to, gpuconv_error *error) {
    char stem[64], sources[4200];
    chapter c = {module, to, MAX_WIDTH, .markdown = true, .brief = brief, .recorded = gc_lab_recorded_load()};
    format_stem(module, stem, sizeof stem);
    find_sources(sources, sizeof sources);
    fprintf(to, "# %s\n\n", module->title);
    write_wrapped(&c, module->idea, 0);
    fprintf(to,
            "\nFrom: %s. Source: `%skernels/course/%s.c` (idea, reference, CPU) and `%skernels/course/%s.cu` (GPU).\n",
            module->course, sources, stem, sources, stem);
    fprintf(to, "\n## What to run\n\n    gpulab run %s\n    gpulab check %s\n\n## The ladder\n\n", module->name,
            module->name);
    gpuconv_status err = write_ladder(&c, error);
    fprintf(to, "\n## What to see\n\n");
    write_wrapped(&c, module->see, 0);
    write_effects(module, to);
    fprintf(to, "\n## What to try next\n\n");
    write_wrapped(&c, module->next, 0);
    json_decref(c.recorded);
    return err;
}

/* ---- The device -------------------------------------------------------------------------------------------------- */

enum { WARP = 32, REGISTER_UNIT = 256, SHARED_UNIT = 128 };

/* Returns how many blocks of this shape are resident on a multiprocessor, 0 if a block exceeds a limit. `*limit` names
 * the resource that bounds the number. */
static int find_occupancy(const gc_lab_device_info *device, const gc_lab_block_shape *shape, const char **limit) {
    int64_t warps = gc_max(1, (shape->threads + WARP - 1) / WARP);
    int64_t registers = gc_round_up((int64_t)gc_max(shape->registers, 1) * WARP, REGISTER_UNIT) * warps;
    int64_t shared = gc_round_up(shape->shared + device->shared_reserved, SHARED_UNIT);
    int64_t most = device->blocks_multiprocessor;
    *limit = "blocks";
    const struct {
        const char *name;
        int64_t blocks;
    } limits[] = {{"threads", device->threads_multiprocessor / (warps * WARP)},
                  {"registers", device->registers_multiprocessor / registers},
                  {"shared memory", shared > 0 ? device->shared_multiprocessor / shared : most}};
    if (shape->threads > device->threads_block || shape->shared > device->shared_block_optin) {
        *limit = shape->threads > device->threads_block ? "threads of a block" : "shared memory of a block";
        return 0;
    }
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (limits[i].blocks < most) {
            most = limits[i].blocks;
            *limit = limits[i].name;
        }
    return (int)most;
}

void gc_lab_print_device(const gc_lab_session *session, const gc_lab_block_shape *shape, FILE *to) {
    if (!session->device) {
        fprintf(to, "no GPU: %s\n", session->no_device);
        return;
    }
    const gc_lab_device_info *d = gc_lab_device_get_info(session->device);
    const char *limit;
    gc_lab_nvml_reading reading;
    int blocks = find_occupancy(d, shape, &limit);
    fprintf(to, "%s, compute capability %d.%d, driver for CUDA %d.%d\n", d->name, d->capability / 10,
            d->capability % 10, d->driver / 1000, d->driver % 1000 / 10);
    fprintf(to, "  multiprocessors          %d, each %d threads, %d blocks, %d registers, %lld KiB shared memory\n",
            d->multiprocessors, d->threads_multiprocessor, d->blocks_multiprocessor, d->registers_multiprocessor,
            (long long)d->shared_multiprocessor / 1024);
    fprintf(to, "  block limits             %d threads, %lld KiB shared memory, up to %lld KiB if requested\n",
            d->threads_block, (long long)d->shared_block / 1024, (long long)d->shared_block_optin / 1024);
    gc_print(to, "  memory                   %.1f GiB, %d bits at %.0f MHz; L2 cache %.0f MiB; constants %lld KiB\n",
             (double)d->memory / 0x1p30, d->bus_bits, d->memory_clock_hz * 1e-6, (double)d->l2 / 0x1p20,
             (long long)d->constant / 1024);
    fprintf(to, "  copy engines             %d; managed memory: %s; mapped memory: %s\n", d->copy_engines,
            d->managed ? "yes" : "no", d->mapped ? "yes" : "no");
    if (gc_lab_nvml_read(session->nvml, &reading)) {
        char reasons[200];
        gc_lab_nvml_throttle_text(reading.throttle_reasons, reasons, sizeof reasons);
        gc_print(to, "  present state            %.0f of %.0f MHz, memory %.0f MHz, %.0f C, %.0f W, throttled by: %s\n",
                 reading.clock_hz * 1e-6, reading.clock_max_hz * 1e-6, reading.memory_clock_hz * 1e-6, reading.celsius,
                 reading.watts, reasons);
    } else {
        fprintf(to, "  present state            unknown: NVML is not available\n");
    }
    gc_print(to,
             "blocks of %d threads, %d registers per thread, %lld bytes of shared memory per block:\n"
             "  %d blocks per multiprocessor, occupancy %.0f %%, limited by %s; %d blocks fill the device\n",
             shape->threads, shape->registers, (long long)shape->shared, blocks,
             100.0 * blocks * shape->threads / d->threads_multiprocessor, limit, blocks * d->multiprocessors);
}

/* ---- Amdahl's law ------------------------------------------------------------------------------------------------ */

/* Returns the median time of a variant; 0 if it was not measured. */
static double median_of(const json_t *rows, const char *variant) {
    size_t i;
    const json_t *row;
    double median = 0;
    json_array_foreach(rows, i, row) {
        if (gc_lab_row_has(row, "variant", variant) && json_object_get(row, "median"))
            median = gc_lab_row_number(row, "median");
    }
    return median;
}

/* Prints the speedup 1 / (1 - p + p / s) for a share p of the time that is sped up by s. */
static void print_table(double share, FILE *to) {
    gc_print(to,
             "\nMeasured on the CPU cores: %.2f %% of the time is parallel. Speedup of the whole on N processors:\n ",
             share * 100);
    for (int s = 2; s <= 65536; s *= 4)
        gc_print(to, "  %.4g x on %d", 1 / (1 - share + share / s), s);
    gc_print(to, "\n  at most %.4g x on any number\n", 1 / (1 - share));
}

int gc_lab_print_amdahl(gc_lab_session *session, FILE *to) {
    int64_t size[LAB_DIMENSIONS] = {10000000};
    const gc_lab_run_options options = {.size = size};
    json_t *rows = json_array();
    int failures = gc_lab_time_module(session, gc_lab_module_find("vector-add"), &options, rows);
    double one_core = median_of(rows, "CPU sequential"), all_cores = median_of(rows, "CPU OpenMP"),
           kernel = median_of(rows, "one thread an element"), with_copies = median_of(rows, "explicit copies");
    json_decref(rows);
    int cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    gc_print(to, "Addition of ten million floats: one core %.3f ms, %d cores %.3f ms", one_core * 1e3, cores,
             all_cores * 1e3);
    if (kernel > 0)
        gc_print(to, ", GPU kernel %.3f ms, GPU with copies %.3f ms", kernel * 1e3, with_copies * 1e3);
    fprintf(to, "\n");
    if (cores > 1 && all_cores > 0 && one_core > all_cores) { /* speedup s on n cores: p = (1 - 1/s) / (1 - 1/n) */
        double p = (1 - all_cores / one_core) / (1 - 1.0 / cores);
        print_table(p < 1 ? p : 1 - 1e-6, to);
    } else {
        fprintf(to, "\nThe cores show no speedup, so the parallel share is unknown.\n");
    }
    if (kernel > 0 && with_copies > kernel) {
        gc_print(to,
                 "\nOn the GPU the copies take %.1f %% of the time. A kernel that takes no time would make the whole "
                 "%.3g x as fast.\n",
                 100 * (1 - kernel / with_copies), with_copies / (with_copies - kernel));
        gc_print(to, "Compared with one core: the kernel alone %.4g x, with copies %.3g x.\n", one_core / kernel,
                 one_core / with_copies);
    }
    return failures;
}
