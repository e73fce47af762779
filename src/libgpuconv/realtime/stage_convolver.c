/* The head, the stages and the tail of one response, and the counters that the callback and the workers share. */
#include "stage_convolver.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <stdlib.h>
#include <string.h>

enum {
    SEGMENT = 4096,  /* most frames processed at a time */
    HISTORY_HOPS = 8 /* length of the input ring in hops of the longest stage */
};

static void free_stage(gc_rt_stage *s) {
    gc_section_free(s->section);
    free(s->channel);
    free(s->out);
}

void gc_rt_convolver_free(gc_rt_convolver *c) {
    if (!c)
        return;
    gc_gpu_tail_free(c->tail); /* first: its thread reads the input ring */
    for (int i = 0; i < c->schedule.stages; i++)
        free_stage(&c->stage[i]);
    free_stage(&c->head);
    gpuconv_ir_free(c->ir);
    gpuconv_ir_free(c->response);
    free(c->input);
    free(c->silence);
    free(c->channel);
    free(c);
}

/* Allocates a stage of `plan` and transforms its section of the response: plan->partitions partitions of `length` taps
 * from tap plan->offset on. Returns false without memory or once cancelled. */
static bool make_stage(const gc_rt_convolver *c, const gc_rt_stage_plan *plan, int64_t length, int64_t points,
                       gc_rt_stage *s) {
    const int64_t silent = gc_max(0, gc_min(plan->partitions, (c->schedule.zeros - plan->offset) / length));
    const gc_section section = {.kind = c->schedule.dense && silent == 0 ? GC_SECTION_DENSE : GC_SECTION_BLOCKS,
                                .ir = c->ir,
                                .offset = plan->offset,
                                .length = length,
                                .partitions = plan->partitions,
                                .silent = silent,
                                .points = points,
                                .hop = plan->hop,
                                .blocks = 1};
    s->plan = *plan;
    s->section = gc_section_new(&section, NULL);
    s->channel = gc_calloc((int64_t)c->ir->inputs + c->ir->outputs, sizeof *s->channel);
    s->out = gc_calloc(c->ir->outputs * 2 * plan->hop, sizeof *s->out);
    return s->section && s->channel && s->out;
}

/* Makes the stages, and the head in blocks if the schedule has one. Returns false without memory or once cancelled. */
static bool make_stages(gc_rt_convolver *c) {
    const gc_rt_schedule *schedule = &c->schedule;
    const gc_rt_stage_plan head = {.hop = schedule->head_points - gc_round_up(schedule->head, 32), .partitions = 1};
    bool made = true;
    for (int i = 0; i < schedule->stages; i++) {
        const gc_rt_stage_plan *plan = &schedule->stage[i];
        made = made && make_stage(c, plan, plan->hop, 2 * plan->hop, &c->stage[i]);
    }
    return made && (!schedule->head_points || make_stage(c, &head, schedule->head, schedule->head_points, &c->head));
}

/* Makes the stages and the input rings of the CPU's part. Returns MEMORY. */
static gpuconv_status make_cpu_part(gc_rt_convolver *c, const gc_rt_calls *calls, gpuconv_error *error) {
    const gc_rt_schedule *schedule = &c->schedule;
    c->simd = gc_simd_best();
    gc_rt_schedule_make(c->ir, calls, &c->schedule);
    int64_t longest = schedule->stages ? schedule->stage[schedule->stages - 1].hop : 0;
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
    const bool made = c->input && c->silence && c->channel && make_stages(c);
    return made ? GPUCONV_OK : gc_fail_memory(error, "a real-time convolver");
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
        status = gc_gpu_tail_new(ir, calls->rate, gpu, &input, &c->tail, error);
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
        gc_rt_stage *s = &c->stage[i];
        gc_section_reset(s->section);
        atomic_store(&s->published, 0);
        atomic_store(&s->claimed, 0);
        atomic_store(&s->done, 0);
    }
    memset(c->input, 0, (size_t)(c->ir->inputs * (c->ring + c->mirror)) * sizeof *c->input);
    c->now = 0;
}

/* Returns the caller's channel of an output. */
static float *output_of(const gc_rt_convolver *c, float *const *out, int output) {
    return out[c->channel[c->ir->inputs + output]];
}

/* Returns the input ring of one channel. */
static float *input_ring(const gc_rt_convolver *c, int input) {
    return c->input + input * (c->ring + c->mirror);
}

