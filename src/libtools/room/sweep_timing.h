/* Drift of clocks and lost frames in the recording of an exponential sweep. A sweep plays each frequency at one time,
 * so that a later or earlier part of the recording delays a part of the spectrum of the response. */
#ifndef GPUCONV_ROOM_SWEEP_TIMING_H
#define GPUCONV_ROOM_SWEEP_TIMING_H

#include "distortion.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct gc_sweep_timing {
    double drift; /* ppm by which the recorder's clock is faster than the player's; 0: none found */
    int64_t lost; /* frames that are missing in the recording; negative: inserted; 0: none found */
    double place; /* seconds from the beginning of the sweep to them; in gc_sweep_channel from that of the recording */
} gc_sweep_timing;

/* Searches the correction, of drift or of lost frames, that makes the direct sound highest. Both are 0 unless it
 * becomes higher by a tenth (drift) or a fifth (lost frames). Not found: a drift of fewer than about 12 frames over the
 * sweep, less than 0.5 ms of lost frames. Dispersion, as of a plate or a spring, can be taken for lost frames.
 * @param response periodic: the recording divided by the sweep, `points` values
 * @return false if memory is exhausted or the work was cancelled */
bool gc_sweep_time(const double *response, int64_t points, double rate, const gc_sweep_growth *growth,
                   gc_sweep_timing *timing);

#endif
