/* A damaged Ogg, Opus, FLAC or MP3 file: read to an end or refused. The last byte chooses how it is read. The decoders
 * are other projects'; what is tried is that the reader passes on no more than they gave. */
#include "fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1)
        return 0;
    fuzz_read(data, size - 1, true, NULL, data[size - 1] * 0x9e3779b1u);
    return 0;
}
