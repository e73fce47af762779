/* Exponential sine sweep: synthesis, detection in a recording, and deconvolution. */
#include "sine_sweep.h"

#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/fourier.h"
#include "libgpuconv/ir/object.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

/* Returns whether a long loop must end at frame i: checks the cancel flag every 65536 frames. */
static bool cancelled_at(int64_t i) {
    return i % 65536 == 65535 && gc_cancelled();
}

gc_sweep gc_sweep_default(void) {
    return (gc_sweep){.rate = 48000, .seconds = 10, .from = 10, .to = 0, .level = -6, .silence = 3};
}

static gpuconv_status check(const gc_sweep *s, double to, gpuconv_error *error) {
    if (!(s->rate >= 1000 && s->rate <= 1e6 && s->rate == floor(s->rate)))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "the rate of a sweep is a whole number from 1000 to 1000000 Hz");
    if (!(s->seconds >= 0.1 && s->seconds <= 600 && s->silence >= 0 && s->silence <= 600))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a sweep lasts 0.1 to 600 s, the silence after it 0 to 600 s");
    if (!(s->from > 0 && to > s->from && to <= s->rate / 2))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "the frequency of a sweep must rise, from above 0 Hz to at most %g Hz", s->rate / 2);
    if (!(s->level <= 0 && s->level >= -100))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "the level of a sweep is -100 to 0 dBFS");
    return GPUCONV_OK;
}

/* Returns the fade at frame i: 20 ms at the low end, 1 ms at the high end, where even that is many periods. */
static double fade(int64_t i, int64_t n, double rate) {
    double in = 0.02 * rate, out = 0.001 * rate, left = (double)(n - 1 - i);
    double weight = (double)i < in ? 0.5 - 0.5 * cos(pi * (double)i / in) : 1;
    return left < out ? weight * (0.5 - 0.5 * cos(pi * left / out)) : weight;
}

gpuconv_status gc_sweep_write(const gc_sweep *s, const char *path, gpuconv_error *error) {
    double to = s->to != 0 ? s->to : s->rate / 2;
    gpuconv_status status = check(s, to, error);
    if (status)
        return status;
    int64_t n = llrint(s->seconds * s->rate), frames = n + llrint(s->silence * s->rate);
    float *samples = gc_calloc(frames, sizeof *samples);
    if (!samples)
        return gc_fail_memory(error, path);
    double peak = pow(10, s->level / 20), grow = log(to / s->from);
    for (int64_t i = 0; i < n && !cancelled_at(i); i++) {
        double phase = 2 * pi * s->from * s->seconds / grow * expm1((double)i / (double)n * grow);
        samples[i] = (float)(peak * fade(i, n, s->rate) * sin(phase));
    }
    gc_audio_info like = gc_audio_info_float(1, (int)s->rate, frames);
    gc_writer *writer = NULL;
    status = gc_cancelled() ? gc_fail_cancelled(error, path) : GPUCONV_OK;
    if (!status)
        status = gc_writer_new(path, NULL, &like, 1, frames, &writer, error);
    if (!status && gc_writer_pcm(writer).container != GC_F32)
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: a sweep is written as floats, into a WAV for example", path);
    if (!status)
        status = gc_writer_write(writer, samples, frames, error);
    if (!status)
        status = gc_writer_commit(writer, error);
    gc_writer_free(writer);
    free(samples);
    return status;
}

/* Converts n floats to doubles, followed by zeros. */
static void widen(const float *from, double *to, int64_t n, int64_t points) {
    for (int64_t i = 0; i < points; i++)
        to[i] = i < n ? (double)from[i] : 0;
}

/* Divides R by X. Where the sweep has almost no energy, |X|^2 is raised so that noise is not amplified
 * (regularisation). */
static void divide(double *re, double *im, const double *xr, const double *xi, int64_t points) {
    double most = 0;
    for (int64_t k = 0; k < points && !cancelled_at(k); k++)
        most = fmax(most, xr[k] * xr[k] + xi[k] * xi[k]);
    for (int64_t k = 0; k < points && !cancelled_at(k); k++) {
        double power = xr[k] * xr[k] + xi[k] * xi[k], add = power < 1e-6 * most ? 1e-6 * most : 0;
        double a = re[k], b = im[k], scale = 1 / (power + add);
        re[k] = (a * xr[k] + b * xi[k]) * scale;
        im[k] = (b * xr[k] - a * xi[k]) * scale;
    }
}

