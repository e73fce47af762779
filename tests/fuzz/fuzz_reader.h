/* Reads bytes to their end with the library's reader, for the fuzz targets of pipes and compressed files. */
#ifndef TESTS_FUZZ_READER_H
#define TESTS_FUZZ_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Opens the bytes as a regular file or a pipe and reads them. `steps` selects sizes and types of the blocks and
 * positions of seeks. Aborts if the reader violates its contract. `raw` is as in gc_input_options. */
void fuzz_read(const uint8_t *bytes, size_t size, bool regular, const char *raw, uint32_t steps);

#endif
