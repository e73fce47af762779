/* What the files of the BruteFIR reader share: words and coefficients. */
#ifndef GC_IR_BRUTEFIR_H
#define GC_IR_BRUTEFIR_H

#include "matrix.h"

enum { GC_BRUTEFIR_NAME = 64, GC_BRUTEFIR_MAX = 1024 /* coefficients, channels */ };

/* A word of the text: a name or number, a string in quotation marks, one of the signs {}:;,/ or the end. */
typedef struct gc_brutefir_word {
    char text[1024];
    bool quoted;
    char sign; /* 0: text */
    bool end;
} gc_brutefir_word;

typedef struct gc_brutefir_coeff {
    char name[GC_BRUTEFIR_NAME];
    char file[1024], format[32]; /* file "": not given */
    double factor;
    int64_t blocks; /* 0 or less: all */
    int index;      /* of the response in the matrix; -1: a single tap */
    int line;
} gc_brutefir_coeff;

/* A channel that input or output names. */
typedef struct gc_brutefir_channel {
    char name[GC_BRUTEFIR_NAME];
    int device; /* number of the channel of all devices, from 0 */
    bool muted;
} gc_brutefir_channel;

/* The inputs or the outputs. */
typedef struct gc_brutefir_side {
    gc_brutefir_channel *channel;
    int count, open; /* names, and channels of the devices */
} gc_brutefir_side;

typedef struct gc_brutefir {
    gc_matrix *matrix;
    gc_lines *lines;
    const char *at;        /* what comes next of the current line; NULL: the first line was not read yet */
    gc_brutefir_word word; /* the current one */
    gc_brutefir_side input, output;
    gc_brutefir_coeff *coeff;
    int coeffs;
    double rate;
    int64_t block, blocks; /* of filter_length: frames and their number; 0: not given */
} gc_brutefir;

/* Reads the next word into b->word. Returns FILE, FORMAT. */
gpuconv_status gc_brutefir_next(gc_brutefir *b, gpuconv_error *error);

/* Returns whether the current word is a sign. */
static inline bool gc_brutefir_is(const gc_brutefir *b, char sign) {
    return b->word.sign == sign;
}

/* Fails unless the current word is `sign`, then reads the next one. */
gpuconv_status gc_brutefir_expect(gc_brutefir *b, char sign, gpuconv_error *error);

/* Reads a number and the word behind it. */
gpuconv_status gc_brutefir_number(gc_brutefir *b, double *value, gpuconv_error *error);

/* Reads an integer in a range and the word behind it. `what` names it in messages. */
gpuconv_status gc_brutefir_integer(gc_brutefir *b, const char *what, int64_t least, int64_t most, int64_t *value,
                                   gpuconv_error *error);

/* Reads the response of a coefficient into the matrix. Returns the errors of reading. */
gpuconv_status gc_brutefir_load(gc_brutefir *b, gc_brutefir_coeff *coeff, gpuconv_error *error);

#endif
