/*
 * One row on one thread. Blocks of a contiguous signal are transformed where they are, and blocks of a contiguous
 * output are written where they belong; only the blocks at the ends, and arrays with another step, go through scratch
 * memory.
 */
#include "row_convolve.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/half.h"

#include <stdlib.h>
#include <string.h>

bool gc_row_tables_add(gc_row_tables *tables, int64_t transform) {
    gc_fft **fft = &tables->fft[gc_row_log2(transform)];
    if (!*fft)
        *fft = gc_fft_new(gc_simd_best(), transform);
    return *fft;
}

void gc_row_tables_free(gc_row_tables *tables) {
    for (int i = 0; i <= GC_FFT_MAX_LOG2; i++)
        gc_fft_free(tables->fft[i]);
}

void gc_row_scratch_free(gc_row_scratch *scratch) {
    free(scratch->block);
    free(scratch->output);
    free(scratch->taps);
    for (int i = 0; i <= GC_FFT_MAX_LOG2; i++) {
        free(scratch->spectra[i].response);
        free(scratch->spectra[i].work);
        free(scratch->spectra[i].sum);
    }
}

/* Makes a buffer of at least `floats` floats, or keeps the one that is large enough. Returns NULL without memory. */
static float *reserve(float **buffer, int64_t *size, int64_t floats) {
    if (*size < floats) {
        free(*buffer);
        *buffer = gc_calloc(floats, sizeof **buffer);
        *size = *buffer ? floats : 0;
    }
    return *buffer;
}

/* Returns a spectrum and makes it on first use. Returns NULL without memory. */
static float *reserve_spectrum(const gc_fft *fft, float **spectrum) {
    if (!*spectrum)
        *spectrum = gc_calloc(gc_fft_floats(fft), sizeof **spectrum);
    return *spectrum;
}

/* Converts `count` frames of an array from frame `at` on, all of which exist. */
static void load(const gc_array *from, int64_t at, int64_t count, float *to) {
    const int64_t step = from->step;
    const float *floats = (const float *)from->data + at * step;
    const uint16_t *halves = (const uint16_t *)from->data + at * step;
    if (from->type == GPUCONV_SAMPLE_F32 && step == 1)
        memcpy(to, floats, (size_t)count * sizeof *to);
    else if (from->type == GPUCONV_SAMPLE_F32)
        for (int64_t i = 0; i < count; i++)
            to[i] = floats[i * step];
    else if (from->type == GPUCONV_SAMPLE_F16)
        for (int64_t i = 0; i < count; i++)
            to[i] = gc_half_to_float(halves[i * step]);
    else
        for (int64_t i = 0; i < count; i++)
            to[i] = gc_bfloat_to_float(halves[i * step]);
}

void gc_row_gather(const gc_array *from, int64_t at, int64_t count, float *to) {
    const int64_t before = gc_min(count, gc_max(0, -at)), first = at + before;
    const int64_t inside = gc_max(0, gc_min(from->frames - first, count - before));
    memset(to, 0, (size_t)before * sizeof *to);
    if (inside > 0)
        load(from, first, inside, to + before);
    memset(to + before + inside, 0, (size_t)(count - before - inside) * sizeof *to);
}

/* Returns whether the array is contiguous floats, which need no copy. */
static bool in_place(const gc_array *a) {
    return a->step == 1 && a->type == GPUCONV_SAMPLE_F32;
}

/* Returns the frames from `at` on where they are, or a copy in `block`. */
static const float *frames_at(const gc_array *from, int64_t at, int64_t count, float *block) {
    if (in_place(from) && at >= 0 && at + count <= from->frames)
        return (const float *)from->data + at;
    gc_row_gather(from, at, count, block);
    return block;
}

/* Returns whether the output takes the samples as they are computed. */
static bool plain_output(const gc_row *row) {
    return row->output_step == 1 && row->output_type == GPUCONV_SAMPLE_F32 && !row->accumulate && !row->gain;
}

void gc_row_write(const gc_row *row, int64_t first, int64_t count, const float *from) {
    const int64_t step = row->output_step;
    const float gain = row->gain ? *row->gain : 1;
    float *floats = (float *)row->output + first * step;
    uint16_t *halves = (uint16_t *)row->output + first * step;
    if (plain_output(row))
        memcpy(floats, from, (size_t)count * sizeof *from);
    else if (row->output_type == GPUCONV_SAMPLE_F32)
        for (int64_t i = 0; i < count; i++)
            floats[i * step] = row->accumulate ? gain * from[i] + floats[i * step] : gain * from[i];
    else if (row->output_type == GPUCONV_SAMPLE_F16)
        for (int64_t i = 0; i < count; i++)
            halves[i * step] =
                gc_half_of_float(gain * from[i] + (row->accumulate ? gc_half_to_float(halves[i * step]) : 0));
    else
        for (int64_t i = 0; i < count; i++)
            halves[i * step] =
                gc_bfloat_of_float(gain * from[i] + (row->accumulate ? gc_bfloat_to_float(halves[i * step]) : 0));
}

