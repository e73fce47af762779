/* Fuzzes SOFA files: a set is read and gives a response for a direction and one for ambisonics, or is refused with a
 * message. */
#include "fuzz.h"
#include "gpuconv.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    gpuconv_ir *ir;
    gpuconv_error error = {GPUCONV_OK, ""};
    gpuconv_preparation p = gpuconv_preparation_default();
    const char *path = fuzz_file("file.sofa", data, size);
    p.direction = "30,10";
    gpuconv_status status = gpuconv_ir_prepare(path, &p, 1, 48000, &ir, &error);
    if (!status == !ir || (status && !*error.message))
        abort();
    gpuconv_ir_free(ir);
    if (status)
        return 0;
    p.direction = NULL;
    p.speakers = "ambisonic";
    status = gpuconv_ir_prepare(path, &p, 4, 48000, &ir, &error);
    if (!status == !ir)
        abort();
    gpuconv_ir_free(ir);
    return 0;
}
