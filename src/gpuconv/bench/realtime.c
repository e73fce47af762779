/* Times real-time convolution: blocks are due at the pace of the clock, the time of each is recorded, and the last
 * output block is verified. */
#include "bench.h"

#include "libgpuconv/conv/backend.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/limits.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/os.h"
#include "libgpuconv/core/random.h"
#include "libgpuconv/core/statistics.h"
#include "libgpuconv/report/plot.h"
#include "libgpuconv/report/report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- Sources that move in circles before a set ------------------------------------------------------------------- */

typedef struct moving_sources {
    const gc_bench_realtime_case *what;
    int sources;
    gpuconv_sofa *set;
    gpuconv_path *path;
    gpuconv_motion *motion;
    int64_t late, missed; /* frames, blocks */
} moving_sources;

/* Makes circles at 20 to 110 degrees/s, half of them to the right. Returns ARGUMENT, MEMORY. */
static gpuconv_status make_path(moving_sources *m, gpuconv_error *error) {
    const double seconds[2] = {0, 1000};
    double *rows = gc_calloc((int64_t)2 * 3 * m->sources, sizeof *rows);
    if (!rows)
        return gc_fail_memory(error, "the benchmark");
    for (int i = 0; i < 2 * m->sources; i++) {
        const int source = i % m->sources;
        const double speed = (source % 2 ? -1 : 1) * (20 + source % 91);
        rows[3 * i] = fmod(137.5 * source, 360) + (i < m->sources ? 0 : speed * seconds[1]);
        rows[3 * i + 1] = source % 121 - 40;
        rows[3 * i + 2] = 1.5;
    }
    gpuconv_status status = gpuconv_path_new(seconds, rows, 2, m->sources, &m->path, error);
    free(rows);
    return status;
}

static gpuconv_status make_motion(const moving_sources *m, gpuconv_backend backend, gpuconv_motion **motion,
                                  gpuconv_error *error) {
    gpuconv_motion_config config = gpuconv_motion_config_default();
    config.threads = m->what->threads;
    config.backend = backend;
    config.device = m->what->device;
    return gpuconv_motion_new(m->set, m->path, &config, motion, error);
}

/* Opens the set of a case, and makes its sources; each has its own elevation and speed. @return the errors of
 * gpuconv_sofa_open and gpuconv_motion_new; MEMORY */
static gpuconv_status sources_new(const gc_bench_realtime_case *what, int sources, moving_sources **motion,
                                  gpuconv_error *error) {
    moving_sources *m = gc_calloc(1, sizeof *m);
    if (!m)
        return gc_fail_memory(error, "the benchmark");
    m->what = what;
    m->sources = sources;
    gpuconv_status status = gpuconv_sofa_open(what->moving, what->rate, &m->set, error);
    if (!status)
        status = make_path(m, error);
    if (!status)
        status = make_motion(m, what->backend, &m->motion, error);
    if (!status)
        status = gpuconv_motion_start(m->motion, what->block, error);
    *motion = m;
    return status;
}

static void sources_free(moving_sources *m) {
    if (!m)
        return;
    gpuconv_motion_free(m->motion);
    gpuconv_path_free(m->path);
    gpuconv_sofa_free(m->set);
    free(m);
}

/* Processes a block, and counts it as missed if it is not complete. */
static void sources_process(moving_sources *m, const float *const *in, float *const *out) {
    gpuconv_motion_process(m->motion, in, out, m->what->block);
    const int64_t late = gpuconv_motion_late(m->motion);
    m->missed += late > m->late;
    m->late = late;
}

/* Fetches the frames that are ready, and adds the frames of the last block to the error and the power. */
static int64_t compare_ready(gpuconv_motion *reference, int receivers, int64_t at, int64_t first, int block,
                             const float *out, double sums[2]) {
    enum { PART = 1024 };
    static float part[GC_MAX_CHANNELS][PART];
    float *rows[GC_MAX_CHANNELS];
    for (int r = 0; r < receivers; r++)
        rows[r] = part[r];
    for (int64_t got = 1; got > 0; at += got) {
        (void)gpuconv_motion_fetch(reference, rows, PART, &got);
        for (int64_t i = gc_max(0, first - at); i < got && at + i < first + block; i++)
            for (int r = 0; r < receivers; r++) {
                const double want = (double)part[r][i], off = (double)out[r * (int64_t)block + at + i - first] - want;
                sums[0] += off * off;
                sums[1] += want * want;
            }
    }
    return at;
}

