/*
 * The C interface of the kernels for jobs on the caller's device memory (gpuconv_arrays.h). Included by kernels.h,
 * whose rules and types apply.
 *
 * Every operation of a job is a sum of circular products of 2 N real points in overlap-save order. With `reflect` the
 * spectrum of the response is conjugated, which turns the convolution into a correlation:
 *
 *      convolve                target[n] = gain sum over k of h[k] source[n + shift + lo - k]
 *      convolve, reflected     target[n] = gain sum over k of h[k] source[n + shift + lo + k]      (lo = 0)
 *      gradient                target[k] = sum over rows, n of gain x[n] g[n + shift + k]
 *
 * Segment s of `hop` frames reads the points s hop + shift ... + 2 N - 1 of the source and keeps the points lo .. lo +
 * hop - 1 as target frames s hop ... .
 */
#ifndef GC_KERNELS_JOB_H
#define GC_KERNELS_JOB_H

#include "libgpuconv/dsp/pcm.h"

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gck_sample { GCK_F32, GCK_F16, GCK_BF16 } gck_sample;

/* Rows of samples. Row i begins at element starts[i], or i * stride, and has lengths[i] frames, at most `frames`. Frame
 * n is n * step elements behind the first, |step| < 2^29. A length below 0: neither this row nor one behind it exists,
 * and all lengths behind it are below 0. Copies and direct sums take any step, and so do the responses
 * of gck_chip_spectra and gck_3pass_forward; all other rows have a step of 1. */
typedef struct gck_rows {
    void *data;
    int64_t frames, stride;
    int step;
    const int64_t *starts, *lengths; /* or NULL */
    int sample;                      /* gck_sample */
} gck_rows;

/* Rows that are written. */
typedef struct gck_target {
    gck_rows rows;
    int accumulate;
} gck_target;

/* Factors of the samples of a job. Each is an array of rows like the array that it belongs to; `data` NULL: there is
 * none. The samples of the source are multiplied by `source` before the convolution. Where s is the result of the
 * convolution, the sample of the target is
 *
 *      target (s + factor skip), or, with `skip_last`, target s + factor skip skip_gate */
typedef struct gck_gates {
    gck_rows source, target, skip, skip_gate;
    const float *factor; /* per row; NULL: there is no skip */
    int skip_last;
} gck_gates;

/* Row i uses response (i / group) % responses. group <= rows, responses <= rows, and group x responses < 2^31. */
typedef struct gck_sharing {
    int rows, group, responses;
} gck_sharing;

/* ---- Copies (rows/move.cu) ----------------------------------------------------------------------------------------
 */

/* Copies `frames` frames of rows, through `gates` if it is not NULL, and converts the samples; behind the end of a row
 * of `from` they are 0. The sources and the target may be the same memory. */
cudaError_t gck_move(const gck_rows *from, const gck_gates *gates, const gck_target *to, int64_t rows, int64_t frames,
                     cudaStream_t stream);

cudaError_t gck_move_load(void); /* loads the kernel on the current device */

/* A file in device memory: its samples as they are stored, interleaved, and as floats, channel after channel. */
typedef struct gck_file {
    void *raw;
    float *planar;
    int64_t frames;
    int channels;
    gc_pcm format;
    unsigned long long *clipped; /* gck_pack_files: the number of samples that were clipped is added */
} gck_file;

/* Converts files of at most `samples` samples, to floats and back. `files` is device memory. Integers are rounded and
 * clipped as gck_pack does. */
cudaError_t gck_unpack_files(const gck_file *files, int count, int64_t samples, cudaStream_t stream);
cudaError_t gck_pack_files(const gck_file *files, int count, int64_t samples, cudaStream_t stream);

/* ---- Sequences (rows/sequences.cu) --------------------------------------------------------------------------------
 */

enum { GCK_SEQUENCE_CLASSES = 40 };

/* As gpuconv_sequences. The rows are at most 2^30. */
typedef struct gck_sequences {
    const int64_t *offsets;
    int64_t frames, taps, bounds[GCK_SEQUENCE_CLASSES];
    int sequences, channels, classes, own;
    int64_t *table;
    gck_rows cleared; /* `data` NULL: nothing is cleared */
} gck_sequences;

