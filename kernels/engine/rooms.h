/* The C interface of the kernels of simulated rooms (rooms.cu). Included by kernels.h; the rules of that header apply.
 * Lengths are in steps, GCK_ROOM_STEPS a frame, unless stated otherwise. */
#ifndef GC_KERNELS_ROOMS_H
#define GC_KERNELS_ROOMS_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    GCK_ROOM_STEPS = 6,    /* of the accumulator in a frame */
    GCK_ROOM_HALF = 152,   /* steps of the reduction's filter on each side of its middle */
    GCK_ROOM_TAPS = 306,   /* 2 GCK_ROOM_HALF + 1 and a zero */
    GCK_ROOM_BANDS = 9,    /* octaves of a room */
    GCK_ROOM_DOUBLES = 66, /* of gpuconv_room */
    GCK_ROOM_POINT = 6     /* doubles of gpuconv_room_point */
};

/* A room after gck_rooms_prepare. */
typedef struct gck_walls {
    float loss[6][GCK_ROOM_BANDS]; /* nepers of energy at a reflection */
    float reach;                   /* of its images but the direct sound */
    int valid;                     /* 0: a value is out of range, and its responses are silent */
} gck_walls;

/* Directions begin..end - 1 of a set, measured from about the same distance. */
typedef struct gck_shell {
    float distance;
    int begin, end;
} gck_shell;

/* A set of head-related responses in device memory, of directions x receivers. */
typedef struct gck_ears {
    const gck_shell *shell;
    const float4 *direction; /* x to the front, y to the left, z up, of length 1; w: the distance */
    const float *offset;     /* by which the first tap of each response is later than its image */
    const float *taps;       /* `frames` of each response, a frame apart; NULL: receivers have no ears */
    int shells, frames;
    float early, late; /* by which taps are earlier and later than their image at most */
    float peak, sum;   /* largest magnitude of a tap, and sum of the magnitudes of a response */
} gck_ears;

typedef struct gck_rooms {
    const double *room, *source, *receiver; /* arrays of gpuconv_rooms.h */
    const uint64_t *seeds;                  /* of the noise of each room; NULL: they follow from `seed` */
    const float *taps;                      /* GCK_ROOM_TAPS */
    gck_walls *walls;                       /* of each room */
    int64_t rooms, sources, receivers, frames, origin;
    int channels, bands; /* of a receiver; that are computed */
    int order, tail, diffuse, formula, air;
    double per_metre, speed;       /* steps a metre; metres a second */
    double seconds, nepers;        /* limits of the images: time, and energy of the slowest band; 0: none */
    float damping[GCK_ROOM_BANDS]; /* nepers of amplitude a step, by the air */
    uint64_t seed;
    gck_ears ears;
} gck_rooms;

/* Fills rooms->walls. */
cudaError_t gck_rooms_prepare(const gck_rooms *rooms, cudaStream_t stream);

/* Computes `count` channels of responses from number `first` on: rooms x sources x receivers x channels. `out` is count
 * x bands x frames. */
cudaError_t gck_rooms_images(const gck_rooms *rooms, int64_t first, int64_t count, float *out, cudaStream_t stream);

/* Filters rows in place by a biquad {b0, b1, b2, a1, a2}, a0 = 1. */
cudaError_t gck_rooms_filter(float *rows, int64_t count, int64_t frames, const double biquad[5], cudaStream_t stream);

cudaError_t gck_rooms_load(void); /* loads the kernels on the current device */

#ifdef __cplusplus
}
#endif

#endif
