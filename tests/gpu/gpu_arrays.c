/* Rows of samples in device memory for tests. */
#include "gpu_arrays.h"

#include "check.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t sample_bytes(gpuconv_sample_type type) {
    return type == GPUCONV_SAMPLE_F32 ? 4 : 2;
}

/* Writes a value that the type represents exactly. */
static void encode(gpuconv_sample_type type, double value, unsigned char *to) {
    const float single = (float)value;
    const _Float16 half = (_Float16)single;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    const uint16_t brain = (uint16_t)(bits >> 16);
    memcpy(to,
           type == GPUCONV_SAMPLE_F32   ? (const void *)&single
           : type == GPUCONV_SAMPLE_F16 ? (const void *)&half
                                        : (const void *)&brain,
           sample_bytes(type));
}

static double decode(gpuconv_sample_type type, const unsigned char *from) {
    float single;
    _Float16 half;
    uint16_t brain;
    if (type == GPUCONV_SAMPLE_F32) {
        memcpy(&single, from, sizeof single);
        return (double)single;
    }
    if (type == GPUCONV_SAMPLE_F16) {
        memcpy(&half, from, sizeof half);
        return (double)half;
    }
    memcpy(&brain, from, sizeof brain);
    const uint32_t bits = (uint32_t)brain << 16;
    memcpy(&single, &bits, sizeof single);
    return (double)single;
}

static void *upload(const void *from, size_t bytes) {
    void *to = NULL;
    CHECK(cudaMalloc(&to, bytes) == cudaSuccess, "no memory on the device");
    CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice) == cudaSuccess, "no copy to the device");
    return to;
}

/* Fills start, length and elements. Where the step is negative, frame 0 of a row is its last element. */
static void lay_out(oracle_random *random, rows_array *a, rows_kind kind, int64_t pad) {
    const int64_t rows = a->array.rows, frames = a->array.frames, step = llabs(a->array.step);
    const int64_t whole = (frames - 1) * step + 1;
    const int64_t gap = 1 + oracle_below(random, 5), even = (whole + gap + 7) / 8 * 8; /* even: every row is aligned */
    a->array.stride = oracle_below(random, 2) ? even : rows == 1 ? whole : whole + gap;
    a->elements = pad;
    for (int64_t i = 0; i < rows; i++) {
        a->length[i] = kind == ROWS_PLAIN ? frames : 1 + oracle_below(random, frames);
        const int64_t used = kind == ROWS_PACKED ? (a->length[i] - 1) * step + 1 : whole;
        const int64_t begin = kind == ROWS_PACKED ? a->elements - pad : i * a->array.stride;
        a->start[i] = begin + (a->array.step < 0 ? used - 1 : 0);
        a->elements = pad + begin + used;
    }
    if (kind != ROWS_PLAIN) {
        a->array.lengths = a->device_lengths = upload(a->length, (size_t)rows * sizeof *a->length);
        if (kind == ROWS_PACKED)
            a->array.starts = a->device_starts = upload(a->start, (size_t)rows * sizeof *a->start);
    }
    for (int64_t i = 0; i < rows; i++)
        a->start[i] += pad;
}

/* Returns the byte of a frame in `data`, the bytes of the array. */
static unsigned char *frame_in(const rows_array *a, unsigned char *data, int64_t row, int64_t n) {
    return data + (size_t)(a->start[row] + n * a->array.step) * sample_bytes(a->array.type);
}

rows_array rows_new(oracle_random *random, gpuconv_sample_type type, int64_t rows, int64_t frames, int64_t step,
                    rows_kind kind, int64_t pad) {
    const size_t each = sample_bytes(type);
    rows_array a = {.array = {.type = type, .rows = rows, .frames = frames, .step = step}};
    a.value = calloc((size_t)(rows * frames), sizeof *a.value);
    a.start = calloc((size_t)rows, sizeof *a.start);
    a.length = calloc((size_t)rows, sizeof *a.length);
    CHECK(a.value && a.start && a.length, "no memory");
    lay_out(random, &a, kind, pad);
    a.before = malloc((size_t)a.elements * each);
    CHECK(a.before, "no memory");
    memset(a.before, 0xff, (size_t)a.elements * each);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t n = 0; n < a.length[i]; n++) {
            a.value[i * frames + n] = type == GPUCONV_SAMPLE_F32 ? (double)oracle_uniform(random)
                                                                 : (double)(oracle_below(random, 257) - 128) / 128;
            encode(type, a.value[i * frames + n], frame_in(&a, a.before, i, n));
        }
    a.device_data = upload(a.before, (size_t)a.elements * each);
    a.array.data = (unsigned char *)a.device_data + (size_t)(a.array.starts ? pad : a.start[0]) * each;
    return a;
}

void rows_poison(rows_array *a) {
    const size_t bytes = (size_t)a->elements * sample_bytes(a->array.type);
    memset(a->before, 0xff, bytes);
    CHECK(cudaMemset(a->device_data, 0xff, bytes) == cudaSuccess, "no memset");
}

double *rows_read(const rows_array *a, bool accumulate, const char *what) {
    const size_t each = sample_bytes(a->array.type), bytes = (size_t)a->elements * each;
    const int64_t rows = a->array.rows, frames = a->array.frames;
    unsigned char *now = malloc(bytes);
    double *value = calloc((size_t)(rows * frames), sizeof *value);
    CHECK(now && value, "no memory");
    CHECK(cudaMemcpy(now, a->device_data, bytes, cudaMemcpyDeviceToHost) == cudaSuccess, "%s: no copy back", what);
    for (int64_t i = 0; i < rows; i++) {
        const int64_t written = a->array.starts || accumulate ? a->length[i] : frames;
        for (int64_t n = 0; n < written; n++) {
            value[i * frames + n] = decode(a->array.type, frame_in(a, now, i, n));
            memcpy(frame_in(a, now, i, n), frame_in(a, a->before, i, n), each);
        }
    }
    CHECK(memcmp(now, a->before, bytes) == 0, "%s: wrote outside its rows", what);
    free(now);
    return value;
}

double rows_bound(gpuconv_sample_type type) {
    return type == GPUCONV_SAMPLE_F32 ? -120 : type == GPUCONV_SAMPLE_F16 ? -66 : -48;
}

void rows_free(rows_array *a) {
    cudaFree(a->device_data);
    cudaFree(a->device_starts);
    cudaFree(a->device_lengths);
    free(a->value);
    free(a->start);
    free(a->length);
    free(a->before);
}
