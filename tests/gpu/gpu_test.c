/*
 * The CUDA backend against the oracle and against the CPU. Runs only where there is a GPU, and fails where there is
 * none. Usage: gpu_test [--quick] [OUT.json]; quick leaves out what takes long under a sanitizer.
 */
#include "core/memory.h"
#include "dsp/ir.h"
#include "dsp/simd.h"
#include "engine/bank.h"
#include "engine/batch.h"
#include "engine/engine.h"
#include "harness.h"

#include <jansson.h>
#include <math.h>
#include <unistd.h>

static bool quick;
static json_t *record;

static void note(const char *name, double decibels) {
    json_array_append_new(
        record, json_pack("{s:s, s:o}", "check", name, "dB", isfinite(decibels) ? json_real(decibels) : json_null()));
}

static gpuconv_plan *plan_for(const gpuconv_ir *ir, gpuconv_backend backend, gpuconv_algorithm algorithm,
                              int64_t frames) {
    gpuconv_config config = gpuconv_config_default();
    config.backend = backend;
    config.algorithm = algorithm;
    config.frames = frames;
    gpuconv_plan *plan;
    gpuconv_error error = {0};
    gpuconv_status status = gpuconv_plan_new(ir, &config, &plan, &error);
    CHECK(status == GPUCONV_OK, "no plan: %s", error.message);
    CHECK(gpuconv_plan_backend(plan) == backend, "not the backend that was asked for");
    return plan;
}

typedef struct shape {
    const char *name;
    int inputs, channels;
} shape;

static const shape shapes[] = {{"mono", 1, 1},    {"stereo", 2, 2},         {"three channels", 3, 3},
                               {"fan-out", 2, 1}, {"mono to stereo", 1, 2}, {"true stereo", 2, 4}};

static void test_every_algorithm_and_topology_agrees_with_the_oracle(void **state) {
    (void)state;
    static const int64_t lengths[] = {1,   2,   31,  32,  33,  34,  49,   50,   65,   66,   81,   97,   113,
                                      129, 130, 300, 511, 512, 513, 1000, 4095, 4096, 4097, 7000, 20011};
    oracle_random random = {1};
    for (int a = 0; a < COUNT(harness_algorithms); a++) {
        double worst = -HUGE_VAL;
        for (int s = 0; s < COUNT(shapes); s += quick ? COUNT(shapes) - 1 : 1) {
            for (int l = 0; l < COUNT(lengths); l += quick ? 5 : 1) {
                int64_t taps = lengths[l], frames = 1 + oracle_below(&random, quick ? 1500 : 30000);
                guarded h, x = guarded_random(&random, shapes[s].inputs, frames);
                gpuconv_ir *ir = harness_response(&random, shapes[s].channels, shapes[s].inputs, taps, &h);
                gpuconv_plan *plan = plan_for(ir, GPUCONV_BACKEND_CUDA, harness_algorithms[a], frames);
                guarded y = harness_convolve(plan, ir, &x);
                int outputs;
                double *want = harness_expected(&h, &x, &outputs);
                char what[160];
                snprintf(what, sizeof what, "%s, %s, %lld taps, %lld frames",
                         gpuconv_algorithm_name(harness_algorithms[a]), shapes[s].name, (long long)taps,
                         (long long)frames);
                CHECK(oracle_agrees(what, &y, y.frames, want, frames + taps - 1, -120), "%s", what);
                for (int c = 0; c < outputs; c++) {
                    double e = oracle_compare(y.channel[c], want + c * y.frames, y.frames).rms;
                    worst = e > worst ? e : worst;
                }
                free(want);
                guarded_free(&y);
                guarded_free(&x);
                guarded_free(&h);
                gpuconv_plan_free(plan);
                gpuconv_ir_free(ir);
            }
        }
        char name[120];
        snprintf(name, sizeof name, "%s against the oracle, worst of all topologies and lengths",
                 gpuconv_algorithm_name(harness_algorithms[a]));
        note(name, worst);
    }
}

/* Tensor cores multiply halves, which reach from 6e-8 to 65504: samples and taps of any size must not notice, nor what
 * is quiet beside what is loud. */
