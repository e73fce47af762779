/* Choices: the responses or noises from which a batch picks, with their probabilities. */
#ifndef GPUCONV_BATCH_CHOICES_H
#define GPUCONV_BATCH_CHOICES_H

#include "manifest.h"

typedef struct gc_choices {
    char **path;
    double *sum; /* of the weights up to and including each path; NULL: all weigh the same */
    int64_t count;
} gc_choices;

/* Lists what patterns (NULL-terminated) name: audio files, or lists of them. A list is a Kaldi RIR or noise list, whose
 * lines begin with --rir-id or --noise-id and may have --probability; a wav.scp (.scp); or a lhotse RecordingSet
 * (.jsonl, .jsonl.gz), and is added to the lists of the manifest. Fails with FILE, FORMAT, ARGUMENT or MEMORY. */
gpuconv_status gc_choices_find(const char *const *patterns, gc_manifest *manifest, gc_choices *choices,
                               gpuconv_error *error);

/* Draws an index by the weights. */
int64_t gc_choices_draw(const gc_choices *choices, uint64_t *state);
void gc_choices_free(gc_choices *choices);

#endif
