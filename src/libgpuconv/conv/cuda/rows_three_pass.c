/*
 * Rows by transforms in three kernels (three_pass_columns.cu, three_pass_rows.cu), for any number of taps. The time is
 * that of the points that cross the memory, and of the launches.
 *
 * A job is computed chunk by chunk, so that the workspace does not grow with the batch. A chunk is a range of rows (of
 * batches, if there are routes) and of segments, or, where rows share responses and for both gradients, a range of
 * responses with all of their rows. For both gradients the sources hold the transforms of x, the results those of g
 * and, in their place, those of the gradient by the signal. The workspace:
 *
 *      responses   transforms of the responses, or the sums of a gradient by the responses and their transforms back
 *      sources     transforms of the segments that are read (x for that gradient)
 *      results     transforms of the segments that are written (g for that gradient); unused if products are in place
 *
 * job.transforms keeps the columns of x, a transform for each row in the order of the responses, and behind them those
 * of h. A convolution writes them instead of those in the workspace, so that they cost no time; both gradients read
 * them.
 */
#include "cuda_arrays.h"

#include "libgpuconv/core/memory.h"

enum { GRID_MAX = 65535 };

/* The time of a point by size, in those of overlap-save in three kernels, measured on an H200: the columns of rows
 * allow any position and type of samples, and larger transforms find less in the caches. */
static const double size_point[GCK_3PASS_SIZES] = {1.333, 1.333, 1.44, 1.653, 1.866, 2.026, 2.346};

static gc_rows_kernels query(int size) {
    const gck_3pass_sizes s = gck_3pass_query(size);
    return (gc_rows_kernels){s.twiddles, s.shared_bytes};
}

/* The rows that are cut into chunks (batches, if there are routes), and the rows of the source and of the target in
 * each. */
typedef struct ends {
    int64_t items, sources, targets;
} ends;

static ends ends_of(const gc_job_shape *s) {
    const bool transposed = s->operation == GPUCONV_ARRAYS_GRADIENT_SIGNAL;
    const int inputs = s->routes.inputs, outputs = s->routes.outputs;
    if (!s->routes.routes)
        return (ends){s->rows, 1, 1};
    return (ends){s->batch, transposed ? outputs : inputs, transposed ? inputs : outputs};
}

/* Fills the chunks of the job. in, out: transforms of a row (or batch) per segment; beside the sources before or behind
 * the segments that `parts` need. */
static void cut_chunks(const gc_device *device, const gc_job_shape *s, gc_rows_plan *p, int64_t items, int64_t in,
                       int64_t out) {
    const int64_t most = gc_max(1, device->workspace / (p->points * (int64_t)sizeof(float2)));
    const int64_t channels = gc_max(gc_max(s->routes.inputs, s->routes.outputs), 1);
    const int64_t each = in * (p->segments + p->parts - 1) + out * p->segments + (p->rolling ? p->parts : 0);
    p->chunk_segments = gc_min(p->segments, GRID_MAX / 2);
    p->rows = gc_min(gc_min(items, gc_max(1, most / gc_max(each, 1))), gc_max(1, GRID_MAX / channels));
    if (each > most)
        p->chunk_segments = gc_max(1, gc_min(p->chunk_segments, (most - in * (p->parts - 1)) / gc_max(in + out, 1)));
    if (p->rows >= s->group && !s->routes.routes && s->operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE && p->rolling)
        p->rows = p->rows / s->group * s->group;
    const int64_t chunks = gc_divide_up(items, p->rows);
    if (s->group == 1 || s->routes.routes)
        p->rows = gc_divide_up(items, chunks);
}

/* Returns the most responses that a chunk of rows uses. */
static int64_t chunk_responses(const gc_job_shape *s, const gc_rows_plan *p) {
    return p->rolling ? gc_min(s->responses, gc_divide_up(p->rows, s->group) + 1) : s->responses;
}

