/*
 * Times the kernels on data that lies on the device, against ceilings measured in the same run, and writes the record
 * of a GPU: figures, the checks that gpu_test noted, and the digest of the sources.
 *
 * Every output is poisoned with NaN before its first timed run and held against the oracle at random frames after the
 * last. A figure is the median of its runs; its spread half of what lies between the fastest and the slowest.
 *
 * Usage: gpu_figures --digest HEX [--checks FILE] [--sanitizer TEXT] [--failed N] [--figure NAME VALUE UNIT]... --out
 * FOLDER gpu_figures --empty     only creates a context, as a measure of what every CUDA program takes
 */
#include "../../kernels/course/convolution.h"
#include "backend/cuda/convolver.h"
#include "core/clock.h"
#include "core/memory.h"
#include "dsp/schedule.h"
#include "engine/engine.h"
#include "oracle.h"

#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A sample is a row of launches, so that what a launch costs the host hides behind the one before, as it does in use.
 */
enum { RUNS = 20, ROW = 8 };

static json_t *figures;
static int failures;
static cudaStream_t stream;
static cudaEvent_t begin, end;

static void must(cudaError_t failed, const char *what) {
    if (!failed)
        return;
    fprintf(stderr, "gpu_figures: %s: %s\n", what, cudaGetErrorString(failed));
    exit(1);
}

static void *room(int64_t bytes) {
    void *p;
    must(cudaMalloc(&p, (size_t)bytes), "device memory");
    must(cudaMemset(p, 0, (size_t)bytes), "device memory");
    return p;
}

static void *host(int64_t count, int64_t size) {
    void *p = gc_calloc(count, size);
    if (!p) {
        fprintf(stderr, "gpu_figures: out of memory\n");
        exit(1);
    }
    return p;
}

static void figure(const char *name, double value, const char *unit, int n, double spread) {
    printf("%-58s %10.4g %s\n", name, value, unit);
    fflush(stdout);
    json_array_append_new(figures, json_pack("{s:s, s:f, s:s, s:i, s:f}", "name", name, "value", value, "unit", unit,
                                             "n", n, "spread", spread));
}