cudaError_t gck_sequences_load(void); /* loads the kernel on the current device */
cudaError_t gck_sort_sequences(const gck_sequences *sequences, cudaStream_t stream);

/* ---- A whole transform on the chip (rows/chip.cu) -----------------------------------------------------------------
 */

/* Sizes of the transform, N = 128, 256, ... 16384 complex points. */
enum { GCK_CHIP_SIZES = 8 };

typedef struct gck_chip_sizes {
    int64_t points;   /* N */
    int64_t twiddles; /* float2 of the table */
    int shared_bytes; /* of shared memory per block */
    int threads;      /* per block */
    int resident;     /* blocks that the registers of a multiprocessor allow */
    int groups;       /* transforms of a block at a time */
    int keeps;        /* whether `transforms` of a job is served */
} gck_chip_sizes;

/* Returns the figures of size 0 .. GCK_CHIP_SIZES - 1. */
gck_chip_sizes gck_chip_query(int size);

/* Writes the twiddle table, in host memory. */
void gck_chip_twiddles(int64_t size, float2 *twiddles);

/* Load kernels on the current device, so that no launch has to: those of convolutions of a size, or all of
 * rows/chip*.cu whose shared memory the device has. */
cudaError_t gck_chip_load_size(int size);
cudaError_t gck_chip_load(int shared_bytes_max);
cudaError_t gck_chip_load_gradient(int shared_bytes_max); /* the part of rows/chip_gradient.cu */

/* A convolution, plain or reflected, with one response per row. */
typedef struct gck_chip_job {
    gck_rows source, response;
    gck_target target;
    gck_sharing sharing;
    const float2 *spectra; /* responses x N from gck_chip_spectra; NULL: `response` is transformed where it is used */
    const float *gain;     /* per row, or NULL */
    int64_t taps, shift;
    int segments, hop, lo, reflect; /* rows x segments < 2^30 */
    int splits;                     /* a row is computed by this many blocks, each a range of its segments */
    unsigned blocks;                /* of the grid */
    const float2 *twiddles;         /* of this size */
    float2 *scratch;                /* blocks x groups x N, unused if `spectra` is given */
    float2 *transforms; /* rows x N, where rows of one segment leave their transforms; or NULL. Not for gates */
    int gated;          /* there are gates: their samples and those of source and target have one type, and
                           steps of 1 */
    gck_gates gates;
} gck_chip_job;

cudaError_t gck_chip_convolve(int size, const gck_chip_job *job, cudaStream_t stream);

/* Computes the spectra of rows of responses, scaled for the inverse. */
cudaError_t gck_chip_spectra(int size, const gck_rows *response, int64_t responses, int64_t taps,
                             const float2 *twiddles, float2 *spectra, cudaStream_t stream);

/* The gradient by the response: rows x of the signal and g of the output's gradient. */
typedef struct gck_chip_gradient {
    gck_rows x, g;
    gck_target target;
    gck_sharing sharing;
    const float *gain; /* per row of x, or NULL */
    int64_t taps, shift;
    int segments;           /* rows x segments < 2^30 */
    int hop;                /* 2 N - taps + 1 */
    int splits;             /* blocks that share the sum of a response */
    unsigned blocks;        /* of the grid */
    const float2 *twiddles; /* of this size */
    float2 *scratch;        /* blocks x groups x 2 N; for gck_chip_both 3 N */
    float *partial;         /* splits x responses x taps; unused if splits is 1 */
    int gated;              /* as in gck_chip_job */
    gck_rows x_gate, g_gate;
    /* For gck_chip_both alone: */
    gck_target signal; /* the gradient by the signal */
    gck_rows response;
    const float2 *spectra;    /* as in gck_chip_job */
    const float2 *transforms; /* of x, written by gck_chip_convolve; or NULL */
} gck_chip_gradient;

cudaError_t gck_chip_gradient_response(int size, const gck_chip_gradient *job, cudaStream_t stream);

/* Both gradients (rows/chip_both.cu), from the same transforms of g. x, g, `signal` and the response have samples of
 * one type and steps of 1; there are neither gains nor gates, and `signal` is overwritten. Returns what a block takes;
 * `scratch` is as above. */
