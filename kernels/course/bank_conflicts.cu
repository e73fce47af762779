/* The kernel of module bank-conflicts: dependent reads of shared memory with a stride, in cycles of the multiprocessor.
 * A block has one warp. */
#include "course.cuh"

using namespace course;

namespace {

enum { READS = 512, WORDS = 32 * 33 };

__global__ void read_strided(int *sum, int *cycles, int stride) {
    __shared__ volatile int word[WORDS];
    for (int w = threadIdx.x; w < WORDS; w += 32)
        word[w] = 0;
    __syncwarp();
    const int first = (int)threadIdx.x * stride % WORDS;
    int index = first;
    for (int k = 0; k < 16; k++) /* warm-up */
        index += word[index];
    long long begin = clock64();
#pragma unroll 16
    for (int k = 0; k < READS; k++)
        index += word[index]; /* adds zero; the next address depends on it */
    long long end = clock64();
    sum[blockIdx.x * 32 + threadIdx.x] = (int)threadIdx.x + index - first;
    if (threadIdx.x == 0)
        cycles[blockIdx.x] = (int)(end - begin);
}

} // namespace

LAB_LAUNCHER(gck_bank_conflicts) {
    read_strided<<<(unsigned)run->size[0], 32, 0, stream(run)>>>(buffer<int>(run, 0), buffer<int>(run, 1),
                                                                 run->parameter);
    return cudaGetLastError();
}
