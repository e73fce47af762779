/* Tests of jobs on device memory: what the header promises besides the samples. */
#include "gpu_jobs.h"

#include "libgpuconv/core/memory.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

static trial_shape plain(int64_t rows, int64_t frames, int64_t taps) {
    return (trial_shape){.rows = rows,
                         .group = 1,
                         .responses = rows,
                         .taps = taps,
                         .frames = frames,
                         .output_frames = frames + taps - 1};
}

/* Every transform, both operations that take prepared responses. */
void test_prepared_responses_agree_with_the_oracle(void **state) {
    (void)state;
    static const int64_t taps[] = {1, 300, 5000, 20000, 100000};
    gpuconv_error error = {0};
    for (int i = 0; i < COUNT(taps) * 2; i += harness_quick ? 3 : 1) {
        trial_shape s = plain(3, 7000, taps[i / 2]);
        s.operation = (gpuconv_arrays_operation)(i % 2);
        s.responses = i % 3 + 1;
        s.type[1] = (gpuconv_sample_type)(i % 3);
        trial t;
        trial_init(&t, 200 + (uint64_t)i, &s);
        gpuconv_responses *kept;
        CHECK(!gpuconv_responses_new(trials.arrays, &t.job.response, s.frames, NULL, &kept, &error), "%s",
              error.message);
        t.job.prepared = kept;
        t.job.response = (gpuconv_rows){0};
        trial_run(&t, "prepared");
        CHECK(gpuconv_responses_bytes(kept) >= 8 * s.responses * s.taps / 2, "too few bytes");
        gpuconv_responses_free(kept);
        trial_free(&t);
    }
}

/* Queues the replacement of prepared responses from a graph, which fails if it allocates or waits. */
static void update_captured(gpuconv_responses *kept, const gpuconv_rows *response) {
    gpuconv_error error = {0};
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t instance;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess, "no stream");
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess, "no capture");
    CHECK(!gpuconv_responses_update(trials.arrays, kept, response, stream, &error), "%s", error.message);
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess, "the capture failed");
    CHECK(cudaGraphInstantiate(&instance, graph, 0) == cudaSuccess, "no instance");
    CHECK(cudaGraphLaunch(instance, stream) == cudaSuccess && cudaStreamSynchronize(stream) == cudaSuccess,
          "no launch");
    cudaGraphExecDestroy(instance);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
}

/* Responses that replace longer ones in the same memory. */
void test_updated_responses_agree_with_the_oracle(void **state) {
    (void)state;
    static const int64_t taps[] = {1, 300, 5000, 20000, 100000};
    gpuconv_error error = {0};
    for (int i = 0; i < COUNT(taps) * 2; i += harness_quick ? 3 : 1) {
        trial_shape s = plain(3, 7000, taps[i / 2]), before = s;
        s.operation = before.operation = (gpuconv_arrays_operation)(i % 2);
        s.type[1] = (gpuconv_sample_type)(i % 3);
        before.taps += i % 4 * 7000;
        trial old, t;
        trial_init(&old, 240 + (uint64_t)i, &before);
        trial_init(&t, 220 + (uint64_t)i, &s);
        gpuconv_responses *kept;
        CHECK(!gpuconv_responses_new(trials.arrays, &old.job.response, s.frames, NULL, &kept, &error), "%s",
              error.message);
        const int64_t bytes = gpuconv_responses_bytes(kept);
        update_captured(kept, &t.job.response);
        CHECK(gpuconv_responses_bytes(kept) == bytes, "the update took memory");
        gpuconv_rows more = old.job.response;
        more.frames++;
        more.stride = 0;
        CHECK(gpuconv_responses_update(trials.arrays, kept, &more, NULL, &error) == GPUCONV_ERROR_ARGUMENT &&
                  strstr(error.message, "response.frames"),
              "%s", error.message);
        more = old.job.response;
        more.rows--;
        CHECK(gpuconv_responses_update(trials.arrays, kept, &more, NULL, &error) == GPUCONV_ERROR_ARGUMENT &&
                  strstr(error.message, "response.rows"),
              "%s", error.message);
        t.job.prepared = kept;
        t.job.response = (gpuconv_rows){0};
        trial_run(&t, "updated");
        gpuconv_responses_free(kept);
        trial_free(&t);
        trial_free(&old);
    }
}

