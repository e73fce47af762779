/*
 * A case: a module at one size with its buffers filled in, for variants that take the same types in the same memory.
 *
 * Every buffer stands between two guard bands of a known byte. Before a checked run the outputs are poisoned with bytes
 * that read as NaN (or as -1 in integers); after it the bands must be whole, no poison left, and every element within
 * the variant's tolerance of the reference.
 */
#ifndef GPULAB_CASE_H
#define GPULAB_CASE_H

#include "device.h"
#include "gpuconv.h"

typedef struct gc_lab_case gc_lab_case;

typedef struct gc_lab_error {
    double rms, peak; /* relative to the reference's RMS and to its largest magnitude */
    int64_t compared;
} gc_lab_error;

/* device: NULL for variants on the CPU. */
gpuconv_status gc_lab_case_new(const gc_lab_module *module, const gc_lab_variant *variant, const int64_t *size,
                               gc_lab_device *device, gc_lab_case **made, gpuconv_error *error);
void gc_lab_case_free(gc_lab_case *c);

/* Whether another variant can run on the same buffers. */
bool gc_lab_case_serves(const gc_lab_case *c, const gc_lab_module *module, const gc_lab_variant *variant,
                        const int64_t *size);

/* What a launch of `variant` on these buffers is handed. */
gc_lab_run *gc_lab_case_run(gc_lab_case *c, const gc_lab_variant *variant);

/* Poisons the outputs and clears the scratch. */
gpuconv_status gc_lab_case_poison(gc_lab_case *c, gpuconv_error *error);

/* Fetches what lies on a device; then bands, poison, and up to `most` elements of each output against the reference
 * (0: all). DEVICE or ARGUMENT with what does not hold. A variant that races is fetched, its bands held, and no more.
 */
gpuconv_status gc_lab_case_check(gc_lab_case *c, const gc_lab_variant *variant, int64_t most, gc_lab_error *found,
                                 gpuconv_error *error);

#endif
