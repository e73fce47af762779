/* Fuzzes matrix files: a file is loaded, or refused with a message. */
#include "fuzz.h"
#include "gpuconv.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    gpuconv_ir *ir;
    gpuconv_error error = {GPUCONV_OK, ""};
    gpuconv_status status = gpuconv_ir_load_matrix(fuzz_file("file.txt", data, size), 48000, &ir, &error);
    if (!status == !ir || (status && !*error.message))
        abort();
    gpuconv_ir_free(ir);
    return 0;
}
