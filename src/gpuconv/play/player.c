/* The player's threads, and what its callback does with a block. */
#include "player.h"

#include "frame_ring.h"
#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/descriptor.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/resampler.h"
#include "libgpuconv/file/job.h"

#include <math.h>
#include <pthread.h>
#include <time.h>

enum { CHUNK = 256, AHEAD = 1 << 16, RECORDED = 1 << 18, READ_STEP = 4096, CONVERTED = 2 * READ_STEP + 4096 };

struct gc_player {
    gc_player_config config;
    const gc_sound_system *system;
    gc_sound *sound;
    gc_reader *reader;
    gc_writer *writer;
    gpuconv_realtime *realtime;
    int inputs, outputs;
    double rate;
    int64_t duration; /* frames as they are played; -1: unknown, or live */
    double file_rate;
    gc_resampler *resampler; /* where the file has another rate than the device */
    _Atomic int response;
    _Atomic int64_t tail; /* frames of the longest response so far: what rings when the file is through */
    gc_frames ahead, recorded;
    pthread_t reading, recording;
    bool reads, records;
    volatile int stop; /* what the file's reader looks at while a pipe gives nothing; with quit */
    _Atomic bool quit, ended, finished, paused, bypassed, starting;
    _Atomic bool flush;             /* the reader wants the ring emptied; the callback did it when it is false again */
    _Atomic int64_t seek, position; /* frames; seek -1: nothing wanted */
    _Atomic int64_t starved, lost, blocks;
    _Atomic uint64_t busy;       /* nanoseconds of all blocks, and of what there was */
    _Atomic uint64_t had, worst; /* worst: millionths of a block's time */
    _Atomic uint32_t peak[GC_PLAYER_CHANNELS];
    _Atomic bool clipped[GC_PLAYER_CHANNELS];
    _Atomic double gain, wet, dry; /* factors that are wanted */
    gpuconv_status failed;         /* of a thread */
    gpuconv_error error;
    /* the callback's: */
    double now_wet, now_dry;
    int64_t left;   /* frames that still ring */
    int64_t behind; /* frames between this and the ear, and some more */
    float *scratch; /* inputs + outputs of CHUNK, then CHUNK interleaved */
};

static double factor(double decibels) {
    return decibels > -HUGE_VAL ? pow(10, decibels / 20) : 0;
}

/* ---- The callback ------------------------------------------------------------------------------------------------ */

/* The next n frames of the file, planar; silence where there are none yet, or no more. */
static void from_file(gc_player *p, float *const *to, float *block, int64_t n) {
    if (atomic_load_explicit(&p->flush, memory_order_acquire)) {
        gc_frames_skip(&p->ahead);
        atomic_store_explicit(&p->flush, false, memory_order_release);
    }
    bool ended = atomic_load_explicit(&p->ended, memory_order_acquire);
    int64_t got = atomic_load(&p->paused) ? 0 : gc_min(n, gc_frames_ready(&p->ahead));
    gc_frames_get(&p->ahead, block, got);
    for (int c = 0; c < p->inputs; c++)
        for (int64_t i = 0; i < n; i++)
            to[c][i] = i < got ? block[i * p->inputs + c] : 0.0f;
    atomic_fetch_add_explicit(&p->position, got, memory_order_relaxed);
    if (got == n || atomic_load(&p->paused))
        return;
    if (!ended) {
        if (!atomic_load(&p->starting))
            atomic_fetch_add_explicit(&p->starved, 1, memory_order_relaxed);
        return;
    }
    /* The tail, and then what is on its way to the device: not every server plays out what it has when it is closed. */
    p->left = got > 0 || p->left < 0 ? atomic_load(&p->tail) + p->behind : p->left;
    p->left -= n - got;
    if (p->left <= 0)
        atomic_store(&p->finished, true);
}

