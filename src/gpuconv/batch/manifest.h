/* Manifests: what a batch is to do, one entry a line, from a CSV or JSON Lines file or from patterns of file names. */
#ifndef GPUCONV_BATCH_MANIFEST_H
#define GPUCONV_BATCH_MANIFEST_H

#include "gpuconv.h"

typedef struct gc_entry {
    int64_t line;                    /* of the manifest, 1.. */
    char *input, *response, *output; /* output: below the batch's folder */
    double gain, wet, dry;           /* decibels; dry -INFINITY: none */
    double offset, length;           /* seconds of the input; length -1: to its end */
    bool somewhere;                  /* the offset is drawn by `seed`, so that `length` fits */
    uint64_t seed;
    bool shared; /* another entry has the response too */
    char *wrong; /* why this line is no entry; NULL: it is one */
} gc_entry;

typedef struct gc_manifest {
    gc_entry *entry;
    int64_t entries;
} gc_manifest;

/* Reads CSV (the first line names the columns: input, response, output, gain, wet, dry, offset, length, seed; the last
 * seven may be missing or empty) or, if its name ends in .jsonl, .ndjson or .json, an object of these names a line. A
 * line that is wrong becomes an entry that says why. An output that is not named is the input's name without folders,
 * as WAV. Two entries of one output, an output outside its folder: wrong. FILE, FORMAT (no columns), MEMORY. */
gpuconv_status gc_manifest_read(const char *path, gc_manifest *manifest, gpuconv_error *error);

typedef enum gc_pick { GC_PICK_RANDOM = 0, GC_PICK_ALL, GC_PICK_CYCLE } gc_pick;

/* Every file that `inputs` matches with a response, of those that `responses` matches, that is drawn by `seed`, with
 * all of them, or with the next. Names are sorted first, so that the same files and seed give the same manifest. FILE
 * (nothing matches), MEMORY. */
gpuconv_status gc_manifest_pick(const char *inputs, const char *responses, gc_pick pick, uint64_t seed,
                                gc_manifest *manifest, gpuconv_error *error);

/* As CSV with all columns; the folders above it are made. FILE, MEMORY. */
gpuconv_status gc_manifest_write(const gc_manifest *manifest, const char *path, gpuconv_error *error);

void gc_manifest_free(gc_manifest *manifest);

/* Makes an entry wrong, unless it is so already: what is wrong, and the value that is, or NULL. False: no memory. */
bool gc_entry_refuse(gc_entry *entry, const char *what, const char *value);

/* The next of a sequence of random numbers (splitmix64: Steele, Lea & Flood, OOPSLA 2014). */
uint64_t gc_random(uint64_t *state);

#endif
