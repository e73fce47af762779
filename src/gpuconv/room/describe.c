/* The description of a response, and its drawing. */
#include "describe.h"

#include "acoustics.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/bands.h"
#include "libgpuconv/dsp/fourier.h"
#include "libgpuconv/ir/object.h"
#include "libgpuconv/report/plot.h"
#include "libgpuconv/report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DRAWN = 4, BANDS = 150, OCTAVES = 7 };

/* Reports the parameters of one channel. @param decay receives the curves of the whole spectrum */
static gpuconv_status describe_channel(const gpuconv_ir *ir, int channel, gpuconv_report *report, gc_decay *decay,
                                       gpuconv_error *error) {
    static const char *const names[] = {"EDT s", "T20 s", "T30 s", "C80 dB", "D50 %", "centre ms", "noise dB"};
    for (int octave = -1; octave < OCTAVES; octave++) {
        double band = octave < 0 ? 0 : 125 * exp2(octave);
        char label[64];
        gc_acoustics a;
        if (band * sqrt(2) >= ir->rate / 2)
            break;
        if (!gc_acoustics_of(gc_ir_plane(ir, channel), ir->frames, ir->rate, band, &a, octave < 0 ? decay : NULL))
            return gc_fail_memory(error, "the response's acoustic parameters");
        double values[] = {a.edt, a.t20, a.t30, a.c80, 100 * a.d50, 1000 * a.centre, a.noise};
        if (octave < 0)
            (void)snprintf(label, sizeof label, "channel %d", channel + 1);
        else
            (void)snprintf(label, sizeof label, "channel %d, %g Hz", channel + 1, band);
        gc_report_named_row(report, "acoustics", label, 7, names, values);
    }
    return GPUCONV_OK;
}

/* Writes the centre frequency and the mean power in dB of each band. @return false if memory is exhausted */
static bool fill_spectrum(const gpuconv_ir *ir, int channel, double *hz, double *level) {
    int64_t points = gc_bands_points(ir->frames, ir->rate);
    double *re = gc_calloc(points, 2 * (int64_t)sizeof *re);
    if (!re)
        return false;
    double *im = re + points;
    for (int64_t i = 0; i < ir->frames; i++)
        re[i] = (double)gc_ir_plane(ir, channel)[i];
    bool good = gc_fourier(re, im, points, -1);
    for (int64_t k = 0; k < points / 2; k++)
        re[k] = re[k] * re[k] + im[k] * im[k];
    gc_bands(re, points, ir->rate, BANDS, hz, level);
    free(re);
    return good;
}

/* Draws decay curves and spectra of the first DRAWN channels. */
static gpuconv_status draw(const gpuconv_ir *ir, const char *path, const char *plot, const gc_decay *decay,
                           gpuconv_error *error) {
    int channels = ir->planes < DRAWN ? ir->planes : DRAWN;
    char label[2 * DRAWN][60];
    double *memory = gc_calloc(GC_ACOUSTICS_CURVE + (DRAWN + 1) * BANDS, (int64_t)sizeof *memory);
    if (!memory)
        return gc_fail_memory(error, plot);
    double *time = memory, *hz = time + GC_ACOUSTICS_CURVE, top = -HUGE_VAL;
    gc_panel panels[] = {{.title = path,
                          .x_label = "seconds",
                          .y_label = "dB",
                          .x_range = {0, (double)ir->frames / ir->rate},
                          .y_range = {-100, 3},
                          .series = 2 * channels,
                          .steps = GC_ACOUSTICS_CURVE,
                          .x = time},
                         {.title = "spectrum",
                          .x_label = "Hz",
                          .y_label = "dB",
                          .logarithmic = true,
                          .x_range = {gc_bands_lowest(ir->rate), ir->rate / 2},
                          .series = channels,
                          .steps = BANDS,
                          .x = hz}};
    bool good = true;
    for (int k = 0; k < GC_ACOUSTICS_CURVE; k++)
        time[k] = (k + 0.5) * decay[0].step;
    for (int c = 0; c < channels && good; c++) {
        double *level = hz + (c + 1) * (int64_t)BANDS;
        good = fill_spectrum(ir, c, hz, level);
        (void)snprintf(label[2 * c], sizeof label[0], "channel %d", c + 1);
        (void)snprintf(label[2 * c + 1], sizeof label[0], "%d: remaining energy", c + 1);
        for (int i = 0; i < 2; i++) {
            panels[0].label[2 * c + i] = label[2 * c + i];
            panels[0].y[2 * c + i] = i ? decay[c].remaining : decay[c].energy;
        }
        panels[1].label[c] = label[2 * c];
        panels[1].y[c] = level;
        for (int b = 0; b < BANDS; b++)
            top = level[b] > top ? level[b] : top;
    }
    top = isfinite(top) ? 10 * ceil(top / 10) + 5 : 0;
    panels[1].y_range[0] = top - 80;
    panels[1].y_range[1] = top;
    gpuconv_status status = good ? gc_plot_panels(panels, 2, 1, plot, error) : gc_fail_memory(error, plot);
    free(memory);
    return status;
}

gpuconv_status gc_describe(const char *path, const char *plot, gpuconv_report *report, gpuconv_error *error) {
    gpuconv_ir *ir = NULL;
    double peak;
    gpuconv_status status = plot ? gc_plot_check(plot, error) : GPUCONV_OK;
    if (!status)
        status = gpuconv_ir_load(path, &ir, error);
    if (status)
        return status;
    int64_t at = gpuconv_ir_peak(ir, &peak);
    gc_report_text(report, "response", "file", path);
    gc_report_measure(report, "response", "length", (double)ir->frames / ir->rate, "s", 1, 0);
    gc_report_count(report, "response", "frames", ir->frames);
    gc_report_measure(report, "response", "rate", ir->rate, "Hz", 1, 0);
    gc_report_count(report, "response", "channels", ir->planes);
    if (peak == 0)
        gc_report_text(report, "response", "note", "the response is silent");
    gc_report_measure(report, "response", "peak", 20 * log10(peak), "dBFS", 1, 0);
    gc_report_measure(report, "response", "peak at", 1e3 * (double)at / ir->rate, "ms", 1, 0);
    gc_report_measure(report, "response", "direct sound after", 1e3 * (double)gpuconv_ir_onset(ir, -20) / ir->rate,
                      "ms", 1, 0);
    gc_decay *decay = gc_calloc(ir->planes, (int64_t)sizeof *decay);
    status = decay ? GPUCONV_OK : gc_fail_memory(error, path);
    for (int c = 0; c < ir->planes && !status; c++)
        status = describe_channel(ir, c, report, &decay[c], error);
    if (!status && plot)
        status = draw(ir, path, plot, decay, error);
    free(decay);
    gpuconv_ir_free(ir);
    return status;
}
