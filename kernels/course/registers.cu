/* The kernels of module registers: 80 numbers per thread with different launch bounds, and an image in few or many
 * blocks. */
#include "course.cuh"

using namespace course;

namespace {

enum { BLOCK = 256, NUMBERS = 80, ROUNDS = 64, CHAIN = 20000 };

/* The number of blocks of 256 threads that a multiprocessor of this architecture can hold. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
enum { MAX_BLOCKS = 4 };
#elif defined(__CUDA_ARCH__) &&                                                                                        \
    (__CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 870 || __CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1200)
enum { MAX_BLOCKS = 6 };
#else
enum { MAX_BLOCKS = 8 };
#endif

template <int MIN_BLOCKS>
__global__ void __launch_bounds__(BLOCK, MIN_BLOCKS < MAX_BLOCKS ? MIN_BLOCKS : MAX_BLOCKS)
    mix(const float *in, float *out, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i >= n)
        return;
    float x[NUMBERS], sum = 0.0f;
#pragma unroll
    for (int j = 0; j < NUMBERS; j++)
        x[j] = in[i] * (float)(j + 1) / NUMBERS;
#pragma unroll 1
    for (int r = 0; r < ROUNDS; r++)
#pragma unroll
        for (int j = 0; j < NUMBERS; j++)
            x[j] = 0.5f * x[j] + 0.25f * x[(j + 1) % NUMBERS] + 0.25f * x[(j + 7) % NUMBERS];
#pragma unroll
    for (int j = 0; j < NUMBERS; j++)
        sum += x[j];
    out[i] = sum;
}

__global__ void image(const float *in, float *out, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float v = in[i];
#pragma unroll 8
    for (int k = 0; k < CHAIN; k++)
        v = fmaf(v, 0.999f, 0.001f);
    out[i] = v;
}

typedef void kernel(const float *, float *, int64_t);

kernel *mix_kernel(int blocks) {
    switch (blocks) {
    case 1:
        return mix<1>;
    case 2:
        return mix<2>;
    case 4:
        return mix<4>;
    case 6:
        return mix<6>;
    default:
        return mix<8>;
    }
}

int launch(kernel *k, int block, const gc_lab_run *run) {
    k<<<ceil_div(run->size[0], block), block, 0, stream(run)>>>(buffer<const float>(run, 0), buffer<float>(run, 1),
                                                                run->size[0]);
    return cudaGetLastError();
}

} // namespace

LAB_LAUNCHER(gck_registers_mix) {
    return launch(mix_kernel(run->parameter), BLOCK, run);
}

LAB_LAUNCHER(gck_registers_image) {
    return launch(image, -run->parameter, run);
}

LAB_FACTS(gck_registers_facts) {
    return kernel_facts(mix_kernel(run->parameter), BLOCK, 0, facts);
}
