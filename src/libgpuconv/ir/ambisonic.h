/* Binaural decoders of ambisonics: responses of the spherical harmonics, fitted to a set once, and turned with a head.
 */
#ifndef GC_IR_AMBISONIC_H
#define GC_IR_AMBISONIC_H

#include "sofa.h"
#include "spherical.h"

typedef struct gc_decoder gc_decoder;

/* Fits the responses of the harmonics of an order to all measurements. Returns TOPOLOGY (too few directions), MEMORY,
 * CANCELLED. */
gpuconv_status gc_decoder_new(const gpuconv_sofa *sofa, int order, gpuconv_decode how, bool equalize,
                              gc_decoder **decoder, gpuconv_error *error);
void gc_decoder_free(gc_decoder *decoder);

/* Makes the responses for a turned head. Returns MEMORY, CANCELLED. */
gpuconv_status gc_decoder_turn(const gc_decoder *decoder, const gc_rotation *head, gpuconv_ir **ir,
                               gpuconv_error *error);

#endif
