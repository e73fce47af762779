/*
 * The kernels of module graphs. Step s reads what step s - 1 has written: the steps write to the output and to a second
 * buffer in turn, so that the last step writes to the output.
 */
#include "course.cuh"

#include <cooperative_groups.h>

using namespace course;

namespace {

enum { BLOCK = 256, LARGE_BLOCK = 1024, MOST_ELEMENTS = 4096 };

__device__ float smoothed(const float *x, int64_t i, int64_t n) {
    return 0.25f * (x[i ? i - 1 : n - 1] + x[i + 1 < n ? i + 1 : 0]) + 0.5f * x[i];
}

__global__ void __launch_bounds__(BLOCK) smooth(const float *x, float *next, int64_t n) {
    const int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        next[i] = smoothed(x, i, n);
}

/* Returns the buffer that step `s` of a run writes to. */
__host__ __device__ float *target(float *out, float *between, int64_t s, int64_t steps) {
    return (steps - s) % 2 ? out : between;
}

cudaError_t queue_step(const gc_lab_run *run, int64_t s) {
    const int64_t steps = run->size[1];
    float *out = buffer<float>(run, 1), *between = buffer<float>(run, 2);
    smooth<<<ceil_div(run->size[0], BLOCK), BLOCK, 0, stream(run)>>>(s ? target(out, between, s - 1, steps)
                                                                       : buffer<const float>(run, 0),
                                                                     target(out, between, s, steps), run->size[0]);
    return cudaGetLastError();
}

cudaError_t queue_steps(const gc_lab_run *run) {
    cudaError_t err = cudaSuccess;
    for (int64_t s = 0; !err && s < run->size[1]; s++)
        err = queue_step(run, s);
    return err;
}

/* Captures the launches of a run into a graph, which the caller destroys. */
cudaError_t capture(const gc_lab_run *run, cudaGraph_t *graph) {
    cudaError_t err = cudaStreamBeginCapture(stream(run), cudaStreamCaptureModeThreadLocal);
    if (err)
        return err;
    err = queue_steps(run);
    cudaError_t ended = cudaStreamEndCapture(stream(run), graph);
    return err ? err : ended;
}

/* The instantiated graph that gck_graphs_make keeps for the next runs. */
cudaGraphExec_t kept;

/* Every block of the grid is on the GPU, so that they can wait for each other. */
__global__ void __launch_bounds__(BLOCK)
    smooth_all_steps(const float *x, float *out, float *between, int64_t n, int64_t steps) {
    const int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    for (int64_t s = 0; s < steps; s++) {
        float *next = target(out, between, s, steps);
        for (int64_t k = i; k < n; k += (int64_t)gridDim.x * BLOCK)
            next[k] = smoothed(x, k, n);
        cooperative_groups::this_grid().sync();
        x = next;
    }
}

__global__ void __launch_bounds__(LARGE_BLOCK) smooth_in_block(const float *x, float *out, int n, int64_t steps) {
    __shared__ float s[2][MOST_ELEMENTS];
    int from = 0;
    for (int i = threadIdx.x; i < n; i += LARGE_BLOCK)
        s[0][i] = x[i];
    __syncthreads();
    for (int64_t step = 0; step < steps; step++, from = 1 - from) {
        for (int i = threadIdx.x; i < n; i += LARGE_BLOCK)
            s[1 - from][i] = smoothed(s[from], i, n);
        __syncthreads();
    }
    for (int i = threadIdx.x; i < n; i += LARGE_BLOCK)
        out[i] = s[from][i];
}

} // namespace

LAB_LAUNCHER(gck_graphs_waiting) {
    cudaError_t err = cudaSuccess;
    for (int64_t s = 0; !err && s < run->size[1]; s++) {
        err = queue_step(run, s);
        if (!err)
            err = cudaStreamSynchronize(stream(run));
    }
    return err;
}

LAB_LAUNCHER(gck_graphs_launches) {
    return queue_steps(run);
}

LAB_LAUNCHER(gck_graphs_new) {
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    cudaError_t err = capture(run, &graph);
    if (err)
        return err;
    err = cudaGraphInstantiate(&ready, graph, 0);
    cudaGraphDestroy(graph);
    if (err)
        return err;
    err = cudaGraphLaunch(ready, stream(run));
    cudaError_t ended = cudaStreamSynchronize(stream(run));
    cudaGraphExecDestroy(ready);
    return err ? err : ended;
}

/* Makes the graph of a run before its time is taken. */
LAB_LAUNCHER(gck_graphs_make) {
    cudaGraph_t graph;
    if (kept)
        cudaGraphExecDestroy(kept);
    kept = nullptr;
    cudaError_t err = capture(run, &graph);
    if (err)
        return err;
    err = cudaGraphInstantiate(&kept, graph, 0);
    cudaGraphDestroy(graph);
    return err;
}

LAB_LAUNCHER(gck_graphs_updated) {
    cudaGraph_t graph;
    cudaGraphExecUpdateResultInfo result;
    cudaError_t err = capture(run, &graph);
    if (err)
        return err;
    err = cudaGraphExecUpdate(kept, graph, &result);
    cudaGraphDestroy(graph);
    return err ? err : cudaGraphLaunch(kept, stream(run));
}

LAB_LAUNCHER(gck_graphs_kept) {
    return cudaGraphLaunch(kept, stream(run));
}

LAB_LAUNCHER(gck_graphs_grid_barrier) {
    const float *x = buffer<const float>(run, 0);
    float *out = buffer<float>(run, 1), *between = buffer<float>(run, 2);
    int64_t n = run->size[0], steps = run->size[1], wanted = (n + BLOCK - 1) / BLOCK;
    int device, supported, blocks;
    cudaError_t err = cudaGetDevice(&device);
    if (!err)
        err = cudaDeviceGetAttribute(&supported, cudaDevAttrCooperativeLaunch, device);
    if (!err && !supported)
        return LAB_CANNOT;
    if (!err)
        err = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, smooth_all_steps, BLOCK, 0);
    if (err)
        return err;
    const int64_t fit = (int64_t)blocks * run->multiprocessors;
    void *arguments[] = {&x, &out, &between, &n, &steps};
    return cudaLaunchCooperativeKernel(smooth_all_steps, (unsigned)(wanted < fit ? wanted : fit), BLOCK, arguments, 0,
                                       stream(run));
}

LAB_LAUNCHER(gck_graphs_one_block) {
    if (run->size[0] > MOST_ELEMENTS)
        return LAB_CANNOT;
    smooth_in_block<<<1, LARGE_BLOCK, 0, stream(run)>>>(buffer<const float>(run, 0), buffer<float>(run, 1),
                                                        (int)run->size[0], run->size[1]);
    return cudaGetLastError();
}