void test_routed_responses_and_their_gradients_agree_with_the_oracle(void **state) {
    (void)state;
    static const int64_t points[] = {30, 700, 5000, 20000};
    for (int i = 0; i < COUNT(points) * 9; i += harness_quick ? 7 : 1)
        trial_run_routed(300 + (uint64_t)i, (gpuconv_arrays_operation)(i % 3), points[i / 9]);
}

/* A capture in global mode fails at any call that could allocate or wait; the graph holds kernels only. */
void test_a_call_neither_allocates_nor_waits_and_is_captured(void **state) {
    (void)state;
    static const int64_t taps[] = {500, 8000, 40000};
    gpuconv_error error = {0};
    for (int i = 0; i < COUNT(taps) * 3; i++) {
        trial_shape s = plain(4, 30000, taps[i / 3]);
        s.operation = (gpuconv_arrays_operation)(i % 3);
        trial t;
        trial_init(&t, 400, &s);
        size_t bytes, free_before, free_after, total;
        void *workspace;
        cudaStream_t stream;
        cudaGraph_t graph;
        cudaGraphExec_t instance;
        cudaGraphNode_t node[64];
        size_t nodes = COUNT(node);
        int device = -1;
        CHECK(!gpuconv_arrays_workspace(trials.arrays, &t.job, &bytes, &error), "%s", error.message);
        CHECK(cudaMalloc(&workspace, bytes + 1) == cudaSuccess, "no memory");
        CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess, "no stream");
        CHECK(cudaMemGetInfo(&free_before, &total) == cudaSuccess, "no figures");
        CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess, "no capture");
        CHECK(!gpuconv_arrays_run(trials.arrays, &t.job, workspace, bytes, stream, &error), "%s", error.message);
        CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess, "the capture failed");
        /* Under a sanitizer other programs use the device at the same time. */
        CHECK(cudaMemGetInfo(&free_after, &total) == cudaSuccess && (harness_quick || free_after == free_before),
              "memory was allocated");
        CHECK(cudaGetDevice(&device) == cudaSuccess && device == gpuconv_arrays_device(trials.arrays),
              "another device");
        CHECK(cudaGraphGetNodes(graph, node, &nodes) == cudaSuccess && nodes > 0, "no nodes");
        for (size_t k = 0; k < nodes; k++) {
            enum cudaGraphNodeType type;
            CHECK(cudaGraphNodeGetType(node[k], &type) == cudaSuccess && type == cudaGraphNodeTypeKernel,
                  "a node is no kernel");
        }
        CHECK(cudaGraphInstantiate(&instance, graph, 0) == cudaSuccess, "no instance");
        for (int run = 0; run < 3; run++) {
            rows_poison(trial_written(&t));
            CHECK(cudaDeviceSynchronize() == cudaSuccess, "no synchronisation");
            CHECK(cudaGraphLaunch(instance, stream) == cudaSuccess && cudaStreamSynchronize(stream) == cudaSuccess,
                  "no launch");
        }
        double *got = rows_read(trial_written(&t), false, "graph");
        const int64_t frames = trial_written(&t)->array.frames;
        for (int64_t n = 0; n < 5; n++)
            CHECK(fabs(got[frames + n * 50] - trial_value(&t, 1, n * 50)) <= 1e-2, "the graph gives other samples");
        free(got);
        cudaGraphExecDestroy(instance);
        cudaGraphDestroy(graph);
        cudaStreamDestroy(stream);
        cudaFree(workspace);
        trial_free(&t);
    }
}

/* ---- Threads ----------------------------------------------------------------------------------------------------- */

typedef struct worker {
    pthread_t thread;
    trial trial;
    bool failed;
} worker;

