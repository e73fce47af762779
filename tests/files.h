/* Temporary files of a test: a folder that is removed at the end, and audio files written and read with libsndfile
 * directly, without code from src/. */
#ifndef TESTS_FILES_H
#define TESTS_FILES_H

#include "check.h"
#include "oracle.h"

#include <sndfile.h>

/* Group set-up and tear-down for cmocka: create the folder, and remove it with all its files. */
int files_begin(void **state);
int files_end(void **state);

/* Returns the path of a file in the folder. The text is valid until the eighth call after it. */
const char *files_path(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes planar floats in a libsndfile format; fails the test on an error. */
void files_write(const char *path, int format, int rate, const guarded *samples);

/* Reads all frames as planar floats into guarded buffers and sets *info to the properties of the file. */
guarded files_read(const char *path, SF_INFO *info);

/* Returns the path of a file in the checkout, whose folder is the environment variable SOURCE or that of the build. */
const char *files_source(const char *below);

#endif
