/* Shows a compiler's error messages to a student: the line of the source, the message, and what it usually means. */
#ifndef GPULAB_COMPILER_MESSAGES_H
#define GPULAB_COMPILER_MESSAGES_H

#include <stdio.h>

/* What the messages are about. */
typedef struct gc_student_source {
    const char *path;      /* as the student gave it */
    const char *signature; /* of solve */
} gc_student_source;

/* Prints the first errors of nvcc, the host compiler, ptxas and the linker in `messages`, and the number of further
 * ones; the whole text if it has none of their forms. */
void gc_explain_compiler_messages(const char *messages, const gc_student_source *source, FILE *to);

/* Prints a text in which student.cu stands for the student's file, with control characters as escapes. */
void gc_print_messages(const char *text, size_t length, const gc_student_source *source, FILE *to);

#endif
