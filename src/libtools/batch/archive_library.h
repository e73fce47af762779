/* libarchive, loaded when the first shard is opened. Linked, it would load libxml2 and ICU (33 MB) at every start of
 * the command. */
#ifndef GPUCONV_BATCH_ARCHIVE_LIBRARY_H
#define GPUCONV_BATCH_ARCHIVE_LIBRARY_H

#include "gpuconv.h"

#include <archive.h>
#include <archive_entry.h>

/* The functions that shards use, named as in libarchive without "archive_". clang-format would indent each line more
 * than the one before. */
// clang-format off
#define GC_ARCHIVE_FUNCTIONS(F)                                                                                        \
    F(entry_filetype) F(entry_free) F(entry_hardlink) F(entry_new) F(entry_pathname) F(entry_set_filetype) F(entry_set_pathname)         \
    F(entry_set_perm) F(entry_set_size) F(entry_size) F(entry_sparse_count) F(error_string) F(filter_bytes)            \
    F(read_data_block) F(read_free) F(read_new) F(read_next_header) F(read_open_filename)                              \
    F(read_support_format_tar) F(write_close) F(write_data) F(write_free) F(write_header) F(write_new)                 \
    F(write_open_fd) F(write_set_format_gnutar)
// clang-format on

#define GC_ARCHIVE_FIELD(name) __typeof__(archive_##name) *(name);
typedef struct gc_archive {
    GC_ARCHIVE_FUNCTIONS(GC_ARCHIVE_FIELD)
    int (*error_number)(struct archive *); /* archive_errno: `errno` is a macro */
} gc_archive;

/* Loads libarchive at the first call. Any thread may call it. @return UNSUPPORTED: it is not installed */
gpuconv_status gc_archive_load(const gc_archive **library, gpuconv_error *error);

#endif
