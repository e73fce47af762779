/* Fuzzes piped input: WAV and RF64 with wrong or truncated headers, raw samples, and formats that are copied to a file
 * first. The input is read to its end or refused; -timeout reports hangs. The last byte selects raw formats, block
 * sizes and seeks. */
#include "fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const raw[] = {"48000,2,s16", "44100,1,s24",   "8000,3,float",
                                      "8000,1,ulaw", "8000,1,gsm610", "96000,2,double"};
    if (size < 1)
        return 0;
    const uint8_t wish = data[size - 1];
    fuzz_read(data, size - 1, false, wish >= 250 ? raw[wish - 250] : NULL, wish * 0x9e3779b1u);
    return 0;
}
