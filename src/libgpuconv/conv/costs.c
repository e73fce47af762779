/* The table of costs and its file. The file has one line with the version, one with the name of each processor and one
 * per figure. */
#include "plan.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/files.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/os.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEADER "gpuconv costs 5"

enum { MAX_FILE_SIZE = 16384 }; /* bytes; gc_costs_save writes less than 2048 */

const double gc_cpu_block_seconds = 2e-6, gc_cpu_wake_seconds = 20e-6, gc_cpu_shared_seconds = 30e-6;
const double gc_file_seconds = 50e-6, gc_file_byte_seconds = 0.3e-9, gc_file_written_seconds = 0.12e-9;
const double gc_image_seconds = 5e-9, gc_room_frame_seconds = 65e-9, gc_room_octaves_seconds = 250e-9,
             gc_room_ears_seconds = 2e-6;

/* The rate from which the built-in time of an operation follows. */
typedef enum rate {
    SECONDS,       /* nothing: `work` is the time */
    MULTIPLY_ADDS, /* those of the whole device per second */
    BYTES,         /* peak bytes of the device memory per second */
    CYCLES,        /* of the device's clock */
    RATES
} rate;

/*
 * The built-in figures. Those of the CPU were measured on a server core with AVX-512, whose clock a program cannot
 * know. Those of a GPU are the work of an operation divided by a rate of the device and by the efficiency with which
 * the kernels reach it, measured on an H200 (132 multiprocessors of 128 lanes at 1.98 GHz, 4.92 TB/s). An efficiency
 * above 1 says that the second-level cache serves a part of the bytes.
 */
static const struct {
    const char *name;
    rate rate;
    double work, efficiency;
} built_in[GC_COSTS] = {
    [GC_COST_CPU_TAP] = {"cpu-tap", SECONDS, 0.022e-9, 1},
    [GC_COST_CPU_LEVEL_SMALL] = {"cpu-level-small", SECONDS, 0.028e-9, 1},
    [GC_COST_CPU_LEVEL_MEDIUM] = {"cpu-level-medium", SECONDS, 0.036e-9, 1},
    [GC_COST_CPU_LEVEL_LARGE] = {"cpu-level-large", SECONDS, 0.044e-9, 1},
    [GC_COST_CPU_BIN] = {"cpu-bin", SECONDS, 0.25e-9, 1},
    [GC_COST_CPU_MATRIX] = {"cpu-matrix", SECONDS, 0.085e-9, 1},
    [GC_COST_CPU_BYTE] = {"cpu-byte", SECONDS, 0.08e-9, 1},
    [GC_COST_CPU_SAMPLE] = {"cpu-sample", SECONDS, 0.8e-9, 1},
    [GC_COST_CUDA_TAP] = {"cuda-tap", MULTIPLY_ADDS, 1, 0.867},
    [GC_COST_CUDA_OUTPUT] = {"cuda-output", BYTES, 4, 0.8136},
    [GC_COST_CUDA_FUSED] = {"cuda-fused", MULTIPLY_ADDS, 55, 0.8653}, /* 2 x 5/2 x 11 levels */
    [GC_COST_CUDA_LONG] = {"cuda-long", BYTES, 48, 1.0612},           /* samples, and twice there and back */
    [GC_COST_CUDA_CHIP] = {"cuda-chip", MULTIPLY_ADDS, 35, 0.2759},   /* 5/2 x 14 levels */
    [GC_COST_CUDA_CYCLE] = {"cuda-cycle", CYCLES, 1, 1},
    [GC_COST_CUDA_LEVEL] = {"cuda-level", MULTIPLY_ADDS, 2.5, 0.1495},
    [GC_COST_CUDA_PASS] = {"cuda-pass", BYTES, 16, 0.4649},
    [GC_COST_CUDA_BIN] = {"cuda-bin", MULTIPLY_ADDS, 4, 0.7174},
    [GC_COST_CUDA_SAMPLE] = {"cuda-sample", BYTES, 8, 0.5424},
    [GC_COST_CUDA_LAUNCH] = {"cuda-launch", SECONDS, 3.5e-6, 1},
    [GC_COST_BUS_BYTE] = {"bus-byte", SECONDS, 1 / 45e9, 1},
    [GC_COST_CUDA_START] = {"cuda-start", SECONDS, 0.25, 1},
};

const char *gc_cost_name(gc_cost cost) {
    return built_in[cost].name;
}

bool gc_costs_path(char *path, size_t size) {
    char folder[4096];
    return gc_os_cache_folder(folder, sizeof folder) && (size_t)snprintf(path, size, "%s/gpuconv/costs", folder) < size;
}

