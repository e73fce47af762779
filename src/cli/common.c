/* What the subcommands share: words, and how they are interrupted. */
#include "cli.h"

#include <signal.h>
#include <string.h>

const char *const gc_backend_words[3] = {"auto", "cpu", "cuda"};
const char *const gc_algorithm_words[4] = {"auto", "direct", "overlap-save", "partitioned"};
const char *const gc_report_words[2] = {"text", "json"};

static volatile int interrupted;

int gc_choose(const char *word, const char *const *names, int count) {
    for (int i = 0; i < count; i++)
        if (strcmp(word, names[i]) == 0)
            return i;
    return -1;
}

static void interrupt(int signal_number) {
    (void)signal_number;
    interrupted = 1;
}

const volatile int *gc_catch_signals(void) {
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND}, before;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) /* nohup keeps its word */
        sigaction(SIGHUP, &action, NULL);
    /* A file size limit then shows as an error of the write, like a full disk. */
    signal(SIGXFSZ, SIG_IGN);
    return &interrupted;
}
