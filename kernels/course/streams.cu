/* Pieces of work in streams: copied there, worked on, copied back; and three kernels in one stream or two. */
#include "course.cuh"

using namespace course;

namespace {

enum { BLOCK = 256, WORK = 1500 };

/* Threads stride, so that a grid can be as small as one wishes. */
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

LAB_LAUNCHER(gck_streams_pieces) {
    const int64_t n = run->size[0], streams = run->parameter;
    for (int s = 0; s < streams; s++) {
        const int64_t from = s * n / streams, count = (s + 1) * n / streams - from;
        const size_t bytes = (size_t)count * sizeof(float);
        if (count == 0)
            continue;
        cudaError_t err = cudaMemcpyAsync(buffer<float>(run, 0) + from, (const float *)run->host[0] + from, bytes,
                                          cudaMemcpyHostToDevice, stream(run, s));
        if (err)
            return err;
        work<<<ceil_div(count, BLOCK), BLOCK, 0, stream(run, s)>>>(buffer<const float>(run, 0) + from,
                                                                   buffer<float>(run, 1) + from, count);
        err = cudaGetLastError();
        if (!err)
            err = cudaMemcpyAsync((float *)run->host[1] + from, buffer<float>(run, 1) + from, bytes,
                                  cudaMemcpyDeviceToHost, stream(run, s));
        if (err)
            return err;
    }
    return cudaSuccess;
}

/* A third each, in grids of a block for every third multiprocessor; the second kernel in the last of the streams. */
LAB_LAUNCHER(gck_streams_three) {
    const int64_t n = run->size[0];
    for (int part = 0; part < 3; part++) {
        const int64_t from = part * n / 3, count = (part + 1) * n / 3 - from;
        const int which = part == 1 ? run->parameter - 1 : 0;
        work<<<(run->multiprocessors + 2) / 3, BLOCK, 0, stream(run, which)>>>(buffer<const float>(run, 0) + from,
                                                                               buffer<float>(run, 1) + from, count);
        cudaError_t err = cudaGetLastError();
        if (err)
            return err;
    }
    return cudaSuccess;
}
