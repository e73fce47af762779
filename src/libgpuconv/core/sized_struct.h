/* Reading and initialising public structures that begin with their size, so that programs and libraries of different
 * versions work together. Every field that is added to such a structure goes to its end and has the default 0. */
#ifndef GC_CORE_SIZED_STRUCT_H
#define GC_CORE_SIZED_STRUCT_H

#include "gpuconv.h"

/* Returns the size of a structure whose last field is `field`. */
#define GC_SIZE_UP_TO(type, field) (offsetof(type, field) + sizeof(((type *)0)->field))

/* The structure of the library that a caller's structure is read into. */
typedef struct gc_sized_struct {
    void *to;          /* the library's structure, filled with defaults */
    size_t size;       /* its sizeof */
    size_t first_size; /* its size in the first release with this SONAME: the smallest one that a caller may have */
    const char *name;  /* such as "gpuconv_config", for messages */
} gc_sized_struct;

/* Copies the fields of a caller's structure that the library knows; fields that the caller does not know keep their
 * defaults. @return ARGUMENT if its size is impossible (the structure was not made by its _default function), or if it
 * has a field that this library does not know and that is not zero */
gpuconv_status gc_sized_struct_read(const gc_sized_struct *own, const void *from, gpuconv_error *error);

/* Fills a caller's structure of `size` bytes with `defaults`, which has `own_size` bytes; further bytes become 0. */
void gc_sized_struct_init(void *to, size_t size, const void *defaults, size_t own_size);

#endif
