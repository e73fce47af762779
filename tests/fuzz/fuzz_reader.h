/* Reading bytes to their end through the library's reader, for the fuzzers of pipes and of compressed files. */
#ifndef TESTS_FUZZ_READER_H
#define TESTS_FUZZ_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Opens the bytes as a regular file or as a pipe, reads them in blocks whose size and kind, and with seeks whose
 * places, `steps` decides, and ends the process where the reader breaks what it promises. `raw` is as for
 * gc_input_options. */
void fuzz_read(const uint8_t *bytes, size_t size, bool regular, const char *raw, uint32_t steps);

#endif
