/* Blocks come by the clock; how long each took is kept, and at the end some of what came out is held against sums. */
#include "realtime.h"

#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/random.h"
#include "libgpuconv/core/statistics.h"
#include "libgpuconv/engine/backends.h"
#include "libgpuconv/report/plot.h"
#include "libgpuconv/report/report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

/* PERIODS: different blocks of input, played round and round; a prime, so that no hop is a multiple of them all. */
enum { POOL = 1 << 22, PERIODS = 61, BINS = 48, CHECKED = 24, CPU_CHANNELS = 1024, GPU_CHANNELS = 1 << 20 };

/* What plays: threads of the CPU, or a bank on a GPU. */
typedef struct session {
    const gc_bench_realtime_case *what;
    int channels;
    gpuconv_realtime *realtime;
    const gc_filter_bank_backend *backend; /* NULL: the CPU plays */
    gc_filter_bank *bank;
    float *pool, *envelope; /* of which every channel's response is made, and every channel's input */
    float *in, *room;       /* PERIODS x channels x block; where a CPU's results go */
    const float *out;       /* channels x block: the last block's results */
    const float **in_row;
    float **out_row;
    double *took; /* seconds of each block */
    int64_t blocks;
    double waiting, cpu, wall, off;
} session;

static bool on_gpu(const session *s) {
    return s->backend != NULL;
}

static const char *plan_of(const session *s) {
    if (s->backend)
        return s->backend->plan(s->bank);
    return gpuconv_realtime_plan(s->realtime);
}

/* A channel's response: noise from a place of its own that falls by 60 dB. */
static float tap(const session *s, int channel, int64_t k) {
    return s->pool[((int64_t)channel * 40503 + k) & (POOL - 1)] * s->envelope[k];
}

static float sample(const session *s, int channel, int64_t n) {
    int64_t block = n / s->what->block % PERIODS, i = n % s->what->block;
    return s->in[(block * s->channels + channel) * s->what->block + i];
}

static void fill_response(void *context, int channel, float *taps) {
    const session *s = context;
    for (int64_t k = 0; k < s->what->taps; k++)
        taps[k] = tap(s, channel, k);
}

static void end(session *s) {
    if (s->backend && s->bank) {
        s->backend->unpin(s->bank, s->in);
        s->in = NULL;
        s->backend->free(s->bank);
    }
    gpuconv_realtime_free(s->realtime);
    free(s->pool);
    free(s->envelope);
    free(s->in);
    free(s->room);
    free((void *)s->in_row);
    free((void *)s->out_row);
    free(s->took);
}

static gpuconv_status begin_cpu(session *s, gpuconv_error *error) {
    const gc_bench_realtime_case *w = s->what;
    float *taps = gc_calloc(s->channels * w->taps, sizeof *taps);
    const float **planes = gc_calloc(s->channels, (int64_t)sizeof(float *));
    s->room = gc_calloc((int64_t)s->channels * w->block, sizeof *s->room);
    s->in = gc_calloc((int64_t)PERIODS * s->channels * w->block, sizeof *s->in);
    s->in_row = gc_calloc(s->channels, (int64_t)sizeof(float *));
    s->out_row = gc_calloc(s->channels, (int64_t)sizeof(float *));
    bool made = taps && planes && s->room && s->in && s->in_row && s->out_row;
    gpuconv_status status = made ? GPUCONV_OK : gc_fail_memory(error, "the benchmark");
    for (int c = 0; !status && c < s->channels; c++) {
        planes[c] = taps + c * w->taps;
        fill_response(s, c, taps + c * w->taps);
        s->out_row[c] = s->room + (int64_t)c * w->block;
    }
    s->out = s->room;
    gpuconv_ir *loose = NULL, *ir = NULL;
    if (!status)
        status = gpuconv_ir_new(planes, s->channels, w->taps, w->rate, &loose, error);
    if (!status)
        status = gpuconv_ir_route(loose, s->channels, &ir, error);
    gpuconv_ir_free(loose);
    free((void *)planes);
    free(taps);
    gpuconv_realtime_config config = {.rate = w->rate, .block = w->block, .threads = w->threads};
    if (!status)
        status = gpuconv_realtime_new(ir, &config, &s->realtime, error);
    gpuconv_ir_free(ir);
    return status;
}