static int order(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median seconds of a launch in a row of them; warmed up for a tenth of a second, so that the clock has risen. */
static double timed(cudaError_t (*launch)(void *), void *context, double *spread) {
    double t[RUNS], start = gc_now();
    do {
        must(launch(context), "launch");
        must(cudaStreamSynchronize(stream), "kernel");
    } while (gc_now() - start < 0.1);
    for (int i = 0; i < RUNS; i++) {
        float ms;
        must(cudaEventRecord(begin, stream), "event");
        for (int k = 0; k < ROW; k++)
            must(launch(context), "launch");
        must(cudaEventRecord(end, stream), "event");
        must(cudaEventSynchronize(end), "kernel");
        must(cudaEventElapsedTime(&ms, begin, end), "event");
        t[i] = 1e-3 * (double)ms / ROW;
    }
    qsort(t, RUNS, sizeof *t, order);
    *spread = (t[RUNS - 1] - t[0]) / 2;
    return (t[RUNS / 2 - 1] + t[RUNS / 2]) / 2;
}

/* ---- Ceilings ---------------------------------------------------------------------------------------------------- */

typedef struct ceiling {
    float *a, *b;
    int64_t n;
    int blocks;
} ceiling;

static cudaError_t run_fma(void *p) {
    ceiling *c = p;
    return gck_ceiling_fma(c->a, c->blocks, 2048, stream);
}

static cudaError_t run_copy(void *p) {
    ceiling *c = p;
    return gck_ceiling_copy(c->a, c->b, c->n, stream);
}

static cudaError_t run_empty(void *p) {
    (void)p;
    return gck_ceiling_empty(stream);
}

static double fma_rate, copy_rate, bus_both;

static void ceilings(const struct cudaDeviceProp *gpu) {
    double spread, t;
    ceiling c = {.n = INT64_C(1) << 28, .blocks = gpu->multiProcessorCount * 32};
    c.a = room(c.n * 4);
    c.b = room(c.n * 4);
    t = timed(run_fma, &c, &spread);
    double work = (double)c.blocks * 256 * 2048 * 64 * 2;
    fma_rate = work / t;
    figure("ceiling: multiply-add loop", fma_rate * 1e-12, "TFLOP/s", RUNS, work / (t * t) * spread * 1e-12);
    t = timed(run_copy, &c, &spread);
    copy_rate = 8.0 * (double)c.n / t;
    figure("ceiling: copy of 1 GiB, read and written", copy_rate * 1e-9, "GB/s", RUNS, copy_rate / t * spread * 1e-9);
    c.n = INT64_C(1) << 23;
    t = timed(run_copy, &c, &spread);
    figure("ceiling: copy of 32 MiB", t * 1e3, "ms", RUNS, spread * 1e3);
    t = timed(run_empty, NULL, &spread);
    figure("ceiling: an empty launch", t * 1e6, "us", RUNS, spread * 1e6);
    must(cudaFree(c.a), "free");
    must(cudaFree(c.b), "free");
}

static void bus(void) {
    int64_t bytes = INT64_C(1) << 28;
    void *up, *down, *a = room(bytes), *b = room(bytes);
    cudaStream_t other;
    must(cudaHostAlloc(&up, (size_t)bytes, cudaHostAllocDefault), "pinned memory");
    must(cudaHostAlloc(&down, (size_t)bytes, cudaHostAllocDefault), "pinned memory");
    must(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), "stream");
    double best[3] = {0};
    for (int r = 0; r < RUNS; r++)
        for (int way = 0; way < 3; way++) {
            double start = gc_now();
            if (way != 1)
                must(cudaMemcpyAsync(a, up, (size_t)bytes, cudaMemcpyHostToDevice, stream), "copy");
            if (way != 0)
                must(cudaMemcpyAsync(down, b, (size_t)bytes, cudaMemcpyDeviceToHost, other), "copy");
            must(cudaDeviceSynchronize(), "copy");
            double rate = (double)bytes / (gc_now() - start);
            best[way] = rate > best[way] ? rate : best[way];
        }
    figure("ceiling: bus to the device, pinned, best", best[0] * 1e-9, "GB/s", RUNS, 0);
    figure("ceiling: bus from the device, pinned, best", best[1] * 1e-9, "GB/s", RUNS, 0);
    figure("ceiling: bus both ways at once, each way, best", best[2] * 1e-9, "GB/s", RUNS, 0);
    bus_both = best[2];
    must(cudaFreeHost(up), "free");
    must(cudaFreeHost(down), "free");
    must(cudaFree(a), "free");
    must(cudaFree(b), "free");
    must(cudaStreamDestroy(other), "stream");
}

/* ---- Convolutions on data that lies on the device ------------------------------------------------------------------
 */

typedef struct work {
    int64_t frames, taps;
    int channels, course; /* course: outputs a thread of the course's own kernel */
    float *x, *h;         /* host: channels x frames, channels x taps */
    gpuconv_plan plan;
    gpuconv_ir *ir;
    gc_cuda_convolver convolver;
    float *in, *out;
    int64_t before, out_frames;
} work;

static cudaError_t run_work(void *p) {
    work *w = p;
    if (w->course)
        return course_convolution_unrolled(w->in + w->before, w->out, w->frames, (int)w->taps, w->course, stream);
    return gc_cuda_convolver_run(&w->convolver, w->in + w->before, w->out, w->frames, stream);
}

static void signals(work *w) {
    oracle_random random = {(uint64_t)(w->taps * 31 + w->frames)};
    w->x = host(w->channels * w->frames, 4);
    w->h = host(w->channels * w->taps, 4);
    oracle_fill(&random, w->x, w->channels * w->frames);
    oracle_fill(&random, w->h, w->channels * w->taps);
    for (int64_t i = 0; i < w->channels * w->taps; i++)
        w->h[i] *= (float)exp(-6.9 * (double)(i % w->taps) / (double)w->taps);
}

