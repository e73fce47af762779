/*
 * Times of jobs on device memory (gpuconv_arrays.h), every output checked in some frames against sums in double
 * precision. A time is the median of RUNS rows of CALLS calls on one stream, between two events; three sets of arrays
 * are used in turn, so that small ones are not in the cache. Usage: gpu_jobs_speed [--all [LABEL]] OUT.json; --all also
 * times every way to compute that may be worth it, in a graph of CALLS calls, with its error, on standard output; LABEL
 * picks the rows whose label contains it. The last lines count the choices of the planner that are among the fastest.
 */
#include "libgpuconv/conv/cuda/cuda_arrays.h"
#include "libgpuconv/core/clock.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 9, CALLS = 10, SETS = 3, CHECKED = 48 };

/* Rows with both gates, which have the values of the signal and of the output's gradient, and a skip. */
enum { GATED = -1 };
#define SKIP 0.5f

typedef struct row {
    const char *label;
    int64_t rows, frames, taps;
    bool both, kept; /* both: forward, and the gradients by signal and response */
    int shared;      /* rows that share a response; 0: each has its own */
    gpuconv_sample_type type;
    bool same;   /* as many frames out as in */
    int64_t hop; /* each row has a response for each block of this many frames; or GATED */
} row;

/* Rows of a model of sequences, floats and halves, forward and with both gradients: `batch` times `channels`, each with
 * a filter of `taps` taps, causal. */
#define SEQUENCE(text, batch, channels, frames, taps, type, both)                                                      \
    {                                                                                                                  \
#batch " x " #channels " x " #frames " * " #channels " x " #taps text, (batch) * (channels), frames, taps,     \
            both, false, -(channels), type, true, 0                                                                    \
    }
#define SEQUENCES(batch, channels, frames, taps)                                                                       \
    SEQUENCE("", batch, channels, frames, taps, GPUCONV_SAMPLE_F32, false),                                            \
        SEQUENCE(", half", batch, channels, frames, taps, GPUCONV_SAMPLE_F16, false),                                  \
        SEQUENCE(", forward and both gradients", batch, channels, frames, taps, GPUCONV_SAMPLE_F32, true),             \
        SEQUENCE(", half, forward and both gradients", batch, channels, frames, taps, GPUCONV_SAMPLE_F16, true)

