/* Interaural cross-correlation: ISO 3382-1:2009, annex B. The correlation of two windows in a band is the inverse
 * transform of their cross-spectrum, weighted with the filter's power response, at lags up to 1 ms. Lateral energy
 * fraction: ISO 3382-1:2009, A.2.4. */
#include "spatial.h"

#include "acoustics.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/fourier.h"

#include <math.h>
#include <stdlib.h>

enum { EARLY, LATE, WINDOWS };

struct gc_ears {
    int64_t points;
    double rate;
    double *spectrum[WINDOWS][2][2]; /* window, ear, real or imaginary part: bins 0 .. points / 2 */
    double *re, *im;
    double *memory;
};

/* Transforms both ears in one window: left + i right, then separated by symmetry. */
static bool transform_window(gc_ears *e, const float *left, const float *right, int64_t from, int64_t to, int window) {
    int64_t half = e->points / 2;
    for (int64_t i = 0; i < e->points; i++) {
        bool inside = i + from < to;
        e->re[i] = inside ? (double)left[from + i] : 0;
        e->im[i] = inside ? (double)right[from + i] : 0;
    }
    if (!gc_fourier(e->re, e->im, e->points, -1))
        return false;
    for (int64_t k = 0; k <= half; k++) {
        int64_t m = (e->points - k) % e->points;
        e->spectrum[window][0][0][k] = (e->re[k] + e->re[m]) / 2;
        e->spectrum[window][0][1][k] = (e->im[k] - e->im[m]) / 2;
        e->spectrum[window][1][0][k] = (e->im[k] + e->im[m]) / 2;
        e->spectrum[window][1][1][k] = (e->re[m] - e->re[k]) / 2;
    }
    return true;
}

gc_ears *gc_ears_new(const float *left, const float *right, int64_t frames, double rate) {
    gc_ears *e = gc_calloc(1, sizeof *e);
    if (!e)
        return NULL;
    /* Also a response of one frame has all lags up to 1 ms. */
    int64_t points = gc_power_of_two(gc_max(2 * frames, 2 * (int64_t)(0.001 * rate) + 2)), bins = points / 2 + 1;
    int64_t onset = gc_min(gc_channel_find_onset(left, frames), gc_channel_find_onset(right, frames));
    int64_t limit = gc_min(frames, onset + (int64_t)ceil(0.08 * rate - 1e-9));
    e->points = points;
    e->rate = rate;
    e->memory = gc_calloc(2 * points + 8 * bins, (int64_t)sizeof *e->memory);
    bool good = e->memory != NULL;
    if (good) {
        e->re = e->memory;
        e->im = e->re + points;
        for (int k = 0; k < 8; k++)
            e->spectrum[k / 4][k / 2 % 2][k % 2] = e->im + points + k * bins;
        good = transform_window(e, left, right, onset, limit, EARLY) &&
               transform_window(e, left, right, limit, frames, LATE);
    }
    if (!good) {
        gc_ears_free(e);
        return NULL;
    }
    return e;
}

void gc_ears_free(gc_ears *e) {
    if (!e)
        return;
    free(e->memory);
    free(e);
}

/* Returns the bin of one ear's window as a complex number. */
static double complex bin_of(const gc_ears *e, int window, int ear, int64_t k) {
    return e->spectrum[window][ear][0][k] + GC_J * e->spectrum[window][ear][1][k];
}

/* Returns the largest magnitude within 1 ms of lag 0, relative to the energies; NaN without energy. */
static double largest(const gc_ears *e, const double *correlation, const double energy[2]) {
    int64_t lags = (int64_t)(0.001 * e->rate);
    double most = 0, unit = sqrt(energy[0] * energy[1]);
    for (int64_t lag = -lags; lag <= lags; lag++)
        most = fmax(most, fabs(correlation[(lag + e->points) % e->points]));
    return energy[0] > 0 && energy[1] > 0 ? fmin(most / unit, 1) : (double)NAN;
}