/* Splits of the sums of a gradient, so that the warps fill the device. */
static int64_t splits_of(const gc_device *device, const gc_job_shape *s, const gc_rows_plan *p) {
    const int64_t warps = chunk_responses(s, p) * p->parts * (p->points / 1024);
    const int64_t units =
        p->chunk_segments * gc_divide_up(p->rows, gc_max(1, s->routes.routes ? 1 : chunk_responses(s, p)));
    return gc_max(1, gc_min(gc_min(units, 64), gc_divide_up((int64_t)device->multiprocessors * 16, warps)));
}

/* Plans chunks of responses with all of their rows, for products in place and for both gradients. Returns false if the
 * rows of one response do not fit into a chunk. */
static bool plan_shared(const gc_problem *problem, const gc_device *device, const gc_costs *costs, gc_rows_plan *p) {
    const gc_job_shape *s = &problem->rows.shape;
    const bool both = s->operation == GPUCONV_ARRAYS_GRADIENT_BOTH;
    const int64_t fresh = problem->rows.spectra ? 0 : 1, sums = both && p->sums ? 2 : 0;
    const int64_t units = gc_rows_of_response(s) * p->segments, each = (both ? 2 : 1) * units + fresh + sums;
    const bool packed = s->halves == GPUCONV_SAMPLE_F16 && fresh;
    const int64_t stride = packed ? p->points / 2 : p->points;
    const int64_t most = device->workspace / (stride * (int64_t)sizeof(float2));
    const int64_t rows = gc_min(gc_min(s->responses, most / each), GRID_MAX / gc_rows_of_response(s));
    if (p->parts > 1 || rows < 1 || p->segments > GRID_MAX)
        return false;
    const int64_t chunks = gc_divide_up(s->responses, rows), warps = rows * (p->points / 1024);
    p->packed = packed;
    p->stride = stride;
    p->shared = true;
    if (fresh && p->segments == 1 && (both || (s->operation == GPUCONV_ARRAYS_CONVOLVE && p->shift == 0)))
        p->kept = (units + 1) * s->responses * stride * (int64_t)sizeof(float2);
    p->rows = gc_divide_up(s->responses, chunks);
    p->splits = gc_max(1, gc_min(gc_min(units, 64), gc_divide_up((int64_t)device->multiprocessors * 16, warps)));
    p->response_transforms = p->rows * (fresh + (sums ? p->splits : 0));
    p->source_transforms = p->rows * units;
    p->result_transforms = both ? p->rows * units : 0;
    p->bytes =
        (p->response_transforms + p->source_transforms + p->result_transforms) * p->stride * (int64_t)sizeof(float2);
    p->seconds =
        size_point[p->size] * (double)p->points * costs->seconds[GC_COST_CUDA_LONG] *
            ((double)s->responses * (double)units * (both ? 1.5 : 1.0) + (double)s->responses * (sums    ? 0.9
                                                                                                 : both  ? 0.6
                                                                                                 : fresh ? 0.3
                                                                                                         : 0.1)) +
        (double)chunks * (both ? 7 : 4) * GC_ROWS_LAUNCH * costs->seconds[GC_COST_CUDA_LAUNCH];
    return true;
}