static const row rows[] = {
    {"1024 x 160000 * own 8000, fresh", 1024, 160000, 8000, false, false, 0, GPUCONV_SAMPLE_F32, false, 0},
    {"1024 x 160000 * own 8000, fresh, forward and both gradients", 1024, 160000, 8000, true, false, 0,
     GPUCONV_SAMPLE_F32, false, 0},
    {"1024 x 160000 * own 8000, fresh, bfloat16", 1024, 160000, 8000, false, false, 0, GPUCONV_SAMPLE_BF16, false, 0},
    {"1024 x 160000 * one 8000, kept", 1024, 160000, 8000, false, true, 1024, GPUCONV_SAMPLE_F32, false, 0},
    {"1024 x 160000 * own 8000, fresh, 160000 frames out", 1024, 160000, 8000, false, false, 0, GPUCONV_SAMPLE_F32,
     true, 0},
    {"1024 x 16000 * own 1600, fresh", 1024, 16000, 1600, false, false, 0, GPUCONV_SAMPLE_F32, false, 0},
    {"64 x 64000 * own 16000, fresh", 64, 64000, 16000, false, false, 0, GPUCONV_SAMPLE_F32, false, 0},
    {"64 x 64000 * own 16000, fresh, forward and both gradients", 64, 64000, 16000, true, false, 0, GPUCONV_SAMPLE_F32,
     false, 0},
    {"32 x 480000 * own 96000, fresh", 32, 480000, 96000, false, false, 0, GPUCONV_SAMPLE_F32, false, 0},
    {"32 x 480000 * own 96000, fresh, forward and both gradients", 32, 480000, 96000, true, false, 0,
     GPUCONV_SAMPLE_F32, false, 0},
    {"32 x 480000 * own 96000, fresh, 480000 frames out", 32, 480000, 96000, false, false, 0, GPUCONV_SAMPLE_F32, true,
     0},
    {"8 x 3600000 * own 48000, fresh", 8, 3600000, 48000, false, false, 0, GPUCONV_SAMPLE_F32, false, 0},
    {"8 x 3600000 * own 48000, kept", 8, 3600000, 48000, false, true, 0, GPUCONV_SAMPLE_F32, false, 0},
    {"2 x 28800000 * own 72000, kept", 2, 28800000, 72000, false, true, 0, GPUCONV_SAMPLE_F32, false, 0},
    {"2 x 28800000 * own 72000, kept, 28800000 frames out", 2, 28800000, 72000, false, true, 0, GPUCONV_SAMPLE_F32,
     true, 0},
    SEQUENCES(64, 768, 128, 128),
    SEQUENCES(64, 768, 256, 256),
    SEQUENCES(64, 768, 512, 512),
    SEQUENCES(64, 768, 1024, 1024),
    SEQUENCES(64, 768, 2048, 2048),
    SEQUENCES(64, 768, 4096, 4096),
    SEQUENCES(64, 768, 8192, 8192),
    SEQUENCES(32, 768, 16384, 16384),
    SEQUENCES(4, 768, 65536, 65536),
    SEQUENCES(1, 64, 1048576, 1048576),
    SEQUENCES(16, 768, 8192, 128),
    {"4 x 768 x 1024 * 768 x 1024, half", 4 * 768, 1024, 1024, false, false, -768, GPUCONV_SAMPLE_F16, true, 0},
    {"1024 x 48000 * one 64, fresh, half", 1024, 48000, 64, false, false, 1024, GPUCONV_SAMPLE_F16, true, 0},
    {"65536 x 128 * own 128, fresh", 65536, 128, 128, false, false, 0, GPUCONV_SAMPLE_F32, false, 0},
    {"4096 x 512 * own 256, fresh", 4096, 512, 256, false, false, 0, GPUCONV_SAMPLE_F32, false, 0},
    {"1024 x 48000 * one 64, fresh", 1024, 48000, 64, false, false, 1024, GPUCONV_SAMPLE_F32, false, 0},
    {"16000 * 2000, fresh", 1, 16000, 2000, false, false, 0, GPUCONV_SAMPLE_F32, false, 0},
    {"16000 * 2000, kept", 1, 16000, 2000, false, true, 0, GPUCONV_SAMPLE_F32, false, 0},
    {"16000 * 2000, fresh, forward and both gradients", 1, 16000, 2000, true, false, 0, GPUCONV_SAMPLE_F32, false, 0},
    {"16 x 4096 * own 256, fresh, forward and both gradients", 16, 4096, 256, true, false, 0, GPUCONV_SAMPLE_F32, false,
     0},
    {"64000 * 2000, fresh", 1, 64000, 2000, false, false, 0, GPUCONV_SAMPLE_F32, false, 0},
    {"64 x 64000 * 128 each 64 frames", 64, 64000, 128, false, false, 0, GPUCONV_SAMPLE_F32, true, 64},
    {"64 x 64000 * 128 each 64 frames, forward and both gradients", 64, 64000, 128, true, false, 0, GPUCONV_SAMPLE_F32,
     true, 64},
    {"16 x 480000 * 1024 each 480 frames", 16, 480000, 1024, false, false, 0, GPUCONV_SAMPLE_F32, true, 480},
    {"16 x 480000 * 1024 each 480 frames, forward and both gradients", 16, 480000, 1024, true, false, 0,
     GPUCONV_SAMPLE_F32, true, 480},
    {"64 x 768 x 512 * 768 x 512, gated", 64 * 768, 512, 512, false, false, -768, GPUCONV_SAMPLE_F32, true, GATED},
    {"64 x 768 x 1024 * 768 x 1024, gated", 64 * 768, 1024, 1024, false, false, -768, GPUCONV_SAMPLE_F32, true, GATED},
    {"64 x 768 x 1024 * 768 x 1024, gated, half", 64 * 768, 1024, 1024, false, false, -768, GPUCONV_SAMPLE_F16, true,
     GATED},
    {"64 x 768 x 1024 * 768 x 1024, gated, forward and both gradients", 64 * 768, 1024, 1024, true, false, -768,
     GPUCONV_SAMPLE_F32, true, GATED},
    {"64 x 768 x 4096 * 768 x 4096, gated", 64 * 768, 4096, 4096, false, false, -768, GPUCONV_SAMPLE_F32, true, GATED},
    {"2 x 26460000 * own 66150, kept", 2, 26460000, 66150, false, true, 0, GPUCONV_SAMPLE_F32, false, 0},
};

