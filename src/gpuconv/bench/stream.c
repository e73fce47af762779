/* Times an engine from memory to memory, without files: the upper bound for the conversion of files. On a GPU every
 * sample crosses the bus twice, so the bus rate in both directions at once is the limit. */
#include "bench.h"

#include "libgpuconv/conv/engine.h"
#include "libgpuconv/conv/plan.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/report/report.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS_MOST = 64 };

static const double input_level = 0.25; /* gain of the input noise, so that nothing clips */

/* One run. The input is periodic: each slot's buffer is filled with noise once and submitted at every use. */
typedef struct stream {
    const gc_material *noise;
    gpuconv_engine *engine;
    gc_pcm format;
    double gain; /* of the response relative to the material's */
    int64_t chunk, frames;
    const void *buffer[SLOTS_MOST];
    int buffers;
    unsigned char *buffer_of; /* by chunk: index of its buffer */
    float *pcm_in;            /* the noise after rounding to `format`: buffers x chunk x channels */
    int64_t taken;            /* frames of output */
    int64_t *checked_at;      /* by chunk: the output frame that is checked after the run */
    float *checked;           /* its samples: chunks x channels */
    gpuconv_status status;
} stream;

/* Returns an input sample. */
static float sample(const stream *s, int64_t frame, int channel) {
    int channels = s->noise->what.channels;
    int64_t at = s->buffer_of[frame / s->chunk] * s->chunk + frame % s->chunk;
    return s->pcm_in[at * channels + channel];
}

/* Thread: takes all output and keeps one frame of each chunk. */
static void *consume(void *context) {
    stream *s = context;
    const void *raw;
    int channels = s->noise->what.channels;
    int64_t frames;
    for (int64_t k = 0; (s->status = gc_engine_take(s->engine, &raw, &frames)) == GPUCONV_OK && frames > 0; k++) {
        int64_t frame = (k + 1) * 7919 % frames;
        if (k < s->frames / s->chunk) {
            s->checked_at[k] = s->taken + frame;
            for (int c = 0; c < channels; c++)
                s->checked[k * channels + c] = s->format.container == GC_F32
                                                   ? ((const float *)raw)[frame * channels + c]
                                                   : ((const int16_t *)raw)[frame * channels + c] / 32768.0f;
        }
        s->taken += frames;
        gc_engine_release(s->engine);
    }
    return NULL;
}

/* Returns the RMS error in dB at one frame of about 20 chunks, relative to direct sums in doubles. */
static double output_error(const stream *s) {
    int channels = s->noise->what.channels;
    int64_t taps = s->noise->what.taps, chunks = s->frames / s->chunk, step = chunks / 20 + 1;
    double error = 0, power = 0;
    for (int64_t k = 0; k < chunks; k += step)
        for (int c = 0; c < channels; c++) {
            double expected = 0;
            for (int64_t i = 0; i < taps && i <= s->checked_at[k]; i++)
                if (s->checked_at[k] - i < s->frames)
                    expected += s->gain * (double)s->noise->taps[c][i] * (double)sample(s, s->checked_at[k] - i, c);
            double difference = (double)s->checked[k * channels + c] - expected;
            error += difference * difference;
            power += expected * expected;
        }
    return 10 * log10(error / power);
}

/* Records the buffer of a chunk, and fills the buffer with noise if it is used for the first time. @return false if the
 * engine has more than SLOTS_MOST buffers */
static bool fill_buffer(stream *s, void *raw, int64_t chunk) {
    int channels = s->noise->what.channels, b = 0;
    while (b < s->buffers && s->buffer[b] != raw)
        b++;
    if (b == SLOTS_MOST)
        return false;
    s->buffer_of[chunk] = (unsigned char)b;
    if (b < s->buffers)
        return true;
    s->buffer[s->buffers++] = raw;
    for (int64_t i = 0; i < s->chunk; i++)
        for (int c = 0; c < channels; c++) {
            int64_t at = i * channels + c;
            float x = (float)input_level * s->noise->in[c][(b * s->chunk + i) % s->noise->what.frames];
            if (s->format.container == GC_F32)
                ((float *)raw)[at] = x;
            else
                x = (float)(((int16_t *)raw)[at] = (int16_t)lrintf(32768 * x)) / 32768;
            s->pcm_in[b * s->chunk * channels + at] = x;
        }
    return true;
}

