/*
 * Module timing: one kernel, timed by several clocks. The kernel is a chain of ROUNDS dependent multiply-adds,
 * v = 0.5 v + 0.25.
 *
 * Courses: Stahl 5, 6, Khunjush.
 */
#include "gpulab/lab.h"

LAB_LAUNCHER(gck_timing);
LAB_LAUNCHER(gck_timing_after_idle);

enum { ROUNDS = 20000, THREADS = 128 };

static int compute(const gc_lab_run *run) {
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

/* The chain converges to 1/2. */
static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)run, (void)buffer, (void)index;
    return 0.5;
}

/* Returns the cycles that clock64 counted divided by the clock frequency from NVML, in microseconds; 0 if that is
 * unknown. */
static double microseconds_by_cycles(const gc_lab_run *run) {
    return run->clock_hz > 0 ? ((const int32_t *)run->host[2])[0] / run->clock_hz * 1e6 : 0;
}

/* Returns the nanoseconds that %globaltimer counted, in microseconds. */
static double microseconds_by_globaltimer(const gc_lab_run *run) {
    return ((const int32_t *)run->host[2])[1] * 1e-3;
}

static int sequential(const gc_lab_run *run) {
    int32_t *cycles = run->buffer[2];
    cycles[0] = cycles[1] = 0;
    return compute(run);
}

static const gc_lab_size sizes[] = {{{1}, LAB_QUICK}, {{1003}, LAB_CHECK | LAB_GPU_TIME | LAB_CPU_TIME}};

static const gc_lab_variant variants[] = {
    {.name = "CPU", .changed = "the host's clock around a loop", .tolerance = 1e-6, LAB_RUNS(sequential)},
    {.name = "CUDA events",
     .changed = "two events in the stream, with time stamps from the device; their resolution is half a microsecond",
     .where = LAB_GPU,
     .tolerance = 1e-6,
     LAB_RUNS_ON_GPU(gck_timing)},
    {.name = "host clock",
     .changed =
         "from before the launch until after the synchronisation: this includes the launch and the wake-up of the "
         "host thread",
     .where = LAB_GPU,
     .tolerance = 1e-6,
     .flags = LAB_HOST_CLOCK,
     LAB_RUNS_ON_GPU(gck_timing)},
    {.name = "clock64",
     .changed = "the cycles that one thread counts, divided by the clock frequency from NVML",
     .where = LAB_GPU,
     .tolerance = 1e-6,
     .figure = microseconds_by_cycles,
     .figure_unit = "us by cycles",
     LAB_RUNS_ON_GPU(gck_timing)},
    {.name = "globaltimer",
     .changed = "the nanoseconds that one thread reads from %globaltimer",
     .where = LAB_GPU,
     .tolerance = 1e-6,
     .figure = microseconds_by_globaltimer,
     .figure_unit = "us by nanoseconds",
     LAB_RUNS_ON_GPU(gck_timing)},
    {.name = "globaltimer after a rest",
     .changed = "the same, once, after 0.2 seconds without work, in which the GPU may have lowered its clock",
     .where = LAB_GPU,
     .tolerance = 1e-6,
     .flags = LAB_ONCE,
     .figure = microseconds_by_globaltimer,
     .figure_unit = "us by nanoseconds",
     LAB_RUNS_ON_GPU(gck_timing_after_idle)},
};

static const gc_lab_effect effects[] = {
    {"cycles and nanoseconds agree", "clock64", "globaltimer", 1.15, 1},
    {"after an idle time the kernel is no faster", "globaltimer after a rest", "globaltimer", 0.95, 0},
    {"the host's time includes the launch", "host clock", "CUDA events", 0.97, 0},
};

const gc_lab_module gc_lab_timing = {
    .name = "timing",
    .title = "Timing: several clocks for one kernel",
    .course = "Stahl 5, 6; Khunjush",
    .idea =
        "A launch returns before the kernel begins, so a host clock without a synchronisation does not measure the "
        "kernel. Events are marks in the stream, and the device stores the time at which it reaches them. clock64 "
        "counts cycles of one multiprocessor; they become seconds only when the clock frequency is known, and this "
        "frequency may rise under load and fall when the GPU is idle.\n\n"
        "For a reliable result, warm up until the clock is steady, take at least ten samples, and report the median "
        "with its spread. A single sample may be an exception, and the best of many samples is too optimistic.",
    .see =
        "Compare what the kernel counts by cycles and by nanoseconds with the events, which include the start and "
        "the end of the kernel, and with the host clock, which also includes the launch. If it takes no longer after "
        "the idle time, the GPU's clock did not fall.",
    .next = "gpulab device prints the present clocks. gpulab run --json records clock, temperature and the reasons for "
            "throttling in every row.",
    .dimension = {"threads"},
    .buffers = buffers,
    .reference = reference,
    LAB_TABLES,
};
