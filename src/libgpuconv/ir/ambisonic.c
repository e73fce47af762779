/*
 * Spherical harmonics are real, by the recursion of the associated Legendre functions, without the Condon-Shortley
 * phase (Nachbar, Zotter, Deleflie & Sontacchi, AmbiX: a suggested ambisonics format, Ambisonics Symposium 2011).
 *
 * The decoder takes the response at a direction u as the sum of c_k Y_k(u) over the harmonics, with the c_k that fit
 * all measurements best (least squares), in each bin of a transform; the response of ambisonic channel k is then c_k,
 * because a plane wave from u has the channels Y_k(u).
 *
 * An order N describes a head of radius r up to the frequency N c / (2 pi r). Above it the measurements are changed to
 * what fits better and sounds alike, because the ear does not follow the phase there:
 *
 *      aligned    without the differences of their delays (Zaunschirm, Schoerkhuber & Hoeldrich, JASA 143 (2018), 3616)
 *      MagLS      with their magnitudes, and the phase of the fit in the bin below (Schoerkhuber, Zaunschirm &
 * Hoeldrich, Binaural rendering of ambisonic signals via magnitude least squares, DAGA 2018)
 *
 * The common delay of all responses is taken off first, so that the phase changes little from bin to bin. Equalisation
 * scales each bin to the energy of the measurements over all directions.
 */
#include "ambisonic.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/fourier.h"

#include <complex.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- Spherical harmonics ----------------------------------------------------------------------------------------- */

int gc_ambisonic_order(int channels) {
    for (int order = 1; order <= GC_AMBISONIC_ORDER; order++)
        if ((order + 1) * (order + 1) == channels)
            return order;
    return 0;
}

/* Returns sqrt((2 - [m = 0]) (n - m)! / (n + m)!). */
static double sn3d(int n, int m) {
    double ratio = 1;
    for (int k = n - m + 1; k <= n + m; k++)
        ratio /= k;
    return sqrt((m ? 2 : 1) * ratio);
}

static double factors[GC_AMBISONIC_ORDER + 1][GC_AMBISONIC_ORDER + 1]; /* sn3d of n and m */
static pthread_once_t factors_once = PTHREAD_ONCE_INIT;

static void find_factors(void) {
    for (int n = 0; n <= GC_AMBISONIC_ORDER; n++)
        for (int m = 0; m <= n; m++)
            factors[n][m] = sn3d(n, m);
}

/* (x + iy)^m is cos(m azimuth) and sin(m azimuth) times the factor (1 - z^2)^(m / 2) of P_n^m, which `legendre` lacks.
 */
void gc_spherical_harmonics(int order, const double d[3], double *values) {
    const double length = sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
    const double x = d[0] / length, y = d[1] / length, z = d[2] / length;
    double diagonal = 1, re = 1, im = 0;
    (void)pthread_once(&factors_once, find_factors);
    for (int m = 0; m <= order; m++) {
        double before = 0, legendre = diagonal;
        for (int n = m; n <= order; n++) {
            const double value = factors[n][m] * legendre;
            values[n * n + n + m] = value * re;
            if (m)
                values[n * n + n - m] = value * im;
            const double next = ((2 * n + 1) * z * legendre - (n + m) * before) / (n - m + 1);
            before = legendre;
            legendre = next;
        }
        diagonal *= 2 * m + 1;
        const double turned = re * x - im * y;
        im = re * y + im * x;
        re = turned;
    }
}

gc_rotation gc_rotation_of(double yaw, double pitch, double roll) {
    const double a = yaw * M_PI / 180, b = pitch * M_PI / 180, c = roll * M_PI / 180;
    const double ca = cos(a), sa = sin(a), cb = cos(b), sb = sin(b), cc = cos(c), sc = sin(c);
    /* the columns are the directions of the nose, the left ear and the top of the head in the room */
    return (gc_rotation){{{ca * cb, -sa * cc - ca * sb * sc, sa * sc - ca * sb * cc},
                          {sa * cb, ca * cc - sa * sb * sc, -ca * sc - sa * sb * cc},
                          {sb, cb * sc, cb * cc}}};
}