gck_chip_sizes gck_chip_query_both(int size);
cudaError_t gck_chip_load_both(int shared_bytes_max);
cudaError_t gck_chip_both(int size, const gck_chip_gradient *job, cudaStream_t stream);

/* Adds up `splits` parts of sums of `frames` frames for each of `responses` rows, partial [split][response][frame], and
 * stores them. */
cudaError_t gck_sum_parts(const gck_target *target, const float *partial, int splits, int64_t responses, int64_t frames,
                          cudaStream_t stream);

/* ---- Direct sums (rows/direct.cu) ---------------------------------------------------------------------------------
 */

enum {
    GCK_JOB_DIRECT_OUTPUTS = 8,    /* frames of a thread */
    GCK_JOB_DIRECT_UNIT = 32,      /* terms */
    GCK_JOB_DIRECT_THREADS = 384,  /* of a block */
    GCK_JOB_DIRECT_GROUPS = 64,    /* of GCK_JOB_DIRECT_OUTPUTS frames in a tile, at most */
    GCK_JOB_DIRECT_CHUNK = 2048,   /* terms that a block loads at a time, at most */
    GCK_JOB_DIRECT_SHARED = 34816, /* bytes of shared memory of a block, at most */
    GCK_JOB_DIRECT_FRAMES = 1 << 28,
    GCK_JOB_DIRECT_GRID = 65535 /* rows, responses and splits, at most */
};

/* A convolution or correlation of rows with a response each, or its gradient by the responses. Frame n of a target row
 * is
 *
 *      gain sum over k < terms of factor[k] source[n + shift + k],         with `reverse` source[n + shift - k]
 *
 * with the factor response_of(row); for the gradient the target is a response, and the sum goes over all rows that
 * share it, with the row itself as the factor and its gain before the sum. */
typedef struct gck_job_direct {
    gck_rows source, factor;
    gck_target target;
    gck_sharing sharing;
    const float *gain; /* per row, or NULL */
    int terms, shift;  /* magnitudes, and those of the frames of all rows: at most GCK_JOB_DIRECT_FRAMES */
    int reverse;
    int groups, parts; /* threads of a block: `groups` of GCK_JOB_DIRECT_OUTPUTS frames x `parts` of the terms */
    int chunk;         /* terms that a block loads at a time: a multiple of GCK_JOB_DIRECT_UNIT */
    int each;          /* units of a thread; parts x each units are a chunk or more */
    int tiles;         /* of groups x GCK_JOB_DIRECT_OUTPUTS frames, in a target row */
    int splits;        /* blocks that share a sum of the gradient */
    float *partial;    /* splits x responses x frames of the target; unused if splits is 1 */
} gck_job_direct;

cudaError_t gck_job_direct_load(void); /* as gck_chip_load */

cudaError_t gck_job_direct_convolve(const gck_job_direct *job, cudaStream_t stream);
cudaError_t gck_job_direct_gradient(const gck_job_direct *job, cudaStream_t stream);

/* ---- Filters that change with time --------------------------------------------------------------------------------
 */

/* How the frames of a block are weighted, for a filter that crosses to the next one: frame m of a block of `hop` frames
 * counts 1 - m / hop with the response of its own block (FALL) and m / hop with that of the next block (RISE). The last
 * block has no next one: its frames count 1 and 0. */
typedef enum gck_ramp { GCK_HOLD, GCK_FALL, GCK_RISE } gck_ramp;

/* Rows of the signal are cut into `count` blocks of `hop` frames, the last may be shorter. Block b of a row has
 * response response_of(row) x count + b. hop 0: each row has a response. */
typedef struct gck_blocks {
    int hop, count;
    int ramp; /* gck_ramp */
} gck_blocks;

/* Convolutions and gradients by transforms on the chip (rows/varying.cu): with the frames of the whole convolution
 *
 *      convolve    output[n] = gain sum over m of w[m] h_b(m)[n + offset - m] signal[m]
 *      signal      signal[m] = gain w[m] sum over k of h_b(m)[k] output[m + k - offset]
 *      response    h_b[k] = sum over the rows of h_b, over m in b, of gain w[m] signal[m] output[m + k - offset]
 *
 * A block is cut into `pieces` of `piece` frames, the last may be shorter; only taps first_tap ... first_tap + taps - 1
 * are used or written. A launch of a convolution takes the pieces first, first + step, ... of a row (`count` of them),
 * which must not overlap in the output. Piece 0 is in block -`leading`; those before block 0 and behind the last one
 * have no signal. Without `accumulate` a piece also overwrites the frames up to the next one of the launch. 2 N >=
 * piece + taps - 1, and without `accumulate` 2 N >= step x piece. */
