/* Manual pages, made from the tables that --help prints. The functions end the process with a message if a file cannot
 * be written. */
#ifndef GC_CLI_MANUAL_PAGE_H
#define GC_CLI_MANUAL_PAGE_H

#include "cli.h"

#include <stdio.h>

/* Creates a file in the folder. */
FILE *gc_manual_open(const char *folder, const char *name);

/* Closes a file, and checks that it was written. */
void gc_manual_close(FILE *file);

/* Writes the page of a command into the folder. `all` ends with NULL; the page refers to the other ones. */
void gc_manual_page_write(const char *folder, const gc_command *command, const gc_command *const *all);

#endif
