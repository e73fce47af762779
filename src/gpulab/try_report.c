/* Prints tasks, diagnoses and ladders. */
#include "try_report.h"

#include "cli/terminal.h"
#include "cli/wrap.h"
#include "compile.h"
#include "compiler_messages.h"
#include "diagnose.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/visible.h"
#include "recorded.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RUNGS = 64, MIN_WIDTH = 40, MAX_WIDTH = 100 };

static const double goal_margin =
    1.25; /* the longest time of a kernel that has reached the goal, in times of the goal */

static const char *text_of(const json_t *row, const char *name) {
    const char *text = json_string_value(json_object_get(row, name));
    return text ? text : "";
}

static double number_of(const json_t *row, const char *name) {
    return json_number_value(json_object_get(row, name));
}

void gc_try_print_text(const char *text, int margin, FILE *to) {
    char line[2000], shown[2000];
    int columns = gc_terminal_columns(fileno(to));
    int width = columns < MIN_WIDTH ? MIN_WIDTH : columns > MAX_WIDTH ? MAX_WIDTH : columns;
    while (*text) {
        size_t length = strcspn(text, "\n");
        (void)snprintf(line, sizeof line, "%.*s", (int)length, text);
        gc_visible(shown, sizeof shown, line);
        fprintf(to, "%*s", margin, "");
        gc_print_words(to, shown, strlen(shown), (gc_wrap){margin, width});
        text += length + (text[length] == '\n');
    }
}

void gc_try_print_task(const gc_try_subject *s, FILE *to) {
    char signature[600], text[800];
    const char *name = s->exercise ? s->exercise->name : s->module->name;
    gc_solve_signature(s->module, signature, sizeof signature);
    gc_try_print_text(s->exercise ? s->exercise->task : s->module->title, 0, to);
    fprintf(to, "\nWrite this function, and the kernel that it launches:\n\n    %s;\n\n", signature);
    if (s->exercise)
        fprintf(to, "Hints:\n");
    for (int i = 0; s->exercise && i < GC_HINTS && s->exercise->hint[i]; i++) {
        (void)snprintf(text, sizeof text, "%d. %s", i + 1, s->exercise->hint[i]);
        gc_try_print_text(text, 2, to);
    }
    (void)snprintf(text, sizeof text, "\nThe goal is the rung \"%s\": gpulab show %s explains it and shows its code.",
                   s->goal->name, s->module->name);
    gc_try_print_text(text, 0, to);
    gc_try_print_text(
        "Without a GPU an emulator runs the kernel. It finds wrong results, accesses outside a buffer, races, "
        "barriers that not all threads reach and memory that was never set, and counts what costs time.",
        0, to);
    fprintf(to, "\n    gpulab try %s --start       writes %s.cu to begin with\n    gpulab try %s %s.cu\n", name, name,
            name, name);
}

/* ---- Results of a check ------------------------------------------------------------------------------------------ */

void gc_try_print_check(const gc_try_subject *s, const json_t *report, FILE *to) {
    static const char *const verdicts[][2] = {
        {"wrong", "is wrong"},
        {"outside", "writes outside a buffer"},
        {"unsteady", "gives different results from run to run"},
        {"failed", "fails"},
        {"found", "has an error"},
        {"endless",
         "does not end: it has an endless loop, or waits at a barrier that not all threads of a block reach"},
        {"crashed", "ended the process: solve read or wrote memory of the host that is not its own, such as an element "
                    "of a device buffer"},
    };
    char text[400];
    const char *state = text_of(report, "state"), *verdict = "fails";
    if (strcmp(state, "right") == 0) {
        const char *missing = text_of(report, "missing");
        (void)snprintf(text, sizeof text,
                       *missing ? "%.200s computes the right result at every size up to %.60s, but has not reached the "
                                  "goal yet, \"%s\":"
                                : "%.200s is right at every size up to %.60s.",
                       s->file, text_of(report, "size"), s->goal->name);
        gc_try_print_text(text, 0, to);
        gc_try_print_text(missing, 2, to);
        gc_try_print_text(text_of(report, "counts"), 2, to);
        return;
    }
    for (size_t i = 0; i < sizeof verdicts / sizeof *verdicts; i++)
        if (strcmp(state, verdicts[i][0]) == 0)
            verdict = verdicts[i][1];
    (void)snprintf(text, sizeof text, "%.200s, at size %.60s: it %s.", s->file, text_of(report, "size"), verdict);
    gc_try_print_text(text, 0, to);
    gc_try_print_text(text_of(report, "text"), 2, to);
    const json_t *code = json_object_get(report, "code");
    const char *meaning = code ? gc_lab_explain_code((int)json_integer_value(code)) : NULL;
    if (meaning)
        gc_try_print_text(meaning, 2, to);
}

