/*
 * Case: the buffers of a module at one size, filled with input data. Variants with the same element types and the same
 * kind of memory share a case.
 *
 * Every buffer lies between two guard bands of a known byte. Before a checked run the outputs are poisoned with bytes
 * that read as NaN (as -1 in integers). After the run the bands must be intact, no poison may be left, and every
 * element must lie within the variant's tolerance of the reference.
 */
#ifndef GPULAB_CASE_H
#define GPULAB_CASE_H

#include "device.h"

#include <stdbool.h>

/* ---- Element types ----------------------------------------------------------------------------------------------- */

int64_t gc_lab_type_bytes(gc_lab_type type);
bool gc_lab_type_is_float(gc_lab_type type);

/* Returns one element as a double, which is exact for every type. */
double gc_lab_decode(gc_lab_type type, const void *elements, int64_t index);

/* Returns the value that a number has after it is stored as `type`. */
double gc_lab_round(gc_lab_type type, double value);

/* ---- Cases ------------------------------------------------------------------------------------------------------- */

typedef struct gc_lab_case gc_lab_case;

/* The largest difference between the outputs of a variant and the reference. */
typedef struct gc_lab_deviation {
    double rms, peak; /* relative to the reference's RMS and to its largest magnitude */
    int64_t compared; /* elements */
} gc_lab_deviation;

/* Allocates and fills the buffers. `device` is NULL for variants on the CPU. Fails with MEMORY, or DEVICE if the device
 * has not enough memory. */
gpuconv_status gc_lab_case_new(const gc_lab_module *module, const gc_lab_variant *variant, const int64_t *size,
                               gc_lab_device *device, gc_lab_case **result, gpuconv_error *error);
void gc_lab_case_free(gc_lab_case *c);

/* Returns whether a variant can run on the buffers of this case. `c` may be NULL. */
bool gc_lab_case_fits(const gc_lab_case *c, const gc_lab_module *module, const gc_lab_variant *variant,
                      const int64_t *size);

/* Returns the argument for a launch of `variant` on these buffers. */
gc_lab_run *gc_lab_case_run(gc_lab_case *c, const gc_lab_variant *variant);

/* Poisons the outputs and sets the scratch buffers to zero. */
gpuconv_status gc_lab_case_poison(gc_lab_case *c, gpuconv_error *error);

/* Copies the outputs to the host, checks guard bands and poison, and compares up to `max_compared` elements of each
 * output with the reference (0: all). For a variant with LAB_RACES no element is compared. Fails with ARGUMENT if a
 * check fails, DEVICE if a copy fails. */
gpuconv_status gc_lab_case_check(gc_lab_case *c, const gc_lab_variant *variant, int64_t max_compared,
                                 gc_lab_deviation *deviation, gpuconv_error *error);

/* One buffer after a run. `data` is the host's copy of an output; `outside` is the offset in bytes of the first byte
 * that was changed outside the buffer, from its beginning; 0: none was. */
typedef struct gc_lab_view {
    const gc_lab_buffer *buffer;
    const void *data;
    int64_t outside;
} gc_lab_view;

/* Copies the outputs to the host. @return DEVICE */
gpuconv_status gc_lab_case_fetch(gc_lab_case *c, gpuconv_error *error);

/* Describes buffer `i` after gc_lab_case_fetch. Returns false if there is no such buffer. */
bool gc_lab_case_view(const gc_lab_case *c, int i, gc_lab_view *view);

#endif