/* Returns a block that begins with a hop, a quarter of a second before the last one, or the first. */
static int64_t find_start(const moving_sources *m, int64_t blocks) {
    const double compared = 0.25;
    const int64_t hop = llrint(gpuconv_motion_config_default().interval * m->what->rate), block = m->what->block;
    int64_t first = gc_max(0, blocks - (int64_t)(compared * m->what->rate) / block);
    while (first * block % hop)
        first--;
    return first;
}

/* Renders the end of `blocks` blocks again, on the CPU without a clock. `block_of` fills the rows of block k. *decibels
 * gets the distance of `out`, planes of the last block, from the result. @return MEMORY, CANCELLED */
static gpuconv_status sources_compare(moving_sources *m, int64_t blocks,
                                      void (*block_of)(void *context, int64_t k, const float **rows), void *context,
                                      const float *out, double *decibels, gpuconv_error *error) {
    const int block = m->what->block;
    const int64_t start = find_start(m, blocks);
    const int64_t first = (blocks - 1 - start) * block - gpuconv_motion_latency(m->motion);
    gpuconv_motion *reference;
    const float *rows[GC_MAX_SOURCES];
    double sums[2] = {0, 0};
    int64_t at = 0;
    gpuconv_status status = make_motion(m, GPUCONV_BACKEND_CPU, &reference, error);
    if (!status)
        gpuconv_motion_seek(reference, start * block);
    for (int64_t k = start; k <= blocks && !status; k++) {
        block_of(context, k, rows);
        status = gpuconv_motion_feed(reference, rows, k < blocks ? block : 0, error);
        if (!status)
            at = compare_ready(reference, gpuconv_sofa_receivers(m->set), at, first, block, out, sums);
    }
    gpuconv_motion_free(reference);
    *decibels = fmax(-200, 10 * log10(sums[0] / sums[1]));
    return status;
}

/* ---- Blocks paced by a clock ------------------------------------------------------------------------------------- */

/* PERIODS: number of different input blocks, repeated in a cycle; a prime, so that no hop is a multiple of it. */
enum { POOL = 1 << 22, PERIODS = 61, BINS = 48, CHECKED = 24, CPU_CHANNELS = 1024, GPU_CHANNELS = 1 << 20 };

/* One run on the CPU or on a GPU. */
typedef struct session {
    const gc_bench_realtime_case *what;
    int channels;
    gpuconv_realtime *realtime;
    const gc_backend *backend; /* NULL: on the CPU, by `realtime` */
    gc_bank *bank;
    moving_sources *motion; /* sources that move; NULL: none */
    float *pool, *envelope; /* noise for responses and inputs; decay of the responses */
    float *in, *cpu_out;    /* PERIODS x channels x block; channels x block, output of the CPU */
    const float *out;       /* channels x block: output of the last block */
    const float **in_row;
    float **out_row;
    double *block_seconds; /* processing time by block */
    int64_t blocks;
    double idle_cpu;  /* share of a core while only waiting */
    double cpu, wall; /* seconds */
    double error;     /* dB */
} session;

static int output_count(const session *s) {
    if (s->motion)
        return gpuconv_sofa_receivers(s->motion->set);
    return s->what->outputs ? s->what->outputs : s->channels;
}

/* Returns the number of responses into an output, and the number of response `r` of them. */
static int inputs_of_output(const session *s) {
    return s->what->outputs ? s->channels : 1;
}
static int response_number(const session *s, int r, int output) {
    return s->what->outputs ? r * s->what->outputs + output : output;
}

static bool on_gpu(const session *s) {
    return s->backend != NULL;
}

static const char *plan_of(const session *s) {
    if (s->backend)
        return s->backend->bank->plan(s->bank);
    if (s->motion)
        return gpuconv_motion_plan(s->motion->motion);
    return gpuconv_realtime_plan(s->realtime);
}

/* Returns tap k of a channel's response: noise, from an offset that depends on the channel, that decays by 60 dB. */
static float tap(const session *s, int channel, int64_t k) {
    return s->pool[((int64_t)channel * 40503 + k) & (POOL - 1)] * s->envelope[k];
}

