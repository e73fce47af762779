/* Runs pactl, so that the module needs no library of PulseAudio. */
#include "pulse_names.h"

#include "libgpuconv/core/os.h"
#include "libgpuconv/core/visible.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Runs `pactl list short KIND` and reads what it prints. @return whether it succeeded within two seconds */
static bool run_pactl(char *kind, char *text, size_t room) {
    char program[4352], name[] = "pactl", list[] = "list",
                        brief[] = "short", *const argv[] = {name, list, brief, kind, NULL};
    if (!gc_os_find_program(name, program, sizeof program))
        return false;
    int stream[3] = {gc_os_memory_file(), gc_os_memory_file(), gc_os_memory_file()}, status = -1;
    pid_t child;
    bool started =
        stream[0] >= 0 && stream[1] >= 0 && stream[2] >= 0 && gc_os_start(program, argv, environ, stream, &child) == 0;
    for (int tries = 0; started && !gc_os_wait(child, 0.01, tries >= 200, &status); tries++)
        ;
    ssize_t got = started && status == 0 ? pread(stream[1], text, room - 1, 0) : -1;
    for (int k = 0; k < 3; k++)
        if (stream[k] >= 0)
            close(stream[k]);
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

void gc_pulse_names_append(char *list, size_t used, size_t room) {
    char sinks[] = "sinks", sources[] = "sources", *const kinds[] = {sinks, sources};
    for (int k = 0; k < 2; k++) {
        char text[16384], *rest = NULL;
        if (!run_pactl(kinds[k], text, sizeof text))
            continue;
        for (char *line = strtok_r(text, "\n", &rest); line && used + 1 < room; line = strtok_r(NULL, "\n", &rest)) {
            char *next = NULL, shown[300]; /* number, name, module, format, state */
            const char *number = strtok_r(line, "\t", &next), *name = number ? strtok_r(NULL, "\t", &next) : NULL;
            if (name)
                used += (size_t)snprintf(list + used, room - used, "%s pulse:%s (PulseAudio)\n", k ? "in " : "out",
                                         gc_visible(shown, sizeof shown, name));
        }
    }
}
