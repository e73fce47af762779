/* Runs engines. Every call gets a guarded block of exactly the length that it may fill. */
#include "harness.h"

#include "libgpuconv/conv/plan.h"
#include "libgpuconv/core/memory.h"

#include <math.h>

const gpuconv_algorithm harness_algorithms[4] = {GPUCONV_ALGORITHM_DIRECT, GPUCONV_ALGORITHM_OVERLAP_SAVE,
                                                 GPUCONV_ALGORITHM_PARTITIONED, GPUCONV_ALGORITHM_MATRIX};
bool harness_quick;

bool harness_schedule(gpuconv_plan *plan, int64_t points) {
    const gc_algorithm *a = plan->choice.algorithm;
    gc_problem problem;
    CHECK(gc_problem_init(&problem, plan->ir, -1, -1), "no memory");
    const bool fits = points >= a->least && points <= a->most &&
                      (a->fits(&problem, &plan->device, points, 0, &plan->choice) ||
                       a->fits(&problem, &plan->device, points, 1, &plan->choice));
    gc_problem_free(&problem);
    return fits;
}

void harness_chunk(gpuconv_plan *plan, int64_t frames) {
    const int64_t step = plan->choice.schedule.transform ? 2 * plan->choice.schedule.hop : 512;
    plan->choice.chunk = (frames / step + 1) * step;
}

gpuconv_ir *harness_route(const guarded *taps, int inputs) {
    gpuconv_ir *ir, *routed;
    gpuconv_error error = {0};
    gpuconv_status status =
        gpuconv_ir_new((const float *const *)taps->channel, taps->channels, taps->frames, 48000, &ir, &error);
    CHECK(status == GPUCONV_OK, "response refused: %s", error.message);
    status = gpuconv_ir_route(ir, inputs, &routed, &error);
    CHECK(status == GPUCONV_OK, "routing refused: %s", error.message);
    gpuconv_ir_free(ir);
    return routed;
}

gpuconv_ir *harness_response(oracle_random *random, int channels, int inputs, int64_t frames, guarded *taps) {
    *taps = guarded_random(random, channels, frames);
    for (int c = 0; c < channels; c++)
        for (int64_t i = 0; i < frames; i++)
            taps->channel[c][i] *= (float)exp(-2.0 * (double)i / (double)frames);
    return harness_route(taps, inputs);
}

gpuconv_plan *harness_plan_on(gpuconv_backend backend, const gpuconv_ir *ir, gpuconv_algorithm algorithm,
                              int64_t frames, int threads) {
    gpuconv_config config = gpuconv_config_default();
    config.latency_frames = -1;
    config.backend = backend;
    config.algorithm = algorithm;
    config.frames = frames;
    config.threads = threads;
    gpuconv_plan *plan;
    gpuconv_error error = {0};
    gpuconv_status status = gpuconv_plan_new(ir, &config, &plan, &error);
    CHECK(status == GPUCONV_OK, "plan refused: %s", error.message);
    CHECK(gpuconv_plan_backend(plan) == backend, "the plan has another backend than requested");
    if (algorithm != GPUCONV_ALGORITHM_AUTO)
        CHECK(gpuconv_plan_algorithm(plan) == algorithm, "the plan has %s instead of the requested algorithm",
              gpuconv_algorithm_name(gpuconv_plan_algorithm(plan)));
    return plan;
}

/* Checks the block that a call has filled and appends its `produced` frames to `out` at *have. */
static void append(guarded *out, int64_t *have, const guarded *block, int64_t produced) {
    CHECK(produced >= 0 && produced <= block->frames, "%lld frames from a call that may return at most %lld",
          (long long)produced, (long long)block->frames);
    CHECK(guarded_intact(block), "the call wrote outside its block");
    CHECK(*have + produced <= out->frames, "more than %lld frames in all", (long long)out->frames);
    for (int c = 0; c < out->channels; c++)
        memcpy(out->channel[c] + *have, block->channel[c], (size_t)produced * sizeof(float));
    *have += produced;
}

static int64_t next_length(harness_split *split) {
    return split->fixed > 0 ? split->fixed : oracle_below(&split->random, 1 - split->fixed);
}

guarded harness_run(gpuconv_engine *engine, const guarded *in, int outputs, int64_t taps, harness_split split) {
    guarded out = guarded_new(outputs, in->frames + taps - 1);
    const float **at = malloc((size_t)in->channels * sizeof *at);
    CHECK(at, "no memory");
    int64_t have = 0, produced;
    for (int64_t fed = 0; fed < in->frames;) {
        int64_t n = next_length(&split);
        n = n < in->frames - fed ? n : in->frames - fed;
        for (int c = 0; c < in->channels; c++)
            at[c] = in->channel[c] + fed;
        guarded block = guarded_new(outputs, n);
        gpuconv_status status = gpuconv_engine_process(engine, at, n, block.channel, &produced);
        CHECK(status == GPUCONV_OK, "process: %s", gpuconv_status_text(status));
        append(&out, &have, &block, produced);
        guarded_free(&block);
        fed += n;
    }
    do {
        int64_t n = next_length(&split) + 1;
        guarded block = guarded_new(outputs, n);
        gpuconv_status status = gpuconv_engine_drain(engine, block.channel, n, &produced);
        CHECK(status == GPUCONV_OK, "drain: %s", gpuconv_status_text(status));
        append(&out, &have, &block, produced);
        guarded_free(&block);
    } while (produced > 0);
    free(at);
    CHECK(have == out.frames, "%lld frames instead of %lld", (long long)have, (long long)out.frames);
    return out;
}