static void test_direct_keeps_its_precision_at_every_level(void **state) {
    (void)state;
    static const struct {
        float samples, taps, rest;
    } levels[] = {{1e-20F, 1, 1}, {1e20F, 1e-12F, 1}, {32768, 1e-6F, 1}, {1e-5F, 1e5F, 1}, {1, 1, 1e-5F}};
    static const int64_t lengths[] = {64, 100, 512};
    enum { FRAMES = 5000, PERIOD = 1000, LOUD = 100 };
    oracle_random random = {5};
    double worst = -HUGE_VAL;
    for (int k = 0; k < COUNT(levels); k++)
        for (int l = 0; l < COUNT(lengths); l++) {
            guarded h, x = guarded_random(&random, 1, FRAMES);
            gpuconv_ir *given = harness_response(&random, 1, 1, lengths[l], &h), *ir;
            for (int64_t n = 0; n < FRAMES; n++)
                x.channel[0][n] *= levels[k].samples * (n % PERIOD < LOUD ? 1 : levels[k].rest);
            for (int64_t n = 0; n < lengths[l]; n++)
                h.channel[0][n] *= levels[k].taps;
            gpuconv_ir_free(given);
            const float *const plane[] = {h.channel[0]};
            gpuconv_error error = {0};
            CHECK(gpuconv_ir_new(plane, 1, lengths[l], 48000, &ir, &error) == GPUCONV_OK, "%s", error.message);
            gpuconv_plan *plan = plan_for(ir, GPUCONV_BACKEND_CUDA, GPUCONV_ALGORITHM_DIRECT, FRAMES);
            guarded y = harness_convolve(plan, ir, &x);
            int outputs;
            double *want = harness_expected(&h, &x, &outputs);
            for (int64_t n = LOUD + lengths[l]; n + PERIOD < FRAMES; n += PERIOD) {
                int64_t quiet = PERIOD - LOUD - lengths[l];
                double e = oracle_compare(y.channel[0] + n, want + n, quiet).rms;
                CHECK(e <= -120, "%lld taps, level %d, frame %lld: %.1f dB", (long long)lengths[l], k, (long long)n, e);
                worst = e > worst ? e : worst;
            }
            free(want);
            guarded_free(&y);
            guarded_free(&x);
            guarded_free(&h);
            gpuconv_plan_free(plan);
            gpuconv_ir_free(ir);
        }
    note("direct at every level, beside what is louder", worst);
}

static void test_several_chunks_agree_with_the_cpu(void **state) {
    (void)state;
    static const int64_t lengths[] = {64, 512, 5000, 100000, 441000};
    oracle_random random = {2};
    for (int a = 0; a < COUNT(harness_algorithms); a++) {
        for (int l = 0; l < COUNT(lengths); l++) {
            int64_t taps = lengths[l], frames = 1900000;
            gpuconv_algorithm algorithm = harness_algorithms[a];
            if (algorithm == GPUCONV_ALGORITHM_DIRECT && taps > 5000)
                continue;
            guarded h, x = guarded_random(&random, 2, frames);
            gpuconv_ir *ir = harness_response(&random, 2, 2, taps, &h);
            gpuconv_plan *gpu = plan_for(ir, GPUCONV_BACKEND_CUDA, algorithm, frames);
            gpuconv_plan *cpu = plan_for(ir, GPUCONV_BACKEND_CPU, GPUCONV_ALGORITHM_AUTO, frames);
            CHECK(gpuconv_plan_chunk(gpu) < frames, "one chunk holds it all: nothing is tested");
            guarded y = harness_convolve(gpu, ir, &x), z = harness_convolve(cpu, ir, &x);
            double e = harness_distance(&y, &z, z.frames);
            char name[120];
            snprintf(name, sizeof name, "%s against the CPU, stereo, %lld taps, %lld frames",
                     gpuconv_algorithm_name(algorithm), (long long)taps, (long long)frames);
            CHECK(e <= -115, "%s: %.1f dB", name, e);
            note(name, e);
            guarded_free(&y);
            guarded_free(&z);
            guarded_free(&x);
            guarded_free(&h);
            gpuconv_plan_free(gpu);
            gpuconv_plan_free(cpu);
            gpuconv_ir_free(ir);
        }
    }
}

static void test_any_split_into_blocks_gives_the_same_samples(void **state) {
    (void)state;
    oracle_random random = {3};
    for (int a = 0; a < COUNT(harness_algorithms); a++) {
        int64_t frames = 700001, taps = 700;
        guarded h, x = guarded_random(&random, 2, frames);
        gpuconv_ir *ir = harness_response(&random, 4, 2, taps, &h);
        gpuconv_plan *plan = plan_for(ir, GPUCONV_BACKEND_CUDA, harness_algorithms[a], frames);
        gpuconv_engine *engine;
        CHECK(gpuconv_engine_new(plan, &engine, NULL) == GPUCONV_OK, "no engine");
        guarded whole = harness_run(engine, &x, 2, taps, (harness_split){.fixed = frames});
        static const int64_t blocks[] = {1021, 65536, 300007, -5000};
        for (int b = 0; b < COUNT(blocks); b++) {
            CHECK(gpuconv_engine_reset(engine) == GPUCONV_OK, "no reset");
            guarded parts = harness_run(engine, &x, 2, taps, (harness_split){.fixed = blocks[b], .random = {9}});
            CHECK(oracle_identical("blocks", &parts, parts.frames, &whole, whole.frames), "blocks of %lld, %s",
                  (long long)blocks[b], gpuconv_algorithm_name(harness_algorithms[a]));
            guarded_free(&parts);
        }
        guarded_free(&whole);
        gpuconv_engine_free(engine);
        gpuconv_plan_free(plan);
        gpuconv_ir_free(ir);
        guarded_free(&h);
        guarded_free(&x);
    }
}

