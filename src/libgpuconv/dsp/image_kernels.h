/* The vector loops of image sources: deposits into an accumulator with several steps a frame, and its reduction to
 * frames. A lane is a band or a channel; the accumulator has the lanes of a step side by side. */
#ifndef GC_DSP_IMAGE_KERNELS_H
#define GC_DSP_IMAGE_KERNELS_H

#include <stdint.h>

enum {
    GC_IMAGE_STEPS = 6,   /* of the accumulator in a frame */
    GC_IMAGE_HALF = 152,  /* steps of the reduction's filter on each side of its middle */
    GC_IMAGE_TAPS = 320,  /* 2 GC_IMAGE_HALF + 1, filled up with zeros */
    GC_IMAGE_BLOCK = 64,  /* images that are computed at a time */
    GC_IMAGE_MARGIN = 384 /* steps of the accumulator besides those of its frames */
};

/* A part of a pattern, p + (across + along[i]) / d; along: NULL for an omnidirectional one. */
typedef struct gc_image_pattern {
    float omni, across;
    const float *along;
} gc_image_pattern;

/* Images whose coordinates differ along one axis only. Image i is d = sqrt(across + along[i]^2) away, arrives at the
 * step d scale + origin, and has in lane k the amplitude outer[k] gain[i stride + k] / d, times both patterns and the
 * root of (reach - d) fade, which is limited to 0..1. Images at steps outside 0..limit are left out. */
typedef struct gc_image_row {
    int64_t count;
    const double *along;
    double across, scale, origin, limit, reach, fade;
    const float *outer, *gain;
    int64_t stride;
    int lanes; /* 1, or a multiple of 8 */
    gc_image_pattern pattern[2];
    const float *const *head; /* per image: `taps` taps, a frame apart, through which it arrives; NULL: a pulse */
    const double *shift;      /* with head: steps by which each image is late */
    int taps;
} gc_image_row;

/* A field of images at random places: number i is in shell i, shells of `shell` metres, around the first receiver. It
 * gets the reflections of the room's repetition in which it lies, and moves as the source and the receiver are moved
 * against the first ones. */
typedef struct gc_image_field {
    double shell, power; /* metres; energy at a distance of 1 */
    double reach, fade;  /* of the other images, as in gc_image_row; these have what is left of the energy */
    double nearest;      /* metres of the direct sound, before which no image is heard */
    double first[3], receiver[3], moved[3], per_size[3], facing[2][3]; /* facing: what d adds to a pattern */
    int most[3], order; /* repetitions on each side; images with more reflections have the whole energy */
} gc_image_field;

typedef struct gc_image_drawn {
    double distance[GC_IMAGE_BLOCK], direction[3][GC_IMAGE_BLOCK];
    float amplitude[GC_IMAGE_BLOCK], pattern[2][GC_IMAGE_BLOCK]; /* times distance */
    int cell[3][GC_IMAGE_BLOCK];
} gc_image_drawn;

typedef struct gc_image_kernels {
    /* Adds images to the accumulator. An image at step t is four values at the steps around it, the weights of a cubic
     * B-spline; element m + 1 is step m. */
    void (*add)(const gc_image_row *row, float *sums);

    /* Draws images first + i, i < count, from `seed` and their number only. */
    void (*draw)(const gc_image_field *field, uint64_t seed, int64_t first, int count, gc_image_drawn *drawn);

    /* Writes frame n, lane k: to[n lanes + k] = sum over j of taps[j] sums[(GC_IMAGE_STEPS n + j + 1) lanes + k].
     * `to` has room for a multiple of eight frames, which are written. */
    void (*reduce)(const float *sums, const float *taps, int lanes, int64_t frames, float *to);
} gc_image_kernels;

#endif
