/*
 * Kinds of lists, all of which may be compressed by gzip:
 *
 *      FILE.csv, FILE.tsv      first line: names of columns (column.h)
 *      FILE.jsonl, .ndjson     one object per line: our columns; a lhotse recording or cut; or a line of results.jsonl,
 *                              which repeats that entry with the values that were drawn
 *      wav.scp (FILE.scp)      Kaldi: ID PATH per line; segments: ID RECORDING BEGIN END
 *      metadata.csv, .jsonl    file_name and other fields, which are kept
 *      FOLDER                  one that has metadata.csv, metadata.jsonl or wav.scp (with segments, if that exists)
 */
#ifndef GPUCONV_BATCH_LIST_H
#define GPUCONV_BATCH_LIST_H

#include "builder.h"
#include "libgpuconv/core/lines.h"

/* Finds the list that a path names, and the segments beside it; both are to be freed, *segments may be NULL. Fails with
 * FILE (a folder without a list) or MEMORY. */
gpuconv_status gc_list_find(const char *path, char **list, char **segments, gpuconv_error *error);

/* Parses lines, whose name tells the kind, into entries. Fails as gc_lines_next and gc_builder_add do, with FILE
 * (segments) or FORMAT (columns). */
gpuconv_status gc_list_parse(gc_lines *lines, gc_builder *builder, gpuconv_error *error);

/* The parsers of each kind. */
gpuconv_status gc_list_parse_table(gc_lines *lines, gc_builder *builder, gpuconv_error *error);
gpuconv_status gc_list_parse_jsonl(gc_lines *lines, gc_builder *builder, gpuconv_error *error);
gpuconv_status gc_list_parse_kaldi(gc_lines *lines, gc_builder *builder, gpuconv_error *error);

#endif
