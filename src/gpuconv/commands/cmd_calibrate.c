/* gpuconv calibrate: measures the costs that plans of this machine are chosen by. */
#include "cli/cli.h"
#include "commands.h"

static char *given;

static int command(const char **arguments, int count) {
    gpuconv_report *report = NULL;
    gpuconv_error error = {0};
    if (count)
        return gc_print_error(GC_EXIT_USAGE, "calibrate takes options only, not '%.60s'; try --help", arguments[0]);
    (void)gc_catch_signals();
    gpuconv_status status = gpuconv_report_new(&report);
    if (!status)
        status = gpuconv_calibrate(report, &error);
    if (!status)
        return gc_print_report(report, given);
    gpuconv_report_free(report);
    return gc_print_error(gc_exit_of(status), "%s", *error.message ? error.message : gpuconv_status_text(status));
}

static struct poptOption table[] = {
    {"report", 'r', POPT_ARG_STRING, &given, 0, "print the figures as text or JSON (default: text)", GC_WORDS_REPORT},
    GC_OPTIONS_END};

const gc_command gc_command_calibrate = {
    .name = "gpuconv calibrate",
    .arguments = "",
    .about = "Measures the costs of operations on this machine, which the choice of algorithms then uses.",
    .details =
        "Takes a few seconds. The figures are written to gpuconv/costs in the cache folder ($XDG_CACHE_HOME or ~/.cache). Later runs read "
        "them there; without the file they use built-in figures.",
    .options = table,
    .run = command,
    .examples = {{"gpuconv calibrate", "measures this machine and prints the figures"},
                 {"gpuconv calibrate --report json", "does the same and prints JSON"}}};
