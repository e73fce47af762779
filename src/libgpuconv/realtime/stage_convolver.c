/* The head, the stages and the tail of one response, and the counters that the callback and the workers share. */
#include "stage_convolver.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/subnormal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    SEGMENT = 4096,  /* frames between the cuts of calls without stages, where the ring may end */
    HISTORY_HOPS = 8 /* length of the input ring in hops of the longest stage */
};

/* Returns the input ring of one channel. */
static float *input_ring(const gc_rt_convolver *convolver, int input) {
    return convolver->input + input * (convolver->ring + convolver->mirror);
}

/* Returns block t of an output of a stage. */
static float *block_of(const gc_rt_stage *stage, int output, int64_t t) {
    return stage->out + (output * stage->blocks + (t & (stage->blocks - 1))) * stage->level.hop;
}

/* ---- The tail on a GPU ------------------------------------------------------------------------------------------- */

enum {
    PERIOD = 512 /* frames of a block */,
    OUTPUT_BLOCKS = 4 * GC_GPU_TAIL_OFFSET / PERIOD,
    INPUT_MIN = 1 << 16 /* frames that the input ring must hold at least */
};

static const double late_limit_seconds = 0.2;

struct gc_gpu_tail {
    const gc_rt_convolver *convolver;
    gc_rt_stage *stage;
    gc_gpu_target gpu;
    gc_bank *bank;
    float *in; /* inputs x PERIOD, pinned; of the bank */
    struct timespec poll_interval;
    int64_t late_limit; /* frames */
    pthread_t thread;
    bool thread_started;
    _Atomic bool quit, failed;
    int64_t late_frames; /* consecutive frames without output; written by the callback only */
};

/* Writes the taps of one route behind GC_GPU_TAIL_OFFSET; the bank calls it once for each route. */
static void copy_taps(void *context, int route, float *taps) {
    const gpuconv_ir *ir = context;
    memcpy(taps, gc_ir_plane(ir, ir->route[route].plane) + GC_GPU_TAIL_OFFSET,
           (size_t)(ir->frames - GC_GPU_TAIL_OFFSET) * sizeof *taps);
}

/* Convolves a block. Returns false if the bank failed, or if the callback may have overwritten the block's input in the
 * ring before it was copied. */
static bool process_block(gc_gpu_tail *tail, int64_t t) {
    const gc_rt_convolver *c = tail->convolver;
    gc_rt_stage *s = tail->stage;
    const float *out;
    gpuconv_error error;
    /* The ring's length is a multiple of PERIOD: a block never wraps round. */
    for (int i = 0; i < c->ir->inputs; i++)
        memcpy(tail->in + (int64_t)i * PERIOD, input_ring(c, i) + (t * PERIOD & (c->ring - 1)), PERIOD * sizeof(float));
    /* The callback writes at most a block and GC_RT_CHUNK frames before it publishes. */
    if (atomic_load(&s->published) - t >= (c->ring - GC_RT_CHUNK) / PERIOD - 1 ||
        tail->gpu.backend->bank->process(tail->bank, tail->in, &out, &error) != GPUCONV_OK)
        return false;
    for (int o = 0; o < c->ir->outputs; o++)
        memcpy(block_of(s, o, t), out + (int64_t)o * PERIOD, PERIOD * sizeof(float));
    return true;
}

static void *run_tail(void *argument) {
    gc_gpu_tail *tail = argument;
    gc_flush_subnormals();
    while (!atomic_load(&tail->quit) && !atomic_load(&tail->failed)) {
        const int64_t t = atomic_load(&tail->stage->done);
        if (atomic_load(&tail->stage->published) <= t)
            nanosleep(&tail->poll_interval, NULL);
        else if (process_block(tail, t))
            atomic_store(&tail->stage->done, t + 1);
        else
            atomic_store(&tail->failed, true);
    }
    return NULL;
}

