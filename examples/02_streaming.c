/* Feeds an engine with blocks of varying size, takes the output that is ready after each, and drains the tail at the
 * end. The input is an impulse, so the output must be the response. */
#include <gpuconv.h>

enum { TAPS = 1000, FRAMES = 5000 };

static int fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    return 1;
}

int main(void) {
    static float taps[TAPS], in[FRAMES], out[FRAMES + TAPS];
    for (int i = 0; i < TAPS; i++)
        taps[i] = 1.0f / (float)(i + 1);
    in[0] = 1;

    gpuconv_error error;
    gpuconv_ir *mono, *ir;
    gpuconv_plan *plan;
    gpuconv_engine *engine;
    const float *const channels[] = {taps};
    gpuconv_config config = gpuconv_config_default();
    config.frames = FRAMES;
    if (gpuconv_ir_new(channels, 1, TAPS, 48000, &mono, &error) || gpuconv_ir_route(mono, 1, &ir, &error) ||
        gpuconv_plan_new(ir, &config, &plan, &error) || gpuconv_engine_new(plan, &engine, &error))
        return fail(error.message);
    gpuconv_ir_free(mono); /* the plan and the engine keep references: these three may be freed now */
    gpuconv_ir_free(ir);
    gpuconv_plan_free(plan);

    int64_t taken = 0, produced;
    for (int64_t at = 0, n = 1; at < FRAMES; at += n, n = n * 3 % 701 + 1) {
        int64_t frames = n < FRAMES - at ? n : FRAMES - at;
        const float *const from[] = {in + at};
        float *const to[] = {out + taken};
        if (gpuconv_engine_process(engine, from, frames, to, &produced))
            return fail("the engine failed");
        taken += produced;
    }
    do {
        float *const to[] = {out + taken};
        if (gpuconv_engine_drain(engine, to, 256, &produced))
            return fail("the engine failed");
        taken += produced;
    } while (produced > 0);
    gpuconv_engine_free(engine);

    if (taken != FRAMES + TAPS - 1)
        return fail("the output is not N + M - 1 frames long");
    for (int i = 0; i < taken; i++) {
        float error_at = out[i] - (i < TAPS ? taps[i] : 0);
        if (!(error_at < 1e-6f && error_at > -1e-6f))
            return fail("the output is not the response");
    }
    printf("%lld frames in, %lld out\n", (long long)FRAMES, (long long)taken);
    return 0;
}
