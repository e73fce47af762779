/* Lines of lhotse's manifests: recordings and cuts. */
#ifndef GPUCONV_BATCH_LHOTSE_H
#define GPUCONV_BATCH_LHOTSE_H

#include "row.h"

#include <jansson.h>

/* Returns the file of a line that describes a recording, to be freed. NULL: *why is the reason, or NULL if memory is
 * out. */
char *gc_lhotse_path(const char *line, const char **why);

/* Decides whether an object is a recording or a cut. */
bool gc_lhotse_is(const json_t *object);

/* Fills in a row from a recording or cut; *kind: which one it is. @return false: out of memory */
bool gc_lhotse_fill(gc_row *row, json_t *object, gc_list_kind *kind);

#endif