/* Opens the bank. Returns DEVICE, MEMORY, or the bank's error. */
static gpuconv_status open_bank(gc_gpu_tail *tail, gpuconv_error *error) {
    gpuconv_ir *ir = tail->convolver->response;
    const gc_bank_options options = {.routes = ir->routes,
                                     .block = PERIOD,
                                     .taps = ir->frames - GC_GPU_TAIL_OFFSET,
                                     .device = tail->gpu.device,
                                     .inputs = ir->inputs,
                                     .outputs = ir->outputs,
                                     .route = ir->route,
                                     .response = copy_taps,
                                     .context = ir};
    gpuconv_status status = tail->gpu.backend->bank->open(&options, &tail->bank, error);
    if (status)
        return status;
    tail->in = tail->gpu.backend->alloc_pinned(options.device, (int64_t)ir->inputs * PERIOD);
    return tail->in ? GPUCONV_OK : gc_fail_memory(error, "the tail on the GPU");
}

bool gc_gpu_tail_has_failed(const gc_gpu_tail *tail) {
    return atomic_load_explicit(&tail->failed, memory_order_relaxed);
}

/* Opens the bank and starts the thread, unless the tail has failed; if this fails, the tail has failed. Returns DEVICE,
 * MEMORY, or the bank's error. */
static gpuconv_status tail_start(gc_gpu_tail *tail, gpuconv_error *error) {
    if (gc_gpu_tail_has_failed(tail))
        return GPUCONV_ERROR_DEVICE;
    atomic_store(&tail->quit, false);
    tail->late_frames = 0;
    gpuconv_status status = open_bank(tail, error);
    const int code = status ? 0 : pthread_create(&tail->thread, NULL, run_tail, tail);
    if (code)
        status = gc_fail(error, GPUCONV_ERROR_MEMORY, "cannot start the GPU tail thread: %s", strerror(code));
    tail->thread_started = !status;
    if (status)
        atomic_store(&tail->failed, true);
    return status;
}

/* Ends the thread and closes the bank, which has no other way to forget its input. */
static void tail_stop(gc_gpu_tail *tail) {
    atomic_store(&tail->quit, true);
    if (tail->thread_started)
        pthread_join(tail->thread, NULL);
    tail->thread_started = false;
    if (tail->bank) {
        tail->gpu.backend->free_pinned(tail->gpu.device, tail->in);
        tail->gpu.backend->bank->free(tail->bank);
    }
    tail->bank = NULL;
}

static void tail_free(gc_gpu_tail *tail) {
    if (!tail)
        return;
    tail_stop(tail);
    free(tail);
}

/* Makes the tail of a convolver whose response has more than GC_GPU_TAIL_OFFSET taps, and its stage behind the stages
 * of the CPU, and starts it. Returns DEVICE, MEMORY, or the bank's error. */
static gpuconv_status tail_new(gc_rt_convolver *c, double rate, const gc_gpu_target *gpu, gpuconv_error *error) {
    gc_rt_stage *stage = &c->stage[c->stages];
    gc_gpu_tail *tail = c->tail = gc_calloc(1, sizeof *tail);
    stage->level = (gc_level){.hop = PERIOD, .first_tap = GC_GPU_TAIL_OFFSET};
    stage->blocks = OUTPUT_BLOCKS;
    stage->out = gc_calloc((int64_t)c->ir->outputs * OUTPUT_BLOCKS * PERIOD, sizeof *stage->out);
    if (!tail || !stage->out)
        return gc_fail_memory(error, "the tail on the GPU");
    tail->convolver = c;
    tail->stage = stage;
    tail->gpu = *gpu;
    tail->poll_interval.tv_nsec = (long)(1e9 * PERIOD / rate / 4);
    tail->late_limit = (int64_t)(late_limit_seconds * rate);
    return tail_start(tail, error);
}

/* Counts frames whose output was not ready; 0: the output was ready. After 0.2 s without a break the tail has failed.
 * For the callback. */
static void tail_count_late(gc_gpu_tail *tail, int64_t frames) {
    tail->late_frames = frames ? tail->late_frames + frames : 0;
    if (tail->late_frames > tail->late_limit)
        atomic_store_explicit(&tail->failed, true, memory_order_relaxed);
}

/* ---- Creation ---------------------------------------------------------------------------------------------------- */

