/* Delays that change from frame to frame, by fractions of a frame. */
#ifndef GC_DSP_DELAY_LINE_H
#define GC_DSP_DELAY_LINE_H

#include <stdint.h>

/* Frames that are read before and after the delayed place. */
enum { GC_DELAY_REACH = 32 };

/* The interpolation filters for all fractions of a frame. Immutable. */
typedef struct gc_delay_line gc_delay_line;

/* Returns NULL without memory. */
gc_delay_line *gc_delay_line_new(void);
void gc_delay_line_free(gc_delay_line *line);

/* Returns the filters: GC_DELAY_PHASES + 1 rows of GC_DELAY_TAPS taps (motion_kernels.h). */
const float *gc_delay_line_filters(const gc_delay_line *line);

/* Writes y[i] = x[i - d], i < frames, where d goes in a straight line from `from` at i = 0 to `to` at i = frames. Reads
 * GC_DELAY_REACH frames more on both sides of the places that it needs. */
void gc_delay_line_read(const gc_delay_line *line, const float *x, double from, double to, int64_t frames, float *y);

#endif
