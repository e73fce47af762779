/* The length and format that the header of a file states, found without decoding.
 *
 * libsndfile 1.2 does not end on some damaged headers of WAV, RF64 and BW64. It therefore reads a header that
 * gc_riff_parse writes: the format, the metadata that are valid, and the true sizes. In other files it
 * shortens, without a report, a size in the header that is larger than the file. It estimates the length of an MPEG
 * file from its first frame, and reads only the first of several streams. */
#ifndef GC_AUDIO_EXTENT_H
#define GC_AUDIO_EXTENT_H

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
    int64_t missing;       /* frames that the header states and the file lacks; 0: none, or less than a block */
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

/* A stream of an Ogg file in which several follow one another. */
typedef struct gc_link {
    int64_t begin, bytes; /* in the file */
    int64_t safe;         /* frame up to which libsndfile seeks correctly: the end of the third page from the end */
    int64_t frames;       /* set by the reader; -1: unknown */
} gc_link;

typedef struct gc_extent {
    int64_t missing,
        stated;      /* bytes of samples that the header states and the file lacks; 0: none. All that it states */
    int64_t frames;  /* counted, or stated by the header; -1: libsndfile's number is right */
    bool goes_on;    /* libsndfile does not stop behind `frames`, so that the end can be checked */
    int64_t skip;    /* bytes at the beginning that libsndfile must not see */
    int64_t claimed; /* length of the file in bytes that libsndfile must be told; 0: the true one */
    gc_link *link;   /* Ogg: at least one; else NULL. Owned by the caller */
    int links;
    char note[128]; /* names the part that is not read, for the user; "": all is read */
} gc_extent;

/* Finds the extent of a file in AIFF, AU, CAF, W64, SVX, FLAC, Ogg or MPEG audio; of other files all members are 0 or
 * -1. Returns false without memory. */
bool gc_extent_find(const gc_riff_input *input, gc_extent *extent);

enum { GC_FLAC_HEAD = 42 /* bytes of the marker, the head of the first block and its data */ };

/* Writes the beginning of a FLAC file with an unknown length, so that libFLAC reads to the end of the file. Returns
 * false if the file does not begin as a FLAC file. */
bool gc_extent_open_flac(const gc_riff_input *input, unsigned char head[GC_FLAC_HEAD]);

#endif
