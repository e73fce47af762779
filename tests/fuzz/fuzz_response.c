/* Fuzzes response files: a file is loaded and prepared, or refused with a message. */
#include "fuzz.h"
#include "gpuconv.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    gpuconv_ir *ir;
    gpuconv_error error = {GPUCONV_OK, ""};
    gpuconv_preparation p = gpuconv_preparation_default();
    /* The last byte selects the preparation; a length of 10 ms keeps it fast. */
    uint8_t choice = size > 0 ? data[size - 1] : 0;
    p.trim = choice & 1 ? -40 : 0;
    p.reverse = choice & 2;
    p.align = (gpuconv_align)(choice >> 2 & 1);
    p.normalize = (gpuconv_normalize)((choice >> 3) % 4);
    p.layout = (gpuconv_layout)(choice >> 6);
    p.length = 0.01;
    const char *path = fuzz_file("file.wav", data, size);
    double rate = 48000;
    if (!gpuconv_ir_load(path, &ir, NULL)) /* mostly at the file's rate, because creating a rate converter is slow */
        rate = gpuconv_ir_rate(ir) * (size % 256 == 0 ? 2 : size % 256 == 1 ? 0.45 : 1);
    gpuconv_ir_free(ir);
    gpuconv_status status = gpuconv_ir_prepare(path, &p, 1 + (choice & 1), rate, &ir, &error);
    if (!status == !ir || (status && !*error.message))
        abort();
    gpuconv_ir_free(ir);
    return 0;
}
