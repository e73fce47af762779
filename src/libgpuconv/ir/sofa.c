/* The set of measured responses: memory and search. */
#include "sofa.h"

#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

gc_sofa *gc_sofa_blank(int measurements, int receivers, int64_t frames) {
    int64_t responses = (int64_t)measurements * receivers, taps;
    gc_sofa *s = gc_calloc(1, sizeof *s);
    if (!s)
        return NULL;
    *s = (gc_sofa){.frames = frames, .measurements = measurements, .receivers = receivers};
    s->position = gc_calloc(measurements, 3 * (int64_t)sizeof *s->position);
    if (!__builtin_mul_overflow(responses, frames, &taps))
        s->taps = gc_calloc(taps, sizeof *s->taps);
    if (!s->position || !s->taps) {
        gc_sofa_free(s);
        return NULL;
    }
    return s;
}

void gc_sofa_free(gc_sofa *s) {
    if (!s)
        return;
    free(s->position);
    free(s->taps);
    free(s);
}

bool gc_is_sofa(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot && gc_same_word(dot, ".sofa");
}

static double length_of(const double v[3]) {
    return sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
}

/* Returns the angle between two vectors in radians, exact also for small angles: of the cross and the dot product. */
static double angle_between(const double a[3], const double b[3]) {
    const double cross[3] = {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
    return atan2(length_of(cross), a[0] * b[0] + a[1] * b[1] + a[2] * b[2]);
}

int gc_sofa_nearest(const gc_sofa *s, const double at[3], double *degrees) {
    const double same = 1e-6, pi = 3.14159265358979323846, wanted = length_of(at);
    double least = HUGE_VAL, off = HUGE_VAL;
    int best = 0;
    for (int m = 0; m < s->measurements; m++) {
        const double *p = s->position + 3 * (int64_t)m;
        const double angle = angle_between(p, at), farther = fabs(length_of(p) - wanted);
        if (angle < least - same || (angle < least + same && farther < off)) {
            least = fmin(angle, least);
            off = farther;
            best = m;
        }
    }
    *degrees = least * 180 / pi;
    return best;
}
