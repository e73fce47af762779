/* Buffers between guard bands, filled, poisoned, fetched and held against the reference. */
#include "case.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "types.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BAND = 512, BAND_BYTE = 0x5a, POISON = 0xff };

struct gc_lab_case {
    const gc_lab_module *module;
    gc_lab_type input, output;
    gc_lab_memory memory;
    gc_lab_device *device;
    gc_lab_run run;
    int buffers;
    gc_lab_buffer buffer[LAB_BUFFERS];
    char *host[LAB_BUFFERS], *on_device[LAB_BUFFERS]; /* with the bands */
    float *decoded[LAB_BUFFERS];
};

/* A case on a device without a host side of its own keeps one all the same, to fill from and to fetch to. */
static gc_lab_memory memory_of(const gc_lab_case *c) {
    return c->memory == LAB_DEVICE ? LAB_PAGEABLE : c->memory;
}

static int64_t bytes_of(const gc_lab_buffer *b) {
    return b->count * gc_lab_type_bytes(b->type);
}

static bool one_memory(const gc_lab_case *c) {
    return !c->device || c->memory == LAB_MAPPED || c->memory == LAB_MANAGED;
}

static gpuconv_status device_said(int failed, const char *what, gpuconv_error *error) {
    return failed ? gc_fail(error, GPUCONV_ERROR_DEVICE, "%s: %s", what, gc_lab_device_error(failed)) : GPUCONV_OK;
}

static gpuconv_status new_buffer(gc_lab_case *c, int i, gpuconv_error *error) {
    gc_lab_buffer *b = &c->buffer[i];
    if (b->count < 0 || b->count > INT64_MAX / 16)
        return gc_fail_memory(error, b->name);
    int64_t bytes = bytes_of(b) + 2 * BAND;
    void *host = NULL, *there = NULL;
    if (!c->device) {
        host = gc_calloc(bytes, 1);
    } else {
        int failed = gc_lab_device_new(memory_of(c), bytes, &host, &there);
        if (failed)
            return gc_fail(error, GPUCONV_ERROR_DEVICE, "%lld bytes for %s: %s", (long long)bytes, b->name,
                           gc_lab_device_error(failed));
    }
    c->host[i] = host;
    c->on_device[i] = there;
    if (!host)
        return gc_fail_memory(error, b->name);
    memset(host, BAND_BYTE, (size_t)bytes);
    c->run.count[i] = b->count;
    c->run.host[i] = c->host[i] + BAND;
    c->run.buffer[i] = there ? c->on_device[i] + BAND : c->run.host[i];
    return GPUCONV_OK;
}

/* Draws the numbers, rounds them into the buffer's type, and keeps the rounded ones as floats for the reference. */
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
    float *drawn = c->decoded[i] = gc_calloc(gc_max(b->count, 1), sizeof *drawn);
    if (!drawn)
        return gc_fail_memory(error, b->name);
    bool given = b->low < 0 || b->low > 0 || b->high < 0 || b->high > 0;
    gc_lab_draw(UINT64_C(1) << (40 + i), given ? b->low : -1, given ? b->high : 1, drawn, b->count);
    gc_lab_encode(b->type, drawn, c->run.host[i], b->count);
    if (b->type != LAB_F32 && b->type != LAB_F64)
        for (int64_t k = 0; k < b->count; k++)
            drawn[k] = (float)gc_lab_value(b->type, c->run.host[i], k);
    c->run.in[i] = drawn;
    return GPUCONV_OK;
}

gpuconv_status gc_lab_case_new(const gc_lab_module *module, const gc_lab_variant *variant, const int64_t *size,
                               gc_lab_device *device, gc_lab_case **made, gpuconv_error *error) {
    *made = NULL;
    gc_lab_case *c = gc_calloc(1, sizeof *c);
    if (!c)
        return gc_fail_memory(error, "a case");
    c->module = module;
    c->input = variant->input;
    c->output = variant->output;
    c->memory = variant->memory;
    c->device = device;
    memcpy(c->run.size, size, sizeof c->run.size);
    c->buffers = module->buffers(size, c->buffer);
    gpuconv_status failed = GPUCONV_OK;
    for (int i = 0; !failed && i < c->buffers; i++) {
        gc_lab_buffer *b = &c->buffer[i];
        if (b->type == LAB_F32 && b->role == LAB_INPUT && c->input)
            b->type = c->input;
        if (b->type == LAB_F32 && b->role == LAB_OUTPUT && c->output)
            b->type = c->output;
        failed = new_buffer(c, i, error);
        if (!failed)
            failed = fill(c, i, error);
        if (!failed && !one_memory(c))
            failed =
                device_said(gc_lab_device_copy(c->on_device[i], c->host[i], bytes_of(b) + 2 * BAND), b->name, error);
    }
    if (failed) {
        gc_lab_case_free(c);
        return failed;
    }
    if (device)
        gc_lab_device_fill(device, &c->run);
    *made = c;
    return GPUCONV_OK;
}

void gc_lab_case_free(gc_lab_case *c) {
    if (!c)
        return;
    for (int i = 0; i < LAB_BUFFERS; i++) {
        free(c->decoded[i]);
        if (c->device)
            gc_lab_device_free(memory_of(c), c->host[i], c->on_device[i]);
        else
            free(c->host[i]);
    }
    free(c);
}

