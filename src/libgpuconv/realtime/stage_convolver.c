/* Head and stages, and the counters between the callback and the workers. */
#include "stage_convolver.h"

#include "gpu_tail.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/fft.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Frames that a call is cut into at most; how many of the longest partitions of input are kept. */
enum { SEGMENT = 4096, SLACK = 8 };

typedef struct stage {
    gc_rt_stage_plan plan;
    gc_fft *fft;
    int64_t stride;     /* floats of a spectrum */
    float *spectra;     /* planes x partitions, scaled by 1 / hop */
    float *delay;       /* inputs x partitions */
    float *out;         /* outputs x 2 x hop: of the last block done and of the one before */
    float *work;        /* a spectrum */
    const float **list; /* two of routes x partitions */
    _Atomic int64_t published, claimed, done;
} stage;

struct gc_rt_convolver {
    gpuconv_ir *whole, *ir; /* the response; what of it is done here */
    gc_gpu_tail *remote;    /* the rest of it, or NULL */
    int64_t zeros;          /* at its beginning */
    const gc_simd *simd;
    gc_rt_schedule schedule;
    stage stage[GC_RT_STAGES];
    int64_t now;          /* frames so far */
    int64_t ring, mirror; /* of an input's buffer: its length, and how much of its beginning stands behind it again */
    float *input;         /* inputs x (ring + mirror) */
    float *silence;
};

static void free_stage(stage *s) {
    gc_fft_free(s->fft);
    free(s->spectra);
    free(s->delay);
    free(s->out);
    free(s->work);
    free(s->list);
}

void gc_rt_convolver_free(gc_rt_convolver *c) {
    if (!c)
        return;
    gc_gpu_tail_free(c->remote); /* which reads the input */
    for (int i = 0; i < c->schedule.stages; i++)
        free_stage(&c->stage[i]);
    gpuconv_ir_free(c->ir);
    gpuconv_ir_free(c->whole);
    free(c->input);
    free(c->silence);
    free(c);
}

