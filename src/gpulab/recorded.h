/* Figures that were recorded on an NVIDIA H200. They are printed beside the rungs on a machine without a GPU. */
#ifndef GPULAB_RECORDED_H
#define GPULAB_RECORDED_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Returns the recorded report, which the caller releases with json_decref; NULL if memory is exhausted. */
json_t *gc_lab_recorded_load(void);

/* Returns the name of the recorded GPU, "NVIDIA H200". `recorded` may be NULL. */
const char *gc_lab_recorded_device(const json_t *recorded);

/* Returns the measured row of a variant at a size, or at the last recorded size if `size` is NULL; NULL if there is
 * none. `recorded` may be NULL. */
const json_t *gc_lab_recorded_find(const json_t *recorded, const char *module, const char *variant, const char *size);

/* Writes a measured row as one text: "0.190 ms at 8388608x512, 71 % of the arithmetic limit", the size if `with_size`.
 */
void gc_lab_recorded_format(const json_t *row, bool with_size, char *text, size_t room);

/* Returns whether a row of a report is a variant that was skipped because the machine has no GPU. */
bool gc_lab_is_skipped_without_gpu(const json_t *report, const json_t *row);

#endif
