/* Lists of outputs, of the same kind as the list of inputs. */
#ifndef GPUCONV_BATCH_LIST_WRITE_H
#define GPUCONV_BATCH_LIST_WRITE_H

#include "manifest.h"

/* Writes the list of the outputs that FOLDER/results.jsonl records as done: wav.scp, recordings.jsonl.gz,
 * cuts.jsonl.gz, metadata.csv or metadata.jsonl. Does nothing for other manifests. id_suffix: UTF-8, follows the
 * identifiers of lhotse's recordings, cuts and supervisions. shard_size: of the batch. *count: lines of the list; -1:
 * none was written. Fails with FILE or MEMORY. */
gpuconv_status gc_list_write(const gc_manifest *manifest, const char *folder, const char *id_suffix, int64_t shard_size,
                             int64_t *count, gpuconv_error *error);

#endif
