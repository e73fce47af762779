/* Clocks, temperature, power and reasons for throttling, read through NVIDIA's management library where it is there. */
#ifndef GPULAB_NVML_H
#define GPULAB_NVML_H

#include <stdbool.h>

typedef struct gc_lab_nvml gc_lab_nvml;

typedef struct gc_lab_state {
    double clock_hz, memory_clock_hz, clock_most_hz; /* 0: unknown */
    double celsius, watts;
    unsigned long long reasons; /* why the clock is not higher */
} gc_lab_state;

/* NULL when the library or the card is not to be had. `bus` names the card as CUDA does. */
gc_lab_nvml *gc_lab_nvml_open(const char *bus);
void gc_lab_nvml_close(gc_lab_nvml *nvml);

/* False (and zeros) without the library. NULL is legal. */
bool gc_lab_nvml_read(const gc_lab_nvml *nvml, gc_lab_state *state);

/* The reasons in words, comma-separated; "none" when there is none. */
void gc_lab_nvml_reasons(unsigned long long reasons, char *text, int size);

#endif
