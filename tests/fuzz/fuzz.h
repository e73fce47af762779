/* Shared by the fuzz targets: writes bytes to a file in memory that has a path. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Writes the bytes to a file of this name in a folder of this process, which also has a.wav and b.wav. Returns its
 * path, a static text that the next call overwrites. Aborts on an error. */
const char *fuzz_file(const char *name, const uint8_t *bytes, size_t size);

#endif
