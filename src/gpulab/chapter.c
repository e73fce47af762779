/* Prints chapters as text and as Markdown. */
#include "chapter.h"

#include "cli/terminal.h"
#include "cli/wrap.h"
#include "code.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/number.h"
#include "recorded.h"
#include "run.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    ssize_t length = readlink("/proc/self/exe", program, sizeof program);
    while (length > 0 && program[length - 1] != '/')
        length--;
    (void)snprintf(path, sizeof path, "%.*s" LAB_SOURCES_FROM_PROGRAM, length > 0 ? (int)length : 0, program);
    char *absolute = length > 0 ? realpath(path, NULL) : NULL;
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

/* Writes the code of a rung, or names the rung that has the same code. */
static gpuconv_status write_code(const chapter *c, int rung, gpuconv_error *error) {
    gc_lab_code code;
    gpuconv_status err = gc_lab_code_find(c->module, rung, &code, error);
    if (err || code.count == 0)
        return err;
    fputc('\n', c->to);
    if (code.same) {
        const char *quote = c->markdown ? "*" : "\"";
        fprintf(c->to, "%sThe code of %s%s%s", c->markdown ? "" : "      ", quote, code.same->name, quote);
        if (code.same->parameter != c->module->variants[rung].parameter)
            fprintf(c->to, ", with the parameter %d instead of %d", c->module->variants[rung].parameter,
                    code.same->parameter);
        fputs(".\n", c->to);
    } else {
        write_lines(c, &code);
    }
    gc_lab_code_free(&code);
    return GPUCONV_OK;
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