/* Returns the number of frames up to the last one that is not silent. */
static int64_t sounding_frames(const gpuconv_ir *sweep) {
    const float *x = gc_ir_plane(sweep, 0);
    int64_t n = sweep->frames;
    while (n > 1 && x[n - 1] == 0)
        n--;
    return n;
}

/* Maximum of the correlation of a channel with the sweep. */
typedef struct match {
    double crest; /* its magnitude relative to the RMS over all lags */
    int64_t lag;  /* frames; negative: the sweep appears in the recording before it was played */
} match;

/* Smallest crest of a channel that contains the sweep. The correlation of N lags with noise is Gaussian: its largest
 * value exceeds t times its RMS with a probability of at most N exp(-t^2 / 2), for N = 2^24 and t = 9 about 4e-11.
 * Speech and music reach 8 to 15. A sweep of n frames with power S in noise of power P reaches about sqrt(n S / P), so
 * that 10 s at 48 kHz are detected 30 dB below the noise. Recordings without noise reach 27 (a plate, 1 s of sweep) to
 * 450. */
static const double crest_least = 18;

/* Correlates a channel (spectrum `re`, `im`, overwritten) with the sweep (spectrum `xr`, `xi`). @return false if memory
 * is exhausted or the work was cancelled */
static bool correlate(double *re, double *im, const double *xr, const double *xi, int64_t points, match *m) {
    for (int64_t k = 0; k < points; k++) {
        double a = re[k], b = im[k];
        re[k] = a * xr[k] + b * xi[k];
        im[k] = b * xr[k] - a * xi[k];
    }
    if (!gc_fourier(re, im, points, 1))
        return false;
    double most = 0, sum = 0;
    *m = (match){0};
    for (int64_t i = 0; i < points; i++) {
        double power = re[i] * re[i];
        sum += power;
        if (power > most) {
            most = power;
            m->lag = i < points / 2 ? i : i - points;
        }
    }
    m->crest = sum > 0 && isfinite(sum) ? sqrt(most / sum * (double)points) : 0;
    return true;
}

/* Counts the channels without the sweep. @return the match with the largest crest */
static match find_best(const match *matches, int channels, gc_sweep_found *found) {
    match best = matches[0];
    *found = (gc_sweep_found){.channels = channels};
    for (int c = channels - 1; c >= 0; c--) {
        best = matches[c].crest > best.crest ? matches[c] : best;
        if (!(matches[c].crest >= crest_least)) {
            found->without++;
            found->first_without = c + 1;
        }
    }
    return best;
}

/* Fails if the best match shows that the recording does not contain the sweep, or at an impossible time. */
static gpuconv_status check_match(const match *best, const char *recorded, const char *played, int64_t frames,
                                  double rate, gpuconv_error *error) {
    if (!(best->crest >= crest_least))
        return gc_fail(
            error, GPUCONV_ERROR_FORMAT,
            "%s: does not contain the sweep of %s: the crest of their correlation is %.3g and must be at least %g; "
            "record the file that was played, at a higher level",
            recorded, played, best->crest, crest_least);
    if ((double)best->lag < -0.001 * rate)
        return gc_fail(
            error, GPUCONV_ERROR_FORMAT,
            "%s: contains the sweep %.4g s earlier than %s; swap the two files, or start recording before the "
            "sweep is played",
            recorded, (double)-best->lag / rate, played);
    if (best->lag >= frames)
        return gc_fail(
            error, GPUCONV_ERROR_FORMAT,
            "%s: the direct sound arrives after %.4g s, later than the end of a response of %.4g s; use a larger "
            "--length",
            recorded, (double)best->lag / rate, (double)frames / rate);
    return GPUCONV_OK;
}