static void *work(void *context) {
    worker *w = context;
    cudaStream_t stream[2];
    void *workspace[2];
    size_t bytes = 0;
    w->failed = cudaSetDevice(gpuconv_arrays_device(trials.arrays)) != cudaSuccess ||
                gpuconv_arrays_workspace(trials.arrays, &w->trial.job, &bytes, NULL) != GPUCONV_OK;
    for (int i = 0; i < 2 && !w->failed; i++)
        w->failed = cudaStreamCreateWithFlags(&stream[i], cudaStreamNonBlocking) != cudaSuccess ||
                    cudaMalloc(&workspace[i], bytes + 1) != cudaSuccess;
    /* Both streams write the same bytes. */
    for (int run = 0; run < 40 && !w->failed; run++)
        w->failed = gpuconv_arrays_run(trials.arrays, &w->trial.job, workspace[run % 2], bytes, stream[run % 2], NULL);
    for (int i = 0; i < 2 && !w->failed; i++) {
        w->failed = cudaStreamSynchronize(stream[i]) != cudaSuccess;
        cudaFree(workspace[i]);
        cudaStreamDestroy(stream[i]);
    }
    return NULL;
}

void test_threads_and_streams_give_the_same_bytes(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        trial_shape s = plain(5, 20000, i == 2 ? 30000 : 3000);
        s.operation = (gpuconv_arrays_operation)i;
        trial alone;
        worker w[2] = {{.failed = false}, {.failed = false}};
        trial_init(&alone, 500, &s);
        trial_run(&alone, "alone");
        for (int k = 0; k < 2; k++) {
            trial_init(&w[k].trial, 500, &s);
            CHECK(pthread_create(&w[k].thread, NULL, work, &w[k]) == 0, "no thread");
        }
        double *want = rows_read(trial_written(&alone), false, "alone");
        const size_t size = (size_t)(alone.job.signal.rows * trial_written(&alone)->array.frames) * sizeof *want;
        for (int k = 0; k < 2; k++) {
            pthread_join(w[k].thread, NULL);
            CHECK(!w[k].failed, "a thread failed");
            double *got = rows_read(trial_written(&w[k].trial), false, "threads");
            CHECK(memcmp(got, want, size) == 0, "threads give other bytes");
            free(got);
            trial_free(&w[k].trial);
        }
        free(want);
        trial_free(&alone);
    }
}

/* ---- Values ------------------------------------------------------------------------------------------------------ */

/* A NaN in one row of the signal spoils that row of the output only. */
void test_nan_stays_in_its_row(void **state) {
    (void)state;
    static const int64_t taps[] = {300, 9000, 60000};
    const float nan_value = NAN;
    for (int i = 0; i < COUNT(taps); i++) {
        trial_shape s = plain(3, 20000, taps[i]);
        trial t;
        trial_init(&t, 600, &s);
        float *at = (float *)t.job.signal.data + t.job.signal.stride + 10;
        CHECK(cudaMemcpy(at, &nan_value, sizeof nan_value, cudaMemcpyHostToDevice) == cudaSuccess, "no copy");
        void *workspace;
        size_t bytes;
        CHECK(!gpuconv_arrays_workspace(trials.arrays, &t.job, &bytes, NULL), "no workspace");
        CHECK(cudaMalloc(&workspace, bytes + 1) == cudaSuccess, "no memory");
        CHECK(!gpuconv_arrays_run(trials.arrays, &t.job, workspace, bytes, NULL, NULL), "refused");
        double *got = rows_read(&t.output, false, "NaN");
        for (int64_t n = 0; n < s.output_frames; n++)
            CHECK(isfinite(got[n]) && isfinite(got[2 * s.output_frames + n]), "NaN in another row");
        CHECK(isnan(got[s.output_frames + 10]), "the NaN has vanished");
        free(got);
        cudaFree(workspace);
        trial_free(&t);
    }
}

