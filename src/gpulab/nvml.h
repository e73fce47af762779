/* Clocks, temperature, power and throttle reasons of a GPU, read through NVML if the library is installed. */
#ifndef GPULAB_NVML_H
#define GPULAB_NVML_H

#include <stdbool.h>

typedef struct gc_lab_nvml gc_lab_nvml;

typedef struct gc_lab_nvml_reading {
    double clock_hz, memory_clock_hz, clock_max_hz; /* of the multiprocessors, of the memory; 0: unknown */
    double celsius, watts;
    unsigned long long throttle_reasons; /* bits of nvmlClocksThrottleReasons: why the clock is below its maximum */
} gc_lab_nvml_reading;

/* Opens the GPU with the PCI bus id `bus` (in CUDA's form). Returns NULL if the library or the GPU is not available. */
gc_lab_nvml *gc_lab_nvml_open(const char *bus);
void gc_lab_nvml_close(gc_lab_nvml *nvml);

/* Reads the present values. Returns false and sets zeros if `nvml` is NULL. */
bool gc_lab_nvml_read(const gc_lab_nvml *nvml, gc_lab_nvml_reading *reading);

/* Writes the reasons as words, separated by commas; "none" if no bit is set. */
void gc_lab_nvml_throttle_text(unsigned long long reasons, char *text, int size);

#endif
