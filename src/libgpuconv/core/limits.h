/* Limits of audio files and impulse responses. */
#ifndef GC_CORE_LIMITS_H
#define GC_CORE_LIMITS_H

enum {
    GC_MAX_CHANNELS = 1024, /* channels of a file; inputs or outputs of an impulse response */
    GC_MAX_RATE = 10000000  /* sampling rate in Hz of a file or an impulse response */
};

#endif