/* Writes frames `at` .. `at + count - 1` of the full convolution to the output. */
static void scatter(const gc_row *row, int64_t at, int64_t count, const float *from) {
    gc_row_write(row, at - row->offset, count, from);
}

/* Transforms `count` taps from `first` on, scaled for the inverse transform. */
static void transform_taps(const gc_fft *fft, const gc_row_plan *p, int64_t first, int64_t count, float *block,
                           float *spectrum) {
    const float scale = 2 / (float)p->transform;
    gc_row_gather(&p->taps, first, count, block);
    for (int64_t k = 0; k < count; k++)
        block[k] *= scale;
    memset(block + count, 0, (size_t)(p->transform - count) * sizeof *block);
    gc_fft_forward(fft, block, spectrum);
}

bool gc_row_spectrum(const gc_row_tables *tables, gc_row_scratch *s, const gc_row_plan *p, float *spectrum) {
    if (!reserve(&s->block, &s->block_floats, p->transform))
        return false;
    transform_taps(tables->fft[gc_row_log2(p->transform)], p, 0, p->taps.frames, s->block, spectrum);
    return true;
}

const float *gc_row_prepared_spectrum(const gc_row_tables *tables, const gc_row_plan *p) {
    _Atomic(float *) *place = &p->prepared->spectrum[p->taps.step < 0][gc_row_log2(p->transform)];
    float *made = atomic_load_explicit(place, memory_order_acquire), *none = NULL;
    if (made)
        return made;
    const gc_fft *fft = tables->fft[gc_row_log2(p->transform)];
    float *block = gc_calloc(p->transform, sizeof *block);
    made = gc_calloc(gc_fft_floats(fft), sizeof *made);
    if (block && made)
        transform_taps(fft, p, 0, p->taps.frames, block, made);
    if (!block || !made) {
        free(made);
        made = NULL;
    } else if (!atomic_compare_exchange_strong(place, &none, made)) { /* another thread was first */
        free(made);
        made = none;
    }
    free(block);
    return made;
}

/* Returns the spectrum of the row's taps, kept from the row before if that had the same. */
static const float *own_spectrum(const gc_row_tables *tables, gc_row_scratch *s, const gc_row_plan *p) {
    const int size = gc_row_log2(p->transform);
    float **spectrum = &s->spectra[size].response;
    const bool same = s->kept.data == p->taps.data && s->kept.frames == p->taps.frames &&
                      s->kept.step == p->taps.step && s->kept.type == p->taps.type;
    if (same && s->kept_transform == p->transform)
        return *spectrum;
    s->kept.data = NULL;
    if (!reserve_spectrum(tables->fft[size], spectrum) || !gc_row_spectrum(tables, s, p, *spectrum))
        return NULL;
    s->kept = p->taps;
    s->kept_transform = p->transform;
    return *spectrum;
}

static bool convolve_direct(gc_row_scratch *s, const gc_row_plan *p, const gc_row *row, int64_t first_block,
                            int64_t blocks) {
    const int64_t taps = p->taps.frames, block_floats = p->before + p->hop;
    const bool taps_in_place = in_place(&p->taps), output_in_place = plain_output(row);
    float *block = reserve(&s->block, &s->block_floats, block_floats);
    float *output = reserve(&s->output, &s->output_floats, p->hop);
    float *copy = taps_in_place ? block : reserve(&s->taps, &s->taps_floats, taps);
    if (!block || !output || !copy)
        return false;
    if (!taps_in_place)
        gc_row_gather(&p->taps, 0, taps, copy);
    const float *h = taps_in_place ? p->taps.data : copy;
    for (int64_t b = first_block; b < first_block + blocks && !gc_cancelled(); b++) {
        /* Blocks begin at multiples of the span even if the output does not, so that the bytes do not depend on it. */
        const int64_t n = b * p->hop, from = gc_max(n, p->begin - (p->begin - n) % GC_DIRECT_SPAN);
        const int64_t first = gc_max(n, p->begin), count = gc_min(n + p->hop, p->end) - from;
        const float *x = frames_at(&p->signal, from - p->before, p->before + count, block) + p->before;
        if (output_in_place && from == first) {
            gc_simd_best()->direct(x, h, taps, (float *)row->output + (from - row->offset), count, 0);
        } else {
            gc_simd_best()->direct(x, h, taps, output, count, 0);
            scatter(row, first, count - (first - from), output + (first - from));
        }
    }
    return true;
}

