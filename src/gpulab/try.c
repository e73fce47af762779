/* Leads a student's kernel through its stages: compiler, check, memory checker, times. */
#include "try.h"

#include "cli/cli.h"
#include "compile.h"
#include "compiler_messages.h"
#include "emulator/compile.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "process.h"
#include "run.h"
#include "student.h"
#include "try_report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OLDEST_CAPABILITY = 75, MAX_MESSAGES = 1 << 20, SANITIZER_FOUND = 9 };

static const double quick_seconds = 10, check_seconds = 60, sanitizer_seconds = 120, time_seconds = 180;

static const char *const stage_names[] = {"check", "memory", "time"};

/* Finds the exercise and the module of a name. @return false after a message */
static bool find_subject(const char *name, gc_try_subject *subject) {
    *subject = (gc_try_subject){.exercise = gc_exercise_find(name)};
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
    gc_try_subject subject;
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

/* What all stages need. */
typedef struct attempt {
    const gc_try_options *options;
    gc_try_subject subject;
    gc_work_folder folder;
    char program[4096]; /* this program */
    char library[4200];
} attempt;

/* Reads a whole text file of the folder, shortened to a MiB. Returns an empty text if there is none; NULL without
 * memory. */
static char *read_text(const attempt *a, const char *name) {
    char path[4200];
    char *text = gc_calloc(MAX_MESSAGES + 1, 1);
    FILE *from = text ? fopen(gc_work_path(&a->folder, name, path, sizeof path), "r") : NULL;
    if (from) {
        text[fread(text, 1, MAX_MESSAGES, from)] = '\0';
        (void)fclose(from);
    }
    return text;
}

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
    const char *text = json_string_value(json_object_get(report, "state"));
    return text && strcmp(text, state) == 0;
}

/* Runs a tool of compute-sanitizer and prints its first error. Sets `*found` if there is one. */
static gpuconv_status run_checker(const attempt *a, const char *sanitizer, const char *tool, bool *found,
                                  gpuconv_error *error) {
    json_t *report = NULL;
    gpuconv_status err = run_stage(a, GC_STUDENT_MEMORY, sanitizer, tool, &report, error);
    json_decref(report);
    char *output = err ? NULL : read_text(a, "checker.txt");
    if (!err && !output)
        err = gc_fail_memory(error, "the checker's output");
    if (!err && strstr(output, "Device not supported"))
        printf("  compute-sanitizer does not support this device.\n");
    else if (!err && gc_try_print_sanitizer(&a->subject, output, stdout))
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
    char *source = is_library(a->options->file) ? NULL : read_text(a, "student.cu");
    bool waits = source && (strstr(source, "__syncthreads(") || strstr(source, "__syncthreads_"));
    if (source && strstr(source, "__shared__") && !waits)
        gc_try_print_text("The file uses shared memory without __syncthreads(): a thread that reads what another one "
                          "writes must wait for it.",
                          2, stdout);
    free(source);
}

/* Prints the compiler's warning about a variable without a value. */
static void remark_variable(const attempt *a) {
    char text[400];
    if (gc_emulator_warning(a->folder.path, text, sizeof text))
        gc_try_print_text(text, 2, stdout);
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
    gc_try_print_check(&a->subject, report, stdout);
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
        *reached = gc_try_print_ladder(&a->subject, report, stdout) || !a->subject.exercise;
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
    gpuconv_status err = gc_emulator_compile(a->folder.path, &done, error);
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
    char *messages = read_text(a, "messages.txt");
    if (!messages)
        return gc_fail_memory(error, "the compiler's messages");
    gc_solve_signature(a->subject.module, signature, sizeof signature);
    gc_print_messages(file, strlen(file), &(gc_student_source){file, ""}, stdout);
    printf(" does not compile.\n");
    gc_explain_compiler_messages(messages, &(gc_student_source){file, signature}, stdout);
    free(messages);
    return GPUCONV_OK;
}

/* Prints why there is no device, and what is done without one. */
static void print_no_device(const attempt *a, const char *reason, bool emulated) {
    char text[800];
    if (emulated)
        (void)snprintf(text, sizeof text, "No GPU (%s): the kernel runs in the emulator.", reason);
    else
        (void)snprintf(text, sizeof text,
                       "%.200s compiles for compute capability %d.%d. It was not run: there is no GPU (%s), and the "
                       "emulator lacks something that it uses.",
                       a->options->file, OLDEST_CAPABILITY / 10, OLDEST_CAPABILITY % 10, reason);
    gc_try_print_text(text, 0, stdout);
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
        gc_try_print_recorded(&a->subject, stdout);
    return err;
}

/* ---- The command ------------------------------------------------------------------------------------------------- */

/* Writes the file to begin with; an existing file is not replaced. */
static int write_start(const gc_try_options *options, const gc_try_subject *subject) {
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
    gc_try_print_text(text, 0, stdout);
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
        gc_try_print_task(&a.subject, stdout);
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
