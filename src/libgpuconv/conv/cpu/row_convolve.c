/*
 * One row on one thread, or several short ones at a time. Blocks of a contiguous signal are transformed where they are,
 * and blocks of a contiguous output are written where they belong; only the blocks at the ends, and arrays with another
 * step, go through scratch memory.
 */
#include "rows.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/half.h"

#include <stdlib.h>
#include <string.h>

/* Floats of a cache line, and frames that pass through a gate at a time. */
enum { LINE = 16, GATED = 512 };

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

/* Converts `count` frames of an array from frame `at` on, all of which exist, without its gate. The compiler vectorises
 * the loops over adjacent samples. */
static void convert(const gc_array *from, int64_t at, int64_t count, float *to) {
    const int64_t step = from->step;
    const float *floats = (const float *)from->data + at * step;
    const uint16_t *halves = (const uint16_t *)from->data + at * step;
    if (from->type == GPUCONV_SAMPLE_F32 && step == 1)
        memcpy(to, floats, (size_t)count * sizeof *to);
    else if (from->type == GPUCONV_SAMPLE_F32 && step == -1)
        for (int64_t i = 0; i < count; i++)
            to[i] = floats[-i];
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

/* Multiplies `count` frames by the gate of an array from frame `at` on. */
static void multiply_gate(const gc_array *a, int64_t at, int64_t count, float *frames) {
    const gc_array gate = {
        .data = (void *)(uintptr_t)a->gate, .frames = a->frames, .step = a->gate_step, .type = a->gate_type};
    float factor[GATED];
    for (int64_t n = 0; n < count && a->gate; n += GATED) {
        const int64_t some = gc_min(GATED, count - n);
        convert(&gate, at + n, some, factor);
        for (int64_t i = 0; i < some; i++)
            frames[n + i] *= factor[i]; /* NOLINT(clang-analyzer-core.uninitialized.Assign): transforms write them */
    }
}

static void load(const gc_array *from, int64_t at, int64_t count, float *to) {
    convert(from, at, count, to);
    multiply_gate(from, at, count, to);
}

void gc_row_gather(const gc_array *from, int64_t at, int64_t count, float *to) {
    const int64_t before = gc_min(count, gc_max(0, -at)), first = at + before;
    const int64_t inside = gc_max(0, gc_min(from->frames - first, count - before));
    memset(to, 0, (size_t)before * sizeof *to);
    if (inside > 0)
        load(from, first, inside, to + before);
    memset(to + before + inside, 0, (size_t)(count - before - inside) * sizeof *to);
}

/* Returns whether the array is contiguous floats without a gate, which need no copy. */
static bool in_place(const gc_array *a) {
    return a->step == 1 && a->type == GPUCONV_SAMPLE_F32 && !a->gate;
}

/* Returns the frames from `at` on where they are, or a copy in `block`. */
static const float *frames_at(const gc_array *from, int64_t at, int64_t count, float *block) {
    if (in_place(from) && at >= 0 && at + count <= from->frames)
        return (const float *)from->data + at;
    gc_row_gather(from, at, count, block);
    return block;
}

/* Fetches an array of adjacent floats into the cache. */
static void prefetch(const gc_array *a) {
    const float *first = (const float *)a->data - (a->step < 0 ? a->frames - 1 : 0);
    if (a->type != GPUCONV_SAMPLE_F32 || llabs(a->step) != 1)
        return;
    for (int64_t n = 0; n < a->frames; n += LINE)
        __builtin_prefetch(first + n);
}

/* Returns whether the output takes the samples as they are computed. */
static bool plain_output(const gc_row *row) {
    return in_place(&row->output) && !row->accumulate && !row->gain && !row->skip.data;
}

/* Writes frames of the output, times `gain`, without its gate. */
static void write_frames(const gc_row *row, int64_t first, int64_t count, const float *from, float gain) {
    const int64_t step = row->output.step;
    float *floats = (float *)row->output.data + first * step;
    uint16_t *halves = (uint16_t *)row->output.data + first * step;
    if (plain_output(row))
        memcpy(floats, from, (size_t)count * sizeof *from);
    else if (row->output.type == GPUCONV_SAMPLE_F32)
        for (int64_t i = 0; i < count; i++)
            floats[i * step] = row->accumulate ? gain * from[i] + floats[i * step] : gain * from[i];
    else if (row->output.type == GPUCONV_SAMPLE_F16)
        for (int64_t i = 0; i < count; i++)
            halves[i * step] =
                gc_half_of_float(gain * from[i] + (row->accumulate ? gc_half_to_float(halves[i * step]) : 0));
    else
        for (int64_t i = 0; i < count; i++)
            halves[i * step] =
                gc_bfloat_of_float(gain * from[i] + (row->accumulate ? gc_bfloat_to_float(halves[i * step]) : 0));
}

/* Adds what skips the convolution to frames of the output from `first` on. */
static void add_skip(const gc_row *row, int64_t first, int64_t count, float *frames) {
    float skip[GATED];
    gc_row_gather(&row->skip, first, count, skip);
    for (int64_t i = 0; i < count; i++)
        frames[i] += *row->skip_factor * skip[i];
}

void gc_row_write(const gc_row *row, int64_t first, int64_t count, const float *from) {
    const float gain = row->gain ? *row->gain : 1;
    float frames[GATED];
    if (!row->output.gate && !row->skip.data) {
        write_frames(row, first, count, from, gain);
        return;
    }
    for (int64_t n = 0; n < count; n += GATED) {
        const int64_t some = gc_min(GATED, count - n), at = first + n;
        for (int64_t i = 0; i < some; i++)
            frames[i] = gain * from[n + i];
        if (row->skip.data && !row->skip_last)
            add_skip(row, at, some, frames);
        multiply_gate(&row->output, at, some, frames);
        if (row->skip.data && row->skip_last)
            add_skip(row, at, some, frames);
        write_frames(row, at, some, frames, 1);
    }
}

/* Returns the factor of the taps for the inverse transform: a power of two. */
static float scale_of(const gc_row *row) {
    return 2 / (float)row->schedule.transform;
}

/* Transforms `count` taps from `first` on, by way of `block` if they are not where they can be read. */
static void transform_taps(const gc_fft *fft, const gc_row *row, int64_t first, int64_t count, float *block,
                           float *spectrum) {
    const float *const taps[] = {frames_at(&row->taps, first, count, block)};
    gc_fft_forward_rows(fft, taps, count, scale_of(row), spectrum);
}

static bool same_array(const gc_array *a, const gc_array *b) {
    return a->data == b->data && a->frames == b->frames && a->step == b->step && a->type == b->type &&
           a->gate == b->gate;
}

/* Transforms the taps of `count` rows by way of `block`; in the place of missing ones the last one again. */
static void transform_rows(const gc_fft *fft, const gc_row *row, int count, int together, float *block,
                           float *spectrum) {
    const int64_t frames = row->taps.frames;
    const float *taps[GC_FFT_MAX_ROWS] = {frames_at(&row->taps, 0, frames, block)};
    for (int r = 1; r < together; r++) {
        const bool again = r >= count || same_array(&row[r].taps, &row[r - 1].taps);
        taps[r] = again ? taps[r - 1] : frames_at(&row[r].taps, 0, frames, block + r * frames);
    }
    gc_fft_forward_rows(fft, taps, frames, scale_of(row), spectrum);
}

/* Returns the kept spectrum of `together` rows, by way of `block`. Returns NULL without memory. */
static const float *kept_spectrum(const gc_fft *fft, const gc_row *row, int together, float *block) {
    _Atomic(float *) *place = &row->prepared->spectrum[row->taps.step < 0][gc_row_log2(row->schedule.transform)];
    float *kept = atomic_load_explicit(place, memory_order_acquire);
    float *made = kept ? NULL : gc_calloc(gc_fft_floats(fft), sizeof *made);
    if (!made)
        return kept;
    transform_rows(fft, row, together, together, block, made);
    if (atomic_compare_exchange_strong(place, &kept, made))
        return made;
    free(made); /* another thread was first */
    return kept;
}

/* Returns whether the spectra of the rows are kept: of one row, or of rows with successive responses. */
static bool is_kept(const gc_row *row, int count, int together) {
    for (int r = 0; r < together; r++)
        if (r >= count || !row[r].prepared || row[r].prepared != row[0].prepared + r)
            return false;
    return true;
}

const float *gc_row_spectrum(const gc_rows *rows, gc_row_scratch *s, const gc_row *row, int count) {
    const int64_t points = row->schedule.transform;
    const int size = gc_row_log2(points);
    const gc_fft *fft = rows->fft[size];
    const int together = row->method == GC_ROW_WHOLE ? gc_fft_rows(fft) : 1;
    float *block = reserve(&s->block, &s->block_floats, together * points);
    float **spectrum = &s->spectra[size].response;
    if (block && is_kept(row, count, together))
        return kept_spectrum(fft, row, together, block);
    bool same = s->kept[0].data && s->kept_transform == points;
    for (int r = 0; r < together && same; r++)
        same = same_array(&s->kept[r], &row[gc_min(r, count - 1)].taps);
    if (same)
        return *spectrum;
    s->kept[0].data = NULL;
    if (!block || !reserve_spectrum(fft, spectrum))
        return NULL;
    transform_rows(fft, row, count, together, block, *spectrum);
    for (int r = 0; r < together; r++)
        s->kept[r] = row[gc_min(r, count - 1)].taps;
    s->kept_transform = points;
    return *spectrum;
}

void gc_kept_response_free_spectra(gc_kept_response *kept) {
    for (int k = 0; k < 2 * (GC_FFT_MAX_LOG2 + 1); k++)
        free(atomic_load(&kept->spectrum[k % 2][k / 2]));
}

static bool convolve_direct(gc_row_scratch *s, const gc_row *row, int64_t first_block, int64_t blocks) {
    const gc_schedule *p = &row->schedule;
    const int64_t taps = p->taps, before = gc_schedule_overlap(p), block_floats = before + p->hop;
    const bool taps_in_place = in_place(&row->taps), output_in_place = plain_output(row);
    float *block = reserve(&s->block, &s->block_floats, block_floats);
    float *output = reserve(&s->output, &s->output_floats, p->hop);
    float *copy = taps_in_place ? block : reserve(&s->taps, &s->taps_floats, taps);
    if (!block || !output || !copy)
        return false;
    if (!taps_in_place)
        gc_row_gather(&row->taps, 0, taps, copy);
    const float *h = taps_in_place ? row->taps.data : copy;
    for (int64_t b = first_block; b < first_block + blocks && !gc_cancelled(); b++) {
        /* Blocks begin at multiples of the span even if the output does not, so that the bytes do not depend on it. */
        const int64_t n = b * p->hop, from = gc_max(n, row->begin - (row->begin - n) % GC_DIRECT_SPAN);
        const int64_t first = gc_max(n, row->begin), count = gc_min(n + p->hop, row->end) - from;
        const float *x = frames_at(&row->signal, from - before, before + count, block) + before;
        if (output_in_place && from == first) {
            gc_simd_best()->direct(x, h, taps, (float *)row->output.data + (from - row->offset), count, 0);
        } else {
            gc_simd_best()->direct(x, h, taps, output, count, 0);
            gc_row_write(row, first - row->offset, count - (first - from), output + (first - from));
        }
    }
    return true;
}

static bool convolve_overlap_save(const gc_fft *fft, gc_row_scratch *s, const gc_row *row, const float *spectrum,
                                  int64_t first_block, int64_t blocks) {
    const gc_schedule *p = &row->schedule;
    const int64_t before = gc_schedule_overlap(p);
    float *block = reserve(&s->block, &s->block_floats, p->transform);
    float *work = reserve_spectrum(fft, &s->spectra[gc_row_log2(p->transform)].work);
    if (!block || !work)
        return false;
    const float *const factor[] = {work}, *const by[] = {spectrum};
    for (int64_t b = first_block; b < first_block + blocks && !gc_cancelled(); b++) {
        const int64_t n = b * p->hop, first = gc_max(n, row->begin), last = gc_min(n + p->hop, row->end);
        gc_fft_forward(fft, frames_at(&row->signal, n - before, p->transform, block), work);
        if (last - first == p->hop && plain_output(row)) {
            gc_fft_inverse(fft, factor, by, 1, work, (float *)row->output.data + (n - row->offset), before);
        } else {
            gc_fft_inverse(fft, factor, by, 1, work, block, before);
            gc_row_write(row, first - row->offset, last - first, block + (first - n));
        }
    }
    return true;
}

/* Computes the frames begin .. end - 1 as one block: the sum over the partitions of the taps. */
static bool convolve_sum(const gc_fft *fft, gc_row_scratch *s, const gc_row *row) {
    const gc_schedule *p = &row->schedule;
    const int64_t floats = gc_fft_floats(fft), before = gc_schedule_overlap(p);
    gc_row_spectra *spectra = &s->spectra[gc_row_log2(p->transform)];
    float *block = reserve(&s->block, &s->block_floats, p->transform);
    float *work = reserve_spectrum(fft, &spectra->work), *taps = reserve_spectrum(fft, &spectra->response);
    float *sum = reserve_spectrum(fft, &spectra->sum);
    s->kept[0].data = NULL;
    if (!block || !work || !taps || !sum)
        return false;
    memset(sum, 0, (size_t)floats * sizeof *sum);
    for (int64_t i = 0; i < p->partitions && !gc_cancelled(); i++) {
        const int64_t first = i * p->partition, count = gc_min(p->partition, row->taps.frames - first);
        const int64_t at = row->begin - first - before;
        if (at >= row->signal.frames || at + p->transform <= 0)
            continue; /* this partition meets only zeros */
        transform_taps(fft, row, first, count, block, taps);
        gc_fft_forward(fft, frames_at(&row->signal, at, p->transform, block), work);
        const float *const x[] = {work}, *const h[] = {taps};
        gc_fft_multiply_sum(fft, work, x, h, 1, floats);
        for (int64_t k = 0; k < floats; k++)
            sum[k] += work[k];
    }
    gc_fft_inverse(fft, NULL, NULL, 0, sum, block, before);
    gc_row_write(row, row->begin - row->offset, row->end - row->begin, block);
    return true;
}

/* Writes the output frames first .. last - 1, to which the convolution adds nothing. */
static void write_skip(const gc_row *row, int64_t first, int64_t last) {
    static const float zeros[GATED];
    for (int64_t n = first; n < last; n += GATED)
        gc_row_write(row, n, gc_min(GATED, last - n), zeros);
}

/* Writes the output frames outside of the convolution, and zeros to those that are cleared. */
static void write_rest(const gc_row *row) {
    const int64_t frames = gc_max(row->output.frames, row->cleared), step = row->output.step;
    const int64_t first = gc_min(row->output.frames, gc_max(0, row->begin - row->offset));
    const int64_t last = gc_max(first, gc_min(row->output.frames, row->end - row->offset));
    for (int64_t i = first > 0 ? 0 : last; i < frames && !row->accumulate; i = i + 1 == first ? last : i + 1)
        if (row->output.type == GPUCONV_SAMPLE_F32)
            ((float *)row->output.data)[i * step] = 0;
        else
            ((uint16_t *)row->output.data)[i * step] = 0;
    if (row->skip.data) {
        write_skip(row, 0, first);
        write_skip(row, last, row->output.frames);
    }
}

bool gc_row_convolve_whole(const gc_rows *rows, gc_row_scratch *s, const gc_row *row, int count) {
    const int64_t points = row->schedule.transform, frames = row->signal.frames, begin = row->begin, end = row->end;
    const gc_fft *fft = rows->fft[gc_row_log2(points)];
    const int together = gc_fft_rows(fft);
    const float *spectrum = gc_row_spectrum(rows, s, row, count), *signal[GC_FFT_MAX_ROWS];
    float *block = reserve(&s->block, &s->block_floats, together * points), *output[GC_FFT_MAX_ROWS];
    float *other = reserve(&s->output, &s->output_floats, together * points);
    float *work = reserve_spectrum(fft, &s->spectra[gc_row_log2(points)].work);
    if (!spectrum || !block || !other || !work)
        return false;
    for (int r = 0; r < together; r++) { /* in the place of missing rows the last one again */
        const gc_row *one = &row[gc_min(r, count - 1)];
        signal[r] = r < count ? frames_at(&one->signal, 0, frames, block + r * points) : signal[count - 1];
        output[r] = r >= count          ? output[count - 1]
                    : plain_output(one) ? (float *)one->output.data + (begin - one->offset)
                                        : other + r * points;
    }
    for (int r = 0; r < count; r++)
        for (int64_t n = 0; n < end - begin; n += LINE)
            __builtin_prefetch(output[r] + n, 1);
    gc_fft_forward_rows(fft, signal, frames, 1, work);
    gc_fft_inverse_rows(fft, work, spectrum, work, output, begin, end);
    for (int r = 0; r < count; r++) {
        write_rest(&row[r]);
        if (!plain_output(&row[r]))
            gc_row_write(&row[r], begin - row[r].offset, end - begin, output[r]);
    }
    return true;
}

bool gc_row_add_terms(const gc_rows *rows, gc_row_scratch *s, const gc_row *row, int count, bool begin) {
    const int64_t points = row->schedule.transform, frames = row->signal.frames, taps = row->taps.frames;
    const gc_fft *fft = rows->fft[gc_row_log2(points)];
    const int64_t floats = gc_fft_floats(fft);
    const int together = gc_fft_rows(fft);
    gc_row_spectra *spectra = &s->spectra[gc_row_log2(points)];
    float *block = reserve(&s->block, &s->block_floats, together * points);
    float *scaled = reserve(&s->output, &s->output_floats, together * points);
    float *work = reserve_spectrum(fft, &spectra->work), *response = reserve_spectrum(fft, &spectra->response);
    float *sum = reserve_spectrum(fft, &spectra->sum);
    const float *signal[GC_FFT_MAX_ROWS] = {NULL}, *h[GC_FFT_MAX_ROWS] = {NULL};
    s->kept[0].data = NULL;
    if (!block || !scaled || !work || !response || !sum)
        return false;
    for (int r = 0; r < count && together > 1; r++) { /* short rows, far from each other in the memory */
        prefetch(&row[r].signal);
        prefetch(&row[r].taps);
    }
    for (int r = 0; r < together; r++) { /* in the place of missing terms the last one without its taps */
        const gc_row *one = &row[gc_min(r, count - 1)];
        float *copy = scaled + r * points;
        signal[r] = r < count ? frames_at(&one->signal, 0, frames, block + r * points) : signal[count - 1];
        h[r] = r < count ? frames_at(&one->taps, 0, taps, copy) : copy;
        for (int64_t k = 0; k < taps && (r >= count || one->gain); k++)
            copy[k] = r < count ? *one->gain * h[r][k] : 0;
        h[r] = r >= count || one->gain ? copy : h[r];
    }
    gc_fft_forward_rows(fft, signal, frames, 1, work);
    gc_fft_forward_rows(fft, h, taps, scale_of(row), response);
    const float *const x[] = {work}, *const y[] = {response};
    gc_fft_multiply_sum(fft, begin ? sum : work, x, y, 1, floats);
    for (int64_t k = 0; k < floats && !begin; k++)
        sum[k] += work[k];
    return true;
}

bool gc_row_write_terms(const gc_rows *rows, gc_row_scratch *s, const gc_row *row) {
    const int64_t points = row->schedule.transform, frames = row->end - row->begin;
    const gc_fft *fft = rows->fft[gc_row_log2(points)];
    const int together = gc_fft_rows(fft);
    float *sum = s->spectra[gc_row_log2(points)].sum, *output[GC_FFT_MAX_ROWS];
    float *block = reserve(&s->output, &s->output_floats, together * points);
    gc_row whole = *row; /* the gains are in the taps */
    whole.gain = NULL;
    if (!block)
        return false;
    for (int r = 0; r < together; r++)
        output[r] = block + r * points;
    gc_fft_inverse_rows(fft, sum, NULL, sum, output, row->begin, row->end);
    for (int r = 1; r < together; r++)
        for (int64_t n = 0; n < frames; n++)
            block[n] += output[r][n];
    write_rest(row);
    gc_row_write(&whole, row->begin - row->offset, frames, block);
    return true;
}

bool gc_row_convolve(const gc_rows *rows, gc_row_scratch *s, const gc_row *row, int64_t first_block, int64_t blocks) {
    if (row->method == GC_ROW_WHOLE)
        return gc_row_convolve_whole(rows, s, row, 1);
    if (first_block == row->first_block)
        write_rest(row);
    if (row->method == GC_ROW_ZERO)
        return true;
    if (row->method == GC_ROW_DIRECT)
        return convolve_direct(s, row, first_block, blocks);
    const gc_fft *fft = rows->fft[gc_row_log2(row->schedule.transform)];
    if (row->method == GC_ROW_SUM)
        return convolve_sum(fft, s, row);
    const float *spectrum = gc_row_spectrum(rows, s, row, 1);
    return spectrum && convolve_overlap_save(fft, s, row, spectrum, first_block, blocks);
}
