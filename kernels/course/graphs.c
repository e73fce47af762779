/*
 * Module graphs: a thousand small steps, each of which needs the result of the one before. A step smooths a ring of
 * elements,
 *
 *      next[i] = x[i - 1] / 4 + x[i] / 2 + x[i + 1] / 4
 *
 * and takes less time on the GPU than its launch. The variants differ in who starts the next step: the host, a graph
 * that was made of all launches before, or the kernel itself. With 1000 steps the milliseconds of the table are
 * microseconds a step.
 *
 * Source: CUDA programming guide, chapters CUDA Graphs and Cooperative Groups.
 */
#include "gpulab/lab.h"

#include <math.h>
#include <string.h>

LAB_LAUNCHER(gck_graphs_waiting);
LAB_LAUNCHER(gck_graphs_launches);
LAB_LAUNCHER(gck_graphs_new);
LAB_LAUNCHER(gck_graphs_updated);
LAB_LAUNCHER(gck_graphs_kept);
LAB_LAUNCHER(gck_graphs_make);
LAB_LAUNCHER(gck_graphs_grid_barrier);
LAB_LAUNCHER(gck_graphs_one_block);

static void smooth(const float *x, float *next, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        next[i] = 0.25f * (x[i ? i - 1 : n - 1] + x[i + 1 < n ? i + 1 : 0]) + 0.5f * x[i];
}

/* Begins in the buffer that makes the last step write to the output. */
static int on_cpu(const gc_lab_run *run) {
    const int64_t n = run->size[0], steps = run->size[1];
    float *x = run->buffer[steps % 2 ? 2 : 1], *next = run->buffer[steps % 2 ? 1 : 2];
    memcpy(x, run->buffer[0], (size_t)n * sizeof *x);
    for (int64_t s = 0; s < steps; s++) {
        smooth(x, next, n);
        float *swapped = x;
        x = next;
        next = swapped;
    }
    return 0;
}

static int buffers(const int64_t *size, gc_lab_buffer *buffer) {
    buffer[0] = (gc_lab_buffer){.name = "x", .type = LAB_F32, .count = size[0]};
    buffer[1] = (gc_lab_buffer){.name = "out", .role = LAB_OUTPUT, .type = LAB_F32, .count = size[0]};
    buffer[2] = (gc_lab_buffer){.name = "between", .role = LAB_SCRATCH, .type = LAB_F32, .count = size[0]};
    return 3;
}

/* A step is two averages of neighbours, so after K steps the weights are the binomials of 2 K over 4^K. */
static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)buffer;
    const int64_t n = run->size[0], steps = run->size[1];
    double sum = 0;
    for (int64_t j = -steps; j <= steps; j++) {
        const double k = (double)(steps + j), all = 2 * (double)steps;
        const double weight = exp(lgamma(all + 1) - lgamma(k + 1) - lgamma(all - k + 1) - all * log(2));
        sum += weight * (double)run->in[0][((index + j) % n + n) % n];
    }
    return sum;
}

static const gc_lab_size sizes[] = {
    {{1, 1}, LAB_QUICK},
    {{300, 7}, LAB_QUICK},
    {{4096, 20}, LAB_CHECK},
    {{4096, 1000}, LAB_CPU_TIME | LAB_GPU_TIME},
};

