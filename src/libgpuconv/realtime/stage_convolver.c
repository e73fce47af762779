/* The head, the stages and the tail of one response, and the counters that the callback and the workers share. */
#include "stage_convolver.h"

#include "dense_products.h"
#include "gpu_tail.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/fft.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    SEGMENT = 4096,  /* most frames processed at a time */
    HISTORY_HOPS = 8 /* length of the input ring in hops of the longest stage */
};

typedef struct stage {
    gc_rt_stage_plan plan;
    gc_rt_dense *dense; /* of a dense matrix; NULL: the members up to `list` hold the spectra */
    gc_fft *fft;
    int64_t stride;     /* floats of a spectrum */
    float *spectra;     /* planes x partitions, scaled by 1 / hop */
    float *delay_line;  /* inputs x partitions: spectra of the last input blocks */
    float *out;         /* outputs x 2 x hop: the last two blocks of output, at index block % 2 */
    float *work;        /* one spectrum */
    const float **list; /* 2 x routes x partitions: pairs of spectra to multiply, input and response */
    _Atomic int64_t published, claimed, done; /* counts of blocks: see stage_convolver.h */
} stage;

struct gc_rt_convolver {
    gpuconv_ir *response; /* the whole response */
    gpuconv_ir *ir;       /* the part of it that the CPU convolves */
    gc_components components;
    gc_rt_dense *head; /* the head in blocks, for calls of `head_frames` and more; NULL: it is always direct */
    float *head_out;   /* a block of it */
    gc_gpu_tail *tail; /* the rest, on a GPU; NULL: none */
    int64_t zeros;     /* frames of silence at its beginning */
    const gc_simd *simd;
    gc_rt_schedule schedule;
    stage stage[GC_RT_MAX_STAGES];
    int64_t now;    /* frames processed so far */
    int64_t ring;   /* frames of the input ring, a power of two */
    int64_t mirror; /* frames of the ring's beginning that are repeated behind its end, so that reads need not wrap */
    float *input;   /* inputs x (ring + mirror) */
    float *silence; /* SEGMENT zeros */
    int *channel;   /* the caller's channel of each input, then of each output */
    gc_rt_terms terms;
};

static void free_stage(stage *s) {
    gc_rt_dense_free(s->dense);
    gc_fft_free(s->fft);
    free(s->spectra);
    free(s->delay_line);
    free(s->out);
    free(s->work);
    free(s->list);
}

void gc_rt_convolver_free(gc_rt_convolver *c) {
    if (!c)
        return;
    gc_gpu_tail_free(c->tail); /* first: its thread reads the input ring */
    for (int i = 0; i < c->schedule.stages; i++)
        free_stage(&c->stage[i]);
    gc_rt_dense_free(c->head);
    free(c->head_out);
    gc_components_free(&c->components);
    gpuconv_ir_free(c->ir);
    gpuconv_ir_free(c->response);
    free(c->input);
    free(c->silence);
    free(c->channel);
    free(c);
}

/* Allocates a stage and transforms its partitions of the response. Returns false without memory or once cancelled. */
static bool make_stage(const gc_rt_convolver *c, const gc_rt_stage_plan *plan, stage *s) {
    const gpuconv_ir *ir = c->ir;
    s->plan = *plan;
    s->out = gc_calloc(ir->outputs * 2 * plan->hop, sizeof(float));
    if (c->schedule.dense && c->zeros < plan->offset + plan->hop) {
        const gc_rt_section section = {plan->offset, plan->hop, plan->partitions};
        s->dense = gc_rt_dense_new(ir, &c->components, &section, 2 * plan->hop);
        return s->dense && s->out;
    }
    s->fft = gc_fft_new(gc_simd_best(), 2 * plan->hop);
    if (!s->fft)
        return false;
    s->stride = gc_fft_floats(s->fft);
    int64_t bytes = s->stride * (int64_t)sizeof(float);
    s->spectra = gc_calloc(ir->planes * plan->partitions, bytes);
    s->delay_line = gc_calloc(ir->inputs * plan->partitions, bytes);
    s->work = gc_calloc(1, bytes);
    s->list = gc_calloc(2 * ir->routes * plan->partitions, sizeof *s->list);
    float *block = gc_calloc(2 * plan->hop, sizeof *block);
    bool made = s->spectra && s->delay_line && s->out && s->work && s->list && block;
    for (int p = 0; made && p < ir->planes; p++)
        for (int64_t k = 0; k < plan->partitions && !gc_cancelled(); k++) {
            int64_t from = plan->offset + k * plan->hop, n = gc_min(plan->hop, ir->frames - from);
            memset(block, 0, (size_t)plan->hop * sizeof *block);
            for (int64_t i = 0; i < n; i++)
                block[i] = gc_ir_plane(ir, p)[from + i] / (float)plan->hop;
            gc_fft_forward(s->fft, block, s->spectra + (p * plan->partitions + k) * s->stride);
        }
    free(block);
    return made && !gc_cancelled();
}