static void free_stage(gc_rt_stage *s) {
    gc_section_free(s->section);
    free(s->channel);
    free(s->out);
}

void gc_rt_convolver_free(gc_rt_convolver *c) {
    if (!c)
        return;
    tail_free(c->tail); /* first: its thread reads the input ring */
    for (int i = 0; i <= c->stages; i++)
        free_stage(&c->stage[i]);
    free_stage(&c->head);
    gpuconv_ir_free(c->ir);
    gpuconv_ir_free(c->response);
    free(c->input);
    free(c->silence);
    free(c->channel);
    free(c);
}

/* Returns the number of frames of silence at the beginning of the response. */
static int64_t leading_zeros(const gpuconv_ir *ir) {
    int64_t zeros = ir->frames;
    for (int p = 0; p < ir->planes; p++)
        for (int64_t i = 0; i < zeros; i++)
            if (gc_ir_plane(ir, p)[i] != 0)
                zeros = i;
    return zeros;
}

/* Plans the levels of the CPU's part. Returns MEMORY. */
static gpuconv_status make_plan(gc_rt_convolver *c, const gc_rt_calls *calls, gpuconv_error *error) {
    const double callback_share = 0.06; /* of the callback's time, for one stage */
    const gc_backend *cpu = gc_backend_find(GPUCONV_BACKEND_CPU);
    const gpuconv_config config = gpuconv_config_default();
    gc_device device;
    gc_components components;
    gpuconv_status status = cpu->probe(&config, &device, error);
    if (!status && !gc_components_find(c->ir, &components)) {
        gc_components_free(&components);
        status = gc_fail_memory(error, "a real-time convolver");
    }
    if (status)
        return status;
    c->zeros = leading_zeros(c->ir);
    const gc_problem problem = {
        .kind = GC_BANK,
        .bank = {.ir = c->ir,
                 .products = gc_components_products(&components),
                 .zeros = c->zeros,
                 .block = calls->block,
                 .deadline = calls->share * callback_share * (double)calls->block / calls->rate}};
    const gc_costs costs = cpu->costs(&device);
    gc_components_free(&components);
    return gc_algorithms_choose(cpu->algorithms, &problem, &device, &costs, &c->plan, NULL, error);
}

/* Allocates a stage of `level` and transforms its partitions of `length` taps each. Returns false without memory or
 * once cancelled. */
static bool make_stage(const gc_rt_convolver *c, const gc_level *level, int64_t length, int64_t points,
                       gc_rt_stage *s) {
    const int64_t silent = gc_max(0, gc_min(level->partitions, (c->zeros - level->first_tap) / length));
    const gc_section section = {.kind = c->plan.levels.dense && silent == 0 ? GC_SECTION_DENSE : GC_SECTION_BLOCKS,
                                .ir = c->ir,
                                .offset = level->first_tap,
                                .length = length,
                                .partitions = level->partitions,
                                .silent = silent,
                                .points = points,
                                .hop = level->hop,
                                .blocks = 1};
    s->level = *level;
    s->section = gc_section_new(&section, NULL);
    s->channel = gc_calloc((int64_t)c->ir->inputs + c->ir->outputs, sizeof *s->channel);
    s->blocks = 2;
    s->out = gc_calloc(c->ir->outputs * s->blocks * level->hop, sizeof *s->out);
    return s->section && s->channel && s->out;
}

/* Makes the stages, and the head in blocks if the plan has one. Returns false without memory or once cancelled. */
static bool make_stages(gc_rt_convolver *c) {
    const gc_schedule *blocks = &c->plan.schedule;
    const gc_level head = {.hop = blocks->hop, .partitions = 1};
    bool made = !blocks->transform || make_stage(c, &head, blocks->partition, blocks->transform, &c->head);
    while (made && c->stages < c->plan.levels.count - 1) {
        const gc_level *level = &c->plan.levels.level[1 + c->stages];
        made = make_stage(c, level, level->hop, 2 * level->hop, &c->stage[c->stages++]);
    }
    return made;
}