void gc_rotate_to_head(const gc_rotation *head, const double room[3], double to[3]) {
    const double from[3] = {room[0], room[1], room[2]};
    for (int i = 0; i < 3; i++)
        to[i] = head->row[0][i] * from[0] + head->row[1][i] * from[1] + head->row[2][i] * from[2];
}

/* Factors the matrix in place: its lower triangle becomes L with L L^T = gram. Returns the least pivot relative to the
 * largest diagonal element; 0 or less if the matrix is not positive definite. */
static double factor(double *g, int n) {
    double least = HUGE_VAL, largest = 0;
    for (int i = 0; i < n; i++)
        largest = fmax(largest, g[i * n + i]);
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            double sum = g[i * n + j];
            for (int k = 0; k < j; k++)
                sum -= g[i * n + k] * g[j * n + k];
            if (i != j) {
                g[i * n + j] = sum / g[j * n + j];
                continue;
            }
            least = fmin(least, sum / largest);
            if (!(sum > 0))
                return 0;
            g[i * n + i] = sqrt(sum);
        }
    return least;
}

/* Solves the least squares problem sum over points of |Y(point) x - values|^2 for all columns: normal equations of
 * `channels` unknowns by Cholesky. `gram` (channels x channels) and `right` (channels x columns, overwritten by the
 * solution) are sums over the points. *regularised is set where the points do not determine the solution well and a
 * term was added. Returns false if they do not determine it at all. */
static bool solve_normal(double *gram, int n, double *right, int64_t columns, bool *regularised) {
    const double well = 1e-5, added = 1e-3;
    double copy[GC_AMBISONIC_CHANNELS * GC_AMBISONIC_CHANNELS], largest = 0;
    memcpy(copy, gram, (size_t)n * (size_t)n * sizeof *copy);
    for (int i = 0; i < n; i++)
        largest = fmax(largest, gram[i * n + i]);
    *regularised = factor(gram, n) < well;
    if (*regularised) {
        memcpy(gram, copy, (size_t)n * (size_t)n * sizeof *copy);
        for (int i = 0; i < n; i++)
            gram[i * n + i] += added * largest;
        if (!(factor(gram, n) > 0))
            return false;
    }
    for (int i = 0; i < n; i++) /* L y = right */
        for (int k = 0; k <= i; k++)
            for (int64_t c = 0; c < columns; c++)
                right[i * columns + c] = k < i ? right[i * columns + c] - gram[i * n + k] * right[k * columns + c]
                                               : right[i * columns + c] / gram[i * n + i];
    for (int i = n - 1; i >= 0; i--) { /* L^T x = y */
        for (int k = i + 1; k < n; k++)
            for (int64_t c = 0; c < columns; c++)
                right[i * columns + c] -= gram[k * n + i] * right[k * columns + c];
        for (int64_t c = 0; c < columns; c++)
            right[i * columns + c] /= gram[i * n + i];
    }
    return true;
}

/* Returns the number (ACN) of a channel of a convention. *gain: of its normalisation to SN3D. */
static int find_harmonic(gpuconv_ambisonics convention, int channel, double *gain) {
    static const int fuma[] = {0, 3, 1, 2, 6, 7, 5, 8, 4, 12, 13, 11, 14, 10, 15, 9};
    static const double squares[] = {2,   1, 1,        1,        1,      .75,    .75,  .75,
                                     .75, 1, 32. / 45, 32. / 45, 5. / 9, 5. / 9, .625, .625};
    const int degree = (int)sqrt(channel);
    *gain = convention == GPUCONV_AMBISONICS_FUMA  ? sqrt(squares[channel])
            : convention == GPUCONV_AMBISONICS_N3D ? 1 / sqrt(2 * degree + 1)
                                                   : 1;
    return convention == GPUCONV_AMBISONICS_FUMA ? fuma[channel] : channel;
}