/* Adds the energies of a window's ears in the band. */
static void add_energies(const gc_ears *e, int window, int64_t k, double weight, double energy[2]) {
    for (int ear = 0; ear < 2; ear++) {
        double complex x = bin_of(e, window, ear, k);
        energy[ear] += weight * (creal(x) * creal(x) + cimag(x) * cimag(x));
    }
}

/* The correlation of the whole response contains that of its windows with each other. The late window was transformed
 * from its own beginning, so its spectrum is delayed by `shift` frames here. */
static bool correlate_all(gc_ears *e, const gc_octave_band *band, int64_t shift, gc_interaural *r) {
    double energy[2] = {0, 0};
    for (int64_t k = 0; k <= e->points / 2; k++) {
        double hz = (double)k * e->rate / (double)e->points, turn = -2 * 3.14159265358979323846 * (double)k;
        double complex h = band ? (k ? gc_octave_response(band, hz) : 0) : 1, delayed;
        double weight = (creal(h) * creal(h) + cimag(h) * cimag(h)) / (double)e->points;
        double complex ear[2];
        delayed = cexp(GC_J * turn * (double)shift / (double)e->points);
        for (int i = 0; i < 2; i++) {
            ear[i] = bin_of(e, EARLY, i, k) + delayed * bin_of(e, LATE, i, k);
            energy[i] += (k && k < e->points / 2 ? 2 : 1) * weight * pow(cabs(ear[i]), 2);
        }
        double complex cross = weight * conj(ear[0]) * ear[1];
        int64_t m = (e->points - k) % e->points;
        e->re[k] = e->re[m] = creal(cross);
        e->im[k] = cimag(cross);
        e->im[m] = k == m ? 0 : -cimag(cross);
    }
    if (!gc_fourier(e->re, e->im, e->points, 1))
        return false;
    r->all = largest(e, e->re, energy);
    return true;
}

bool gc_ears_band(gc_ears *e, const gc_octave_band *band, gc_interaural *r) {
    double energy[WINDOWS][2] = {{0}};
    int64_t half = e->points / 2;
    for (int64_t k = 0; k <= half; k++) {
        double hz = (double)k * e->rate / (double)e->points;
        double complex h = band ? (k ? gc_octave_response(band, hz) : 0) : 1;
        double weight = (creal(h) * creal(h) + cimag(h) * cimag(h)) / (double)e->points;
        double complex early = weight * conj(bin_of(e, EARLY, 0, k)) * bin_of(e, EARLY, 1, k);
        double complex late = weight * conj(bin_of(e, LATE, 0, k)) * bin_of(e, LATE, 1, k);
        for (int window = 0; window < WINDOWS; window++)
            add_energies(e, window, k, (k && k < half ? 2 : 1) * weight, energy[window]);
        int64_t m = (e->points - k) % e->points;
        e->re[k] = creal(early) - cimag(late); /* the spectrum of early + i late */
        e->im[k] = cimag(early) + creal(late);
        e->re[m] = creal(early) + cimag(late);
        e->im[m] = creal(late) - cimag(early);
    }
    if (gc_cancelled() || !gc_fourier(e->re, e->im, e->points, 1))
        return false;
    r->early = largest(e, e->re, energy[EARLY]);
    r->late = largest(e, e->im, energy[LATE]);
    return correlate_all(e, band, (int64_t)ceil(0.08 * e->rate - 1e-9), r);
}

double gc_lateral_fraction(const gc_channel *omni, const gc_channel *side) {
    const double *all = gc_channel_energies(omni), *sideways = gc_channel_energies(side);
    double early = all[GC_FROM_ONSET] - all[GC_FROM_80MS], lateral = sideways[GC_FROM_5MS] - sideways[GC_FROM_80MS];
    return early > 0 ? fmax(0, lateral) / early : (double)NAN;
}
