/*
 * Convolution where the data are: a batch of signals in GPU memory, each with a response of its own, the gradient by
 * the responses, and a CUDA graph of both. Needs the CUDA runtime for memory and streams; without a GPU it says so and
 * ends.
 *
 * Usage: 06_device
 */
#include "gpuconv_arrays.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 64, FRAMES = 16000, TAPS = 4000, OUT = FRAMES + TAPS - 1 };

/* Exits with a message unless `err` is cudaSuccess. */
static void check(cudaError_t err) {
    if (!err)
        return;
    fprintf(stderr, "%s\n", cudaGetErrorString(err));
    exit(1);
}

/* Returns `count` floats in device memory: noise, or zeros. */
static float *device_floats(size_t count, int noise) {
    float *host = calloc(count, sizeof *host), *device;
    if (!host)
        exit(1);
    for (size_t i = 0; noise && i < count; i++)
        host[i] = (float)rand() / (float)RAND_MAX - 0.5f;
    check(cudaMalloc((void **)&device, count * sizeof *device));
    check(cudaMemcpy(device, host, count * sizeof *device, cudaMemcpyHostToDevice));
    free(host);
    return device;
}

static gpuconv_rows rows_of(float *data, int64_t frames) {
    return gpuconv_rows_of_floats(data, ROWS, frames);
}

/* Queues both jobs: the convolution, and the gradient by the responses for a gradient of one everywhere in `ones`. */
static gpuconv_status queue(gpuconv_arrays *cuda, const gpuconv_arrays_job job[2], void *workspace, size_t bytes,
                            cudaStream_t stream, gpuconv_error *error) {
    gpuconv_status status = gpuconv_arrays_run(cuda, &job[0], workspace, bytes, stream, error);
    return status ? status : gpuconv_arrays_run(cuda, &job[1], workspace, bytes, stream, error);
}

int main(void) {
    gpuconv_arrays *cuda;
    gpuconv_error error;
    if (gpuconv_arrays_new_cuda(-1, &cuda, &error)) {
        printf("%s\n", error.message);
        return 0;
    }
    float *x = device_floats((size_t)ROWS * FRAMES, 1), *h = device_floats((size_t)ROWS * TAPS, 1);
    float *y = device_floats((size_t)ROWS * OUT, 0), *g = device_floats((size_t)ROWS * OUT, 1);
    float *gh = device_floats((size_t)ROWS * TAPS, 0);
    gpuconv_arrays_job job[2] = {gpuconv_arrays_job_default(), gpuconv_arrays_job_default()};
    job[0].signal = rows_of(x, FRAMES);
    job[0].response = rows_of(h, TAPS);
    job[0].output = rows_of(y, OUT);
    job[1] = job[0]; /* the same convolution, seen from behind */
    job[1].operation = GPUCONV_ARRAYS_GRADIENT_RESPONSE;
    job[1].output = rows_of(g, OUT);
    job[1].response = rows_of(gh, TAPS);

    size_t bytes[2], largest;
    for (int i = 0; i < 2; i++)
        if (gpuconv_arrays_workspace(cuda, &job[i], &bytes[i], &error)) {
            fprintf(stderr, "%s\n", error.message);
            return 1;
        }
    largest = bytes[0] > bytes[1] ? bytes[0] : bytes[1];
    void *workspace = NULL;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t step;
    check(cudaMalloc(&workspace, largest));
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    if (queue(cuda, job, workspace, largest, stream, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    check(cudaStreamEndCapture(stream, &graph));
    check(cudaGraphInstantiate(&step, graph, 0));
    for (int i = 0; i < 100; i++)
        check(cudaGraphLaunch(step, stream));
    check(cudaStreamSynchronize(stream));

    float first[2];
    check(cudaMemcpy(&first[0], y, sizeof first[0], cudaMemcpyDeviceToHost));
    check(cudaMemcpy(&first[1], gh, sizeof first[1], cudaMemcpyDeviceToHost));
    printf("100 steps of %d signals; y[0][0] = %g, gh[0][0] = %g; workspace %.1f MB\n", ROWS, (double)first[0],
           (double)first[1], (double)largest * 1e-6);
    check(cudaGraphExecDestroy(step));
    check(cudaGraphDestroy(graph));
    check(cudaStreamDestroy(stream));
    float *memory[] = {x, h, y, g, gh};
    for (int i = 0; i < 5; i++)
        check(cudaFree(memory[i]));
    check(cudaFree(workspace));
    gpuconv_arrays_free(cuda);
    return 0;
}