/* Wet and dry, each on its way to what is wanted; peaks; the recording. */
static void mix(gc_player *p, const float *const *dry, const float *const *wet, float *const *out, int64_t n) {
    double gain = atomic_load(&p->gain), want_wet = gain * atomic_load(&p->wet), want_dry = gain * atomic_load(&p->dry);
    if (atomic_load(&p->bypassed)) {
        want_wet = 0;
        want_dry = gain;
    }
    for (int c = 0; c < p->outputs; c++) {
        const float *straight = dry[p->inputs == p->outputs ? c : 0];
        bool same = p->inputs == p->outputs || p->inputs == 1;
        float peak = 0;
        for (int64_t i = 0; i < n; i++) {
            double part = (double)(i + 1) / (double)n;
            double w = p->now_wet + (want_wet - p->now_wet) * part, d = p->now_dry + (want_dry - p->now_dry) * part;
            float y = (float)(w * (double)wet[c][i] + (same ? d * (double)straight[i] : 0));
            out[c][i] = y;
            float size = fabsf(y);
            peak = size > peak ? size : peak;
        }
        uint32_t bits, before = atomic_load_explicit(&p->peak[c], memory_order_relaxed);
        memcpy(&bits, &peak, sizeof bits); /* floats that are not negative order like their bits */
        if (bits > before)
            atomic_store_explicit(&p->peak[c], bits, memory_order_relaxed);
        if (peak > 1)
            atomic_store_explicit(&p->clipped[c], true, memory_order_relaxed);
    }
    p->now_wet = want_wet;
    p->now_dry = want_dry;
}