/* Sorts random sequences at two places. Most offsets ascend; every fifth is any number. */
static void check_sequences(gpuconv_arrays *cpu, oracle_random *random) {
    enum { LENGTH = 3000 };
    const int64_t sequences = 1 + oracle_below(random, 2000), channels = 1 + oracle_below(random, 40);
    const int64_t own = oracle_below(random, 2) * channels, numbers = 3 * 2 * sequences * (channels + own);
    static const int64_t bounds[] = {20, 100, 900};
    int64_t *offsets = calloc((size_t)sequences + 1, sizeof *offsets), *want = malloc((size_t)numbers * sizeof *want);
    int64_t *got = malloc((size_t)numbers * sizeof *got), *device_offsets, *device_table;
    float *cleared = malloc((size_t)channels * LENGTH * sizeof *cleared), *device_cleared;
    float *left = malloc((size_t)channels * LENGTH * sizeof *left);
    CHECK(offsets && want && got && cleared && left, "no memory");
    const bool wrong = oracle_below(random, 5) == 0;
    for (int64_t i = 1; i <= sequences; i++)
        offsets[i] = wrong ? oracle_below(random, 3 * LENGTH) - LENGTH
                           : gc_min(offsets[i - 1] + oracle_below(random, 2 * LENGTH / sequences + 2), LENGTH);
    for (int64_t i = 0; i < channels * LENGTH; i++)
        cleared[i] = 1;
    CHECK(cudaMalloc((void **)&device_offsets, (size_t)(sequences + 1) * 8) == cudaSuccess &&
              cudaMalloc((void **)&device_table, (size_t)numbers * 8) == cudaSuccess &&
              cudaMalloc((void **)&device_cleared, (size_t)channels * LENGTH * 4) == cudaSuccess,
          "no memory");
    cudaMemcpy(device_offsets, offsets, (size_t)(sequences + 1) * 8, cudaMemcpyHostToDevice);
    cudaMemcpy(device_cleared, cleared, (size_t)channels * LENGTH * 4, cudaMemcpyHostToDevice);
    gpuconv_rows output = gpuconv_rows_of_floats(cleared, channels, LENGTH);
    gpuconv_sequences s = {offsets, sequences, channels, LENGTH, bounds, COUNT(bounds), own, 77, &output};
    CHECK(!gpuconv_sequences_sort(cpu, &s, want, NULL, NULL), "refused on the CPU");
    output.data = device_cleared;
    s.offsets = device_offsets;
    CHECK(!gpuconv_sequences_sort(trials.arrays, &s, device_table, NULL, NULL), "refused");
    CHECK(cudaMemcpy(got, device_table, (size_t)numbers * 8, cudaMemcpyDeviceToHost) == cudaSuccess, "no copy");
    CHECK(memcmp(got, want, (size_t)numbers * 8) == 0, "%lld sequences, %lld channels, %lld own: another table",
          (long long)sequences, (long long)channels, (long long)own);
    CHECK(cudaMemcpy(left, device_cleared, (size_t)channels * LENGTH * 4, cudaMemcpyDeviceToHost) == cudaSuccess,
          "no copy");
    CHECK(memcmp(left, cleared, (size_t)channels * LENGTH * 4) == 0, "other frames are cleared");
    cudaFree(device_offsets);
    cudaFree(device_table);
    cudaFree(device_cleared);
    free(left);
    free(got);
    free(offsets);
    free(want);
    free(cleared);
}

void test_sequences_are_sorted_as_on_the_cpu(void **state) {
    (void)state;
    gpuconv_arrays *cpu;
    oracle_random random = {800};
    CHECK(!gpuconv_arrays_new_cpu(1, &cpu, NULL), "no place");
    for (int i = 0; i < (harness_quick ? 4 : 40); i++)
        check_sequences(cpu, &random);
    gpuconv_arrays_free(cpu);
}

void test_refusals_name_the_argument(void **state) {
    (void)state;
    trial_shape s = plain(2, 40000, 9000); /* direct sums, for less, have no workspace */
    trial t;
    trial_init(&t, 700, &s);
    gpuconv_error error = {0};
    size_t bytes;
    CHECK(!gpuconv_arrays_workspace(trials.arrays, &t.job, &bytes, &error), "%s", error.message);
    CHECK(bytes > 0, "no workspace");
    CHECK(gpuconv_arrays_run(trials.arrays, &t.job, NULL, bytes, NULL, &error) == GPUCONV_ERROR_ARGUMENT &&
              strstr(error.message, "workspace"),
          "%s", error.message);
    CHECK(gpuconv_arrays_run(trials.arrays, &t.job, (void *)256, bytes - 1, NULL, &error) == GPUCONV_ERROR_ARGUMENT &&
              strstr(error.message, "workspace"),
          "%s", error.message);
    gpuconv_arrays *none;
    CHECK(gpuconv_arrays_new_cuda(1000, &none, &error) == GPUCONV_ERROR_ARGUMENT && !none &&
              strstr(error.message, "device"),
          "%s", error.message);
    trial_free(&t);
}
