/* Sample formats of files on a GPU: the same bytes as on the CPU. */
#include "gpu_test.h"
#include "libgpuconv/conv/engine.h"
#include "libgpuconv/core/memory.h"

/* A run through the chunk interface in the formats of a file, one chunk in all. */
typedef struct format_run {
    gc_pcm in, out;
    const void *raw;
    int64_t frames, total;
    int inputs, outputs;
    gc_stream_stats measured;
} format_run;

/* Returns the interleaved result, which the caller frees, and fills run->measured. */
static void *run_format(const gpuconv_plan *plan, format_run *run) {
    gpuconv_engine *engine;
    CHECK(gc_engine_new(plan, run->in, run->out, &engine, NULL) == GPUCONV_OK, "no engine");
    CHECK(run->frames < gpuconv_plan_chunk(plan) && run->total <= gpuconv_plan_chunk(plan), "more than a chunk");
    void *buffer;
    int64_t bytes = run->frames * run->inputs * gc_pcm_bytes(run->in), got;
    CHECK(gc_engine_acquire(engine, &buffer) == GPUCONV_OK, "no input buffer");
    memcpy(buffer, run->raw, (size_t)bytes);
    CHECK(gc_engine_submit(engine, run->frames) == GPUCONV_OK && gc_engine_flush(engine) == GPUCONV_OK, "not accepted");
    const void *result;
    CHECK(gc_engine_take(engine, &result, &got) == GPUCONV_OK && got == run->total, "%lld frames", (long long)got);
    void *copy = gc_calloc(run->total, (int64_t)run->outputs * gc_pcm_bytes(run->out));
    CHECK(copy, "no memory");
    memcpy(copy, result, (size_t)(run->total * run->outputs * gc_pcm_bytes(run->out)));
    gc_engine_release(engine);
    gc_engine_measure(engine, &run->measured);
    gpuconv_engine_free(engine);
    return copy;
}

void test_every_sample_format_is_converted_as_on_the_cpu(void **state) {
    (void)state;
    static const gc_pcm formats[] = {{GC_S16, 16}, {GC_S16, 8}, {GC_S24, 24}, {GC_S32, 24}, {GC_S32, 32}, {GC_F32, 32}};
    oracle_random random = {6};
    int64_t frames = harness_quick ? 500 : 20000;

    guarded h = guarded_new(1, 1);
    h.channel[0][0] = 1.5f; /* one exact tap: both backends compute the same float, and some samples clip */
    gpuconv_ir *ir = harness_route(&h, 3);
    gpuconv_plan *gpu = harness_plan(ir, GPUCONV_ALGORITHM_DIRECT, frames + 100, 0);
    gpuconv_plan *cpu = harness_plan_on(GPUCONV_BACKEND_CPU, ir, GPUCONV_ALGORITHM_DIRECT, frames + 100, 0);
    for (int i = 0; i < COUNT(formats); i++) {
        for (int o = harness_quick ? i : 0; o < (harness_quick ? i + 1 : COUNT(formats)); o++) {
            int64_t bytes = frames * 3 * gc_pcm_bytes(formats[i]);
            unsigned char *raw = malloc((size_t)bytes);
            CHECK(raw, "no memory");
            if (formats[i].container == GC_F32)
                oracle_fill(&random, (float *)(void *)raw, frames * 3);
            else
                for (int64_t b = 0; b < bytes; b++)
                    raw[b] = (unsigned char)oracle_bits(&random);
            format_run on_gpu = {.in = formats[i],
                                 .out = formats[o],
                                 .raw = raw,
                                 .frames = frames,
                                 .total = frames,
                                 .inputs = 3,
                                 .outputs = 3},
                       on_cpu = on_gpu;
            void *g = run_format(gpu, &on_gpu), *c = run_format(cpu, &on_cpu);
            const gc_pcm_overs *go = &on_gpu.measured.overs, *co = &on_cpu.measured.overs;
            CHECK(memcmp(g, c, (size_t)(frames * 3 * gc_pcm_bytes(formats[o]))) == 0, "format %d to %d differs", i, o);
            CHECK(go->clipped == co->clipped && !(go->peak < co->peak) && !(go->peak > co->peak),
                  "overs differ: %lld and %lld", (long long)go->clipped, (long long)co->clipped);
            free(g);
            free(c);
            free(raw);
        }
    }
    gpuconv_plan_free(gpu);
    gpuconv_plan_free(cpu);
    gpuconv_ir_free(ir);
    guarded_free(&h);
}
