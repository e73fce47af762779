/* The kernel of module floating-point, in the four forms of floating_point.c. */
#include "course.cuh"

using namespace course;

namespace {

enum { BLOCK = 256, FUSED = 0, APART, LEFT, RIGHT };

template <int FORM> __global__ void compute(const float *x, const float *y, const float *z, float *out, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i >= n)
        return;
    if constexpr (FORM == FUSED)
        out[i] = x[i] * y[i] + z[i];
    else if constexpr (FORM == APART)
        out[i] = __fadd_rn(__fmul_rn(x[i], y[i]), z[i]);
    else if constexpr (FORM == LEFT)
        out[i] = (x[i] + y[i]) + z[i];
    else
        out[i] = x[i] + (y[i] + z[i]);
}

template <int FORM> int launch(const gc_lab_run *run) {
    compute<FORM><<<ceil_div(run->size[0], BLOCK), BLOCK, 0, stream(run)>>>(
        buffer<const float>(run, 0), buffer<const float>(run, 1), buffer<const float>(run, 2), buffer<float>(run, 3),
        run->size[0]);
    return (int)cudaGetLastError();
}

} // namespace

LAB_LAUNCHER(gck_floating_point) {
    switch (run->parameter) {
    case FUSED:
        return launch<FUSED>(run);
    case APART:
        return launch<APART>(run);
    case LEFT:
        return launch<LEFT>(run);
    default:
        return launch<RIGHT>(run);
    }
}