typedef struct bench {
    gpuconv_arrays *cuda;
    const row *row;
    int64_t responses, frames_out;
    float *host[3];                  /* signal, response, gradient of the output */
    gpuconv_arrays_job job[SETS][4]; /* forward, both gradients, and each of them alone */
    gpuconv_arrays_plan *plan[4];
    gpuconv_responses *kept;
    gpuconv_rows pre[SETS], post[SETS];
    void *memory[SETS * 9 + 1];
    int count;
    void *workspace;
    size_t bytes;
    cudaStream_t stream;
} bench;

/* Exits with a message unless `ok`. */
static void require(bool ok, const char *what, const char *why) {
    if (ok)
        return;
    fprintf(stderr, "gpu_jobs_speed: %s: %s\n", what, why);
    exit(1);
}

static void *device_memory(bench *b, int64_t bytes) {
    void *p = NULL;
    require(cudaMalloc(&p, (size_t)bytes + 256) == cudaSuccess, b->row->label, "no memory");
    require(cudaMemset(p, 0xff, (size_t)bytes) == cudaSuccess, b->row->label, "no memset");
    return b->memory[b->count++] = p;
}

/* Returns an array on the device: host values that are repeated from row to row, shifted by the row's number, or NaN if
 * host is NULL. */
static gpuconv_rows make(bench *b, const float *host, int64_t count, int64_t frames) {
    const int64_t each = gc_job_sample_bytes(b->row->type);
    const gpuconv_rows a = {.data = device_memory(b, count * frames * each),
                            .type = b->row->type,
                            .rows = count,
                            .frames = frames,
                            .stride = frames,
                            .step = 1};
    float *staging = NULL;
    require(!host || cudaMalloc((void **)&staging, (size_t)(frames + 1024) * 4) == cudaSuccess, "staging", "no memory");
    if (!host)
        return a;
    require(cudaMemcpy(staging, host, (size_t)(frames + 1024) * 4, cudaMemcpyHostToDevice) == cudaSuccess, "",
            "no copy");
    for (int64_t i = 0; i < count; i++) {
        const gck_rows from = {
            .data = staging + i % 1024, .frames = frames, .stride = frames, .step = 1, .sample = GCK_F32};
        gck_target to = {gc_cuda_kernel_rows(&a), 0};
        to.rows.data = (char *)a.data + i * frames * each;
        require(gck_move(&from, NULL, &to, 1, frames, NULL) == cudaSuccess, "", "no move");
    }
    require(cudaDeviceSynchronize() == cudaSuccess, "", "the device failed");
    cudaFree(staging);
    return a;
}

static float *noise(uint32_t state, int64_t n) {
    float *x = malloc((size_t)n * sizeof *x);
    require(x != NULL, "noise", "no memory");
    for (int64_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(state >> 8) * 0x1p-24f - 0.5f;
    }
    return x;
}

static void make_gates(bench *b, int set, gpuconv_arrays_job *job) {
    const size_t bytes = (size_t)b->row->rows * sizeof(float);
    float *factor = malloc(bytes), *skip = device_memory(b, (int64_t)bytes);
    require(factor != NULL, b->row->label, "no memory");
    for (int64_t i = 0; i < b->row->rows; i++)
        factor[i] = SKIP;
    require(cudaMemcpy(skip, factor, bytes, cudaMemcpyHostToDevice) == cudaSuccess, b->row->label, "no copy");
    free(factor);
    b->pre[set] = make(b, b->host[0], b->row->rows, b->row->frames);
    b->post[set] = make(b, b->host[2], b->row->rows, b->frames_out);
    job->pre = &b->pre[set];
    job->post = &b->post[set];
    job->skip = skip;
}

