/* Rows of numbers over time: where sources are (path.h), and how a head is turned (head.h). */
#ifndef GC_SPACE_TRACK_H
#define GC_SPACE_TRACK_H

#include "gpuconv.h"

/* The values are linear between two rows; before the first row and after the last one they stay. */
typedef struct gc_track {
    int64_t count, room; /* rows, and for how many there is memory */
    int width;           /* values of a row: triples of channels */
    double *seconds;     /* per row, rising */
    double *value;       /* rows x width */
} gc_track;

/* What a text has. */
typedef struct gc_track_form {
    const char *what; /* of a row, in messages */
    /* Appends a line of `count` numbers, of which the first is a time. Returns FORMAT, MEMORY. */
    gpuconv_status (*append)(gc_track *track, const double *line, int count, gpuconv_error *error);
    /* Returns the number of the channel that an OSC message of three values is for, from 0; -1: for none. */
    int64_t (*find_channel)(const char *address);
    int angles; /* of OSC messages: the first values of a triple, which go the short way from 180 to -180 degrees */
} gc_track_form;

void gc_track_free(gc_track *track);

/* Appends a row. Returns MEMORY. */
gpuconv_status gc_track_append(gc_track *track, double seconds, const double *value, gpuconv_error *error);

/* Reads a text file: lines of numbers, divided by commas, semicolons or blanks, of which a first one of words is a
 * heading; or a recording of OSC messages as oscdump of liblo prints it, TIME ADDRESS TYPES VALUES, of which the first
 * one is at 0 s. # begins a comment. Returns FILE, FORMAT (the message names the line), MEMORY, CANCELLED. */
gpuconv_status gc_track_read(gc_track *track, const gc_track_form *form, const char *name, gpuconv_error *error);

/* Writes `count` values from the number `first` on, at a time. */
void gc_track_at(const gc_track *track, double seconds, int first, int count, double *to);

#endif
