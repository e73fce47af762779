/*
 * Reading of SOFA files by libmysofa: the only file that knows it. The responses are taken as they are measured,
 * without normalisation. A delay of the file is applied to its response: whole frames by shifting, fractions by a
 * windowed sine cardinal of 2 x HALF_SINC taps.
 */
#include "sofa.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#ifdef GPUCONV_WITH_SOFA

#include "libgpuconv/dsp/finite.h"

#include <errno.h>
#include <math.h>
#include <mysofa.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { HALF_SINC = 32, MAX_DELAY = 1 << 20 /* frames */, MAX_MEASUREMENTS = 1 << 20 };

static const double pi = 3.14159265358979323846;

static const char *reason_of(int err) {
    switch (err) {
    case MYSOFA_INVALID_FORMAT:
    case MYSOFA_INTERNAL_ERROR:
        return "is no valid SOFA file (HDF5 with the conventions of AES69)";
    case MYSOFA_UNSUPPORTED_FORMAT:
        return "uses a feature of HDF5 that libmysofa does not read; save it again without compression filters";
    default:
        return "cannot be read as a SOFA file";
    }
}

/* Checks sizes and values of the file. Returns FORMAT. */
static gpuconv_status check(const char *path, const struct MYSOFA_HRTF *h, gpuconv_error *error) {
    const uint64_t responses = (uint64_t)h->M * h->R, taps = responses * h->N;
    const uint64_t positions = h->SourcePosition.elements, delays = h->DataDelay.elements;
    if (h->M < 1 || h->R < 1 || h->N < 1 || h->C != 3 || h->M > MAX_MEASUREMENTS || h->R > GC_MAX_CHANNELS ||
        responses > UINT32_MAX || !h->DataIR.values || h->DataIR.elements != taps)
        return gc_fail(error, GPUCONV_ERROR_FORMAT,
                       "%s: %u measurements x %u receivers x %u taps do not fit its data of %u values; only FIR "
                       "conventions are read, such as SimpleFreeFieldHRIR and GeneralFIR",
                       path, h->M, h->R, h->N, h->DataIR.elements);
    if (!h->SourcePosition.values || (positions != 3 && positions != 3 * (uint64_t)h->M))
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: has %llu values of source positions for %u measurements", path,
                       (unsigned long long)positions, h->M);
    if (delays && (!h->DataDelay.values || (delays != h->R && delays != responses)))
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: has %llu delays for %u measurements x %u receivers", path,
                       (unsigned long long)delays, h->M, h->R);
    if (!h->DataSamplingRate.values || h->DataSamplingRate.elements < 1 ||
        !gc_is_rate((double)h->DataSamplingRate.values[0]))
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: has no valid sampling rate", path);
    if (gc_find_not_finite(h->DataIR.values, (int64_t)taps) < (int64_t)taps ||
        gc_find_not_finite(h->SourcePosition.values, (int64_t)positions) < (int64_t)positions)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: a response or a position is not finite", path);
    for (uint64_t i = 0; i < delays; i++)
        if (!(h->DataDelay.values[i] >= 0 && h->DataDelay.values[i] <= MAX_DELAY))
            return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: a delay of %g frames; 0 to %d are allowed", path,
                           (double)h->DataDelay.values[i], MAX_DELAY);
    return GPUCONV_OK;
}

static double delay_of(const struct MYSOFA_HRTF *h, int64_t measurement, int64_t receiver) {
    const struct MYSOFA_ARRAY *d = &h->DataDelay;
    if (d->elements == 0)
        return 0;
    return (double)d->values[d->elements == h->R ? receiver : measurement * h->R + receiver];
}

/* Adds a response at a delay to `to`, whose frame `lead` is time zero. */
static void add_delayed(const float *taps, int64_t frames, double delay, int64_t lead, float *to) {
    const int64_t whole = (int64_t)floor(delay);
    const double part = delay - (double)whole;
    if (part == 0) {
        memcpy(to + lead + whole, taps, (size_t)frames * sizeof *to);
        return;
    }
    for (int k = 1 - HALF_SINC; k <= HALF_SINC; k++) {
        const double x = k - part, window = 0.42 + 0.5 * cos(pi * x / HALF_SINC) + 0.08 * cos(2 * pi * x / HALF_SINC);
        const double gain = sin(pi * x) / (pi * x) * (fabs(x) < HALF_SINC ? window : 0);
        for (int64_t i = 0; i < frames; i++)
            to[lead + whole + k + i] += (float)(gain * (double)taps[i]);
    }
}