/* Returns input sample n of a channel. */
static float sample(const session *s, int channel, int64_t n) {
    int64_t block = n / s->what->block % PERIODS, i = n % s->what->block;
    return s->in[(block * s->channels + channel) * s->what->block + i];
}

static void fill_response(const session *s, int channel, float *taps) {
    for (int64_t k = 0; k < s->what->taps; k++)
        taps[k] = tap(s, channel, k);
}

static void session_free(session *s) {
    if (s->backend && s->bank) {
        s->backend->free_pinned(s->what->device, s->in);
        s->in = NULL;
        s->backend->bank->free(s->bank);
    }
    gpuconv_realtime_free(s->realtime);
    sources_free(s->motion);
    free(s->pool);
    free(s->envelope);
    free(s->in);
    free(s->cpu_out);
    free((void *)s->in_row);
    free((void *)s->out_row);
    free(s->block_seconds);
}

/* Allocates the input and the output of blocks that the CPU fetches. */
static gpuconv_status make_rows(session *s, gpuconv_error *error) {
    const gc_bench_realtime_case *w = s->what;
    const int outputs = output_count(s);
    s->cpu_out = gc_calloc((int64_t)outputs * w->block, sizeof *s->cpu_out);
    s->in = gc_calloc((int64_t)PERIODS * s->channels * w->block, sizeof *s->in);
    s->in_row = gc_calloc(s->channels, (int64_t)sizeof(float *));
    s->out_row = gc_calloc(outputs, (int64_t)sizeof(float *));
    if (!s->cpu_out || !s->in || !s->in_row || !s->out_row)
        return gc_fail_memory(error, "the benchmark");
    for (int o = 0; o < outputs; o++)
        s->out_row[o] = s->cpu_out + (int64_t)o * w->block;
    s->out = s->cpu_out;
    return GPUCONV_OK;
}

/* Creates the CPU's convolver and its buffers. */
static gpuconv_status session_new_cpu(session *s, gpuconv_error *error) {
    const gc_bench_realtime_case *w = s->what;
    const int responses = output_count(s) * inputs_of_output(s);
    const gc_bench_case routed = {.taps = w->taps, .channels = s->channels, .outputs = w->outputs};
    float *taps = gc_calloc(responses * w->taps, sizeof *taps);
    const float **planes = gc_calloc(responses, (int64_t)sizeof(float *));
    gpuconv_ir *ir = NULL;
    gpuconv_status status = taps && planes ? make_rows(s, error) : gc_fail_memory(error, "the benchmark");
    for (int c = 0; !status && c < responses; c++) {
        planes[c] = taps + c * w->taps;
        fill_response(s, c, taps + c * w->taps);
    }
    if (!status)
        status = gc_bench_response(&routed, planes, w->rate, &ir, error);
    free((void *)planes);
    free(taps);
    gpuconv_realtime_config config = {.size = sizeof config, .rate = w->rate, .block = w->block, .threads = w->threads};
    if (!status)
        status = gpuconv_realtime_new(ir, &config, &s->realtime, error);
    gpuconv_ir_free(ir);
    return status;
}

/* Creates the moving sources and their buffers. */
static gpuconv_status session_new_motion(session *s, gpuconv_error *error) {
    const gpuconv_status status = sources_new(s->what, s->channels, &s->motion, error);
    return status ? status : make_rows(s, error);
}

/* Writes the response of a route of the GPU's bank. */
static void fill_route(void *context, int route, float *taps) {
    const session *s = context;
    const int inputs = inputs_of_output(s);
    fill_response(s, response_number(s, route % inputs, route / inputs), taps);
}

/* Creates the GPU's bank and its pinned input. */
static gpuconv_status session_new_gpu(session *s, gpuconv_error *error) {
    const gc_bench_realtime_case *w = s->what;
    const int inputs = inputs_of_output(s), routes = output_count(s) * inputs;
    const gc_backend *gpu = gc_backend_find(GPUCONV_BACKEND_CUDA);
    if (!gpu)
        return gc_backend_fail_missing(GPUCONV_ERROR_UNSUPPORTED, error);
    gc_route *route = gc_calloc(routes, sizeof *route);
    if (!route)
        return gc_fail_memory(error, "the benchmark");
    for (int r = 0; r < routes; r++)
        route[r] = (gc_route){.input = w->outputs ? r % inputs : r, .output = r / inputs};
    gc_bank_options options = {.inputs = s->channels,
                               .outputs = output_count(s),
                               .routes = routes,
                               .route = route,
                               .block = w->block,
                               .taps = w->taps,
                               .device = w->device,
                               .response = fill_route,
                               .context = s};
    s->backend = gpu;
    gpuconv_status status = s->backend->bank->open(&options, &s->bank, error);
    free(route);
    if (!status && !(s->in = gpu->alloc_pinned(options.device, (int64_t)PERIODS * s->channels * w->block)))
        status = gc_fail_memory(error, "the benchmark's input");
    return status;
}

