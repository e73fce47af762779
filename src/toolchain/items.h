/* Divides a C++ source file into the items at its file scope: functions, types, constants, macros. */
#ifndef TOOLCHAIN_ITEMS_H
#define TOOLCHAIN_ITEMS_H

#include <stdbool.h>
#include <stddef.h>

/* One item. The texts point into the source. */
typedef struct gc_code_item {
    const char *begin, *end; /* with the comment directly above it, without the line break at its end */
    const char *name;        /* of a function, variable, macro or type; not terminated */
    size_t name_length;
    bool is_enum; /* its name is that of the first constant; the others are found in its text */
    int file;     /* set by the caller, as is `reached` */
    bool reached;
} gc_code_item;

/* Writes up to `room` items of a source file. Braces of namespaces and extern "C" are skipped. Returns their number. */
int gc_code_items(const char *source, gc_code_item *items, int room);

/* Returns the end of the comment, string or character constant that begins here; `at` itself if none does. A string
 * ends at the latest with its line. */
const char *gc_code_skip_quoted(const char *at);

/* Finds the next identifier at or after `at` that is neither in a comment nor in a string, sets `*length` and returns
 * its first character; NULL if there is none before `end`. */
const char *gc_code_identifier(const char *at, const char *end, size_t *length);

/* Returns whether an item defines this identifier. */
bool gc_code_item_defines(const gc_code_item *item, const char *identifier, size_t length);

#endif