static void record(gc_player *p, float *const *out, float *block, int64_t n) {
    if (!p->records)
        return;
    if (gc_frames_free_room(&p->recorded) < n) {
        atomic_fetch_add_explicit(&p->lost, n, memory_order_relaxed);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        for (int c = 0; c < p->outputs; c++)
            block[i * p->outputs + c] = out[c][i];
    gc_frames_put(&p->recorded, block, n);
}

static void call(void *context, const float *const *in, float *const *out, int64_t frames) {
    gc_player *p = context;
    double begun = gc_now();
    float *dry[GC_PLAYER_CHANNELS], *wet[GC_PLAYER_CHANNELS], *to[GC_PLAYER_CHANNELS];
    float *block = p->scratch + (int64_t)(p->inputs + p->outputs) * CHUNK;
    for (int c = 0; c < p->inputs; c++)
        dry[c] = p->scratch + (int64_t)c * CHUNK;
    for (int c = 0; c < p->outputs; c++)
        wet[c] = p->scratch + (int64_t)(p->inputs + c) * CHUNK;
    for (int64_t at = 0; at < frames; at += CHUNK) {
        int64_t n = gc_min(CHUNK, frames - at);
        for (int c = 0; c < p->outputs; c++)
            to[c] = out[c] + at;
        if (p->reader)
            from_file(p, dry, block, n);
        else
            for (int c = 0; c < p->inputs; c++)
                memcpy(dry[c], in[c] + at, (size_t)n * sizeof(float));
        gpuconv_realtime_process(p->realtime, (const float *const *)dry, wet, n);
        mix(p, (const float *const *)dry, (const float *const *)wet, to, n);
        record(p, to, block, n);
    }
    double took = gc_now() - begun, there = (double)frames / p->rate;
    uint64_t share = (uint64_t)(1e6 * took / there);
    atomic_fetch_add_explicit(&p->busy, (uint64_t)(took * 1e9), memory_order_relaxed);
    atomic_fetch_add_explicit(&p->had, (uint64_t)(there * 1e9), memory_order_relaxed);
    if (share > atomic_load_explicit(&p->worst, memory_order_relaxed))
        atomic_store_explicit(&p->worst, share, memory_order_relaxed);
    atomic_fetch_add_explicit(&p->blocks, 1, memory_order_relaxed);
}

/* ---- The threads ------------------------------------------------------------------------------------------------- */

static void rest(void) {
    struct timespec t = {0, 5000000};
    nanosleep(&t, NULL);
}

static void fail_thread(gc_player *p, gpuconv_status status, const gpuconv_error *error) {
    p->failed = status;
    p->error = *error;
    atomic_store(&p->finished, true);
}

/* From another place: what was read ahead goes first. */
static gpuconv_status go_to(gc_player *p, int64_t frame, gpuconv_error *error) {
    atomic_store(&p->flush, true);
    while (atomic_load(&p->flush) && !atomic_load(&p->quit))
        rest();
    atomic_store(&p->ended, false);
    atomic_store(&p->position, frame);
    if (p->resampler)
        gc_resampler_clear(p->resampler);
    return gc_reader_seek(p->reader, (int64_t)((double)frame * (p->file_rate / p->rate)), error);
}

/* Frames of the file on, at the device's rate; NULL: the file has ended. */
static gpuconv_status put_ahead(gc_player *p, const float *block, int64_t frames, float *converted,
                                gpuconv_error *error) {
    if (!p->resampler) {
        if (block)
            gc_frames_put(&p->ahead, block, frames);
        return GPUCONV_OK;
    }
    int64_t made = gc_resampler_process(p->resampler, block, frames, converted, CONVERTED);
    if (made < 0)
        return gc_fail(error, GPUCONV_ERROR_MEMORY, "resampling %s failed", p->config.input);
    gc_frames_put(&p->ahead, converted, made);
    return GPUCONV_OK;
}

static void *read_ahead(void *argument) {
    gc_player *p = argument;
    gpuconv_error error = {0};
    gpuconv_status status = GPUCONV_OK;
    /* So many that what becomes of them is no more than a step. */
    int64_t step = p->resampler ? gc_max(16, (int64_t)(READ_STEP * fmin(1, p->file_rate / p->rate))) : READ_STEP;
    float *block = gc_calloc((int64_t)READ_STEP * p->inputs, sizeof *block);
    float *converted = gc_calloc((int64_t)CONVERTED * p->inputs, sizeof *converted);
    if (!block || !converted)
        status = gc_fail_memory(&error, "reading ahead");
    while (!status && !atomic_load(&p->quit)) {
        int64_t got, wanted = atomic_exchange(&p->seek, -1);
        if (wanted >= 0) {
            status = go_to(p, wanted, &error);
            continue;
        }
        if (atomic_load(&p->ended) || gc_frames_free_room(&p->ahead) < CONVERTED) {
            atomic_store(&p->starting, false);
            rest();
            continue;
        }
        status = gc_reader_read_floats(p->reader, block, step, &got, &error);
        if (!status && got > 0)
            status = put_ahead(p, block, got, converted, &error);
        if (!status && got < step) {
            if (p->config.loop)
                status = gc_reader_seek(p->reader, 0, &error);
            else {
                status = put_ahead(p, NULL, 0, converted, &error);
                atomic_store_explicit(&p->ended, true, memory_order_release);
            }
        }
    }
    if (status && !atomic_load(&p->quit)) /* what is given up is no failure */
        fail_thread(p, status, &error);
    free(block);
    free(converted);
    return NULL;
}

static void *write_down(void *argument) {
    enum { STEP = 4096 };
    gc_player *p = argument;
    gpuconv_error error = {0};
    gpuconv_status status = GPUCONV_OK;
    float *block = gc_calloc((int64_t)STEP * p->outputs, sizeof *block);
    if (!block)
        status = gc_fail_memory(&error, "recording");
    while (!status) {
        int64_t n = gc_min(STEP, gc_frames_ready(&p->recorded));
        if (n == 0 && atomic_load(&p->quit))
            break;
        if (n == 0) {
            rest();
            continue;
        }
        gc_frames_get(&p->recorded, block, n);
        status = gc_writer_write(p->writer, block, n, &error);
    }
    if (status)
        fail_thread(p, status, &error);
    free(block);
    return NULL;
}

/* ---- Everybody else ---------------------------------------------------------------------------------------------- */

static gpuconv_status load(const gc_player *p, int response, gpuconv_ir **ir, gpuconv_error *error) {
    gpuconv_preparation plain = gpuconv_preparation_default();
    return gpuconv_ir_prepare(p->config.responses[response], &plain, p->inputs, p->rate, ir, error);
}

static gpuconv_status open_recording(gc_player *p, gpuconv_error *error) {
    gc_audio_info info = gc_audio_info_float(p->outputs, (int)p->rate, -1);
    if (!gc_frames_init(&p->recorded, p->outputs, RECORDED))
        return gc_fail_memory(error, "the recording");
    const gc_output_options wish = {.cancel = p->config.cancel};
    gpuconv_status status = gc_writer_new(p->config.record, &wish, &info, p->outputs, -1, &p->writer, error);
    if (!status && gc_writer_pcm(p->writer).container != GC_F32)
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: a recording is a format that holds floats, such as WAV",
                         p->config.record);
    return status;
}

