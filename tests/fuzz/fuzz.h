/* What the fuzzers share: bytes as a file that has a path, in memory. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* The path of a file with these bytes, under this name, in a folder of this process's own with a.wav and b.wav in it;
 * ends the process when there is none to be had. Static; the next call takes the file away. */
const char *fuzz_file(const char *name, const uint8_t *bytes, size_t size);

#endif