/* Makes the head in blocks if the schedule has one. Returns false without memory. */
static bool make_head(gc_rt_convolver *c) {
    const gc_rt_section section = {0, c->schedule.head, 1};
    if (!c->schedule.head_points)
        return true;
    c->head = gc_rt_dense_new(c->ir, &c->components, &section, c->schedule.head_points);
    c->head_out = gc_calloc(c->schedule.head_points, sizeof *c->head_out);
    return c->head && c->head_out;
}

/* Makes the stages and the input rings of the CPU's part. Returns MEMORY. */
static gpuconv_status make_cpu_part(gc_rt_convolver *c, const gc_rt_calls *calls, gpuconv_error *error) {
    const gc_rt_schedule *schedule = &c->schedule;
    c->zeros = gc_rt_leading_zeros(c->ir);
    c->simd = gc_simd_best();
    if (!gc_components_find(c->ir, &c->components))
        return gc_fail_memory(error, "a real-time convolver");
    gc_rt_schedule_make(c->ir, calls, &c->schedule);
    int64_t longest = schedule->stages ? schedule->stage[schedule->stages - 1].hop : 0;
    bool made = true;
    for (int i = 0; i < schedule->stages; i++)
        made = made && make_stage(c, &schedule->stage[i], &c->stage[i]);
    made = made && make_head(c);
    c->ring =
        gc_power_of_two(gc_max(gc_max(HISTORY_HOPS * longest, 2 * schedule->head_points), schedule->head + SEGMENT));
    if (c->ir != c->response)
        c->ring = gc_max(c->ring, GC_GPU_TAIL_INPUT_MIN);
    c->mirror = gc_max(gc_max(longest, schedule->head_points), schedule->head + SEGMENT);
    c->input = gc_calloc(c->ir->inputs * (c->ring + c->mirror), sizeof *c->input);
    c->silence = gc_calloc(SEGMENT, sizeof *c->silence);
    c->channel = gc_calloc((int64_t)c->ir->inputs + c->ir->outputs, sizeof *c->channel);
    for (int i = 0; c->channel && i < c->ir->inputs + c->ir->outputs; i++)
        c->channel[i] = i < c->ir->inputs ? i : i - c->ir->inputs;
    return made && c->input && c->silence && c->channel ? GPUCONV_OK : gc_fail_memory(error, "a real-time convolver");
}

gpuconv_status gc_rt_convolver_new(const gpuconv_ir *ir, const gc_rt_calls *calls, const gc_gpu_target *gpu,
                                   gc_rt_convolver **convolver, gpuconv_error *error) {
    *convolver = NULL;
    gc_rt_convolver *c = gc_calloc(1, sizeof *c);
    if (!c)
        return gc_fail_memory(error, "a real-time convolver");
    bool has_tail = gpu->backend && ir->frames > GC_GPU_TAIL_OFFSET;
    c->response = gc_ir_hold(ir);
    gpuconv_status status = GPUCONV_OK;
    if (has_tail)
        status = gpuconv_ir_cut(ir, 0, GC_GPU_TAIL_OFFSET, &c->ir, error);
    else
        c->ir = gc_ir_hold(ir);
    if (!status)
        status = make_cpu_part(c, calls, error);
    gc_input_ring input = {c->input, c->ring + c->mirror, c->ring};
    if (!status && has_tail)
        status = gc_gpu_tail_new(ir, calls->rate, gpu->backend, gpu->device, &input, &c->tail, error);
    if (status) {
        gc_rt_convolver_free(c);
        return status;
    }
    *convolver = c;
    return GPUCONV_OK;
}

void gc_rt_convolver_reset(gc_rt_convolver *c) {
    if (c->tail)
        gc_gpu_tail_reset(c->tail); /* first: its thread reads the input ring */
    for (int i = 0; i < c->schedule.stages; i++) {
        stage *s = &c->stage[i];
        if (s->dense)
            gc_rt_dense_reset(s->dense);
        atomic_store(&s->published, 0);
        atomic_store(&s->claimed, 0);
        atomic_store(&s->done, 0);
    }
    memset(c->input, 0, (size_t)(c->ir->inputs * (c->ring + c->mirror)) * sizeof *c->input);
    c->now = 0;
}

const gc_rt_schedule *gc_rt_convolver_schedule(const gc_rt_convolver *c) {
    return &c->schedule;
}

gc_rt_terms *gc_rt_convolver_terms(gc_rt_convolver *c) {
    return &c->terms;
}

void gc_rt_convolver_map(gc_rt_convolver *c, const int *inputs, const int *outputs) {
    memcpy(c->channel, inputs, (size_t)c->ir->inputs * sizeof *inputs);
    memcpy(c->channel + c->ir->inputs, outputs, (size_t)c->ir->outputs * sizeof *outputs);
}

