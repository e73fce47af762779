/* Calibration of microphones. The correction has minimum phase, as a microphone has, so that the response stays
 * causal. */
#include "sine_sweep.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/table.h"
#include "libgpuconv/core/visible.h"
#include "libgpuconv/dsp/fourier.h"
#include "libgpuconv/ir/object.h"
#include "libgpuconv/ir/read_files.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_POINTS = 16384, MOST_FIELDS = 64 };

/* ---- Calibration files ------------------------------------------------------------------------------------------- */

/* Takes a row. @return FORMAT */
static gpuconv_status take_row(gc_table *t, gc_microphone *m, gpuconv_error *error) {
    double hz = 0, level = 0;
    if (t->fields < 2 || !gc_table_number(t, 0, &hz) || !gc_table_number(t, 1, &level))
        return gc_table_fail(t, error, "does not begin with a frequency in Hz and a level in dB");
    if (t->no_point && t->fields > 3)
        return gc_table_fail(t, error, "has decimal commas; write semicolons between the numbers");
    if (!(hz > 0 && fabs(level) <= 200) || (m->points && !(hz > m->hz[m->points - 1])) || m->points == MOST_POINTS)
        return gc_table_fail(
            t, error,
            "is not a frequency in Hz that rises from line to line and a level from -200 to 200 dB, in "
            "at most %d lines",
            MOST_POINTS);
    m->hz[m->points] = hz;
    m->level[m->points++] = level;
    return GPUCONV_OK;
}

/* Reads a calibration file; the sensitivity stays. @return FILE, FORMAT, MEMORY, CANCELLED */
static gpuconv_status read_calibration(const gc_microphone_files *files, int file, gc_microphone *m,
                                       gpuconv_error *error) {
    static const gc_table_form form = {.kind = GC_TABLE_NUMBERS, .most = MOST_FIELDS, .comments = true, .quotes = true};
    const char *path = files->calibration[file];
    gc_lines lines;
    gc_table table = {0};
    m->hz = gc_calloc(MOST_POINTS, 2 * (int64_t)sizeof *m->hz);
    m->level = m->hz ? m->hz + MOST_POINTS : NULL;
    gpuconv_status status = gc_lines_open(&lines, path, GC_TEXT_LONGEST, GC_TEXT_MOST, error);
    if (!status)
        status = m->hz ? gc_table_open(&table, &form, &lines, error) : gc_fail_memory(error, path);
    while (gc_table_next(&table, &status, error))
        status = take_row(&table, m, error);
    if (!status && files->note && m->points) {
        char text[512], name[400], rows[64];
        gc_table_describe(table.rows, table.others, rows, sizeof rows);
        (void)snprintf(text, sizeof text, "%s: %s", gc_visible(name, sizeof name, path), rows);
        files->note(text);
    }
    gc_table_close(&table);
    gc_lines_close(&lines);
    if (!status && m->points == 0)
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: has no line of a frequency in Hz and a level in dB", path);
    return status;
}

double gc_microphone_level(const gc_microphone *m, double hz) {
    int64_t above = 0, end = m->points;
    if (end == 0)
        return 0;
    while (above < end) { /* the first point above the frequency */
        int64_t middle = (above + end) / 2;
        if (m->hz[middle] > hz)
            end = middle;
        else
            above = middle + 1;
    }
    if (above == 0 || above == m->points)
        return m->level[above ? above - 1 : 0];
    double part = log(hz / m->hz[above - 1]) / log(m->hz[above] / m->hz[above - 1]);
    return m->level[above - 1] + part * (m->level[above] - m->level[above - 1]);
}

bool gc_microphone_correct(const gc_microphone *m, double rate, int64_t points, double *re, double *im) {
    if (m->points == 0)
        return true;
    double *gain = gc_calloc(points, 2 * (int64_t)sizeof *gain), *phase = gain ? gain + points : NULL;
    if (!gain)
        return false;
    for (int64_t k = 0; k <= points / 2; k++)
        gain[k] = gain[(points - k) % points] =
            -log(10) / 20 * gc_microphone_level(m, (double)gc_max(k, 1) * rate / (double)points);
    bool good = gc_fourier_minimum_phase(gain, phase, points);
    for (int64_t k = 0; k < points && good; k++) {
        double a = re[k], b = im[k], size = exp(gain[k]), c = size * cos(phase[k]), s = size * sin(phase[k]);
        re[k] = a * c - b * s;
        im[k] = a * s + b * c;
    }
    free(gain);
    return good;
}