static bool convolve_overlap_save(const gc_fft *fft, gc_row_scratch *s, const gc_row_plan *p, const gc_row *row,
                                  const float *spectrum, int64_t first_block, int64_t blocks) {
    float *block = reserve(&s->block, &s->block_floats, p->transform);
    float *work = reserve_spectrum(fft, &s->spectra[gc_row_log2(p->transform)].work);
    if (!block || !work)
        return false;
    const float *const factor[] = {work}, *const by[] = {spectrum};
    for (int64_t b = first_block; b < first_block + blocks && !gc_cancelled(); b++) {
        const int64_t n = b * p->hop, first = gc_max(n, p->begin), last = gc_min(n + p->hop, p->end);
        gc_fft_forward(fft, frames_at(&p->signal, n - p->before, p->transform, block), work);
        if (last - first == p->hop && plain_output(row)) {
            gc_fft_inverse(fft, factor, by, 1, work, (float *)row->output + (n - row->offset), p->before);
        } else {
            gc_fft_inverse(fft, factor, by, 1, work, block, p->before);
            scatter(row, first, last - first, block + (first - n));
        }
    }
    return true;
}

/* Computes the frames begin .. end - 1 as one block: the sum over the partitions of the taps. */
static bool convolve_sum(const gc_fft *fft, gc_row_scratch *s, const gc_row_plan *p, const gc_row *row) {
    const int64_t floats = gc_fft_floats(fft);
    gc_row_spectra *spectra = &s->spectra[gc_row_log2(p->transform)];
    float *block = reserve(&s->block, &s->block_floats, p->transform);
    float *work = reserve_spectrum(fft, &spectra->work), *taps = reserve_spectrum(fft, &spectra->response);
    float *sum = reserve_spectrum(fft, &spectra->sum);
    s->kept.data = NULL;
    if (!block || !work || !taps || !sum)
        return false;
    memset(sum, 0, (size_t)floats * sizeof *sum);
    for (int64_t i = 0; i < p->partitions && !gc_cancelled(); i++) {
        const int64_t first = i * p->partition, count = gc_min(p->partition, p->taps.frames - first);
        const int64_t at = p->begin - first - p->before;
        if (at >= p->signal.frames || at + p->transform <= 0)
            continue; /* this partition meets only zeros */
        transform_taps(fft, p, first, count, block, taps);
        gc_fft_forward(fft, frames_at(&p->signal, at, p->transform, block), work);
        const float *const x[] = {work}, *const h[] = {taps};
        gc_fft_multiply_sum(fft, work, x, h, 1, floats);
        for (int64_t k = 0; k < floats; k++)
            sum[k] += work[k];
    }
    gc_fft_inverse(fft, NULL, NULL, 0, sum, block, p->before);
    scatter(row, p->begin, p->end - p->begin, block);
    return true;
}

/* Writes zeros to the output frames outside of the convolution, and to those that are cleared. */
static void write_zeros(const gc_row_plan *p, const gc_row *row) {
    const int64_t frames = gc_max(row->output_frames, row->cleared), step = row->output_step;
    const int64_t first = gc_min(row->output_frames, gc_max(0, p->begin - row->offset));
    const int64_t last = gc_max(first, gc_min(row->output_frames, p->end - row->offset));
    for (int64_t i = first > 0 ? 0 : last; i < frames; i = i + 1 == first ? last : i + 1)
        if (row->output_type == GPUCONV_SAMPLE_F32)
            ((float *)row->output)[i * step] = 0;
        else
            ((uint16_t *)row->output)[i * step] = 0;
}

bool gc_row_convolve(const gc_row_tables *tables, gc_row_scratch *s, const gc_row_plan *p, const gc_row *row,
                     const float *spectrum, int64_t first_block, int64_t blocks) {
    if (first_block == p->first_block && !row->accumulate)
        write_zeros(p, row);
    if (p->method == GC_ROW_ZERO)
        return true;
    if (p->method == GC_ROW_DIRECT)
        return convolve_direct(s, p, row, first_block, blocks);
    const gc_fft *fft = tables->fft[gc_row_log2(p->transform)];
    if (p->method == GC_ROW_SUM)
        return convolve_sum(fft, s, p, row);
    if (!spectrum && !(spectrum = own_spectrum(tables, s, p)))
        return false;
    return convolve_overlap_save(fft, s, p, row, spectrum, first_block, blocks);
}
