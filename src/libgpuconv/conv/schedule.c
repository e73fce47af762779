/*
 * Cutting up a response.
 *
 * Overlap-save (Oppenheim & Schafer, Discrete-Time Signal Processing, 8.7.3): a circular convolution of `transform`
 * points is the linear one except in its first taps - 1 outputs; the last hop <= transform - taps + 1 are kept.
 *
 *      input    |--- history ----|------------- hop -------------|
 *      output   |    (wrapped)   |============ kept =============|
 *
 * Partitioned (Stockham 1966; Wefers, Partitioned convolution algorithms for real-time auralization, 2015, ch. 5):
 * partition p of the response meets the input of p hops ago, so a delay line of input spectra serves all partitions.
 */
#include "plan.h"

#include "libgpuconv/core/memory.h"

/* Begins a schedule with transforms. Returns false if there is none of this size. */
static bool begin(int64_t taps, int64_t transform, gc_schedule *s) {
    *s = (gc_schedule){.taps = taps, .transform = transform, .hop = 1, .partition = taps, .partitions = 1};
    return taps >= 1 && transform >= 4 && (transform & (transform - 1)) == 0;
}

bool gc_schedule_direct(int64_t taps, int64_t transform, gc_schedule *s) {
    (void)transform;
    *s = (gc_schedule){.taps = taps, .hop = 1, .partition = taps, .partitions = 1};
    return taps >= 1;
}

bool gc_schedule_overlap_save(int64_t taps, int64_t transform, gc_schedule *s) {
    if (!begin(taps, transform, s))
        return false;
    s->hop = transform - taps + 1;
    if (s->hop >= 64)
        s->hop -= s->hop % 32;
    return s->hop > 1;
}

bool gc_schedule_partitioned(int64_t taps, int64_t transform, gc_schedule *s) {
    if (!begin(taps, transform, s))
        return false;
    s->hop = s->partition = transform / 2;
    s->partitions = gc_divide_up(taps, s->partition);
    return true;
}

bool gc_schedule_dense(int64_t taps, int64_t transform, gc_schedule *s) {
    return (gc_schedule_overlap_save(taps, transform, s) && s->hop >= transform / 4) ||
           gc_schedule_partitioned(taps, transform, s);
}

int64_t gc_schedule_overlap(const gc_schedule *s) {
    return s->transform ? s->transform - s->hop : s->taps - 1;
}

int64_t gc_schedule_history(const gc_schedule *s) {
    return gc_schedule_overlap(s) + (s->partitions - 1) * s->hop;
}
