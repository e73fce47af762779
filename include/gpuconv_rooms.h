/**
 * @file
 * Impulse responses of shoebox rooms by image sources: batches of rooms, on all cores of the CPU or on a GPU, into the
 * caller's memory.
 *
 * Conventions (besides those of gpuconv.h and gpuconv_arrays.h)
 *
 * - A room is the box 0..size[0] by 0..size[1] by 0..size[2], in metres. A direction has an azimuth (0 along x, 90
 *   along y) and an elevation (90 along z), in degrees.
 * - The pressure at 1 m from a source in the open is 1: image i arrives at t_i = d_i / c with, in band b,
 *
 *       1 / d_i * product over the walls w of (1 - absorption_wb)^(hits_iw / 2) * exp(-air_b d_i / 2) * patterns
 *
 *   (Allen and Berkley, Image method for efficiently simulating small-room acoustics, 1979). d_i is the distance from
 *   the receiver to image i, hits_iw the number of its reflections at wall w. Each image is interpolated by the kernel
 *   w(x) = sin(pi x) / (pi x) (1 + cos(pi x / 24)) / 2 for |x| < 24 frames.
 * - Bands are octaves with the centres 62.5 Hz * 2^b. They are added with weights cos^2(pi/2 log2(f / centre)), which
 *   add up to one; the lowest band in use has all below its centre, the highest all above. Bands whose centre is not
 *   below half the rate are not used. The filters are the weights at P frequencies, P the power of two from rate / 6
 *   and 1024 on, under a Hann window of P / 2 frames. They are symmetric in time: where bands differ, they ring before
 *   a reflection too.
 * - Air absorbs as in ISO 9613-1 at one atmosphere. The speed of sound is 343.2 m/s at 20 degrees C and grows with the
 *   root of the absolute temperature.
 * - The same job gives the same bytes on processors with the same instruction set, with any number of threads, and on
 *   GPUs of one architecture. A room gives the same bytes alone as at the same index of a batch; on a GPU only if the
 *   absorption of its walls is the same in all octaves.
 * - On a GPU rooms, sources and receivers are in device memory, and the host does not check their values. A room that
 *   the CPU refuses gives silence there. If a decay time needs walls that absorb more than 99 %, they absorb 99 %.
 */
#ifndef GPUCONV_ROOMS_H
#define GPUCONV_ROOMS_H