guarded harness_convolve(const gpuconv_plan *plan, const gpuconv_ir *ir, const guarded *in) {
    gpuconv_engine *engine;
    gpuconv_error error = {0};
    gpuconv_status status = gpuconv_engine_new(plan, &engine, &error);
    CHECK(status == GPUCONV_OK, "engine refused: %s", error.message);
    harness_split whole = {.fixed = in->frames + gpuconv_ir_frames(ir)};
    guarded out = harness_run(engine, in, gpuconv_ir_outputs(ir), gpuconv_ir_frames(ir), whole);
    gpuconv_engine_free(engine);
    return out;
}

double *harness_expected(const guarded *taps, const guarded *in, int *outputs) {
    oracle_route *route = malloc((size_t)(taps->channels * in->channels) * sizeof *route);
    CHECK(route, "no memory");
    int routes = oracle_routes((const float *const *)taps->channel, taps->channels, in->channels, route, outputs);
    CHECK(routes > 0, "no routes for these channel counts");
    double *want = malloc((size_t)*outputs * (size_t)(in->frames + taps->frames - 1) * sizeof *want);
    CHECK(want, "no memory");
    oracle_convolve((const float *const *)in->channel, in->frames, route, routes, taps->frames, *outputs, want);
    free(route);
    return want;
}

guarded harness_offline(const gpuconv_ir *ir, const guarded *x) {
    gpuconv_config config = gpuconv_config_default();
    gpuconv_plan *plan;
    gpuconv_error error = {0};
    config.backend = GPUCONV_BACKEND_CPU;
    CHECK(gpuconv_plan_new(ir, &config, &plan, &error) == GPUCONV_OK, "%s", error.message);
    guarded y = harness_convolve(plan, ir, x);
    gpuconv_plan_free(plan);
    return y;
}

guarded harness_play(gpuconv_realtime *rt, const guarded *x, int outputs, int block, bool *inside) {
    bool ignored;
    static const int changing[] = {1, 64, 7, 480, 31, 1024, 2, 333, 4096, 5};
    guarded y = guarded_new(outputs, x->frames);
    const float *in[8];
    float *out[8];
    for (int64_t at = 0, call = 0; at < x->frames; call++) {
        int64_t n = gc_min(block ? block : changing[call % COUNT(changing)], x->frames - at);
        for (int c = 0; c < x->channels; c++)
            in[c] = x->channel[c] + at;
        for (int c = 0; c < outputs; c++)
            out[c] = y.channel[c] + at;
        *(inside ? inside : &ignored) = true;
        gpuconv_realtime_process(rt, in, out, n);
        *(inside ? inside : &ignored) = false;
        at += n;
    }
    return y;
}

double harness_distance(const guarded *a, const guarded *b, int64_t frames) {
    double error = 0, power = 0;
    for (int c = 0; c < a->channels; c++)
        for (int64_t i = 0; i < frames; i++) {
            double d = (double)a->channel[c][i] - (double)b->channel[c][i];
            error += d * d;
            power += (double)b->channel[c][i] * (double)b->channel[c][i];
        }
    return 10 * log10(error / power);
}

gpuconv_ir *harness_ir(const guarded *taps, double rate) {
    gpuconv_ir *ir;
    gpuconv_error error = {0};
    gpuconv_status status =
        gpuconv_ir_new((const float *const *)taps->channel, taps->channels, taps->frames, rate, &ir, &error);
    CHECK(status == GPUCONV_OK, "refused: %s", error.message);
    return ir;
}

gpuconv_ir *harness_random_ir(int channels, int64_t frames, guarded *taps) {
    oracle_random random = {.state = 91};
    *taps = guarded_random(&random, channels, frames);
    return harness_ir(taps, 48000);
}

gpuconv_ir *harness_square_ir(int channels, bool dense, int64_t frames) {
    const int planes = dense ? channels * channels : channels;
    gpuconv_ir *ir = gc_ir_blank(channels, channels, planes, planes, frames, 48000);
    CHECK(ir, "no memory");
    for (int p = 0; p < planes; p++)
        ir->route[p] = (gc_route){.input = p % channels, .output = dense ? p / channels : p, .plane = p};
    return ir;
}

void harness_check_history(const gpuconv_ir *ir, const char *words) {
    CHECK(strstr(gpuconv_ir_history(ir), words), "'%s' does not say '%s'", gpuconv_ir_history(ir), words);
}

gpuconv_realtime *harness_realtime(const gpuconv_ir *ir, int block, bool freewheel) {
    gpuconv_realtime_config config = {.size = sizeof config, .rate = 48000, .block = block, .freewheel = freewheel};
    gpuconv_realtime *rt;
    gpuconv_error error = {0};
    CHECK(gpuconv_realtime_new(ir, &config, &rt, &error) == GPUCONV_OK, "%s", error.message);
    return rt;
}
