/* Modules run: checked at every size, timed, and the effects that they teach held against what was measured. All
 * results are JSON, so that what is printed, saved, loaded and drawn is one and the same. */
#ifndef GPULAB_RUN_H
#define GPULAB_RUN_H

#include "session.h"

typedef struct gc_lab_wish {
    bool quick;          /* check: only what a sanitizer has time for, and no effects */
    bool clean;          /* check: without races that are the lesson, and without other people's kernels */
    const int64_t *size; /* run: instead of the module's own timed sizes; NULL */
} gc_lab_wish;

/* The modules in the order of the courses; their number. */
int gc_lab_modules(const gc_lab_module *const **modules);
const gc_lab_module *gc_lab_find(const char *name);
const gc_lab_variant *gc_lab_variant_named(const gc_lab_module *module, const char *name);

/* Every variant at every size for checking: rows { module, variant, size, state: "agrees" | "skipped" | "failed", why,
 * rms, peak, compared } appended to `rows`. Gives the number of failures. */
int gc_lab_check(gc_lab_session *session, const gc_lab_module *module, const gc_lab_wish *wish, json_t *rows);

/* Every variant timed at its sizes: rows { module, variant, where, size, state: "measured" | "skipped" | "failed", why,
 * median, spread, least, cold, n, row, bytes, operations, floor, share, bound, figure, unit, course, ... } appended to
 * `rows`. Gives the number of failures. */
int gc_lab_time(gc_lab_session *session, const gc_lab_module *module, const gc_lab_wish *wish, json_t *rows);

/* The module's effects at the largest size at which they can be seen, read from rows that gc_lab_time wrote: { module,
 * what, slower, faster, wanted, ratio, holds } appended to `effects`. What was not measured is left out. Gives the
 * number that does not hold. */
int gc_lab_effects(const gc_lab_module *module, json_t *rows, json_t *effects);

/* "512x512x100" into numbers; those not given stay as they are. False when it is no such thing. */
bool gc_lab_parse_size(const char *text, int64_t *size);
void gc_lab_write_size(const gc_lab_module *module, const int64_t *size, char *text, size_t room);

#endif
