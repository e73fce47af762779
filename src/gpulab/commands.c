/* The commands of gpulab. Results go to standard output, progress and errors to standard error. */
#include "commands.h"
#include "gpulab/pages/pages.h"
#include "gpulab/student/student.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/files.h"
#include "libgpuconv/core/visible.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_DONE = GC_EXIT_DONE, EXIT_FAILED = GC_EXIT_FAILED, EXIT_USAGE = GC_EXIT_USAGE };

typedef struct options {
    char *size, *from, *html;
    gc_lab_block_shape shape;
    int json, markdown, brief, quick, clean, no_effects, counts, list, start, quiet;
} options;

/* Prints "gpulab: ", the message and the name (or NULL) as one line. Returns `status`. */
static int fail(int status, const char *message, const char *name) {
    char shown[512];
    fprintf(stderr, "gpulab: %s%s\n", message, gc_visible(shown, sizeof shown, name ? name : ""));
    return status;
}

static int write_json(json_t *report) {
    int bad = json_dumpf(report, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(7)) != 0;
    return bad | (putchar('\n') == EOF) | (fflush(stdout) != 0);
}

/* Fills `chosen`, which has room for all modules, with the named ones, or with all. Returns their number, or 0 after
 * an error, which it prints. */
static int choose_modules(const char **names, const gc_lab_module **chosen) {
    const gc_lab_module *const *all;
    int count = gc_lab_modules(&all), n = 0;
    if (!names || !names[0]) {
        for (int i = 0; i < count; i++)
            chosen[i] = all[i];
        return count;
    }
    for (int i = 0; names[i]; i++) {
        const gc_lab_module *m = gc_lab_module_find(names[i]);
        if (!m || n == count) {
            fail(EXIT_USAGE, "no such module (gpulab list prints them): ", names[i]);
            return 0;
        }
        chosen[n++] = m;
    }
    return n;
}

static int list_modules(const options *o, const char **names) {
    (void)o, (void)names;
    gc_lab_write_list(stdout);
    return EXIT_DONE;
}

static int show_modules(const options *o, const char **names) {
    const gc_lab_module *chosen[64];
    if (!names || !names[0])
        return fail(EXIT_USAGE, "show needs the name of a module; gpulab list prints them", NULL);
    int n = choose_modules(names, chosen);
    gpuconv_error error = {0};
    for (int i = 0; i < n; i++)
        if ((o->markdown ? gc_lab_write_chapter : gc_lab_write_module)(chosen[i], o->brief, stdout, &error))
            return fail(EXIT_FAILED, error.message, NULL);
    return n ? EXIT_DONE : EXIT_USAGE;
}

static int print_ptx(const options *o, const char **names) {
    const gc_lab_module *chosen[64];
    if (!names || !names[0])
        return fail(EXIT_USAGE, "ptx needs the name of a module; gpulab list prints them", NULL);
    gpuconv_error error = {0};
    int n = choose_modules(names, chosen);
    (void)gc_catch_signals();
    for (int i = 0; i < n; i++)
        if (gc_lab_write_ptx(chosen[i], o->counts, stdout, &error))
            return fail(EXIT_FAILED, error.message, NULL);
    return n ? EXIT_DONE : EXIT_USAGE;
}

/* Opens the session and warms the device up or measures its peak rates. Returns EXIT_FAILED after an error, which it
 * prints. */
static int open_session(gc_lab_session *session, const options *o, bool peak_rates) {
    gpuconv_error error = {0};
    gc_lab_session_open(session, o->quiet ? NULL : stderr);
    if (!session->device)
        fprintf(stderr, "gpulab: variants on the GPU are skipped: %s\n", session->no_device);
    gpuconv_status err =
        peak_rates ? gc_lab_session_measure_peak_rates(session, &error) : gc_lab_session_warm_up(session, &error);
    if (err) {
        gc_lab_session_close(session);
        return fail(EXIT_FAILED, error.message, NULL);
    }
    return EXIT_DONE;
}

/* Times or checks the named modules; times the sweeps too if no module is named. Returns the report, or NULL after an
 * error, which it prints. */
