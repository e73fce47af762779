/* The oracle of edits: responses as planes in time, in double precision. It shares no code with src/ and includes
 * nothing from there. A plane has `pre` frames before time zero and `frames` from there on, the last `ring` of which
 * are behind the end of the response itself. */
#ifndef TESTS_PLANES_H
#define TESTS_PLANES_H

enum { PLANES = 9, PLANES_PRE = 400 /* frames before time zero and behind the end after an interpolation */ };

typedef struct planes {
    int count, pre, frames, ring;
    double rate;
    double *x[PLANES]; /* pre + frames values each */
} planes;

/* Returns planes of zeros. Exits the process if memory is exhausted, as all functions here. */
planes planes_new(int count, int pre, int frames, double rate);
void planes_free(planes *old);

/* Frees the old planes and stores the new ones in their place. */
void planes_replace(planes *old, planes made);

/* Returns the value of a plane at a time; 0 outside. */
double planes_at(const planes *from, int p, int time);

/* Returns `frames` frames from frame `start` on, which becomes time zero, and `pre` frames before it. */
planes planes_part(const planes *from, int pre, int start, int frames);

/* Interpolates with a sinc in a Gaussian window, at an unchanged sum. Less than -60 dB before time zero and less than
 * -120 dB behind the end are dropped. */
planes planes_resample(const planes *from, double ratio, double rate);

/* Returns the largest magnitude, and the first and the last time at which a plane has a magnitude. */
double planes_peak(const planes *of);
int planes_first(const planes *of, double level);
int planes_last(const planes *of, double level);

/* Folds the cepstrum (Oppenheim & Schafer, sec. 13.6); frames before time zero are left out. */
planes planes_minimum_phase(const planes *from);

/* Convolves plane p with plane p of `other`, or with its only one. */
planes planes_series(const planes *from, const planes *other);

/* Replaces n values by their convolution with a pulse whose spectrum is far below the Nyquist frequency. */
void planes_smooth(double *x, int n);

#endif
