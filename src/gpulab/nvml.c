/*
 * NVML, opened at run time: its header is not part of every toolkit and its library only of drivers, so the few calls
 * that read are declared here as its interface has them. Nothing here sets anything.
 */
#include "nvml.h"

#include "libgpuconv/core/memory.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLOCK_SM = 1, CLOCK_MEMORY = 2, SENSOR_GPU = 0 };

struct gc_lab_nvml {
    void *library, *card;
    int (*shutdown)(void);
    int (*clock)(void *card, int which, unsigned *mhz);
    int (*clock_most)(void *card, int which, unsigned *mhz);
    int (*temperature)(void *card, int sensor, unsigned *celsius);
    int (*power)(void *card, unsigned *milliwatts);
    int (*reasons)(void *card, unsigned long long *reasons);
};

/* POSIX lets a function's address travel as void *; C does not let it be cast. */
static bool find(void *library, const char *name, void *function) {
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

gc_lab_nvml *gc_lab_nvml_open(const char *bus) {
    int (*init)(void), (*by_bus)(const char *, void **);
    gc_lab_nvml *n = gc_calloc(1, sizeof *n);
    if (!n)
        return NULL;
    n->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (n->library && find(n->library, "nvmlInit_v2", &init) && find(n->library, "nvmlShutdown", &n->shutdown) &&
        find(n->library, "nvmlDeviceGetHandleByPciBusId_v2", &by_bus) &&
        find(n->library, "nvmlDeviceGetClockInfo", &n->clock) &&
        find(n->library, "nvmlDeviceGetMaxClockInfo", &n->clock_most) &&
        find(n->library, "nvmlDeviceGetTemperature", &n->temperature) &&
        find(n->library, "nvmlDeviceGetPowerUsage", &n->power) &&
        find(n->library, "nvmlDeviceGetCurrentClocksThrottleReasons", &n->reasons) && init() == 0) {
        if (by_bus(bus, &n->card) == 0)
            return n;
        n->shutdown();
    }
    if (n->library)
        dlclose(n->library);
    free(n);
    return NULL;
}

void gc_lab_nvml_close(gc_lab_nvml *nvml) {
    if (!nvml)
        return;
    nvml->shutdown();
    dlclose(nvml->library);
    free(nvml);
}

bool gc_lab_nvml_read(const gc_lab_nvml *nvml, gc_lab_state *state) {
    *state = (gc_lab_state){0};
    if (!nvml)
        return false;
    unsigned value;
    if (nvml->clock(nvml->card, CLOCK_SM, &value) == 0)
        state->clock_hz = 1e6 * value;
    if (nvml->clock(nvml->card, CLOCK_MEMORY, &value) == 0)
        state->memory_clock_hz = 1e6 * value;
    if (nvml->clock_most(nvml->card, CLOCK_SM, &value) == 0)
        state->clock_most_hz = 1e6 * value;
    if (nvml->temperature(nvml->card, SENSOR_GPU, &value) == 0)
        state->celsius = value;
    if (nvml->power(nvml->card, &value) == 0)
        state->watts = 1e-3 * value;
    if (nvml->reasons(nvml->card, &state->reasons) != 0)
        state->reasons = 0;
    return true;
}

void gc_lab_nvml_reasons(unsigned long long reasons, char *text, int size) {
    static const char *const names[] = {"idle",
                                        "clocks set by an application",
                                        "power cap",
                                        "hardware slowdown",
                                        "sync boost",
                                        "thermal slowdown",
                                        "hardware thermal slowdown",
                                        "power brake",
                                        "display clocks"};
    int used = snprintf(text, (size_t)size, "%s", reasons ? "" : "none");
    for (int bit = 0; bit < (int)(sizeof names / sizeof *names) && used < size; bit++)
        if (reasons >> bit & 1)
            used += snprintf(text + used, (size_t)(size - used), "%s%s", used ? ", " : "", names[bit]);
}
