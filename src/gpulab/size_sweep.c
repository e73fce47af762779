/* The courses' curves: threads on one multiprocessor, blocks on all of them, sizes of a product. */
#include "size_sweep.h"

#include "run.h"

#include <stdlib.h>
#include <string.h>

enum { POINTS_MOST = 128, COLUMNS_MOST = 2, COMPARED = 64 };

typedef struct sweep {
    const char *name, *module, *across, *unit;
    const char *variants[COLUMNS_MOST], *columns[COLUMNS_MOST];
    int (*points)(int multiprocessors, int64_t *x);
    void (*set)(int64_t x, gc_lab_variant *variant, int64_t *size);
    double (*value)(const int64_t *size, double seconds);
} sweep;

/* ---- The convolution study of Stahl 11 ----------------------------------------------------------------------------
 */

static int threads_of(int multiprocessors, int64_t *x) {
    int n = 0;
    (void)multiprocessors;
    for (int64_t t = 1; t < 32; t *= 2)
        x[n++] = t;
    for (int64_t t = 32; t <= 1024; t += 32)
        x[n++] = t;
    return n;
}

/* The strided kernels' parameter is blocks x 2048 + threads. */
static void set_threads(int64_t x, gc_lab_variant *variant, int64_t *size) {
    variant->parameter = 2048 + (int)x;
    size[0] = 1 << 13;
    size[1] = 512;
}

static void ordered(int64_t *x, int n) {
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0 && x[k] < x[k - 1]; k--) {
            int64_t t = x[k];
            x[k] = x[k - 1];
            x[k - 1] = t;
        }
}

/* Powers of two, and around every multiple of the multiprocessors, where the curve has its teeth. */
static int blocks_of(int multiprocessors, int64_t *x) {
    int n = 0;
    for (int64_t b = 1; b <= 16384; b *= 2)
        x[n++] = b;
    for (int64_t k = 1; k <= 12; k++)
        for (int64_t d = -1; d <= 1; d++)
            x[n++] = k * multiprocessors + d * multiprocessors / 6;
    ordered(x, n);
    int kept = 1;
    for (int i = 1; i < n; i++)
        if (x[i] != x[kept - 1])
            x[kept++] = x[i];
    return kept;
}

static void set_blocks(int64_t x, gc_lab_variant *variant, int64_t *size) {
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

static int sizes_of(int multiprocessors, int64_t *x) {
    int n = 0;
    (void)multiprocessors;
    for (int64_t s = 512; s <= 4096; s += 64)
        x[n++] = s;
    return n;
}

static void set_size(int64_t x, gc_lab_variant *variant, int64_t *size) {
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
     threads_of,
     set_threads,
     milliseconds},
    {"convolution blocks",
     "convolution",
     "blocks of 512 threads",
     "TFLOP/s",
     {"taps global", "taps constant"},
     {"taps global, TFLOP/s", "taps constant, TFLOP/s"},
     blocks_of,
     set_blocks,
     convolution_rate},
    {"matmul size",
     "matmul",
     "rows, columns and depth",
     "TFLOP/s",
     {"register-tiled", "cuBLAS pedantic fp32"},
     {"register-tiled, TFLOP/s", "cuBLAS pedantic, TFLOP/s"},
     sizes_of,
     set_size,
     product_rate},
};

const char *gc_lab_sweep_name(int i) {
    return i >= 0 && i < LAB_LENGTH(sweeps) ? sweeps[i].name : NULL;
}

/* One column: null where the variant cannot. */
static bool column_of(gc_lab_session *session, const sweep *s, int column, const int64_t *x, int n, json_t *points) {
    const gc_lab_module *module = gc_lab_find(s->module);
    gc_lab_variant variant = *gc_lab_variant_named(module, s->variants[column]);
    gc_lab_case *kept = NULL;
    gpuconv_status failed = GPUCONV_OK;
    for (int i = 0; i < n && !failed; i++) {
        int64_t size[LAB_DIMENSIONS] = {0};
        gpuconv_error error = {0};
        gc_lab_error found;
        gc_lab_times times = {0};
        bool cannot = false;
        s->set(x[i], &variant, size);
        failed =
            gc_lab_session_variant(session, module, &variant, size, COMPARED, &kept, &found, &times, &cannot, &error);
        if (failed && session->progress)
            (void)fprintf(session->progress, "sweep %s, %lld: %s\n", s->name, (long long)x[i], error.message);
        json_array_append_new(json_array_get(points, (size_t)i), failed || cannot || !(times.median > 0)
                                                                     ? json_null()
                                                                     : json_real(s->value(size, times.median)));
    }
    gc_lab_case_free(kept);
    return !failed;
}

bool gc_lab_sweep(gc_lab_session *session, const char *name, json_t *all) {
    const sweep *s = NULL;
    for (int i = 0; i < LAB_LENGTH(sweeps); i++)
        if (strcmp(sweeps[i].name, name) == 0)
            s = &sweeps[i];
    if (!s)
        return false;
    int64_t x[POINTS_MOST];
    json_t *points = json_array(), *columns = json_array();
    bool good = true;
    int n = session->device ? s->points(gc_lab_device_about(session->device)->multiprocessors, x) : 0;
    for (int i = 0; i < n; i++)
        json_array_append_new(points, json_pack("[f]", (double)x[i]));
    for (int c = 0; c < COLUMNS_MOST; c++) {
        json_array_append_new(columns, json_string(s->columns[c]));
        good = good && (n == 0 || column_of(session, s, c, x, n, points));
    }
    json_object_set_new(
        all, name,
        json_pack("{s:s, s:s, s:o, s:o}", "across", s->across, "unit", s->unit, "columns", columns, "points", points));
    if (!session->device)
        json_object_set_new(json_object_get(all, name), "missing", json_string(session->why));
    return good;
}
