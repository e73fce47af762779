/* The places of sources and the turn of the head at the moments of a chunk. */
#include "head.h"
#include "libgpuconv/dsp/delay_line.h"
#include "motion.h"
#include "path.h"

#include <math.h>
#include <string.h>

gc_rotation gc_motion_head(gpuconv_motion *m, double seconds) {
    double angle[3] = {0};
    if (atomic_load_explicit(&m->head_rotated, memory_order_acquire))
        for (int k = 0; k < 3; k++)
            angle[k] = atomic_load_explicit(&m->angle[k], memory_order_relaxed);
    else if (m->config.head)
        gc_head_at(m->config.head, seconds, angle);
    return gc_rotation_of(angle[0], angle[1], angle[2]);
}

double gc_motion_find_place(const gpuconv_motion *m, double time, int channel, const double ear[3], double at[3]) {
    enum { ITERATIONS = 8 };
    double seconds = 0, placed[3];
    for (int k = 0; k < 3; k++)
        placed[k] = atomic_load_explicit(&m->placed[3 * channel + k], memory_order_acquire);
    for (int i = 0; i < (m->config.doppler ? ITERATIONS : 1); i++) {
        if (isnan(placed[0]))
            gc_path_at(m->path, fmax(0, time - seconds), channel, at);
        else if (m->room)
            memcpy(at, placed, sizeof placed);
        else
            gc_path_point(placed, at);
        const double away[3] = {at[0] - ear[0], at[1] - ear[1], at[2] - ear[2]};
        seconds = sqrt(away[0] * away[0] + away[1] * away[1] + away[2] * away[2]) / m->speed;
    }
    return m->config.doppler ? seconds * m->rate : 0;
}

double gc_motion_time(gpuconv_motion *m, int64_t moment) {
    const int64_t late = m->path->ambisonic ? 0 : GC_DELAY_REACH - m->base + m->lead;
    return (double)((m->chunk * m->hops + moment) * m->hop - late + atomic_load(&m->ahead)) / m->rate;
}