/* Creates input, responses and convolver. After a failure the session must still be freed. */
static gpuconv_status session_new(session *s, gpuconv_error *error) {
    const gc_bench_realtime_case *w = s->what;
    uint64_t state = 7;
    s->blocks = (int64_t)(w->seconds * w->rate / w->block);
    s->pool = gc_calloc(POOL, sizeof *s->pool);
    s->envelope = gc_calloc(w->taps, sizeof *s->envelope);
    s->block_seconds = gc_calloc(gc_max(1, s->blocks), sizeof *s->block_seconds);
    if (!s->pool || !s->envelope || !s->block_seconds)
        return gc_fail_memory(error, "the benchmark");
    for (int64_t i = 0; i < POOL; i++)
        s->pool[i] = gc_random_float(&state);
    for (int64_t k = 0; k < w->taps; k++)
        s->envelope[k] = (float)exp(-6.9 * (double)k / (double)w->taps);
    gpuconv_status status = w->moving                            ? session_new_motion(s, error)
                            : w->backend == GPUCONV_BACKEND_CUDA ? session_new_gpu(s, error)
                                                                 : session_new_cpu(s, error);
    for (int64_t i = 0; !status && i < (int64_t)PERIODS * s->channels * w->block; i++)
        s->in[i] = s->pool[(i * 7 + i / w->block * 331) & (POOL - 1)];
    return status;
}

/* Returns the RMS error of the last output block in dB, at CHECKED samples, relative to direct sums in doubles. */
static double output_error(const session *s) {
    const gc_bench_realtime_case *w = s->what;
    double error = 0, power = 0;
    for (int k = 0; k < CHECKED; k++) {
        int c = (int)((int64_t)k * output_count(s) / CHECKED);
        int64_t i = k * w->block / CHECKED, n = (s->blocks - 1) * w->block + i;
        double expected = 0;
        for (int r = 0; r < inputs_of_output(s); r++)
            for (int64_t t = 0; t < w->taps && t <= n; t++)
                expected += (double)tap(s, response_number(s, r, c), t) * (double)sample(s, w->outputs ? r : c, n - t);
        double difference = (double)s->out[(int64_t)c * w->block + i] - expected;
        error += difference * difference;
        power += expected * expected;
    }
    return 10 * log10(error / power);
}

