/* Fuzzes compressed files (Ogg Vorbis, Opus, FLAC, MP3): a file is read to its end or refused. The last byte selects
 * block sizes and seeks. The decoders belong to other projects; the target tests that the reader returns no more frames
 * than they deliver. */
#include "fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1)
        return 0;
    fuzz_read(data, size - 1, true, NULL, data[size - 1] * 0x9e3779b1u);
    return 0;
}
