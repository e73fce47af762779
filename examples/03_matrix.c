/* Makes a matrix of responses from two inputs to three outputs and prints which channel became which route. The
 * channels are in source order: every output of the first input, then every output of the second. */
#include <gpuconv.h>

enum { INPUTS = 2, OUTPUTS = 3, TAPS = 4 };

int main(void) {
    static float taps[INPUTS * OUTPUTS][TAPS];
    const float *channels[INPUTS * OUTPUTS];
    for (int c = 0; c < INPUTS * OUTPUTS; c++) {
        taps[c][c % TAPS] = (float)(c + 1);
        channels[c] = taps[c];
    }
    gpuconv_error error;
    gpuconv_ir *packed, *ir;
    if (gpuconv_ir_new(channels, INPUTS * OUTPUTS, TAPS, 48000, &packed, &error) ||
        gpuconv_ir_route_as(packed, INPUTS, GPUCONV_LAYOUT_SOURCE, &ir, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    printf("%s\n", gpuconv_ir_history(ir));
    int wrong = gpuconv_ir_inputs(ir) != INPUTS || gpuconv_ir_outputs(ir) != OUTPUTS;
    for (int i = 0; i < INPUTS; i++)
        for (int o = 0; o < OUTPUTS; o++) {
            const float *route = gpuconv_ir_taps(ir, i, o);
            int c = i * OUTPUTS + o;
            printf("%d to %d: %g at frame %d\n", i + 1, o + 1, (double)route[c % TAPS], c % TAPS);
            wrong |= route[c % TAPS] != (float)(c + 1);
        }
    gpuconv_ir_free(packed);
    gpuconv_ir_free(ir);
    return wrong;
}