static gpuconv_status begin_gpu(session *s, gpuconv_error *error) {
    const gc_bench_realtime_case *w = s->what;
    const gc_backend_tables *gpu = gc_backend_find(GPUCONV_BACKEND_CUDA);
    if (!gpu)
        return gc_backend_fail_missing(error);
    gc_filter_bank_config config = {.channels = s->channels,
                                    .block = w->block,
                                    .taps = w->taps,
                                    .device = w->device,
                                    .response = fill_response,
                                    .context = s};
    s->backend = gpu->filter_bank;
    gpuconv_status status = s->backend->open(&config, &s->bank, error);
    if (!status && !(s->in = s->backend->pin(s->bank, (int64_t)PERIODS * s->channels * w->block)))
        status = gc_fail_memory(error, "the benchmark's input");
    return status;
}

static gpuconv_status begin(session *s, gpuconv_error *error) {
    const gc_bench_realtime_case *w = s->what;
    uint64_t state = 7;
    s->blocks = (int64_t)(w->seconds * w->rate / w->block);
    s->pool = gc_calloc(POOL, sizeof *s->pool);
    s->envelope = gc_calloc(w->taps, sizeof *s->envelope);
    s->took = gc_calloc(gc_max(1, s->blocks), sizeof *s->took);
    if (!s->pool || !s->envelope || !s->took)
        return gc_fail_memory(error, "the benchmark");
    for (int64_t i = 0; i < POOL; i++)
        s->pool[i] = gc_random_float(&state);
    for (int64_t k = 0; k < w->taps; k++)
        s->envelope[k] = (float)exp(-6.9 * (double)k / (double)w->taps);
    gpuconv_status status = w->backend == GPUCONV_BACKEND_CUDA ? begin_gpu(s, error) : begin_cpu(s, error);
    for (int64_t i = 0; !status && i < (int64_t)PERIODS * s->channels * w->block; i++)
        s->in[i] = s->pool[(i * 7 + i / w->block * 331) & (POOL - 1)];
    return status;
}

static double processor_time(void) {
    struct rusage u;
    (void)getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_utime.tv_sec + (double)u.ru_stime.tv_sec +
           1e-6 * ((double)u.ru_utime.tv_usec + (double)u.ru_stime.tv_usec);
}

/* The last block that was played, at some frames of some channels, against sums in doubles: relative, in dB. */
static double check(const session *s) {
    const gc_bench_realtime_case *w = s->what;
    double error = 0, power = 0;
    for (int k = 0; k < CHECKED; k++) {
        int c = (int)((int64_t)k * s->channels / CHECKED);
        int64_t i = k * w->block / CHECKED, n = (s->blocks - 1) * w->block + i;
        double want = 0;
        for (int64_t t = 0; t < w->taps && t <= n; t++)
            want += (double)tap(s, c, t) * (double)sample(s, c, n - t);
        double off = (double)s->out[(int64_t)c * w->block + i] - want;
        error += off * off;
        power += want * want;
    }
    return 10 * log10(error / power);
}