const int *gc_rt_convolver_inputs(const gc_rt_convolver *c, int *count) {
    *count = c->ir->inputs;
    return c->channel;
}

/* Returns the caller's channel of an output. */
static float *output_of(const gc_rt_convolver *c, float *const *out, int output) {
    return out[c->channel[c->ir->inputs + output]];
}

const gpuconv_ir *gc_rt_convolver_ir(const gc_rt_convolver *c) {
    return c->response;
}

bool gc_rt_convolver_has_gpu_tail(const gc_rt_convolver *c) {
    return c->tail != NULL;
}

bool gc_rt_convolver_gpu_tail_failed(const gc_rt_convolver *c) {
    return c->tail && gc_gpu_tail_has_failed(c->tail);
}

/* Returns the input ring of one channel. */
static float *input_ring(const gc_rt_convolver *c, int input) {
    return c->input + input * (c->ring + c->mirror);
}

/* ---- A stage's block --------------------------------------------------------------------------------------------- */

/* Does what compute_block does, for a dense matrix. */
static void compute_dense_block(gc_rt_convolver *c, stage *s, int64_t t) {
    const int64_t hop = s->plan.hop, from = ((t - 1) * hop + c->ring) & (c->ring - 1);
    for (int i = 0; i < c->ir->inputs; i++)
        gc_rt_dense_forward(s->dense, i, t, input_ring(c, i) + from);
    gc_rt_dense_multiply(s->dense, t);
    for (int o = 0; o < c->ir->outputs; o++)
        gc_rt_dense_inverse(s->dense, o, hop, s->out + (o * 2 + (t & 1)) * hop);
}

/* Convolves input block `t` with all partitions of the stage and writes the output frames from t * hop + offset on
 * (uniformly partitioned overlap-save). */
static void compute_block(gc_rt_convolver *c, stage *s, int64_t t) {
    const gpuconv_ir *ir = c->ir;
    const gc_rt_stage_plan *p = &s->plan;
    for (int i = 0; i < ir->inputs; i++) {
        /* Overlap-save takes the block and the one before it; before block 0 lies the end of the ring, still zero. */
        int64_t from = ((t - 1) * p->hop + c->ring) & (c->ring - 1);
        gc_fft_forward(s->fft, input_ring(c, i) + from,
                       s->delay_line + (i * p->partitions + t % p->partitions) * s->stride);
    }
    const float **x = s->list, **h = x + ir->routes * p->partitions;
    int64_t available = gc_min(p->partitions, t + 1);
    for (int o = 0; o < ir->outputs; o++) {
        int64_t count = 0;
        for (int r = 0; r < ir->routes; r++) {
            if (ir->route[r].output != o)
                continue;
            for (int64_t k = 0; k < available; k++) {
                if (p->offset + (k + 1) * p->hop <= c->zeros)
                    continue; /* this partition is silent */
                x[count] = s->delay_line + (ir->route[r].input * p->partitions + (t - k) % p->partitions) * s->stride;
                h[count++] = s->spectra + (ir->route[r].plane * p->partitions + k) * s->stride;
            }
        }
        float *out = s->out + (o * 2 + (t & 1)) * p->hop;
        if (count)
            gc_fft_inverse(s->fft, x, h, count, s->work, out, p->hop);
        else
            memset(out, 0, (size_t)p->hop * sizeof *out);
    }
}

/* Claims the next block of the stage and stores its number in *t. Returns false if its input is not complete or another
 * thread has claimed it. */
static bool claim_block(stage *s, int64_t *t) {
    int64_t done = atomic_load_explicit(&s->done, memory_order_acquire);
    if (atomic_load_explicit(&s->published, memory_order_acquire) <= done)
        return false;
    *t = done;
    return atomic_compare_exchange_strong_explicit(&s->claimed, &done, done + 1, memory_order_acq_rel,
                                                   memory_order_relaxed);
}

static void run_block(gc_rt_convolver *c, stage *s, int64_t t) {
    if (s->dense)
        compute_dense_block(c, s, t);
    else
        compute_block(c, s, t);
    atomic_store_explicit(&s->done, t + 1, memory_order_release);
}

bool gc_rt_convolver_work(gc_rt_convolver *c) {
    for (int i = 0; i < c->schedule.stages; i++) { /* sorted by hop: the shortest is the most urgent */
        int64_t t;
        if (!c->stage[i].plan.in_callback && claim_block(&c->stage[i], &t)) {
            run_block(c, &c->stage[i], t);
            return true;
        }
    }
    return false;
}

/* ---- The callback ------------------------------------------------------------------------------------------------ */

