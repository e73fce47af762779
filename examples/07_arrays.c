/* Convolves a batch of arrays in memory: two signals of different length with one response, then the correlation of a
 * signal with itself, for which the signal is read backwards. */
#include <gpuconv_memory.h>

enum { FRAMES = 3000, SHORT = 1700, TAPS = 200 };

static int fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    return 1;
}

int main(void) {
    static float x[FRAMES], taps[TAPS], y[2][FRAMES + TAPS - 1], lags[FRAMES];
    gpuconv_error error;
    gpuconv_memory *memory;
    gpuconv_memory_response *response;
    x[0] = 1;
    x[100] = 0.5f;
    for (int k = 0; k < TAPS; k++)
        taps[k] = 1.0f / (float)(k + 1);
    if (gpuconv_memory_new(0, &memory, &error) || gpuconv_memory_response_new(taps, TAPS, 1, &response, &error))
        return fail(error.message);

    gpuconv_memory_row rows[2] = {{.signal = {x, FRAMES, 1}}, {.signal = {x, SHORT, 1}}};
    for (int i = 0; i < 2; i++) {
        rows[i].prepared = response; /* its transforms are computed once */
        rows[i].output = y[i];
        rows[i].output_frames = rows[i].signal.frames + TAPS - 1;
        rows[i].output_step = 1;
    }
    if (gpuconv_memory_convolve(memory, rows, 2, &error))
        return fail(error.message);

    /* lags[k] = sum over n of x[n] x[n + k]: the full convolution with x reversed, from frame FRAMES - 1 on. */
    gpuconv_memory_row correlation = {.signal = {x, FRAMES, 1},
                                      .response = {x + FRAMES - 1, FRAMES, -1},
                                      .output = lags,
                                      .output_frames = FRAMES,
                                      .output_step = 1,
                                      .offset = FRAMES - 1};
    if (gpuconv_memory_convolve(memory, &correlation, 1, &error))
        return fail(error.message);
    gpuconv_memory_response_free(response);
    gpuconv_memory_free(memory);

    const float want[] = {1.25f, 0.5f}, got[] = {lags[0], lags[100]};
    for (int i = 0; i < 2; i++) {
        const float at = y[i][150] - (taps[150] + 0.5f * taps[50]), lag = got[i] - want[i];
        if (!(at < 1e-6f && at > -1e-6f && lag < 1e-5f && lag > -1e-5f))
            return fail("the result is wrong");
    }
    return 0;
}
