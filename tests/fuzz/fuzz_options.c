/* Fuzzes command lines, with words separated by zero bytes: a command line is accepted or refused with status 2, before
 * any file is opened. */
#include "cli/cli.h"
#include "gpuconv/commands/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 24, ROOM = 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Replaces the commands, which open files and devices: the target tests only the parsing of options. */
static int run_nothing(const char **arguments, int count) {
    (void)arguments;
    return count == 0 ? GC_EXIT_USAGE : GC_EXIT_DONE;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char text[ROOM];
    const char *word[WORDS + 1] = {0};
    if (size < 2 || size > ROOM - 2)
        return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    int count = 0;
    for (size_t at = 0; at < size - 1 && count < WORDS; at += strlen(text + at) + 1)
        word[count++] = text + at;
    int commands = 0;
    while (gc_commands[commands])
        commands++;
    const gc_command *c = gc_commands[data[0] % commands];
    /* Half of the command lines of `convolve` run the real command, with file names that do not exist. */
    gc_command tried = *c;
    word[0] = c->name;
    bool whole = data[0] & 128 && c == &gc_command_convolve;
    if (!whole)
        tried.run = run_nothing;
    for (int i = 1; whole && i < count; i++)
        if (*word[i] != '-' || !word[i][1])
            word[i] = "/nowhere/at.all";
    gc_help_wanted = 0;
    int status = gc_command_run(&tried, count, word);
    if (status != GC_EXIT_DONE && status != GC_EXIT_USAGE && status != GC_EXIT_FAILED)
        abort();
    return 0;
}
