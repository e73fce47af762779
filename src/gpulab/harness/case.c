/* Converts elements, fp16 and bf16 in software, and generates random inputs. Allocates, fills and poisons the buffers
 * of a case, copies outputs back, and compares them with the reference. */
#include "case.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Element types ----------------------------------------------------------------------------------------------- */

int64_t gc_lab_type_bytes(gc_lab_type type) {
    switch (type) {
    case LAB_F64:
        return 8;
    case LAB_F16:
    case LAB_BF16:
        return 2;
    case LAB_U8:
        return 1;
    default:
        return 4;
    }
}

bool gc_lab_type_is_float(gc_lab_type type) {
    return type != LAB_I32 && type != LAB_U8;
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Rounds a float's significand to nearest even, `low` bits shorter. A carry into the exponent gives the right result:
 * the next power of two, or infinity. */
static uint32_t round_bits(uint32_t bits, int low) {
    uint32_t half = UINT32_C(1) << (low - 1), odd = bits >> low & 1;
    return (bits + half - 1 + odd) & ~((UINT32_C(1) << low) - 1);
}

static uint16_t float_to_half(float value) {
    uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u);
    if (magnitude < 0x38800000u) { /* subnormal in fp16: multiples of 2^-24 */
        float scaled = rintf(float_from_bits(magnitude) * 0x1p24f);
        return (uint16_t)(sign | (uint32_t)scaled);
    }
    magnitude = round_bits(magnitude, 13);
    if (magnitude >= 0x47800000u)
        return (uint16_t)(sign | 0x7c00u);
    return (uint16_t)(sign | (magnitude - 0x38000000u) >> 13);
}

static double half_to_double(uint16_t half) {
    int exponent = half >> 10 & 31, fraction = half & 1023;
    double magnitude = exponent == 31  ? fraction ? (double)NAN : (double)INFINITY
                       : exponent == 0 ? ldexp(fraction, -24)
                                       : ldexp(1024 + fraction, exponent - 25);
    return half & 0x8000 ? -magnitude : magnitude;
}

/* Converts floats to `type`: rounds to nearest even; for integer types drops the fraction. */
static void encode(gc_lab_type type, const float *from, void *to, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        switch (type) {
        case LAB_F64:
            ((double *)to)[i] = (double)from[i];
            break;
        case LAB_F16:
            ((uint16_t *)to)[i] = float_to_half(from[i]);
            break;
        case LAB_BF16:
            ((uint16_t *)to)[i] = (uint16_t)(isnan(from[i]) ? 0x7fc0u : round_bits(bits_of(from[i]), 16) >> 16);
            break;
        case LAB_I32:
            ((int32_t *)to)[i] = (int32_t)from[i];
            break;
        case LAB_U8:
            ((uint8_t *)to)[i] = (uint8_t)from[i];
            break;
        default:
            ((float *)to)[i] = from[i];
        }
}

double gc_lab_decode(gc_lab_type type, const void *elements, int64_t index) {
    switch (type) {
    case LAB_F64:
        return ((const double *)elements)[index];
    case LAB_F16:
        return half_to_double(((const uint16_t *)elements)[index]);
    case LAB_BF16:
        return (double)float_from_bits((uint32_t)((const uint16_t *)elements)[index] << 16);
    case LAB_I32:
        return ((const int32_t *)elements)[index];
    case LAB_U8:
        return ((const uint8_t *)elements)[index];
    default:
        return (double)((const float *)elements)[index];
    }
}

double gc_lab_round(gc_lab_type type, double value) {
    if (type == LAB_F64)
        return value;
    if (type == LAB_I32) /* a float would round what is above 2^24 */
        return trunc(value);
    union {
        double alignment;
        char bytes[8];
    } element;
    float single = (float)value;
    encode(type, &single, element.bytes, 1);
    return gc_lab_decode(type, element.bytes, 0);
}

/* Returns 64 pseudo-random bits for an index (splitmix64); different indices give different bits. */
static uint64_t random_bits(uint64_t index) {
    return gc_mix_bits((index + 1) * GC_SPLITMIX_STEP);
}

/* Writes `count` random floats from [low, high). The same seed gives the same floats. */
static void random_floats(uint64_t seed, double low, double high, float *to, int64_t count) {
    float base = (float)low, width = (float)(high - low);
    for (int64_t i = 0; i < count; i++)
        to[i] = base + width * (float)(random_bits(seed + (uint64_t)i) >> 40) * 0x1p-24f;
}

/* ---- Cases ------------------------------------------------------------------------------------------------------- */

enum { BAND = 512, BAND_BYTE = 0x5a, POISON = 0xff };

