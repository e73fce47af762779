/*
 * Runs a student's kernel, which was compiled as a shared library, on the buffers of a module.
 *
 * The library is loaded in a process of its own, because a kernel may damage the GPU's context, run for ever, or end
 * the process. This process writes what it finds into a file, as JSON, before every step, so that the file names the
 * step in which the process ended.
 */
#ifndef GPULAB_STUDENT_H
#define GPULAB_STUDENT_H

#include "exercises.h"
#include "gpuconv.h"
#include "session.h"

typedef enum gc_student_stage {
    GC_STUDENT_CHECK,  /* compare with the reference, twice at every size for checking */
    GC_STUDENT_MEMORY, /* run at the small sizes, in buffers without guard bands, under a memory checker */
    GC_STUDENT_TIME    /* measure the kernel and the rungs of the ladder */
} gc_student_stage;

/* Function of the library: queues the work on the stream. Returns a cudaError_t. */
typedef int (*gc_student_solve)(void *const *buffer, const int64_t *size, void *stream);

typedef struct gc_student_request {
    const gc_lab_module *module;
    const gc_lab_variant *goal;         /* the rung whose result and tolerance the kernel must have */
    const gc_exercise_demands *demands; /* of the goal; NULL: none */
    gc_student_solve solve;
    gc_student_stage stage;
    const char *result;  /* path of the file; NULL: none is written */
    const int64_t *size; /* to time; NULL: the last size that the module times on a GPU */
} gc_student_request;

/* Returns whether a module has an output to compare and buffers that a kernel can be given. */
bool gc_student_can_try(const gc_lab_module *module);

/* Loads a library and finds its function. @return FILE */
gpuconv_status gc_student_load(const char *path, gc_student_solve *solve, gpuconv_error *error);

/* Runs a stage. Sets `*report` to what it found, which the caller releases with json_decref:
 *
 *   check, memory  { state: "right" | "running" | "failed" | "wrong" | "outside" | "unsteady", size, text, code,
 *                   counts: of the emulator, missing: what keeps a right kernel from the goal }
 *   time           { state: "timed", size, bound, results: rows of gc_lab_time_module, the student's named "yours" }
 *
 * Without a device the function is called with buffers on the host. @return MEMORY, FILE, DEVICE */
gpuconv_status gc_student_run(gc_lab_session *session, const gc_student_request *request, json_t **report,
                              gpuconv_error *error);

#endif