static const gc_lab_variant variants[] = {
    {.name = "CPU", .changed = "one core, two buffers in turn", LAB_RUNS(on_cpu), .tolerance = 1e-4},
    {.name = "the host waits",
     .changed = "a kernel of 16 blocks for each step, and the host waits for its end before it launches the next",
     .where = LAB_GPU,
     .tolerance = 1e-4,
     .limit =
         "4096 elements are 32 KB to read and write, 8 nanoseconds at 4 TB/s: the kernel is all latency. Each step "
         "pays for a launch, the kernel, and the message to the host that it has ended, one after the other. Next: do "
         "not wait, the stream keeps the order.",
     LAB_RUNS_ON_GPU(gck_graphs_waiting)},
    {.name = "a launch for each step",
     .changed = "the host only queues the launches; the stream runs them in order",
     .where = LAB_GPU,
     .tolerance = 1e-4,
     .limit =
         "The host prepares the next launch while a kernel runs. The larger of the two costs decides: the call of the "
         "launch on the host, or start and end of a small kernel on the GPU; compare with the empty launch that the "
         "lab measures. Next: prepare all launches once.",
     LAB_RUNS_ON_GPU(gck_graphs_launches)},
    {.name = "a new graph each time",
     .changed =
         "the launches are captured into a graph, which is instantiated, launched once, waited for and destroyed",
     .where = LAB_GPU,
     .tolerance = 1e-4,
     .limit =
         "A graph is launched by one call, but capturing costs a call for each step, and instantiating it again some "
         "work for each node, and the GPU waits for both. A graph that is used once cannot win. Next: keep what does "
         "not change.",
     LAB_RUNS_ON_GPU(gck_graphs_new)},
    {.name = "an updated graph",
     .changed =
         "captured again for new arguments, but the instantiated graph is kept: cudaGraphExecUpdate writes the new "
         "arguments into it",
     .where = LAB_GPU,
     .tolerance = 1e-4,
     .prepare = LAB_ON_GPU(gck_graphs_make),
     .limit =
         "Saves the instantiation, not the capture. It fits arguments that change from time to time; where only a few "
         "nodes change, cudaGraphExecKernelNodeSetParams writes these alone. Next: arguments that do not change.",
     LAB_RUNS_ON_GPU(gck_graphs_updated)},
    {.name = "a kept graph",
     .changed = "captured and instantiated before the measurement; a run is one cudaGraphLaunch",
     .where = LAB_GPU,
     .tolerance = 1e-4,
     .prepare = LAB_ON_GPU(gck_graphs_make),
     .limit =
         "The host does nothing between the steps. Two times remain: the GPU's own from the end of a kernel to the "
         "start of the next one, and the access to memory in each kernel, at least one latency of the L2 cache, "
         "about 280 cycles, because the neighbours are in other blocks. Next: do not end the kernel.",
     LAB_RUNS_ON_GPU(gck_graphs_kept)},
    {.name = "one kernel, grid barrier",
     .changed =
         "a cooperative launch: 16 blocks stay on the GPU and meet at a barrier of the whole grid after each step",
     .where = LAB_GPU,
     .tolerance = 1e-4,
     .needs = "needs cooperative launches",
     .limit =
         "A barrier of the grid is an atomic addition in the L2 cache and a loop that reads it: two or three latencies "
         "of the L2 cache, and the data cross it once more. Next: no traffic between blocks.",
     LAB_RUNS_ON_GPU(gck_graphs_grid_barrier)},
    {.name = "one block, shared memory",
     .changed = "one block of 1024 threads keeps all elements in shared memory; a step ends at __syncthreads()",
     .where = LAB_GPU,
     .tolerance = 1e-4,
     .needs = "keeps all elements in one block, 4096 at most",
     .limit =
         "One multiprocessor of 132 works, and it is the fastest: a step is 4 elements a thread, about 12 reads of "
         "shared "
         "memory for each of 32 warps at one a cycle, 384 cycles or 0.2 microseconds at 1.98 GHz, and a barrier. For "
         "steps this small the distance between the threads costs more than the work.",
     LAB_RUNS_ON_GPU(gck_graphs_one_block)},
};

static const gc_lab_effect effects[] = {
    {"waiting for each step costs more than its launch", "the host waits", "a launch for each step", 1.3, 0},
    {"a graph that is kept beats one that is made anew", "a new graph each time", "a kept graph", 1.2, 0},
    {"a block's barrier is faster than a launch", "a launch for each step", "one block, shared memory", 2, 0},
};

const gc_lab_module gc_lab_graphs = {
    .name = "graphs",
    .title = "CUDA graphs: many small steps in a row",
    .course = "CUDA programming guide",
    .idea =
        "A launch costs a few microseconds, however small the kernel is. A simulation, a solver or a small neural "
        "network "
        "consists of thousands of kernels that take less than that and depend on each other, so that neither a larger "
        "grid nor a second stream helps: the GPU waits for the host.\n\n"
        "A CUDA graph is a sequence of launches. cudaStreamBeginCapture records the launches on a stream instead of "
        "running them. cudaGraphInstantiate checks the graph and prepares it for the GPU. Then one call launches the "
        "whole graph, as often as needed. "
        "The price is that its arguments are fixed: for others it is updated.\n\n"
        "The other way is to have no launches: one kernel does all steps. Its blocks must then wait for each other, "
        "which "
        "is only allowed if all of them run at the same time; a cooperative launch guarantees it. And if the data fit "
        "one "
        "block, its own barrier is the cheapest of all.",
    .see =
        "There are 1000 steps, so the milliseconds in the table are microseconds a step. Compare them with the empty "
        "launch below the table. A step takes longest if the host waits, less as a launch in a stream, and less "
        "again in a graph that is updated or kept; making a graph anew costs more than the launches that it "
        "replaces. One block without any launch is the fastest. Thus a graph is worth its capture from its second "
        "launch on, and a barrier of the grid is no faster than the end of a kernel in a graph. The results are the "
        "same in all variants, because each step waits for the one before.",
    .next =
        "gpulab run graphs --size 65536x1000 has steps of 256 blocks: the larger the step, the less a launch matters. "
        "gpulab show streams overlaps work that does not depend on each other.",
    .dimension = {"elements", "steps"},
    .buffers = buffers,
    .reference = reference,
    LAB_TABLES,
};
