/* Lists of outputs, of the same kind as the list of inputs. */
#ifndef GPUCONV_BATCH_OUTPUT_LISTS_H
#define GPUCONV_BATCH_OUTPUT_LISTS_H

#include "history.h"
#include "libtools/batch/entry/entry.h"

/* How the outputs are named in lists. */
typedef struct gc_list_output {
    const char *folder;    /* of the outputs */
    bool absolute;         /* paths begin with / */
    const char *id_suffix; /* UTF-8, follows the identifiers of lhotse's recordings, cuts and supervisions */
    int64_t shard_size;    /* of the batch */
} gc_list_output;

/* Writes the list of the outputs that FOLDER/results.jsonl records as done: wav.scp and the other files of a data
 * folder of Kaldi, recordings.jsonl.gz, cuts.jsonl.gz, metadata.csv or metadata.jsonl. Does nothing for other
 * manifests. *count: lines of the list; -1: none was written. Fails with FILE or MEMORY. */
gpuconv_status gc_list_write(const gc_manifest *manifest, const gc_list_output *output, int64_t *count,
                             gpuconv_error *error);

/* Writes the names of the files beside the wav.scp `list` that the folder of the outputs does not get into `text`.
 * @return whether there are any */
bool gc_list_left_out_kaldi(const char *list, char *text, size_t room);

#endif
