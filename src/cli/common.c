/* Functions that all subcommands use: messages, exit statuses, reports, words of options, signals. */
#include "cli.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/os.h"
#include "libgpuconv/core/visible.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *gc_program = "gpuconv";

static volatile int interrupted;

int gc_print_error(int status, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    gc_visible_print(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "%s: %s\n", gc_program, text);
    return status;
}

void gc_print_note(const char *text) {
    (void)gc_print_error(GC_EXIT_DONE, "%s", text);
}

int gc_exit_of(gpuconv_status status) {
    return !status ? GC_EXIT_DONE : status == GPUCONV_ERROR_CANCELLED ? GC_EXIT_INTERRUPTED : GC_EXIT_FAILED;
}

int gc_print_failure(gpuconv_status status, const gpuconv_error *error) {
    return status ? gc_print_error(gc_exit_of(status), "%s", error->message) : GC_EXIT_DONE;
}

int gc_print_refusal(gpuconv_status status, const gpuconv_error *error) {
    const int result = gc_print_failure(status, error);
    return status == GPUCONV_ERROR_ARGUMENT ? GC_EXIT_USAGE : result;
}

int gc_check_report(void) {
    return gc_was_closed(STDOUT_FILENO)
               ? gc_print_error(GC_EXIT_FAILED, "standard output is closed, so the report cannot be written")
               : GC_EXIT_DONE;
}

int gc_print_report(gpuconv_report *report, const char *format) {
    const int number = gc_choose("--report", format, GC_WORDS_REPORT);
    errno = 0;
    gpuconv_status status = report ? gpuconv_report_write(report, (gpuconv_report_format)number, stdout) : GPUCONV_OK;
    int why = errno;
    gpuconv_report_free(report);
    if (!status)
        return GC_EXIT_DONE;
    return gc_print_error(GC_EXIT_FAILED, "standard output: the report cannot be written: %s",
                          gc_was_closed(STDOUT_FILENO) ? "closed"
                          : why                        ? strerror(why)
                                                       : gpuconv_status_text(status));
}

int gc_choose(const char *option, const char *word, const char *words) {
    const int index = word ? gc_word_find(word, strlen(word), words) : 0;
    char list[256];
    if (index >= 0)
        return index;
    gc_word_list(words, list, sizeof list);
    return gc_print_error(-1, "%s '%.60s': must be %s; try --help", option, word, list);
}

static void interrupt(int signal_number) {
    (void)signal_number;
    gc_flag_raise(&interrupted);
}

const volatile int *gc_catch_signals(void) {
    gc_os_catch_signals(interrupt);
    gpuconv_cancel_set(&interrupted);
    return &interrupted;
}

/* ---- The start and the end of a program ---- */

static bool closed[3];

void gc_start_program(const char *program) {
    /* Standard input is opened for writing and standard output for reading, so that using them fails instead of reading
     * an empty input or discarding output. Messages to a closed standard error are discarded. */
    static const int modes[3] = {O_WRONLY, O_RDONLY, O_WRONLY};
    gc_program = program;
    for (int fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
            continue;
        closed[fd] = true;
        if (open("/dev/null", modes[fd]) != fd)
            _exit(gc_print_error(GC_EXIT_FAILED, "/dev/null: %s", strerror(errno)));
    }
}

bool gc_was_closed(int descriptor) {
    return closed[descriptor];
}

int gc_end_program(int status) {
    bool bad = ferror(stdout) != 0;
    if (bad) /* nothing may be left to write, and the reason is lost: writing once more fails for the same one */
        (void)fputc('\n', stdout);
    errno = 0;
    bad |= fclose(stdout) != 0;
    if (!bad || status != GC_EXIT_DONE)
        return status;
    return gc_print_error(GC_EXIT_FAILED, "standard output: %s",
                          gc_was_closed(STDOUT_FILENO) ? "is closed"
                          : errno                      ? strerror(errno)
                                                       : "cannot be written");
}