/* Sleeps until block k is due. @return false if the benchmark was cancelled */
static bool wait_for_block(double start, double period, int64_t k) {
    double due = start + (double)(k + 1) * period;
    struct timespec until = {(time_t)due, (long)((due - floor(due)) * 1e9)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        if (gc_cancelled())
            return false;
    return !gc_cancelled();
}

/* Fills the rows of input block k. */
static void find_rows(void *context, int64_t k, const float **rows) {
    const session *s = context;
    for (int c = 0; c < s->channels; c++)
        rows[c] = s->in + (k % PERIODS * s->channels + c) * s->what->block;
}

/* Convolves block k from host memory to host memory. */
static gpuconv_status process_block(session *s, int64_t k, gpuconv_error *error) {
    const gc_bench_realtime_case *w = s->what;
    if (s->backend)
        return s->backend->bank->process(s->bank, s->in + k % PERIODS * s->channels * w->block, &s->out, error);
    find_rows(s, k, s->in_row);
    if (s->motion)
        sources_process(s->motion, s->in_row, s->out_row);
    else
        gpuconv_realtime_process(s->realtime, s->in_row, s->out_row, w->block);
    return GPUCONV_OK;
}

/* Processes all blocks at the pace of the clock. Half a second of waiting alone comes first and measures the processor
 * time of the waiting itself. */
static gpuconv_status run_blocks(session *s, gpuconv_error *error) {
    const gc_bench_realtime_case *w = s->what;
    double period = w->block / w->rate, start = gc_now(), before = gc_os_processor_seconds();
    for (int64_t k = 0; (double)k * period < 0.5; k++)
        if (!wait_for_block(start, period, k))
            return gc_fail(error, GPUCONV_ERROR_CANCELLED, "interrupted");
    s->idle_cpu = (gc_os_processor_seconds() - before) / (gc_now() - start);
    start = gc_now();
    before = gc_os_processor_seconds();
    for (int64_t k = 0; k < s->blocks; k++) {
        if (!wait_for_block(start, period, k))
            return gc_fail(error, GPUCONV_ERROR_CANCELLED, "interrupted");
        double begun = gc_now();
        gpuconv_status status = process_block(s, k, error);
        s->block_seconds[k] = gc_now() - begun;
        if (status)
            return status;
    }
    s->wall = gc_now() - start;
    s->cpu = gc_os_processor_seconds() - before;
    if (s->motion)
        return sources_compare(s->motion, s->blocks, find_rows, s, s->out, &s->error, error);
    s->error = output_error(s);
    return GPUCONV_OK;
}

/* Returns the number of blocks whose tail, or whose movement, came too late and was left out. */
static int64_t blocks_left_out(const session *s) {
    if (s->motion)
        return s->motion->missed;
    return on_gpu(s) ? 0 : gpuconv_realtime_late_blocks(s->realtime);
}

/* Returns the number of blocks that missed their deadline: they took longer, or a part was left out. */
static int64_t missed_blocks(const session *s) {
    const double period = s->what->block / s->what->rate;
    int64_t missed = blocks_left_out(s);
    for (int64_t k = 0; k < s->blocks; k++)
        missed += s->block_seconds[k] > period;
    return missed;
}

/* Explains the columns of report_run and gc_bench_crossover. */
static void explain_columns(const gc_bench *b) {
    static const char *const columns[][2] = {
        {"deadline us", "the duration of a block"},
        {"99.9 % us", "the time that 99.9 % of the blocks do not exceed"},
        {"worst part", "the worst block divided by the deadline"},
        {"missed", "blocks that took longer than the deadline, or whose tail came too late and was left out"},
        {"CPU %", "processor time, of one core"},
        {"CPU % waiting", "the same while the program only waits for the clock"},
        {"error dB", "of the last block, relative to sums in double precision"},
        {"kept up", "1: no block was missed; 0: some were"},
    };
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        gc_report_text(b->report, "columns", columns[i][0], columns[i][1]);
}

/* Reports a run whose block times are sorted. */
static void report_run(const gc_bench *b, const session *s, int64_t missed) {
    static const char *const names[] = {"channels",      "deadline us", "median us", "99.9 % us",
                                        "worst us",      "worst part",  "missed",    "CPU %",
                                        "CPU % waiting", "error dB",    "kept up"};
    const gc_bench_realtime_case *w = s->what;
    double period = w->block / w->rate, worst = s->block_seconds[s->blocks - 1];
    char label[160];
    double values[] = {s->channels,
                       period * 1e6,
                       s->block_seconds[s->blocks / 2] * 1e6,
                       s->block_seconds[(s->blocks - 1) * 999 / 1000] * 1e6,
                       worst * 1e6,
                       worst / period,
                       (double)missed,
                       100 * s->cpu / s->wall,
                       100 * s->idle_cpu,
                       s->error,
                       missed == 0};
    char matrix[32] = "";
    if (s->motion)
        (void)gc_format(label, sizeof label, "%s, %d moving sources, %lld blocks of %d at %.0f Hz",
                        w->backend == GPUCONV_BACKEND_CUDA ? "cuda" : "cpu", s->channels, (long long)s->blocks,
                        w->block, w->rate);
    else if (w->outputs)
        (void)snprintf(matrix, sizeof matrix, " %d x %d,", s->channels, w->outputs);
    if (!s->motion)
        (void)gc_format(label, sizeof label, "%s,%s %lld frames of response, blocks of %d at %.0f Hz",
                        on_gpu(s) ? "cuda" : "cpu", matrix, (long long)w->taps, w->block, w->rate);
    gc_report_named_row(b->report, "real time", label, 11, names, values);
}

/* Reports and draws a histogram of block times, from 1 us in bins of a third of an octave. */
static gpuconv_status report_histogram(const gc_bench *b, const session *s, gpuconv_error *error) {
    static const char *const names[] = {"up to us", "blocks"};
    double x[BINS], y[BINS];
    int64_t at = 0;
    for (int i = 0; i < BINS; i++) {
        int64_t from = at;
        x[i] = exp2(i / 3.0);
        while (at < s->blocks && s->block_seconds[at] * 1e6 <= x[i])
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
    gc_plot p = {.title = "Block times",
                 .x_label = "microseconds",
                 .y_label = "blocks",
                 .series = 2,
                 .steps = BINS,
                 .label = {"blocks", "the deadline"},
                 .points = {false, true},
                 .x = x,
                 .y = {y, deadline}};
    return gc_plot_write(&p, s->what->plot, error);
}

/* Result of a run. */
typedef struct run_result {
    bool started; /* false: the session could not be created, for example for lack of memory */
    bool kept_up; /* no block was missed */
    bool enough;  /* 99.9 % of the blocks were in time, and no part was left out: a search goes on */
    double cpu;   /* share of a core */
} run_result;

/* Runs a case with `channels` channels. @param last whether the histogram is reported in any case */
static gpuconv_status run_one(const gc_bench *b, const gc_bench_realtime_case *w, int channels, bool last,
                              run_result *o, gpuconv_error *error) {
    session s = {.what = w, .channels = channels};
    gpuconv_status status = session_new(&s, error);
    *o = (run_result){.started = !status};
    if (!status && channels == w->channels)
        gc_report_text(b->report, "plan", on_gpu(&s) ? "cut on the GPU" : "cut", plan_of(&s));
    if (!status)
        status = run_blocks(&s, error);
    if (!status) {
        gc_sort(s.block_seconds, s.blocks);
        const int64_t missed = missed_blocks(&s);
        o->kept_up = missed == 0;
        o->enough = blocks_left_out(&s) == 0 && missed <= s.blocks / 1000;
        o->cpu = s.cpu / s.wall;
        report_run(b, &s, missed);
        if (last || (w->search && !o->enough))
            status = report_histogram(b, &s, error);
        if (!status && o->enough && !(s.error <= -110))
            status = gc_fail(error, GPUCONV_ERROR_STATE,
                             "the output is wrong: the error is %.1f dB and may be at most -110 dB", s.error);
    }
    session_free(&s);
    return status;
}

static int most_channels(const gc_bench_realtime_case *w) {
    return w->moving ? GC_MAX_SOURCES : w->backend == GPUCONV_BACKEND_CUDA ? GPU_CHANNELS : CPU_CHANNELS;
}

gpuconv_status gc_bench_realtime(const gc_bench *b, const gc_bench_realtime_case *w, gpuconv_error *error) {
    run_result o = {.enough = true};
    gpuconv_status status = GPUCONV_OK;
    explain_columns(b);
    for (int channels = w->channels; o.enough && !status && channels <= most_channels(w); channels *= 2) {
        status = run_one(b, w, channels, !w->search, &o, error);
        if (status && !o.started && channels > w->channels) /* the search ends where memory is exhausted */
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
    run_result cpu_result = {.enough = true}, gpu_result = {.enough = true};
    int lighter = 0, needed = 0;
    gpuconv_status status = GPUCONV_OK;
    explain_columns(b);
    for (int channels = what->channels; cpu_result.enough && !status && channels <= CPU_CHANNELS; channels *= 2) {
        char label[64];
        status = run_one(b, &cpu, channels, false, &cpu_result, error);
        if (!status)
            status = run_one(b, &gpu, channels, false, &gpu_result, error);
        if (status)
            break;
        double values[] = {100 * cpu_result.cpu, cpu_result.kept_up, 100 * gpu_result.cpu, gpu_result.kept_up};
        (void)snprintf(label, sizeof label, "%d channels", channels);
        gc_report_named_row(b->report, "crossover", label, 4, names, values);
        lighter = !lighter && gpu_result.enough && gpu_result.cpu < cpu_result.cpu ? channels : lighter;
        needed = !cpu_result.enough && gpu_result.enough ? channels : needed;
    }
    if (!status && lighter)
        gc_report_count(b->report, "from how many channels on", "the GPU leaves the processor more time", lighter);
    if (!status && needed)
        gc_report_count(b->report, "from how many channels on", "only the GPU keeps up", needed);
    return status;
}
