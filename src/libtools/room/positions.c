/* Means over positions and over bands. */
#include "positions.h"

#include <math.h>

const gc_quantity_info gc_quantity_about[GC_QUANTITIES] = {
    [GC_T20] = {"T20", "s", "reverberation time T20", 0.05, true},
    [GC_T30] = {"T30", "s", "reverberation time T30", 0.05, true},
    [GC_EDT] = {"EDT", "s", "early decay time EDT", 0.05, true},
    [GC_C80] = {"C80", "dB", "clarity C80", 1, false},
    [GC_D50] = {"D50", "%", "definition D50", 5, false},
    [GC_LEVEL] = {"level", "dB", "level of the response", 1, false},
    [GC_CENTRE] = {"Ts", "ms", "centre time Ts", 10, false},
};

double gc_quantity_of(const gc_figure *f, gc_quantity quantity) {
    const gc_acoustics *a = &f->a;
    switch (quantity) {
    case GC_T20:
        return a->t20;
    case GC_T30:
        return a->t30;
    case GC_EDT:
        return a->edt;
    case GC_C80:
        return a->c80;
    case GC_D50:
        return 100 * a->d50;
    case GC_CENTRE:
        return 1000 * a->centre;
    default:
        return !isnan(f->strength) ? f->strength : a->energy > 0 ? 10 * log10(a->energy) : (double)NAN;
    }
}

/* Returns the channels of a file that are positions. */
static int positions_of(const gc_positions *p, const gc_figures *f) {
    return f->channels - (p->lateral > 0);
}

int gc_positions_count(const gc_positions *p) {
    int count = 0;
    for (int i = 0; i < p->files; i++)
        count += positions_of(p, &p->figures[i]);
    return count;
}

const gc_figures *gc_positions_at(const gc_positions *p, int k, int *channel) {
    const gc_figures *f = p->figures;
    for (; k >= positions_of(p, f); f++)
        k -= positions_of(p, f);
    *channel = p->lateral && k >= p->lateral - 1 ? k + 1 : k;
    return f;
}

const gc_figures *gc_positions_widest(const gc_positions *p) {
    const gc_figures *widest = p->figures;
    for (int i = 1; i < p->files; i++)
        widest = p->figures[i].bands > widest->bands ? &p->figures[i] : widest;
    return widest;
}

void gc_mean_add(gc_mean *m, double value) {
    if (!isfinite(value))
        return;
    double off = value - m->mean; /* Welford 1962 */
    m->mean += off / ++m->count;
    m->deviation += off * (value - m->mean);
}

gc_mean gc_mean_finish(gc_mean m) {
    m.deviation = m.count > 1 ? sqrt(m.deviation / (m.count - 1)) : (double)NAN;
    m.mean = m.count ? m.mean : (double)NAN;
    return m;
}

gc_mean gc_positions_mean(const gc_positions *p, double nominal, gc_quantity quantity) {
    gc_mean m = {0};
    for (int i = 0; i < p->files; i++) {
        const gc_figures *f = &p->figures[i];
        for (int k = 0; k < f->channels * f->bands; k++)
            if (f->figure[k].band.nominal == nominal && f->figure[k].channel + 1 != p->lateral)
                gc_mean_add(&m, gc_quantity_of(&f->figure[k], quantity));
    }
    return gc_mean_finish(m);
}

/* Returns the mean over two neighbouring octaves, or the third-octaves in them. @param low the lower octave */
static double mean_of_octaves(const gc_figures *f, int channel, gc_quantity quantity, double low) {
    double sum = 0, octaves = 0;
    for (int b = 1; b < f->bands; b++) {
        const gc_figure *figure = gc_figure_at(f, channel, b);
        if (figure->band.centre < low / sqrt(2) || figure->band.centre > low * 2 * sqrt(2))
            continue;
        double width = log2(figure->band.high / figure->band.low);
        sum += width * gc_quantity_of(figure, quantity);
        octaves += width;
    }
    return octaves > 1.9 ? sum / octaves : (double)NAN;
}

double gc_mid_of(const gc_figures *f, int channel, gc_quantity quantity) {
    return mean_of_octaves(f, channel, quantity, 500);
}

double gc_bass_ratio(const gc_figures *f, int channel) {
    return mean_of_octaves(f, channel, GC_T30, 125) / mean_of_octaves(f, channel, GC_T30, 500);
}
