/*
 * Jobs by transforms in three kernels, chunk by chunk, so that the workspace does not grow with the batch. A chunk is a
 * range of rows (of batches, if there are routes) and of segments. The workspace:
 *
 *      responses   transforms of the responses, or the sums of a gradient by the responses and their transforms back
 *      sources     transforms of the segments that are read (x for that gradient)
 *      results     transforms of the segments that are written (g for that gradient); unused if products are in place
 */
#include "job.h"

#include "libgpuconv/core/memory.h"

typedef struct chunk {
    int64_t row, rows; /* rows, or batches */
    int64_t segment, segments;
    int64_t response, responses;
} chunk;

/* What does not change from chunk to chunk. */
typedef struct work {
    const gpuconv_arrays_job *job;
    const gc_job_shape *shape;
    const gc_job_plan *plan;
    const float2 *twiddles;
    float2 *responses, *sources, *results;
    int size;
    bool convolve, gradient, routed;
    int inputs, outputs; /* rows of the sources and of the targets per row of the chunk */
    cudaStream_t stream;
    cudaError_t err;
} work;

/* Transforms the columns of the blocks of rows first .. first + count - 1 into `to`. */
static void forward(work *w, gck_3pass_blocks from, int64_t first, int64_t count, float2 *to) {
    from.first_row = (int)first;
    from.count = (int)count;
    GC_CUDA_TRY(w->err, gck_3pass_forward(w->size, &from, w->twiddles, to, w->stream));
}

static void inverse(work *w, gck_3pass_blocks to, int64_t first, int64_t count, const float2 *from) {
    to.first_row = (int)first;
    to.count = (int)count;
    GC_CUDA_TRY(w->err, gck_3pass_inverse(w->size, &to, w->twiddles, from, w->stream));
}

/* Returns the blocks of responses: one for each part. */
static gck_3pass_blocks response_blocks(const work *w) {
    const gc_job_plan *p = w->plan;
    return (gck_3pass_blocks){.rows = gc_job_rows(&w->job->response),
                              .blocks = (int)p->parts,
                              .step = p->part_taps,
                              .window = (int)p->part_taps,
                              .kept = (int)p->part_taps,
                              .scale = 1.0f / (float)p->points,
                              .accumulate = w->job->accumulate};
}

/* Returns `segments` blocks of an array from segment `first` on. */
static gck_3pass_blocks signal_blocks(const work *w, const gpuconv_rows *array, int64_t first, int64_t segments) {
    const gc_job_plan *p = w->plan;
    return (gck_3pass_blocks){.rows = gc_job_rows(array),
                              .blocks = (int)segments,
                              .first_block = first,
                              .step = p->hop,
                              .window = (int)(2 * p->points),
                              .lo = (int)p->lo,
                              .kept = (int)p->hop,
                              .scale = 1.0f,
                              .accumulate = w->job->accumulate};
}

/* Transforms fresh responses: the columns; the rows too, if products are summed. */
static void transform_responses(work *w, const chunk *c) {
    const gc_job_plan *p = w->plan;
    forward(w, response_blocks(w), c->response, c->responses, w->responses);
    if (p->sums)
        GC_CUDA_TRY(w->err, gck_3pass_spectra(w->size, c->responses * p->parts, w->twiddles, w->responses, w->stream));
}

/* Multiplies the sources of a chunk in place, or sums the products into the results. */
static void multiply(work *w, const chunk *c) {
    const gc_job_plan *p = w->plan;
    const gc_cuda_responses *kept = gc_job_prepared(w->job);
    const float2 *spectra = kept ? kept->spectra : w->responses;
    if (!p->sums) {
        /* A warp that holds a row of a fresh response multiplies many blocks, if there are enough warps. */
        const int64_t warps = c->rows * p->points / 1024, wanted = 4096;
        const int64_t ranges = gc_min(c->segments, kept ? c->segments : (wanted + warps - 1) / warps);
        const gck_3pass_products a = {.sharing = gc_job_sharing(w->shape),
                                      .first_row = (int)c->row,
                                      .count = (int)c->rows,
                                      .blocks = (int)c->segments,
                                      .per_warp = (int)((c->segments + ranges - 1) / ranges),
                                      .reflect = !w->convolve,
                                      .twiddles = w->twiddles,
                                      .responses = spectra,
                                      .first_response = kept ? 0 : (int)c->response,
                                      .fresh = !kept,
                                      .scratch = w->sources};
        GC_CUDA_TRY(w->err, gck_3pass_multiply(w->size, &a, w->stream));
        return;
    }
    /* Without routes the rows are the outputs of one batch. */
    const gck_3pass_sums a = {.batch = w->routed ? (int)c->rows : 1,
                              .blocks = (int)c->segments,
                              .parts = (int)p->parts,
                              .inputs = w->routed ? w->inputs : (int)c->rows,
                              .outputs = w->routed ? w->outputs : (int)c->rows,
                              .row = !w->routed    ? NULL
                                     : w->convolve ? kept->row
                                                   : kept->transposed_row,
                              .route = !w->routed    ? NULL
                                       : w->convolve ? kept->route
                                                     : kept->transposed_route,
                              .sharing = gc_job_sharing(w->shape),
                              .first_row = (int)c->row,
                              .first_response = kept ? 0 : (int)c->response,
                              .reflect = !w->convolve,
                              .twiddles = w->twiddles,
                              .spectra = spectra,
                              .sources = w->sources,
                              .results = w->results};
    GC_CUDA_TRY(w->err, gck_3pass_sum(w->size, &a, w->stream));
}