static void need(gpuconv_status status, const gpuconv_error *error) {
    if (!status)
        return;
    fprintf(stderr, "gpu_figures: %s\n", error->message);
    exit(1);
}

static void prepare(work *w, gpuconv_algorithm algorithm, int64_t points) {
    gpuconv_error error;
    w->plan = (gpuconv_plan){0};
    if (!gc_schedule_make(algorithm, w->taps, points, &w->plan.schedule)) {
        fprintf(stderr, "gpu_figures: impossible schedule\n");
        exit(1);
    }
    const float *planes[2] = {w->h, w->h + w->taps};
    gpuconv_ir *mono_in;
    need(gpuconv_ir_new(planes, w->channels, w->taps, 48000, &mono_in, &error), &error);
    need(gpuconv_ir_route(mono_in, w->channels, &w->ir, &error), &error);
    gpuconv_ir_free(mono_in);
    int64_t step = algorithm == GPUCONV_ALGORITHM_DIRECT ? 32 : 2 * w->plan.schedule.hop;
    w->out_frames = gc_round_up(w->frames, step);
    w->before = gc_round_up(gc_schedule_history(&w->plan.schedule) + 32, 32);
    w->plan.ir = w->ir;
    w->plan.chunk = w->out_frames;
    int64_t in_stride = w->before + w->out_frames;
    w->in = room(w->channels * in_stride * 4);
    for (int c = 0; c < w->channels; c++)
        must(cudaMemcpy(w->in + c * in_stride + w->before, w->x + c * w->frames, (size_t)w->frames * 4,
                        cudaMemcpyHostToDevice),
             "upload");
    w->out = room(w->channels * w->out_frames * 4);
    must(cudaMemset(w->out, 0xff, (size_t)(w->channels * w->out_frames * 4)), "poison");
    must(gc_cuda_convolver_init(&w->convolver, &w->plan, in_stride, w->out_frames, stream), "set-up");
}

static void clear(work *w) {
    gc_cuda_convolver_free(&w->convolver);
    gpuconv_ir_free(w->ir);
    cudaFree(w->in);
    cudaFree(w->out);
}

/* Error in dB at frames drawn at random, the first and the last among them. */
static double verify(const work *w, const char *name) {
    enum { PLACES = 400 };
    float *y = host(w->channels * w->out_frames, 4);
    must(cudaMemcpy(y, w->out, (size_t)(w->channels * w->out_frames * 4), cudaMemcpyDeviceToHost), "download");
    oracle_random random = {77};
    double error = 0, power = 0;
    int64_t poisoned = 0;
    for (int c = 0; c < w->channels; c++) {
        for (int64_t i = 0; i < w->frames; i++)
            poisoned += !isfinite(y[c * w->out_frames + i]);
        for (int k = 0; k < PLACES; k++) {
            int64_t at = k == 0 ? 0 : k == 1 ? w->frames - 1 : oracle_below(&random, w->frames);
            double want = oracle_frame(w->x + c * w->frames, w->frames, w->h + c * w->taps, w->taps, at);
            double d = (double)y[c * w->out_frames + at] - want;
            error += d * d;
            power += want * want;
        }
    }
    free(y);
    double db = 10 * log10(error / power);
    if (poisoned || !(db <= -120)) {
        fprintf(stderr, "gpu_figures: %s: %lld frames not written, error %.1f dB\n", name, (long long)poisoned, db);
        failures++;
    }
    return db;
}

