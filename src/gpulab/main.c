/* gpulab: the command line of the lab. Results go to standard output, progress and errors to standard error. */
#include "about.h"
#include "cli/cli.h"
#include "html.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/output_file.h"
#include "libgpuconv/core/visible.h"
#include "ptx.h"
#include "run.h"
#include "saved.h"
#include "size_sweep.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_DONE = GC_EXIT_DONE, EXIT_FAILED = GC_EXIT_FAILED, EXIT_USAGE = GC_EXIT_USAGE };

typedef struct options {
    char *size, *from, *html;
    gc_lab_shape shape;
    int json, markdown, quick, clean, no_effects, counts, quiet;
} options;

/* Prints "gpulab: WHATNAME" as one line. @return `status` */
static int fail(int status, const char *what, const char *name) {
    char shown[512];
    fprintf(stderr, "gpulab: %s%s\n", what, gc_visible(shown, sizeof shown, name ? name : ""));
    return status;
}

static int write_json(json_t *report) {
    int bad = json_dumpf(report, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(7)) != 0;
    return bad | (putchar('\n') == EOF) | (fflush(stdout) != 0);
}

/* The modules named, or all; their number, or 0 after a complaint. `chosen` has room for all. */
static int choose(const char **names, const gc_lab_module **chosen) {
    const gc_lab_module *const *all;
    int count = gc_lab_modules(&all), n = 0;
    if (!names || !names[0]) {
        for (int i = 0; i < count; i++)
            chosen[i] = all[i];
        return count;
    }
    for (int i = 0; names[i]; i++) {
        const gc_lab_module *m = gc_lab_find(names[i]);
        if (!m || n == count) {
            fail(EXIT_USAGE, "there is no such module; gpulab list names them: ", names[i]);
            return 0;
        }
        chosen[n++] = m;
    }
    return n;
}

static int list(const options *o, const char **names) {
    (void)o, (void)names;
    gc_lab_list(stdout);
    return EXIT_DONE;
}

static int show(const options *o, const char **names) {
    const gc_lab_module *chosen[64];
    if (!names || !names[0])
        return fail(EXIT_USAGE, "show wants the name of a module; gpulab list names them", NULL);
    int n = choose(names, chosen);
    for (int i = 0; i < n; i++)
        (o->markdown ? gc_lab_chapter : gc_lab_show)(chosen[i], stdout);
    return n ? EXIT_DONE : EXIT_USAGE;
}

static int ptx(const options *o, const char **names) {
    const gc_lab_module *chosen[64];
    if (!names || !names[0])
        return fail(EXIT_USAGE, "ptx wants the name of a module; gpulab list names them", NULL);
    int n = choose(names, chosen);
    for (int i = 0; i < n; i++)
        if (!gc_lab_ptx(chosen[i], o->counts, stdout))
            return fail(EXIT_FAILED, "this build has no CUDA, so there is no PTX of ", chosen[i]->name);
    return n ? EXIT_DONE : EXIT_USAGE;
}

/* Opens the session and its ceilings; on failure says so. */
static int begin(gc_lab_session *session, const options *o, bool ceilings) {
    gpuconv_error error = {0};
    gc_lab_session_open(session, o->quiet ? NULL : stderr);
    if (!session->device)
        fprintf(stderr, "gpulab: variants on the GPU are skipped: %s\n", session->why);
    gpuconv_status failed = ceilings ? gc_lab_session_ceilings(session, &error) : gc_lab_session_warm(session, &error);
    if (failed) {
        gc_lab_session_close(session);
        return fail(EXIT_FAILED, error.message, NULL);
    }
    return EXIT_DONE;
}

