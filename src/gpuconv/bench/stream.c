/* An engine from memory to memory, as fast as its slots come free: what files could reach at most. On a GPU every
 * sample crosses the bus twice, so that its rate both ways at once is the ceiling. */
#include "bench.h"

#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/engine/engine.h"
#include "libgpuconv/engine/plan.h"
#include "libgpuconv/report/report.h"
#include "material.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS_MOST = 64 };

static const double level = 0.25; /* of the noise that goes in: nothing clips */

/* The input is a few chunks of noise, one in each slot's buffer, over and over. */
typedef struct stream {
    const gc_material *noise;
    gpuconv_engine *engine;
    gc_pcm format;
    double gain; /* of the response over the material's */
    int64_t chunk, frames;
    const void *buffer[SLOTS_MOST];
    int buffers;
    unsigned char *which; /* a chunk: the buffer it came from */
    float *pcm_in;        /* what `format` made of the noise: buffers x chunk x channels */
    int64_t taken;
    int64_t *at;
    float *kept; /* what came out at a frame of each chunk: checked once the clock has stopped */
    gpuconv_status status;
} stream;

static float sample(const stream *s, int64_t frame, int channel) {
    int channels = s->noise->what.channels;
    int64_t at = s->which[frame / s->chunk] * s->chunk + frame % s->chunk;
    return s->pcm_in[at * channels + channel];
}

static void *consume(void *context) {
    stream *s = context;
    const void *raw;
    int channels = s->noise->what.channels;
    int64_t frames;
    for (int64_t k = 0; (s->status = gc_engine_take(s->engine, &raw, &frames)) == GPUCONV_OK && frames > 0; k++) {
        int64_t here = (k + 1) * 7919 % frames;
        if (k < s->frames / s->chunk) {
            s->at[k] = s->taken + here;
            for (int c = 0; c < channels; c++)
                s->kept[k * channels + c] = s->format.container == GC_F32
                                                ? ((const float *)raw)[here * channels + c]
                                                : ((const int16_t *)raw)[here * channels + c] / 32768.0f;
        }
        s->taken += frames;
        gc_engine_release(s->engine);
    }
    return NULL;
}

/* Error in dB at a frame of some chunks. */
static double check(const stream *s) {
    int channels = s->noise->what.channels;
    int64_t taps = s->noise->what.taps, chunks = s->frames / s->chunk, step = chunks / 20 + 1;
    double error = 0, power = 0;
    for (int64_t k = 0; k < chunks; k += step)
        for (int c = 0; c < channels; c++) {
            double want = 0;
            for (int64_t i = 0; i < taps && i <= s->at[k]; i++)
                if (s->at[k] - i < s->frames)
                    want += s->gain * (double)s->noise->taps[c][i] * (double)sample(s, s->at[k] - i, c);
            double off = (double)s->kept[k * channels + c] - want;
            error += off * off;
            power += want * want;
        }
    return 10 * log10(error / power);
}

/* Noise into a buffer that is seen for the first time. */
static bool known(stream *s, void *raw, int64_t chunk) {
    int channels = s->noise->what.channels, b = 0;
    while (b < s->buffers && s->buffer[b] != raw)
        b++;
    if (b == SLOTS_MOST)
        return false;
    s->which[chunk] = (unsigned char)b;
    if (b < s->buffers)
        return true;
    s->buffer[s->buffers++] = raw;
    for (int64_t i = 0; i < s->chunk; i++)
        for (int c = 0; c < channels; c++) {
            int64_t at = i * channels + c;
            float x = (float)level * s->noise->in[c][(b * s->chunk + i) % s->noise->what.frames];
            if (s->format.container == GC_F32)
                ((float *)raw)[at] = x;
            else
                x = (float)(((int16_t *)raw)[at] = (int16_t)lrintf(32768 * x)) / 32768;
            s->pcm_in[b * s->chunk * channels + at] = x;
        }
    return true;
}

static gpuconv_status feed(stream *s) {
    gpuconv_status status = GPUCONV_OK;
    for (int64_t k = 0; !status && k < s->frames / s->chunk; k++) {
        void *raw;
        status = gc_engine_acquire(s->engine, &raw);
        if (!status && !known(s, raw, k))
            status = GPUCONV_ERROR_STATE;
        if (!status)
            status = gc_engine_submit(s->engine, s->chunk);
    }
    if (status)
        gc_engine_stop(s->engine);
    return status ? status : gc_engine_flush(s->engine);
}

