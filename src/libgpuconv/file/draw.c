/* Draws waveform, spectrogram and spectrum of the input and of the output, and the decay of the response. */
#include "job.h"

#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/visible.h"
#include "libgpuconv/dsp/bands.h"
#include "libgpuconv/dsp/fourier.h"
#include "libgpuconv/ir/object.h"
#include "libgpuconv/report/plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WAVE_COLUMNS = 900, COLUMNS = 600, ROWS = 160, POINTS = 2048, BANDS = 120, SEGMENTS = 64, STEPS = 600 };
enum { BLOCK = 16384 }; /* frames read at a time */

static const double range[2] = {-110, -10}; /* dB, of the spectrogram's colours */

/* The curves of a file; its channels are averaged. */
typedef struct analysis {
    double time[WAVE_COLUMNS], low[WAVE_COLUMNS],
        high[WAVE_COLUMNS];        /* waveform: smallest and largest sample per column */
    float level[COLUMNS * ROWS];   /* spectrogram, dB */
    double hz[BANDS], band[BANDS]; /* spectrum: centre frequency and level in dB */
    double seconds, rate;
} analysis;

/* Returns CANCELLED if the job was interrupted. Called once per block that is read. */
static gpuconv_status check_cancelled(gpuconv_error *error) {
    return gc_cancelled() ? gc_fail_cancelled(error, "the drawing") : GPUCONV_OK;
}

static double mean_of(const float *frame, int channels) {
    double sum = 0;
    for (int c = 0; c < channels; c++)
        sum += (double)frame[c];
    return sum / channels;
}

/* Fills the waveform. */
static gpuconv_status analyse_wave(gc_reader *r, int64_t frames, analysis *p, float *block, gpuconv_error *error) {
    int channels = gc_reader_info(r)->channels;
    int64_t got = 1;
    gpuconv_status status = GPUCONV_OK;
    for (int64_t at = 0; at < frames && got > 0 && !status; at += got) {
        status = check_cancelled(error);
        if (!status)
            status = gc_reader_read_floats(r, block, gc_min(BLOCK, frames - at), &got, error);
        for (int64_t i = 0; !status && i < got; i++) {
            int column = (int)((at + i) * WAVE_COLUMNS / frames);
            double x = mean_of(block + i * channels, channels);
            p->low[column] = fmin(p->low[column], x);
            p->high[column] = fmax(p->high[column], x);
        }
    }
    return status;
}

/* Fills one column of the spectrogram: POINTS frames with a Hann window (Harris 1978). A full-scale sine has 0 dB.
 * Returns false if there is too little memory. */
static bool analyse_column(const float *block, int64_t got, int channels, analysis *p, int column) {
    double re[POINTS] = {0}, im[POINTS] = {0};
    for (int64_t i = 0; i < got; i++)
        re[i] = mean_of(block + i * channels, channels) * (0.5 - 0.5 * cos(2 * M_PI * (double)i / POINTS));
    if (!gc_fourier(re, im, POINTS, -1))
        return false;
    for (int k = 0; k < POINTS / 2; k++)
        re[k] = (re[k] * re[k] + im[k] * im[k]) * 16 / ((double)POINTS * POINTS);
    gc_bands_column(re, POINTS, p->rate, ROWS, p->level + column * ROWS);
    return true;
}

/* Adds the power spectrum of a segment of `points` frames from frame `at` on. A full-scale sine has power 1 in its bin.
 * A file that fits into one segment gets no window, because a window would fade out its beginning. */
static gpuconv_status add_power(gc_reader *r, int64_t at, int64_t points, double *re, float *block, double *power,
                                gpuconv_error *error) {
    int channels = gc_reader_info(r)->channels;
    int64_t frames = gc_reader_info(r)->frames, got = 1, done = 0;
    double *im = re + points, scale = frames > points ? 16 : 4;
    memset(re, 0, 2 * (size_t)points * sizeof *re);
    gpuconv_status status = check_cancelled(error);
    if (!status)
        status = gc_reader_seek(r, at, error);
    for (; !status && done < points && got > 0; done += got) {
        status = gc_reader_read_floats(r, block, gc_min(BLOCK, points - done), &got, error);
        for (int64_t i = 0; !status && i < got; i++)
            re[done + i] = mean_of(block + i * channels, channels) *
                           (frames > points ? 0.5 - 0.5 * cos(2 * M_PI * (double)(done + i) / (double)points) : 1);
    }
    if (!status && !gc_fourier(re, im, points, -1))
        status = gc_fail_memory(error, "the drawing");
    for (int64_t k = 0; !status && k < points / 2; k++)
        power[k] += (re[k] * re[k] + im[k] * im[k]) * scale / ((double)points * (double)points);
    return status;
}

