/* Tests of streamers on device buffers (gpuconv_arrays.h). */
#include "gpu_jobs.h"

#include <cuda_runtime_api.h>
#include <math.h>

typedef struct streaming {
    int64_t channels, block, taps, step; /* step: of the blocks */
    gpuconv_sample_type type;
    bool graph;
} streaming;

/* Processes one block, or launches the graph that holds it. Captures it at the first block. */
static void step(const streaming *s, gpuconv_streamer *streamer, const gpuconv_rows *in, const gpuconv_rows *out,
                 cudaStream_t stream, cudaGraphExec_t *instance) {
    gpuconv_error error = {0};
    cudaGraph_t graph;
    if (!s->graph) {
        CHECK(!gpuconv_streamer_process(streamer, in, out, stream, &error), "%s", error.message);
        return;
    }
    if (!*instance) {
        CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess, "no capture");
        CHECK(!gpuconv_streamer_process(streamer, in, out, stream, &error), "%s", error.message);
        CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess, "the capture failed");
        CHECK(cudaGraphInstantiate(instance, graph, 0) == cudaSuccess, "no instance");
        cudaGraphDestroy(graph);
    }
    CHECK(cudaGraphLaunch(*instance, stream) == cudaSuccess, "no launch");
}

/* Streams `blocks` blocks in place, twice with a reset in between, and compares the last block with the oracle. */
static void check_streaming(const streaming *s) {
    enum { BLOCKS = 7 };
    const int64_t frames = BLOCKS * s->block, each = s->type == GPUCONV_SAMPLE_F32 ? 4 : 2;
    oracle_random random = {800};
    gpuconv_error error = {0};
    rows_array x = rows_new(&random, s->type, s->channels, frames, s->step, ROWS_PLAIN, 1);
    rows_array h = rows_new(&random, s->type, 2, s->taps, 1, ROWS_PLAIN, 3);
    rows_array b = rows_new(&random, s->type, s->channels, s->block, s->step, ROWS_PLAIN, 1);
    gpuconv_streamer *streamer;
    cudaStream_t stream;
    cudaGraphExec_t instance = NULL;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess, "no stream");
    CHECK(!gpuconv_streamer_new(trials.arrays, &h.array, s->channels, s->block, stream, &streamer, &error), "%s",
          error.message);
    for (int k = 0; k < 2 * BLOCKS; k++) {
        if (k == BLOCKS)
            CHECK(!gpuconv_streamer_reset(streamer, stream, &error), "%s", error.message);
        CHECK(cudaMemcpy2DAsync(b.array.data, (size_t)(b.array.stride * each),
                                (char *)x.array.data + k % BLOCKS * s->block * s->step * each,
                                (size_t)(x.array.stride * each), (size_t)(((s->block - 1) * s->step + 1) * each),
                                (size_t)s->channels, cudaMemcpyDeviceToDevice, stream) == cudaSuccess,
              "no copy");
        step(s, streamer, &b.array, &b.array, stream, &instance);
    }
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess, "no synchronisation");
    double *got = rows_read(&b, false, "streaming"), wrong = 0, power = 0;
    for (int64_t c = 0; c < s->channels; c++)
        for (int64_t n = 0; n < s->block; n += 1 + s->block / 40) {
            double want = 0;
            for (int64_t k = 0; k < s->taps && k <= frames - s->block + n; k++)
                want += h.value[c % 2 * s->taps + k] * x.value[c * frames + frames - s->block + n - k];
            wrong += (got[c * s->block + n] - want) * (got[c * s->block + n] - want);
            power += want * want;
        }
    CHECK(10 * log10(wrong / power) <= rows_bound(s->type),
          "%lld channels, blocks of %lld, %lld taps, type %d: %.1f dB", (long long)s->channels, (long long)s->block,
          (long long)s->taps, s->type, 10 * log10(wrong / power));
    free(got);
    if (instance)
        cudaGraphExecDestroy(instance);
    gpuconv_streamer_free(streamer);
    cudaStreamDestroy(stream);
    rows_free(&x);
    rows_free(&h);
    rows_free(&b);
}

void test_streamers_agree_with_the_oracle(void **state) {
    (void)state;
    static const streaming all[] = {
        {3, 64, 1, 1, GPUCONV_SAMPLE_F32, false},     {1, 128, 1000, 2, GPUCONV_SAMPLE_F32, false},
        {5, 256, 5000, 1, GPUCONV_SAMPLE_F16, false}, {3, 1024, 3000, 1, GPUCONV_SAMPLE_BF16, true},
        {3, 1000, 2500, 3, GPUCONV_SAMPLE_F32, true}, {2, 1, 1, 1, GPUCONV_SAMPLE_F32, false},
        {4, 7000, 300, 1, GPUCONV_SAMPLE_F16, false}, {2, 480, 30000, 1, GPUCONV_SAMPLE_F32, false},
        {1, 128, 1000, 1, GPUCONV_SAMPLE_F32, false},
    };
    for (int i = 0; i < COUNT(all); i += harness_quick ? 3 : 1)
        check_streaming(&all[i]);
}