static bool plan(const gc_problem *problem, const gc_device *device, const gc_costs *costs, gc_rows_plan *p) {
    const gc_job_shape *s = &problem->rows.shape;
    (void)gc_rows_cut(s, p);
    p->stride = p->points;
    const bool routed = s->routes.routes > 0, gradient = s->operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE;
    if (s->operation == GPUCONV_ARRAYS_GRADIENT_BOTH) {
        p->sums = problem->rows.spectra || p->segments > 1 || gc_rows_of_response(s) > 1;
        return plan_shared(problem, device, costs, p);
    }
    if (!routed && !gradient && (s->halves == GPUCONV_SAMPLE_F16 || gc_rows_of_response(s) > 1 || p->segments == 1) &&
        plan_shared(problem, device, costs, p))
        return true;
    const ends e = ends_of(s);
    const int64_t items = e.items, sources = e.sources, targets = e.targets;
    p->sums = !gradient && (routed || p->parts > 1);
    p->rolling = !routed && !problem->rows.spectra && gc_divide_up(s->rows, s->group) <= s->responses;
    cut_chunks(device, s, p, items, sources, p->sums || gradient ? targets : 0);
    if (p->rolling && gradient && p->rows < s->group) {
        p->rolling = false; /* the rows of a response are in several chunks */
        cut_chunks(device, s, p, items, sources, targets);
    }
    const int64_t behind = p->chunk_segments + p->parts - 1;
    if (gradient) {
        p->splits = splits_of(device, s, p);
        p->response_transforms = chunk_responses(s, p) * p->parts * (p->splits + 1);
        p->source_transforms = p->rows * sources * p->chunk_segments;
        p->result_transforms = p->rows * targets * behind;
    } else {
        p->response_transforms = problem->rows.spectra ? 0 : chunk_responses(s, p) * p->parts;
        p->source_transforms = p->rows * sources * behind;
        p->result_transforms = p->sums ? p->rows * targets * p->chunk_segments : 0;
    }
    p->bytes =
        (p->response_transforms + p->source_transforms + p->result_transforms) * p->points * (int64_t)sizeof(float2);
    const double rows = (double)items * (double)p->segments * (double)gc_max(sources, targets);
    const double terms = (double)gc_max(1, s->routes.routes) / (double)targets * (double)p->parts;
    const double responses = (double)s->responses * (double)p->parts *
                             (gradient                ? 0.6
                              : problem->rows.spectra ? 0.1
                                                      : 0.3);
    const double chunks = (double)gc_divide_up(items, p->rows) * (double)gc_divide_up(p->segments, p->chunk_segments);
    const double each = size_point[p->size] * (double)p->points * costs->seconds[GC_COST_CUDA_LONG];
    p->seconds =
        each * (rows * ((gradient ? 1.25 : 1.0) + 0.4 * (terms - 1)) + responses) +
        chunks * (gradient || !problem->rows.spectra ? 4 : 3) * GC_ROWS_LAUNCH * costs->seconds[GC_COST_CUDA_LAUNCH];
    return true;
}

/* ---- Launches ---------------------------------------------------------------------------------------------------- */

typedef struct chunk {
    int64_t row, rows; /* rows, or batches */
    int64_t segment, segments;
    int64_t response, responses;
} chunk;

/* Constants of a call. */
typedef struct work {
    const gc_cuda_call *call;
    const gpuconv_arrays_job *job;
    const gc_rows_plan *plan;
    gck_sharing sharing;
    const float2 *twiddles;
    float2 *responses, *sources, *results;
    float2 *kept_signals, *kept_responses; /* in job.transforms, or NULL */
    bool convolve, routed;
    int inputs, outputs; /* rows of the sources and of the targets per row of the chunk */
    cudaStream_t stream;
    cudaError_t err;
} work;

/* Transforms the columns of blocks into `to`. */
static void forward(work *w, gck_3pass_blocks from, float2 *to) {
    GC_CUDA_TRY(w->err, gck_3pass_forward(w->plan->size, &from, w->twiddles, to, w->stream));
}

static void inverse(work *w, gck_3pass_blocks to, const float2 *from) {
    GC_CUDA_TRY(w->err, gck_3pass_inverse(w->plan->size, &to, w->twiddles, from, w->stream));
}

/* Returns the blocks of an array of responses, those of a chunk: one for each part. */
static gck_3pass_blocks response_blocks(const work *w, const gpuconv_rows *array, const chunk *c) {
    const gc_rows_plan *p = w->plan;
    return (gck_3pass_blocks){.rows = gc_cuda_kernel_rows(array),
                              .first_row = (int)c->response,
                              .count = (int)c->responses,
                              .blocks = (int)p->parts,
                              .step = p->part_taps,
                              .window = (int)p->part_taps,
                              .kept = (int)p->part_taps,
                              .scale = 1.0f / (float)p->points,
                              .accumulate = w->job->accumulate,
                              .packed = p->packed};
}

