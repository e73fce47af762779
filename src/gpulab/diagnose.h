/* Explains a wrong output to a student: where it is wrong, in which pattern, and what usually causes that. */
#ifndef GPULAB_DIAGNOSE_H
#define GPULAB_DIAGNOSE_H

#include "gpuconv.h"
#include "lab.h"

#include <stdbool.h>
#include <stddef.h>

/* An output after a run, and what it must hold. */
typedef struct gc_lab_output {
    const char *name;
    gc_lab_type type;
    int64_t count;
    const void *elements; /* filled with bytes of 0xff before the run */
    const double *expected;
    double tolerance; /* relative; 0: every bit must agree */
} gc_lab_output;

typedef struct gc_lab_diagnosis {
    int64_t unwritten, nan, infinite, wrong; /* elements of each kind; an element has one kind */
    int64_t first, last;                     /* of all these; -1: there are none */
    int64_t belongs;                         /* index whose expected value is found at `first`, or -1 */
    int period, from, to;                    /* all lie at from ... to of every `period` elements; 0: no such pattern */
    double got, expected;                    /* at `first` */
} gc_lab_diagnosis;

/* Compares an output with its expected values. Returns whether all elements are right. */
bool gc_lab_diagnose(const gc_lab_output *output, gc_lab_diagnosis *diagnosis);

/* Writes the diagnosis as sentences, separated by line breaks: what is wrong, then its likely causes. */
void gc_lab_diagnosis_text(const gc_lab_output *output, const gc_lab_diagnosis *diagnosis, char *text, size_t room);

/* Returns what an error code of the CUDA runtime usually means in a student's kernel, or NULL. */
const char *gc_lab_explain_code(int code);

#endif
