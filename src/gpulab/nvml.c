/*
 * Reads NVML, which is opened at run time: its header is missing from some toolkits, and its library comes with the
 * driver. The functions used are therefore declared here, with the types of NVML's interface. Only functions that read
 * are called.
 */
#include "nvml.h"

#include "libgpuconv/core/memory.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLOCK_SM = 1, CLOCK_MEMORY = 2, SENSOR_GPU = 0 };

struct gc_lab_nvml {
    void *library, *gpu;
    int (*shutdown)(void);
    int (*clock)(void *gpu, int which, unsigned *mhz);
    int (*clock_max)(void *gpu, int which, unsigned *mhz);
    int (*temperature)(void *gpu, int sensor, unsigned *celsius);
    int (*power)(void *gpu, unsigned *milliwatts);
    int (*reasons)(void *gpu, unsigned long long *reasons);
};

/* Copies the address of a function: C forbids the cast from void * to a function pointer, POSIX guarantees the
 * representation. */
static bool find_symbol(void *library, const char *name, void *function) {
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
    if (n->library && find_symbol(n->library, "nvmlInit_v2", &init) &&
        find_symbol(n->library, "nvmlShutdown", &n->shutdown) &&
        find_symbol(n->library, "nvmlDeviceGetHandleByPciBusId_v2", &by_bus) &&
        find_symbol(n->library, "nvmlDeviceGetClockInfo", &n->clock) &&
        find_symbol(n->library, "nvmlDeviceGetMaxClockInfo", &n->clock_max) &&
        find_symbol(n->library, "nvmlDeviceGetTemperature", &n->temperature) &&
        find_symbol(n->library, "nvmlDeviceGetPowerUsage", &n->power) &&
        find_symbol(n->library, "nvmlDeviceGetCurrentClocksThrottleReasons", &n->reasons) && init() == 0) {
        if (by_bus(bus, &n->gpu) == 0)
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

bool gc_lab_nvml_read(const gc_lab_nvml *nvml, gc_lab_nvml_reading *reading) {
    *reading = (gc_lab_nvml_reading){0};
    if (!nvml)
        return false;
    unsigned value;
    if (nvml->clock(nvml->gpu, CLOCK_SM, &value) == 0)
        reading->clock_hz = 1e6 * value;
    if (nvml->clock(nvml->gpu, CLOCK_MEMORY, &value) == 0)
        reading->memory_clock_hz = 1e6 * value;
    if (nvml->clock_max(nvml->gpu, CLOCK_SM, &value) == 0)
        reading->clock_max_hz = 1e6 * value;
    if (nvml->temperature(nvml->gpu, SENSOR_GPU, &value) == 0)
        reading->celsius = value;
    if (nvml->power(nvml->gpu, &value) == 0)
        reading->watts = 1e-3 * value;
    if (nvml->reasons(nvml->gpu, &reading->throttle_reasons) != 0)
        reading->throttle_reasons = 0;
    return true;
}

void gc_lab_nvml_throttle_text(unsigned long long reasons, char *text, int size) {
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
