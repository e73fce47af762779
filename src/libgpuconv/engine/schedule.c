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
#include "schedule.h"

bool gc_schedule_make(gpuconv_algorithm algorithm, int64_t taps, int64_t transform, gc_schedule *s) {
    *s = (gc_schedule){.algorithm = algorithm, .taps = taps, .partition = taps, .partitions = 1, .hop = 1};
    if (taps < 1)
        return false;
    if (algorithm == GPUCONV_ALGORITHM_DIRECT)
        return true;
    if (transform < 4 || (transform & (transform - 1)) != 0)
        return false;
    s->transform = transform;
    if (algorithm == GPUCONV_ALGORITHM_OVERLAP_SAVE) {
        s->hop = transform - taps + 1;
        if (s->hop >= 64)
            s->hop -= s->hop % 32;
        return s->hop > 1;
    }
    if (algorithm == GPUCONV_ALGORITHM_PARTITIONED) {
        s->hop = s->partition = transform / 2;
        s->partitions = (taps + s->partition - 1) / s->partition;
        return true;
    }
    return false;
}

int64_t gc_schedule_history(const gc_schedule *s) {
    if (s->algorithm == GPUCONV_ALGORITHM_PARTITIONED)
        return s->partitions * s->partition;
    if (s->algorithm == GPUCONV_ALGORITHM_MATRIX)
        return s->transform - s->hop + (s->partitions - 1) * s->hop;
    return s->algorithm == GPUCONV_ALGORITHM_OVERLAP_SAVE ? s->transform - s->hop : s->taps - 1;
}