bool gc_rotate_harmonics(int order, const gc_rotation *head, gpuconv_ambisonics convention, double *matrix) {
    const int n = (order + 1) * (order + 1), points = 4 * n; /* of a spiral, which covers the sphere evenly */
    double gram[GC_AMBISONIC_CHANNELS * GC_AMBISONIC_CHANNELS] = {0}, room[GC_AMBISONIC_CHANNELS] = {0};
    double turned[GC_AMBISONIC_CHANNELS] = {0}, right[GC_AMBISONIC_CHANNELS * GC_AMBISONIC_CHANNELS] = {0};
    bool regularised;
    for (int p = 0; p < points; p++) {
        const double z = 1 - (2 * p + 1.0) / points, around = p * M_PI * (3 - sqrt(5)), flat = sqrt(1 - z * z);
        const double direction[3] = {flat * cos(around), flat * sin(around), z};
        double in_head[3];
        gc_rotate_to_head(head, direction, in_head);
        gc_spherical_harmonics(order, direction, room);
        gc_spherical_harmonics(order, in_head, turned);
        for (int i = 0; i < n; i++)
            for (int k = 0; k < n; k++) {
                gram[i * n + k] += room[i] * room[k];
                right[i * n + k] += room[i] * turned[k];
            }
    }
    if (!solve_normal(gram, n, right, n, &regularised))
        return false;
    for (int k = 0; k < n; k++) {
        double gain;
        const int from = find_harmonic(convention, k, &gain);
        for (int i = 0; i < n; i++)
            matrix[i * n + k] = gain * right[from * n + i];
    }
    return true;
}

/* ---- The decoder ------------------------------------------------------------------------------------------------- */

static const double head_radius = 0.0875, speed_of_sound = 343, most_gain = 10;

typedef double complex number;

struct gc_decoder {
    int order, channels, receivers, measurements;
    double rate;
    gc_sofa_form form;
    gpuconv_decode how;
    gpuconv_ambisonics convention;
    bool regularised, equalized, exchanged;
    double *fit; /* channels x receivers x frames */
};

/* A fit that is computed, of one receiver at a time. */
typedef struct fitting {
    const gpuconv_sofa *set;
    gc_decoder *d;
    int64_t points, bins;
    int64_t common;          /* frames of the delay that is taken off */
    double *harmonics;       /* measurements x channels */
    double *inverse;         /* channels x measurements: the pseudoinverse of the harmonics */
    double *delay;           /* per measurement, in frames beyond the common delay */
    float complex *bin;      /* measurements x bins */
    number *coefficient;     /* channels x bins */
    number *target, *fitted; /* per measurement */
    float *taps;             /* of a measurement: receivers x frames */
    double *re, *im;         /* points */
} fitting;

static gpuconv_status fail_memory(gpuconv_error *error) {
    return gc_fail_memory(error, "the ambisonic decoder");
}

/* Computes the pseudoinverse of the harmonics. Returns TOPOLOGY, MEMORY. */
static gpuconv_status invert(fitting *f, gpuconv_error *error) {
    const int n = f->d->channels, count = f->set->measurements;
    double *gram = gc_calloc((int64_t)n * n, sizeof *gram);
    if (!gram)
        return fail_memory(error);
    for (int m = 0; m < count; m++) {
        double *y = f->harmonics + (int64_t)m * n;
        gc_spherical_harmonics(f->d->order, f->set->position + 3 * (int64_t)m, y);
        for (int i = 0; i < n; i++) {
            f->inverse[(int64_t)i * count + m] = y[i];
            for (int k = 0; k < n; k++)
                gram[i * n + k] += y[i] * y[k];
        }
    }
    const bool solved = solve_normal(gram, n, f->inverse, count, &f->d->regularised);
    free(gram);
    return solved ? GPUCONV_OK
                  : gc_fail(error, GPUCONV_ERROR_TOPOLOGY, "%s: its directions do not determine ambisonics of order %d",
                            f->set->name, f->d->order);
}

