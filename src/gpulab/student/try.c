/* Leads a student's kernel through its stages (compiler, check, memory checker, times) and prints tasks, diagnoses and
 * ladders. */
#include "student.h"

#include "cli/cli.h"
#include "cli/terminal.h"
#include "cli/wrap.h"
#include "emulator/compile.h"
#include "gpulab/pages/pages.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/visible.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Printing ---------------------------------------------------------------------------------------------------- */

/* A kernel that is tried, and its goal. */
typedef struct try_subject {
    const gc_lab_module *module;
    const gc_exercise *exercise; /* or NULL */
    const gc_lab_variant *goal;
    const char *file; /* as the student gave it */
} try_subject;

enum { MAX_RUNGS = 64, MIN_WIDTH = 40, MAX_WIDTH = 100 };

static const double goal_margin =
    1.25; /* the longest time of a kernel that has reached the goal, in times of the goal */

/* Prints words wrapped to the terminal, after `margin` blanks; a line break in the text begins a new line. */
static void print_text(const char *text, int margin, FILE *to) {
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

/* Prints the task, the signature and the hints. */
static void print_task(const try_subject *s, FILE *to) {
    char signature[600], text[800];
    const char *name = s->exercise ? s->exercise->name : s->module->name;
    gc_solve_signature(s->module, signature, sizeof signature);
    print_text(s->exercise ? s->exercise->task : s->module->title, 0, to);
    fprintf(to, "\nWrite this function, and the kernel that it launches:\n\n    %s;\n\n", signature);
    if (s->exercise)
        fprintf(to, "Hints:\n");
    for (int i = 0; s->exercise && i < GC_HINTS && s->exercise->hint[i]; i++) {
        (void)snprintf(text, sizeof text, "%d. %s", i + 1, s->exercise->hint[i]);
        print_text(text, 2, to);
    }
    (void)snprintf(text, sizeof text, "\nThe goal is the rung \"%s\": gpulab show %s explains it and shows its code.",
                   s->goal->name, s->module->name);
    print_text(text, 0, to);
    print_text("Without a GPU an emulator runs the kernel. It finds wrong results, accesses outside a buffer, races, "
               "barriers that not all threads reach and memory that was never set, and counts what costs time.",
               0, to);
    fprintf(to, "\n    gpulab try %s --start       writes %s.cu to begin with\n    gpulab try %s %s.cu\n", name, name,
            name, name);
}

/* ---- Results of a check ------------------------------------------------------------------------------------------ */

/* Prints the report of a check by gc_student_run. */
static void print_check(const try_subject *s, const json_t *report, FILE *to) {
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
    const char *state = gc_lab_row_text(report, "state"), *verdict = "fails";
    if (strcmp(state, "right") == 0) {
        const char *missing = gc_lab_row_text(report, "missing");
        (void)snprintf(text, sizeof text,
                       *missing ? "%.200s computes the right result at every size up to %.60s, but has not reached the "
                                  "goal yet, \"%s\":"
                                : "%.200s is right at every size up to %.60s.",
                       s->file, gc_lab_row_text(report, "size"), s->goal->name);
        print_text(text, 0, to);
        print_text(missing, 2, to);
        print_text(gc_lab_row_text(report, "counts"), 2, to);
        return;
    }
    for (size_t i = 0; i < sizeof verdicts / sizeof *verdicts; i++)
        if (strcmp(state, verdicts[i][0]) == 0)
            verdict = verdicts[i][1];
    (void)snprintf(text, sizeof text, "%.200s, at size %.60s: it %s.", s->file, gc_lab_row_text(report, "size"),
                   verdict);
    print_text(text, 0, to);
    print_text(gc_lab_row_text(report, "text"), 2, to);
    const json_t *code = json_object_get(report, "code");
    const char *meaning = code ? gc_lab_explain_code((int)json_integer_value(code)) : NULL;
    if (meaning)
        print_text(meaning, 2, to);
}

/* Prints the first error in the output of compute-sanitizer. Returns whether there was one. */
static int print_sanitizer(const try_subject *s, const char *output, FILE *to) {
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
    double x = gc_lab_row_number(((const rung *)a)->row, "median"),
           y = gc_lab_row_number(((const rung *)b)->row, "median");
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
    double share = gc_lab_row_number(r->row, "share"), median = gc_lab_row_number(r->row, "median");
    gc_print(to, "%c %-34s %10.3f %s", r->variant ? ' ' : '>',
             gc_visible(shown, sizeof shown, gc_lab_row_text(r->row, "variant")),
             median >= 1e-3 ? median * 1e3 : median * 1e6, median >= 1e-3 ? "ms" : "us");
    if (share > 0)
        gc_print(to, "  %5.1f %% of %s", 100 * share,
                 gc_visible(shown, sizeof shown, gc_lab_row_text(r->row, "bound")));
    fputc('\n', to);
}

/* Collects the measured rows, by time. Returns their number. */
static int sort_rungs(const gc_lab_module *module, const json_t *rows, rung *rungs) {
    int count = 0;
    size_t i;
    const json_t *row;
    json_array_foreach(rows, i, row) {
        if (count < MAX_RUNGS && strcmp(gc_lab_row_text(row, "state"), "measured") == 0)
            rungs[count++] = (rung){row, find_variant(module, gc_lab_row_text(row, "variant"))};
    }
    qsort(rungs, (size_t)count, sizeof *rungs, by_time);
    return count;
}

/* Prints the rungs of a timed report by their times, the student's among them, and the next faster one.
 * Returns whether the student's has reached the goal. */
static bool print_ladder(const try_subject *s, const json_t *report, FILE *to) {
    rung rungs[MAX_RUNGS];
    char text[1000];
    int count = sort_rungs(s->module, json_object_get(report, "results"), rungs), yours = -1;
    fprintf(to, "\n%s, %s: measured in this run\n", s->module->name, gc_lab_row_text(report, "size"));
    for (int i = 0; i < count; i++) {
        print_rung(&rungs[i], to);
        if (!rungs[i].variant)
            yours = i;
    }
    if (yours < 0) {
        fprintf(to, "Your kernel could not be timed.\n");
        return false;
    }
    double median = gc_lab_row_number(rungs[yours].row, "median");
    fputc('\n', to);
    if (yours > 0) {
        const rung *next = &rungs[yours - 1];
        (void)gc_format(text, sizeof text, "The next rung, \"%s\", is %.2f times as fast: %.600s.",
                        gc_lab_row_text(next->row, "variant"), median / gc_lab_row_number(next->row, "median"),
                        next->variant ? next->variant->changed : "");
    } else {
        (void)snprintf(text, sizeof text, "Your kernel is the fastest of the ladder.");
    }
    print_text(text, 0, to);
    bool reached = true;
    for (int i = 0; i < count; i++) {
        double goal = gc_lab_row_number(rungs[i].row, "median");
        if (rungs[i].variant != s->goal)
            continue;
        reached = median <= goal_margin * goal;
        (void)gc_format(text, sizeof text,
                        reached ? "It has reached the goal, \"%s\" (%.2f of its speed)."
                                : "It has not reached the goal yet, \"%s\", which is %.2f times as fast.",
                        s->goal->name, reached ? goal / median : median / goal);
        print_text(text, 0, to);
    }
    return reached;
}

/* Prints the rungs' recorded times, for a machine without a GPU. */
static void print_recorded(const try_subject *s, FILE *to) {
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

/* ---- Exercises and modules --------------------------------------------------------------------------------------- */

enum { OLDEST_CAPABILITY = 75, MAX_MESSAGES = 1 << 20, SANITIZER_FOUND = 9 };

static const double quick_seconds = 10, check_seconds = 60, sanitizer_seconds = 120, time_seconds = 180;

static const char *const stage_names[] = {"check", "memory", "time"};

/* Finds the exercise and the module of a name. @return false after a message */
static bool find_subject(const char *name, try_subject *subject) {
    *subject = (try_subject){.exercise = gc_exercise_find(name)};
    subject->module = gc_lab_module_find(subject->exercise ? subject->exercise->module : name);
    if (!subject->module) {
        gc_print_error(GC_EXIT_USAGE, "no such exercise or module (gpulab try --list prints them): %.60s", name);
        return false;
    }
    subject->goal = gc_exercise_goal(subject->module, subject->exercise);
    if (!gc_student_can_try(subject->module) || !subject->goal) {
        gc_print_error(GC_EXIT_USAGE, "%s: has no output that could be checked; gpulab try --list prints the exercises",
                       name);
        return false;
    }
    return true;
}

int gc_try_list(void) {
    const gc_lab_module *const *modules;
    int count = gc_lab_modules(&modules);
    const char *before = "";
    printf("%-22s %-16s %s\n", "exercise", "module", "leads to the rung");
    for (int i = 0; gc_exercise_at(i); i++)
        printf("%-22s %-16s %s\n", gc_exercise_at(i)->name, gc_exercise_at(i)->module, gc_exercise_at(i)->goal);
    printf("\nA kernel can also be tried with the modules ");
    for (int i = 0; i < count; i++)
        if (!gc_exercise_find(modules[i]->name) && gc_student_can_try(modules[i])) {
            printf("%s%s", before, modules[i]->name);
            before = ", ";
        }
    printf(".\n");
    return GC_EXIT_DONE;
}

/* ---- One stage, in a process of its own -------------------------------------------------------------------------- */

int gc_try_library(const char **arguments, int count) {
    try_subject subject;
    gc_lab_session session;
    gpuconv_error error = {0};
    json_t *report = NULL;
    int64_t size[LAB_DIMENSIONS] = {0};
    if (count < 4 || !find_subject(arguments[0], &subject))
        return GC_EXIT_USAGE;
    gc_student_request request = {.module = subject.module, .goal = subject.goal, .result = arguments[3]};
    if (subject.exercise)
        request.demands = &subject.exercise->demands;
    for (int i = 0; i < LAB_LENGTH(stage_names); i++)
        if (strcmp(arguments[2], stage_names[i]) == 0)
            request.stage = (gc_student_stage)i;
    if (count > 4 && gc_lab_parse_size(arguments[4], size))
        request.size = size;
    gpuconv_status err = gc_student_load(arguments[1], &request.solve, &error);
    if (err)
        return gc_print_error(GC_EXIT_FAILED, "%s", error.message);
    gc_lab_session_open(&session, NULL);
    err = gc_student_run(&session, &request, &report, &error);
    json_decref(report);
    gc_lab_session_close(&session);
    return err ? gc_print_error(GC_EXIT_FAILED, "%s", error.message) : GC_EXIT_DONE;
}

/* One attempt: the data that all stages need. */
typedef struct attempt {
    const gc_try_options *options;
    try_subject subject;
    gc_work_folder folder;
    char program[4096]; /* this program */
    char library[4200];
} attempt;

/* Sets the state of a stage that did not end by itself. */
static json_t *ended_report(json_t *report, const gc_process_result *result) {
    const char *state = result->timed_out ? "endless" : "crashed";
    if (!report)
        report = json_object();
    if (result->timed_out || result->signal || result->status != 0)
        (void)json_object_set_new(report, "state", json_string(state));
    return report;
}

/* Runs a stage, under a checker if `tool` names one of compute-sanitizer's, and reads its report. */
static gpuconv_status run_stage(const attempt *a, gc_student_stage stage, const char *sanitizer, const char *tool,
                                json_t **report, gpuconv_error *error) {
    char path[4200], output[4200];
    const char *arguments[20];
    int n = 0;
    json_error_t ignored;
    gc_process_result result;
    gc_work_path(&a->folder, "result.json", path, sizeof path);
    gc_work_path(&a->folder, "checker.txt", output, sizeof output);
    (void)unlink(path);
    if (tool) {
        const char *const checker[] = {sanitizer, "--tool", tool, "--error-exitcode", "9", "--print-limit", "1"};
        for (; n < LAB_LENGTH(checker); n++)
            arguments[n] = checker[n];
    }
    const char *const own[] = {a->program, "try-library", a->options->name, a->library, stage_names[stage], path};
    for (int i = 0; i < LAB_LENGTH(own); i++)
        arguments[n++] = own[i];
    if (stage == GC_STUDENT_TIME && a->options->size)
        arguments[n++] = a->options->size;
    arguments[n] = NULL;
    double seconds = stage == GC_STUDENT_TIME ? time_seconds
                     : tool                   ? sanitizer_seconds
                     : a->options->quick      ? quick_seconds
                                              : check_seconds;
    gpuconv_status err =
        gc_process_run(&(gc_process_request){arguments, NULL, tool ? output : NULL, seconds}, &result, error);
    if (err)
        return err;
    *report = json_load_file(path, 0, &ignored);
    if (!tool)
        *report = ended_report(*report, &result);
    return *report || tool ? GPUCONV_OK : gc_fail_memory(error, "a report");
}

static bool is_library(const char *file) {
    const char *end = strrchr(file, '.');
    return end && strcmp(end, ".so") == 0;
}

/* ---- The stages -------------------------------------------------------------------------------------------------- */

static bool has_state(const json_t *report, const char *state) {
    return gc_lab_row_has(report, "state", state);
}

/* Runs a tool of compute-sanitizer and prints its first error. Sets `*found` if there is one. */
static gpuconv_status run_checker(const attempt *a, const char *sanitizer, const char *tool, bool *found,
                                  gpuconv_error *error) {
    json_t *report = NULL;
    gpuconv_status err = run_stage(a, GC_STUDENT_MEMORY, sanitizer, tool, &report, error);
    json_decref(report);
    char *output = err ? NULL : gc_work_read(&a->folder, "checker.txt", MAX_MESSAGES);
    if (!err && !output)
        err = gc_fail(error, GPUCONV_ERROR_FILE, "%s: the checker's output cannot be read", a->folder.path);
    if (!err && strstr(output, "Device not supported"))
        printf("  compute-sanitizer does not support this device.\n");
    else if (!err && print_sanitizer(&a->subject, output, stdout))
        *found = true;
    free(output);
    return err;
}

/* Looks for reads and writes outside the buffers, and for races in shared memory. */
static gpuconv_status check_memory(const attempt *a, bool races, bool *found, gpuconv_error *error) {
    char sanitizer[4200];
    if (!gc_process_find("compute-sanitizer", NULL, "/usr/local/cuda/bin", sanitizer, sizeof sanitizer)) {
        printf("  compute-sanitizer is not installed: reads outside the buffers were not looked for.\n");
        return GPUCONV_OK;
    }
    gpuconv_status err = run_checker(a, sanitizer, "memcheck", found, error);
    if (!err && races && !*found)
        err = run_checker(a, sanitizer, "racecheck", found, error);
    if (!err && !*found)
        printf("  compute-sanitizer finds no error in memory accesses.\n");
    return err;
}

/* Prints a remark on a wrong kernel whose source uses shared memory and has no barrier. */
static void remark_barrier(const attempt *a) {
    char *source = is_library(a->options->file) ? NULL : gc_work_read(&a->folder, "student.cu", MAX_MESSAGES);
    bool waits = source && (strstr(source, "__syncthreads(") || strstr(source, "__syncthreads_"));
    if (source && strstr(source, "__shared__") && !waits)
        print_text("The file uses shared memory without __syncthreads(): a thread that reads what another one "
                   "writes must wait for it.",
                   2, stdout);
    free(source);
}

/* Prints the compiler's warning about a variable without a value. */
static void remark_variable(const attempt *a) {
    char text[400];
    if (gc_emulator_warning(&a->folder, text, sizeof text))
        print_text(text, 2, stdout);
}

/* Checks the kernel against the reference. Sets `*right`, and `*reached` if it is right and misses no demand of the
 * exercise. */
static gpuconv_status check(const attempt *a, bool has_device, bool *right, bool *reached, gpuconv_error *error) {
    json_t *report = NULL;
    bool found = false;
    gpuconv_status err = run_stage(a, GC_STUDENT_CHECK, NULL, NULL, &report, error);
    if (err)
        return err;
    *right = has_state(report, "right");
    print_check(&a->subject, report, stdout);
    if (has_state(report, "wrong") || has_state(report, "unsteady"))
        remark_barrier(a);
    if (!*right)
        remark_variable(a);
    (void)fflush(stdout);
    bool looks = has_device && !a->options->quick && !has_state(report, "endless") && !has_state(report, "crashed");
    if (looks)
        err = check_memory(a, !*right, &found, error);
    if (found && *right) {
        *right = false;
        printf("  The result is right by chance: the next run, or another size, may fail.\n");
    }
    *reached = *right && !json_object_get(report, "missing");
    json_decref(report);
    return err;
}

/* Times the kernel among the rungs. Sets `*reached` to false if it is an exercise's and slower than the goal. */
static gpuconv_status time_kernel(const attempt *a, bool *reached, gpuconv_error *error) {
    json_t *report = NULL;
    gpuconv_status err = run_stage(a, GC_STUDENT_TIME, NULL, NULL, &report, error);
    if (!err && has_state(report, "timed"))
        *reached = print_ladder(&a->subject, report, stdout) || !a->subject.exercise;
    else if (!err && has_state(report, "endless"))
        gc_print(stdout, "It was not timed: the ladder takes more than %.0f s; choose a smaller --size.\n",
                 time_seconds);
    else if (!err)
        printf("It could not be timed.\n");
    json_decref(report);
    return err;
}

typedef enum compiled { REFUSED, FOR_GPU, FOR_EMULATOR } compiled;

/* Compiles for the emulator. What it refuses, nvcc may accept or explain better. */
static gpuconv_status compile_without_device(attempt *a, compiled *result, gpuconv_error *error) {
    char nvcc[4200];
    bool done;
    gpuconv_status err = gc_emulator_compile(&a->folder, &done, error);
    *result = done ? FOR_EMULATOR : REFUSED;
    if (err || done || !gc_find_nvcc(nvcc, sizeof nvcc))
        return err;
    err = gc_compile_student(OLDEST_CAPABILITY, &a->folder, &done, error);
    *result = done ? FOR_GPU : REFUSED;
    return err;
}

/* Compiles the source for a compute capability, or for the emulator if it is 0. Prints the errors. */
static gpuconv_status compile(attempt *a, int capability, compiled *result, gpuconv_error *error) {
    char signature[600];
    bool done = false;
    const char *file = a->options->file;
    gpuconv_status err = gc_prepare_student(a->subject.module, file, &a->folder, error);
    *result = REFUSED;
    if (!err && capability) {
        err = gc_compile_student(capability, &a->folder, &done, error);
        *result = done ? FOR_GPU : REFUSED;
    } else if (!err) {
        err = compile_without_device(a, result, error);
    }
    if (err || *result != REFUSED)
        return err;
    char *messages = gc_work_read(&a->folder, "messages.txt", MAX_MESSAGES);
    if (!messages)
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: the compiler's messages cannot be read", a->folder.path);
    gc_solve_signature(a->subject.module, signature, sizeof signature);
    gc_print_messages(file, strlen(file), &(gc_student_source){file, ""}, stdout);
    printf(" does not compile.\n");
    gc_explain_compiler_messages(messages, &(gc_student_source){file, signature}, stdout);
    free(messages);
    return GPUCONV_OK;
}

/* Prints the reason why there is no device, and how the kernel is checked without one. */
static void print_no_device(const attempt *a, const char *reason, bool emulated) {
    char text[800];
    if (emulated)
        (void)snprintf(text, sizeof text, "No GPU (%s): the kernel runs in the emulator.", reason);
    else
        (void)snprintf(text, sizeof text,
                       "%.200s compiles for compute capability %d.%d. It was not run: there is no GPU (%s), and the "
                       "emulator lacks something that it uses.",
                       a->options->file, OLDEST_CAPABILITY / 10, OLDEST_CAPABILITY % 10, reason);
    print_text(text, 0, stdout);
}

/* Runs all stages. Sets `*reached` if the kernel is right and nothing shows that it misses the exercise's goal. */
static gpuconv_status run_stages(attempt *a, bool *reached, gpuconv_error *error) {
    gc_lab_session session;
    gpuconv_status err = GPUCONV_OK;
    bool library = is_library(a->options->file), right = false;
    compiled result = FOR_GPU;
    gc_lab_session_open(&session, NULL);
    bool has_device = session.device != NULL;
    int capability = has_device ? gc_lab_device_get_info(session.device)->capability : 0;
    char reason[sizeof session.no_device];
    memcpy(reason, session.no_device, sizeof reason);
    gc_lab_session_close(&session);
    if (library) {
        char *absolute = realpath(a->options->file, NULL);
        (void)snprintf(a->library, sizeof a->library, "%s", absolute ? absolute : a->options->file);
        free(absolute);
    } else {
        err = compile(a, capability, &result, error);
        gc_work_path(&a->folder, "student.so", a->library, sizeof a->library);
    }
    if (err || result == REFUSED)
        return err;
    if (!has_device && !library)
        print_no_device(a, reason, result == FOR_EMULATOR);
    if (has_device || library || result == FOR_EMULATOR)
        err = check(a, has_device, &right, reached, error);
    if (!err && right && has_device && !a->options->quick)
        err = time_kernel(a, reached, error);
    if (!err && !has_device && !library && (right || result == FOR_GPU))
        print_recorded(&a->subject, stdout);
    return err;
}

/* ---- The command ------------------------------------------------------------------------------------------------- */

/* Writes the file to begin with; an existing file is not replaced. */
static int write_start(const gc_try_options *options, const try_subject *subject) {
    char path[300];
    (void)snprintf(path, sizeof path, "%s.cu", options->name);
    const char *file = options->file ? options->file : path;
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    FILE *to = fd < 0 ? NULL : fdopen(fd, "w");
    if (!to)
        return gc_print_error(GC_EXIT_FAILED, "%s: cannot be created: %s%s", file, strerror(errno),
                              errno == EEXIST ? "; name another file" : "");
    gc_exercise_write_start(subject->module, subject->exercise, to);
    bool bad = ferror(to);
    if (fclose(to) != 0 || bad)
        return gc_print_error(GC_EXIT_FAILED, "%s: cannot be written: %s", file, strerror(errno));
    char text[800];
    (void)snprintf(text, sizeof text, "%.200s: written. gpulab try %s %.200s compiles it, checks it and measures it.",
                   file, options->name, file);
    print_text(text, 0, stdout);
    return GC_EXIT_DONE;
}

int gc_try(const gc_try_options *options) {
    attempt a = {.options = options};
    gpuconv_error error = {0};
    bool reached = false;
    if (!find_subject(options->name, &a.subject))
        return GC_EXIT_USAGE;
    if (options->start)
        return write_start(options, &a.subject);
    if (!options->file) {
        print_task(&a.subject, stdout);
        return GC_EXIT_DONE;
    }
    a.subject.file = options->file;
    ssize_t length = readlink("/proc/self/exe", a.program, sizeof a.program - 1);
    if (length <= 0)
        return gc_print_error(GC_EXIT_FAILED, "/proc/self/exe: %s", strerror(errno));
    (void)gc_catch_signals();
    gpuconv_status err = gc_work_folder_new(&a.folder, &error);
    if (!err)
        err = run_stages(&a, &reached, &error);
    gc_work_folder_remove(&a.folder);
    if (err)
        return gc_print_error(gc_exit_of(err), "%s", error.message);
    return reached ? GC_EXIT_DONE : GC_EXIT_FAILED;
}