/* Submits all input. */
static gpuconv_status feed(stream *s) {
    gpuconv_status status = GPUCONV_OK;
    for (int64_t k = 0; !status && k < s->frames / s->chunk; k++) {
        void *raw;
        status = gc_engine_acquire(s->engine, &raw);
        if (!status && !fill_buffer(s, raw, k))
            status = GPUCONV_ERROR_STATE;
        if (!status)
            status = gc_engine_submit(s->engine, s->chunk);
    }
    if (status)
        gc_engine_stop(s->engine);
    return status ? status : gc_engine_flush(s->engine);
}

/* Streams all frames once and verifies the output. */
static gpuconv_status run(stream *s, double *seconds, gpuconv_error *error) {
    pthread_t thread;
    gpuconv_status status = gpuconv_engine_reset(s->engine);
    if (status)
        return gc_fail(error, status, "%s", gc_engine_failure(s->engine, status));
    s->taken = 0;
    double begin = gc_now();
    if (pthread_create(&thread, NULL, consume, s) != 0)
        return gc_fail(error, GPUCONV_ERROR_MEMORY, "cannot start the thread that takes the output");
    status = feed(s);
    pthread_join(thread, NULL);
    *seconds = gc_now() - begin;
    status = status ? status : s->status;
    if (status)
        return gc_fail(error, status, "%s", gc_engine_failure(s->engine, status));
    double db = output_error(s), bound = s->format.container == GC_F32 ? -120 : -70;
    if (s->taken != s->frames + s->noise->what.taps - 1 || !(db <= bound))
        return gc_fail(error, GPUCONV_ERROR_STATE, "the stream is wrong: %lld frames, error %.1f dB",
                       (long long)s->taken, db);
    return GPUCONV_OK;
}

/* Returns whether chunk i was computed while a later chunk was copied in and an earlier one was copied out. */
static bool overlaps_copies(const gc_stream_stats *m, int i) {
    const double *compute = m->times[i].compute;
    for (int j = i + 1; j < m->timed_chunks; j++)
        for (int k = 0; k < i; k++) {
            const double *in = m->times[j].copy_in, *out = m->times[k].copy_out;
            if (fmax(compute[0], fmax(in[0], out[0])) < fmin(compute[1], fmin(in[1], out[1])))
                return true;
        }
    return false;
}

/* Times one sample format and reports it. @param rate receives frames per second */
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
    int overlapping = 0;
    for (int i = 0; i < m.timed_chunks; i++)
        overlapping += overlaps_copies(&m, i);
    *rate = (double)s->frames / best;
    double bytes = *rate * channels * gc_pcm_bytes(s->format), bus = b->bus[plan->backend->id];
    double values[] = {best * 1e3, *rate * 1e-6, bytes * 1e-9, bus > 0 ? bytes / bus * 100 : (double)NAN,
                       m.timed_chunks ? 100.0 * overlapping / m.timed_chunks : (double)NAN};
    snprintf(label, sizeof label, "%s: %s, %s", s->noise->what.name, gpuconv_backend_name(plan->backend->id),
             s->format.container == GC_F32 ? "float" : "s16");
    gc_report_named_row(b->report, "streams", label, 5, names, values);
    return GPUCONV_OK;
}

gpuconv_status gc_bench_stream(const gc_bench *b, const gc_bench_case *what, gpuconv_error *error) {
    if (what->outputs)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s: a matrix is measured without --stream; choose another case",
                       what->name);
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
        s.buffer_of = gc_calloc(s.frames / chunk, 1);
        s.checked_at = gc_calloc(s.frames / chunk, sizeof *s.checked_at);
        s.checked = gc_calloc(s.frames / chunk, what->channels * (int64_t)sizeof(float));
        s.pcm_in = gc_calloc(SLOTS_MOST * chunk, what->channels * (int64_t)sizeof(float));
        status = s.buffer_of && s.pcm_in && s.checked && s.checked_at ? stream_format(b, plan, &s, &rate[f], error)
                                                                      : gc_fail_memory(error, "the benchmark");
        free(s.buffer_of);
        free(s.pcm_in);
        free(s.checked);
        free(s.checked_at);
    }
    if (!status)
        gc_report_measure(b->report, "streams compared", "frames a second, s16 against float", rate[1] / rate[0], "x",
                          b->runs, 0);
    gpuconv_plan_free(plan);
    gpuconv_ir_free(ir);
    gc_material_free(&m);
    return status;
}