/* Runs or checks the modules named, or all with their sweeps; the report, or NULL after a complaint. */
static json_t *time_modules(const options *o, const char **names, bool check, int *status) {
    const gc_lab_module *chosen[64];
    int64_t size[LAB_DIMENSIONS];
    gc_lab_session session;
    gc_lab_wish wish = {.quick = o->quick, .clean = o->clean};
    int n = choose(names, chosen), failures = 0;
    *status = n ? EXIT_FAILED : EXIT_USAGE;
    if (!n || begin(&session, o, !check) != EXIT_DONE)
        return NULL;
    json_t *rows = json_array(), *checks = json_array(), *effects = json_array();
    for (int i = 0; i < n; i++) {
        if (check)
            failures += gc_lab_check(&session, chosen[i], &wish, checks);
        if (o->size) {
            memcpy(size, chosen[i]->sizes[chosen[i]->size_count - 1].value, sizeof size);
            if (!gc_lab_parse_size(o->size, size))
                failures += fail(EXIT_FAILED, "a size is numbers like 1024x512, not ", o->size);
            wish.size = size;
        }
        if (!check || (session.device && !o->quick && !o->no_effects)) {
            failures += gc_lab_time(&session, chosen[i], &wish, rows);
            failures += gc_lab_effects(chosen[i], rows, effects);
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

static int print_modules(const options *o, const char **names, bool check) {
    int status;
    json_t *report = time_modules(o, names, check, &status);
    if (!report)
        return status;
    if (o->json) {
        if (write_json(report))
            status = fail(EXIT_FAILED, "standard output: the report cannot be written: ", strerror(errno));
    } else {
        gc_lab_tables(report, stdout);
        if (check)
            printf("%zu comparisons, %zu effects, %lld failures\n", json_array_size(json_object_get(report, "checks")),
                   json_array_size(json_object_get(report, "effects")),
                   (long long)json_integer_value(json_object_get(report, "failures")));
    }
    json_decref(report);
    return status;
}

static int run(const options *o, const char **names) {
    return print_modules(o, names, false);
}

static int check(const options *o, const char **names) {
    return print_modules(o, names, true);
}

static int about(const options *o, const char **names) {
    (void)names;
    gc_lab_session session;
    gc_lab_session_open(&session, NULL);
    gc_lab_about(&session, &o->shape, stdout);
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
        return fail(EXIT_USAGE, "sweep wants one of: convolution threads, convolution blocks, matmul size", NULL);
    gc_lab_session session;
    if (begin(&session, o, true) != EXIT_DONE)
        return EXIT_FAILED;
    json_t *report = gc_lab_session_json(&session), *sweeps = json_object();
    bool good = gc_lab_sweep(&session, name, sweeps);
    if (json_object_set_new(report, "sweeps", sweeps))
        good = false;
    if (o->json)
        good = write_json(report) == 0 && good;
    else
        gc_lab_tables(report, stdout);
    json_decref(report);
    gc_lab_session_close(&session);
    return good ? EXIT_DONE : EXIT_FAILED;
}

/* The median of a variant of vector-add in a report's rows; 0: not measured. */
static double median_of(const json_t *rows, const char *variant) {
    size_t i;
    const json_t *row;
    double found = 0;
    json_array_foreach(rows, i, row) {
        const char *name = json_string_value(json_object_get(row, "variant"));
        const json_t *median = json_object_get(row, "median");
        if (name && strcmp(name, variant) == 0 && median)
            found = json_number_value(median);
    }
    return found;
}

/* Amdahl: of a time of 1, what a share p that is made s times faster leaves: 1 / (1 - p + p / s). */
static void amdahl_table(const char *what, double share) {
    printf("\n%s: %.2f %% of the time can be spread out, so the whole gets\n ", what, share * 100);
    for (int s = 2; s <= 65536; s *= 4)
        printf("  %.4g x with %d", 1 / (1 - share + share / s), s);
    printf("\n  and never more than %.4g x\n", 1 / (1 - share));
}

static int amdahl(const options *o, const char **names) {
    int64_t size[LAB_DIMENSIONS] = {10000000};
    gc_lab_session session;
    gc_lab_wish wish = {.size = size};
    (void)names;
    if (begin(&session, o, false) != EXIT_DONE)
        return EXIT_FAILED;
    session.progress = NULL;
    json_t *rows = json_array();
    int failures = gc_lab_time(&session, gc_lab_find("vector-add"), &wish, rows);
    double one = median_of(rows, "CPU sequential"), all = median_of(rows, "CPU OpenMP"),
           kernel = median_of(rows, "one thread an element"), whole = median_of(rows, "explicit copies");
    int cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    printf("Adding ten million floats: one core %.3f ms, %d cores %.3f ms", one * 1e3, cores, all * 1e3);
    if (kernel > 0)
        printf(", the GPU's kernel %.3f ms, with its copies %.3f ms", kernel * 1e3, whole * 1e3);
    printf("\n");
    if (cores > 1 && all > 0 && one > all) { /* s on n cores means p = (1 - 1/s) / (1 - 1/n) */
        double p = (1 - all / one) / (1 - 1.0 / cores);
        amdahl_table("By what the cores show", p < 1 ? p : 1 - 1e-6);
    } else {
        printf("\nThe cores show no speedup that a share could be read from.\n");
    }
    if (kernel > 0 && whole > kernel) {
        printf(
            "\nOn the GPU the copies are %.1f %% of the time: were the kernel to take no time at all, the whole would "
            "be %.3g x as fast.\n",
            100 * (1 - kernel / whole), whole / (whole - kernel));
        printf("Against one core: the addition alone %.4g x, with the copies %.3g x.\n", one / kernel, one / whole);
    }
    json_decref(rows);
    gc_lab_session_close(&session);
    return failures ? EXIT_FAILED : EXIT_DONE;
}

/* Writes the page into the file and gives the file its name. */
static gpuconv_status write_page(const json_t *saved, gc_output_file *file, const char *path, gpuconv_error *error) {
    int fd = fcntl(gc_output_file_descriptor(file), F_DUPFD_CLOEXEC, 3);
    FILE *to = fd < 0 ? NULL : fdopen(fd, "w");
    if (to)
        gc_lab_page(saved, to);
    bool bad = !to || ferror(to);
    bad = (to && fclose(to) != 0) || bad;
    if (!to && fd >= 0)
        close(fd);
    return bad ? gc_fail(error, GPUCONV_ERROR_FILE, "%s: the page cannot be written: %s", path, strerror(errno))
               : gc_output_file_commit(file, error);
}

/* Prints tables, or writes a page with --html, of a saved run or, without --from, of one made now. */
static int report(const options *o, const char **names) {
    gc_output_file *page = NULL;
    gpuconv_error error = {0};
    int status = EXIT_DONE;
    json_t *saved = NULL;
    if (o->from && names && names[0])
        return fail(EXIT_USAGE, "report --from takes no modules, but was given ", names[0]);
    if (o->from && gc_lab_saved_load(o->from, &saved, &error) != GPUCONV_OK)
        return fail(EXIT_FAILED, error.message, NULL);
    if (o->html && gc_output_file_new(o->html, GC_OUTPUT_GIVEN, NULL, &page, &error) != GPUCONV_OK) {
        json_decref(saved); /* refused before a run of minutes */
        return fail(EXIT_FAILED, error.message, NULL);
    }
    if (!saved)
        saved = time_modules(o, names, false, &status);
    if (saved && !o->html)
        gc_lab_tables(saved, stdout);
    else if (saved && write_page(saved, page, o->html, &error) != GPUCONV_OK)
        status = fail(EXIT_FAILED, error.message, NULL);
    gc_output_file_free(page);
    json_decref(saved);
    return status;
}

/* A command, the letters of the options that it reads, and how many arguments it takes at most. */
static const struct command {
    const char *name;
    int (*call)(const options *o, const char **arguments);
    const char *options;
    int arguments;
} commands[] = {{"list", list, "", 0},
                {"show", show, "m", 64},
                {"ptx", ptx, "C", 64},
                {"run", run, "sjQcq", 64},
                {"check", check, "sjQcnq", 64},
                {"device", about, "trS", 0},
                {"report", report, "sQcfHq", 64},
                {"sweep", sweep, "jq", 2},
                {"amdahl", amdahl, "q", 0}};

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
    {"size", 's', POPT_ARG_STRING, &given.size, 0, "run, check, report: at this size, such as 4096x4096x4096", "SIZE"},
    {"json", 'j', POPT_ARG_NONE, &given.json, 0, "print JSON instead of tables", NULL},
    {"markdown", 'm', POPT_ARG_NONE, &given.markdown, 0, "show: as a chapter in Markdown", NULL},
    {"quick", 'Q', POPT_ARG_NONE, &given.quick, 0, "check: small sizes only, no effects", NULL},
    {"clean", 'c', POPT_ARG_NONE, &given.clean, 0,
     "check: without races that are the lesson and without other people's kernels", NULL},
    {"no-effects", 'n', POPT_ARG_NONE, &given.no_effects, 0, "check: compare only, time nothing", NULL},
    {"counts", 'C', POPT_ARG_NONE, &given.counts, 0, "ptx: the table only", NULL},
    {"from", 'f', POPT_ARG_STRING, &given.from, 0, "report: of what run --json wrote, instead of a run now", "FILE"},
    {"html", 'H', POPT_ARG_STRING, &given.html, 0, "report: as a page of its own", "FILE"},
    {"threads", 't', POPT_ARG_INT, &given.shape.threads, GC_RANGE_LAUNCH_THREADS, "device: threads a block (256)",
     "COUNT"},
    {"registers", 'r', POPT_ARG_INT, &given.shape.registers, GC_RANGE_LAUNCH_REGISTERS,
     "device: registers a thread (32)", "COUNT"},
    {"shared", 'S', POPT_ARG_LONGLONG, &shared, GC_RANGE_LAUNCH_SHARED, "device: bytes of shared memory a block (0)",
     "BYTES"},
    {"quiet", 'q', POPT_ARG_NONE, &given.quiet, 0, "no progress", NULL},
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

/* Refuses options that the command would ignore, and arguments that are too many. */
static int check_use(const struct command *command, int count) {
    for (const struct poptOption *o = table; o->longName; o++)
        if (o->shortName && o->arg && !strchr(command->options, o->shortName) && is_given(o))
            return gc_exit(EXIT_USAGE, "--%s does not go with %s; try --help", o->longName, command->name);
    if (count <= command->arguments)
        return EXIT_DONE;
    return gc_exit(EXIT_USAGE, "%s takes %d argument%s at most, not %d; try --help", command->name, command->arguments,
                   command->arguments == 1 ? "" : "s", count);
}

static int call_command(const char **arguments, int count) {
    int64_t size[LAB_DIMENSIONS];
    given.shape.shared = shared;
    if (given.size && (given.size[strspn(given.size, "0123456789x")] || !gc_lab_parse_size(given.size, size)))
        return gc_exit(EXIT_USAGE, "--size '%.60s': up to %d whole numbers such as 1024x512; try --help", given.size,
                       LAB_DIMENSIONS);
    const struct command *command = find_command(count ? arguments[0] : NULL);
    if (command) {
        int status = check_use(command, count - 1);
        return status ? status : command->call(&given, count > 1 ? arguments + 1 : NULL);
    }
    char words[256];
    size_t used = 0;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        used += (size_t)snprintf(words + used, sizeof words - used, "%s%s", i ? ", " : "", commands[i].name);
    return gc_exit(EXIT_USAGE, "%s%.60s%s: no such command; the commands are %s; try --help", count ? "'" : "",
                   count ? arguments[0] : "nothing", count ? "'" : "", words);
}

static const gc_command lab = {
    .name = "gpulab",
    .arguments = "COMMAND [ARGUMENT...]",
    .about = "The kernels of CUDA courses, measured on this machine.\n\n"
             "  list                 the modules\n"
             "  show MODULE...       the idea, the ladder, the source's place\n"
             "  ptx MODULE...        its kernels as PTX, their loads and multiply-adds counted\n"
             "  run [MODULE...]      every variant, timed against this machine's ceilings\n"
             "  check [MODULE...]    every variant against its reference, every effect against the numbers\n"
             "  device               what the GPU has, and the occupancy of a launch\n"
             "  sweep MODULE AXIS    convolution threads, convolution blocks, matmul size\n"
             "  amdahl               what the measured share of vector-add promises at the most\n"
             "  report               a run as tables, or with --html as a page",
    .options = table,
    .run = call_command};

int main(int argc, const char **argv) {
    gc_begin("gpulab");
    return gc_end(gc_command_run(&lab, argc, argv));
}
