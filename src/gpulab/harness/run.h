/*
 * Checks and times the modules, and compares the times with the effects that the modules teach.
 *
 * All results are rows of JSON: the tables, the saved report, and the page are made from the same values.
 */
#ifndef GPULAB_RUN_H
#define GPULAB_RUN_H

#include "session.h"

typedef struct gc_lab_run_options {
    bool quick;          /* check: only the sizes that are small enough for a sanitizer */
    bool clean;          /* check: skip variants with intended races and kernels of other libraries */
    const int64_t *size; /* time: this size instead of the module's timed sizes; or NULL */
} gc_lab_run_options;

/* Sets `*modules` to all modules in the order of the courses. Returns their number. */
int gc_lab_modules(const gc_lab_module *const **modules);

/* Return NULL if there is no module or variant of this name. */
const gc_lab_module *gc_lab_module_find(const char *name);
const gc_lab_variant *gc_lab_variant_find(const gc_lab_module *module, const char *name);

/* Checks every variant at every size for checking. Appends a row { module, variant, size, state: "agrees" | "skipped" |
 * "failed", why, rms, peak, compared } per variant and size. Returns the number of failures. */
int gc_lab_check_module(gc_lab_session *session, const gc_lab_module *module, const gc_lab_run_options *options,
                        json_t *rows);

/* Times every variant at its sizes. Appends a row { module, variant, where, size, state: "measured" | "skipped" |
 * "failed", why, median, spread, least, cold, n, row, bytes, operations, floor, share, bound, figure, unit, course, ...
 * } per variant and size. Returns the number of failures. */
int gc_lab_time_module(gc_lab_session *session, const gc_lab_module *module, const gc_lab_run_options *options,
                       json_t *rows);

/* Compares the rows that gc_lab_time_module appended with the module's effects, each at the last size at which both
 * variants were measured. Appends { module, what, slower, faster, size, agree, wanted, ratio, holds } per effect; an
 * effect whose variants were not measured gets no row. Returns the number of effects that do not hold. */
int gc_lab_check_effects(const gc_lab_module *module, json_t *rows, json_t *effects);

/* Return a member of a row of a report: "" or 0 if it is missing, whether it has a value. */
const char *gc_lab_row_text(const json_t *row, const char *name);
double gc_lab_row_number(const json_t *row, const char *name);
bool gc_lab_row_has(const json_t *row, const char *name, const char *value);

/* Parses a size such as "512x512x100" into up to LAB_DIMENSIONS numbers of 1 to 2^40; missing ones keep their value.
 * Returns false if the text has another form. */
bool gc_lab_parse_size(const char *text, int64_t *size);

/* Writes the module's dimensions of a size in the form that gc_lab_parse_size reads. */
void gc_lab_format_size(const gc_lab_module *module, const int64_t *size, char *text, size_t room);

/* ---- Sweeps: one kernel's time or rate over a range of launch shapes or sizes ------------------------------------ */

/* Returns the name of sweep `i` (from 0), "MODULE AXIS"; NULL past the last. */
const char *gc_lab_sweep_name(int i);

/* Measures a sweep and stores { across, unit, columns: [...], points: [[x, value...]...] } under its name in `results`.
 * Without a GPU the sweep has no points and its member "missing" has the reason. Returns false after an error, which
 * has been printed. */
bool gc_lab_sweep(const gc_lab_session *session, const char *name, json_t *results);

#endif
