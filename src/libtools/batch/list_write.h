/* Lists of outputs, of the same kind as the list of inputs. */
#ifndef GPUCONV_BATCH_LIST_WRITE_H
#define GPUCONV_BATCH_LIST_WRITE_H

#include "history.h"
#include "list_output.h"

/* Writes the list of the outputs that FOLDER/results.jsonl records as done: wav.scp and the other files of a data
 * folder of Kaldi, recordings.jsonl.gz, cuts.jsonl.gz, metadata.csv or metadata.jsonl. Does nothing for other
 * manifests. *count: lines of the list; -1: none was written. Fails with FILE or MEMORY. */
gpuconv_status gc_list_write(const gc_manifest *manifest, const gc_list_output *output, int64_t *count,
                             gpuconv_error *error);

/* Writes wav.scp, utt2spk and spk2utt, and text and segments if the folder of the inputs has them: sorted as Kaldi's
 * validate_data_dir.sh demands. Each utterance is the whole of its recording, which has the same name. As
 * gc_list_write. */
gpuconv_status gc_list_write_kaldi(const gc_manifest *manifest, const gc_list_output *output, const gc_history *history,
                                   int64_t *count, gpuconv_error *error);

/* Writes the names of the files beside the wav.scp `list` that the folder of the outputs does not get into `text`.
 * @return whether there are any */
bool gc_list_left_out_kaldi(const char *list, char *text, size_t room);

#endif
