/*
 * Writes the record of a GPU: the results of benchmarks, the errors that gpu_test measured, and the digest of the
 * sources.
 *
 * Usage: gpu_record --digest HEX --out FOLDER [--checks FILE] [--forms NAME FILE]... [--bench NAME FILE]...
 *                   [--sanitizer TEXT] [--failed N] [--figure NAME VALUE UNIT]...
 * --forms: the checks of gpu_test --forms in the configuration NAME
 *        gpu_record --empty     only creates a CUDA context, to measure the time that every CUDA program takes
 */
#include "gpuconv.h"

#include <ctype.h>
#include <cuda_runtime_api.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Exits with a message unless `err` is cudaSuccess. */
static void require(cudaError_t err, const char *what) {
    if (!err)
        return;
    fprintf(stderr, "gpu_record: %s: %s\n", what, cudaGetErrorString(err));
    exit(1);
}

/* Returns the contents of a JSON file; exits with a message if it cannot be read. */
static json_t *read_json(const char *path) {
    json_error_t error;
    json_t *json = json_load_file(path, 0, &error);
    if (!json) {
        fprintf(stderr, "gpu_record: %s: %s\n", path, error.text);
        exit(1);
    }
    return json;
}

/* Prints the rows of a benchmark's tables. */
static void show(const json_t *bench) {
    static const char *const tables[] = {"convolutions", "streams", "sweep"};
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        json_t *row, *value;
        const char *name;
        size_t i;
        json_array_foreach(json_object_get(bench, tables[t]), i, row) {
            printf("%-64s", json_string_value(json_object_get(row, "label")));
            json_object_foreach(row, name, value) if (json_is_number(value))
                printf("  %s %.4g", name, json_number_value(value));
            putchar('\n');
        }
    }
}

static void write_record(const char *folder, json_t *record) {
    struct cudaDeviceProp gpu;
    char path[512], name[256];
    int runtime = 0, driver = 0;
    require(cudaGetDeviceProperties(&gpu, 0), "no GPU");
    require(cudaRuntimeGetVersion(&runtime), "no runtime");
    require(cudaDriverGetVersion(&driver), "no driver");
    size_t n = 0;
    for (const char *p = gpu.name; *p && n + 1 < sizeof name; p++)
        name[n++] = isalnum((unsigned char)*p) ? (char)tolower((unsigned char)*p) : '-';
    name[n] = '\0';
    json_object_set_new(record, "gpu", json_string(gpu.name));
    json_object_set_new(record, "gpuconv", json_string(gpuconv_version()));
    json_object_set_new(record, "multiprocessors", json_integer(gpu.multiProcessorCount));
    json_object_set_new(record, "CUDA runtime", json_integer(runtime));
    json_object_set_new(record, "CUDA driver", json_integer(driver));
    snprintf(path, sizeof path, "%s/%s.json", folder, name);
    if (json_dump_file(record, path, JSON_INDENT(1) | JSON_REAL_PRECISION(6) | JSON_SORT_KEYS) != 0) {
        fprintf(stderr, "gpu_record: %s cannot be written\n", path);
        exit(1);
    }
    printf("record: %s\n", path);
}

int main(int argc, char **argv) {
    const char *out = NULL;
    json_t *record = json_object(), *figures = json_array(), *forms = json_object();
    if (argc == 2 && strcmp(argv[1], "--empty") == 0) {
        require(cudaFree(NULL), "no GPU");
        return 0;
    }
    json_object_set_new(record, "figures", figures);
    json_object_set_new(record, "forms", forms);
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *option = argv[i] + 2, *value = argv[i + 1];
        if (strcmp(option, "digest") == 0 || strcmp(option, "sanitizer") == 0) {
            json_object_set_new(record, option, json_string(value));
        } else if (strcmp(option, "failed") == 0) {
            json_object_set_new(record, option, json_integer(atoi(value)));
        } else if (strcmp(option, "checks") == 0) {
            json_object_set_new(record, option, read_json(value));
        } else if (strcmp(option, "out") == 0) {
            out = value;
        } else if (strcmp(option, "forms") == 0 && i + 2 < argc) {
            json_object_set_new(forms, value, read_json(argv[++i + 1]));
        } else if (strcmp(option, "bench") == 0 && i + 2 < argc) {
            json_t *bench = read_json(argv[++i + 1]);
            show(bench);
            json_object_set_new(record, value, bench);
        } else if (strcmp(option, "figure") == 0 && i + 3 < argc) {
            json_array_append_new(
                figures, json_pack("{s:s, s:f, s:s}", "name", value, "value", atof(argv[i + 2]), "unit", argv[i + 3]));
            i += 2;
        }
    }
    if (!out || !json_object_get(record, "digest")) {
        fprintf(stderr, "usage: gpu_record --digest HEX --out FOLDER [--checks FILE] [--bench NAME FILE]...\n");
        return 2;
    }
    write_record(out, record);
    json_decref(record);
    return 0;
}