static void make_jobs(bench *b) {
    const row *r = b->row;
    gpuconv_error error = {0};
    for (int s = 0; s < SETS; s++) {
        gpuconv_arrays_job job = gpuconv_arrays_job_default();
        job.signal = make(b, b->host[0], r->rows, r->frames);
        job.response = make(b, b->host[1], b->responses, r->taps);
        job.output = make(b, NULL, r->rows, b->frames_out);
        if (r->kept && !b->kept)
            require(!gpuconv_responses_new(b->cuda, &job.response, r->frames, b->stream, &b->kept, &error), r->label,
                    error.message);
        job.prepared = b->kept;
        job.hop = r->hop == GATED ? 0 : r->hop;
        if (r->hop == GATED)
            make_gates(b, s, &job);
        b->job[s][0] = b->job[s][1] = job;
        if (!r->both)
            continue;
        gpuconv_arrays_job *both = &b->job[s][1];
        both->operation = GPUCONV_ARRAYS_GRADIENT_BOTH;
        both->output = make(b, b->host[2], r->rows, b->frames_out);
        both->signal_gradient = make(b, NULL, r->rows, r->frames);
        both->response_gradient = make(b, NULL, b->responses, r->taps);
        gc_job_split(both, &b->job[s][2]);
    }
}

/* Returns the taps of the response of frame m of row i. */
static const float *response_at(const bench *b, int64_t i, int64_t m) {
    const row *r = b->row;
    const int64_t blocks = r->hop > 0 ? (r->frames + r->hop - 1) / r->hop : 1;
    return b->host[1] + (r->hop > 0 ? i * blocks + m / r->hop : i % b->responses) % 1024;
}

/* Returns a frame of what job `operation` writes, by its definition. */
static double expected(const bench *b, int operation, int64_t i, int64_t n) {
    const row *r = b->row;
    const float *x = b->host[0] + i % 1024, *g = b->host[2] + i % 1024;
    const bool gated = r->hop == GATED; /* the factors of x and g are their own values */
    double sum = 0;
    if (operation == GPUCONV_ARRAYS_CONVOLVE) {
        for (int64_t k = n >= r->frames ? n - r->frames + 1 : 0; k < r->taps && k <= n; k++)
            sum += (double)response_at(b, i, n - k)[k] * (double)x[n - k] * (gated ? (double)x[n - k] : 1);
        if (gated)
            sum = (double)g[n] * (sum + (double)SKIP * (double)x[n]);
    } else if (operation == GPUCONV_ARRAYS_GRADIENT_SIGNAL) {
        for (int64_t k = 0; k < r->taps && n + k < b->frames_out; k++)
            sum += (double)response_at(b, i, n)[k] * (double)g[n + k] * (gated ? (double)g[n + k] : 1);
        if (gated)
            sum = (double)x[n] * sum + (double)SKIP * (double)g[n] * (double)g[n];
    } else {
        const bool varies = r->hop > 0;
        const int64_t blocks = varies ? b->responses / r->rows : 1, begin = varies ? i % blocks * r->hop : 0;
        const int64_t end = varies && begin + r->hop < r->frames ? begin + r->hop : r->frames;
        for (int64_t j = varies ? i / blocks : i; j < r->rows; j += b->responses)
            for (int64_t m = begin; m < end && n + m < b->frames_out; m++)
                sum += (double)b->host[0][j % 1024 + m] * (double)b->host[2][j % 1024 + n + m] *
                       (gated ? (double)b->host[0][j % 1024 + m] * (double)b->host[2][j % 1024 + n + m] : 1);
    }
    return sum;
}

/* Returns the relative RMS error in dB over some frames of what a job has written, one of both gradients by its own
 * job.
 */
static double check_written(const bench *b, int number) {
    const gpuconv_arrays_operation operation = b->job[0][number].operation;
    const gpuconv_rows *a = gc_job_written(&b->job[0][number]);
    double wrong = 0, power = 0;
    uint32_t state = 7;
    for (int k = 0; k < (operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE ? CHECKED / 4 : CHECKED); k++) {
        state = state * 1664525u + 1013904223u;
        const int64_t i = (state >> 8) % a->rows, n = (int64_t)(state >> 3) * 13 % a->frames;
        float got = 0;
        const gpuconv_rows one = {.data = b->workspace, .rows = 1, .frames = 1, .step = 1};
        gck_rows from = gc_cuda_kernel_rows(a);
        const gck_target to = {gc_cuda_kernel_rows(&one), 0};
        from.data = (char *)a->data + (i * a->stride + n) * gc_job_sample_bytes(a->type);
        require(gck_move(&from, NULL, &to, 1, 1, b->stream) == cudaSuccess, b->row->label, "no move");
        require(cudaMemcpyAsync(&got, b->workspace, 4, cudaMemcpyDeviceToHost, b->stream) == cudaSuccess, "",
                "no copy");
        require(cudaStreamSynchronize(b->stream) == cudaSuccess, b->row->label, "the device failed");
        const double want = expected(b, operation, i, n);
        wrong += ((double)got - want) * ((double)got - want);
        power += want * want;
    }
    return 10 * log10(wrong / power);
}