/* Finds the mean delay of all responses, and the delays at a receiver beyond it. Returns MEMORY, CANCELLED. */
static gpuconv_status find_delays(fitting *f, int receiver, gpuconv_error *error) {
    const double lead = (double)(f->d->form.lead - f->set->responses->lead);
    double sum = 0;
    for (int m = 0; m < f->set->measurements; m++) {
        const gc_blend one = {.measurement = {m, m, m}, .weight = {1}, .gain = 1};
        gpuconv_status status = gc_sofa_delay(f->set, &one, receiver, &f->delay[m], error);
        if (status)
            return status;
        sum += f->delay[m] + lead;
    }
    if (receiver == 0)
        f->common = llrint(sum / f->set->measurements);
    for (int m = 0; m < f->set->measurements; m++)
        f->delay[m] += lead - (double)f->common;
    return GPUCONV_OK;
}

/* Transforms the responses of a receiver, without the common delay. Returns MEMORY, CANCELLED. */
static gpuconv_status transform(fitting *f, int receiver, gpuconv_error *error) {
    const gc_sofa_form form = f->d->form;
    for (int m = 0; m < f->set->measurements; m++) {
        const gc_blend one = {.measurement = {m, m, m}, .weight = {1}, .gain = 1};
        gpuconv_status status = gc_sofa_respond(f->set, &one, form, f->taps, form.frames, error);
        if (status)
            return status;
        for (int64_t i = 0; i < f->points; i++)
            f->re[i] = f->im[i] = 0;
        for (int64_t i = 0; i < form.frames; i++)
            f->re[(i - f->common + f->points) % f->points] = (double)f->taps[receiver * form.frames + i];
        if (!gc_fourier(f->re, f->im, f->points, -1))
            return fail_memory(error);
        for (int64_t k = 0; k < f->bins; k++)
            f->bin[m * f->bins + k] = (float complex)(f->re[k] + f->im[k] * (number)I);
    }
    return GPUCONV_OK;
}

/* Sets what the fit of a bin aims at. `fitted` is the fit of the bin below. */
static void aim(fitting *f, int64_t k) {
    const double alias = f->d->order * speed_of_sound / (2 * M_PI * head_radius);
    const double beyond = (double)k * f->d->rate / (double)f->points - alias;
    for (int m = 0; m < f->set->measurements; m++) {
        const number measured = (number)f->bin[m * f->bins + k];
        f->target[m] = measured;
        if (beyond > 0 && f->d->how == GPUCONV_DECODE_ALIGNED)
            f->target[m] = measured * cexp(2 * M_PI * (number)I * beyond / f->d->rate * f->delay[m]);
        else if (beyond > 0 && f->d->how == GPUCONV_DECODE_MAGLS)
            f->target[m] = cabs(measured) * cexp((number)I * carg(f->fitted[m]));
    }
}

/* Fits a bin, and equalises it. */
static void fit_bin(fitting *f, int64_t k) {
    const int n = f->d->channels, count = f->set->measurements;
    double wanted = 0, got = 0;
    number c[GC_AMBISONIC_CHANNELS];
    aim(f, k);
    for (int i = 0; i < n; i++) {
        c[i] = 0;
        for (int m = 0; m < count; m++)
            c[i] += f->inverse[(int64_t)i * count + m] * f->target[m];
    }
    for (int m = 0; m < count; m++) {
        f->fitted[m] = 0;
        for (int i = 0; i < n; i++)
            f->fitted[m] += f->harmonics[(int64_t)m * n + i] * c[i];
        wanted += creal(f->target[m] * conj(f->target[m]));
        got += creal(f->fitted[m] * conj(f->fitted[m]));
    }
    const double gain = f->d->equalized && got > 0 ? fmin(most_gain, sqrt(wanted / got)) : 1;
    for (int i = 0; i < n; i++)
        f->coefficient[i * f->bins + k] = gain * c[i];
}

