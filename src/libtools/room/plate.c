/* Synthesises the response of a plate reverberator, a steel sheet of 2 m by 1 m and half a millimetre with one driver
 * and two pickups, as a sum of modes. The bending modes of a thin plate are evenly spread over frequency, about 1.3 per
 * hertz, so the response is dense from the first millisecond. Bending waves travel faster at higher frequencies, so
 * each arrival begins with the treble.
 *
 * Model: Kirchhoff plate with simply supported edges, losses that grow with frequency (Ducceschi and Webb, Plate
 * reverberation, ICA 2016; Arcas and Chaigne, On the quality of plate reverberation, 2010). */
#include "responses.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/memory.h"

#include <math.h>
#include <stdlib.h>

#define STIFFNESS 0.764 /* sqrt(E h^2 / (12 rho (1 - nu^2))) of 0.5 mm steel, m^2/s */
#define TOP_HZ 17500.0
#define UNEVEN 0.0015 /* relative random deviation of mode frequencies; exact ones realign in phase: audible echoes */
#define LANES 8       /* modes computed together, because each recursion alone is bound by its latency */

struct mode {
    double hz, decay, left, right; /* decay: nepers of amplitude per second */
};

/* Returns the amplitude of mode (m, n) at a point, given as fractions of the sides. */
static double shape(int m, int n, const double at[2]) {
    return 2 * sin(m * PI * at[0]) * sin(n * PI * at[1]);
}

/* RT60 2.7 s in the bass, 2.1 s at 1 kHz, 0.9 s at 8 kHz. The sides have no simple ratio, so that no modes coincide. */
struct plate gc_plate_default(void) {
    return (struct plate){
        .size = {2.02, 0.993}, .thickness = 0.5, .decay_low = 2.7, .decay_slope = 9e-5, .seconds = 2.3};
}

static double decay_time(const struct plate *plate, double hz) {
    return 1 / (1 / plate->decay_low + hz * plate->decay_slope);
}

/* Returns the gain of the pickups at a frequency: flat from 90 Hz to 14 kHz. Below, the electronics attenuate rumble;
 * above, a fade prevents audible ringing at the highest mode. */
static double tone(double hz) {
    double low = pow(hz / 70, 4), top = hz <= 13000 ? 1 : 0.5 + 0.5 * cos(PI * (hz - 13000) / (TOP_HZ - 13000));
    return low / (1 + low) * top;
}

static int compare_hz(const void *a, const void *b) {
    const struct mode *x = a, *y = b;
    return (x->hz > y->hz) - (x->hz < y->hz);
}

/* Lists the modes from 25 Hz to TOP_HZ, sorted by frequency and followed by at least LANES empty ones. @return NULL if
 * memory is exhausted */
static struct mode *find_modes(const struct plate *plate, size_t *count) {
    static const double driver[2] = {0.4137, 0.3842}, left[2] = {0.1713, 0.6871}, right[2] = {0.7931, 0.7219};
    const double scale = PI * (STIFFNESS * (plate->thickness / 0.5)) / 2, x = plate->size[0], y = plate->size[1];
    int most_m = (int)(x * sqrt(TOP_HZ / scale)), most_n = (int)(y * sqrt(TOP_HZ / scale));
    struct mode *modes = gc_calloc((int64_t)(most_m + 1) * (most_n + 1) + LANES, (int64_t)sizeof *modes);
    if (!modes)
        return NULL;
    struct noise noise = gc_noise_seed(140);
    *count = 0;
    for (int m = 1; m <= most_m; m++)
        for (int n = 1; n <= most_n; n++) {
            double hz = scale * (m * m / (x * x) + n * n / (y * y));
            hz *= 1 + UNEVEN * gc_noise_normal(&noise);
            if (hz > TOP_HZ || hz < 25)
                continue;
            double strength = shape(m, n, driver) * tone(hz);
            modes[(*count)++] = (struct mode){.hz = hz,
                                              .decay = log(1000) / decay_time(plate, hz),
                                              .left = strength * shape(m, n, left),
                                              .right = strength * shape(m, n, right)};
        }
    qsort(modes, *count, sizeof *modes, compare_hz);
    return modes;
}

/* Adds LANES modes to the sound. Pickups sense velocity, so an excited mode is a decaying cosine:
 * y[n] = 2 r cos(w) y[n-1] - r^2 y[n-2]. */
static void run_modes(const struct mode modes[LANES], gc_sound *audio) {
    double twice_cos[LANES], square[LANES], current[LANES], previous[LANES];
    double slowest = HUGE_VAL;
    for (int i = 0; i < LANES; i++) {
        double radius = exp(-modes[i].decay / RATE), angle = 2 * PI * modes[i].hz / RATE;
        twice_cos[i] = 2 * radius * cos(angle);
        square[i] = radius * radius;
        current[i] = 1;
        previous[i] = cos(angle) / radius;
        if (modes[i].hz > 0)
            slowest = fmin(slowest, modes[i].decay);
    }
    long frames = (long)fmin((double)audio->frames, log(1e6) / slowest * RATE); /* down to -120 dB */
    for (long t = 0; t < frames; t++) {
        double left = 0, right = 0;
        for (int i = 0; i < LANES; i++) {
            left += modes[i].left * current[i];
            right += modes[i].right * current[i];
            double next = twice_cos[i] * current[i] - square[i] * previous[i];
            previous[i] = current[i];
            current[i] = next;
        }
        audio->channel[0][t] += left;
        audio->channel[1][t] += right;
    }
}

bool gc_plate_response(const struct plate *plate, gc_sound *sound) {
    size_t count;
    if (!gc_sound_create(sound, 2, (long)(plate->seconds * RATE)))
        return false;
    struct mode *modes = find_modes(plate, &count);
    if (!modes)
        return false;
    for (size_t i = 0; i < count && !gc_cancelled(); i += LANES)
        run_modes(&modes[i], sound);
    free(modes);
    gc_sound_fade(sound, 24, sound->frames / 5);
    return true;
}
