/* Prints the results of gpulab try. */
#ifndef GPULAB_TRY_REPORT_H
#define GPULAB_TRY_REPORT_H

#include "exercises.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* What the results are about. */
typedef struct gc_try_subject {
    const gc_lab_module *module;
    const gc_exercise *exercise; /* or NULL */
    const gc_lab_variant *goal;
    const char *file; /* as the student gave it */
} gc_try_subject;

/* Prints words wrapped to the terminal, after `margin` blanks; a line break in the text begins a new line. */
void gc_try_print_text(const char *text, int margin, FILE *to);

/* Prints the task, the signature and the hints. */
void gc_try_print_task(const gc_try_subject *subject, FILE *to);

/* Prints what a check found: a report of gc_student_run. */
void gc_try_print_check(const gc_try_subject *subject, const json_t *report, FILE *to);

/* Prints the rungs of a timed report by their times, the student's among them, and the next faster one.
 * Returns whether the student's has reached the goal. */
bool gc_try_print_ladder(const gc_try_subject *subject, const json_t *report, FILE *to);

/* Prints the rungs' recorded times, for a machine without a GPU. */
void gc_try_print_recorded(const gc_try_subject *subject, FILE *to);

/* Prints the first error in the output of compute-sanitizer. Returns whether there was one. */
int gc_try_print_sanitizer(const gc_try_subject *subject, const char *output, FILE *to);

#endif
