/* gpulab: the command line of the lab. Results go to standard output, progress and errors to standard error. */
#include "lab/about.h"
#include "lab/run.h"
#include "lab/text.h"

#include <popt.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

typedef struct options {
    char *size, *from;
    gc_lab_shape shape;
    int json, markdown, quick, clean, no_effects, quiet;
} options;

static int fail(int status, const char *what, const char *name) {
    fprintf(stderr, "gpulab: %s%s\n", what, name ? name : "");
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
        memcpy(chosen, all, (size_t)count * sizeof *chosen);
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

static int time_modules(const options *o, const char **names, bool check) {
    const gc_lab_module *chosen[64];
    int64_t size[LAB_DIMENSIONS];
    gc_lab_session session;
    gc_lab_wish wish = {.quick = o->quick, .clean = o->clean};
    int n = choose(names, chosen), failures = 0;
    if (!n)
        return EXIT_USAGE;
    if (begin(&session, o, !check) != EXIT_DONE)
        return EXIT_FAILED;
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
    json_t *report = gc_lab_session_json(&session);
    if (json_object_set_new(report, "checks", checks) | json_object_set_new(report, "results", rows) |
        json_object_set_new(report, "effects", effects) |
        json_object_set_new(report, "failures", json_integer(failures)))
        failures += fail(EXIT_FAILED, "out of memory", NULL);
    if (o->json)
        failures += write_json(report) ? fail(EXIT_FAILED, "the report cannot be written", NULL) : 0;
    else
        gc_lab_tables(report, stdout);
    if (check && !o->json)
        printf("%zu comparisons, %zu effects, %d failures\n", json_array_size(checks), json_array_size(effects),
               failures);
    json_decref(report);
    gc_lab_session_close(&session);
    return failures ? EXIT_FAILED : EXIT_DONE;
}

static int run(const options *o, const char **names) {
    return time_modules(o, names, false);
}

static int check(const options *o, const char **names) {
    return time_modules(o, names, true);
}

static int about(const options *o, const char **names) {
    (void)names;
    gc_lab_session session;
    gc_lab_session_open(&session, NULL);
    gc_lab_about(&session, &o->shape, stdout);
    gc_lab_session_close(&session);
    return EXIT_DONE;
}

static int report(const options *o, const char **names) {
    (void)names;
    json_error_t error;
    if (!o->from)
        return fail(EXIT_USAGE, "report wants --from FILE, as gpulab run --json writes it", NULL);
    json_t *saved = json_load_file(o->from, 0, &error);
    if (!json_is_object(saved)) {
        json_decref(saved);
        fprintf(stderr, "gpulab: %s: %s\n", o->from, saved ? "no report" : error.text);
        return EXIT_FAILED;
    }
    gc_lab_tables(saved, stdout);
    json_decref(saved);
    return EXIT_DONE;
}

static const struct command {
    const char *name;
    int (*call)(const options *o, const char **arguments);
} commands[] = {{"list", list}, {"show", show}, {"run", run}, {"check", check}, {"device", about}, {"report", report}};

int main(int argc, const char **argv) {
    options o = {.shape = {.threads = 256, .registers = 32}};
    long long shared = 0;
    struct poptOption table[] = {
        {"size", 's', POPT_ARG_STRING, &o.size, 0, "run: at this size, such as 4096x4096x4096", "SIZE"},
        {"json", 'j', POPT_ARG_NONE, &o.json, 0, "print JSON instead of tables", NULL},
        {"markdown", 'm', POPT_ARG_NONE, &o.markdown, 0, "show: as a chapter in Markdown", NULL},
        {"quick", 'Q', POPT_ARG_NONE, &o.quick, 0, "check: small sizes only, no effects", NULL},
        {"clean", 'c', POPT_ARG_NONE, &o.clean, 0,
         "check: without races that are the lesson and without other people's kernels", NULL},
        {"no-effects", 'n', POPT_ARG_NONE, &o.no_effects, 0, "check: compare only, time nothing", NULL},
        {"from", 'f', POPT_ARG_STRING, &o.from, 0, "report: from what run --json wrote", "FILE"},
        {"threads", 't', POPT_ARG_INT, &o.shape.threads, 0, "device: threads a block (256)", "COUNT"},
        {"registers", 'r', POPT_ARG_INT, &o.shape.registers, 0, "device: registers a thread (32)", "COUNT"},
        {"shared", 'S', POPT_ARG_LONGLONG, &shared, 0, "device: bytes of shared memory a block (0)", "BYTES"},
        {"quiet", 'q', POPT_ARG_NONE, &o.quiet, 0, "no progress", NULL},
        POPT_AUTOHELP POPT_TABLEEND};
    poptContext context = poptGetContext("gpulab", argc, argv, table, 0);
    if (!context)
        return fail(EXIT_FAILED, "out of memory", NULL);
    poptSetOtherOptionHelp(
        context, "COMMAND [ARGUMENT...]\n"
                 "The kernels of CUDA courses, measured on this machine.\n\n"
                 "  list                 the modules\n"
                 "  show MODULE...       the idea, the ladder, the source's place\n"
                 "  run [MODULE...]      every variant, timed against this machine's ceilings\n"
                 "  check [MODULE...]    every variant against its reference, every effect against the numbers\n"
                 "  device               what the GPU has, and the occupancy of a launch\n"
                 "  report               a run's tables again\n"
                 "\nOptions:");
    int status = EXIT_USAGE, bad = poptGetNextOpt(context);
    o.shape.shared = shared;
    const char *name = poptGetArg(context);
    const struct command *command = NULL;
    for (size_t i = 0; name && i < sizeof commands / sizeof *commands; i++)
        if (strcmp(name, commands[i].name) == 0)
            command = &commands[i];
    if (bad < -1)
        fprintf(stderr, "gpulab: %s: %s; try --help\n", poptBadOption(context, 0), poptStrerror(bad));
    else if (!command)
        fprintf(stderr, "gpulab: %s: no such command; try --help\n", name ? name : "nothing");
    else
        status = command->call(&o, poptGetArgs(context));
    poptFreeContext(context);
    free(o.size);
    free(o.from);
    if (status == EXIT_DONE && fflush(stdout) != 0)
        status = fail(EXIT_FAILED, "the output cannot be written", NULL);
    return status;
}