static bool make_stage(const gpuconv_ir *ir, const gc_rt_stage_plan *plan, stage *s) {
    s->plan = *plan;
    s->fft = gc_fft_new(gc_simd_best(), 2 * plan->hop);
    if (!s->fft)
        return false;
    s->stride = gc_fft_floats(s->fft);
    int64_t bytes = s->stride * (int64_t)sizeof(float);
    s->spectra = gc_calloc(ir->planes * plan->partitions, bytes);
    s->delay = gc_calloc(ir->inputs * plan->partitions, bytes);
    s->out = gc_calloc(ir->outputs * 2 * plan->hop, sizeof(float));
    s->work = gc_calloc(1, bytes);
    s->list = gc_calloc(2 * ir->routes * plan->partitions, sizeof *s->list);
    float *block = gc_calloc(2 * plan->hop, sizeof *block);
    bool made = s->spectra && s->delay && s->out && s->work && s->list && block;
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

gpuconv_status gc_rt_convolver_new(const gpuconv_ir *whole, int64_t block, double rate, const gc_rt_far *far,
                                   gc_rt_convolver **convolver, gpuconv_error *error) {
    *convolver = NULL;
    gc_rt_convolver *c = gc_calloc(1, sizeof *c);
    if (!c)
        return gc_fail_memory(error, "a response that plays");
    bool remote = far->backend && whole->frames > GC_RT_LEAD;
    gpuconv_status status = remote ? gpuconv_ir_cut(whole, 0, GC_RT_LEAD, &c->ir, error) : GPUCONV_OK;
    if (status) {
        free(c);
        return status;
    }
    c->ir = remote ? c->ir : gc_ir_hold(whole);
    c->whole = gc_ir_hold(whole);
    const gpuconv_ir *ir = c->ir;
    c->zeros = gc_rt_zeros(ir);
    c->simd = gc_simd_best();
    gc_rt_schedule_make(ir, block, rate, &c->schedule);
    const gc_rt_schedule *plan = &c->schedule;
    int64_t longest = plan->stages ? plan->stage[plan->stages - 1].hop : 0;
    bool made = true;
    for (int i = 0; i < plan->stages; i++)
        made = made && make_stage(ir, &plan->stage[i], &c->stage[i]);
    c->ring = gc_power_of_two(gc_max(SLACK * longest, plan->head + SEGMENT));
    if (remote)
        c->ring = gc_max(c->ring, GC_GPU_TAIL_RING);
    c->mirror = gc_max(longest, plan->head + SEGMENT);
    c->input = gc_calloc(ir->inputs * (c->ring + c->mirror), sizeof *c->input);
    c->silence = gc_calloc(SEGMENT, sizeof *c->silence);
    if (!made || !c->input || !c->silence) {
        gc_rt_convolver_free(c);
        return gc_fail_memory(error, "a response that plays");
    }
    gc_rt_input input = {c->input, c->ring + c->mirror, c->ring};
    if (remote)
        status = gc_gpu_tail_new(whole, rate, far->backend, far->device, &input, &c->remote, error);
    if (status) {
        gc_rt_convolver_free(c);
        return status;
    }
    *convolver = c;
    return GPUCONV_OK;
}

const gc_rt_schedule *gc_rt_convolver_schedule(const gc_rt_convolver *c) {
    return &c->schedule;
}

const gpuconv_ir *gc_rt_convolver_ir(const gc_rt_convolver *c) {
    return c->whole;
}

bool gc_rt_convolver_far(const gc_rt_convolver *c) {
    return c->remote != NULL;
}

bool gc_rt_convolver_lost(const gc_rt_convolver *c) {
    return c->remote && gc_gpu_tail_lost(c->remote);
}

static float *input_of(const gc_rt_convolver *c, int input) {
    return c->input + input * (c->ring + c->mirror);
}

/* ---- A stage's block --------------------------------------------------------------------------------------------- */

/* Block t of the input, and what it and those before it give: the output from frame t hop + offset on. */
static void compute(gc_rt_convolver *c, stage *s, int64_t t) {
    const gpuconv_ir *ir = c->ir;
    const gc_rt_stage_plan *p = &s->plan;
    for (int i = 0; i < ir->inputs; i++) {
        /* The block and the one before; before the first one there is the zeroed end of the ring. */
        int64_t from = ((t - 1) * p->hop + c->ring) & (c->ring - 1);
        gc_fft_forward(s->fft, input_of(c, i) + from, s->delay + (i * p->partitions + t % p->partitions) * s->stride);
    }
    const float **x = s->list, **h = x + ir->routes * p->partitions;
    int64_t reach = gc_min(p->partitions, t + 1);
    for (int o = 0; o < ir->outputs; o++) {
        int64_t count = 0;
        for (int r = 0; r < ir->routes; r++) {
            if (ir->route[r].output != o)
                continue;
            for (int64_t k = 0; k < reach; k++) {
                if (p->offset + (k + 1) * p->hop <= c->zeros)
                    continue; /* a partition of nothing */
                x[count] = s->delay + (ir->route[r].input * p->partitions + (t - k) % p->partitions) * s->stride;
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

/* Takes the next block if it is there and nobody has it. */
static bool claim(stage *s, int64_t *t) {
    int64_t done = atomic_load_explicit(&s->done, memory_order_acquire);
    if (atomic_load_explicit(&s->published, memory_order_acquire) <= done)
        return false;
    *t = done;
    return atomic_compare_exchange_strong_explicit(&s->claimed, &done, done + 1, memory_order_acq_rel,
                                                   memory_order_relaxed);
}

static void run(gc_rt_convolver *c, stage *s, int64_t t) {
    compute(c, s, t);
    atomic_store_explicit(&s->done, t + 1, memory_order_release);
}

bool gc_rt_convolver_work(gc_rt_convolver *c) {
    for (int i = 0; i < c->schedule.stages; i++) { /* the shortest has the least time left */
        int64_t t;
        if (!c->stage[i].plan.here && claim(&c->stage[i], &t)) {
            run(c, &c->stage[i], t);
            return true;
        }
    }
    return false;
}

/* ---- The callback ------------------------------------------------------------------------------------------------ */

/* Whether block t of a stage is there to be heard. */
static bool ready(gc_rt_convolver *c, stage *s, int64_t t, bool freewheel) {
    for (;;) {
        int64_t mine;
        if (atomic_load_explicit(&s->done, memory_order_acquire) > t)
            return true;
        if ((freewheel || s->plan.here) && claim(s, &mine))
            run(c, s, mine);
        else if (!freewheel)
            return false;
    }
}

static void write_input(gc_rt_convolver *c, const float *const *in, int64_t at, int64_t n) {
    int64_t place = c->now & (c->ring - 1);
    for (int i = 0; i < c->ir->inputs; i++) {
        float *to = input_of(c, i);
        const float *from = in ? in[i] + at : c->silence;
        memcpy(to + place, from, (size_t)n * sizeof *to);
        if (place < c->mirror)
            memcpy(to + c->ring + place, from, (size_t)gc_min(n, c->mirror - place) * sizeof *to);
    }
}

static int64_t add_stage(gc_rt_convolver *c, stage *s, float *const *out, int64_t at, int64_t n, bool freewheel) {
    int64_t frame = c->now - s->plan.offset, hop = s->plan.hop;
    if (frame < 0)
        return 0;
    int64_t t = frame / hop, from = frame % hop;
    if (!ready(c, s, t, freewheel))
        return 1;
    for (int o = 0; o < c->ir->outputs; o++) {
        const float *add = s->out + (o * 2 + (t & 1)) * hop + from;
        float *to = out[o] + at;
        for (int64_t i = 0; i < n; i++)
            to[i] += add[i];
    }
    return 0;
}

static void add_head(gc_rt_convolver *c, float *const *out, int64_t at, int64_t n) {
    int64_t place = c->now & (c->ring - 1);
    if (c->zeros >= c->schedule.head)
        return;
    if (place < c->schedule.head) /* its history lies at the ring's end, before the mirror */
        place += c->ring;
    for (int r = 0; r < c->ir->routes; r++) {
        const gc_route *route = &c->ir->route[r];
        c->simd->direct(input_of(c, route->input) + place - c->zeros, gc_ir_plane(c->ir, route->plane) + c->zeros,
                        c->schedule.head - c->zeros, out[route->output] + at, n, 1);
    }
}

int64_t gc_rt_convolver_process(gc_rt_convolver *c, const float *const *in, float *const *out, int64_t frames,
                                bool freewheel) {
    int64_t shortest = c->schedule.stages ? c->stage[0].plan.hop : SEGMENT, missed = 0;
    for (int64_t at = 0; at < frames;) {
        /* Up to the next block's end, which is also where the ring ends. */
        int64_t n = gc_min(gc_min(frames - at, SEGMENT), shortest - c->now % shortest);
        write_input(c, in, at, n);
        add_head(c, out, at, n);
        for (int i = 0; i < c->schedule.stages; i++)
            missed += add_stage(c, &c->stage[i], out, at, n, freewheel);
        if (c->remote) {
            gc_gpu_tail_publish(c->remote, c->now + n);
            missed += gc_gpu_tail_add(c->remote, out, at, n, c->now, freewheel);
        }
        c->now += n;
        at += n;
        for (int i = 0; i < c->schedule.stages; i++) {
            stage *s = &c->stage[i];
            if (c->now % s->plan.hop == 0)
                atomic_store_explicit(&s->published, c->now / s->plan.hop, memory_order_release);
        }
    }
    return missed;
}