typedef struct gck_varying_job {
    gck_rows signal, response, output;
    gck_sharing sharing;
    const float *gain; /* per row, or NULL */
    gck_blocks blocks;
    int64_t first_tap, offset;
    int taps, piece, pieces, leading;
    int first, step, count; /* rows x count < 2^30 */
    int accumulate;
    unsigned grid;          /* blocks of the launch */
    const float2 *twiddles; /* of this size */
    float2 *scratch;        /* grid x groups x N; for the response 2 N */
} gck_varying_job;

cudaError_t gck_varying_load(int shared_bytes_max); /* as gck_chip_load */
cudaError_t gck_varying_convolve(int size, const gck_varying_job *job, cudaStream_t stream);
cudaError_t gck_varying_signal(int size, const gck_varying_job *job, cudaStream_t stream);
cudaError_t gck_varying_response(int size, const gck_varying_job *job, cudaStream_t stream);

/* ---- Direct sums of short responses (rows/short.cu) ---------------------------------------------------------------
 */

enum {
    GCK_SHORT_OUTPUTS = 16,     /* frames of a thread */
    GCK_SHORT_THREADS = 128,    /* of a block, at most; 32 at least */
    GCK_SHORT_FRAMES = 1 << 30, /* taps and frames of a block, at most */
};

/* target[n] = gain sum over m of w[m] h_b(m)[n + offset - m] source[m]; b(m) is 0 if hop is 0. */
typedef struct gck_short_job {
    gck_rows source, response;
    gck_target target;
    gck_sharing sharing;
    const float *gain; /* per row, or NULL */
    gck_blocks blocks;
    int64_t offset;
    int taps, threads; /* tiles of threads x GCK_SHORT_OUTPUTS frames; rows x tiles < 2^31 */
} gck_short_job;

int gck_short_shared(int taps, int hop, int threads); /* returns the bytes of shared memory of a block */
int gck_short_span(int taps, int hop);                /* returns the taps that are computed, with padding */
cudaError_t gck_short_load(int shared_bytes_max);     /* as gck_chip_load */
cudaError_t gck_short_convolve(const gck_short_job *job, cudaStream_t stream);

/* ---- Products with Toeplitz matrices on tensor cores (rows/toeplitz.cu) -------------------------------------------
 */

enum { GCK_TOEPLITZ_TAPS = 1 << 14, GCK_TOEPLITZ_LONGEST = 1 << 28 /* frames, and the magnitude of the shift */ };

typedef struct gck_toeplitz_sizes {
    int rows;     /* of a block, which share a response */
    int frames;   /* of the target, of a warp */
    int stage;    /* frames of the source that a block loads at a time */
    int warps;    /* of a block, at most */
    int resident; /* blocks that the registers of a multiprocessor allow */
} gck_toeplitz_sizes;

gck_toeplitz_sizes gck_toeplitz_query(void);

/* target[n] = gain sum over k of h[k] source[n + shift - k], with `reflect` source[n + shift + k]. All samples have one
 * 16-bit type and steps of 1. Rows of the source and of the target that begin at multiples of 16 bytes are faster.
 * Needs architecture 80. */
typedef struct gck_toeplitz_job {
    gck_rows source, response;
    gck_target target;
    gck_sharing sharing;
    const float *gain; /* per row, or NULL */
    int taps, shift, reflect;
    int warps; /* of a block */
} gck_toeplitz_job;

int gck_toeplitz_shared(int taps);                   /* returns the bytes of shared memory of a block */
cudaError_t gck_toeplitz_load(int shared_bytes_max); /* as gck_chip_load */
cudaError_t gck_toeplitz_convolve(const gck_toeplitz_job *job, cudaStream_t stream);