/* Transforms the fitted bins back, with the common delay. Returns MEMORY, CANCELLED. */
static gpuconv_status transform_back(fitting *f, int receiver, gpuconv_error *error) {
    const int64_t frames = f->d->form.frames;
    for (int i = 0; i < f->d->channels; i++) {
        for (int64_t k = 0; k < f->points; k++) {
            const number c = f->coefficient[i * f->bins + (k < f->bins ? k : f->points - k)];
            f->re[k] = creal(c) / (double)f->points;
            f->im[k] = k == 0 || k == f->points / 2 ? 0 : (k < f->bins ? cimag(c) : -cimag(c)) / (double)f->points;
        }
        if (!gc_fourier(f->re, f->im, f->points, 1))
            return fail_memory(error);
        double *to = f->d->fit + ((int64_t)i * f->d->receivers + receiver) * frames;
        for (int64_t t = 0; t < frames; t++)
            to[t] = f->re[(t - f->common + f->points) % f->points];
    }
    return GPUCONV_OK;
}

/* Fits one receiver. Returns MEMORY, CANCELLED. */
static gpuconv_status fit_receiver(fitting *f, int receiver, gpuconv_error *error) {
    gpuconv_status status = find_delays(f, receiver, error);
    if (!status)
        status = transform(f, receiver, error);
    for (int64_t k = 0; k < f->bins && !status; k++) {
        if (gc_cancelled())
            return gc_fail_cancelled(error, f->set->name);
        fit_bin(f, k);
    }
    return status ? status : transform_back(f, receiver, error);
}

/* Allocates the memory of a fit, and computes it. Returns TOPOLOGY, MEMORY, CANCELLED. */
static gpuconv_status compute(fitting *f, gpuconv_error *error) {
    const int64_t count = f->set->measurements, n = f->d->channels, wide = (int64_t)sizeof(number);
    gpuconv_status status =
        gc_ir_check_memory(2 * count + 4 * n, (double)f->points, 16.0 * (double)count * (double)n, error);
    if (status)
        return status;
    f->harmonics = gc_calloc(count * n, sizeof *f->harmonics);
    f->inverse = gc_calloc(count * n, sizeof *f->inverse);
    f->delay = gc_calloc(count, sizeof *f->delay);
    f->bin = gc_calloc(count, f->bins * (int64_t)sizeof *f->bin);
    f->coefficient = gc_calloc(n, f->bins * wide);
    f->target = gc_calloc(count, wide);
    f->fitted = gc_calloc(count, wide);
    f->taps = gc_calloc(f->d->receivers, f->d->form.frames * (int64_t)sizeof *f->taps);
    f->re = gc_calloc(f->points, sizeof *f->re);
    f->im = gc_calloc(f->points, sizeof *f->im);
    if (!f->harmonics || !f->inverse || !f->delay || !f->bin || !f->coefficient || !f->target || !f->fitted ||
        !f->taps || !f->re || !f->im)
        return fail_memory(error);
    status = invert(f, error);
    for (int r = 0; r < f->d->receivers && !status; r++)
        status = fit_receiver(f, r, error);
    return status;
}

