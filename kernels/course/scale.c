/*
 * b[i] = c a[i], the whole way in eight steps, with the errors looked for where they show: wrong launches at once, by
 * cudaGetLastError; faults of a running kernel when somebody waits for it.
 *
 *      1 host memory  2 its values  3 device memory  4 copy there  5 launch  6 look for errors  7 copy back  8 free
 *
 * The harness does 1 to 3 and 8; the launchers do the rest. Course: Khunjush.
 */
#include "gpulab/lab.h"

LAB_LAUNCHER(gck_scale_kernel);
LAB_LAUNCHER(gck_scale_steps);
LAB_LAUNCHER(gck_scale_caught);

static int loop(const gc_lab_run *run) {
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
    {.name = "CPU", .changed = "the loop", .launch = loop},
    {.name = "kernel alone",
     .changed = "a thread an element; the size is no multiple of the block, and the bounds check keeps the rest out",
     .where = LAB_GPU,
     .launch = LAB_ON_GPU(gck_scale_kernel)},
    {.name = "steps 4 to 7",
     .changed = "copied there, launched, looked for errors after launch and after waiting, copied back",
     .where = LAB_GPU,
     .memory = LAB_PAGEABLE,
     .flags = LAB_HOST_CLOCK,
     .launch = LAB_ON_GPU(gck_scale_steps)},
    {.name = "an error caught",
     .changed = "first a launch with 2048 threads a block, which no GPU takes: seen at once, and what follows is right",
     .where = LAB_GPU,
     .flags = LAB_LIBRARY, /* a sanitizer takes the refused launch for a mistake */
     .launch = LAB_ON_GPU(gck_scale_caught)},
};

static const gc_lab_effect effects[] = {{"the copies cost more than the kernel", "steps 4 to 7", "kernel alone", 3, 0}};

const gc_lab_module gc_lab_scale = {
    .name = "scale",
    .title = "A whole CUDA program in eight steps, and where errors show",
    .course = "Khunjush",
    .idea = "Memory on the host and its values, memory on the device, a copy there, a launch, a look for errors, a "
            "copy back, and all memory freed: every CUDA program is these eight steps.\n\n"
            "A launch returns at once and says nothing. A launch that cannot be - too many threads, too much shared "
            "memory - is refused on the spot, and cudaGetLastError tells. A kernel that goes wrong while it runs is "
            "found out only when somebody waits for it, so the result of the wait counts too. A program that looks at "
            "neither computes nonsense without a word.",
    .see = "The kernel is a small part of the time of steps 4 to 7. The variant with the refused launch still gives "
           "the right result: the error was taken, and did no harm.",
    .next = "Change the 2048 in kernels/course/scale.cu to 1024 and see gpulab check scale fail: an error that was "
            "expected and did not come.",
    .dimension = {"elements"},
    .buffers = buffers,
    .cost = cost,
    .reference = reference,
    LAB_TABLES,
};