static gpuconv_status prepare(gc_player *p, gpuconv_error *error) {
    const gc_player_config *c = &p->config;
    gpuconv_ir *ir = NULL;
    gpuconv_status status = gc_sound_find(&p->system, error);
    if (status)
        return status;
    p->duration = -1;
    p->inputs = c->channels;
    p->rate = c->rate > 0 ? c->rate : 48000;
    if (c->input) {
        const gc_input_options wish = {.cancel = c->cancel};
        status = gc_reader_open(c->input, &wish, &p->reader, error);
        if (status)
            return status;
        gc_reader_set_cancel(p->reader, &p->stop);
        p->inputs = gc_reader_info(p->reader)->channels;
        p->duration = gc_reader_info(p->reader)->frames;
        p->file_rate = gc_reader_info(p->reader)->rate;
        p->rate = c->rate > 0 ? c->rate : p->file_rate;
        if (p->rate != p->file_rate) {
            p->resampler = gc_resampler_new(p->file_rate, p->rate, p->inputs);
            if (!p->resampler)
                return gc_fail_memory(error, "resampling the file");
            p->duration = p->duration < 0 ? -1 : llrint((double)p->duration * p->rate / p->file_rate);
        }
    }
    if (p->inputs < 1 || p->inputs > GC_PLAYER_CHANNELS)
        return gc_fail(error, GPUCONV_ERROR_TOPOLOGY, "%d channels cannot be played; 1 to %d can", p->inputs,
                       GC_PLAYER_CHANNELS);
    status = load(p, 0, &ir, error);
    if (status)
        return status;
    p->outputs = gpuconv_ir_outputs(ir);
    atomic_store(&p->tail, gpuconv_ir_frames(ir));
    gpuconv_realtime_config config = {.rate = p->rate,
                                      .block = c->block ? c->block : 1024,
                                      .threads = c->threads,
                                      .backend = c->backend,
                                      .device = c->device,
                                      .latency = c->latency};
    if (p->outputs > GC_PLAYER_CHANNELS)
        status = gc_fail(error, GPUCONV_ERROR_TOPOLOGY, "%d channels cannot be played; up to %d can", p->outputs,
                         GC_PLAYER_CHANNELS);
    if (!status)
        status = gpuconv_realtime_new(ir, &config, &p->realtime, error);
    gpuconv_ir_free(ir);
    int most = p->inputs > p->outputs ? p->inputs : p->outputs;
    p->scratch = gc_calloc((int64_t)(p->inputs + p->outputs + most) * CHUNK, sizeof *p->scratch);
    if (!status && (!p->scratch || (c->input && !gc_frames_init(&p->ahead, p->inputs, AHEAD))))
        status = gc_fail_memory(error, "the player");
    if (!status && c->record)
        status = open_recording(p, error);
    gc_sound_config device = {.output = c->output,
                              .input = c->source,
                              .inputs = c->input ? 0 : p->inputs,
                              .outputs = p->outputs,
                              .rate = p->rate,
                              .block = c->block,
                              .callback = call,
                              .context = p};
    if (!status)
        status = p->system->open(&device, &p->sound, error);
    if (!status)
        p->behind = (int64_t)((p->system->latency(p->sound) + 0.1) * p->rate);
    return status;
}

gpuconv_status gc_player_new(const gc_player_config *config, gc_player **player, gpuconv_error *error) {
    *player = NULL;
    gc_player *p = gc_calloc(1, sizeof *p);
    if (!p)
        return gc_fail_memory(error, "the player");
    p->config = *config;
    p->left = -1;
    atomic_store(&p->seek, config->seek > 0 ? 0 : -1);
    gc_player_level(p, config->gain, config->wet, config->dry);
    gpuconv_status status = prepare(p, error);
    if (status) {
        gc_player_free(p);
        return status;
    }
    if (config->seek > 0)
        gc_player_seek(p, config->seek);
    p->now_wet = atomic_load(&p->gain) * atomic_load(&p->wet);
    p->now_dry = atomic_load(&p->gain) * atomic_load(&p->dry);
    atomic_store(&p->starting, true);
    *player = p;
    return GPUCONV_OK;
}

gpuconv_status gc_player_start(gc_player *p, gpuconv_error *error) {
    bool seeks = atomic_load(&p->seek) >= 0; /* looked at before the reading thread takes the wish away */
    if (p->writer) {
        if (pthread_create(&p->recording, NULL, write_down, p) != 0)
            return gc_fail(error, GPUCONV_ERROR_MEMORY, "no thread to be had for recording");
        p->records = true;
    }
    if (p->reader) {
        if (pthread_create(&p->reading, NULL, read_ahead, p) != 0)
            return gc_fail(error, GPUCONV_ERROR_MEMORY, "no thread to be had for reading");
        p->reads = true;
        if (!seeks) /* a seek waits for the callback, which is not there yet */
            while (atomic_load(&p->starting) && !atomic_load(&p->ended) && !atomic_load(&p->finished)) {
                if (gc_flag_raised(p->config.cancel))
                    return gc_fail(error, GPUCONV_ERROR_CANCELLED, "%s: interrupted", p->config.input);
                rest();
            }
    }
    return p->system->start(p->sound, error);
}