static void convolve(work *w, const chunk *c) {
    const gc_job_plan *p = w->plan;
    const gpuconv_rows *source = w->convolve ? &w->job->signal : &w->job->output;
    const gpuconv_rows *target = w->convolve ? &w->job->output : &w->job->signal;
    gck_3pass_blocks from = signal_blocks(w, source, c->segment, c->segments + p->parts - 1);
    gck_3pass_blocks to = signal_blocks(w, target, c->segment, c->segments);
    from.shift = p->shift;
    from.gain = w->convolve ? w->job->gain : NULL;
    to.gain = w->convolve ? NULL : w->job->gain;
    forward(w, from, c->row * w->inputs, c->rows * w->inputs, w->sources);
    multiply(w, c);
    inverse(w, to, c->row * w->outputs, c->rows * w->outputs, p->sums ? w->results : w->sources);
}

/* Adds the products of a chunk to the sums of its responses. */
static void correlate(work *w, const chunk *c, bool add) {
    const gc_job_plan *p = w->plan;
    const int64_t behind = c->segments + p->parts - 1;
    gck_3pass_blocks x = signal_blocks(w, &w->job->signal, c->segment, c->segments);
    gck_3pass_blocks g = signal_blocks(w, &w->job->output, c->segment, behind);
    x.window = (int)p->hop;
    x.gain = w->job->gain;
    x.scale = 1.0f / (float)p->points;
    g.shift = p->shift;
    forward(w, x, c->row * w->inputs, c->rows * w->inputs, w->sources);
    forward(w, g, c->row * w->outputs, c->rows * w->outputs, w->results);
    const gck_3pass_correlations a = {.sharing = gc_job_sharing(w->shape),
                                      .route = w->routed ? gc_job_prepared(w->job)->ends : NULL,
                                      .first_row = (int)c->row,
                                      .count = (int)c->rows,
                                      .inputs = w->inputs,
                                      .outputs = w->outputs,
                                      .first_response = (int)c->response,
                                      .responses = (int)c->responses,
                                      .blocks = (int)c->segments,
                                      .parts = (int)p->parts,
                                      .splits = (int)p->splits,
                                      .add = add,
                                      .twiddles = w->twiddles,
                                      .x = w->sources,
                                      .g = w->results,
                                      .sums = w->responses};
    GC_CUDA_TRY(w->err, gck_3pass_correlate(w->size, &a, w->stream));
}

/* Transforms the sums back and stores them. The columns follow the sums in the workspace. */
static void finish(work *w, const chunk *c) {
    const gc_job_plan *p = w->plan;
    float2 *columns = w->responses + c->responses * p->parts * p->splits * p->points;
    GC_CUDA_TRY(w->err, gck_3pass_finish(w->size, c->responses * p->parts, p->splits, w->twiddles, w->responses,
                                         columns, w->stream));
    inverse(w, response_blocks(w), c->response, c->responses, columns);
}

/* Returns the chunk of rows from `row` on, with the responses that it uses. */
static chunk chunk_of(const work *w, int64_t row, int64_t items) {
    const gc_job_shape *s = w->shape;
    const gc_job_plan *p = w->plan;
    const int64_t rows = gc_min(p->rows, items - row);
    if (!p->rolling)
        return (chunk){.row = row, .rows = rows, .responses = w->routed ? s->responses : gc_job_sharing(s).responses};
    const int64_t first = row / s->group, last = (row + rows - 1) / s->group;
    return (chunk){.row = row, .rows = rows, .response = first, .responses = last - first + 1};
}

cudaError_t gc_job_run_chunks(const gc_cuda_arrays *cuda, const gpuconv_arrays_job *job, const gc_job_shape *s,
                              const gc_job_plan *p, float2 *workspace, cudaStream_t stream) {
    const bool routed = s->routes.routes > 0, transposed = job->operation == GPUCONV_ARRAYS_GRADIENT_SIGNAL;
    const int64_t items = routed ? s->batch : s->rows;
    work w = {.job = job,
              .shape = s,
              .plan = p,
              .twiddles = gc_job_twiddles(cuda, p->transform),
              .responses = workspace,
              .sources = workspace + p->response_transforms * p->points,
              .size = p->transform.size,
              .convolve = job->operation == GPUCONV_ARRAYS_CONVOLVE,
              .gradient = job->operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE,
              .routed = routed,
              .inputs = !routed      ? 1
                        : transposed ? s->routes.outputs
                                     : s->routes.inputs,
              .outputs = !routed      ? 1
                         : transposed ? s->routes.inputs
                                      : s->routes.outputs,
              .stream = stream};
    w.results = w.sources + p->source_transforms * p->points;
    for (int64_t row = 0; row < items; row += p->rows) {
        chunk c = chunk_of(&w, row, items);
        if (!w.gradient && !job->prepared && (p->rolling || row == 0))
            transform_responses(&w, &c);
        for (c.segment = 0; c.segment < p->segments; c.segment += p->chunk_segments) {
            c.segments = gc_min(p->chunk_segments, p->segments - c.segment);
            if (w.gradient)
                correlate(&w, &c, c.segment > 0 || (row > 0 && !p->rolling));
            else
                convolve(&w, &c);
        }
        if (w.gradient && (p->rolling || row + p->rows >= items))
            finish(&w, &c);
    }
    return w.err;
}