/* Sleeps until the k-th block is due. False: interrupted. */
static bool wait_for(const gc_bench *b, double start, double period, int64_t k) {
    double due = start + (double)(k + 1) * period;
    struct timespec until = {(time_t)due, (long)((due - floor(due)) * 1e9)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        if (b->cancel && *b->cancel)
            return false;
    return !(b->cancel && *b->cancel);
}

/* From host memory to host memory. */
static gpuconv_status play_block(session *s, int64_t k, gpuconv_error *error) {
    const gc_bench_realtime_case *w = s->what;
    const float *in = s->in + k % PERIODS * s->channels * w->block;
    if (s->backend)
        return s->backend->process(s->bank, in, &s->out, error);
    for (int c = 0; c < s->channels; c++)
        s->in_row[c] = in + (int64_t)c * w->block;
    gpuconv_realtime_process(s->realtime, s->in_row, s->out_row, w->block);
    return GPUCONV_OK;
}

/* Half a second of waiting alone first: what the clock's ticks cost by themselves. */
static gpuconv_status pace(const gc_bench *b, session *s, gpuconv_error *error) {
    const gc_bench_realtime_case *w = s->what;
    double period = w->block / w->rate, start = gc_now(), before = processor_time();
    for (int64_t k = 0; (double)k * period < 0.5; k++)
        if (!wait_for(b, start, period, k))
            return gc_fail(error, GPUCONV_ERROR_CANCELLED, "interrupted");
    s->waiting = (processor_time() - before) / (gc_now() - start);
    start = gc_now();
    before = processor_time();
    for (int64_t k = 0; k < s->blocks; k++) {
        if (!wait_for(b, start, period, k))
            return gc_fail(error, GPUCONV_ERROR_CANCELLED, "interrupted");
        double begun = gc_now();
        gpuconv_status status = play_block(s, k, error);
        s->took[k] = gc_now() - begun;
        if (status)
            return status;
    }
    s->wall = gc_now() - start;
    s->cpu = processor_time() - before;
    s->off = check(s);
    return GPUCONV_OK;
}

static int64_t missed(const session *s) {
    return on_gpu(s) ? 0 : gpuconv_realtime_late_blocks(s->realtime);
}

/* `took` sorted. */
static void tell(const gc_bench *b, const session *s, bool kept) {
    static const char *const names[] = {"channels",      "deadline us", "median us", "99.9 % us",
                                        "worst us",      "worst part",  "missed",    "CPU %",
                                        "CPU % waiting", "error dB",    "kept up"};
    const gc_bench_realtime_case *w = s->what;
    double period = w->block / w->rate, worst = s->took[s->blocks - 1];
    char label[160];
    double values[] = {s->channels,
                       period * 1e6,
                       s->took[s->blocks / 2] * 1e6,
                       s->took[(s->blocks - 1) * 999 / 1000] * 1e6,
                       worst * 1e6,
                       worst / period,
                       (double)missed(s),
                       100 * s->cpu / s->wall,
                       100 * s->waiting,
                       s->off,
                       kept};
    (void)snprintf(label, sizeof label, "%s, %lld frames of response, blocks of %d at %.0f Hz",
                   on_gpu(s) ? "cuda" : "cpu", (long long)w->taps, w->block, w->rate);
    gc_report_named_row(b->report, "real time", label, 11, names, values);
}

/* How many blocks took how long: bins a third of an octave wide, from a microsecond up. */
static gpuconv_status tell_histogram(const gc_bench *b, const session *s, gpuconv_error *error) {
    static const char *const names[] = {"up to us", "blocks"};
    double x[BINS], y[BINS];
    int64_t at = 0;
    for (int i = 0; i < BINS; i++) {
        int64_t from = at;
        x[i] = exp2(i / 3.0);
        while (at < s->blocks && s->took[at] * 1e6 <= x[i])
            at++;
        y[i] = at > from ? (double)(at - from) : (double)NAN;
        double values[] = {x[i], (double)(at - from)};
        if (at > from)
            gc_report_named_row(b->report, "block times", "blocks", 2, names, values);
    }
    if (!s->what->plot)
        return GPUCONV_OK;
    double deadline[BINS], period = s->what->block / s->what->rate * 1e6;
    for (int i = 0; i < BINS; i++)
        deadline[i] = x[i] > period && x[i] <= 1.3 * period ? (double)s->blocks : (double)NAN;
    gc_plot p = {.title = "How long blocks took",
                 .x_label = "microseconds",
                 .y_label = "blocks",
                 .series = 2,
                 .steps = BINS,
                 .label = {"blocks", "the deadline"},
                 .points = {false, true},
                 .x = x,
                 .y = {y, deadline}};
    return gc_plot_write(&p, s->what->plot, b->cancel, error);
}

/* What a run came to; `ran` is false where memory ended before. */
typedef struct outcome {
    bool ran, kept;
    double cpu; /* share of a core */
} outcome;

static gpuconv_status run_one(const gc_bench *b, const gc_bench_realtime_case *w, int channels, bool last, outcome *o,
                              gpuconv_error *error) {
    session s = {.what = w, .channels = channels};
    gpuconv_status status = begin(&s, error);
    *o = (outcome){.ran = !status};
    if (!status && channels == w->channels)
        gc_report_text(b->report, "plan", on_gpu(&s) ? "cut on the GPU" : "cut", plan_of(&s));
    if (!status)
        status = pace(b, &s, error);
    if (!status) {
        gc_sort(s.took, s.blocks);
        o->kept = missed(&s) == 0 && s.took[(s.blocks - 1) * 999 / 1000] <= w->block / w->rate;
        o->cpu = s.cpu / s.wall;
        tell(b, &s, o->kept);
        if (last || (w->search && !o->kept))
            status = tell_histogram(b, &s, error);
        if (!status && o->kept && !(s.off <= -110))
            status = gc_fail(error, GPUCONV_ERROR_STATE, "what was played is wrong: %.1f dB", s.off);
    }
    end(&s);
    return status;
}

static int most_channels(const gc_bench_realtime_case *w) {
    return w->backend == GPUCONV_BACKEND_CUDA ? GPU_CHANNELS : CPU_CHANNELS;
}

gpuconv_status gc_bench_realtime(const gc_bench *b, const gc_bench_realtime_case *w, gpuconv_error *error) {
    outcome o = {.kept = true};
    gpuconv_status status = GPUCONV_OK;
    for (int channels = w->channels; o.kept && !status && channels <= most_channels(w); channels *= 2) {
        status = run_one(b, w, channels, !w->search, &o, error);
        if (status && !o.ran && channels > w->channels) /* as far as memory goes */
            return GPUCONV_OK;
        if (!w->search)
            break;
    }
    return status;
}

gpuconv_status gc_bench_crossover(const gc_bench *b, const gc_bench_realtime_case *what, gpuconv_error *error) {
    static const char *const names[] = {"CPU %", "kept up", "CPU % with GPU", "kept up with GPU"};
    gc_bench_realtime_case cpu = *what, gpu = *what;
    cpu.backend = GPUCONV_BACKEND_CPU;
    gpu.backend = GPUCONV_BACKEND_CUDA;
    outcome on_cpu = {.kept = true}, on_card = {.kept = true};
    int lighter = 0, needed = 0;
    gpuconv_status status = GPUCONV_OK;
    for (int channels = what->channels; on_cpu.kept && !status && channels <= CPU_CHANNELS; channels *= 2) {
        char label[64];
        status = run_one(b, &cpu, channels, false, &on_cpu, error);
        if (!status)
            status = run_one(b, &gpu, channels, false, &on_card, error);
        if (status)
            break;
        double values[] = {100 * on_cpu.cpu, on_cpu.kept, 100 * on_card.cpu, on_card.kept};
        (void)snprintf(label, sizeof label, "%d channels", channels);
        gc_report_named_row(b->report, "crossover", label, 4, names, values);
        lighter = !lighter && on_card.kept && on_card.cpu < on_cpu.cpu ? channels : lighter;
        needed = !on_cpu.kept && on_card.kept ? channels : needed;
    }
    if (!status && lighter)
        gc_report_count(b->report, "from how many channels on", "the GPU leaves the processor more time", lighter);
    if (!status && needed)
        gc_report_count(b->report, "from how many channels on", "only the GPU keeps up", needed);
    return status;
}