/* Fills the spectrum: the mean of up to SEGMENTS segments (Welch 1967), which cover the whole file if it is short
 * enough. */
static gpuconv_status analyse_spectrum(gc_reader *r, analysis *p, float *block, gpuconv_error *error) {
    int64_t frames = gc_reader_info(r)->frames, points = gc_bands_points(0, p->rate);
    int64_t count = frames > points ? gc_min(SEGMENTS, 2 * (frames / points)) : 1;
    double *re = gc_calloc(points * 5 / 2, (int64_t)sizeof *re);
    if (!re)
        return gc_fail_memory(error, "the drawing");
    double *power = re + 2 * points;
    gpuconv_status status = GPUCONV_OK;
    for (int64_t i = 0; i < count && !status; i++)
        status = add_power(r, count > 1 ? (frames - points) / (count - 1) * i : 0, points, re, block, power, error);
    for (int64_t k = 0; k < points / 2; k++)
        power[k] /= (double)count;
    gc_bands(power, points, p->rate, BANDS, p->hz, p->band);
    free(re);
    return status;
}

/* Reads a file and fills all its curves. */
static gpuconv_status analyse_file(const char *path, const char *raw, analysis *p, gpuconv_error *error) {
    gc_reader *r;
    const gc_input_options wish = {.raw = raw};
    gpuconv_status status = gc_reader_open(path, &wish, &r, error);
    if (status)
        return status;
    status = gc_reader_count(r, error);
    const gc_audio_info *info = gc_reader_info(r);
    int64_t frames = info->frames;
    p->rate = info->rate;
    p->seconds = (double)frames / info->rate;
    float *block = gc_calloc((int64_t)BLOCK * info->channels, sizeof *block);
    if (!status && !block)
        status = gc_fail_memory(error, "the drawing");
    else if (!status && frames < 1)
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: its length is unknown, so it cannot be drawn", path);
    else if (!status)
        status = analyse_wave(r, frames, p, block, error);
    for (int c = 0; c < COLUMNS && !status; c++) {
        int64_t at = frames > POINTS ? (frames - POINTS) * c / (COLUMNS - 1) : 0, got = 0;
        status = check_cancelled(error);
        if (!status)
            status = gc_reader_seek(r, at, error);
        if (!status)
            status = gc_reader_read_floats(r, block, POINTS, &got, error);
        if (!status && !analyse_column(block, got, info->channels, p, c))
            status = gc_fail_memory(error, "the drawing");
    }
    if (!status)
        status = analyse_spectrum(r, p, block, error);
    for (int i = 0; i < WAVE_COLUMNS; i++)
        p->time[i] = p->seconds * (i + 0.5) / WAVE_COLUMNS;
    free(block);
    gc_reader_free(r);
    return status;
}

/* The decay of a response, with the energies of all planes added: the level of each of STEPS pieces, and the energy
 * that remains (backward integration, Schroeder 1965), both in dB. */
typedef struct decay {
    double time[STEPS], level[STEPS], remaining[STEPS];
} decay;

static void analyse_decay(const gpuconv_ir *ir, decay *d) {
    double energy[STEPS] = {0}, sum = 0, most = 0;
    for (int p = 0; p < ir->planes; p++)
        for (int64_t i = 0; i < ir->frames; i++) {
            double x = (double)gc_ir_plane(ir, p)[i];
            energy[i * STEPS / ir->frames] += x * x;
        }
    for (int i = STEPS - 1; i >= 0; i--) {
        sum += energy[i];
        most = fmax(most, energy[i]);
        d->remaining[i] = sum;
    }
    for (int i = 0; i < STEPS; i++) {
        d->time[i] = (double)ir->frames / ir->rate * (i + 0.5) / STEPS;
        d->level[i] = energy[i] > 0 ? 10 * log10(energy[i] / most) : (double)NAN;
        d->remaining[i] = d->remaining[i] > 0 ? 10 * log10(d->remaining[i] / sum) : (double)NAN;
    }
}

/* The axes that the panels of input and output share. */
typedef struct scales {
    double seconds, peak; /* of the longer and of the louder file */
    double top;           /* upper limit of the spectra, dB */
} scales;