#include "gpuconv_arrays.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @defgroup gpuconv_group_rooms Rooms
 * @{
 */

enum {
    GPUCONV_ROOM_BANDS = 9,    /**< octaves from 62.5 Hz to 16 kHz */
    GPUCONV_ROOM_AMBISONIC = 4 /**< highest ambisonic order of receivers */
};

/** A room. */
typedef struct gpuconv_room {
    double size[3];                           /**< metres, each 0.1..1000 */
    double absorption[6][GPUCONV_ROOM_BANDS]; /**< part of the energy, 0..1, that each wall absorbs at a reflection: x
                                                   low, x high, y low, y high, floor, ceiling. With `rt60` only the
                                                   proportions of its exponents -ln(1 - absorption) count, and all 0
                                                   means equal walls */
    double rt60[GPUCONV_ROOM_BANDS]; /**< seconds in which the walls alone (air shortens it) let a band decay by 60 dB,
                                          each 0.01..1000; all 0: `absorption` is used as it is. Refused if a wall
                                          would have to absorb more than 99 % */
} gpuconv_room;

/** A source or a receiver. */
typedef struct gpuconv_room_point {
    double at[3];     /**< metres; inside the room */
    double azimuth;   /**< degrees of its main axis, -360..360; of an ambisonic receiver: of its front */
    double elevation; /**< degrees of the same, -90..90 */
    double omni;      /**< its pattern, omni + (1 - omni) cos(angle to the axis), 0..1: 1 omnidirectional, 0.75 wide
                         cardioid, 0.5 cardioid, 0.37 supercardioid, 0.25 hypercardioid, 0 figure eight. Ambisonic receivers
                         and those with `ears` ignore it */
} gpuconv_room_point;

/** How the absorption of the walls follows from gpuconv_room.rt60. */
typedef enum gpuconv_room_formula {
    GPUCONV_ROOM_IMAGES = 0, /**< the decay of the box's own images, -5 to -35 dB: waves along the long sides meet walls
                                  less often, so that a box decays more slowly than a diffuse field */
    GPUCONV_ROOM_EYRING,     /**< rt60 = 13.8155 * 4 V / (c S a), a = mean of -ln(1 - absorption) by area */
    GPUCONV_ROOM_SABINE      /**< rt60 = 13.8155 * 4 V / (c S a), a = mean of the absorption by area */
} gpuconv_room_formula;

/** Responses to simulate. Every room has as many sources and receivers. */
typedef struct gpuconv_rooms_job {
    size_t size;                        /**< bytes of the structure, set by gpuconv_rooms_job_default */
    const gpuconv_room *room;           /**< the rooms */
    int64_t rooms;                      /**< 1..2^30 */
    const gpuconv_room_point *source;   /**< the sources of the first room, then those of the second */
    int64_t sources;                    /**< of each room, 1..2^20; 1 (default) */
    const gpuconv_room_point *receiver; /**< the receivers of the first room, then those of the second */
    int64_t receivers;                  /**< of each room, 1..2^20; 1 (default) */
    int ambisonic; /**< 0 (default): a receiver has one channel and its pattern. 1..4: it has (ambisonic + 1)^2 channels
                        of spherical harmonics, order ACN, normalisation SN3D, in the coordinates of its front */
    double rate;   /**< frames a second, 1000..1000000; 16000 (default) */
    int64_t frames; /**< of a response, 1..2^27; 8000 (default) */
    int64_t origin; /**< frame at which the source sounds, -2^27..2^27; 0 (default). The kernel of a sound in the first
                         24 frames is cut at frame 0 */
    gpuconv_room_formula formula; /**< IMAGES (default) */
    bool air;                     /**< with the absorption of air; false (default) */
    double temperature;           /**< degrees C, -20..50; 20 (default) */
    double humidity;              /**< per cent, 0..100; 50 (default) */
    double images_seconds; /**< images that arrive later are left out; 0 (default): none are. The direct sound stays */
    int images_order;      /**< images with more reflections are left out; -1 (default): none are */
    double images_level;   /**< dB: images are left out that arrive after the energy of the band that decays slowest has
                                fallen by this much; 0 (default): none are */
    bool tail;    /**< noise in place of the images that were left out; false (default): nothing. The noise is a sum of
                       images at random places, one for each frame, with random signs and the mean energy of the images
                       left out. It therefore decays as these do in each direction and band. All receivers of a room get
                       the same images of the noise, which gives them the coherence of a diffuse field. The noise replaces
                       the images over the last tenth of their time, and begins no earlier than the direct sound. At low
                       frequencies the images have up to 3 dB more energy near a wall, and less elsewhere; the noise does
                       not */
    bool diffuse; /**< the noise decays in all directions by Eyring's formula, as in a room whose furniture and relief
                       scatter the sound; false (default): as the images do */
    double highpass; /**< Hz, of a causal Butterworth high-pass of fourth order; 0 (default): none. The sum of images
                        has a constant pressure (0 Hz) that no real source makes */
    uint64_t seed;   /**< of the noise; 1 (default) */
    /** An open set at `rate`, of a head for example: a receiver has a channel for each receiver of the set, and the
     * front of the head is its main axis. Every image arrives through the response of the measured direction that is
     * nearest to its own, with the delay of this response to a fraction of a frame. Responses that begin before their
     * time zero arrive that much earlier. NULL (default): none. A plan on a GPU has a copy of it, and compares
     * directions in single precision. */
    const gpuconv_sofa *ears;
    const uint64_t *seeds; /**< of the noise of each room, instead of `seed`; NULL (default) */
    bool alike; /**< on a GPU: absorption and rt60 of every room are the same in all octaves, of which the lowest is
                   read; false (default). The CPU finds that out itself. Air may differ by octaves in either case */
} gpuconv_rooms_job;

/** Fills in the defaults. `size` is the structure's sizeof; does nothing with NULL. For bindings; in C use the function
 * below. */
GPUCONV_API void gpuconv_rooms_job_init(gpuconv_rooms_job *job, size_t size);

/** Returns a job with the defaults, to which the caller adds rooms, sources and receivers. */
static inline gpuconv_rooms_job gpuconv_rooms_job_default(void) {
    gpuconv_rooms_job job;
    gpuconv_rooms_job_init(&job, sizeof job);
    return job;
}

/**
 * Computes the responses on the CPU. The time grows with the number of images, about 4.19 (c t)^3 / V for each source
 * and receiver. Every thread needs 24 bytes for each frame, channel, and band whose walls differ from the others.
 * @param place        on the CPU; belongs to one thread at a time
 * @param job          read during the call
 * @param[out] output  rooms x sources x receivers x channels x frames floats
 * @param[out] error   the reason of a failure; may be NULL
 * @return ARGUMENT (the message names the field, its value and its range; nothing was written; also: a place on a GPU),
 * MEMORY, CANCELLED (the output is incomplete)
 */
GPUCONV_API gpuconv_status gpuconv_rooms_simulate(gpuconv_arrays *place, const gpuconv_rooms_job *job, float *output,
                                                  gpuconv_error *error);

/** A planned simulation: numbers of rooms and points, options, and on a GPU the filters. Immutable; shared by threads
 * as its place is. It must be freed before its place. */
typedef struct gpuconv_rooms_plan gpuconv_rooms_plan;

/**
 * Plans a simulation, for many runs with other rooms. Reads no room. On a GPU it allocates device memory for the
 * filters and waits for their copies.
 * @param place       the place; its device is current
 * @param job         may be freed afterwards; on the CPU its `ears` must outlive the plan
 * @param[out] plan   the plan; the caller frees it
 * @param[out] error  the reason of a failure; may be NULL
 * @return ARGUMENT, MEMORY, DEVICE
 */
GPUCONV_API gpuconv_status gpuconv_rooms_plan_new(gpuconv_arrays *place, const gpuconv_rooms_job *job,
                                                  gpuconv_rooms_plan **plan, gpuconv_error *error);

/** Returns the bytes of device memory that a run needs; 0 on the CPU and of NULL. */
GPUCONV_API size_t gpuconv_rooms_plan_workspace(const gpuconv_rooms_plan *plan);

/**
 * Computes the responses on the CPU, or queues that on a stream: without allocation, copy or waiting, so that a graph
 * can capture it.
 * @param plan         the plan
 * @param job          only `room`, `source`, `receiver`, `seed` and `seeds` are read; arrays and output are in the
 *                     memory of the place
 * @param[out] output  as in gpuconv_rooms_simulate
 * @param workspace    device memory aligned to 256 bytes; its content is lost. NULL on the CPU
 * @param bytes        its size, at least gpuconv_rooms_plan_workspace
 * @param stream       a stream of the device, as cudaStream_t; NULL on the CPU
 * @param[out] error   the reason of a failure; may be NULL
 * @return ARGUMENT (also: workspace too small, another device is current), DEVICE; on the CPU MEMORY, CANCELLED
 */
GPUCONV_API gpuconv_status gpuconv_rooms_plan_run(const gpuconv_rooms_plan *plan, const gpuconv_rooms_job *job,
                                                  float *output, void *workspace, size_t bytes,
                                                  struct CUstream_st *stream, gpuconv_error *error);

/** Frees a plan, for which no work may be queued. */
GPUCONV_API void gpuconv_rooms_plan_free(gpuconv_rooms_plan *plan);

/**
 * Makes a path in a room from rows, as gpuconv_path_new: x, y and z are each linear between two rows.
 * @param seconds      `count` times that rise from 0
 * @param places       `count` x channels x 3: metres, 0..1000
 * @param count        1 or more
 * @param channels     1..16384
 * @param[out] path    the path; copies of the rows
 * @param[out] error   the reason of a failure; may be NULL
 * @return ARGUMENT (a value out of its range), MEMORY
 */
GPUCONV_API gpuconv_status gpuconv_path_new_in_room(const double *seconds, const double *places, int64_t count,
                                                    int channels, gpuconv_path **path, gpuconv_error *error);

/**
 * Reads a path in a room from a text file, as gpuconv_path_load: a line for each row, SECONDS and X, Y, Z for each
 * channel. Not from recordings of OSC.
 * @param name        the file
 * @param channels    1..1024
 * @param[out] path   the path
 * @param[out] error  the reason of a failure; may be NULL
 * @return ARGUMENT (channels), FILE, FORMAT (the message names the line), MEMORY, CANCELLED
 */
GPUCONV_API gpuconv_status gpuconv_path_load_in_room(const char *name, int channels, gpuconv_path **path,
                                                     gpuconv_error *error);

/**
 * Makes sources that move in a room, before receivers that move, too. For each moment, the beginning of an interval,
 * the responses of all channels are simulated, without the delay of the direct sound, which goes in a straight line
 * from one moment to the next; the rest crosses over. A channel whose source and receivers stay keeps its response. All
 * images of a sound are those of the places where its direct sound left and arrived: exact for a source that moves;
 * for a receiver that moves, an image that arrives t later is that of where the receiver was t before. The noise of
 * the tail is made of the same images all the time, which stay in their places.
 *
 * The functions of gpuconv_motion take the result; its receivers are those of the job, each with its channels.
 * gpuconv_motion_place takes x, y and z in metres, and gpuconv_motion_start a block of 1 frame or more.
 * @param job            one room. `source`: with a path only the patterns and directions of its channels, of one source
 *                       for all or of as many as channels, or NULL: omnidirectional; without a path the channels, which
 *                       stay. `receiver`: with a path of its own, the first is moved along it, and the others keep
 * their distances from it. `frames` are those from the direct sound on; `rate` is that of the input. `origin` and
 * `seeds` do not count. Read during the call; its `ears` must outlive the result
 * @param path           of gpuconv_path_new_in_room or gpuconv_path_load_in_room; has the channels of the input. Must
 *                       outlive the result. NULL: the sources stay
 * @param receiver_path  the same, of one channel; NULL: the receivers stay
 * @param config         of it count `interval`, `threads`, and `head`, with which the receivers turn around the first
 *                       one; a roll moves them, but does not turn their patterns. NULL: the defaults
 * @param[out] motion    the sources
 * @param[out] error     the reason of a failure; may be NULL
 * @return ARGUMENT (a value out of its range; a place outside the room; less than 0.05 m between a source and a
 *         receiver), UNSUPPORTED (CUDA in `config`), MEMORY, CANCELLED
 */
GPUCONV_API gpuconv_status gpuconv_motion_new_in_room(const gpuconv_rooms_job *job, const gpuconv_path *path,
                                                      const gpuconv_path *receiver_path,
                                                      const gpuconv_motion_config *config, gpuconv_motion **motion,
                                                      gpuconv_error *error);

/** @} */

#ifdef __cplusplus
}
#endif

#endif
