/* The processor's name, read from /proc/cpuinfo. */
#include "processor.h"

#include <stdio.h>
#include <string.h>

void gc_processor_name(char *name, size_t size) {
    snprintf(name, size, "CPU");
    FILE *f = fopen("/proc/cpuinfo", "r");
    if (!f)
        return;
    char line[256];
    while (fgets(line, sizeof line, f)) {
        char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !value)
            continue;
        value += strspn(value, ": \t");
        value[strcspn(value, "\n")] = '\0';
        snprintf(name, size, "%s", value);
        break;
    }
    fclose(f); /* opened for reading: no data can be lost */
}
