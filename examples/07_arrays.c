/* Convolves a batch of arrays in memory: two signals of different length with one response, then the correlation of a
 * signal with itself, which is the gradient of a convolution by its response. */
#include <gpuconv_arrays.h>

enum { FRAMES = 3000, SHORT = 1700, TAPS = 200, OUT = FRAMES + TAPS - 1 };

static int fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    return 1;
}

int main(void) {
    static float x[FRAMES], copy[FRAMES], taps[TAPS], y[2 * OUT], lags[FRAMES];
    const int64_t lengths[2] = {FRAMES, SHORT};
    gpuconv_error error;
    gpuconv_arrays *cpu;
    gpuconv_responses *responses;
    x[0] = copy[0] = 1;
    x[100] = copy[100] = 0.5f;
    for (int k = 0; k < TAPS; k++)
        taps[k] = 1.0f / (float)(k + 1);
    const gpuconv_rows response = gpuconv_rows_of_floats(taps, 1, TAPS);
    if (gpuconv_arrays_new_cpu(0, &cpu, &error) ||
        gpuconv_responses_new(cpu, &response, FRAMES, NULL, &responses, &error))
        return fail(error.message);

    gpuconv_arrays_job job = gpuconv_arrays_job_default();
    job.signal = gpuconv_rows_of_floats(x, 2, FRAMES);
    job.signal.stride = 0;        /* both rows are the same signal, */
    job.signal.lengths = lengths; /* the second one shorter */
    job.output = gpuconv_rows_of_floats(y, 2, OUT);
    job.prepared = responses; /* whose transforms are computed once */
    if (gpuconv_arrays_run(cpu, &job, NULL, 0, NULL, &error))
        return fail(error.message);

    /* lags[k] = sum over n of x[n] x[n + k] */
    gpuconv_arrays_job correlation = gpuconv_arrays_job_default();
    correlation.operation = GPUCONV_ARRAYS_GRADIENT_RESPONSE;
    correlation.signal = gpuconv_rows_of_floats(x, 1, FRAMES);
    correlation.output = gpuconv_rows_of_floats(copy, 1, FRAMES);
    correlation.response = gpuconv_rows_of_floats(lags, 1, FRAMES);
    if (gpuconv_arrays_run(cpu, &correlation, NULL, 0, NULL, &error))
        return fail(error.message);
    gpuconv_responses_free(responses);
    gpuconv_arrays_free(cpu);

    const float want[] = {1.25f, 0.5f}, got[] = {lags[0], lags[100]};
    for (int i = 0; i < 2; i++) {
        const float at = y[i * OUT + 150] - (taps[150] + 0.5f * taps[50]), lag = got[i] - want[i];
        if (!(at < 1e-6f && at > -1e-6f && lag < 1e-5f && lag > -1e-5f))
            return fail("the result is wrong");
    }
    return 0;
}
