/* Convolves in real time without latency, in blocks of a sound device's size, and exchanges the response with a
 * crossfade. In a program, the audio callback calls gpuconv_realtime_process, which does not allocate, lock or wait. */
#include <gpuconv.h>

enum { BLOCK = 64, TAPS = 48000, BLOCKS = 2000 };

/* Returns a stereo response with a single tap of this level; NULL on failure. */
static gpuconv_ir *make_response(float level, gpuconv_error *error) {
    static float taps[TAPS];
    for (int i = 0; i < TAPS; i++)
        taps[i] = i == 0 ? level : 0;
    const float *const channels[] = {taps};
    gpuconv_ir *mono = NULL, *ir = NULL;
    if (!gpuconv_ir_new(channels, 1, TAPS, 48000, &mono, error))
        gpuconv_ir_route(mono, 2, &ir, error);
    gpuconv_ir_free(mono);
    return ir;
}

int main(void) {
    gpuconv_error error = {GPUCONV_OK, ""};
    gpuconv_ir *loud = make_response(0.5f, &error), *soft = make_response(0.25f, &error);
    gpuconv_realtime *realtime;
    gpuconv_realtime_config config = gpuconv_realtime_config_default();
    config.rate = 48000;
    config.block = BLOCK;
    config.freewheel = true; /* no sound device sets the pace here: wait for the tail */
    if (!loud || !soft || gpuconv_realtime_new(loud, &config, &realtime, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    printf("%s\n", gpuconv_realtime_plan(realtime));

    float left[BLOCK], right[BLOCK], last = 0, step = 0;
    for (int b = 0; b < BLOCKS; b++) {
        for (int i = 0; i < BLOCK; i++)
            left[i] = right[i] = 1;
        const float *const in[] = {left, right};
        float *const out[] = {left, right};
        gpuconv_realtime_process(realtime, in, out, BLOCK);
        for (int i = 0; i < BLOCK; i++) {
            float now = left[i] > last ? left[i] - last : last - left[i];
            step = b > 10 && now > step ? now : step;
            last = left[i];
        }
        if (b == BLOCKS / 2 && gpuconv_realtime_swap(realtime, soft, 0.1, &error)) {
            fprintf(stderr, "%s\n", error.message);
            return 1;
        }
    }
    printf("from 0.5 to %g in steps of at most %g\n", (double)last, (double)step);
    gpuconv_realtime_free(realtime);
    gpuconv_ir_free(loud);
    gpuconv_ir_free(soft);
    return !(last > 0.2499f && last < 0.2501f && step < 0.001f);
}