/* Makes the stages and the input rings of the CPU's part. Returns MEMORY. */
static gpuconv_status make_cpu_part(gc_rt_convolver *c, const gc_rt_calls *calls, gpuconv_error *error) {
    gpuconv_status status = make_plan(c, calls, error);
    if (status)
        return status;
    const gc_levels *levels = &c->plan.levels;
    const int64_t head = levels->level[0].partitions, points = c->plan.schedule.transform;
    const int64_t longest = levels->level[levels->count - 1].hop; /* 1 without stages */
    c->simd = gc_simd_best();
    c->ring = gc_power_of_two(gc_max(gc_max(HISTORY_HOPS * longest, 2 * points), head + SEGMENT));
    if (c->ir != c->response)
        c->ring = gc_max(c->ring, INPUT_MIN);
    c->mirror = gc_max(gc_max(longest, points), head + SEGMENT);
    c->input = gc_calloc(c->ir->inputs * (c->ring + c->mirror), sizeof *c->input);
    c->silence = gc_calloc(GC_RT_CHUNK, sizeof *c->silence);
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
    if (!status && has_tail)
        status = tail_new(c, calls->rate, gpu, error);
    if (status) {
        gc_rt_convolver_free(c);
        return status;
    }
    *convolver = c;
    return GPUCONV_OK;
}

void gc_rt_convolver_reset(gc_rt_convolver *c) {
    if (c->tail)
        tail_stop(c->tail); /* first: its thread reads the input ring */
    for (int i = 0; i <= c->stages; i++) {
        gc_rt_stage *s = &c->stage[i];
        if (s->section)
            gc_section_reset(s->section);
        atomic_store(&s->published, 0);
        atomic_store(&s->claimed, 0);
        atomic_store(&s->done, 0);
    }
    memset(c->input, 0, (size_t)(c->ir->inputs * (c->ring + c->mirror)) * sizeof *c->input);
    c->now = 0;
    if (c->tail)
        (void)tail_start(c->tail, NULL); /* the CPU replaces a tail that has failed */
}

/* Returns the caller's channel of an output. */
static float *output_of(const gc_rt_convolver *c, float *const *out, int output) {
    return out[c->channel[c->ir->inputs + output]];
}

/* ---- A stage's block --------------------------------------------------------------------------------------------- */

/* Convolves the block of input from frame `frame` on with all partitions and writes it to block `t` of the stage's
 * output. `past`: frames before it that the transform reads; before frame 0 lies the end of the ring, still zero. */
static void compute_block(gc_rt_convolver *c, gc_rt_stage *s, int64_t frame, int64_t past, int64_t t) {
    const int inputs = c->ir->inputs;
    for (int i = 0; i < inputs; i++)
        s->channel[i] = input_ring(c, i) + ((frame - past) & (c->ring - 1)) + past;
    for (int o = 0; o < c->ir->outputs; o++)
        s->channel[inputs + o] = block_of(s, o, t);
    gc_section_run(s->section, NULL, s->channel, s->channel + inputs, s->level.hop);
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
    compute_block(c, s, t * s->level.hop, s->level.hop, t);
    atomic_store_explicit(&s->done, t + 1, memory_order_release);
}

bool gc_rt_convolver_work(gc_rt_convolver *c) {
    for (int i = 0; i < c->stages; i++) { /* sorted by hop: the shortest is the most urgent */
        int64_t t;
        if (!c->stage[i].level.at_once && claim_block(&c->stage[i], &t)) {
            run_block(c, &c->stage[i], t);
            return true;
        }
    }
    return false;
}

/* ---- The callback ------------------------------------------------------------------------------------------------ */

/* Returns whether the output of block t is ready. Computes it first where the callback has to, and waits for a GPU
 * where it may. */