/* Returns the blocks of an array for a chunk: `each` rows for a row of it, and `behind` segments more. */
static gck_3pass_blocks signal_blocks(const work *w, const gpuconv_rows *array, const chunk *c, int each,
                                      int64_t behind) {
    const gc_rows_plan *p = w->plan;
    gck_3pass_blocks a = {.rows = gc_cuda_kernel_rows(array),
                          .first_row = (int)c->row * each,
                          .count = (int)c->rows * each,
                          .blocks = (int)(c->segments + behind),
                          .first_block = c->segment,
                          .step = p->hop,
                          .window = (int)(2 * p->points),
                          .lo = (int)p->lo,
                          .kept = (int)p->hop,
                          .scale = 1.0f,
                          .accumulate = w->job->accumulate && w->job->operation != GPUCONV_ARRAYS_GRADIENT_BOTH,
                          .packed = p->packed};
    if (p->shared) {
        const gc_job_shape *s = &w->call->shape;
        a.per = (int)gc_rows_of_response(s);
        a.group = (int)s->group;
        a.outer = (int)(s->responses * s->group);
        a.limit = (int)s->rows;
        a.first_row = (int)(c->response * s->group);
        a.count = (int)c->responses * a.per;
        a.blocks = (int)p->segments;
    }
    return a;
}

/* Returns where a chunk has the columns of its rows, and of its responses. */
static float2 *signal_columns(const work *w, const chunk *c) {
    const int64_t rows = w->kept_signals ? c->response * gc_rows_of_response(&w->call->shape) : 0;
    return (w->kept_signals ? w->kept_signals : w->sources) + rows * w->plan->stride;
}

static float2 *response_columns(const work *w, const chunk *c) {
    return w->kept_responses ? w->kept_responses + c->response * w->plan->stride : w->responses;
}

/* Transforms fresh responses: the columns, unless they were kept; the rows too, if products are summed, unless one
 * kernel does both. */
static void transform_responses(work *w, const chunk *c) {
    const gc_rows_plan *p = w->plan;
    float2 *columns = response_columns(w, c);
    if (w->convolve || !w->kept_responses)
        forward(w, response_blocks(w, &w->job->response, c), columns);
    if (p->sums && !(p->shared && p->splits == 1))
        GC_CUDA_TRY(w->err, gck_3pass_spectra(p->size, c->responses * p->parts, p->packed, w->twiddles, columns,
                                              w->responses, w->stream));
}

/* Multiplies the sources of a chunk, or sums the products into the results. */
static void multiply(work *w, const chunk *c) {
    const gc_rows_plan *p = w->plan;
    const gc_cuda_responses *kept = w->call->prepared;
    const float2 *spectra = kept ? kept->spectra : p->sums ? w->responses : response_columns(w, c);
    if (!p->sums) {
        /* A warp that holds a row of a fresh response multiplies many blocks, if there are enough warps. */
        const int64_t warps = c->rows * p->points / 1024, wanted = 4096;
        const int64_t ranges = gc_min(c->segments, kept ? c->segments : gc_divide_up(wanted, warps));
        const gck_3pass_products a = {.sharing = w->sharing,
                                      .first_row = (int)c->row,
                                      .count = (int)c->rows,
                                      .blocks = (int)c->segments,
                                      .per_warp = (int)gc_divide_up(c->segments, ranges),
                                      .reflect = !w->convolve,
                                      .twiddles = w->twiddles,
                                      .responses = spectra,
                                      .first_response = kept ? 0 : (int)c->response,
                                      .fresh = !kept,
                                      .packed = p->packed,
                                      .sources = signal_columns(w, c),
                                      .results = w->sources};
        GC_CUDA_TRY(w->err, gck_3pass_multiply(w->plan->size, &a, w->stream));
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
                              .sharing = w->sharing,
                              .first_row = (int)c->row,
                              .first_response = kept ? 0 : (int)c->response,
                              .reflect = !w->convolve,
                              .twiddles = w->twiddles,
                              .spectra = spectra,
                              .sources = w->sources,
                              .results = w->results};
    GC_CUDA_TRY(w->err, gck_3pass_sum(w->plan->size, &a, w->stream));
}

static void convolve(work *w, const chunk *c) {
    const gc_rows_plan *p = w->plan;
    const gpuconv_rows *source = w->convolve ? &w->job->signal : &w->job->output;
    const gpuconv_rows *target = w->convolve ? &w->job->output : &w->job->signal;
    gck_3pass_blocks from = signal_blocks(w, source, c, w->inputs, p->parts - 1);
    gck_3pass_blocks to = signal_blocks(w, target, c, w->outputs, 0);
    from.shift = p->shift;
    from.gain = w->convolve ? w->job->gain : NULL;
    to.gain = w->convolve ? NULL : w->job->gain;
    forward(w, from, signal_columns(w, c));
    multiply(w, c);
    inverse(w, to, p->sums ? w->results : w->sources);
}

