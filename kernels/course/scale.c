/*
 * Module scale: b[i] = 2.5 a[i] as a complete CUDA program in eight steps, with error checks at the two places where
 * errors appear: cudaGetLastError reports a refused launch at once, and the next synchronisation reports a fault of the
 * running kernel.
 *
 *      1 host memory  2 its values  3 device memory  4 copy in  5 launch  6 error checks  7 copy back  8 free
 *
 * The harness does steps 1 to 3 and 8; the launchers do the others. Course: Khunjush.
 */
#include "gpulab/lab.h"

LAB_LAUNCHER(gck_scale_kernel);
LAB_LAUNCHER(gck_scale_steps);
LAB_LAUNCHER(gck_scale_error);

static int sequential(const gc_lab_run *run) {
    const float *a = run->buffer[0];
    float *b = run->buffer[1];
    for (int64_t i = 0; i < run->size[0]; i++)
        b[i] = 2.5f * a[i];
    return 0;
}

static int buffers(const int64_t *size, gc_lab_buffer *buffer) {
    buffer[0] = (gc_lab_buffer){.name = "a", .type = LAB_F32, .count = size[0]};
    buffer[1] = (gc_lab_buffer){.name = "b", .role = LAB_OUTPUT, .type = LAB_F32, .count = size[0]};
    return 2;
}

static gc_lab_cost cost(const int64_t *size, const gc_lab_variant *variant) {
    (void)variant;
    return (gc_lab_cost){.bytes = 8.0 * (double)size[0], .operations = (double)size[0]};
}

static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)buffer;
    return 2.5 * (double)run->in[0][index];
}

static const gc_lab_size sizes[] = {
    {{1}, LAB_QUICK}, {{1000}, LAB_QUICK}, {{100003}, LAB_CHECK}, {{5000011}, LAB_GPU_TIME | LAB_CPU_TIME}};

static const gc_lab_variant variants[] = {
    {.name = "CPU", .changed = "one loop on one core", LAB_RUNS(sequential)},
    {.name = "kernel alone",
     .changed =
         "a thread for each element; the size is not a multiple of the block size, and a bounds check stops the extra "
         "threads",
     .limit =
         "40 MB at the rate of the copy are 10 microseconds on an H200; what is left is start and end of the grid, "
         "which a larger array hides.",
     .where = LAB_GPU,
     LAB_RUNS_ON_GPU(gck_scale_kernel)},
    {.name = "steps 4 to 7",
     .changed = "copy in, launch, check for errors after the launch and after the synchronisation, copy back",
     .limit =
         "20 MB to the device and 20 MB back at 15 GB/s from pageable memory are 2.7 ms: the kernel does not matter.",
     .where = LAB_GPU,
     .memory = LAB_PAGEABLE,
     .flags = LAB_HOST_CLOCK,
     LAB_RUNS_ON_GPU(gck_scale_steps)},
    {.name = "an error caught",
     .changed =
         "first a launch with 2048 threads per block, which every GPU refuses; the error is read at once, and the "
         "next launch succeeds",
     .where = LAB_GPU,
     .flags = LAB_LIBRARY, /* a sanitizer reports the refused launch as an error, so --clean skips this variant */
     LAB_RUNS_ON_GPU(gck_scale_error)},
};

static const gc_lab_effect effects[] = {
    {"the copies take longer than the kernel", "steps 4 to 7", "kernel alone", 3, 0}};

const gc_lab_module gc_lab_scale = {
    .name = "scale",
    .title = "A complete CUDA program in eight steps, and where errors appear",
    .course = "Khunjush",
    .idea =
        "Allocate host memory and set its values, allocate device memory, copy the data in, launch the kernel, check "
        "for errors, copy the result back, free all memory: every CUDA program consists of these eight steps.\n\n"
        "A launch returns at once and reports no result. The driver refuses an impossible launch immediately, for "
        "example one with too many threads or too much shared memory, and cudaGetLastError returns the reason. A "
        "kernel that fails while it runs is reported only by the next synchronisation, so its return value must be "
        "checked as well. A program that checks neither may return wrong results without any message.",
    .see = "The kernel is a small part of steps 4 to 7: the rest are the copies. The variant with the refused launch "
           "still gives the right result, at the speed of the kernel alone: the program has read the error, and the "
           "refused launch had no effect.",
    .next =
        "Change TOO_MANY_THREADS in kernels/course/scale.cu from 2048 to 1024: the launch then succeeds, the expected "
        "error does not come, and gpulab check scale fails.",
    .dimension = {"elements"},
    .buffers = buffers,
    .cost = cost,
    .reference = reference,
    LAB_TABLES,
};
