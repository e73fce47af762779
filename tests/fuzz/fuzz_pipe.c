/* A pipe of any bytes: WAV and RF64 with headers that lie or are cut, raw samples, and what is copied into a file
 * first. It is read to an end or refused; -timeout makes a hang a finding. The last byte chooses how it is read. */
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