/* ---- Transforms on tensor cores (rows/tensor.cu) ------------------------------------------------------------------
 */

/* Sizes of the transform, N = 2048, 4096 complex points. */
enum { GCK_TENSOR_SIZES = 2 };

typedef struct gck_tensor_sizes {
    int64_t points;   /* N */
    int64_t twiddles; /* float2 of the table */
    int shared_bytes; /* of shared memory per block; 2 blocks of a multiprocessor at most */
    int rows;         /* of a block at a time, which share a response */
} gck_tensor_sizes;

gck_tensor_sizes gck_tensor_query(int size);
void gck_tensor_twiddles(int64_t size, float2 *twiddles); /* in host memory */
cudaError_t gck_tensor_load(int shared_bytes_max);        /* as gck_chip_load */

/* A convolution, plain or reflected, of rows of GCK_F16 with steps of 1. Point p of a row, 0 <= p < N, is source frame
 * p + shift; target frame n is point lo + n of the result. lo and the frames of a target row are at most N together.
 * Points of the source from N on, and taps from N on, must not reach these frames. Needs architecture 80. */
typedef struct gck_tensor_job {
    gck_rows source, target;
    gck_sharing sharing;
    float2 *spectra; /* responses x N */
    float *scales;   /* responses */
    int64_t shift;
    int lo, reflect;
    int per_response;       /* the most blocks of rows that share a response; per_response x responses < 2^30 */
    unsigned blocks;        /* of the grid */
    const float2 *twiddles; /* of this size */
} gck_tensor_job;

/* Transforms the responses, which have samples of any type and any step, and convolves. */
cudaError_t gck_tensor_convolve(int size, const gck_tensor_job *job, const gck_rows *response, int64_t taps,
                                cudaStream_t stream);

/* ---- Transforms in three kernels (three_pass_columns.cu, three_pass_rows.cu) ------------------------------------- */

/* Sizes of the transform: N = 1024 C complex points, C = 2^(4 + size). */
enum { GCK_3PASS_SIZES = 7 };

typedef struct gck_3pass_sizes {
    int64_t points;   /* N */
    int64_t twiddles; /* float2 of the table */
    int shared_bytes; /* the most that a block of one of the kernels needs */
} gck_3pass_sizes;

gck_3pass_sizes gck_3pass_query(int size);
void gck_3pass_twiddles(int64_t size, float2 *twiddles);  /* in host memory */
cudaError_t gck_3pass_load(int shared_bytes_max);         /* as gck_chip_load */
cudaError_t gck_3pass_load_columns(int shared_bytes_max); /* the part of three_pass_columns.cu */

/* Blocks of rows that the columns read or write: block b of `blocks` of row number r is transform r blocks + b of the
 * scratch memory. Row number r is row `first_row` + r. With `per` the rows of a response follow one another: with i = r
 * mod per it is row first_row + (r / per) group + (i / group) outer + i mod group, and does not exist from `limit` on;
 * reading, its points are zero. Point m of block b is frame (first_block + b) step + shift + m of the row. */
typedef struct gck_3pass_blocks {
    gck_rows rows;
    const float *gain; /* per row, or NULL */
    int first_row, count, blocks;
    int per, group, outer, limit; /* with `per` count is at most 65535 */
    int64_t first_block, step, shift;
    int window;     /* reading: points from here on are zero */
    int lo, kept;   /* writing: the points lo .. lo + kept - 1 of a block are frames from (first_block + b) step on */
    float scale;    /* reading */
    int accumulate; /* writing */
    int packed;     /* points of the transforms have 4 bytes (three_pass.cuh), not 8: for halves */
    int whole; /* rows of adjacent floats of one stride, no gain, scale 1, from block 0, every block within its row */
} gck_3pass_blocks;

/* Transforms the columns of count x blocks transforms into `scratch`. */
cudaError_t gck_3pass_forward(int size, const gck_3pass_blocks *from, const float2 *twiddles, float2 *scratch,
                              cudaStream_t stream);

/* Transforms the columns back and stores the samples. */
cudaError_t gck_3pass_inverse(int size, const gck_3pass_blocks *to, const float2 *twiddles, const float2 *scratch,
                              cudaStream_t stream);