/* ---- Calibrators ------------------------------------------------------------------------------------------------- */

/* Finds the RMS of the strongest tone: the power within three bins of the largest one, with a Hann window, whose
 * squares add up to 3/8 of the points. @return false as gc_fourier; *rms NaN: most of the power is elsewhere */
static bool measure_tone(const float *samples, int64_t frames, double *rms) {
    int64_t points = 1 << 19, best = 0;
    while (points > frames)
        points /= 2;
    double *re = gc_calloc(points, 2 * (int64_t)sizeof *re), *im = re ? re + points : NULL, all = 0, tone = 0;
    const float *from = samples + (frames - points) / 2;
    for (int64_t i = 0; re && i < points; i++)
        re[i] = (double)from[i] * (0.5 - 0.5 * cos(2 * M_PI * (double)i / (double)points));
    bool good = re && gc_fourier(re, im, points, -1);
    for (int64_t k = 4; good && k < points / 2; k++) { /* without the converter's offset */
        re[k] = re[k] * re[k] + im[k] * im[k];
        all += re[k];
        best = best == 0 || re[k] > re[best] ? k : best;
    }
    for (int64_t k = gc_max(4, best - 3); good && k <= gc_min(best + 3, points / 2 - 1); k++)
        tone += re[k];
    *rms = tone > 0.5 * all ? sqrt(2 * tone / ((double)points * (double)points * 3 / 8)) : (double)NAN;
    free(re);
    return good;
}

/* Sets the sensitivities from a recording of a calibrator. */
static gpuconv_status calibrate(const char *path, double level, gc_microphone *m, int count, gpuconv_error *error) {
    gpuconv_ir *tone = NULL;
    gpuconv_status status = gpuconv_ir_load(path, &tone, error);
    if (!status && tone->planes > 1 && tone->planes < count)
        status =
            gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                    "%s: the recording of the calibrator has %d channels, but %d are measured; record one for all, "
                    "or one for each",
                    path, tone->planes, count);
    if (!status && tone->frames < 4096)
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: a recording of a calibrator is longer", path);
    for (int k = 0; k < count && !status; k++) {
        int plane = tone->planes > 1 ? k : 0;
        double rms, peak = 0;
        for (int64_t i = 0; i < tone->frames; i++)
            peak = fmax(peak, fabs((double)gc_ir_plane(tone, plane)[i]));
        if (!measure_tone(gc_ir_plane(tone, plane), tone->frames, &rms))
            status = gc_fail_memory(error, path);
        else if (isnan(rms) || peak >= 0.9999)
            status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: channel %d %s", path, plane + 1,
                             isnan(rms) ? "has no tone of a calibrator" : "clips; lower the gain");
        else
            m[k].sensitivity = level - 20 * log10(rms);
    }
    gpuconv_ir_free(tone);
    return status;
}

/* ---- Several microphones ----------------------------------------------------------------------------------------- */

gpuconv_status gc_microphones_new(const gc_microphone_files *files, int count, gc_microphone **microphones,
                                  gpuconv_error *error) {
    gc_microphone *m = *microphones = gc_calloc(count, (int64_t)sizeof *m);
    int calibrations = 0;
    while (files->calibration && files->calibration[calibrations])
        calibrations++;
    gpuconv_status status = m ? GPUCONV_OK : gc_fail_memory(error, "the microphones");
    for (int k = 0; k < count && !status; k++)
        m[k].sensitivity = (double)NAN;
    if (!status && calibrations > 1 && calibrations != count)
        status = gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                         "%d calibration files, but the number of channels is %d; give one for all, or one for each",
                         calibrations, count);
    for (int k = 0; k < count && calibrations && !status; k++)
        status = read_calibration(files, calibrations > 1 ? k : 0, &m[k], error);
    if (!status && files->calibrator)
        status = calibrate(files->calibrator, files->level, m, count, error);
    return status;
}

gpuconv_status gc_microphones_keep(const gc_microphone_files *files, const char *output, gpuconv_error *error) {
    gpuconv_status status = gc_ir_keep_files(output, &files->calibrator, 1, error);
    for (int i = 0; files->calibration && files->calibration[i] && !status; i++)
        status = gc_ir_keep_files(output, &files->calibration[i], 1, error);
    return status;
}

void gc_microphones_free(gc_microphone *m, int count) {
    for (int k = 0; m && k < count; k++)
        free(m[k].hz);
    free(m);
}