static void test_a_single_tap_at_every_partition_edge_moves_the_input(void **state) {
    (void)state;
    int64_t taps = 40000, frames = 3001;
    oracle_random random = {4};
    for (int a = 0; a < COUNT(harness_algorithms); a++) {
        int64_t length = harness_algorithms[a] == GPUCONV_ALGORITHM_OVERLAP_SAVE ? 7000 : taps;
        int64_t step = harness_algorithms[a] == GPUCONV_ALGORITHM_DIRECT ? 512 : 4096;
        for (int64_t edge = 0; edge < length; edge += step) {
            for (int64_t at = edge - 1; at <= edge + 1; at++) {
                if (at < 0 || at >= length)
                    continue;
                guarded h = guarded_new(1, length), x = guarded_random(&random, 1, frames);
                memset(h.channel[0], 0, (size_t)length * sizeof(float));
                h.channel[0][at] = 1;
                gpuconv_ir *ir = harness_route(&h, 1);
                gpuconv_plan *plan = plan_for(ir, GPUCONV_BACKEND_CUDA, harness_algorithms[a], frames);
                guarded y = harness_convolve(plan, ir, &x);
                for (int64_t i = 0; i < y.frames; i++) {
                    float want = i >= at && i < at + frames ? x.channel[0][i - at] : 0;
                    CHECK(fabsf(y.channel[0][i] - want) <= 2e-6f, "%s, tap at %lld: frame %lld is %g, not %g",
                          gpuconv_algorithm_name(harness_algorithms[a]), (long long)at, (long long)i,
                          (double)y.channel[0][i], (double)want);
                }
                guarded_free(&y);
                guarded_free(&x);
                guarded_free(&h);
                gpuconv_plan_free(plan);
                gpuconv_ir_free(ir);
            }
        }
    }
}

static void test_silence_stays_silence(void **state) {
    (void)state;
    oracle_random random = {5};
    for (int a = 0; a < COUNT(harness_algorithms); a++) {
        guarded h, x = guarded_new(1, 5000);
        memset(x.channel[0], 0, 5000 * sizeof(float));
        gpuconv_ir *ir = harness_response(&random, 1, 1, 900, &h);
        gpuconv_plan *plan = plan_for(ir, GPUCONV_BACKEND_CUDA, harness_algorithms[a], 5000);
        guarded y = harness_convolve(plan, ir, &x);
        for (int64_t i = 0; i < y.frames; i++)
            CHECK(y.channel[0][i] == 0.0f, "frame %lld of silence is %g", (long long)i, (double)y.channel[0][i]);
        guarded_free(&y);
        guarded_free(&x);
        guarded_free(&h);
        gpuconv_plan_free(plan);
        gpuconv_ir_free(ir);
    }
}

/* One run through the chunk interface in a file's own formats. */
static void *run_format(const gpuconv_plan *plan, gc_pcm in, gc_pcm out, const void *raw, int64_t frames, int inputs,
                        int outputs, int64_t total, gc_measurement *m) {
    gpuconv_engine *engine;
    CHECK(gc_engine_new(plan, in, out, &engine, NULL) == GPUCONV_OK, "no engine");
    CHECK(frames < gpuconv_plan_chunk(plan) && total <= gpuconv_plan_chunk(plan), "more than a chunk");
    void *room;
    int64_t bytes = frames * inputs * gc_pcm_bytes(in), got;
    CHECK(gc_engine_acquire(engine, &room) == GPUCONV_OK, "no room");
    memcpy(room, raw, (size_t)bytes);
    CHECK(gc_engine_submit(engine, frames) == GPUCONV_OK && gc_engine_flush(engine) == GPUCONV_OK, "not taken");
    const void *result;
    CHECK(gc_engine_take(engine, &result, &got) == GPUCONV_OK && got == total, "%lld frames", (long long)got);
    void *copy = gc_calloc(total, (int64_t)outputs * gc_pcm_bytes(out));
    CHECK(copy, "no memory");
    memcpy(copy, result, (size_t)(total * outputs * gc_pcm_bytes(out)));
    gc_engine_release(engine);
    gc_engine_measure(engine, m);
    gpuconv_engine_free(engine);
    return copy;
}

