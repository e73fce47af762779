/* Ranges of values that the library, the command and their tests share, and the factor of a level. */
#ifndef GC_CORE_LIMITS_H
#define GC_CORE_LIMITS_H

#include <math.h>
#include <stdbool.h>

enum {
    GC_MAX_CHANNELS = 1024, /* channels of a file; inputs or outputs of a response */
    GC_MAX_SOURCES = 16384, /* channels that move, of a program */
    GC_MAX_RATE = 10000000, /* frames per second of a file or a response */
    GC_MAX_DECIBELS = 200   /* gains, wet and dry levels are -200 to 200 dB */
};

/* Returns whether a rate is 1 to GC_MAX_RATE Hz; false for NaN. */
static inline bool gc_is_rate(double rate) {
    return rate >= 1 && rate <= GC_MAX_RATE;
}

/* Returns whether a gain is within the range of gains; false for NaN. */
static inline bool gc_is_gain(double decibels) {
    return decibels >= -GC_MAX_DECIBELS && decibels <= GC_MAX_DECIBELS;
}

/* Returns the factor of a level in decibels; 0 for -INFINITY. */
static inline double gc_level_factor(double decibels) {
    return decibels > -HUGE_VAL ? pow(10, decibels / 20) : 0;
}

#endif