struct gc_lab_case {
    const gc_lab_module *module;
    gc_lab_type input, output;
    gc_lab_memory memory;
    gc_lab_device *device;
    gc_lab_run run;
    int buffers;
    int band; /* bytes of a guard band */
    gc_lab_buffer buffer[LAB_BUFFERS];
    char *host[LAB_BUFFERS], *on_device[LAB_BUFFERS]; /* from the first guard band on */
    float *decoded[LAB_BUFFERS];                      /* inputs as floats for the reference */
};

/* Returns the kind of host memory. A case with LAB_DEVICE has pageable host memory too: inputs are filled there, and
 * outputs are copied there. */
static gc_lab_memory host_memory_kind(const gc_lab_case *c) {
    return c->memory == LAB_DEVICE ? LAB_PAGEABLE : c->memory;
}

static int64_t bytes_of(const gc_lab_buffer *b) {
    return b->count * gc_lab_type_bytes(b->type);
}

/* Returns whether host[] and on_device[] are the same memory, so that no copy is needed. */
static bool is_shared_memory(const gc_lab_case *c) {
    return !c->device || c->memory == LAB_MAPPED || c->memory == LAB_MANAGED;
}

/* Turns a CUDA error code into a status. */
static gpuconv_status device_status(int code, const char *what, gpuconv_error *error) {
    return code ? gc_fail(error, GPUCONV_ERROR_DEVICE, "%s: %s", what, gc_lab_device_error_text(code)) : GPUCONV_OK;
}

static gpuconv_status new_buffer(gc_lab_case *c, int i, gpuconv_error *error) {
    gc_lab_buffer *b = &c->buffer[i];
    if (b->count < 0 || b->count > INT64_MAX / 16)
        return gc_fail_memory(error, b->name);
    int64_t bytes = bytes_of(b) + 2 * c->band;
    void *host = NULL, *on_device = NULL;
    if (!c->device) {
        host = gc_calloc(bytes, 1);
    } else {
        int err = gc_lab_device_alloc_buffer(host_memory_kind(c), bytes, &host, &on_device);
        if (err)
            return gc_fail(error, GPUCONV_ERROR_DEVICE, "%lld bytes for %s: %s", (long long)bytes, b->name,
                           gc_lab_device_error_text(err));
    }
    c->host[i] = host;
    c->on_device[i] = on_device;
    if (!host)
        return gc_fail_memory(error, b->name);
    memset(host, BAND_BYTE, (size_t)bytes);
    c->run.count[i] = b->count;
    c->run.host[i] = c->host[i] + c->band;
    c->run.buffer[i] = on_device ? c->on_device[i] + c->band : c->run.host[i];
    return GPUCONV_OK;
}

/* Fills an input with random numbers (or by the buffer's own function) and sets other buffers to zero. The numbers are
 * rounded to the buffer's type; the reference reads the rounded ones. */
static gpuconv_status fill(gc_lab_case *c, int i, gpuconv_error *error) {
    gc_lab_buffer *b = &c->buffer[i];
    if (b->role != LAB_INPUT) {
        memset(c->run.host[i], 0, (size_t)bytes_of(b));
        return GPUCONV_OK;
    }
    if (b->fill) {
        b->fill(c->run.size, c->run.host[i], b->count);
        if (b->type == LAB_F32)
            c->run.in[i] = c->run.host[i];
        return GPUCONV_OK;
    }
    float *values = c->decoded[i] = gc_calloc(gc_max(b->count, 1), sizeof *values);
    if (!values)
        return gc_fail_memory(error, b->name);
    bool has_range = b->low < 0 || b->low > 0 || b->high < 0 || b->high > 0;
    random_floats(UINT64_C(1) << (40 + i), has_range ? b->low : -1, has_range ? b->high : 1, values, b->count);
    encode(b->type, values, c->run.host[i], b->count);
    if (b->type != LAB_F32 && b->type != LAB_F64)
        for (int64_t k = 0; k < b->count; k++)
            values[k] = (float)gc_lab_decode(b->type, c->run.host[i], k);
    c->run.in[i] = values;
    return GPUCONV_OK;
}