static bool is_block_ready(gc_rt_convolver *c, gc_rt_stage *s, int64_t t, bool freewheel) {
    for (;;) {
        const struct timespec interval = {0, 20000};
        int64_t claimed;
        if (atomic_load_explicit(&s->done, memory_order_acquire) > t)
            return true;
        if (!freewheel && !s->level.at_once)
            return false;
        if (!s->section && gc_gpu_tail_has_failed(c->tail))
            return false;
        if (!s->section)
            nanosleep(&interval, NULL);
        else if (claim_block(s, &claimed))
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

/* Adds n frames of block t of the stage's output, from frame `from` of the block on. */
static void add_output(gc_rt_convolver *c, const gc_rt_stage *s, int64_t t, int64_t from, float *const *out, int64_t at,
                       int64_t n) {
    for (int o = 0; o < c->ir->outputs; o++) {
        const float *add = block_of(s, o, t) + from;
        float *to = output_of(c, out, o) + at;
        for (int64_t i = 0; i < n; i++)
            to[i] += add[i];
    }
}

/* Adds the output of a stage to n frames. Returns 1 if a part of it is not ready, else 0. */
static int64_t add_stage(gc_rt_convolver *c, gc_rt_stage *s, float *const *out, int64_t at, int64_t n, bool freewheel) {
    const int64_t hop = s->level.hop;
    int64_t late = 0, count;
    for (int64_t i = gc_max(0, s->level.first_tap - c->now); i < n; i += count) {
        const int64_t frame = c->now + i - s->level.first_tap, from = frame % hop;
        count = gc_min(n - i, hop - from);
        if (is_block_ready(c, s, frame / hop, freewheel))
            add_output(c, s, frame / hop, from, out, at + i, count);
        else
            late = 1;
    }
    return late;
}

/* Adds the output of the tail on a GPU, unless it has failed: the CPU is then about to replace it. */
static int64_t add_tail(gc_rt_convolver *c, float *const *out, int64_t at, int64_t n, bool freewheel) {
    if (gc_gpu_tail_has_failed(c->tail))
        return 0;
    const int64_t late = add_stage(c, &c->stage[c->stages], out, at, n, freewheel);
    tail_count_late(c->tail, late ? n : 0);
    return late;
}

/* Adds the head to n frames by one block that ends with them. */
static void add_head_block(gc_rt_convolver *c, float *const *out, int64_t at, int64_t n) {
    const int64_t hop = c->head.level.hop;
    compute_block(c, &c->head, c->now + n - hop, c->plan.schedule.transform - hop, 0);
    add_output(c, &c->head, 0, hop - n, out, at, n);
}

/* Adds the convolution with the head to n frames: in a block where that takes less time, else directly. */
static void add_head(gc_rt_convolver *c, float *const *out, int64_t at, int64_t n) {
    const int64_t zeros = c->zeros, head = c->plan.levels.level[0].partitions;
    int64_t position = c->now & (c->ring - 1);
    if (zeros >= head)
        return;
    if (c->head.section && n >= c->plan.chunk && n <= c->head.level.hop) {
        add_head_block(c, out, at, n);
        return;
    }
    if (position < head) /* read from the mirror: the history lies before it, at the end of the ring */
        position += c->ring;
    for (int r = 0; r < c->ir->routes; r++) {
        const gc_route *route = &c->ir->route[r];
        c->simd->direct(input_ring(c, route->input) + position - zeros, gc_ir_plane(c->ir, route->plane) + zeros,
                        head - zeros, output_of(c, out, route->output) + at, n, 1);
    }
}

int64_t gc_rt_convolver_process(gc_rt_convolver *c, const float *const *in, float *const *out, int64_t frames,
                                bool freewheel) {
    int64_t shortest = c->stages ? c->stage[0].level.hop : SEGMENT, late = 0;
    for (int64_t at = 0; at < frames;) {
        /* Up to the end of the shortest stage's block; the ring ends on such a boundary too. */
        int64_t n = gc_min(frames - at, shortest - c->now % shortest);
        write_input(c, in, at, n);
        add_head(c, out, at, n);
        for (int i = 0; i < c->stages; i++)
            late += add_stage(c, &c->stage[i], out, at, n, freewheel);
        if (c->tail)
            late += add_tail(c, out, at, n, freewheel);
        c->now += n;
        at += n;
        for (int i = 0; i < c->stages + (c->tail ? 1 : 0); i++)
            atomic_store_explicit(&c->stage[i].published, c->now / c->stage[i].level.hop, memory_order_release);
    }
    return late;
}
