/*
 * The parts of a matrix of responses that share no channel. A component is a set of inputs and outputs that routes
 * connect: a stereo response has two components of one channel each, true stereo has one of two by two, a decoder has
 * one with all channels. Backends transform each channel of a component once, and compute the products of a dense one
 * as a matrix product for each bin.
 */
#ifndef GC_CONV_COMPONENTS_H
#define GC_CONV_COMPONENTS_H

#include "libgpuconv/ir/object.h"

#include <stdbool.h>

typedef struct gc_component {
    int inputs, outputs;
    int *input, *output; /* numbers of the channels, ascending */
} gc_component;

typedef struct gc_components {
    int count;
    gc_component *component;         /* sorted by their first channel */
    int *members;                    /* the channel numbers that the components point into; all other arrays follow */
    int *input_owner, *output_owner; /* per channel: the index of its component; -1: no route */
    int *input_at, *output_at;       /* per channel: its index within its component */
    int *first_route; /* outputs + 1: the routes of output o are first_route[o] .. first_route[o + 1] - 1 */
} gc_components;

/* Finds the components of a routed response. Returns false without memory; *components can then be freed all the same.
 */
bool gc_components_find(const gpuconv_ir *ir, gc_components *components);
void gc_components_free(gc_components *components);

/* Returns the number of routes that dense matrices of all components would have. */
int64_t gc_components_products(const gc_components *components);

#endif
