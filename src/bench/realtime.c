/* Blocks come by the clock; how long each took is kept, and at the end some of what came out is held against sums. */
#include "realtime.h"

#include "../core/clock.h"
#include "../core/error.h"
#include "../core/memory.h"
#include "../report/plot.h"
#include "../report/report.h"
#include "statistics.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { LOOP = 1 << 16, BINS = 48, CHECKED = 24 };

typedef struct session {
    const gc_bench_realtime_case *what;
    int channels;
    gpuconv_ir *ir;
    gpuconv_realtime *realtime;
    float *sound, *taps; /* LOOP frames of noise, played round and round by all; channels x taps */
    float **out;
    const float **in;
    double *took; /* seconds of each block */
    int64_t blocks;
    double waiting, cpu, wall, off;
} session;

static void end(session *s) {
    gpuconv_realtime_free(s->realtime);
    gpuconv_ir_free(s->ir);
    for (int c = 0; s->out && c < s->channels; c++)
        free(s->out[c]);
    free(s->out);
    free((void *)s->in);
    free(s->sound);
    free(s->taps);
    free(s->took);
}

static gpuconv_status begin(session *s, gpuconv_error *error) {
    const gc_bench_realtime_case *w = s->what;
    uint64_t state = 7;
    s->blocks = (int64_t)(w->seconds * w->rate / w->block);
    s->sound = gc_calloc(LOOP + w->block, sizeof *s->sound);
    s->taps = gc_calloc(s->channels * w->taps, sizeof *s->taps);
    s->out = gc_calloc(s->channels, (int64_t)sizeof(float *));
    s->in = gc_calloc(s->channels, (int64_t)sizeof(float *));
    s->took = gc_calloc(gc_max(1, s->blocks), sizeof *s->took);
    bool made = s->sound && s->taps && s->out && s->in && s->took;
    for (int c = 0; made && c < s->channels; c++)
        made = (s->out[c] = gc_calloc(w->block, sizeof(float))) != NULL;
    const float **planes = gc_calloc(s->channels, (int64_t)sizeof(float *));
    gpuconv_status status = made && planes ? GPUCONV_OK : gc_fail_memory(error, "the benchmark");
    for (int64_t i = 0; !status && i < LOOP + w->block; i++)
        s->sound[i] = i < LOOP ? gc_noise(&state) : s->sound[i - LOOP];
    for (int c = 0; !status && c < s->channels; c++) {
        planes[c] = s->taps + c * w->taps;
        for (int64_t k = 0; k < w->taps; k++)
            s->taps[c * w->taps + k] = gc_noise(&state) * (float)exp(-6.9 * (double)k / (double)w->taps);
    }
    gpuconv_ir *loose = NULL;
    if (!status)
        status = gpuconv_ir_new(planes, s->channels, w->taps, w->rate, &loose, error);
    if (!status)
        status = gpuconv_ir_route(loose, s->channels, &s->ir, error);
    gpuconv_ir_free(loose);
    free((void *)planes);
    gpuconv_realtime_config config = {.rate = w->rate, .block = w->block, .threads = w->threads};
    return status ? status : gpuconv_realtime_new(s->ir, &config, &s->realtime, error);
}

static double processor_time(void) {
    struct rusage u;
    (void)getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_utime.tv_sec + (double)u.ru_stime.tv_sec +
           1e-6 * ((double)u.ru_utime.tv_usec + (double)u.ru_stime.tv_usec);
}

/* The last block that was played, at some frames, against sums in doubles: relative, in dB. */
static double check(const session *s) {
    const gc_bench_realtime_case *w = s->what;
    double error = 0, power = 0;
    for (int k = 0; k < CHECKED; k++) {
        int c = k * s->channels / CHECKED;
        int64_t i = k * w->block / CHECKED, n = (s->blocks - 1) * w->block + i;
        double want = 0;
        for (int64_t t = 0; t < w->taps && t <= n; t++)
            want += (double)s->taps[c * w->taps + t] * (double)s->sound[(n - t) % LOOP];
        double off = (double)s->out[c][i] - want;
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
    return true;
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
        for (int c = 0; c < s->channels; c++)
            s->in[c] = s->sound + k * w->block % LOOP;
        double begun = gc_now();
        gpuconv_realtime_process(s->realtime, s->in, s->out, w->block);
        s->took[k] = gc_now() - begun;
    }
    s->wall = gc_now() - start;
    s->cpu = processor_time() - before;
    s->off = check(s);
    return GPUCONV_OK;
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
                       (double)gpuconv_realtime_missed(s->realtime),
                       100 * s->cpu / s->wall,
                       100 * s->waiting,
                       s->off,
                       kept};
    (void)snprintf(label, sizeof label, "%lld frames of response, blocks of %d at %.0f Hz", (long long)w->taps,
                   w->block, w->rate);
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
    return gc_plot_write(&p, s->what->plot, error);
}

gpuconv_status gc_bench_realtime(const gc_bench *b, const gc_bench_realtime_case *w, gpuconv_error *error) {
    gpuconv_status status = GPUCONV_OK;
    bool more = true;
    for (int channels = w->channels; more && !status && channels <= 1024; channels *= 2) {
        session s = {.what = w, .channels = channels};
        status = begin(&s, error);
        if (!status && channels == w->channels)
            gc_report_text(b->report, "plan", "cut", gpuconv_realtime_plan(s.realtime));
        if (!status)
            status = pace(b, &s, error);
        if (!status) {
            gc_sort(s.took, s.blocks);
            bool kept =
                gpuconv_realtime_missed(s.realtime) == 0 && s.took[(s.blocks - 1) * 999 / 1000] <= w->block / w->rate;
            tell(b, &s, kept);
            more = w->search && kept;
            if (!more)
                status = tell_histogram(b, &s, error);
            if (!status && kept && !(s.off <= -110))
                status = gc_fail(error, GPUCONV_ERROR_STATE, "what was played is wrong: %.1f dB", s.off);
        }
        end(&s);
    }
    return status;
}
