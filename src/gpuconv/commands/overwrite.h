/* Protects existing files from being replaced by mistake. */
#ifndef GPUCONV_COMMANDS_OVERWRITE_H
#define GPUCONV_COMMANDS_OVERWRITE_H

#include <stdbool.h>

typedef struct gc_overwrite {
    const char *input, *response, *output; /* the paths IN, IR and OUT */
    const char *input_raw;                 /* not NULL: IN has no header */
    bool no_clobber;                       /* refuse every existing OUT */
} gc_overwrite;

/* Refuses to replace an existing OUT that may be an impulse response, because IR and OUT have probably changed places:
 * OUT is shorter than IR, and it is also shorter than IN or IR is as long as the convolution of IN with OUT. The
 * complete result of an earlier run with the same IN is never shorter than IN, and with the same IR never shorter than
 * IR. An OUT that is the same file as IN or IR is accepted. With no_clobber, refuses every OUT that exists.
 * @return GC_EXIT_DONE, or GC_EXIT_FAILED after a message */
int gc_check_overwrite(const gc_overwrite *o);

#endif
