/* What one run of the lab holds: the device or why there is none, its management library, and its ceilings, measured
 * in this run. */
#ifndef GPULAB_SESSION_H
#define GPULAB_SESSION_H

#include "case.h"
#include "measure.h"
#include "nvml.h"

#include <jansson.h>
#include <stdio.h>

typedef struct gc_lab_ceilings {
    double copy;          /* bytes a second, read and written */
    double launch;        /* seconds of an empty launch, in a row of them */
    double operations[4]; /* a second, by gc_lab_unit; 0: not measured */
} gc_lab_ceilings;

typedef struct gc_lab_session {
    gc_lab_device *device; /* NULL: none, and `why` says why */
    char why[256];
    gc_lab_nvml *nvml;
    gc_lab_ceilings ceilings;
    FILE *progress; /* a line a variant, or NULL */
} gc_lab_session;

/* Opens the device if there is one; its absence is no failure. */
void gc_lab_session_open(gc_lab_session *session, FILE *progress);
void gc_lab_session_close(gc_lab_session *session);

/* Warms the device up and measures its ceilings; without a device does nothing. */
gpuconv_status gc_lab_session_ceilings(gc_lab_session *session, gpuconv_error *error);

/* Lets the device reach the clock that it keeps under load. */
gpuconv_status gc_lab_session_warm(gc_lab_session *session, gpuconv_error *error);

/* "environment", "device", "ceilings" and "state" of a report; NULL: no memory. */
json_t *gc_lab_session_json(const gc_lab_session *session);

/* One variant at one size: checked on up to `most` elements of each output (0: all), then timed when `timing` is not
 * NULL. `kept` holds a case from one call to the next, and is made anew when it does not serve; the last caller frees
 * it. LAB_CANNOT in *cannot when the device has not what the variant needs, which is no failure. */
gpuconv_status gc_lab_session_variant(gc_lab_session *session, const gc_lab_module *module,
                                      const gc_lab_variant *variant, const int64_t *size, int64_t most,
                                      gc_lab_case **kept, gc_lab_error *found, gc_lab_times *timing, bool *cannot,
                                      gpuconv_error *error);

#endif
