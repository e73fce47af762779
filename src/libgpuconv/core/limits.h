/* Limits of files and responses. */
#ifndef GC_CORE_LIMITS_H
#define GC_CORE_LIMITS_H

enum {
    GC_CHANNELS_MOST = 1024, /* channels of a file; inputs or outputs of a response */
    GC_RATE_MOST = 10000000  /* frames a second of a file or a response */
};

#endif