/* Transforms the rows of `transforms` columns into spectra in the layout of the products; both may be the same memory.
 * packed: as above, here and below. */
cudaError_t gck_3pass_spectra(int size, int64_t transforms, int packed, const float2 *twiddles, const float2 *columns,
                              float2 *spectra, cudaStream_t stream);

/* Products with one response of one part per row, of count x blocks transforms. */
typedef struct gck_3pass_products {
    gck_sharing sharing;
    int first_row, count, blocks;
    int per_warp; /* blocks that a warp multiplies with the row of the response that it holds */
    int reflect;
    const float2 *twiddles;
    const float2 *responses; /* from response `first_response` on: columns if `fresh`, else spectra */
    int first_response, fresh;
    int packed; /* with `fresh` alone */
    const float2 *sources;
    float2 *results; /* may be the sources */
} gck_3pass_products;

cudaError_t gck_3pass_multiply(int size, const gck_3pass_products *products, cudaStream_t stream);

/* Sums of products. Source transforms are [batch][inputs][blocks + parts - 1], results [batch][outputs][blocks]; they
 * may be the same memory if output o has one route, from input o, and `parts` is 1. Result (o, b) = sum over the routes
 * of o, over p, of source (input, b + parts - 1 - p) with spectrum plane parts + p; if `reflect`, of source (input, b +
 * p) with its conjugate. */
typedef struct gck_3pass_sums {
    int batch, blocks, parts, inputs, outputs;
    int single;             /* every output has one route, and `parts` is 1 */
    const gck_route *route; /* by output; NULL: output o has one, from input o to the response of row first_row + o */
    const int *row;         /* outputs + 1 entries: index of an output's first route; NULL: each has one */
    gck_sharing sharing;    /* if route is NULL */
    int first_row, first_response, reflect;
    const float2 *twiddles, *spectra, *sources;
    float2 *results;
} gck_3pass_sums;

cudaError_t gck_3pass_sum(int size, const gck_3pass_sums *sums, cudaStream_t stream);

/* Sums for the gradient by the responses. x transforms are [count][blocks], g transforms [count][blocks + parts - 1];
 * sum (r, p) += over the rows of r and over b of conj(x (row, b)) g (row, b + p). */
typedef struct gck_3pass_correlations {
    gck_sharing sharing;           /* if route is NULL */
    const gck_route *route;        /* response r: row `input` of each batch's x, row `plane` of its g; or NULL */
    int first_row, count;          /* rows, or batches if route is given */
    int inputs, outputs;           /* per batch, if route is given */
    int first_response, responses; /* those that are summed */
    int blocks, parts, splits;
    int add; /* 0: overwrite the sums */
    const float2 *twiddles, *x, *g;
    float2 *sums; /* splits x responses x parts transforms */
} gck_3pass_correlations;

cudaError_t gck_3pass_correlate(int size, const gck_3pass_correlations *c, cudaStream_t stream);

/* Both gradients of `responses` responses. x and g have `units` columns for each response, one after another. The
 * products conj(H) G, transformed back, take the places of g. The sums of conj(X) G, times `scale`, go to `sums`: with
 * one split transformed back, else for gck_3pass_finish. With `single` each response has one unit, and one split. */
typedef struct gck_3pass_both {
    int responses, units, splits;
    int single, packed;
    int fresh; /* h are columns, whose spectra are written to `spectra`: with one split; with `single` always */
    float scale;
    const float2 *twiddles;
    const float2 *h; /* a transform for each response */
    float2 *spectra; /* with `fresh` but not `single`; may be h */
    const float2 *x;
    float2 *g;
    float2 *sums; /* splits x responses transforms; with `single` it may be x */
} gck_3pass_both;

cudaError_t gck_3pass_gradients(int size, const gck_3pass_both *job, cudaStream_t stream);

/* Sums of spectra in splits; packed: as halves. */
typedef struct gck_3pass_splits {
    int64_t transforms, splits;
    int packed;
    const float2 *twiddles, *sums;
    float2 *scratch; /* may be `sums` if there is one split */
} gck_3pass_splits;

/* Adds up the splits and transforms the rows of the sums back, into `scratch`. */
cudaError_t gck_3pass_finish(int size, const gck_3pass_splits *splits, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
