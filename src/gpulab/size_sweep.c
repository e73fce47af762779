/* Sweeps that reproduce curves of the courses: a convolution's time over the threads of one block, its rate over the
 * number of blocks, and a matrix product's rate over its size. */
#include "size_sweep.h"

#include "run.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_POINTS = 128, COLUMNS = 2, COMPARED = 64 /* elements of each output */ };

typedef struct sweep {
    const char *name, *module, *axis, *unit;
    const char *variants[COLUMNS], *columns[COLUMNS];
    int (*list_points)(int multiprocessors, int64_t *x); /* fills x with at most MAX_POINTS; returns their number */
    void (*apply)(int64_t x, gc_lab_variant *variant, int64_t *size);
    double (*value)(const int64_t *size, double seconds);
} sweep;

/* ---- Convolution (Stahl 11) ---------------------------------------------------------------------------------------
 */

static int list_threads(int multiprocessors, int64_t *x) {
    int n = 0;
    (void)multiprocessors;
    for (int64_t t = 1; t < 32; t *= 2)
        x[n++] = t;
    for (int64_t t = 32; t <= 1024; t += 32)
        x[n++] = t;
    return n;
}

/* The parameter of the kernels with a grid-stride loop is blocks * 2048 + threads. */
static void apply_threads(int64_t x, gc_lab_variant *variant, int64_t *size) {
    variant->parameter = 2048 + (int)x;
    size[0] = 1 << 13;
    size[1] = 512;
}

static void sort_points(int64_t *x, int n) {
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0 && x[k] < x[k - 1]; k--) {
            int64_t t = x[k];
            x[k] = x[k - 1];
            x[k - 1] = t;
        }
}

/* Lists powers of two and points around every multiple of the multiprocessor count, where the rate drops because the
 * last wave of blocks is not full. */
static int list_blocks(int multiprocessors, int64_t *x) {
    int n = 0;
    for (int64_t b = 1; b <= 16384; b *= 2)
        x[n++] = b;
    for (int64_t k = 1; k <= 12; k++)
        for (int64_t d = -1; d <= 1; d++)
            x[n++] = k * multiprocessors + d * multiprocessors / 6;
    sort_points(x, n);
    int kept = 1;
    for (int i = 1; i < n; i++)
        if (x[i] != x[kept - 1])
            x[kept++] = x[i];
    return kept;
}

static void apply_blocks(int64_t x, gc_lab_variant *variant, int64_t *size) {
    variant->parameter = (int)x * 2048 + 512;
    size[0] = 1 << 22;
    size[1] = 512;
}

static double milliseconds(const int64_t *size, double seconds) {
    (void)size;
    return seconds * 1e3;
}

static double convolution_rate(const int64_t *size, double seconds) {
    return 2 * (double)size[0] * (double)size[1] / seconds * 1e-12;
}

/* ---- Quantisation of the matrix product ----------------------------------------------------------------------------
 */

static int list_sizes(int multiprocessors, int64_t *x) {
    int n = 0;
    (void)multiprocessors;
    for (int64_t s = 512; s <= 4096; s += 64)
        x[n++] = s;
    return n;
}

static void apply_size(int64_t x, gc_lab_variant *variant, int64_t *size) {
    (void)variant;
    size[0] = size[1] = size[2] = x;
}

static double product_rate(const int64_t *size, double seconds) {
    return 2 * (double)size[0] * (double)size[1] * (double)size[2] / seconds * 1e-12;
}

static const sweep sweeps[] = {
    {"convolution threads",
     "convolution",
     "threads of one block",
     "ms",
     {"one block, taps global", "one block, taps constant"},
     {"taps global, ms", "taps constant, ms"},
     list_threads,
     apply_threads,
     milliseconds},
    {"convolution blocks",
     "convolution",
     "blocks of 512 threads",
     "TFLOP/s",
     {"taps global", "taps constant"},
     {"taps global, TFLOP/s", "taps constant, TFLOP/s"},
     list_blocks,
     apply_blocks,
     convolution_rate},
    {"matmul size",
     "matmul",
     "rows, columns and depth",
     "TFLOP/s",
     {"register-tiled", "cuBLAS pedantic fp32"},
     {"register-tiled, TFLOP/s", "cuBLAS pedantic, TFLOP/s"},
     list_sizes,
     apply_size,
     product_rate},
};

const char *gc_lab_sweep_name(int i) {
    return i >= 0 && i < LAB_LENGTH(sweeps) ? sweeps[i].name : NULL;
}

/* Appends one column's value to every point; null where the device does not support the variant. Stops at the first
 * error, which it prints, and returns false. */
static bool append_column(const gc_lab_session *session, const sweep *s, int column, const int64_t *x, int n,
                          json_t *points) {
    const gc_lab_module *module = gc_lab_module_find(s->module);
    gc_lab_variant variant = *gc_lab_variant_find(module, s->variants[column]);
    int64_t size[LAB_DIMENSIONS] = {0};
    const gc_lab_job job = {module, &variant, size, .max_compared = COMPARED, .timed = true};
    gc_lab_case *cached = NULL;
    gpuconv_status err = GPUCONV_OK;
    for (int i = 0; i < n && !err; i++) {
        gpuconv_error error = {0};
        gc_lab_outcome outcome;
        memset(size, 0, sizeof size);
        s->apply(x[i], &variant, size);
        err = gc_lab_session_run(session, &job, &cached, &outcome, &error);
        if (err && session->progress)
            (void)fprintf(session->progress, "sweep %s, %lld: %s\n", s->name, (long long)x[i], error.message);
        double seconds = err || outcome.unsupported ? 0 : outcome.timing.median;
        json_array_append_new(json_array_get(points, (size_t)i),
                              seconds > 0 ? json_real(s->value(size, seconds)) : json_null());
    }
    gc_lab_case_free(cached);
    return !err;
}

bool gc_lab_sweep(const gc_lab_session *session, const char *name, json_t *results) {
    const sweep *s = NULL;
    for (int i = 0; i < LAB_LENGTH(sweeps); i++)
        if (strcmp(sweeps[i].name, name) == 0)
            s = &sweeps[i];
    if (!s)
        return false;
    int64_t x[MAX_POINTS];
    json_t *points = json_array(), *columns = json_array();
    bool good = true;
    int n = session->device ? s->list_points(gc_lab_device_get_info(session->device)->multiprocessors, x) : 0;
    for (int i = 0; i < n; i++)
        json_array_append_new(points, json_pack("[f]", (double)x[i]));
    for (int c = 0; c < COLUMNS; c++) {
        json_array_append_new(columns, json_string(s->columns[c]));
        good = good && (n == 0 || append_column(session, s, c, x, n, points));
    }
    json_object_set_new(
        results, name,
        json_pack("{s:s, s:s, s:o, s:o}", "across", s->axis, "unit", s->unit, "columns", columns, "points", points));
    if (!session->device)
        json_object_set_new(json_object_get(results, name), "missing", json_string(session->no_device));
    return good;
}
