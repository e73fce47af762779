/* The launchers of module streams: parts of the data in several streams, and three kernels in one stream or two. */
#include "course.cuh"

using namespace course;

namespace {

enum { BLOCK = 256, WORK = 1500 };

/* A grid-stride loop, for a grid of any size. */
__global__ void work(const float *in, float *out, int64_t n) {
    for (int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x; i < n; i += (int64_t)gridDim.x * BLOCK) {
        float v = in[i];
#pragma unroll 10
        for (int k = 0; k < WORK; k++)
            v = fmaf(v, 0.999f, 0.001f);
        out[i] = v;
    }
}

} // namespace

LAB_LAUNCHER(gck_streams_parts) {
    const int64_t n = run->size[0], streams = run->parameter;
    for (int part = 0; part < streams; part++) {
        const int64_t first = part * n / streams, count = (part + 1) * n / streams - first;
        const size_t bytes = (size_t)count * sizeof(float);
        if (count == 0)
            continue;
        cudaError_t err = cudaMemcpyAsync(buffer<float>(run, 0) + first, (const float *)run->host[0] + first, bytes,
                                          cudaMemcpyHostToDevice, stream(run, part));
        if (err)
            return err;
        work<<<ceil_div(count, BLOCK), BLOCK, 0, stream(run, part)>>>(buffer<const float>(run, 0) + first,
                                                                      buffer<float>(run, 1) + first, count);
        err = cudaGetLastError();
        if (!err)
            err = cudaMemcpyAsync((float *)run->host[1] + first, buffer<float>(run, 1) + first, bytes,
                                  cudaMemcpyDeviceToHost, stream(run, part));
        if (err)
            return err;
    }
    return cudaSuccess;
}

/* Processes a third of the data in each kernel, with a third as many blocks as multiprocessors. The second kernel is in
 * the last stream, the others are in the first. */
LAB_LAUNCHER(gck_streams_three_kernels) {
    const int64_t n = run->size[0];
    for (int part = 0; part < 3; part++) {
        const int64_t first = part * n / 3, count = (part + 1) * n / 3 - first;
        const int stream_index = part == 1 ? run->parameter - 1 : 0;
        work<<<(run->multiprocessors + 2) / 3, BLOCK, 0, stream(run, stream_index)>>>(
            buffer<const float>(run, 0) + first, buffer<float>(run, 1) + first, count);
        cudaError_t err = cudaGetLastError();
        if (err)
            return err;
    }
    return cudaSuccess;
}
