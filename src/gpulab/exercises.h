/* The exercises: what a student writes, which rung of a module it should reach, and hints on the way. */
#ifndef GPULAB_EXERCISES_H
#define GPULAB_EXERCISES_H

#include "lab.h"

#include <stdbool.h>
#include <stdio.h>

enum { GC_HINTS = 5 };

/* What a right kernel must also do to reach the goal; 0: no such demand. The emulator counts it at its largest size. */
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

#endif
