/* gpuconv calibrate: measures this machine, so that plans fit it. */
#include "../gpuconv.h"
#include "cli.h"

#include <popt.h>
#include <stdio.h>
#include <stdlib.h>

static int run(const char *format) {
    gpuconv_report *report = NULL;
    gpuconv_error error = {0};
    int words = gc_choose(format ? format : "text", gc_report_words, 2);
    if (words < 0) {
        fprintf(stderr, "gpuconv: --report '%s': text or json; try --help\n", format);
        return GC_EXIT_USAGE;
    }
    gpuconv_status status = gpuconv_report_new(&report);
    if (!status)
        status = gpuconv_calibrate(report, &error);
    if (!status)
        status = gpuconv_report_write(report, (gpuconv_report_format)words, stdout);
    if (status)
        fprintf(stderr, "gpuconv: %s\n", *error.message ? error.message : gpuconv_status_text(status));
    gpuconv_report_free(report);
    return status ? GC_EXIT_FAILED : GC_EXIT_DONE;
}

int gc_cmd_calibrate(int argc, const char **argv) {
    char *format = NULL;
    struct poptOption table[] = {{"report", 'r', POPT_ARG_STRING, &format, 0, "text (default) or json", "FORMAT"},
                                 POPT_AUTOHELP POPT_TABLEEND};
    poptContext context = poptGetContext("gpuconv calibrate", argc, argv, table, 0);
    if (!context) {
        fprintf(stderr, "gpuconv: out of memory\n");
        return GC_EXIT_FAILED;
    }
    poptSetOtherOptionHelp(context,
                           "[OPTIONS]\nMeasures in a few seconds what operations cost here and keeps it in the "
                           "cache folder, where plans\nlook for it ($XDG_CACHE_HOME or ~/.cache, "
                           "gpuconv/costs; remove it to go back).\n\nOptions:");
    int status, bad = poptGetNextOpt(context);
    if (bad < -1) {
        fprintf(stderr, "gpuconv: %s: %s; try --help\n", poptBadOption(context, 0), poptStrerror(bad));
        status = GC_EXIT_USAGE;
    } else if (poptPeekArg(context)) {
        fprintf(stderr, "gpuconv: calibrate takes options only; try --help\n");
        status = GC_EXIT_USAGE;
    } else {
        status = run(format);
    }
    poptFreeContext(context);
    free(format);
    return status;
}