/* Parses a line `name value` and sets seen[] for a figure in range. */
static void parse_figure(const char *line, gc_costs *c, bool seen[GC_COSTS]) {
    for (int i = 0; i < GC_COSTS; i++) {
        size_t length = strlen(built_in[i].name);
        if (strncmp(line, built_in[i].name, length) == 0 && line[length] == ' ') {
            seen[i] = gc_number_parse(line + length + 1, &c->seconds[i]) && c->seconds[i] > 0 && c->seconds[i] < 1e3;
        }
    }
}

bool gc_costs_parse(const char *text, size_t size, gc_costs *c) {
    bool seen[GC_COSTS] = {false}, good = false;
    *c = (gc_costs){0};
    for (size_t at = 0; at < size;) {
        char line[256];
        const char *begin = text + at, *newline = memchr(begin, '\n', size - at);
        size_t length = newline ? (size_t)(newline - begin) : size - at;
        if (length >= sizeof line || memchr(begin, '\0', length))
            return false;
        memcpy(line, begin, length);
        line[length] = '\0';
        at += length + 1;
        if (strcmp(line, HEADER) == 0)
            good = true;
        else if (strncmp(line, "cpu: ", 5) == 0)
            snprintf(c->cpu, sizeof c->cpu, "%.127s", line + 5);
        else if (strncmp(line, "cuda: ", 6) == 0)
            snprintf(c->cuda, sizeof c->cuda, "%.127s", line + 6);
        else
            parse_figure(line, c, seen);
    }
    for (int i = 0; i < GC_COSTS; i++)
        good = good && (seen[i] || (i >= GC_COST_CUDA_TAP && !*c->cuda));
    return good;
}

/* Reads the file if it is a regular file shorter than MAX_FILE_SIZE bytes. */
static bool load(gc_costs *c) {
    char path[4096], text[MAX_FILE_SIZE];
    int64_t size = 0;
    const int fd = gc_costs_path(path, sizeof path) ? gc_input_file_open(path, &size, NULL) : -1;
    if (fd < 0)
        return false;
    const ssize_t got = read(fd, text, sizeof text);
    close(fd); /* opened for reading: an error loses nothing */
    return got == size && size < MAX_FILE_SIZE && gc_costs_parse(text, (size_t)size, c);
}

static gc_costs measured;
static bool has_measured;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load_once(void) {
    has_measured = load(&measured);
}

gc_costs gc_costs_built_in(const gc_device *d) {
    const double rates[RATES] = {1, d->multiprocessors * d->lanes * d->clock, d->bandwidth, d->clock};
    gc_costs c = {0};
    for (int i = 0; i < GC_COSTS; i++)
        if (rates[built_in[i].rate] > 0)
            c.seconds[i] = built_in[i].work / (rates[built_in[i].rate] * built_in[i].efficiency);
    return c;
}

/* Returns the measured figures if `measured_name`, a part of them, is the name of the processor, else the built-in
 * ones. */
static gc_costs choose(const char *measured_name, const gc_device *device) {
    pthread_once(&once, load_once);
    return has_measured && *measured_name && strcmp(measured_name, device->name) == 0 ? measured
                                                                                      : gc_costs_built_in(device);
}

gc_costs gc_costs_of_cpu(const char *name) {
    gc_device device = {0};
    snprintf(device.name, sizeof device.name, "%s", name);
    gc_costs c = choose(measured.cpu, &device);
    if (!(c.seconds[GC_COST_CUDA_START] > 0)) /* measured without a GPU */
        c.seconds[GC_COST_CUDA_START] = built_in[GC_COST_CUDA_START].work;
    return c;
}

gc_costs gc_costs_of_cuda(const gc_device *device) {
    return choose(measured.cuda, device);
}

/* Writes the text of the file. Returns false if it does not fit. */
static bool format_costs(const gc_costs *c, char *text, size_t size) {
    int used = snprintf(text, size, HEADER "\ncpu: %s\n", c->cpu);
    if (*c->cuda)
        used += snprintf(text + used, size - (size_t)used, "cuda: %s\n", c->cuda);
    for (int i = 0; i < (*c->cuda ? GC_COSTS : GC_COST_CUDA_TAP) && (size_t)used < size; i++)
        used += gc_format(text + used, size - (size_t)used, "%s %.6g\n", built_in[i].name, c->seconds[i]);
    return (size_t)used < size;
}

gpuconv_status gc_costs_save(const gc_costs *c, gpuconv_error *error) {
    char path[4096], text[2048];
    if (!gc_costs_path(path, sizeof path))
        return gc_fail(error, GPUCONV_ERROR_FILE, "no cache folder: neither XDG_CACHE_HOME nor HOME is set");
    if (!format_costs(c, text, sizeof text))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "the processor names are too long for the file of costs");
    gpuconv_status status = gc_create_parent_folders(path, error);
    return status ? status : gc_output_file_write(path, GC_OUTPUT_PROGRAM_PATH, text, strlen(text), error);
}