/* Deconvolves every channel of the recording. @param out receives a plane per channel, `matches` a match per channel */
static gpuconv_status deconvolve(const gpuconv_ir *recording, const gpuconv_ir *sweep, int64_t frames, float **out,
                                 match *matches, gpuconv_error *error) {
    int64_t points = gc_power_of_two(recording->frames + sweep->frames);
    double *memory = gc_calloc(points, 4 * (int64_t)sizeof *memory);
    if (!memory)
        return gc_fail_memory(error, "the division by the sweep");
    double *re = memory, *im = re + points, *xr = im + points, *xi = xr + points;
    widen(gc_ir_plane(sweep, 0), xr, sweep->frames, points);
    bool good = gc_fourier(xr, xi, points, -1);
    for (int c = 0; c < recording->planes && good; c++) {
        widen(gc_ir_plane(recording, c), re, recording->frames, points);
        memset(im, 0, (size_t)points * sizeof *im);
        good = gc_fourier(re, im, points, -1) && correlate(re, im, xr, xi, points, &matches[c]);
        widen(gc_ir_plane(recording, c), re, recording->frames, points);
        memset(im, 0, (size_t)points * sizeof *im);
        good = good && gc_fourier(re, im, points, -1);
        divide(re, im, xr, xi, points);
        good = good && gc_fourier(re, im, points, 1);
        /* Negative times, which contain the harmonics, are at the end of the period and are not copied. */
        for (int64_t i = 0; i < frames; i++)
            out[c][i] = (float)(re[i] / (double)points);
    }
    free(memory);
    return good ? GPUCONV_OK : gc_fail_memory(error, "the division by the sweep");
}

gpuconv_status gc_sweep_read(const char *recorded, const char *played, double seconds, const char *response,
                             gc_sweep_found *found, gpuconv_error *error) {
    gpuconv_ir *recording = NULL, *sweep = NULL, *made = NULL;
    float **planes = NULL;
    match *matches = NULL;
    gpuconv_status status = gpuconv_ir_load(recorded, &recording, error);
    if (!status)
        status = gpuconv_ir_load(played, &sweep, error);
    if (!status && (recording->rate != sweep->rate || sweep->planes != 1))
        status = gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                         "%s: the sweep must have one channel at the recording's %g Hz, not %d at %g", played,
                         recording->rate, sweep->planes, sweep->rate);
    double peak = 0;
    if (!status && (gpuconv_ir_peak(sweep, &peak), !(peak > 0)))
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: is silent; give the sweep that was played", played);
    if (!status && !(seconds >= 0 && seconds <= 600))
        status = gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a response is 0 to 600 s long");
    int64_t frames = 0;
    if (!status) {
        frames = seconds > 0 ? gc_max(1, llrint(seconds * sweep->rate))
                             : gc_max((int64_t)sweep->rate, recording->frames - sounding_frames(sweep));
        frames = gc_min(frames, recording->frames);
        planes = gc_calloc(recording->planes, (int64_t)sizeof(float *));
        matches = gc_calloc(recording->planes, (int64_t)sizeof *matches);
        status = planes && matches ? GPUCONV_OK : gc_fail_memory(error, response);
    }
    for (int c = 0; !status && c < recording->planes; c++)
        if (!(planes[c] = gc_calloc(frames, sizeof **planes)))
            status = gc_fail_memory(error, response);
    if (!status)
        status = deconvolve(recording, sweep, frames, planes, matches, error);
    if (!status) {
        match best = find_best(matches, recording->planes, found);
        status = check_match(&best, recorded, played, frames, sweep->rate, error);
    }
    if (!status)
        status = gpuconv_ir_new((const float *const *)planes, recording->planes, frames, sweep->rate, &made, error);
    if (!status) {
        found->delay = (double)gpuconv_ir_onset(made, -20) / sweep->rate;
        status = gc_ir_write(made, response, true, error);
    }
    for (int c = 0; planes && c < recording->planes; c++)
        free(planes[c]);
    free(planes);
    free(matches);
    gpuconv_ir_free(made);
    gpuconv_ir_free(recording);
    gpuconv_ir_free(sweep);
    return status;
}