static scales shared_scales(const analysis *before, const analysis *after) {
    const analysis *const both[] = {before, after};
    scales s = {.seconds = fmax(before->seconds, after->seconds), .top = -HUGE_VAL};
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < WAVE_COLUMNS; i++)
            s.peak = fmax(s.peak, fmax(both[k]->high[i], -both[k]->low[i]));
        for (int b = 0; b < BANDS; b++)
            s.top = both[k]->band[b] > s.top ? both[k]->band[b] : s.top;
    }
    s.peak = s.peak > 0 && isfinite(s.peak) ? s.peak : 1;
    s.top = isfinite(s.top) ? 10 * ceil(s.top / 10) : 0;
    return s;
}

static gc_panel wave_panel(const char *title, const analysis *p, const gc_series *wave, const scales *s) {
    return (gc_panel){.title = title,
                      .x_label = "seconds",
                      .y_label = "amplitude",
                      .x_range = {0, s->seconds},
                      .y_range = {-1.05 * s->peak, 1.05 * s->peak},
                      .count = 1,
                      .steps = WAVE_COLUMNS,
                      .x = p->time,
                      .series = wave};
}

static gc_panel image_panel(const char *title, const analysis *p, const scales *s) {
    return (gc_panel){.title = title,
                      .x_label = "seconds",
                      .y_label = "Hz",
                      .x_range = {0, s->seconds},
                      .y_range = {gc_bands_lowest(p->rate), p->rate / 2},
                      .seconds = p->seconds,
                      .image = p->level,
                      .columns = COLUMNS,
                      .rows = ROWS,
                      .level_range = {range[0], range[1]}};
}

/* Draws the panels of both files and of the response. Colours: before, after, the response's level and energy. */
static gpuconv_status draw_panels(const gpuconv_job *job, const gpuconv_ir *ir, const analysis *before,
                                  const analysis *after, const decay *d, char **svg, gpuconv_error *error) {
    const scales common = shared_scales(before, after);
    const char *const dry = gc_channel_colour(0), *const wet = GC_COLOUR_MEAN;
    const gc_series wave[] = {{.colour = dry, .mark = GC_MARK_AREA, .low = before->low, .high = before->high},
                              {.colour = wet, .mark = GC_MARK_AREA, .low = after->low, .high = after->high}};
    const gc_series spectra[] = {{.label = "before", .colour = dry, .y = before->band},
                                 {.label = "after", .colour = wet, .y = after->band}};
    const gc_series curves[] = {{.label = "level", .colour = gc_channel_colour(1), .mark = GC_MARK_THIN, .y = d->level},
                                {.label = "remaining energy", .colour = gc_channel_colour(1), .y = d->remaining}};
    const gc_panel panels[] = {wave_panel(gc_file_name(job->input), before, &wave[0], &common),
                               wave_panel(gc_file_name(job->output), after, &wave[1], &common),
                               image_panel("spectrogram before", before, &common),
                               image_panel("spectrogram after", after, &common),
                               {.title = "spectra",
                                .x_label = "Hz",
                                .y_label = "dB",
                                .logarithmic = true,
                                .x_range = {gc_bands_lowest(before->rate), before->rate / 2},
                                .y_range = {common.top - 100, common.top},
                                .count = 2,
                                .steps = BANDS,
                                .series = spectra,
                                .x = before->hz},
                               {.title = gc_file_name(job->response),
                                .x_label = "seconds",
                                .y_label = "dB",
                                .x_range = {0, (double)gpuconv_ir_frames(ir) / gpuconv_ir_rate(ir)},
                                .y_range = {-100, 3},
                                .count = 2,
                                .steps = STEPS,
                                .series = curves,
                                .x = d->time}};
    return job->plot ? gc_plot_panels(panels, 6, 2, job->plot, error) : gc_plot_panels_svg(panels, 6, svg, error);
}

gpuconv_status gc_draw_job(const gpuconv_job *job, const gpuconv_ir *ir, char **svg, gpuconv_error *error) {
    analysis *before = gc_calloc(1, sizeof *before), *after = gc_calloc(1, sizeof *after);
    decay *d = gc_calloc(1, sizeof *d);
    gpuconv_status status = before && after && d ? GPUCONV_OK : gc_fail_memory(error, "the drawing");
    if (!status)
        status = analyse_file(job->input, job->raw, before, error);
    if (!status)
        status = analyse_file(job->output, NULL, after, error);
    if (!status) {
        analyse_decay(ir, d);
        status = draw_panels(job, ir, before, after, d, svg, error);
    }
    free(before);
    free(after);
    free(d);
    return status;
}