static void test_every_sample_format_is_converted_as_on_the_cpu(void **state) {
    (void)state;
    static const gc_pcm formats[] = {{GC_S16, 16}, {GC_S16, 8}, {GC_S24, 24}, {GC_S32, 24}, {GC_S32, 32}, {GC_F32, 32}};
    oracle_random random = {6};
    int64_t frames = quick ? 500 : 20000;

    guarded h = guarded_new(1, 1);
    h.channel[0][0] = 1.5f; /* one exact tap: both backends compute the same float, and some of them clip */
    gpuconv_ir *ir = harness_route(&h, 3);
    gpuconv_plan *gpu = plan_for(ir, GPUCONV_BACKEND_CUDA, GPUCONV_ALGORITHM_DIRECT, frames + 100);
    gpuconv_plan *cpu = plan_for(ir, GPUCONV_BACKEND_CPU, GPUCONV_ALGORITHM_DIRECT, frames + 100);
    for (int i = 0; i < COUNT(formats); i++) {
        for (int o = quick ? i : 0; o < (quick ? i + 1 : COUNT(formats)); o++) {
            int64_t bytes = frames * 3 * gc_pcm_bytes(formats[i]);
            unsigned char *raw = malloc((size_t)bytes);
            CHECK(raw, "no memory");
            if (formats[i].container == GC_F32)
                oracle_fill(&random, (float *)(void *)raw, frames * 3);
            else
                for (int64_t b = 0; b < bytes; b++)
                    raw[b] = (unsigned char)oracle_bits(&random);
            gc_measurement mg, mc;
            void *g = run_format(gpu, formats[i], formats[o], raw, frames, 3, 3, frames, &mg);
            void *c = run_format(cpu, formats[i], formats[o], raw, frames, 3, 3, frames, &mc);
            CHECK(memcmp(g, c, (size_t)(frames * 3 * gc_pcm_bytes(formats[o]))) == 0, "format %d to %d differs", i, o);
            CHECK(mg.overs.clipped == mc.overs.clipped && !(mg.overs.peak < mc.overs.peak) &&
                      !(mg.overs.peak > mc.overs.peak),
                  "overs differ: %lld and %lld", (long long)mg.overs.clipped, (long long)mc.overs.clipped);
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

/* Signals and responses of all lengths in one lane: parts of responses, hops, and what ends beside either. */
static void test_signals_of_any_length_in_one_lane_agree_with_the_oracle(void **state) {
    (void)state;
    static const int64_t lengths[] = {1, 2, 5, 1000, 24768, 24769, 32768, 50001, 300000};
    static const int64_t taps[] = {1, 2, 4, 5, 100, 8000, 16384, 16385, 40000};
    enum { SIGNALS = COUNT(lengths), RESPONSES = COUNT(taps), ROOM = 1 << 25 };
    const gc_pcm floats = {GC_F32, 32};
    int signals = quick ? 6 : SIGNALS, responses = quick ? 6 : RESPONSES;
    oracle_random random = {11};
    gpuconv_error error = {0};
    gc_lane *lane;
    double worst = -HUGE_VAL;
    CHECK(gc_batch_cuda.lane(0, ROOM, SIGNALS * RESPONSES, &lane, &error) == GPUCONV_OK, "%s", error.message);
    gc_lane_item items[SIGNALS * RESPONSES];
    guarded x[SIGNALS], h[RESPONSES];
    float *on_device[RESPONSES];
    int count = 0;
    int64_t in = 0, out = 0;
    for (int r = 0; r < responses; r++) {
        h[r] = guarded_random(&random, 1, taps[r]);
        on_device[r] = gc_batch_cuda.keep(0, h[r].channel[0], taps[r]);
        CHECK(on_device[r], "no memory on the device");
    }
    for (int s = 0; s < signals; s++) {
        x[s] = guarded_random(&random, 1, lengths[s]);
        for (int r = 0; r < responses; r++) {
            gc_lane_item *item = &items[count++];
            *item = (gc_lane_item){.in = {in, floats, 1},
                                   .out = {out, floats, 1},
                                   .frames = lengths[s],
                                   .taps_count = taps[r],
                                   .taps = on_device[r]};
            memcpy((char *)gc_batch_cuda.in(lane) + in, x[s].channel[0], (size_t)lengths[s] * sizeof(float));
            in += (lengths[s] + 3) / 4 * 16;
            out += (lengths[s] + taps[r] + 2) / 4 * 16;
            if ((s + r) % 3 == 0) { /* the response among the samples */
                memcpy((char *)gc_batch_cuda.in(lane) + in, h[r].channel[0], (size_t)taps[r] * sizeof(float));
                item->taps = NULL;
                item->taps_at = in;
                in += (taps[r] + 3) / 4 * 16;
            }
            CHECK(in <= ROOM && out <= ROOM, "the lane is too small for the test");
        }
    }
    memset((void *)(uintptr_t)gc_batch_cuda.out(lane), 0xff, (size_t)out);
    CHECK(gc_batch_cuda.begin(lane, items, count, in, out, &error) == GPUCONV_OK, "%s", error.message);
    CHECK(gc_batch_cuda.finish(lane, items, count, &error) == GPUCONV_OK, "%s", error.message);
    for (int i = 0; i < count; i++) {
        const guarded *signal = &x[i / responses], *response = &h[i % responses];
        const float *got = (const float *)gc_batch_cuda.out(lane) + items[i].out.at / 4;
        int64_t total = signal->frames + response->frames - 1;
        double wrong = 0, power = 0;
        for (int64_t n = 0; n < total; n++)
            CHECK(isfinite(got[n]), "%lld x %lld: frame %lld is no number", (long long)signal->frames,
                  (long long)response->frames, (long long)n);
        for (int k = 0; k < 64; k++) {
            int64_t n = k == 0 ? 0 : k == 1 ? total - 1 : oracle_below(&random, total);
            double want = oracle_frame(signal->channel[0], signal->frames, response->channel[0], response->frames, n);
            wrong += ((double)got[n] - want) * ((double)got[n] - want);
            power += want * want;
        }
        double e = 10 * log10(wrong / power);
        CHECK(e <= -120 || wrong <= 0, "%lld x %lld: %.1f dB", (long long)signal->frames, (long long)response->frames,
              e);
        worst = e > worst ? e : worst;
    }
    note("signals of any length in one lane", worst);
    gc_batch_cuda.free(lane);
    for (int r = 0; r < responses; r++) {
        gc_batch_cuda.forget(0, on_device[r]);
        guarded_free(&h[r]);
    }
    for (int s = 0; s < signals; s++)
        guarded_free(&x[s]);
}

/* Channels that lie as files store them, both ways, give to the bit what floats give that are converted on the CPU. */
static void test_samples_as_files_store_them_give_what_floats_give(void **state) {
    (void)state;
    static const gc_pcm formats[] = {{GC_S16, 16}, {GC_S16, 8}, {GC_S24, 24}, {GC_S32, 24}, {GC_S32, 32}, {GC_F32, 32}};
    static const int64_t lengths[] = {1, 1000, 40000};
    enum { CHANNELS = 3, TAPS = 700, ROOM = 1 << 23, STORED = 0, FLOATS = ROOM / 2 };
    const gc_pcm floats = {GC_F32, 32};
    oracle_random random = {13};
    gpuconv_error error = {0};
    gc_lane *lane;
    CHECK(gc_batch_cuda.lane(0, ROOM, 2 * CHANNELS, &lane, &error) == GPUCONV_OK, "%s", error.message);
    guarded h = guarded_random(&random, CHANNELS, TAPS);
    unsigned char *in = gc_batch_cuda.in(lane), *packed = malloc(ROOM / 2);
    CHECK(packed, "no memory");
    const unsigned char *out = gc_batch_cuda.out(lane);
    for (int i = 0; i < COUNT(formats); i++)
        for (int l = 0; l < COUNT(lengths); l++) {
            const int64_t frames = lengths[l], total = frames + TAPS - 1, in_row = 4 * ((frames + 3) / 4 * 4),
                          out_row = 4 * ((total + 3) / 4 * 4), taps_at = ROOM - 16 * CHANNELS * TAPS;
            const gc_pcm from = formats[i], to = formats[COUNT(formats) - 1 - i];
            float *planar[CHANNELS];
            const float *results[CHANNELS];
            gc_lane_item items[2 * CHANNELS];
            oracle_fill(&random, (float *)(void *)packed, frames * CHANNELS);
            for (int c = 0; c < CHANNELS; c++)
                planar[c] = (float *)(void *)packed + c * frames;
            gc_pcm_overs overs = {0};
            gc_pcm_pack(gc_simd_best(), from, (const float *const *)planar, 0, CHANNELS, frames, in + STORED, &overs);
            for (int c = 0; c < CHANNELS; c++) {
                planar[c] = (float *)(void *)(in + FLOATS + c * in_row);
                results[c] = (const float *)(const void *)(out + FLOATS + c * out_row);
                memcpy(in + taps_at + 4 * c * TAPS, h.channel[c], TAPS * sizeof(float));
                items[c] = (gc_lane_item){.in = {STORED + c * gc_pcm_bytes(from), from, CHANNELS},
                                          .out = {STORED + c * gc_pcm_bytes(to), to, CHANNELS},
                                          .frames = frames,
                                          .taps_count = TAPS,
                                          .taps_at = taps_at + 4 * c * TAPS};
                items[CHANNELS + c] = items[c];
                items[CHANNELS + c].in = (gc_lane_samples){FLOATS + c * in_row, floats, 1};
                items[CHANNELS + c].out = (gc_lane_samples){FLOATS + c * out_row, floats, 1};
            }
            gc_pcm_unpack(gc_simd_best(), from, in + STORED, CHANNELS, frames, planar, 0);
            CHECK(gc_batch_cuda.begin(lane, items, 2 * CHANNELS, ROOM, ROOM, &error) == GPUCONV_OK, "%s",
                  error.message);
            CHECK(gc_batch_cuda.finish(lane, items, 2 * CHANNELS, &error) == GPUCONV_OK, "%s", error.message);
            overs = (gc_pcm_overs){0};
            gc_pcm_pack(gc_simd_best(), to, results, 0, CHANNELS, total, packed, &overs);
            CHECK(memcmp(packed, out + STORED, (size_t)(total * CHANNELS * gc_pcm_bytes(to))) == 0,
                  "format %d, %lld frames: other samples than by floats", i, (long long)frames);
            int64_t clipped = items[0].clipped + items[1].clipped + items[2].clipped;
            CHECK(to.container == GC_F32 || clipped == overs.clipped, "%lld clipped, %lld by floats",
                  (long long)clipped, (long long)overs.clipped);
        }
    gc_batch_cuda.free(lane);
    guarded_free(&h);
    free(packed);
}

static const char *folder;

static gpuconv_ir *load(const char *kind, const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s/%s.flac", folder, kind, name);
    gpuconv_ir *ir;
    gpuconv_error error = {0};
    CHECK(gpuconv_ir_load(path, &ir, &error) == GPUCONV_OK, "%s", error.message);
    return ir;
}

typedef struct bank_responses {
    const guarded *taps;
    int64_t count;
} bank_responses;

static void bank_response(void *context, int channel, float *taps) {
    const bank_responses *r = context;
    memcpy(taps, r->taps->channel[channel], (size_t)r->count * sizeof *taps);
}

/* Blocks and lengths that begin and end each level of partitions, and channels whose turns fall together and apart. */
static void test_a_bank_of_channels_agrees_with_the_oracle(void **state) {
    (void)state;
    static const struct {
        int channels, block;
        int64_t taps;
    } cases[] = {{1, 32, 1},      {3, 32, 33},     {5, 64, 64},    {9, 64, 65},      {4, 128, 1023}, {70, 128, 1025},
                 {17, 128, 9000}, {3, 256, 20000}, {2, 512, 8191}, {2, 1024, 40000}, {1, 64, 30000}};
    oracle_random random = {.state = 81};
    double worst = -HUGE_VAL;
    for (int k = 0; k < COUNT(cases); k += quick ? 4 : 1) {
        int channels = cases[k].channels, block = cases[k].block;
        int64_t taps_count = cases[k].taps, periods = (taps_count + 3000) / block + 5, frames = periods * block;
        guarded taps = guarded_random(&random, channels, taps_count), in = guarded_random(&random, channels, frames);
        bank_responses responses = {&taps, taps_count};
        gc_bank_config config = {channels, block, taps_count, 0, bank_response, &responses};
        gpuconv_error error = {0};
        gc_bank *bank;
        CHECK(gc_bank_cuda.open(&config, &bank, &error) == GPUCONV_OK, "%s", error.message);
        float *now = malloc((size_t)channels * (size_t)block * sizeof *now);
        double wrong = 0, power = 0;
        for (int64_t p = 0; p < periods; p++) {
            const float *out;
            for (int c = 0; c < channels; c++)
                memcpy(now + (int64_t)c * block, in.channel[c] + p * block, (size_t)block * sizeof *now);
            CHECK(gc_bank_cuda.process(bank, now, &out, &error) == GPUCONV_OK, "%s", error.message);
            for (int place = 0; place < 3; place++) {
                int c = (int)oracle_below(&random, channels);
                int64_t i = place == 0 ? 0 : place == 1 ? block - 1 : oracle_below(&random, block);
                double got = (double)out[(int64_t)c * block + i];
                double want = oracle_frame(in.channel[c], frames, taps.channel[c], taps_count, p * block + i);
                wrong += (got - want) * (got - want);
                power += want * want;
            }
        }
        double decibels = 10 * log10(wrong / power);
        CHECK(decibels <= -120, "%d channels, blocks of %d, %lld taps: %.1f dB", channels, block, (long long)taps_count,
              decibels);
        worst = fmax(worst, decibels);
        gc_bank_cuda.free(bank);
        free(now);
        guarded_free(&taps);
        guarded_free(&in);
    }
    gc_bank_config bad = {1, 100, 5, 0, bank_response, NULL};
    gpuconv_error error = {0};
    gc_bank *none;
    assert_int_equal(gc_bank_cuda.open(&bad, &none, &error), GPUCONV_ERROR_ARGUMENT);
    note("a bank of channels in real time", worst);
}

typedef struct bank_taps {
    int64_t at[64], count;
} bank_taps;

static void single_tap(void *context, int channel, float *taps) {
    const bank_taps *t = context;
    memset(taps, 0, (size_t)t->count * sizeof *taps);
    taps[t->at[channel]] = 0.5f;
}

/* A channel for every edge of partitions that there can be, and for the frames beside it. */
static void test_a_single_tap_at_every_edge_of_a_bank_delays_by_just_so_much(void **state) {
    (void)state;
    enum { BLOCK = 128, TAPS = 20000, PERIODS = TAPS / BLOCK + 40 };
    static const int64_t edges[] = {128, 256, 384, 512, 1024, 1536, 2048, 4096, 6144, 8192, 16384};
    bank_taps wish = {.count = TAPS};
    int channels = 0;
    wish.at[channels++] = 0;
    wish.at[channels++] = TAPS - 1;
    for (int e = 0; e < COUNT(edges); e++)
        for (int k = -1; k <= 1; k++)
            wish.at[channels++] = edges[e] + k;
    oracle_random random = {.state = 83};
    guarded x = guarded_random(&random, channels, PERIODS * BLOCK);
    gc_bank_config config = {channels, BLOCK, TAPS, 0, single_tap, &wish};
    gpuconv_error error = {0};
    gc_bank *bank;
    CHECK(gc_bank_cuda.open(&config, &bank, &error) == GPUCONV_OK, "%s", error.message);
    float *now = malloc((size_t)channels * BLOCK * sizeof *now);
    for (int64_t p = 0; p < PERIODS; p++) {
        const float *out;
        for (int c = 0; c < channels; c++)
            memcpy(now + (int64_t)c * BLOCK, x.channel[c] + p * BLOCK, BLOCK * sizeof *now);
        CHECK(gc_bank_cuda.process(bank, now, &out, &error) == GPUCONV_OK, "%s", error.message);
        for (int c = 0; c < channels; c++)
            for (int64_t i = 0; i < BLOCK; i++) {
                int64_t n = p * BLOCK + i - wish.at[c];
                double want = n < 0 ? 0 : 0.5 * (double)x.channel[c][n];
                CHECK(fabs((double)out[(int64_t)c * BLOCK + i] - want) < 2e-6,
                      "a tap at %lld: frame %lld is %g, not %g", (long long)wish.at[c], (long long)(p * BLOCK + i),
                      (double)out[(int64_t)c * BLOCK + i], want);
            }
    }
    gc_bank_cuda.free(bank);
    free(now);
    guarded_free(&x);
}

/* What plays with its tail on the GPU, in calls of all sizes, true stereo. */
static void test_a_tail_on_the_gpu_in_real_time_agrees_with_the_oracle(void **state) {
    (void)state;
    enum { FRAMES = 30000, TAPS = 15000 };
    oracle_random random = {.state = 82};
    guarded taps, x = guarded_random(&random, 2, FRAMES), y = guarded_new(2, FRAMES);
    gpuconv_ir *ir = harness_response(&random, 4, 2, TAPS, &taps);
    gpuconv_realtime_config config = {
        .rate = 48000, .block = 256, .patient = true, .backend = GPUCONV_BACKEND_CUDA, .device = -1};
    gpuconv_realtime *rt;
    gpuconv_error error = {0};
    CHECK(gpuconv_realtime_new(ir, &config, &rt, &error) == GPUCONV_OK, "%s", error.message);
    for (int64_t at = 0, n = 1; at < FRAMES; at += n, n = n * 5 % 1009 + 1) {
        n = n < FRAMES - at ? n : FRAMES - at;
        const float *in[] = {x.channel[0] + at, x.channel[1] + at};
        float *out[] = {y.channel[0] + at, y.channel[1] + at};
        gpuconv_realtime_process(rt, in, out, n);
    }
    assert_int_equal(gpuconv_realtime_backend(rt), GPUCONV_BACKEND_CUDA);
    gpuconv_realtime_free(rt);
    int outputs;
    double *want = harness_expected(&taps, &x, &outputs), wrong = 0, power = 0;
    for (int c = 0; c < 2; c++)
        for (int64_t i = 0; i < FRAMES; i++) {
            double w = want[c * (int64_t)(FRAMES + TAPS - 1) + i], d = (double)y.channel[c][i] - w;
            wrong += d * d;
            power += w * w;
        }
    double decibels = 10 * log10(wrong / power);
    CHECK(decibels <= -120, "%.1f dB", decibels);
    note("a tail in real time", decibels);
    free(want);
    gpuconv_ir_free(ir);
    guarded_free(&taps);
    guarded_free(&x);
    guarded_free(&y);
}

static void test_the_committed_material_agrees_with_the_cpu(void **state) {
    (void)state;
    static const char *const samples[] = {"click", "drums", "speech", "strings"};
    static const char *const impulses[] = {"bathroom", "cabinet",    "cathedral", "hall",   "hall-true-stereo",
                                           "plate",    "small-room", "spring",    "studio", "telephone"};
    for (int s = 0; s < COUNT(samples); s++) {
        for (int i = 0; i < COUNT(impulses); i++) {
            gpuconv_ir *sample = load("samples", samples[s]), *response = load("impulses", impulses[i]), *ir;
            int inputs = sample->planes;
            if (gpuconv_ir_route(response, inputs, &ir, NULL) == GPUCONV_OK) {
                guarded x = guarded_new(inputs, sample->frames);
                for (int c = 0; c < inputs; c++)
                    memcpy(x.channel[c], gc_ir_plane(sample, c), (size_t)sample->frames * sizeof(float));
                gpuconv_plan *gpu = plan_for(ir, GPUCONV_BACKEND_CUDA, GPUCONV_ALGORITHM_AUTO, x.frames);
                gpuconv_plan *cpu = plan_for(ir, GPUCONV_BACKEND_CPU, GPUCONV_ALGORITHM_AUTO, x.frames);
                guarded y = harness_convolve(gpu, ir, &x), z = harness_convolve(cpu, ir, &x);
                double e = harness_distance(&y, &z, z.frames);
                char name[120];
                snprintf(name, sizeof name, "%s in %s, %s against the CPU", samples[s], impulses[i],
                         gpuconv_algorithm_name(gpuconv_plan_algorithm(gpu)));
                CHECK(e <= -115, "%s: %.1f dB", name, e);
                note(name, e);
                guarded_free(&y);
                guarded_free(&z);
                guarded_free(&x);
                gpuconv_plan_free(gpu);
                gpuconv_plan_free(cpu);
                gpuconv_ir_free(ir);
            }
            gpuconv_ir_free(sample);
            gpuconv_ir_free(response);
        }
    }
}

int main(int argc, char **argv) {
    const char *out = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0)
            quick = true;
        else if (strcmp(argv[i], "--material") == 0 && i + 1 < argc)
            folder = argv[++i];
        else
            out = argv[i];
    }
    record = json_array();
    const struct CMUnitTest fast[] = {
        cmocka_unit_test(test_every_algorithm_and_topology_agrees_with_the_oracle),
        cmocka_unit_test(test_direct_keeps_its_precision_at_every_level),
        cmocka_unit_test(test_every_sample_format_is_converted_as_on_the_cpu),
        cmocka_unit_test(test_signals_of_any_length_in_one_lane_agree_with_the_oracle),
        cmocka_unit_test(test_samples_as_files_store_them_give_what_floats_give),
        cmocka_unit_test(test_a_bank_of_channels_agrees_with_the_oracle),
        cmocka_unit_test(test_a_single_tap_at_every_edge_of_a_bank_delays_by_just_so_much),
        cmocka_unit_test(test_a_tail_on_the_gpu_in_real_time_agrees_with_the_oracle),
    };
    const struct CMUnitTest slow[] = {
        cmocka_unit_test(test_any_split_into_blocks_gives_the_same_samples),
        cmocka_unit_test(test_a_single_tap_at_every_partition_edge_moves_the_input),
        cmocka_unit_test(test_silence_stays_silence),
        cmocka_unit_test(test_several_chunks_agree_with_the_cpu),
        cmocka_unit_test(test_the_committed_material_agrees_with_the_cpu),
    };
    int failed = cmocka_run_group_tests_name("gpu", fast, NULL, NULL);
    if (!quick)
        failed += cmocka_run_group_tests_name("gpu, long", slow, NULL, NULL);
    if (out && json_dump_file(record, out, JSON_INDENT(1)) != 0) {
        fprintf(stderr, "gpu_test: %s cannot be written\n", out);
        return 1;
    }
    json_decref(record);
    return failed ? 1 : 0;
}
