/* Rows: the texts of one line of a list by column, their conversion to an entry and back, and the check of defaults
 * that the options of a command or a call give. */
#ifndef GPUCONV_BATCH_ROW_H
#define GPUCONV_BATCH_ROW_H

#include "libgpuconv/core/number.h"
#include "manifest.h"

/* The texts of one row, all owned; NULL or empty: not given. */
typedef struct gc_row {
    char *text[GC_COLUMNS];
    char *stem;   /* of the output without extension; NULL: from the input */
    char *origin; /* see gc_extra */
    char *refusal;
} gc_row;

/* Replaces the text of a column by a copy. @return false: out of memory */
bool gc_row_set(gc_row *row, int column, const char *text);

/* Appends to a list of texts, separated by |. @return false: out of memory */
bool gc_row_append(gc_row *row, int column, const char *text);

/* Stores why the row is invalid, unless it has a reason already; as gc_entry_refuse. @return false: out of memory */
bool gc_row_refuse(gc_row *row, const char *what, const char *value);
void gc_row_clear(gc_row *row);

/* Fills in a blank entry from a row, with the texts of `defaults` (may be NULL) where the row has none. An invalid row
 * gives a refused entry. @return false: out of memory */
bool gc_entry_fill(gc_entry *entry, const gc_row *row, const gc_row *defaults, gc_recipes *recipes);

/* Checks the values that entries get from a row of defaults, with an entry of no other use. *reason is NULL if they are
 * valid. Else it is to be freed, and *column is the column of the invalid value, or -1 if several do not fit together.
 * @return false: out of memory */
bool gc_row_check(const gc_row *defaults, int *column, char **reason);

/* Returns the text of a column of an entry, from which gc_entry_fill makes the same value; NULL: the default, or the
 * column cannot be expressed (a name with | in a list). `room`: of GC_NUMBER_TEXT bytes for a number; `list`: receives
 * a text to be freed, or NULL. */
const char *gc_entry_text(const gc_entry *entry, int column, char room[GC_NUMBER_TEXT], char **list);

/* Formats a reason: "WHAT 'VALUE'", to be freed. */
char *gc_refusal_text(const char *what, const char *value);

/* Finds a file's name without folders and extension. */
void gc_path_stem(const char *path, const char **from, int *length);

#endif
