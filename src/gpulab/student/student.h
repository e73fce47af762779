/* gpulab try: compiles a student's kernel, checks it against a module's reference, explains what is wrong, and puts it
 * on the module's ladder. */
#ifndef GPULAB_STUDENT_H
#define GPULAB_STUDENT_H

#include "gpulab/harness/run.h"
#include "toolchain/tool.h"

/* ---- Exercises (exercises.c) ------------------------------------------------------------------------------------- */

enum { GC_HINTS = 5 };

/* Demands on a right kernel that has reached the goal; 0: no such demand. The emulator counts it at its largest size.
 */
typedef struct gc_exercise_demands {
    bool coalesced;    /* hardly more sectors of global memory than the accesses need */
    bool shared;       /* uses shared memory */
    bool no_conflicts; /* hardly any bank conflicts */
    double accesses;   /* the most accesses of global memory, for each operation of the module */
    double threads;    /* the most threads, for each operation */
} gc_exercise_demands;

typedef struct gc_exercise {
    const char *name, *module;
    const char *goal; /* the rung that it leads to */
    gc_exercise_demands demands;
    const char *task;
    const char *hint[GC_HINTS]; /* from the first thought to the solution; the unused ones are NULL */
} gc_exercise;

/* Returns exercise `i` in the order in which a course gives them, or NULL after the last one. */
const gc_exercise *gc_exercise_at(int i);

/* Returns the exercise of this name. The name of a module without an exercise of its own gives NULL. */
const gc_exercise *gc_exercise_find(const char *name);

/* Returns the rung that a student's kernel for a module is compared like: the exercise's goal, or else the last one on
 * the GPU that computes in the module's own types. NULL if there is none. */
const gc_lab_variant *gc_exercise_goal(const gc_lab_module *module, const gc_exercise *exercise);

/* Writes a source file to begin with, which compiles and computes nothing. `exercise` may be NULL. */
void gc_exercise_write_start(const gc_lab_module *module, const gc_exercise *exercise, FILE *to);

/* ---- The compiler and its messages (compile.c) ------------------------------------------------------------------- */

/* Writes the declaration of solve for a module: its buffers, the dimensions of a size, and a stream. */
void gc_solve_signature(const gc_lab_module *module, char *text, size_t room);

/* Writes the compiler's input into the folder: a link to `source`, and the header.
 * @return FILE if the source cannot be read */
gpuconv_status gc_prepare_student(const gc_lab_module *module, const char *source, const gc_work_folder *folder,
                                  gpuconv_error *error);

/* Compiles the source for a compute capability (90 for 9.0) into student.so in the folder. The compiler's messages are
 * in messages.txt. `*compiled` is false if the compiler refused the source.
 * @return FILE if the compiler cannot be run, CANCELLED */
gpuconv_status gc_compile_student(int capability, const gc_work_folder *folder, bool *compiled, gpuconv_error *error);

/* The source of the messages. */
typedef struct gc_student_source {
    const char *path;      /* as the student gave it */
    const char *signature; /* of solve */
} gc_student_source;

/* Prints the first errors of nvcc, the host compiler, ptxas and the linker in `messages`, and the number of further
 * ones; the whole text if it has none of their forms. */
void gc_explain_compiler_messages(const char *messages, const gc_student_source *source, FILE *to);

/* Prints a text in which student.cu stands for the student's file, with control characters as escapes. */
void gc_print_messages(const char *text, size_t length, const gc_student_source *source, FILE *to);

/* ---- Stages (student.c) ------------------------------------------------------------------------------------------ */

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

/* Writes the diagnosis as sentences, separated by line breaks: the wrong elements, then the likely causes. */
void gc_lab_diagnosis_text(const gc_lab_output *output, const gc_lab_diagnosis *diagnosis, char *text, size_t room);

/* Returns what an error code of the CUDA runtime usually means in a student's kernel, or NULL. */
const char *gc_lab_explain_code(int code);

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

/* ---- The command (try.c) ----------------------------------------------------------------------------------------- */

typedef struct gc_try_options {
    const char *name; /* of an exercise or a module */
    const char *file; /* the source, or a library that was compiled before; NULL: print the task */
    const char *size; /* to time; NULL: the module's */
    bool start;       /* write a source file to begin with */
    bool quick;       /* without memory checker and times */
} gc_try_options;

/* Prints the exercises and the other modules that a kernel can be tried with. @return the exit status */
int gc_try_list(void);

/* Runs the command. Prints on standard output. @return the exit status: done only if the kernel is right */
int gc_try(const gc_try_options *options);

/* Runs one stage of a library in this process: NAME LIBRARY STAGE RESULT [SIZE]. gc_try starts it as a program of its
 * own. @return the exit status */
int gc_try_library(const char **arguments, int count);

#endif
