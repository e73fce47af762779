/*
 * Timing: one kernel, a chain of multiply-adds of known length, by every clock there is.
 *
 *      out[t] = what `rounds` multiply-adds make of in[t]
 *
 * Courses: Stahl 5, 6, Khunjush.
 */
#include "gpulab/lab.h"

LAB_LAUNCHER(gck_timing);
LAB_LAUNCHER(gck_timing_rest);

enum { ROUNDS = 20000, THREADS = 128 };

static int loop(const gc_lab_run *run) {
    const float *in = run->buffer[0];
    float *out = run->buffer[1];
    for (int64_t i = 0; i < run->size[0]; i++) {
        float v = in[i];
        for (int k = 0; k < ROUNDS; k++)
            v = v * 0.5f + 0.25f;
        out[i] = v;
    }
    return 0;
}

static int buffers(const int64_t *size, gc_lab_buffer *buffer) {
    buffer[0] = (gc_lab_buffer){.name = "in", .type = LAB_F32, .count = size[0]};
    buffer[1] = (gc_lab_buffer){.name = "out", .role = LAB_OUTPUT, .type = LAB_F32, .count = size[0]};
    buffer[2] = (gc_lab_buffer){.name = "cycles", .role = LAB_MEASURED, .type = LAB_I32, .count = 2};
    return 3;
}

/* The chain ends where it no longer moves: at 1/2. */
static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)run, (void)buffer, (void)index;
    return 0.5;
}

/* clock64 counts cycles of the multiprocessor: their number over the clock that NVML reads. */
static double by_cycles(const gc_lab_run *run) {
    return run->clock_hz > 0 ? ((const int32_t *)run->host[2])[0] / run->clock_hz * 1e6 : 0;
}

/* %globaltimer counts nanoseconds. */
static double by_nanoseconds(const gc_lab_run *run) {
    return ((const int32_t *)run->host[2])[1] * 1e-3;
}

static int cpu(const gc_lab_run *run) {
    int32_t *cycles = run->buffer[2];
    cycles[0] = cycles[1] = 0;
    return loop(run);
}

static const gc_lab_size sizes[] = {{{1}, LAB_QUICK}, {{1003}, LAB_CHECK | LAB_GPU_TIME | LAB_CPU_TIME}};

static const gc_lab_variant variants[] = {
    {.name = "CPU", .changed = "the host's clock around a loop", .tolerance = 1e-6, .launch = cpu},
    {.name = "CUDA events",
     .changed = "two marks in the stream, half a microsecond fine: the device's own account",
     .where = LAB_GPU,
     .tolerance = 1e-6,
     .launch = LAB_ON_GPU(gck_timing)},
    {.name = "host clock",
     .changed = "from before the launch to after waiting: the launch and the waking of the host are in it",
     .where = LAB_GPU,
     .tolerance = 1e-6,
     .flags = LAB_HOST_CLOCK,
     .launch = LAB_ON_GPU(gck_timing)},
    {.name = "clock64",
     .changed = "cycles that one block counts, over the clock that NVML tells",
     .where = LAB_GPU,
     .tolerance = 1e-6,
     .figure = by_cycles,
     .figure_unit = "us by cycles",
     .launch = LAB_ON_GPU(gck_timing)},
    {.name = "globaltimer",
     .changed = "nanoseconds that one block reads",
     .where = LAB_GPU,
     .tolerance = 1e-6,
     .figure = by_nanoseconds,
     .figure_unit = "us by nanoseconds",
     .launch = LAB_ON_GPU(gck_timing)},
    {.name = "globaltimer after a rest",
     .changed = "the same, once, after a fifth of a second without work: the clock has fallen, if it falls",
     .where = LAB_GPU,
     .tolerance = 1e-6,
     .flags = LAB_ONCE,
     .figure = by_nanoseconds,
     .figure_unit = "us by nanoseconds",
     .launch = LAB_ON_GPU(gck_timing_rest)},
};

static const gc_lab_effect effects[] = {
    {"cycles and nanoseconds agree", "clock64", "globaltimer", 1.15, 1},
    {"after a rest it is no faster", "globaltimer after a rest", "globaltimer", 0.95, 0},
    {"the host sees the launch too", "host clock", "CUDA events", 0.97, 0},
};

const gc_lab_module gc_lab_timing = {
    .name = "timing",
    .title = "Timing: three clocks for one kernel",
    .course = "Stahl 5, 6; Khunjush",
    .idea = "A launch returns before the kernel begins: a host clock that does not wait measures nothing. Events are "
            "marks in the stream that the device stamps itself. clock64 counts cycles on one multiprocessor, and means "
            "seconds only when the clock is known; it rises under work and falls at rest, within fractions of a second."
            "\n\n"
            "So warm up until the clock is steady, take at least ten samples, and tell the median with its spread. One "
            "sample is an anecdote; the best of many is advertising.",
    .see = "Cycles over the clock and nanoseconds agree; the host's clock has a few microseconds more.",
    .next = "gpulab device tells the clocks now; gpulab run --json holds clock, temperature and what throttled, for "
            "every row.",
    .dimension = {"threads"},
    .buffers = buffers,
    .reference = reference,
    LAB_TABLES,
};