/* ---- A stage's block --------------------------------------------------------------------------------------------- */

/* Convolves the block of input from frame `frame` on with all partitions and writes it to half 0 or 1 of the stage's
 * output. `past`: frames before it that the transform reads; before frame 0 lies the end of the ring, still zero. */
static void compute_block(gc_rt_convolver *c, gc_rt_stage *s, int64_t frame, int64_t past, int64_t half) {
    const int inputs = c->ir->inputs;
    for (int i = 0; i < inputs; i++)
        s->channel[i] = input_ring(c, i) + ((frame - past) & (c->ring - 1)) + past;
    for (int o = 0; o < c->ir->outputs; o++)
        s->channel[inputs + o] = s->out + (o * 2 + half) * s->plan.hop;
    gc_section_run(s->section, NULL, s->channel, s->channel + inputs, s->plan.hop);
}

/* Claims the next block of the stage and stores its number in *t. Returns false if its input is not complete or another
 * thread has claimed it. */
static bool claim_block(gc_rt_stage *s, int64_t *t) {
    int64_t done = atomic_load_explicit(&s->done, memory_order_acquire);
    if (atomic_load_explicit(&s->published, memory_order_acquire) <= done)
        return false;
    *t = done;
    return atomic_compare_exchange_strong_explicit(&s->claimed, &done, done + 1, memory_order_acq_rel,
                                                   memory_order_relaxed);
}

static void run_block(gc_rt_convolver *c, gc_rt_stage *s, int64_t t) {
    compute_block(c, s, t * s->plan.hop, s->plan.hop, t & 1);
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
static bool is_block_ready(gc_rt_convolver *c, gc_rt_stage *s, int64_t t, bool freewheel) {
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

/* Adds n frames of the stage's output, from frame `from` of half 0 or 1 on. */
static void add_output(gc_rt_convolver *c, const gc_rt_stage *s, int64_t half, int64_t from, float *const *out,
                       int64_t at, int64_t n) {
    for (int o = 0; o < c->ir->outputs; o++) {
        const float *add = s->out + (o * 2 + half) * s->plan.hop + from;
        float *to = output_of(c, out, o) + at;
        for (int64_t i = 0; i < n; i++)
            to[i] += add[i];
    }
}

/* Adds the output of a stage to n frames. Returns 1 if it is not ready, else 0. */
static int64_t add_stage(gc_rt_convolver *c, gc_rt_stage *s, float *const *out, int64_t at, int64_t n, bool freewheel) {
    int64_t frame = c->now - s->plan.offset, hop = s->plan.hop;
    if (frame < 0)
        return 0;
    int64_t t = frame / hop, from = frame % hop;
    if (!is_block_ready(c, s, t, freewheel))
        return 1;
    add_output(c, s, t & 1, from, out, at, n);
    return 0;
}

/* Adds the head to n frames by one block that ends with them. */
static void add_head_block(gc_rt_convolver *c, float *const *out, int64_t at, int64_t n) {
    const int64_t hop = c->head.plan.hop;
    compute_block(c, &c->head, c->now + n - hop, c->schedule.head_points - hop, 0);
    add_output(c, &c->head, 0, hop - n, out, at, n);
}

/* Adds the convolution with the head to n frames: in a block where that takes less time, else directly. */
static void add_head(gc_rt_convolver *c, float *const *out, int64_t at, int64_t n) {
    const int64_t zeros = c->schedule.zeros;
    int64_t position = c->now & (c->ring - 1);
    if (zeros >= c->schedule.head)
        return;
    if (c->head.section && n >= c->schedule.head_frames && n <= c->head.plan.hop) {
        add_head_block(c, out, at, n);
        return;
    }
    if (position < c->schedule.head) /* read from the mirror: the history lies before it, at the end of the ring */
        position += c->ring;
    for (int r = 0; r < c->ir->routes; r++) {
        const gc_route *route = &c->ir->route[r];
        c->simd->direct(input_ring(c, route->input) + position - zeros, gc_ir_plane(c->ir, route->plane) + zeros,
                        c->schedule.head - zeros, output_of(c, out, route->output) + at, n, 1);
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
            gc_rt_stage *s = &c->stage[i];
            if (c->now % s->plan.hop == 0)
                atomic_store_explicit(&s->published, c->now / s->plan.hop, memory_order_release);
        }
    }
    return late;
}
