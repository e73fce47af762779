/* Several positions in a room: mean and standard deviation of a parameter by band, and single numbers. */
#ifndef GPUCONV_ROOM_POSITIONS_H
#define GPUCONV_ROOM_POSITIONS_H

#include "figures.h"

/* Parameters that are averaged, in the units of a report. */
typedef enum gc_quantity { GC_T20, GC_T30, GC_EDT, GC_C80, GC_D50, GC_LEVEL, GC_CENTRE, GC_QUANTITIES } gc_quantity;

typedef struct gc_quantity_info {
    const char *name, *unit, *title;
    double noticeable; /* just noticeable difference (ISO 3382-1:2009, table A.1) */
    bool relative;     /* it is a factor of the value */
} gc_quantity_info;

extern const gc_quantity_info gc_quantity_about[GC_QUANTITIES];

/* Returns a parameter; NaN: not determined. The level is G, or without a reference that of the energy. */
double gc_quantity_of(const gc_figure *figure, gc_quantity quantity);

/* The channels of files, each of which is a position, but for a figure-eight microphone. */
typedef struct gc_positions {
    const gc_figures *figures;
    int files;
    int lateral; /* channel of the figure-eight microphone, from 1; 0: none */
} gc_positions;

/* Returns the number of positions. */
int gc_positions_count(const gc_positions *positions);

/* Finds position `k`. @return the file, and its channel from 0 */
const gc_figures *gc_positions_at(const gc_positions *positions, int k, int *channel);

/* Returns the file with the most bands. */
const gc_figures *gc_positions_widest(const gc_positions *positions);

typedef struct gc_mean {
    double mean, deviation; /* standard deviation of a sample; NaN for fewer than two */
    int count;              /* values that were determined */
} gc_mean;

/* Adds a value; NaN and infinity are left out. Begin with zeros, and end with gc_mean_finish, which returns the result.
 */
void gc_mean_add(gc_mean *mean, double value);
gc_mean gc_mean_finish(gc_mean mean);

/* Averages a parameter in a band over the positions. @param nominal of the band; 0: the whole spectrum */
gc_mean gc_positions_mean(const gc_positions *positions, double nominal, gc_quantity quantity);

/* Returns the mean over the octaves 500 Hz and 1 kHz, or their third-octaves, such as T mid (ISO 3382-1, table A.1);
 * NaN if a band is missing. */
double gc_mid_of(const gc_figures *figures, int channel, gc_quantity quantity);

/* Returns the bass ratio: T30 at 125 and 250 Hz to T30 at 500 Hz and 1 kHz (Beranek); NaN if a band is missing. */
double gc_bass_ratio(const gc_figures *figures, int channel);

#endif
