/* The modulation transfer function of an octave is the Fourier transform of its energy over time, relative to
 * the sum (Schroeder, Acustica 49 (1981), 179; IEC 60268-16:2020, indirect method). Noise, auditory masking and the
 * reception threshold reduce it (annex A); the index weights the octaves for male speech. */
#include "speech.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

/* IEC 60268-16:2020, annex A: modulation frequencies in Hz, octave weights and redundancy corrections, level of male
 * speech relative to its A-weighted level, and reception threshold in dB. */
static const double modulation[GC_SPEECH_MODULATIONS] = {0.63, 0.8, 1, 1.25, 1.6, 2, 2.5, 3.15, 4, 5, 6.3, 8, 10, 12.5};
static const double weight[GC_SPEECH_BANDS] = {0.085, 0.127, 0.230, 0.233, 0.309, 0.224, 0.173};
static const double redundancy[GC_SPEECH_BANDS - 1] = {0.085, 0.078, 0.065, 0.011, 0.047, 0.095};
static const double spectrum[GC_SPEECH_BANDS] = {-2.5, 0.5, 0, -6, -12, -18, -24};
static const double threshold[GC_SPEECH_BANDS] = {46, 27, 12, 6.5, 7.5, 8, 12};

static double power_of(double decibels) {
    return pow(10, decibels / 10);
}

/* Returns how strongly the octave below, at a level in dB, masks an octave, in dB relative to that level. */
static double masking(double level) {
    return level < 63 ? 0.5 * level - 65 : level < 67 ? 1.8 * level - 146.9 : level < 100 ? 0.5 * level - 59.8 : -10;
}

/* Writes the modulation transfer function of the energies e[0] .. e[n - 1]. @return false if they have no energy */
static bool transfer(const double *e, int64_t n, double noise, double rate, double m[GC_SPEECH_MODULATIONS]) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += e[i] - noise;
    for (int f = 0; f < GC_SPEECH_MODULATIONS; f++) {
        double re = 0, im = 0, step = 2 * pi * modulation[f] / rate, c = 1, s = 0, cs = cos(step), ss = sin(step);
        for (int64_t i = 0; i < n; i++) {
            re += (e[i] - noise) * c;
            im += (e[i] - noise) * s;
            double next = c * cs - s * ss;
            s = s * cs + c * ss;
            c = next;
        }
        m[f] = sum > 0 ? fmin(hypot(re, im) / sum, 1) : 0;
    }
    return sum > 0;
}

/* Returns the factor by which noise, masking and the threshold reduce the modulation of an octave. */
static double reduction(const gc_speech_levels *l, int band) {
    if (isnan(l->speech))
        return 1;
    double speech = power_of(l->speech + spectrum[band]);
    double noise = l->has_noise ? power_of(l->noise[band]) : 0, masked = 0;
    if (band > 0) {
        double below = power_of(l->speech + spectrum[band - 1]) + (l->has_noise ? power_of(l->noise[band - 1]) : 0);
        masked = below * power_of(masking(10 * log10(below)));
    }
    return speech / (speech + noise + masked + power_of(threshold[band]));
}

/* Returns the modulation transfer index: the mean transmission index of the modulation frequencies. */
static double transmission(const double m[GC_SPEECH_MODULATIONS], double factor) {
    double sum = 0;
    for (int f = 0; f < GC_SPEECH_MODULATIONS; f++) {
        double reduced = m[f] * factor, ratio = reduced < 1 ? 10 * log10(reduced / (1 - reduced)) : 15;
        sum += (fmin(fmax(ratio, -15), 15) + 15) / 30;
    }
    return sum / GC_SPEECH_MODULATIONS;
}

void gc_speech_band(const gc_channel *channel, double rate, int k, const gc_speech_levels *levels, gc_speech *r) {
    double m[GC_SPEECH_MODULATIONS], noise;
    int64_t count;
    const double *densities = gc_channel_densities(channel, &count, &noise);
    bool sounds = transfer(densities, count, noise, rate, m);
    r->mti[k] = sounds ? transmission(m, reduction(levels, k)) : (double)NAN;
}

void gc_speech_finish(gc_speech *r) {
    double sum = 0;
    for (int k = 0; k < GC_SPEECH_BANDS; k++) {
        sum += weight[k] * r->mti[k];
        if (k > 0)
            sum -= redundancy[k - 1] * sqrt(r->mti[k - 1] * r->mti[k]);
    }
    r->sti = sum > 1 ? 1 : sum < 0 ? 0 : sum;
}

const char *gc_speech_rating(double sti) {
    return isnan(sti)   ? "-"
           : sti < 0.30 ? "bad"
           : sti < 0.45 ? "poor"
           : sti < 0.60 ? "fair"
           : sti < 0.75 ? "good"
                        : "excellent";
}