static json_t *run_modules(const options *o, const char **names, bool check, int *status) {
    const gc_lab_module *chosen[64];
    int64_t size[LAB_DIMENSIONS];
    gc_lab_session session;
    gc_lab_run_options run = {.quick = o->quick, .clean = o->clean};
    int n = choose_modules(names, chosen), failures = 0;
    *status = n ? EXIT_FAILED : EXIT_USAGE;
    if (!n || open_session(&session, o, !check) != EXIT_DONE)
        return NULL;
    json_t *rows = json_array(), *checks = json_array(), *effects = json_array();
    for (int i = 0; i < n; i++) {
        if (check)
            failures += gc_lab_check_module(&session, chosen[i], &run, checks);
        if (o->size) {
            memcpy(size, chosen[i]->sizes[chosen[i]->size_count - 1].value, sizeof size);
            if (!gc_lab_parse_size(o->size, size))
                failures += fail(EXIT_FAILED, "--size needs numbers such as 1024x512, not ", o->size);
            run.size = size;
        }
        if (!check || (session.device && !o->quick && !o->no_effects)) {
            failures += gc_lab_time_module(&session, chosen[i], &run, rows);
            failures += gc_lab_check_effects(chosen[i], rows, effects);
        }
    }
    json_t *report = gc_lab_session_json(&session), *sweeps = json_object();
    for (int i = 0; !check && session.device && !(names && names[0]) && gc_lab_sweep_name(i); i++)
        failures += !gc_lab_sweep(&session, gc_lab_sweep_name(i), sweeps);
    if (json_object_set_new(report, "sweeps", sweeps) | json_object_set_new(report, "checks", checks) |
        json_object_set_new(report, "results", rows) | json_object_set_new(report, "effects", effects) |
        json_object_set_new(report, "failures", json_integer(failures)))
        failures += fail(EXIT_FAILED, "out of memory", NULL);
    gc_lab_session_close(&session);
    *status = failures ? EXIT_FAILED : EXIT_DONE;
    return report;
}

/* Prints the report of run_modules as tables or as JSON. */
static int run_and_print(const options *o, const char **names, bool check) {
    int status;
    json_t *report = run_modules(o, names, check, &status);
    if (!report)
        return status;
    if (o->json) {
        if (write_json(report))
            status = fail(EXIT_FAILED, "standard output: cannot write the report: ", strerror(errno));
    } else {
        gc_lab_write_tables(report, stdout);
        if (check)
            printf("%zu comparisons, %zu effects, %lld failures\n", json_array_size(json_object_get(report, "checks")),
                   json_array_size(json_object_get(report, "effects")),
                   (long long)json_integer_value(json_object_get(report, "failures")));
    }
    json_decref(report);
    return status;
}

static int time_modules(const options *o, const char **names) {
    return run_and_print(o, names, false);
}

static int check_modules(const options *o, const char **names) {
    return run_and_print(o, names, true);
}

static int print_device(const options *o, const char **names) {
    (void)names;
    gc_lab_session session;
    gc_lab_session_open(&session, NULL);
    gc_lab_print_device(&session, &o->shape, stdout);
    gc_lab_session_close(&session);
    return EXIT_DONE;
}

static int sweep(const options *o, const char **names) {
    char name[100] = "";
    bool known = false;
    if (names && names[0] && names[1])
        (void)snprintf(name, sizeof name, "%s %s", names[0], names[1]);
    for (int i = 0; gc_lab_sweep_name(i); i++)
        known = known || strcmp(name, gc_lab_sweep_name(i)) == 0;
    if (!known)
        return fail(EXIT_USAGE, "sweep needs one of: convolution threads, convolution blocks, matmul size", NULL);
    gc_lab_session session;
    if (open_session(&session, o, true) != EXIT_DONE)
        return EXIT_FAILED;
    json_t *report = gc_lab_session_json(&session), *sweeps = json_object();
    bool ok = gc_lab_sweep(&session, name, sweeps);
    if (json_object_set_new(report, "sweeps", sweeps))
        ok = false;
    if (o->json)
        ok = write_json(report) == 0 && ok;
    else
        gc_lab_write_tables(report, stdout);
    json_decref(report);
    gc_lab_session_close(&session);
    return ok ? EXIT_DONE : EXIT_FAILED;
}

static int print_amdahl(const options *o, const char **names) {
    gc_lab_session session;
    (void)names;
    if (open_session(&session, o, false) != EXIT_DONE)
        return EXIT_FAILED;
    session.progress = NULL;
    int failures = gc_lab_print_amdahl(&session, stdout);
    gc_lab_session_close(&session);
    return failures ? EXIT_FAILED : EXIT_DONE;
}

/* Writes the page into the output file and commits the file. */
static gpuconv_status write_page(const json_t *saved, gc_output_file *file, const char *path, gpuconv_error *error) {
    int fd = fcntl(gc_output_file_descriptor(file), F_DUPFD_CLOEXEC, 3);
    FILE *to = fd < 0 ? NULL : fdopen(fd, "w");
    if (to)
        gc_lab_write_page(saved, to);
    bool err = !to || ferror(to);
    err = (to && fclose(to) != 0) || err;
    if (!to && fd >= 0)
        close(fd);
    return err ? gc_fail(error, GPUCONV_ERROR_FILE, "%s: cannot write the page: %s", path, strerror(errno))
               : gc_output_file_commit(file, error);
}

