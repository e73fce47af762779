/* Parser for WAV, RF64 and BW64. libsndfile 1.2 does not end on some damaged headers. It therefore reads a header
 * that gc_riff_parse writes: the format, the metadata that are valid, and the true sizes. */
#ifndef GC_AUDIO_RIFF_H
#define GC_AUDIO_RIFF_H

#include <stdbool.h>
#include <stdint.h>

/* Access to the bytes of a file or stream. */
typedef struct gc_riff_input {
    /* Reads up to `count` bytes at offset `at`. Returns how many were read: fewer at the end of the file or after an
     * error. */
    int64_t (*read)(void *file, int64_t at, void *bytes, int64_t count);
    void *file;
    int64_t length; /* of the file in bytes; -1: a stream, in which nothing behind the samples is read */
} gc_riff_input;

typedef struct gc_riff {
    int64_t begin;         /* offset of the first sample in bytes; 0: no samples were found */
    int64_t bytes;         /* of samples. File: how many exist. Stream: how many the header states; -1: unknown */
    int64_t stated;        /* bytes of samples that the header states; -1: unknown */
    int64_t missing;       /* of them, in a file, those that are not there; 0: none, or less than a block */
    int64_t behind;        /* bytes of a file behind the samples that belong to no chunk */
    int64_t fact;          /* frames that the header states; 0: it does not */
    int64_t blocks;        /* of frames, or of coded frames, that there are in a file */
    bool has_fixed_frames; /* all frames of the encoding have the same number of bytes */
    unsigned char *header; /* the header for libsndfile; owned by the caller; NULL: not a WAV */
    int64_t header_bytes;
} gc_riff;

/* The file size that libsndfile must be told for a stream of unknown length: more than any stream carries, and far
 * below INT64_MAX. */
#define GC_RIFF_UNBOUNDED (INT64_C(1) << 60)

/* Parses a file or stream and writes a header for its samples. A size from the file is only compared with other numbers
 * until the bytes that it states were read. In a file, a damaged chunk is skipped by a search for the next `fmt ` or
 * `data` chunk. Returns false without memory. */
bool gc_riff_parse(const gc_riff_input *input, gc_riff *riff);

#endif