gpuconv_status gc_lab_case_new(const gc_lab_module *module, const gc_lab_variant *variant, const int64_t *size,
                               gc_lab_device *device, gc_lab_case **result, gpuconv_error *error) {
    *result = NULL;
    gc_lab_case *c = gc_calloc(1, sizeof *c);
    if (!c)
        return gc_fail_memory(error, "a case");
    c->module = module;
    c->input = variant->input;
    c->output = variant->output;
    c->memory = variant->memory;
    c->device = device;
    c->band = variant->flags & LAB_NO_BANDS ? 0 : BAND;
    memcpy(c->run.size, size, sizeof c->run.size);
    c->buffers = module->buffers(size, c->buffer);
    gpuconv_status err = GPUCONV_OK;
    for (int i = 0; !err && i < c->buffers; i++) {
        gc_lab_buffer *b = &c->buffer[i];
        if (b->type == LAB_F32 && b->role == LAB_INPUT && c->input)
            b->type = c->input;
        if (b->type == LAB_F32 && b->role == LAB_OUTPUT && c->output)
            b->type = c->output;
        err = new_buffer(c, i, error);
        if (!err)
            err = fill(c, i, error);
        if (!err && !is_shared_memory(c))
            err = device_status(gc_lab_device_copy(c->on_device[i], c->host[i], bytes_of(b) + 2 * c->band), b->name,
                                error);
    }
    if (err) {
        gc_lab_case_free(c);
        return err;
    }
    if (device)
        gc_lab_device_set_run(device, &c->run);
    *result = c;
    return GPUCONV_OK;
}

void gc_lab_case_free(gc_lab_case *c) {
    if (!c)
        return;
    for (int i = 0; i < LAB_BUFFERS; i++) {
        free(c->decoded[i]);
        if (c->device)
            gc_lab_device_free_buffer(host_memory_kind(c), c->host[i], c->on_device[i]);
        else
            free(c->host[i]);
    }
    free(c);
}

bool gc_lab_case_fits(const gc_lab_case *c, const gc_lab_module *module, const gc_lab_variant *variant,
                      const int64_t *size) {
    return c && c->module == module && c->input == variant->input && c->output == variant->output &&
           c->memory == variant->memory && !c->device == (variant->where == LAB_CPU) &&
           memcmp(c->run.size, size, sizeof c->run.size) == 0;
}

gc_lab_run *gc_lab_case_run(gc_lab_case *c, const gc_lab_variant *variant) {
    c->run.parameter = variant->parameter;
    return &c->run;
}

gpuconv_status gc_lab_case_poison(gc_lab_case *c, gpuconv_error *error) {
    for (int i = 0; i < c->buffers; i++) {
        if (c->buffer[i].role == LAB_INPUT)
            continue;
        int byte = c->buffer[i].role == LAB_SCRATCH ? 0 : POISON;
        memset(c->run.host[i], byte, (size_t)bytes_of(&c->buffer[i]));
        if (is_shared_memory(c))
            continue;
        gpuconv_status err =
            device_status(gc_lab_device_memset(c->run.buffer[i], byte, bytes_of(&c->buffer[i])), "poisoning", error);
        if (err)
            return err;
    }
    return GPUCONV_OK;
}

static bool is_band_intact(const gc_lab_case *c, const char *at) {
    for (int k = 0; k < c->band; k++)
        if (at[k] != BAND_BYTE)
            return false;
    return true;
}

/* Copies the outputs and their guard bands to the host and checks the bands. A variant whose lesson is the copy has
 * already copied its outputs; then only the bands on the device are fetched. */
static gpuconv_status fetch(gc_lab_case *c, const gc_lab_variant *variant, int i, gpuconv_error *error) {
    const gc_lab_buffer *b = &c->buffer[i];
    int64_t bytes = bytes_of(b);
    if (!is_shared_memory(c)) {
        gpuconv_status err;
        if ((c->memory == LAB_DEVICE || (variant->flags & LAB_ON_DEVICE)) && b->role != LAB_INPUT) {
            err = device_status(gc_lab_device_copy(c->host[i], c->on_device[i], bytes + 2 * c->band), b->name, error);
        } else {
            char bands[2 * BAND];
            err = device_status(gc_lab_device_copy(bands, c->on_device[i], c->band), b->name, error);
            if (!err)
                err = device_status(gc_lab_device_copy(bands + c->band, c->on_device[i] + c->band + bytes, c->band),
                                    b->name, error);
            if (!err && (!is_band_intact(c, bands) || !is_band_intact(c, bands + c->band)))
                err = gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s: written outside the buffer, on the device", b->name);
        }
        if (err)
            return err;
    }
    if (!is_band_intact(c, c->host[i]) || !is_band_intact(c, c->host[i] + c->band + bytes))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s: written outside the buffer", b->name);
    return GPUCONV_OK;
}

/* Checks that every element of an output was written and is finite. */
static gpuconv_status check_written(const gc_lab_case *c, int i, gpuconv_error *error) {
    const gc_lab_buffer *b = &c->buffer[i];
    for (int64_t k = 0; k < b->count; k++) {
        double value = gc_lab_decode(b->type, c->run.host[i], k);
        if (gc_lab_type_is_float(b->type) ? !isfinite(value) : b->role == LAB_MEASURED && value == -1)
            return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s[%lld] is %g: not written, or not finite", b->name,
                           (long long)k, value);
    }
    return GPUCONV_OK;
}