/* Prints the tables, or with --html writes the page, of a saved report, or without --from of a run that is made now. */
static int report(const options *o, const char **names) {
    gc_output_file *page = NULL;
    gpuconv_error error = {0};
    int status = EXIT_DONE;
    json_t *saved = NULL;
    if (o->from && names && names[0])
        return fail(EXIT_USAGE, "report --from takes no modules, but got ", names[0]);
    if (o->from && gc_lab_saved_load(o->from, &saved, &error) != GPUCONV_OK)
        return fail(EXIT_FAILED, error.message, NULL);
    if (o->html && gc_output_file_new(o->html, GC_OUTPUT_USER_PATH, NULL, &page, &error) != GPUCONV_OK) {
        json_decref(saved); /* report it now and not after a run that takes minutes */
        return fail(EXIT_FAILED, error.message, NULL);
    }
    if (!saved)
        saved = run_modules(o, names, false, &status);
    if (saved && !o->html)
        gc_lab_write_tables(saved, stdout);
    else if (saved && write_page(saved, page, o->html, &error) != GPUCONV_OK)
        status = fail(EXIT_FAILED, error.message, NULL);
    gc_output_file_free(page);
    json_decref(saved);
    return status;
}

/* Prints the exercises, or compiles, checks and times a student's kernel. */
static int try_kernel(const options *o, const char **names) {
    if (o->list)
        return names ? fail(EXIT_USAGE, "try --list takes no arguments, but got ", names[0]) : gc_try_list();
    if (!names)
        return fail(EXIT_USAGE, "try needs an exercise or a module; gpulab try --list prints them", NULL);
    return gc_try(&(gc_try_options){
        .name = names[0], .file = names[1], .size = o->size, .start = o->start != 0, .quick = o->quick != 0});
}

/* The commands: name, function, letters of the options that it reads, greatest number of arguments. */
static const struct command {
    const char *name;
    int (*call)(const options *o, const char **arguments);
    const char *options;
    int arguments;
} commands[] = {{"list", list_modules, "", 0},
                {"show", show_modules, "mb", 64},
                {"ptx", print_ptx, "C", 64},
                {"run", time_modules, "sjQcq", 64},
                {"check", check_modules, "sjQcnq", 64},
                {"device", print_device, "trS", 0},
                {"report", report, "sQcfHq", 64},
                {"sweep", sweep, "jq", 2},
                {"amdahl", print_amdahl, "q", 0},
                {"try", try_kernel, "slTQ", 2}};

static const struct command *find_command(const char *name) {
    for (size_t i = 0; name && i < sizeof commands / sizeof *commands; i++)
        if (strcmp(name, commands[i].name) == 0)
            return &commands[i];
    return NULL;
}

static options given = {.shape = {.threads = 256, .registers = 32}};
static const options defaults = {.shape = {.threads = 256, .registers = 32}};
static long long shared;

static struct poptOption table[] = {
    {"size", 's', POPT_ARG_STRING, &given.size, 0, "run, check, report, try: time at this size, such as 4096x4096x4096",
     "SIZE"},
    {"json", 'j', POPT_ARG_NONE, &given.json, 0, "print JSON instead of tables", NULL},
    {"markdown", 'm', POPT_ARG_NONE, &given.markdown, 0, "show: print a chapter in Markdown", NULL},
    {"brief", 'b', POPT_ARG_NONE, &given.brief, 0, "show: leave out the code", NULL},
    {"quick", 'Q', POPT_ARG_NONE, &given.quick, 0,
     "check: small sizes only, do not check effects; try: no memory checker and no times", NULL},
    {"list", 'l', POPT_ARG_NONE, &given.list, 0, "try: list the exercises", NULL},
    {"start", 'T', POPT_ARG_NONE, &given.start, 0, "try: write a source file to begin with", NULL},
    {"clean", 'c', POPT_ARG_NONE, &given.clean, 0,
     "check: skip variants with intended races and kernels of other libraries", NULL},
    {"no-effects", 'n', POPT_ARG_NONE, &given.no_effects, 0, "check: compare results only, measure no times", NULL},
    {"counts", 'C', POPT_ARG_NONE, &given.counts, 0, "ptx: print only the table of instruction counts", NULL},
    {"from", 'f', POPT_ARG_STRING, &given.from, 0, "report: read the output of run --json instead of running now",
     "FILE"},
    {"html", 'H', POPT_ARG_STRING, &given.html, 0, "report: write a self-contained HTML page", "FILE"},
    {"threads", 't', POPT_ARG_INT, &given.shape.threads, GC_RANGE_LAUNCH_THREADS, "device: threads per block (256)",
     "COUNT"},
    {"registers", 'r', POPT_ARG_INT, &given.shape.registers, GC_RANGE_LAUNCH_REGISTERS,
     "device: registers per thread (32)", "COUNT"},
    {"shared", 'S', POPT_ARG_LONGLONG, &shared, GC_RANGE_LAUNCH_SHARED, "device: bytes of shared memory per block (0)",
     "BYTES"},
    {"quiet", 'q', POPT_ARG_NONE, &given.quiet, 0, "print no progress", NULL},
    GC_OPTIONS_END};