static double convolve(work *w, const char *what, gpuconv_algorithm algorithm, int64_t points) {
    char name[120];
    double spread;
    prepare(w, algorithm, points);
    if (w->course)
        must(course_convolution_taps(w->h, (int)w->taps, stream), "taps");
    double t = timed(run_work, w, &spread);
    if (w->course)
        snprintf(name, sizeof name, "%s: the course's kernel, %d outputs a thread", what, w->course);
    else if (algorithm == GPUCONV_ALGORITHM_DIRECT)
        snprintf(name, sizeof name, "%s: direct", what);
    else
        snprintf(name, sizeof name, "%s: %s, %lld points", what, gpuconv_algorithm_name(algorithm), (long long)points);
    figure(name, t * 1e3, "ms", RUNS, spread * 1e3);
    double db = verify(w, name);
    snprintf(name + strlen(name), sizeof name - strlen(name), ", error");
    figure(name, db, "dB", 1, 0);
    clear(w);
    return t;
}

static void case_study(void) {
    const char *what = "2^23 x 512";
    work w = {.frames = INT64_C(1) << 23, .taps = 512, .channels = 1};
    double best = HUGE_VAL, fused = HUGE_VAL;
    signals(&w);
    for (int x = 4; x <= 32; x *= 2) {
        w.course = x;
        double t = convolve(&w, what, GPUCONV_ALGORITHM_DIRECT, 0);
        best = t < best ? t : best;
    }
    w.course = 0;
    double direct = convolve(&w, what, GPUCONV_ALGORITHM_DIRECT, 0);
    for (int64_t n = GCK_OVERLAP_SAVE_LEAST; n <= 32768; n *= 2) {
        if (!gck_overlap_save_size(n).turns)
            continue;
        double t = convolve(&w, what, GPUCONV_ALGORITHM_OVERLAP_SAVE, n);
        fused = t < fused ? t : fused;
    }
    double copy = 8.0 * (double)w.frames / copy_rate;
    figure("2^23 x 512: direct, share of the multiply-add loop", 2.0 * 512 * (double)w.frames / direct / fma_rate * 100,
           "%", 1, 0);
    figure("2^23 x 512: direct, times faster than the course's best", best / direct, "x", 1, 0);
    figure("2^23 x 512: best, times the copy of the same bytes", (fused < direct ? fused : direct) / copy, "x", 1, 0);
    free(w.x);
    free(w.h);
}

static void short_responses(void) {
    for (int64_t taps = 16; taps <= 64; taps *= 2) {
        char what[40];
        snprintf(what, sizeof what, "2^23 x %lld", (long long)taps);
        work w = {.frames = INT64_C(1) << 23, .taps = taps, .channels = 1};
        signals(&w);
        convolve(&w, what, GPUCONV_ALGORITHM_DIRECT, 0);
        free(w.x);
        free(w.h);
    }
}

static void long_responses(void) {
    static const struct {
        const char *what;
        int64_t frames, taps;
    } cases[] = {{"10 min stereo x 1.5 s", 26460000, 66150},
                 {"10 min stereo x 10 s", 26460000, 441000},
                 {"60 min stereo x 3 s", 172800000, 144000}};
    for (int i = 0; i < 3; i++) {
        work w = {.frames = cases[i].frames, .taps = cases[i].taps, .channels = 2};
        signals(&w);
        double best = HUGE_VAL;
        convolve(&w, cases[i].what, GPUCONV_ALGORITHM_PARTITIONED, GCK_POINTS_MOST);
        for (int64_t n = 131072; n <= GCK_OVERLAP_SAVE_MOST; n *= 2) {
            if (n < 3 * w.taps / 2)
                continue;
            double t = convolve(&w, cases[i].what, GPUCONV_ALGORITHM_OVERLAP_SAVE, n);
            best = t < best ? t : best;
        }
        char name[120];
        snprintf(name, sizeof name, "%s: best, times the copy of the same bytes", cases[i].what);
        figure(name, best / (16.0 * (double)w.frames / copy_rate), "x", 1, 0);
        free(w.x);
        free(w.h);
    }
}

/* ---- The pipeline: memory to memory through the bus ----------------------------------------------------------------
 */