int gc_try_print_sanitizer(const gc_try_subject *s, const char *output, FILE *to) {
    static const char rule[] = "========= ";
    const gc_student_source source = {s->file, ""};
    bool inside = false;
    for (const char *line = output; *line;) {
        size_t length = strcspn(line, "\n");
        const char *text = line + strlen(rule);
        bool ruled = length > strlen(rule) && strncmp(line, rule, strlen(rule)) == 0;
        bool begins = ruled && (strncmp(text, "Invalid", 7) == 0 || strncmp(text, "Error: Race", 11) == 0 ||
                                strncmp(text, "Error: Potential", 16) == 0 || strncmp(text, "Barrier error", 13) == 0);
        bool ends =
            inside && (!ruled || begins || memmem(line, length, "backtrace", 9) ||
                       memmem(line, length, "ERROR SUMMARY", 13) || memmem(line, length, "RACECHECK SUMMARY", 17));
        if (ends)
            break;
        if (begins)
            fprintf(to, "  compute-sanitizer:\n");
        inside = inside || begins;
        if (inside) {
            fprintf(to, "    ");
            gc_print_messages(text, length - strlen(rule), &source, to);
            fputc('\n', to);
        }
        line += length + (line[length] == '\n');
    }
    return inside;
}

/* ---- Ladders ----------------------------------------------------------------------------------------------------- */

/* One rung of a ladder. */
typedef struct rung {
    const json_t *row;
    const gc_lab_variant *variant; /* NULL: the student's */
} rung;

static int by_time(const void *a, const void *b) {
    double x = number_of(((const rung *)a)->row, "median"), y = number_of(((const rung *)b)->row, "median");
    return (x > y) - (x < y);
}

static const gc_lab_variant *find_variant(const gc_lab_module *module, const char *name) {
    for (int i = 0; i < module->variant_count; i++)
        if (strcmp(module->variants[i].name, name) == 0)
            return &module->variants[i];
    return NULL;
}

static void print_rung(const rung *r, FILE *to) {
    char shown[200];
    double share = number_of(r->row, "share"), median = number_of(r->row, "median");
    gc_print(to, "%c %-34s %10.3f %s", r->variant ? ' ' : '>',
             gc_visible(shown, sizeof shown, text_of(r->row, "variant")), median >= 1e-3 ? median * 1e3 : median * 1e6,
             median >= 1e-3 ? "ms" : "us");
    if (share > 0)
        gc_print(to, "  %5.1f %% of %s", 100 * share, gc_visible(shown, sizeof shown, text_of(r->row, "bound")));
    fputc('\n', to);
}

/* Collects the measured rows, by time. Returns their number. */
static int sort_rungs(const gc_lab_module *module, const json_t *rows, rung *rungs) {
    int count = 0;
    size_t i;
    const json_t *row;
    json_array_foreach(rows, i, row) {
        if (count < MAX_RUNGS && strcmp(text_of(row, "state"), "measured") == 0)
            rungs[count++] = (rung){row, find_variant(module, text_of(row, "variant"))};
    }
    qsort(rungs, (size_t)count, sizeof *rungs, by_time);
    return count;
}

bool gc_try_print_ladder(const gc_try_subject *s, const json_t *report, FILE *to) {
    rung rungs[MAX_RUNGS];
    char text[1000];
    int count = sort_rungs(s->module, json_object_get(report, "results"), rungs), yours = -1;
    fprintf(to, "\n%s, %s: measured in this run\n", s->module->name, text_of(report, "size"));
    for (int i = 0; i < count; i++) {
        print_rung(&rungs[i], to);
        if (!rungs[i].variant)
            yours = i;
    }
    if (yours < 0) {
        fprintf(to, "Your kernel could not be timed.\n");
        return false;
    }
    double median = number_of(rungs[yours].row, "median");
    fputc('\n', to);
    if (yours > 0) {
        const rung *next = &rungs[yours - 1];
        (void)gc_format(text, sizeof text, "The next rung, \"%s\", is %.2f times as fast: %.600s.",
                        text_of(next->row, "variant"), median / number_of(next->row, "median"),
                        next->variant ? next->variant->changed : "");
    } else {
        (void)snprintf(text, sizeof text, "Your kernel is the fastest of the ladder.");
    }
    gc_try_print_text(text, 0, to);
    bool reached = true;
    for (int i = 0; i < count; i++) {
        double goal = number_of(rungs[i].row, "median");
        if (rungs[i].variant != s->goal)
            continue;
        reached = median <= goal_margin * goal;
        (void)gc_format(text, sizeof text,
                        reached ? "It has reached the goal, \"%s\" (%.2f of its speed)."
                                : "It has not reached the goal yet, \"%s\", which is %.2f times as fast.",
                        s->goal->name, reached ? goal / median : median / goal);
        gc_try_print_text(text, 0, to);
    }
    return reached;
}

void gc_try_print_recorded(const gc_try_subject *s, FILE *to) {
    json_t *recorded = gc_lab_recorded_load();
    char text[200];
    fprintf(to, "\nThe ladder, as recorded on an %s:\n", gc_lab_recorded_device(recorded));
    for (int i = 0; i < s->module->variant_count; i++) {
        const gc_lab_variant *v = &s->module->variants[i];
        const json_t *row = v->where == LAB_GPU ? gc_lab_recorded_find(recorded, s->module->name, v->name, NULL) : NULL;
        if (!row)
            continue;
        gc_lab_recorded_format(row, GC_LAB_SIZE, text, sizeof text);
        fprintf(to, "  %-34s %s\n", v->name, text);
    }
    json_decref(recorded);
}