static double check(const bench *b, int number) {
    return number == 1 ? fmax(check_written(b, 2), check_written(b, 3)) : check_written(b, number);
}

/* Returns the largest error in dB that is accepted. */
static double bound_of(const row *r) {
    return r->type == GPUCONV_SAMPLE_F32 ? -115 : -48;
}

/* Plans an operation anew, after a change of what the place may choose. */
static void plan(bench *b, int operation) {
    gpuconv_error error = {0};
    gpuconv_arrays_plan_free(b->plan[operation]);
    require(!gpuconv_arrays_plan_new(b->cuda, &b->job[0][operation], &b->plan[operation], &error), b->row->label,
            error.message);
}

static void run(bench *b, int set, int first, int last) {
    gpuconv_error error = {0};
    for (int operation = first; operation <= last; operation++)
        require(!gpuconv_arrays_plan_run(b->plan[operation], &b->job[set][operation], b->workspace, b->bytes, b->stream,
                                         &error),
                b->row->label, error.message);
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns the median milliseconds of a call; *spread: of the rows; *cpu: microseconds of the calling thread. */
static double measure(bench *b, int first, int last, double *spread, double *cpu) {
    double ms[RUNS], host[RUNS];
    cudaEvent_t begin, end;
    require(cudaEventCreate(&begin) == cudaSuccess && cudaEventCreate(&end) == cudaSuccess, "", "no event");
    for (int r = -1; r < RUNS; r++) {
        float elapsed = 0;
        cudaEventRecord(begin, b->stream);
        const double start = gc_now();
        for (int c = 0; c < CALLS; c++)
            run(b, c % SETS, first, last);
        const double issued = gc_now() - start;
        cudaEventRecord(end, b->stream);
        const cudaError_t err = cudaStreamSynchronize(b->stream);
        require(!err, b->row->label, cudaGetErrorString(err));
        cudaEventElapsedTime(&elapsed, begin, end);
        if (r >= 0) {
            ms[r] = (double)elapsed / CALLS;
            host[r] = issued / CALLS * 1e6;
        }
    }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    qsort(ms, RUNS, sizeof *ms, ascending);
    qsort(host, RUNS, sizeof *host, ascending);
    *spread = ms[RUNS - 1] - ms[0];
    *cpu = host[RUNS / 2];
    return ms[RUNS / 2];
}

static const char *text_of(const gc_rows_plan *p, char *text) {
    if (!p->points)
        snprintf(text, 40, "%s",
                 p->algorithm == &gc_rows_direct  ? "direct"
                 : p->algorithm == &gc_rows_short ? "short"
                                                  : "toeplitz");
    else
        snprintf(text, 40, "%s %lld",
                 p->algorithm == &gc_rows_three_pass ? "3pass"
                 : p->algorithm == &gc_rows_tensor   ? "tensor"
                                                     : "chip",
                 (long long)(2 * p->points));
    return text;
}

/* Returns the median microseconds of a call in a graph of CALLS calls: without the time of the calling thread. */
static double measure_graph(bench *b, int operation) {
    double us[RUNS];
    cudaEvent_t begin, end;
    cudaGraph_t graph;
    cudaGraphExec_t instance;
    require(cudaEventCreate(&begin) == cudaSuccess && cudaEventCreate(&end) == cudaSuccess, "", "no event");
    require(cudaStreamBeginCapture(b->stream, cudaStreamCaptureModeGlobal) == cudaSuccess, "", "no capture");
    for (int c = 0; c < CALLS; c++)
        run(b, c % SETS, operation, operation);
    require(cudaStreamEndCapture(b->stream, &graph) == cudaSuccess, "", "the capture failed");
    require(cudaGraphInstantiate(&instance, graph, 0) == cudaSuccess, "", "no instance");
    for (int r = -1; r < RUNS; r++) {
        float elapsed = 0;
        cudaEventRecord(begin, b->stream);
        cudaGraphLaunch(instance, b->stream);
        cudaEventRecord(end, b->stream);
        const cudaError_t err = cudaStreamSynchronize(b->stream);
        require(!err, b->row->label, cudaGetErrorString(err));
        cudaEventElapsedTime(&elapsed, begin, end);
        if (r >= 0)
            us[r] = 1e3 * (double)elapsed / CALLS;
    }
    cudaGraphExecDestroy(instance);
    cudaGraphDestroy(graph);
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    qsort(us, RUNS, sizeof *us, ascending);
    return us[RUNS / 2];
}

/* Fills what a job writes with NaN, runs it, and returns the error in dB. */
static double check_poisoned(bench *b, int operation) {
    for (int number = operation == 1 ? 2 : operation; number <= (operation == 1 ? 3 : operation); number++) {
        const gpuconv_rows *a = gc_job_written(&b->job[0][number]);
        const size_t bytes = (size_t)(a->rows * a->stride * gc_job_sample_bytes(a->type));
        require(cudaMemsetAsync(a->data, 0xff, bytes, b->stream) == cudaSuccess, b->row->label, "no memset");
    }
    run(b, 0, operation, operation);
    return check(b, operation);
}

/* Times one operation by one algorithm, with transforms of `points` points and chunks of `bytes`. Returns the
 * milliseconds; HUGE_VAL if it is not worth it. */
static double try_one(bench *b, int operation, const gc_cuda_rows *only, int64_t points, int64_t bytes) {
    gc_cuda_call call, choice;
    double spread, cpu, ms = HUGE_VAL;
    char text[40];
    gc_cuda_arrays *cuda = (gc_cuda_arrays *)b->cuda;
    const int64_t before = cuda->figures.workspace;
    if (gc_cuda_prepare(cuda, &b->job[0][operation], &choice, NULL))
        return ms;
    cuda->figures.workspace = bytes;
    cuda->required_algorithm = &only->row;
    cuda->required_points = points;
    const gc_rows_plan *p = &call.plan;
    if (!gc_cuda_prepare(cuda, &b->job[0][operation], &call, NULL) && p->seconds > 0 &&
        p->seconds < 1.7 * choice.plan.seconds + 10e-6 && (size_t)p->bytes <= b->bytes) {
        plan(b, operation);
        const double error = check_poisoned(b, operation), us = measure_graph(b, operation);
        ms = measure(b, operation, operation, &spread, &cpu);
        printf("    %d %-16s %9.4f ms  in a graph %8.2f us  predicted %9.4f ms  %7.1f dB  %lld segments, %lld splits, "
               "%lld blocks, %lld MB\n",
               operation, text_of(p, text), ms, us, p->seconds * 1e3, error, (long long)p->segments,
               (long long)p->splits, (long long)p->blocks, (long long)bytes >> 20);
        require(error <= bound_of(b->row), b->row->label, "the samples are wrong");
    }
    cuda->figures.workspace = before;
    cuda->required_algorithm = NULL;
    plan(b, operation);
    return ms;
}

/* The choices of the planner that were compared, and those within 10 and 25 % of the fastest way. */
static struct { int all, within_10, within_25; } choices;

/* Times every size that may be worth it, operation by operation, those in three kernels with three chunks, and the
 * choice among them. */
static void try_all(bench *b, int operations) {
    static const gc_cuda_rows *const algorithms[] = {&gc_rows_chip,  &gc_rows_three_pass, &gc_rows_varying,
                                                     &gc_rows_short, &gc_rows_toeplitz,   &gc_rows_tensor,
                                                     &gc_rows_direct};
    enum { ALGORITHMS = sizeof algorithms / sizeof *algorithms };
    const gc_device *device = &((gc_cuda_arrays *)b->cuda)->figures;
    double fastest = HUGE_VAL, spread, cpu;
    for (int n = 0; n < ALGORITHMS * operations && !b->row->kept; n++) {
        const gc_cuda_rows *a = algorithms[n % ALGORITHMS];
        for (int64_t points = a->row.least; points <= a->row.most; points += points ? points : 1)
            for (int64_t bytes = (int64_t)256 << 20; bytes >= 16 << 20; bytes /= a == &gc_rows_three_pass ? 3 : 256)
                if (gc_rows_size(a, device, points) >= 0)
                    fastest = fmin(fastest, try_one(b, n / ALGORITHMS, a, points, bytes));
        if (n % ALGORITHMS < ALGORITHMS - 1)
            continue;
        const double ratio = measure(b, n / ALGORITHMS, n / ALGORITHMS, &spread, &cpu) / fastest;
        printf("    %d the choice takes %.2f times the shortest time\n", n / ALGORITHMS, ratio);
        choices.all++;
        choices.within_10 += ratio <= 1.1;
        choices.within_25 += ratio <= 1.25;
        fastest = HUGE_VAL;
    }
}

static json_t *run_row(gpuconv_arrays *cuda, const row *r, bool all) {
    const int operations = r->both ? 2 : 1;
    bench b = {.cuda = cuda,
               .row = r,
               .frames_out = r->same ? r->frames : r->frames + r->taps - 1,
               .bytes = (size_t)640 << 20};
    char text[40], choice[128] = "";
    double spread, cpu, worst = -HUGE_VAL;
    b.responses = r->hop > 0       ? r->rows * ((r->frames + r->hop - 1) / r->hop)
                  : r->shared == 0 ? r->rows
                  : r->shared < 0  ? -r->shared
                                   : 1;
    for (int i = 0; i < 3; i++)
        b.host[i] = noise((uint32_t)i + 1, (i == 0 ? r->frames : i == 1 ? r->taps : b.frames_out) + 1024);
    require(cudaStreamCreateWithFlags(&b.stream, cudaStreamNonBlocking) == cudaSuccess, "", "no stream");
    b.workspace = device_memory(&b, (int64_t)b.bytes);
    make_jobs(&b);
    for (int operation = 0; operation < (r->both ? 4 : 1); operation++)
        plan(&b, operation);
    const double ms = measure(&b, 0, operations - 1, &spread, &cpu);
    for (int operation = 0; operation < operations; operation++) {
        gc_cuda_call call;
        const double off = check(&b, operation);
        worst = off <= worst ? worst : off;
        if (!gc_cuda_prepare((const gc_cuda_arrays *)cuda, &b.job[0][operation], &call, NULL))
            snprintf(choice + strlen(choice), sizeof choice - strlen(choice), "%s%s", operation ? ", " : "",
                     text_of(&call.plan, text));
    }
    printf("%-66s %9.4f ms (+- %.4f)  %6.1f us of the CPU  %7.1f dB  %s\n", r->label, ms, spread / 2, cpu, worst,
           choice);
    if (all)
        try_all(&b, r->both ? 4 : 1);
    for (int i = 0; i < 4; i++)
        gpuconv_arrays_plan_free(b.plan[i]);
    gpuconv_responses_free(b.kept);
    for (int i = 0; i < b.count; i++)
        cudaFree(b.memory[i]);
    for (int i = 0; i < 3; i++)
        free(b.host[i]);
    cudaStreamDestroy(b.stream);
    require(worst <= bound_of(r), r->label, "the samples are wrong");
    return json_pack("{s:s, s:f, s:f, s:f, s:f, s:s}", "label", r->label, "ms", ms, "spread", spread, "cpu us", cpu,
                     "dB", worst, "transform", choice);
}

int main(int argc, char **argv) {
    const bool all = argc > 1 && strcmp(argv[1], "--all") == 0;
    gpuconv_arrays *cuda;
    gpuconv_error error = {0};
    const char *label = all && argc == 4 ? argv[2] : "";
    if (argc != (all ? (*label ? 4 : 3) : 2)) {
        fprintf(stderr, "usage: gpu_jobs_speed [--all [LABEL]] OUT.json\n");
        return 2;
    }
    require(!gpuconv_arrays_new_cuda(-1, &cuda, &error), "no GPU", error.message);
    json_t *table = json_array();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strstr(rows[i].label, label))
            json_array_append_new(table, run_row(cuda, &rows[i], all));
    if (all)
        printf("choices: %d problems, %d within 10 %% of the fastest, %d within 25 %%\n", choices.all,
               choices.within_10, choices.within_25);
    json_t *out = json_pack("{s:o}", "convolutions", table);
    const int refused = json_dump_file(out, argv[argc - 1], JSON_INDENT(1));
    json_decref(out);
    gpuconv_arrays_free(cuda);
    return refused ? 1 : 0;
}