/* Returns the index of compared element `k` of `n`: all if n is the buffer's count, else both ends and random ones. */
static int64_t compared_index(int64_t k, int64_t n, int64_t count) {
    if (n == count)
        return k;
    return k == 0 ? 0 : k == 1 ? count - 1 : (int64_t)(random_bits((uint64_t)k) % (uint64_t)count);
}

/* Compares an output with the reference, on all cores because a reference may be slow. With a tolerance of 0 every
 * element must equal the rounded reference. */
static gpuconv_status compare(const gc_lab_case *c, int i, const gc_lab_variant *variant, int64_t max_compared,
                              gc_lab_deviation *deviation, gpuconv_error *error) {
    const gc_lab_buffer *b = &c->buffer[i];
    int64_t n = max_compared > 0 && max_compared < b->count ? max_compared : b->count, different = -1;
    double power = 0, error_power = 0, peak = 0, peak_error = 0;
#pragma omp parallel for schedule(dynamic, 64) reduction(+ : power, error_power) reduction(max : peak, peak_error, different)
    for (int64_t k = 0; k < n; k++) {
        int64_t at = compared_index(k, n, b->count);
        double want = c->module->reference(&c->run, i, at), got = gc_lab_decode(b->type, c->run.host[i], at);
        if (!(variant->tolerance > 0)) {
            want = gc_lab_round(b->type, want);
            if (!(got >= want && got <= want) && at > different)
                different = at;
        }
        power += want * want;
        error_power += (got - want) * (got - want);
        peak = fmax(peak, fabs(want));
        peak_error = fmax(peak_error, fabs(got - want));
    }
    deviation->compared += n;
    /* Without an error the result is 0 even if the reference is silent; NaN stays NaN. */
    double rms = error_power > 0 ? sqrt(error_power / power) : sqrt(error_power);
    double relative_peak = peak_error > 0 ? peak_error / peak : peak_error;
    deviation->rms = fmax(deviation->rms, rms);
    deviation->peak = fmax(deviation->peak, relative_peak);
    if (different >= 0)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s[%lld] is %.9g and must be %.9g", b->name,
                       (long long)different, gc_lab_decode(b->type, c->run.host[i], different),
                       c->module->reference(&c->run, i, different));
    if (variant->tolerance > 0 && !(rms <= variant->tolerance && relative_peak <= 8 * variant->tolerance))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s: relative error %.3g RMS, %.3g peak; %.3g is allowed",
                       b->name, rms, relative_peak, variant->tolerance);
    return GPUCONV_OK;
}

gpuconv_status gc_lab_case_check(gc_lab_case *c, const gc_lab_variant *variant, int64_t max_compared,
                                 gc_lab_deviation *deviation, gpuconv_error *error) {
    *deviation = (gc_lab_deviation){0};
    for (int i = 0; i < c->buffers; i++) {
        gpuconv_status err = fetch(c, variant, i, error);
        if (!err && (c->buffer[i].role == LAB_OUTPUT || c->buffer[i].role == LAB_MEASURED))
            err = check_written(c, i, error);
        if (!err && c->buffer[i].role == LAB_OUTPUT && !(variant->flags & LAB_RACES))
            err = compare(c, i, variant, max_compared, deviation, error);
        if (err)
            return err;
    }
    return GPUCONV_OK;
}

/* Copies an output, or the guard bands of an input, to the host. */
static int fetch_buffer(gc_lab_case *c, int i) {
    int64_t bytes = bytes_of(&c->buffer[i]), end = c->band + bytes;
    if (c->buffer[i].role != LAB_INPUT)
        return gc_lab_device_copy(c->host[i], c->on_device[i], bytes + 2 * c->band);
    int err = gc_lab_device_copy(c->host[i], c->on_device[i], c->band);
    return err ? err : gc_lab_device_copy(c->host[i] + end, c->on_device[i] + end, c->band);
}

gpuconv_status gc_lab_case_fetch(gc_lab_case *c, gpuconv_error *error) {
    gpuconv_status err = GPUCONV_OK;
    for (int i = 0; i < c->buffers && !err && !is_shared_memory(c); i++)
        err = device_status(fetch_buffer(c, i), c->buffer[i].name, error);
    return err;
}

bool gc_lab_case_view(const gc_lab_case *c, int i, gc_lab_view *view) {
    if (i >= c->buffers)
        return false;
    int64_t bytes = bytes_of(&c->buffer[i]);
    const char *begin = c->host[i] + c->band;
    *view = (gc_lab_view){.buffer = &c->buffer[i], .data = begin};
    for (int k = 0; k < c->band && !view->outside; k++) {
        if (begin[bytes + k] != BAND_BYTE)
            view->outside = bytes + k;
        else if (begin[-1 - k] != BAND_BYTE)
            view->outside = -1 - k;
    }
    return true;
}