void gc_player_look(gc_player *p, gc_player_view *v) {
    *v = (gc_player_view){.position = (double)atomic_load(&p->position) / p->rate,
                          .duration = p->duration < 0 ? -1 : (double)p->duration / p->rate,
                          .rate = p->rate,
                          .outputs = p->outputs,
                          .response = atomic_load(&p->response),
                          .missed = gpuconv_realtime_late_blocks(p->realtime),
                          .gaps = p->system->gaps(p->sound),
                          .starved = atomic_load(&p->starved),
                          .paused = atomic_load(&p->paused),
                          .bypassed = atomic_load(&p->bypassed),
                          .finished = atomic_load(&p->finished),
                          .alive = p->system->alive(p->sound),
                          .gain = 20 * log10(atomic_load(&p->gain)),
                          .wet = 20 * log10(atomic_load(&p->wet)),
                          .dry = 20 * log10(atomic_load(&p->dry)),
                          .plan = gpuconv_realtime_plan(p->realtime),
                          .gpu = gpuconv_realtime_backend(p->realtime) == GPUCONV_BACKEND_CUDA,
                          .latency = gpuconv_realtime_latency(p->realtime)};
    uint64_t had = atomic_load(&p->had);
    v->mean = had ? (double)atomic_load(&p->busy) / (double)had : 0;
    v->worst = (double)atomic_load(&p->worst) * 1e-6;
    for (int c = 0; c < p->outputs; c++) {
        uint32_t bits = atomic_exchange(&p->peak[c], 0);
        memcpy(&v->peak[c], &bits, sizeof bits);
        v->clipped[c] = atomic_load(&p->clipped[c]);
    }
}

void gc_player_pause(gc_player *p, bool pause) {
    atomic_store(&p->paused, pause);
}

void gc_player_bypass(gc_player *p, bool bypass) {
    atomic_store(&p->bypassed, bypass);
}

void gc_player_level(gc_player *p, double gain, double wet, double dry) {
    atomic_store(&p->gain, factor(gain));
    atomic_store(&p->wet, factor(wet));
    atomic_store(&p->dry, factor(dry));
}

void gc_player_seek(gc_player *p, double seconds) {
    int64_t frame = (int64_t)(seconds > 0 ? seconds * p->rate : 0);
    if (p->reader)
        atomic_store(&p->seek, p->duration >= 0 ? gc_min(frame, p->duration) : frame);
}

gpuconv_status gc_player_choose(gc_player *p, int response, gpuconv_error *error) {
    gpuconv_ir *ir;
    if (response < 0 || response >= p->config.count)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "there is no response %d of %d", response + 1, p->config.count);
    gpuconv_status status = load(p, response, &ir, error);
    if (status)
        return status;
    status = gpuconv_realtime_swap(p->realtime, ir, p->config.crossfade, error);
    if (!status) {
        atomic_store(&p->response, response);
        atomic_store(&p->tail, gc_max(atomic_load(&p->tail), gpuconv_ir_frames(ir)));
    }
    gpuconv_ir_free(ir);
    return status;
}

static void end_threads(gc_player *p) {
    if (p->sound)
        p->system->close(p->sound, atomic_load(&p->finished) && !p->failed);
    p->sound = NULL;
    atomic_store(&p->quit, true);
    __atomic_store_n(&p->stop, 1, __ATOMIC_RELAXED);
    if (p->reads)
        pthread_join(p->reading, NULL);
    if (p->records)
        pthread_join(p->recording, NULL);
    p->reads = p->records = false;
}

gpuconv_status gc_player_stop(gc_player *p, gpuconv_error *error) {
    end_threads(p);
    gpuconv_status kept = p->writer ? gc_writer_commit(p->writer, error) : GPUCONV_OK;
    if (!p->failed)
        return kept;
    *error = p->error;
    return p->failed;
}

void gc_player_free(gc_player *p) {
    if (!p)
        return;
    end_threads(p);
    gpuconv_realtime_free(p->realtime);
    gc_reader_free(p->reader);
    gc_resampler_free(p->resampler);
    gc_writer_free(p->writer);
    gc_frames_free(&p->ahead);
    gc_frames_free(&p->recorded);
    free(p->scratch);
    free(p);
}
