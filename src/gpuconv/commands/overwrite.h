/* Protects existing files from being replaced by mistake. */
#ifndef GPUCONV_COMMANDS_OVERWRITE_H
#define GPUCONV_COMMANDS_OVERWRITE_H

#include "gpuconv.h"

typedef struct gc_overwrite {
    const char *input, *response, *output; /* the paths IN, IR and OUT */
    const char *path, *head;               /* of moving sources; NULL: none */
    const gpuconv_preparation *preparation;
    bool input_raw;  /* IN has no header */
    bool no_clobber; /* refuse every existing OUT */
} gc_overwrite;

/* Refuses to replace an existing OUT that the response is read from, or that is the response of an earlier job whose
 * result is IR: IR and OUT have changed places. This is certain if IR has exactly the frames of IN convolved with OUT.
 * An OUT of more than a minute is no response; one as long as IN is a result of --mode same or --tail 0. With
 * no_clobber, refuses every OUT that exists.
 * @return GC_EXIT_DONE, or GC_EXIT_FAILED after a message */
int gc_check_overwrite(const gc_overwrite *o);

#endif
