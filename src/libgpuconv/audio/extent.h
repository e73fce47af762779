/* What a file holds, found without decoding. libsndfile takes a size from a header that the file is too short for down
 * to what is there, estimates the length of an MPEG file from its first frame, and reads only the first of several
 * streams; none of it is reported. */
#ifndef GC_AUDIO_EXTENT_H
#define GC_AUDIO_EXTENT_H

#include "riff.h"

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

/* Returns true if a size in bytes is one that programs write if they do not know the length. */
bool gc_extent_is_unknown(uint64_t size, int bits);

enum { GC_FLAC_HEAD = 42 /* bytes of the marker, the head of the first block and its data */ };

/* Writes the beginning of a FLAC file with an unknown length, so that libFLAC reads to the end of the file. Returns
 * false if the file does not begin as a FLAC file. */
bool gc_extent_open_flac(const gc_riff_input *input, unsigned char head[GC_FLAC_HEAD]);

#endif
