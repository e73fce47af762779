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

/* How much of a row is written; each includes those before it. */
typedef enum gc_lab_detail {
    GC_LAB_FIGURE,    /* 0.190 ms, 71 % of the arithmetic limit */
    GC_LAB_SIZE,      /* 0.190 ms at 8388608x512, ... */
    GC_LAB_ARITHMETIC /* ... limit (8590 million operations at 63.8 TFLOP/s: 0.135 ms) */
} gc_lab_detail;

/* Writes a measured row as one text. */
void gc_lab_recorded_format(const json_t *row, gc_lab_detail detail, char *text, size_t room);

/* Returns whether a row of a report is a variant that was skipped because the machine has no GPU. */
bool gc_lab_is_skipped_without_gpu(const json_t *report, const json_t *row);

#endif
