/* Forms of response files for test_preparation.c, one of each layout and kind: how a file is written, and the planes
 * that the oracle has for it. */
#ifndef TESTS_PREPARATION_FORMS_H
#define TESTS_PREPARATION_FORMS_H

#include "files.h"
#include "gpuconv.h"
#include "planes.h"

enum { FORMS = 19, FORM_FRAMES = 1500, FORM_RATE = 48000, FORM_INPUTS = 4, FORM_OUTPUTS = 3 };

/* The responses have bursts at frame 0, at FORM_START and later, and silence before the next burst. */
enum { FORM_START = 350, FORM_LENGTH = 300 };

/* Smooth bursts, which every interpolation of high quality resamples to the same taps, or noise that begins abruptly.
 */
typedef enum material { SMOOTH, NOISE } material;

typedef struct form {
    const char *name, *file;
    gpuconv_layout layout;
    const char *direction, *speakers;          /* of a SOFA file */
    bool packed;                               /* its file has the routes of each output one after the other */
    bool fast;                                 /* a matrix of a file of 96 kHz beside one of 48 kHz */
    int inputs, outputs, count;                /* planes */
    int order[PLANES];                         /* the plane in each channel of an audio file */
    unsigned route[FORM_INPUTS][FORM_OUTPUTS]; /* bits of the planes that are summed */
} form;

extern const form forms[FORMS];

bool form_is_sofa(const form *f);
bool form_is_audio(const form *f);

/* Writes a mono file of the k-th response, and returns its plane. */
planes form_write_one(const char *path, material m, int k);

/* Writes an audio file of a form with the responses from the k-th on, and returns its planes. */
planes form_write_audio(const form *f, material m, const char *path, int k);

/* Writes the matrix files and the audio files that they name. */
void form_write_matrices(material m);

/* Returns the planes of a form at its rate, and writes its file if that is audio. Their count is 0 for a SOFA file in a
 * build that cannot read it. */
planes form_planes(const form *f, material m, const char *path);

#endif