bool gc_lab_case_serves(const gc_lab_case *c, const gc_lab_module *module, const gc_lab_variant *variant,
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
        if (one_memory(c))
            continue;
        gpuconv_status failed =
            device_said(gc_lab_device_set(c->run.buffer[i], byte, bytes_of(&c->buffer[i])), "poisoning", error);
        if (failed)
            return failed;
    }
    return GPUCONV_OK;
}

static bool band_whole(const char *at) {
    for (int k = 0; k < BAND; k++)
        if (at[k] != BAND_BYTE)
            return false;
    return true;
}

/* The results of a variant that copies itself lie on its host side already; of all others they are fetched, with the
 * bands around them. */
static gpuconv_status fetch(gc_lab_case *c, const gc_lab_variant *variant, int i, gpuconv_error *error) {
    const gc_lab_buffer *b = &c->buffer[i];
    int64_t bytes = bytes_of(b);
    if (!one_memory(c)) {
        char *to = c->host[i];
        gpuconv_status failed;
        if ((c->memory == LAB_DEVICE || (variant->flags & LAB_ON_DEVICE)) && b->role != LAB_INPUT) {
            failed = device_said(gc_lab_device_copy(to, c->on_device[i], bytes + 2 * BAND), b->name, error);
        } else {
            char bands[2 * BAND];
            failed = device_said(gc_lab_device_copy(bands, c->on_device[i], BAND), b->name, error);
            if (!failed)
                failed =
                    device_said(gc_lab_device_copy(bands + BAND, c->on_device[i] + BAND + bytes, BAND), b->name, error);
            if (!failed && (!band_whole(bands) || !band_whole(bands + BAND)))
                failed = gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s: written beside it, on the device", b->name);
        }
        if (failed)
            return failed;
    }
    if (!band_whole(c->host[i]) || !band_whole(c->host[i] + BAND + bytes))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s: written beside it", b->name);
    return GPUCONV_OK;
}

static gpuconv_status whole(const gc_lab_case *c, int i, gpuconv_error *error) {
    const gc_lab_buffer *b = &c->buffer[i];
    for (int64_t k = 0; k < b->count; k++) {
        double value = gc_lab_value(b->type, c->run.host[i], k);
        if (gc_lab_type_is_float(b->type) ? !isfinite(value) : b->role == LAB_MEASURED && value == -1)
            return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s[%lld] is %g: not written, or no number", b->name,
                           (long long)k, value);
    }
    return GPUCONV_OK;
}

/* Sums over the elements compared. The reference may be long work: all cores share it. */
static gpuconv_status compare(const gc_lab_case *c, int i, const gc_lab_variant *variant, int64_t most,
                              gc_lab_error *found, gpuconv_error *error) {
    const gc_lab_buffer *b = &c->buffer[i];
    int64_t n = most > 0 && most < b->count ? most : b->count, differ = -1;
    double power = 0, wrong = 0, peak = 0, peak_error = 0;
#pragma omp parallel for schedule(dynamic, 64) reduction(+ : power, wrong) reduction(max : peak, peak_error, differ)
    for (int64_t k = 0; k < n; k++) {
        int64_t at = n == b->count ? k
                     : k == 0      ? 0
                     : k == 1      ? b->count - 1
                                   : (int64_t)(gc_lab_mix((uint64_t)k) % (uint64_t)b->count);
        double want = c->module->reference(&c->run, i, at), got = gc_lab_value(b->type, c->run.host[i], at);
        if (!(variant->tolerance > 0)) {
            want = gc_lab_rounded(b->type, want);
            if (!(got >= want && got <= want) && at > differ)
                differ = at;
        }
        power += want * want;
        wrong += (got - want) * (got - want);
        peak = fmax(peak, fabs(want));
        peak_error = fmax(peak_error, fabs(got - want));
    }
    found->compared += n;
    double rms = wrong > 0 ? sqrt(wrong / power) : sqrt(wrong); /* not a number stays one; no power: infinite */
    double high = peak_error > 0 ? peak_error / peak : peak_error;
    found->rms = fmax(found->rms, rms);
    found->peak = fmax(found->peak, high);
    if (differ >= 0)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s[%lld] is %.9g and must be %.9g", b->name, (long long)differ,
                       gc_lab_value(b->type, c->run.host[i], differ), c->module->reference(&c->run, i, differ));
    if (variant->tolerance > 0 && !(rms <= variant->tolerance && high <= 8 * variant->tolerance))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s: relative error %.3g RMS, %.3g peak; %.3g is allowed",
                       b->name, rms, high, variant->tolerance);
    return GPUCONV_OK;
}

gpuconv_status gc_lab_case_check(gc_lab_case *c, const gc_lab_variant *variant, int64_t most, gc_lab_error *found,
                                 gpuconv_error *error) {
    *found = (gc_lab_error){0};
    for (int i = 0; i < c->buffers; i++) {
        gpuconv_status failed = fetch(c, variant, i, error);
        if (!failed && (c->buffer[i].role == LAB_OUTPUT || c->buffer[i].role == LAB_MEASURED))
            failed = whole(c, i, error);
        if (!failed && c->buffer[i].role == LAB_OUTPUT && !(variant->flags & LAB_RACES))
            failed = compare(c, i, variant, most, found, error);
        if (failed)
            return failed;
    }
    return GPUCONV_OK;
}
