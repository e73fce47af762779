/*
 * Rows of fields from a text: the reader of every table and list of text that a file brings. A file states its form and
 * takes rows; their lines, comments, separators and quotation marks are found here.
 *
 *      kind                 the fields are divided by
 *      GC_TABLE_WORDS       blanks (runs of spaces and tabs)
 *      GC_TABLE_ROUTES      blanks, or the semicolon or comma that follows the first word of the text
 *      GC_TABLE_NUMBERS     a semicolon, a tab, a comma or blanks, whichever is found in the rows of the first 64 KiB
 *      GC_TABLE_CELLS       a tab, a semicolon or a comma, whichever is the first in the text (CSV, RFC 4180)
 *
 * A later row that is divided in another way has fields that are no numbers, and is refused. A number may have a
 * decimal comma where no comma divides the fields; a table with decimal commas and decimal points is refused. An empty
 * field between two separators is a field. The rows of a table of numbers begin with a number; lines of words before
 * the first row are headings. Where commas divide numbers, blanks do too, and if no number has a decimal point, all
 * rows have equally many fields.
 *
 * The fields stand in the buffer of the text, so that the memory does not depend on the number of rows. Up to 64 KiB
 * are read before the first row.
 */
#ifndef GC_CORE_TABLE_H
#define GC_CORE_TABLE_H

#include "lines.h"
#include "memory.h"

enum { GC_TEXT_LONGEST = 1 << 16, GC_TEXT_MOST = 1 << 26 }; /* bytes of a line and of a text, if no other limits fit */

typedef enum gc_table_kind { GC_TABLE_WORDS, GC_TABLE_ROUTES, GC_TABLE_NUMBERS, GC_TABLE_CELLS } gc_table_kind;

/* How a line becomes fields. */
typedef struct gc_table_form {
    gc_table_kind kind;
    int most;      /* fields of a row */
    int last;      /* the number of the field, from 1, that takes the rest of the line with its blanks; 0: none does */
    bool comments; /* # begins a comment at the beginning of a field and behind a blank. In a table of numbers lines
                      that begin with * or, unless semicolons divide its fields, with ; are comments too */
    bool quotes;   /* a field may stand in "quotation marks", in which two stand for one */
    bool escapes;  /* as in a shell: 'quotation marks' too, and a backslash before a character that stands for itself */
} gc_table_form;

typedef struct gc_table {
    gc_table_form form;
    gc_lines *lines;
    char separator; /* ' ': blanks */
    char **field;   /* the fields of the row, valid until the next one */
    int fields;
    int64_t line;         /* on which the row begins */
    int64_t rows, others; /* rows so far; headings and lines of comments */
    const char *wrong;    /* why the row could not be divided; NULL: it could */
    char decimal;         /* of the numbers so far: '.' or ','; 0: they had none */
    bool mixed;           /* a number was refused because it has the other one */
    int width;            /* fields of the first row of numbers; 0: not known yet */
    bool no_point;        /* commas divide numbers, none of which has a decimal point */
    char shown[48];       /* the beginning of the row, for messages */
    gc_buffer joined;     /* a row of several lines */
} gc_table;

/* Begins to read rows of lines, which must stay open, and finds what divides the fields. Fails as gc_lines_next, and
 * with FORMAT if commas and blanks in the rows can be read in two ways. */
gpuconv_status gc_table_open(gc_table *table, const gc_table_form *form, gc_lines *lines, gpuconv_error *error);

/* Reads the next row unless *status is a failure. Returns false if there is none: the text has ended, or *status got
 * the failure of gc_lines_next, CANCELLED, or FORMAT for a row that cannot be divided; a row of cells is returned
 * instead with table->wrong. */
bool gc_table_next(gc_table *table, gpuconv_status *status, gpuconv_error *error);

/* Parses a field, from 0 on, as gc_number_parse, with a decimal comma where no comma divides the fields. @return true
 * if *value was set */
bool gc_table_number(gc_table *table, int field, double *value);

/* Fails with FORMAT: "FILE, line N: 'TEXT': " and the message. */
gpuconv_status gc_table_fail(const gc_table *table, gpuconv_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Writes "N rows, M other lines" into `to`. */
void gc_table_describe(int64_t rows, int64_t others, char *to, size_t room);

/* Frees the table; the lines stay open. */
void gc_table_close(gc_table *table);

/* Divides a line that stands alone, in place. @return the number of fields, or -1 with the reason in *wrong */
int gc_table_split(const gc_table_form *form, char separator, char *line, char **field, const char **wrong);

#endif
