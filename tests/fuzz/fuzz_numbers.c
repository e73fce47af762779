/* Fuzzes responses from files of numbers: a text of coefficients, or an array of NumPy, is read, or refused with a
 * message. The first byte is that of an array, or else the file is a text. */
#include "fuzz.h"
#include "gpuconv.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *const name = size > 0 && data[0] == 0x93 ? "file.npy" : size % 2 ? "file.csv" : "file.txt";
    gpuconv_ir *ir;
    gpuconv_error error = {GPUCONV_OK, ""};
    gpuconv_status status = gpuconv_ir_load_as(fuzz_file(name, data, size), size % 3 ? 48000 : 0, NULL, &ir, &error);
    if (!status == !ir || (status && !*error.message))
        abort();
    gpuconv_ir_free(ir);
    return 0;
}
