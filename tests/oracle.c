/* Convolves by the definition in double precision and compares results with it. The code is simple rather than fast. */
#include "oracle.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t oracle_bits(oracle_random *random) {
    /* splitmix64 (Steele, Lea, Flood 2014) */
    uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

int64_t oracle_below(oracle_random *random, int64_t limit) {
    return (int64_t)(oracle_bits(random) % (uint64_t)limit);
}

float oracle_uniform(oracle_random *random) {
    return (float)((double)(oracle_bits(random) >> 40) * 0x1p-23 - 1.0);
}

void oracle_fill(oracle_random *random, float *to, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        to[i] = oracle_uniform(random);
}

static const uint32_t band_bits = 0x7fa5c3e1u; /* a signalling NaN, which arithmetic does not produce */

guarded guarded_new(int channels, int64_t frames) {
    guarded g = {.channels = channels, .frames = frames};
    size_t stride = (size_t)frames + 2 * ORACLE_BAND;
    g.memory = malloc((size_t)channels * stride * sizeof(float));
    g.channel = malloc((size_t)channels * sizeof *g.channel);
    if (!g.memory || !g.channel) {
        fprintf(stderr, "oracle: no memory for %d channels of %lld frames\n", channels, (long long)frames);
        exit(1);
    }
    for (int c = 0; c < channels; c++) {
        float *row = g.memory + (size_t)c * stride;
        g.channel[c] = row + ORACLE_BAND;
        for (int i = 0; i < ORACLE_BAND; i++) {
            memcpy(row + i, &band_bits, sizeof band_bits);
            memcpy(row + ORACLE_BAND + frames + i, &band_bits, sizeof band_bits);
        }
    }
    guarded_poison(&g);
    return g;
}

guarded guarded_random(oracle_random *random, int channels, int64_t frames) {
    guarded g = guarded_new(channels, frames);
    for (int c = 0; c < channels; c++)
        oracle_fill(random, g.channel[c], frames);
    return g;
}

void guarded_poison(guarded *g) {
    for (int c = 0; c < g->channels; c++)
        for (int64_t i = 0; i < g->frames; i++)
            g->channel[c][i] = NAN;
}

bool guarded_intact(const guarded *g) {
    for (int c = 0; c < g->channels; c++) {
        for (int64_t i = 0; i < ORACLE_BAND; i++) {
            uint32_t before, after;
            memcpy(&before, g->channel[c] - 1 - i, sizeof before);
            memcpy(&after, g->channel[c] + g->frames + i, sizeof after);
            if (before != band_bits || after != band_bits)
                return false;
        }
    }
    return true;
}

void guarded_free(guarded *g) {
    free(g->memory);
    free(g->channel);
    *g = (guarded){0};
}

void oracle_convolve(const float *const *in, int64_t frames, const oracle_route *route, int routes, int64_t taps,
                     int outputs, double *out) {
    int64_t total = frames + taps - 1;
    for (int64_t i = 0; i < outputs * total; i++)
        out[i] = 0;
    for (int r = 0; r < routes; r++) {
        double *y = out + route[r].output * total;
        const float *x = in[route[r].input];
        for (int64_t k = 0; k < taps; k++) {
            double h = (double)route[r].taps[k];
            for (int64_t n = 0; n < frames; n++)
                y[n + k] += h * (double)x[n];
        }
    }
}

void oracle_add_sinc(double at, double gain, int64_t frames, double *sum) {
    const double pi = 3.14159265358979323846, c = cos(pi / 24), s = sin(pi / 24);
    int64_t n = (int64_t)fmax(ceil(at - 24), 0);
    double sine = sin(pi * ((double)n - at)); /* which changes its sign from frame to frame */
    double x = cos(pi * ((double)n - at) / 24), y = sin(pi * ((double)n - at) / 24);
    for (; n < frames && (double)n < at + 24; n++) {
        const double t = (double)n - at, next = x * c - y * s;
        sum[n] += gain * (fabs(t) < 1e-9 ? 1 : sine / (pi * t)) * (1 + x) / 2;
        sine = -sine;
        y = x * s + y * c;
        x = next;
    }
}

