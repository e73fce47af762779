/* Files of a test: a folder that goes away with the process, and audio in and out of it through the file library
 * itself, not through src/. */
#ifndef TESTS_FILES_H
#define TESTS_FILES_H

#include "check.h"
#include "oracle.h"

#include <sndfile.h>

/* cmocka's group set-up and tear-down: makes the folder, enters nothing; removes it with all it holds. */
int files_begin(void **state);
int files_end(void **state);

/* The path of a file in it; a static buffer for each of the last eight. */
const char *files_path(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes planar floats in a format of the file library's; fails the test when it cannot. */
void files_write(const char *path, int format, int rate, const guarded *samples);

/* Reads all frames as floats, planar in guards, and leaves what the file says of itself in *info. */
guarded files_read(const char *path, SF_INFO *info);

/* A path below the checkout: from the environment's SOURCE, else where it was built from. */
const char *files_source(const char *below);

#endif