static gpuconv_status run(stream *s, double *seconds, gpuconv_error *error) {
    pthread_t thread;
    gpuconv_status status = gpuconv_engine_reset(s->engine);
    if (status)
        return gc_fail(error, status, "%s", gc_engine_failure(s->engine, status));
    s->taken = 0;
    double begin = gc_now();
    if (pthread_create(&thread, NULL, consume, s) != 0)
        return gc_fail(error, GPUCONV_ERROR_MEMORY, "a thread cannot be started");
    status = feed(s);
    pthread_join(thread, NULL);
    *seconds = gc_now() - begin;
    status = status ? status : s->status;
    if (status)
        return gc_fail(error, status, "%s", gc_engine_failure(s->engine, status));
    double db = check(s), bound = s->format.container == GC_F32 ? -120 : -70;
    if (s->taken != s->frames + s->noise->what.taps - 1 || !(db <= bound))
        return gc_fail(error, GPUCONV_ERROR_STATE, "the stream is wrong: %lld frames, %.1f dB", (long long)s->taken,
                       db);
    return GPUCONV_OK;
}

/* While chunk i was computed, was there a moment in which a later one was copied in and an earlier one copied out? */
static bool amid(const gc_stream_stats *m, int i) {
    const double *compute = m->passage[i].compute;
    for (int j = i + 1; j < m->passages; j++)
        for (int k = 0; k < i; k++) {
            const double *in = m->passage[j].copy_in, *out = m->passage[k].copy_out;
            if (fmax(compute[0], fmax(in[0], out[0])) < fmin(compute[1], fmin(in[1], out[1])))
                return true;
        }
    return false;
}

static gpuconv_status stream_format(const gc_bench *b, const gpuconv_plan *plan, stream *s, double *rate,
                                    gpuconv_error *error) {
    static const char *const names[] = {"ms", "Mframes/s", "GB/s each way", "% of bus", "amid"};
    char label[160];
    int channels = s->noise->what.channels;
    double best = HUGE_VAL;
    gc_stream_stats m = {0};
    gpuconv_status status = gc_engine_new(plan, s->format, s->format, &s->engine, error);
    for (int r = 0; !status && r < b->runs; r++) {
        double seconds = 0;
        status = run(s, &seconds, error);
        best = fmin(best, seconds);
    }
    if (!status)
        gc_engine_measure(s->engine, &m);
    gpuconv_engine_free(s->engine);
    if (status)
        return status;
    int together = 0;
    for (int i = 0; i < m.passages; i++)
        together += amid(&m, i);
    *rate = (double)s->frames / best;
    double bytes = *rate * channels * gc_pcm_bytes(s->format), bus = b->bus[plan->backend->id];
    double values[] = {best * 1e3, *rate * 1e-6, bytes * 1e-9, bus > 0 ? bytes / bus * 100 : (double)NAN,
                       m.passages ? 100.0 * together / m.passages : (double)NAN};
    snprintf(label, sizeof label, "%s: %s, %s", s->noise->what.name, gpuconv_backend_name(plan->backend->id),
             s->format.container == GC_F32 ? "float" : "s16");
    gc_report_named_row(b->report, "streams", label, 5, names, values);
    return GPUCONV_OK;
}

gpuconv_status gc_bench_stream(const gc_bench *b, const gc_bench_case *what, gpuconv_error *error) {
    static const gc_pcm formats[] = {{GC_F32, 32}, {GC_S16, 16}};
    gc_bench_case noise = *what;
    gc_material m;
    gpuconv_plan *plan = NULL;
    gpuconv_ir *ir = NULL;
    gpuconv_config config = b->config;
    double rate[2] = {0};
    noise.frames = 1 << 20;
    gpuconv_status status = gc_material_new(&noise, &m, error);
    if (status)
        return status;
    config.frames = what->frames;
    double energy = 0;
    for (int64_t i = 0; i < what->taps; i++)
        energy += (double)m.taps[0][i] * (double)m.taps[0][i];
    double db = -10 * log10(energy);
    status = gpuconv_ir_gain(m.ir, db, &ir, error);
    if (!status)
        status = gpuconv_plan_new(ir, &config, &plan, error);
    for (int f = 0; f < 2 && !status; f++) {
        int64_t chunk = gpuconv_plan_chunk(plan);
        stream s = {.noise = &m,
                    .format = formats[f],
                    .gain = pow(10, db / 20),
                    .chunk = chunk,
                    .frames = gc_round_up(what->frames, chunk)};
        s.which = gc_calloc(s.frames / chunk, 1);
        s.at = gc_calloc(s.frames / chunk, sizeof *s.at);
        s.kept = gc_calloc(s.frames / chunk, what->channels * (int64_t)sizeof(float));
        s.pcm_in = gc_calloc(SLOTS_MOST * chunk, what->channels * (int64_t)sizeof(float));
        status = s.which && s.pcm_in && s.kept && s.at ? stream_format(b, plan, &s, &rate[f], error)
                                                       : gc_fail_memory(error, "the benchmark");
        free(s.which);
        free(s.pcm_in);
        free(s.kept);
        free(s.at);
    }
    if (!status)
        gc_report_measure(b->report, "streams compared", "frames a second, s16 against float", rate[1] / rate[0], "x",
                          b->runs, 0);
    gpuconv_plan_free(plan);
    gpuconv_ir_free(ir);
    gc_material_free(&m);
    return status;
}