double oracle_frame(const float *in, int64_t frames, const float *taps, int64_t count, int64_t at) {
    double sum = 0;
    for (int64_t k = 0; k < count; k++)
        if (at - k >= 0 && at - k < frames)
            sum += (double)taps[k] * (double)in[at - k];
    return sum;
}

int oracle_routes(const float *const *response, int channels, int inputs, oracle_route *route, int *outputs) {
    int n = 0;
    if (inputs == 1) {
        *outputs = channels;
        for (int c = 0; c < channels; c++)
            route[n++] = (oracle_route){0, c, response[c]};
    } else if (channels == 1 || channels == inputs) {
        *outputs = inputs;
        for (int c = 0; c < inputs; c++)
            route[n++] = (oracle_route){c, c, response[channels == 1 ? 0 : c]};
    } else if (inputs == 2 && channels == 4) {
        *outputs = 2;
        route[n++] = (oracle_route){0, 0, response[0]}; /* left to left */
        route[n++] = (oracle_route){0, 1, response[1]}; /* left to right */
        route[n++] = (oracle_route){1, 0, response[2]}; /* right to left */
        route[n++] = (oracle_route){1, 1, response[3]}; /* right to right */
    }
    return n;
}

oracle_error oracle_compare(const float *got, const double *want, int64_t n) {
    double error = 0, power = 0, peak = 0, most = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = (double)got[i] - want[i];
        error += d * d;
        power += want[i] * want[i];
        peak = fmax(peak, fabs(d));
        most = fmax(most, fabs(want[i]));
    }
    if (error == 0)
        return (oracle_error){-INFINITY, 0};
    return (oracle_error){10 * log10(error / power), peak / most}; /* an error on silence is infinite */
}

bool oracle_agrees(const char *what, const guarded *got, int64_t got_frames, const double *want, int64_t want_frames,
                   double bound) {
    if (got_frames != want_frames) {
        fprintf(stderr, "%s: %lld frames instead of %lld\n", what, (long long)got_frames, (long long)want_frames);
        return false;
    }
    for (int c = 0; c < got->channels; c++) {
        for (int64_t i = 0; i < want_frames; i++) {
            if (!isfinite(got->channel[c][i])) {
                fprintf(stderr, "%s: channel %d, frame %lld is %g\n", what, c, (long long)i,
                        (double)got->channel[c][i]);
                return false;
            }
        }
    }
    if (!guarded_intact(got)) {
        fprintf(stderr, "%s: written outside the output\n", what);
        return false;
    }
    for (int c = 0; c < got->channels; c++) {
        oracle_error e = oracle_compare(got->channel[c], want + c * want_frames, want_frames);
        if (!(e.rms <= bound)) {
            fprintf(stderr, "%s: channel %d has an error of %.1f dB; %.1f dB is allowed\n", what, c, e.rms, bound);
            return false;
        }
        if (!(e.peak <= 4 * pow(10, bound / 20))) {
            fprintf(stderr, "%s: channel %d has a peak error of %g relative to the largest sample\n", what, c, e.peak);
            return false;
        }
    }
    return true;
}

bool oracle_identical(const char *what, const guarded *a, int64_t a_frames, const guarded *b, int64_t b_frames) {
    if (a_frames != b_frames || a->channels != b->channels) {
        fprintf(stderr, "%s: %lld frames of %d channels against %lld of %d\n", what, (long long)a_frames, a->channels,
                (long long)b_frames, b->channels);
        return false;
    }
    if (!guarded_intact(a) || !guarded_intact(b)) {
        fprintf(stderr, "%s: written outside the output\n", what);
        return false;
    }
    for (int c = 0; c < a->channels; c++) {
        for (int64_t i = 0; i < a_frames; i++) {
            if (!isfinite(a->channel[c][i]) || memcmp(&a->channel[c][i], &b->channel[c][i], sizeof(float)) != 0) {
                fprintf(stderr, "%s: channel %d, frame %lld: %.9g and %.9g\n", what, c, (long long)i,
                        (double)a->channel[c][i], (double)b->channel[c][i]);
                return false;
            }
        }
    }
    return true;
}
