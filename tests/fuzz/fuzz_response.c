/* A response file of any bytes: read or refused, and what was read can be prepared. */
#include "fuzz.h"
#include "gpuconv.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    gpuconv_ir *ir;
    gpuconv_error error = {GPUCONV_OK, ""};
    gpuconv_preparation p = gpuconv_preparation_default();
    /* The last bytes choose what is done; short ones keep it quick. */
    uint8_t wish = size > 0 ? data[size - 1] : 0;
    p.trim = wish & 1 ? -40 : 0;
    p.reverse = wish & 2;
    p.align = (gpuconv_align)(wish >> 2 & 1);
    p.normalize = (gpuconv_normalize)((wish >> 3) % 4);
    p.layout = (gpuconv_layout)(wish >> 6);
    p.length = 0.01;
    const char *path = fuzz_file("file.wav", data, size);
    double rate = 48000;
    if (!gpuconv_ir_load(path, &ir, NULL)) /* mostly at its own rate: the converter is slow to set up */
        rate = gpuconv_ir_rate(ir) * (size % 256 == 0 ? 2 : size % 256 == 1 ? 0.45 : 1);
    gpuconv_ir_free(ir);
    gpuconv_status status = gpuconv_ir_prepare(path, &p, 1 + (wish & 1), rate, &ir, &error);
    if (!status == !ir || (status && !*error.message))
        abort();
    gpuconv_ir_free(ir);
    return 0;
}