gpuconv_status gc_decoder_new(const gpuconv_sofa *s, int order, gpuconv_decode how, bool equalize,
                              gpuconv_ambisonics convention, gc_decoder **decoder, gpuconv_error *error) {
    const int n = (order + 1) * (order + 1);
    *decoder = NULL;
    if ((unsigned)convention > GPUCONV_AMBISONICS_FUMA || (convention == GPUCONV_AMBISONICS_FUMA && order > 3))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "FuMa has channels up to order 3, and the input has order %d; use acn-sn3d or acn-n3d", order);
    if (s->measurements < n)
        return gc_fail(error, GPUCONV_ERROR_TOPOLOGY,
                       "%s: %d directions do not determine ambisonics of order %d, which needs %d or more", s->name,
                       s->measurements, order, n);
    gc_decoder *d = gc_calloc(1, sizeof *d);
    if (!d)
        return fail_memory(error);
    *d = (gc_decoder){.order = order,
                      .channels = n,
                      .receivers = s->receivers,
                      .measurements = s->measurements,
                      .exchanged = s->exchanged,
                      .rate = s->responses->rate,
                      .form = gc_sofa_form_of(s, false),
                      .how = how == GPUCONV_DECODE_AUTO ? GPUCONV_DECODE_MAGLS : how,
                      .convention = convention,
                      .equalized = equalize};
    d->fit = gc_calloc((int64_t)n * s->receivers, d->form.frames * (int64_t)sizeof *d->fit);
    fitting f = {.set = s, .d = d, .points = gc_power_of_two(gc_max(2 * d->form.frames, 16))};
    f.bins = f.points / 2 + 1;
    gpuconv_status status = d->fit ? compute(&f, error) : fail_memory(error);
    free(f.harmonics);
    free(f.inverse);
    free(f.delay);
    free(f.bin);
    free(f.coefficient);
    free(f.target);
    free(f.fitted);
    free(f.taps);
    free(f.re);
    free(f.im);
    if (status)
        gc_decoder_free(d);
    else
        *decoder = d;
    return status;
}

void gc_decoder_free(gc_decoder *d) {
    if (!d)
        return;
    free(d->fit);
    free(d);
}

/* Writes the responses: channel k of the room is the sum over the head's channels i of turn[i][k] times theirs. */
static void write_turned(const gc_decoder *d, const double *turn, gpuconv_ir *made) {
    const int n = d->channels;
    for (int k = 0; k < n; k++)
        for (int r = 0; r < d->receivers; r++) {
            made->route[r * n + k] = (gc_route){k, r, r * n + k};
            float *to = made->taps + ((int64_t)r * n + k) * made->frames;
            for (int64_t f = 0; f < made->frames; f++) {
                double sum = 0;
                for (int i = 0; i < n; i++)
                    sum += turn[i * n + k] * d->fit[((int64_t)i * d->receivers + r) * made->frames + f];
                to[f] = (float)sum;
            }
        }
    made->lead = d->form.lead;
    made->routed = true;
}

gpuconv_status gc_decoder_turn(const gc_decoder *d, const gc_rotation *head, gpuconv_ir **ir, gpuconv_error *error) {
    static const char *const names[] = {"", "least squares", "time-aligned", "MagLS"}, *const conventions[] = {
                                                                                           "ACN, SN3D", "ACN, N3D",
                                                                                           "FuMa"};
    const gc_rotation straight = gc_rotation_of(0, 0, 0);
    const gpuconv_ambisonics convention = head ? d->convention : GPUCONV_AMBISONICS_SN3D;
    const int n = d->channels, routes = n * d->receivers;
    double *turn = gc_calloc((int64_t)n * n, sizeof *turn);
    gpuconv_ir *made = turn ? gc_ir_blank(n, d->receivers, routes, routes, d->form.frames, d->rate) : NULL;
    if (!made || !gc_rotate_harmonics(d->order, head ? head : &straight, convention, turn)) {
        free(turn);
        gpuconv_ir_free(made);
        return fail_memory(error);
    }
    write_turned(d, turn, made);
    free(turn);
    return gc_ir_finish(made, ir, error, "ambisonics of order %d (%s) fitted to %d directions, %s%s%s%s", d->order,
                        conventions[d->convention], d->measurements, names[d->how],
                        d->equalized ? ", equalised to the diffuse field" : "",
                        d->regularised ? ", which leave a part of the sphere open: the fit is regularised" : "",
                        d->exchanged ? GC_SOFA_EXCHANGED : "");
}