/* Returns whether the output of block t is ready. Computes it first where the callback has to. */
static bool is_block_ready(gc_rt_convolver *c, stage *s, int64_t t, bool freewheel) {
    for (;;) {
        int64_t claimed;
        if (atomic_load_explicit(&s->done, memory_order_acquire) > t)
            return true;
        if ((freewheel || s->plan.in_callback) && claim_block(s, &claimed))
            run_block(c, s, claimed);
        else if (!freewheel)
            return false;
    }
}

/* Writes n frames of input (NULL: silence) into the rings and their mirrors. */
static void write_input(gc_rt_convolver *c, const float *const *in, int64_t at, int64_t n) {
    int64_t position = c->now & (c->ring - 1);
    for (int i = 0; i < c->ir->inputs; i++) {
        float *to = input_ring(c, i);
        const float *from = in ? in[c->channel[i]] + at : c->silence;
        memcpy(to + position, from, (size_t)n * sizeof *to);
        if (position < c->mirror)
            memcpy(to + c->ring + position, from, (size_t)gc_min(n, c->mirror - position) * sizeof *to);
    }
}

/* Adds the output of a stage to n frames. Returns 1 if it is not ready, else 0. */
static int64_t add_stage(gc_rt_convolver *c, stage *s, float *const *out, int64_t at, int64_t n, bool freewheel) {
    int64_t frame = c->now - s->plan.offset, hop = s->plan.hop;
    if (frame < 0)
        return 0;
    int64_t t = frame / hop, from = frame % hop;
    if (!is_block_ready(c, s, t, freewheel))
        return 1;
    for (int o = 0; o < c->ir->outputs; o++) {
        const float *add = s->out + (o * 2 + (t & 1)) * hop + from;
        float *to = output_of(c, out, o) + at;
        for (int64_t i = 0; i < n; i++)
            to[i] += add[i];
    }
    return 0;
}

/* Adds the head to n frames by one overlap-save block that ends with them. */
static void add_head_block(gc_rt_convolver *c, float *const *out, int64_t at, int64_t n) {
    const int64_t points = c->schedule.head_points, kept = gc_round_up(n, 32);
    const int64_t from = (c->now + n - points + c->ring) & (c->ring - 1);
    for (int i = 0; i < c->ir->inputs; i++)
        gc_rt_dense_forward(c->head, i, 0, input_ring(c, i) + from);
    gc_rt_dense_multiply(c->head, 0);
    for (int o = 0; o < c->ir->outputs; o++) {
        float *to = output_of(c, out, o) + at;
        if (c->components.output_owner[o] < 0)
            continue;
        gc_rt_dense_inverse(c->head, o, points - kept, c->head_out);
        for (int64_t i = 0; i < n; i++)
            to[i] += c->head_out[kept - n + i];
    }
}

/* Adds the convolution with the head to n frames: in a block where that takes less time, else directly. */
static void add_head(gc_rt_convolver *c, float *const *out, int64_t at, int64_t n) {
    int64_t position = c->now & (c->ring - 1);
    if (c->zeros >= c->schedule.head)
        return;
    if (c->head && n >= c->schedule.head_frames && gc_round_up(n, 32) + c->schedule.head <= c->schedule.head_points) {
        add_head_block(c, out, at, n);
        return;
    }
    if (position < c->schedule.head) /* read from the mirror: the history lies before it, at the end of the ring */
        position += c->ring;
    for (int r = 0; r < c->ir->routes; r++) {
        const gc_route *route = &c->ir->route[r];
        c->simd->direct(input_ring(c, route->input) + position - c->zeros, gc_ir_plane(c->ir, route->plane) + c->zeros,
                        c->schedule.head - c->zeros, output_of(c, out, route->output) + at, n, 1);
    }
}

int64_t gc_rt_convolver_process(gc_rt_convolver *c, const float *const *in, float *const *out, int64_t frames,
                                bool freewheel) {
    int64_t shortest = c->schedule.stages ? c->stage[0].plan.hop : SEGMENT, late = 0;
    for (int64_t at = 0; at < frames;) {
        /* Up to the end of the shortest stage's block; the ring ends on such a boundary too. */
        int64_t n = gc_min(gc_min(frames - at, SEGMENT), shortest - c->now % shortest);
        write_input(c, in, at, n);
        add_head(c, out, at, n);
        for (int i = 0; i < c->schedule.stages; i++)
            late += add_stage(c, &c->stage[i], out, at, n, freewheel);
        if (c->tail) {
            gc_gpu_tail_publish(c->tail, c->now + n);
            late += gc_gpu_tail_add(c->tail, out, at, n, c->now, freewheel);
        }
        c->now += n;
        at += n;
        for (int i = 0; i < c->schedule.stages; i++) {
            stage *s = &c->stage[i];
            if (c->now % s->plan.hop == 0)
                atomic_store_explicit(&s->published, c->now / s->plan.hop, memory_order_release);
        }
    }
    return late;
}
