/* Responses from files of numbers: texts of coefficients, and the headers of arrays of NumPy.
 *
 * A text has a frame in each row and a channel in each column, as core/table.h divides them. If it has more columns
 * than rows, a row is a channel, as MATLAB saves vectors. A first column that counts frames or seconds is no channel.
 * The rate is that of a heading ("Sample rate: 48000", "fs = 48 kHz"), of REW's "Sample interval (seconds)", or of the
 * column of seconds. */
#ifndef GC_IR_NUMBERS_H
#define GC_IR_NUMBERS_H

#include "gpuconv.h"

#include <stdbool.h>

/* Returns whether a file is a text of coefficients: one that ends in .csv, .tsv, .dat or .asc, or in .txt if its first
 * row consists of numbers. Other files that end in .txt are matrices of routes. */
bool gc_is_text_of_taps(const char *path);

/* Reads a text of coefficients. @param rate of a text that states none; 0: such a text is refused
 * @return FILE, FORMAT, MEMORY, CANCELLED */
gpuconv_status gc_ir_read_text(const char *path, double rate, gpuconv_ir **ir, gpuconv_error *error);

/* Refuses a file that states no sampling rate. */
gpuconv_status gc_fail_without_rate(const char *path, gpuconv_error *error);

/* The array of a file of NumPy: int16, int32, float32 or float64 of one or two dimensions, the longer of which is
 * time (the first one if they are equal). */
typedef struct gc_npy {
    const char *encoding; /* of gc_input_options.raw */
    int channels;
    int64_t frames, begin; /* begin: of the samples, in bytes */
    bool planar;           /* the frames of a channel follow each other */
} gc_npy;

/* Parses the header of an open file of `size` bytes, whose position it moves to the samples. @return FILE, FORMAT */
gpuconv_status gc_npy_parse(int fd, int64_t size, const char *path, gc_npy *npy, gpuconv_error *error);

#endif