/* Adds the products of a chunk to the sums of its responses. */
static void correlate(work *w, const chunk *c, bool add) {
    const gc_rows_plan *p = w->plan;
    gck_3pass_blocks x = signal_blocks(w, &w->job->signal, c, w->inputs, 0);
    gck_3pass_blocks g = signal_blocks(w, &w->job->output, c, w->outputs, p->parts - 1);
    x.window = (int)p->hop;
    x.gain = w->job->gain;
    x.scale = 1.0f / (float)p->points;
    g.shift = p->shift;
    forward(w, x, w->sources);
    forward(w, g, w->results);
    const gck_3pass_correlations a = {.sharing = w->sharing,
                                      .route = w->routed ? w->call->prepared->ends : NULL,
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
    GC_CUDA_TRY(w->err, gck_3pass_correlate(w->plan->size, &a, w->stream));
}

/* Transforms the sums back and stores them. The columns follow the sums in the workspace. */
static void finish(work *w, const chunk *c) {
    const gc_rows_plan *p = w->plan;
    float2 *columns = w->responses + c->responses * p->parts * p->splits * p->stride;
    const gck_3pass_splits splits = {c->responses * p->parts, p->splits, 0, w->twiddles, w->responses, columns};
    GC_CUDA_TRY(w->err, gck_3pass_finish(p->size, &splits, w->stream));
    inverse(w, response_blocks(w, &w->job->response, c), columns);
}

/* Queues both gradients of a chunk of responses. */
static void run_both(work *w, const chunk *c) {
    const gc_rows_plan *p = w->plan;
    const gpuconv_arrays_job *job = w->job;
    const gc_cuda_responses *kept = w->call->prepared;
    float2 *sums = p->sums ? w->responses + (kept ? 0 : c->responses * p->stride) : w->sources;
    gck_3pass_blocks x = signal_blocks(w, &job->signal, c, 1, 0), g = signal_blocks(w, &job->output, c, 1, 0);
    x.window = (int)p->hop;
    g.shift = p->shift;
    if (!w->kept_signals)
        forward(w, x, w->sources);
    forward(w, g, w->results);
    const gck_3pass_both a = {.responses = (int)c->responses,
                              .units = (int)c->segments,
                              .splits = (int)p->splits,
                              .single = !p->sums,
                              .packed = p->packed,
                              .fresh = !kept && p->splits == 1,
                              .scale = 1.0f / (float)p->points,
                              .twiddles = w->twiddles,
                              .h = kept             ? kept->spectra + c->response * p->points
                                   : p->splits == 1 ? response_columns(w, c)
                                                    : w->responses,
                              .spectra = w->responses,
                              .x = signal_columns(w, c),
                              .g = w->results,
                              .sums = sums};
    GC_CUDA_TRY(w->err, gck_3pass_gradients(p->size, &a, w->stream));
    inverse(w, signal_blocks(w, &job->signal_gradient, c, 1, 0), w->results);
    const gck_3pass_splits splits = {c->responses, p->splits, p->packed, w->twiddles, sums, w->sources};
    if (p->sums && p->splits > 1)
        GC_CUDA_TRY(w->err, gck_3pass_finish(p->size, &splits, w->stream));
    inverse(w, response_blocks(w, &job->response_gradient, c), p->splits == 1 ? sums : w->sources);
}

/* Queues a job in chunks of responses, whose rows follow one another as if they were segments of one row. */
static cudaError_t run_shared(work *w) {
    const gc_rows_plan *p = w->plan;
    const int64_t responses = w->sharing.responses, units = gc_rows_of_response(&w->call->shape) * p->segments;
    if (p->kept && w->job->transforms) {
        w->kept_signals = (float2 *)w->job->transforms;
        w->kept_responses = w->kept_signals + responses * units * p->stride;
    }
    w->sharing = (gck_sharing){.rows = (int)responses, .group = 1, .responses = (int)responses};
    for (int64_t first = 0; first < responses; first += p->rows) {
        const int64_t count = gc_min(p->rows, responses - first);
        const chunk c = {.row = first, .rows = count, .segments = units, .response = first, .responses = count};
        if (!w->call->prepared)
            transform_responses(w, &c);
        if (w->call->shape.operation == GPUCONV_ARRAYS_GRADIENT_BOTH)
            run_both(w, &c);
        else
            convolve(w, &c);
    }
    return w->err;
}

/* Returns the chunk of rows from `row` on, with the responses that it uses. */
static chunk chunk_of(const work *w, int64_t row, int64_t items) {
    const gc_job_shape *s = &w->call->shape;
    const int64_t rows = gc_min(w->plan->rows, items - row);
    if (!w->plan->rolling)
        return (chunk){.row = row, .rows = rows, .responses = w->routed ? s->responses : w->sharing.responses};
    const int64_t first = row / s->group, last = (row + rows - 1) / s->group;
    return (chunk){.row = row, .rows = rows, .response = first, .responses = last - first + 1};
}

static cudaError_t run(const gc_cuda_call *call, cudaStream_t stream) {
    const gc_job_shape *s = &call->shape;
    const gc_rows_plan *p = &call->plan;
    const gpuconv_arrays_operation operation = s->operation;
    const ends e = ends_of(s);
    const bool gradient = operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE;
    work w = {.call = call,
              .job = call->job,
              .plan = p,
              .sharing = gc_cuda_sharing(s),
              .twiddles = gc_rows_twiddles(call->cuda, p),
              .responses = call->workspace,
              .convolve = operation == GPUCONV_ARRAYS_CONVOLVE,
              .routed = s->routes.routes > 0,
              .inputs = (int)e.sources,
              .outputs = (int)e.targets,
              .stream = stream};
    w.sources = w.responses + p->response_transforms * p->stride;
    w.results = w.sources + p->source_transforms * p->stride;
    if (p->shared)
        return run_shared(&w);
    for (int64_t row = 0; row < e.items; row += p->rows) {
        chunk c = chunk_of(&w, row, e.items);
        if (!gradient && !call->prepared && (p->rolling || row == 0))
            transform_responses(&w, &c);
        for (c.segment = 0; c.segment < p->segments; c.segment += p->chunk_segments) {
            c.segments = gc_min(p->chunk_segments, p->segments - c.segment);
            if (gradient)
                correlate(&w, &c, c.segment > 0 || (row > 0 && !p->rolling));
            else
                convolve(&w, &c);
        }
        if (gradient && (p->rolling || row + p->rows >= e.items))
            finish(&w, &c);
    }
    return w.err;
}

static cudaError_t spectra(const gc_cuda_responses *r, const gpuconv_rows *rows, const float2 *twiddles,
                           cudaStream_t stream) {
    const gc_rows_plan *p = &r->plan;
    const gck_3pass_blocks from = {.rows = gc_cuda_kernel_rows(rows),
                                   .count = (int)r->base.rows,
                                   .blocks = (int)p->parts,
                                   .step = p->part_taps,
                                   .window = (int)p->part_taps,
                                   .scale = 1.0f / (float)p->points};
    cudaError_t err = gck_3pass_forward(p->size, &from, twiddles, r->spectra, stream);
    return GC_CUDA_TRY(
        err, gck_3pass_spectra(p->size, r->base.rows * p->parts, 0, twiddles, r->spectra, r->spectra, stream));
}

const gc_cuda_rows gc_rows_three_pass = {
    .row = GC_ROWS_ENTRY(GPUCONV_ALGORITHM_OVERLAP_SAVE, "overlap-save", 1 << 15, 1 << 21),
    .number = {[15] = 1, [16] = 2, [17] = 3, [18] = 4, [19] = 5, [20] = 6, [21] = 7},
    .table = GCK_CHIP_SIZES,
    .both = true,
    .load = gck_3pass_load,
    .query = query,
    .twiddles = gck_3pass_twiddles,
    .spectra = spectra,
    .plan = plan,
    .run = run,
};
