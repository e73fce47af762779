/* The table of costs and its file. The file has one line with the version, one with the name of each processor and one
 * per figure. */
#include "costs.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/folder.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER "gpuconv costs 4"

enum { MAX_FILE_SIZE = 16384 }; /* bytes; gc_costs_save writes less than 2048 */

/* The built-in figures were measured on a server core with AVX-512 and on an H200 with 132 multiprocessors. */
static const double reference_multiprocessors = 132;

static const struct {
    const char *name;
    double seconds;
} built_in[GC_COSTS] = {
    [GC_COST_CPU_TAP] = {"cpu-tap", 0.022e-9},
    [GC_COST_CPU_LEVEL_SMALL] = {"cpu-level-small", 0.028e-9},
    [GC_COST_CPU_LEVEL_MEDIUM] = {"cpu-level-medium", 0.036e-9},
    [GC_COST_CPU_LEVEL_LARGE] = {"cpu-level-large", 0.044e-9},
    [GC_COST_CPU_BIN] = {"cpu-bin", 0.25e-9},
    [GC_COST_CPU_MATRIX] = {"cpu-matrix", 0.085e-9},
    [GC_COST_CPU_BYTE] = {"cpu-byte", 0.08e-9},
    [GC_COST_CPU_SAMPLE] = {"cpu-sample", 0.8e-9},
    [GC_COST_CUDA_TAP] = {"cuda-tap", 1 / 29e12},
    [GC_COST_CUDA_OUTPUT] = {"cuda-output", 1e-12},
    [GC_COST_CUDA_FUSED] = {"cuda-fused", 1.9e-12},
    [GC_COST_CUDA_LONG] = {"cuda-long", 9.2e-12},
    [GC_COST_CUDA_LEVEL] = {"cuda-level", 5.0e-13},
    [GC_COST_CUDA_PASS] = {"cuda-pass", 7.0e-12},
    [GC_COST_CUDA_BIN] = {"cuda-bin", 1 / 6e12},
    [GC_COST_CUDA_SAMPLE] = {"cuda-sample", 3e-12},
    [GC_COST_CUDA_LAUNCH] = {"cuda-launch", 3.5e-6},
    [GC_COST_BUS_BYTE] = {"bus-byte", 1 / 45e9},
    [GC_COST_CUDA_START] = {"cuda-start", 0.25},
};

const char *gc_cost_name(gc_cost cost) {
    return built_in[cost].name;
}

bool gc_costs_path(char *path, size_t size) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && *cache == '/')
        return (size_t)snprintf(path, size, "%s/gpuconv/costs", cache) < size;
    return home && *home == '/' && (size_t)snprintf(path, size, "%s/.cache/gpuconv/costs", home) < size;
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

/* Reads the file if it is a regular file shorter than MAX_FILE_SIZE bytes. Never blocks on a FIFO or a device. */
static bool load(gc_costs *c) {
    char path[4096], text[MAX_FILE_SIZE];
    struct stat st;
    size_t size = 0;
    if (!gc_costs_path(path, sizeof path))
        return false;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return false;
    bool good = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size < MAX_FILE_SIZE;
    while (good && size < sizeof text) {
        ssize_t got = read(fd, text + size, sizeof text - size);
        if (got < 0 && errno == EINTR)
            continue;
        good = got >= 0;
        if (got <= 0)
            break;
        size += (size_t)got;
    }
    close(fd); /* opened for reading: an error loses nothing */
    return good && size < sizeof text && gc_costs_parse(text, size, c);
}

static gc_costs measured;
static bool has_measured;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load_once(void) {
    has_measured = load(&measured);
}

/* Returns the built-in figures for a GPU of `speed` times the reference GPU's speed. */
static gc_costs defaults(double speed) {
    gc_costs c = {0};
    for (int i = 0; i < GC_COSTS; i++)
        c.seconds[i] = built_in[i].seconds / (i >= GC_COST_CUDA_TAP && i < GC_COST_CUDA_LAUNCH ? speed : 1);
    return c;
}

gc_costs gc_costs_of_cpu(const char *name) {
    pthread_once(&once, load_once);
    return has_measured && *measured.cpu && strcmp(measured.cpu, name) == 0 ? measured : defaults(1);
}

gc_costs gc_costs_of_cuda(const char *name, int multiprocessors) {
    pthread_once(&once, load_once);
    return has_measured && *measured.cuda && strcmp(measured.cuda, name) == 0
               ? measured
               : defaults(multiprocessors / reference_multiprocessors);
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