typedef struct consumer {
    gpuconv_engine *engine;
    int64_t frames;
    gpuconv_status status;
} consumer;

static void *consume(void *p) {
    consumer *c = p;
    const void *raw;
    int64_t got;
    while ((c->status = gc_engine_take(c->engine, &raw, &got)) == GPUCONV_OK && got > 0) {
        c->frames += got;
        gc_engine_release(c->engine);
    }
    return NULL;
}

/* While chunk i was computed, was there a moment in which a later chunk was copied in and an earlier one copied out? */
static bool together_at(const gc_measurement *m, int i) {
    const double *compute = m->passage[i].compute;
    for (int j = i + 1; j < m->passages; j++)
        for (int k = 0; k < i; k++) {
            const double *in = m->passage[j].copy_in, *out = m->passage[k].copy_out;
            if (fmax(compute[0], fmax(in[0], out[0])) < fmin(compute[1], fmin(in[1], out[1])))
                return true;
        }
    return false;
}

/* Frames a second through an engine whose input is already in its slots; of how many chunks of the timeline all three
 * stages of different chunks ran at once. */
static double through(const char *what, gc_pcm format, int64_t taps, int *together, int *chunks) {
    int64_t frames = INT64_C(1) << 28;
    work w = {.frames = 1, .taps = taps, .channels = 2};
    signals(&w);
    const float *const planes[] = {w.h, w.h + taps};
    gpuconv_ir *ir, *routed;
    gpuconv_plan *plan;
    gpuconv_config config = gpuconv_config_default();
    gpuconv_error error = {0};
    config.backend = GPUCONV_BACKEND_CUDA;
    config.frames = frames;
    consumer c = {0};
    if (gpuconv_ir_new(planes, 2, taps, 48000, &ir, &error) || gpuconv_ir_route(ir, 2, &routed, &error) ||
        gpuconv_plan_new(routed, &config, &plan, &error) || gc_engine_new(plan, format, format, &c.engine, &error)) {
        fprintf(stderr, "gpu_figures: %s: %s\n", what, error.message);
        exit(1);
    }
    pthread_t thread;
    if (pthread_create(&thread, NULL, consume, &c) != 0)
        exit(1);
    double start = gc_now();
    gpuconv_status status = GPUCONV_OK;
    for (int64_t fed = 0; !status && fed < frames;) {
        void *raw;
        int64_t n = gc_min(gpuconv_plan_chunk(plan), frames - fed);
        status = gc_engine_acquire(c.engine, &raw);
        if (!status)
            status = gc_engine_submit(c.engine, n);
        fed += n;
    }
    if (!status)
        status = gc_engine_flush(c.engine);
    pthread_join(thread, NULL);
    double seconds = gc_now() - start;
    if (status || c.status || c.frames != frames + taps - 1) {
        fprintf(stderr, "gpu_figures: %s: %s\n", what, gc_engine_failure(c.engine, status ? status : c.status));
        failures++;
    }
    gc_measurement m;
    gc_engine_measure(c.engine, &m);
    *together = 0;
    *chunks = m.passages;
    for (int i = 0; i < m.passages; i++)
        *together += together_at(&m, i);
    gpuconv_engine_free(c.engine);
    gpuconv_plan_free(plan);
    gpuconv_ir_free(routed);
    gpuconv_ir_free(ir);
    free(w.x);
    free(w.h);
    return (double)frames / seconds;
}

