/* One row, a convolution of a signal with a response, and its schedule: operands, algorithm, sizes, and the blocks of
 * the output. */
#ifndef GC_CPU_ROW_PLAN_H
#define GC_CPU_ROW_PLAN_H

#include "gpuconv_arrays.h"
#include "libgpuconv/engine/algorithm.h"

/* Limit of the shorter operand, and with it of a transform: 2^30 points. */
enum { GC_ROW_MAX_LOG2 = 29 };

/* An array that is read: frame n is element n * step, of `type`. */
typedef struct gc_array {
    const void *data; /* frame 0 */
    int64_t frames, step;
    gpuconv_sample_type type;
} gc_array;

/* A response whose transforms are kept (row_convolve.h). */
typedef struct gc_kept_response gc_kept_response;

/* y[n] = gain * sum over k of h[k] x[n + offset - k], zeros outside x and h. */
typedef struct gc_row {
    gc_array signal, response;  /* x, h */
    gc_kept_response *prepared; /* the transforms of `response`, which is its taps, with step -1 backwards; or NULL */
    void *output;               /* frame 0 */
    int64_t output_frames, output_step;
    int64_t offset;  /* frame of the full convolution that is output frame 0 */
    int64_t cleared; /* frames of which those behind output_frames become zero */
    gpuconv_sample_type output_type;
    bool accumulate;   /* adds to the output, and clears nothing */
    const float *gain; /* NULL: 1 */
} gc_row;

typedef enum gc_row_method {
    GC_ROW_ZERO = 0,     /* no frame of the convolution is in the output */
    GC_ROW_DIRECT,       /* sums in the time domain */
    GC_ROW_OVERLAP_SAVE, /* one transform longer than the response; blocks of the signal */
    GC_ROW_SUM           /* few output frames: one block, the sum over partitions of both operands */
} gc_row_method;

/* Block b has the frames b * hop .. b * hop + hop - 1 of the full convolution (SUM: from `begin` on) and reads `before`
 * frames more of the signal. */
typedef struct gc_row_plan {
    gc_row_method method;
    gc_array signal, taps; /* the operands, exchanged if the response is the longer one */
    gc_kept_response *prepared;
    int64_t begin, end;                   /* frames of the full convolution that are in the output */
    int64_t transform, hop, before;       /* transform: 0 for direct */
    int64_t partition, partitions;        /* of the taps, for SUM */
    int64_t first_block, blocks;          /* blocks with output frames */
    double seconds;                       /* predicted, on one thread */
    int64_t planned_frames, planned_taps; /* operands that the sizes were chosen for */
    gc_row_method full_method;            /* method, transform and hop for the full convolution */
    int64_t full_transform, full_hop;
} gc_row_plan;

/* Plans a row. *plan may hold the plan of another row, whose sizes are used again if they fit.
 * @return UNSUPPORTED if both operands are too long */
gpuconv_status gc_row_plan_make(const gc_costs *costs, const gc_row *row, gc_row_plan *plan, gpuconv_error *error);

/* Plans a full convolution (offset 0, all frames) with a choice of direct convolution or overlap-save, whose operands
 * are not exchanged: the output has the bytes of an engine with this choice. */
void gc_row_plan_fill(const gc_choice *choice, const gc_row *row, gc_row_plan *plan);

#endif