/* Returns whether the option was set to another value than its default. */
static bool is_given(const struct poptOption *option) {
    if (option->arg == &given.shape.threads)
        return given.shape.threads != defaults.shape.threads;
    if (option->arg == &given.shape.registers)
        return given.shape.registers != defaults.shape.registers;
    if (option->arg == &shared)
        return shared != 0;
    return (option->argInfo & POPT_ARG_MASK) == POPT_ARG_STRING ? *(char **)option->arg != NULL
                                                                : *(int *)option->arg != 0;
}

/* Refuses options that the command does not read, and surplus arguments. */
static int check_usage(const struct command *command, int count) {
    for (const struct poptOption *o = table; o->longName; o++)
        if (o->shortName && o->arg && !strchr(command->options, o->shortName) && is_given(o))
            return gc_print_error(EXIT_USAGE, "--%s does not go with %s; try --help", o->longName, command->name);
    if (count <= command->arguments)
        return EXIT_DONE;
    return gc_print_error(EXIT_USAGE, "%s takes %d argument%s at most, not %d; try --help", command->name,
                          command->arguments, command->arguments == 1 ? "" : "s", count);
}

static int call_command(const char **arguments, int count) {
    int64_t size[LAB_DIMENSIONS];
    given.shape.shared = shared;
    if (given.size && (given.size[strspn(given.size, "0123456789x")] || !gc_lab_parse_size(given.size, size)))
        return gc_print_error(EXIT_USAGE, "--size '%.60s': use up to %d whole numbers such as 1024x512; try --help",
                              given.size, LAB_DIMENSIONS);
    if (count && strcmp(arguments[0], "try-library") == 0) /* gc_try starts it */
        return gc_try_library(arguments + 1, count - 1);
    const struct command *command = find_command(count ? arguments[0] : NULL);
    if (command) {
        int status = check_usage(command, count - 1);
        return status ? status : command->call(&given, count > 1 ? arguments + 1 : NULL);
    }
    char words[256];
    size_t used = 0;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        used += (size_t)snprintf(words + used, sizeof words - used, "%s%s", i ? ", " : "", commands[i].name);
    return count ? gc_print_error(EXIT_USAGE, "'%.60s': no such command; the commands are %s; try --help", arguments[0],
                                  words)
                 : gc_print_error(EXIT_USAGE, "a command is needed: %s; try --help", words);
}

const gc_command gc_lab_command = {
    .name = "gpulab",
    .arguments = "COMMAND [ARGUMENT...]",
    .about = "Runs and measures the kernels of CUDA courses on this machine.",
    .details = "  list                 list the modules\n"
               "  show MODULE...       explain a module and show the code of its variants\n"
               "  ptx MODULE...        print the kernels' PTX with counts of loads and multiply-adds\n"
               "  run [MODULE...]      time every variant and compare it with the peak rates\n"
               "  check [MODULE...]    compare every variant with its reference; check every effect\n"
               "  device               print the GPU's properties and the occupancy of a launch\n"
               "  sweep MODULE AXIS    convolution threads, convolution blocks, or matmul size\n"
               "  try EXERCISE [FILE]  compile, check, explain and time your own kernel; without FILE: the task.\n"
               "                       Needs no GPU: without one an emulator checks the kernel, with g++ or clang++\n"
               "                       Exit status: 0 right and the exercise's goal reached, 1 wrong or not reached\n"
               "  amdahl               print the speedup that Amdahl's law allows for vector-add\n"
               "  report               print a run as tables, or write a page with --html",
    .options = table,
    .run = call_command,
    .examples = {{"gpulab show transpose", "Explains the kernels of a module."},
                 {"gpulab run transpose", "Times them beside the peak rates of this machine."}}};