static void pipeline(void) {
    static const gc_pcm formats[] = {{GC_F32, 32}, {GC_S16, 16}};
    static const char *const names[] = {"float", "s16"};
    double best[2] = {0};
    int together = 0, chunks = 0;
    for (int f = 0; f < 2; f++) {
        for (int r = 0; r < 5; r++) {
            double rate = through(names[f], formats[f], 66150, &together, &chunks);
            best[f] = rate > best[f] ? rate : best[f];
        }
        char name[120];
        snprintf(name, sizeof name, "pipeline, stereo %s x 1.5 s: through the bus each way, best", names[f]);
        figure(name, best[f] * 2 * gc_pcm_bytes(formats[f]) * 1e-9, "GB/s", 5, 0);
        snprintf(name, sizeof name, "pipeline, stereo %s x 1.5 s: share of the bus both ways", names[f]);
        figure(name, best[f] * 2 * gc_pcm_bytes(formats[f]) / bus_both * 100, "%", 5, 0);
        snprintf(name, sizeof name, "pipeline, %s: of %d chunks, computed amid copies in and out", names[f], chunks);
        figure(name, together, "chunks", 1, 0);
    }
    figure("pipeline: frames a second, s16 against float", best[1] / best[0], "x", 5, 0);
}

/* ---- The record ----------------------------------------------------------------------------------------------------
 */

static void write_record(const char *folder, const struct cudaDeviceProp *gpu, const char *digest, const char *checks,
                         const char *sanitizer, int failed) {
    char path[512], name[256];
    int runtime = 0, driver = 0;
    cudaRuntimeGetVersion(&runtime);
    cudaDriverGetVersion(&driver);
    size_t n = 0;
    for (const char *p = gpu->name; *p && n + 1 < sizeof name; p++)
        name[n++] = isalnum((unsigned char)*p) ? (char)tolower((unsigned char)*p) : '-';
    name[n] = '\0';
    json_t *noted = checks ? json_load_file(checks, 0, NULL) : NULL;
    json_t *record =
        json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:s, s:i, s:o, s:o}", "gpu", gpu->name, "digest", digest, "gpuconv",
                  gpuconv_version(), "multiprocessors", gpu->multiProcessorCount, "CUDA runtime", runtime,
                  "CUDA driver", driver, "sanitizer", sanitizer, "failed", failed + failures, "figures",
                  json_incref(figures), "checks", noted ? noted : json_array());
    snprintf(path, sizeof path, "%s/%s.json", folder, name);
    if (!record || json_dump_file(record, path, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) != 0) {
        fprintf(stderr, "gpu_figures: %s cannot be written\n", path);
        exit(1);
    }
    json_decref(record);
    printf("record: %s\n", path);
}

int main(int argc, char **argv) {
    const char *digest = NULL, *checks = NULL, *sanitizer = "not run", *out = NULL;
    int failed = 0;
    figures = json_array();
    if (argc == 2 && strcmp(argv[1], "--empty") == 0) {
        must(cudaFree(NULL), "no GPU");
        return 0;
    }
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--digest") == 0) {
            digest = argv[i + 1];
        } else if (strcmp(argv[i], "--checks") == 0) {
            checks = argv[i + 1];
        } else if (strcmp(argv[i], "--sanitizer") == 0) {
            sanitizer = argv[i + 1];
        } else if (strcmp(argv[i], "--failed") == 0) {
            failed = atoi(argv[i + 1]);
        } else if (strcmp(argv[i], "--out") == 0) {
            out = argv[i + 1];
        } else if (strcmp(argv[i], "--figure") == 0 && i + 3 < argc) {
            figure(argv[i + 1], atof(argv[i + 2]), argv[i + 3], 1, 0);
            i += 2;
        }
    }
    if (!digest || !out) {
        fprintf(stderr,
                "usage: gpu_figures --digest HEX [--checks FILE] [--sanitizer TEXT] [--failed N] --out FOLDER\n");
        return 2;
    }
    struct cudaDeviceProp gpu;
    must(cudaGetDeviceProperties(&gpu, 0), "no GPU");
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
    must(cudaEventCreate(&begin), "event");
    must(cudaEventCreate(&end), "event");
    ceilings(&gpu);
    bus();
    case_study();
    short_responses();
    long_responses();
    pipeline();
    write_record(out, &gpu, digest, checks, sanitizer, failed);
    json_decref(figures);
    return failed + failures ? 1 : 0;
}
