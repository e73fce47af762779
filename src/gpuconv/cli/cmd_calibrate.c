/* gpuconv calibrate: measures this machine, so that plans fit it. */
#include "cli.h"

static char *given;

static int command(const char **arguments, int count) {
    (void)arguments;
    gpuconv_report *report = NULL;
    gpuconv_error error = {0};
    if (count)
        return gc_exit(GC_EXIT_USAGE, "calibrate takes options only; try --help");
    int format = gc_choose("--report", given, GC_WORDS_REPORT);
    if (format < 0)
        return GC_EXIT_USAGE;
    gpuconv_status status = gpuconv_report_new(&report);
    if (!status)
        status = gpuconv_calibrate(report, &error);
    if (!status)
        return gc_print_report(report, (gpuconv_report_format)format);
    gpuconv_report_free(report);
    return gc_exit(GC_EXIT_FAILED, "%s", *error.message ? error.message : gpuconv_status_text(status));
}

static struct poptOption table[] = {
    {"report", 'r', POPT_ARG_STRING, &given, 0, "form of the figures (default: text)", GC_WORDS_REPORT},
    GC_OPTIONS_END};

const gc_command gc_command_calibrate = {
    "gpuconv calibrate", "",
    "Measures in a few seconds what operations cost here and keeps it in the cache folder, where plans\n"
    "look for it ($XDG_CACHE_HOME or ~/.cache, gpuconv/costs; remove it to go back).",
    table, command};
