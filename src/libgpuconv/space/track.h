/* Rows of three numbers over time: where a source is (path.h), and how a head is turned (head.h). */
#ifndef GC_SPACE_TRACK_H
#define GC_SPACE_TRACK_H

#include "gpuconv.h"

#include <stdbool.h>
#include <stddef.h>

enum { GC_TRACK_VALUES = 3 };

/* The values are linear between two rows; before the first row and after the last one they stay. */
typedef struct gc_track {
    int64_t count, room; /* rows, and for how many there is memory */
    double *seconds;     /* per row, rising */
    double *value;       /* rows x GC_TRACK_VALUES */
} gc_track;

/* The form of a text. */
typedef struct gc_track_form {
    const char *what;                                                    /* of a row, in messages */
    const char *syntax, *ranges;                                         /* of a row, in messages */
    int least;                                                           /* values of a channel in a row */
    double missing[GC_TRACK_VALUES];                                     /* the values that a row leaves out */
    bool (*is_row)(double seconds, const double value[GC_TRACK_VALUES]); /* whether all are in their ranges */
    /* Returns the number of the channel that an OSC message of three values is for, from 0; -1: for none. */
    int64_t (*find_channel)(const char *address);
    int angles; /* of OSC messages: the first values, which go the short way from 180 to -180 degrees */
} gc_track_form;

/* How much of a text was read, for messages. */
typedef struct gc_track_text {
    int64_t rows, others; /* rows or messages; headings, comments and other messages */
} gc_track_text;

/* Writes " (N rows)" of a text that was read. */
void gc_track_describe(const gc_track_text *text, char to[64]);

void gc_track_free(gc_track *track);

/* Appends a row. Returns MEMORY. */
gpuconv_status gc_track_append(gc_track *track, double seconds, const double value[GC_TRACK_VALUES],
                               gpuconv_error *error);

/* Reads a text file into the tracks of the channels: a table of numbers (core/table.h) of a time and the values of each
 * channel; or a recording of OSC messages as oscdump of liblo prints it, TIME ADDRESS TYPES VALUES, of which the first
 * one is at 0 s. Returns FILE, FORMAT (the message names the line), MEMORY, CANCELLED. */
gpuconv_status gc_track_read(gc_track *tracks, int channels, const gc_track_form *form, const char *name,
                             gc_track_text *text, gpuconv_error *error);

/* Writes the values at a time. */
void gc_track_at(const gc_track *track, double seconds, double to[GC_TRACK_VALUES]);

#endif