/* Converts a source position to x, y, z. */
static void place(const struct MYSOFA_HRTF *h, bool spherical, int64_t measurement, double to[3]) {
    const float *from = h->SourcePosition.values + (h->SourcePosition.elements == 3 ? 0 : 3 * measurement);
    const double a = (double)from[0], b = (double)from[1], c = (double)from[2];
    if (!spherical) {
        to[0] = a;
        to[1] = b;
        to[2] = c;
        return;
    }
    const double azimuth = a * pi / 180, elevation = b * pi / 180, radius = c > 0 ? c : 1;
    to[0] = radius * cos(elevation) * cos(azimuth);
    to[1] = radius * cos(elevation) * sin(azimuth);
    to[2] = radius * sin(elevation);
}

static void copy_attribute(const struct MYSOFA_HRTF *h, const char *name, char *to, size_t size) {
    char wanted[64];
    (void)snprintf(wanted, sizeof wanted, "%s", name); /* libmysofa's parameter is not const */
    const char *value = mysofa_getAttribute(h->attributes, wanted);
    (void)snprintf(to, size, "%s", value ? value : "");
}

/* Copies positions and responses. Returns MEMORY. */
static gpuconv_status convert(const char *path, const struct MYSOFA_HRTF *h, gc_sofa **sofa, gpuconv_error *error) {
    double longest = 0;
    bool fractions = false;
    for (int64_t m = 0; m < h->M; m++)
        for (int64_t r = 0; r < h->R; r++) {
            const double delay = delay_of(h, m, r);
            longest = fmax(longest, delay);
            fractions = fractions || delay != floor(delay);
        }
    const int64_t lead = fractions ? HALF_SINC : 0;
    const int64_t frames = h->N + (int64_t)ceil(longest) + 2 * lead;
    gpuconv_status fits = gc_ir_check_memory((int64_t)h->M * h->R, (double)frames, 0, error);
    if (fits)
        return fits;
    gc_sofa *s = gc_sofa_blank((int)h->M, (int)h->R, frames);
    if (!s)
        return gc_fail_memory(error, path);
    char type[64] = "Type";
    const char *coordinates = mysofa_getAttribute(h->SourcePosition.attributes, type);
    const bool spherical = !coordinates || strncmp(coordinates, "spherical", 9) == 0;
    s->rate = (double)h->DataSamplingRate.values[0];
    s->lead = lead;
    s->longest_delay = longest;
    copy_attribute(h, "SOFAConventions", s->conventions, sizeof s->conventions);
    copy_attribute(h, "Title", s->title, sizeof s->title);
    copy_attribute(h, "ListenerShortName", s->listener, sizeof s->listener);
    for (int64_t m = 0; m < h->M; m++) {
        place(h, spherical, m, s->position + 3 * m);
        for (int64_t r = 0; r < h->R; r++)
            add_delayed(h->DataIR.values + (m * h->R + r) * h->N, h->N, delay_of(h, m, r), lead,
                        s->taps + (m * h->R + r) * frames);
    }
    *sofa = s;
    return GPUCONV_OK;
}

gpuconv_status gc_sofa_load(const char *path, gc_sofa **sofa, gpuconv_error *error) {
    int err = MYSOFA_OK;
    struct stat st;
    *sofa = NULL;
    if (stat(path, &st) != 0)
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: is no regular file", path);
    struct MYSOFA_HRTF *h = mysofa_load(path, &err);
    if (!h)
        return err == MYSOFA_NO_MEMORY    ? gc_fail_memory(error, path)
               : err == MYSOFA_READ_ERROR ? gc_fail(error, GPUCONV_ERROR_FILE, "%s: cannot be read", path)
                                          : gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: %s", path, reason_of(err));
    gpuconv_status status = check(path, h, error);
    if (!status)
        status = convert(path, h, sofa, error);
    mysofa_free(h);
    return status;
}

#else

gpuconv_status gc_sofa_load(const char *path, gc_sofa **sofa, gpuconv_error *error) {
    *sofa = NULL;
    return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED,
                   "%s: this build reads no SOFA files; build it with libmysofa (Debian: libmysofa-dev)", path);
}

#endif
