/*
 * The seam between the engine and what computes: a table of functions over whole convolvers, so that a backend may
 * fuse, keep everything on its device and overlap as it likes.
 *
 * A state works on chunks. The engine acquires an input slot, writes interleaved frames into it, submits it, and takes
 * the same number of output frames from the oldest submitted slot, which it then releases. Acquire and submit come from
 * one thread, wait and release from one thread, which may be another. What the engine guarantees:
 *   - every chunk but the last ones has plan->chunk frames; after a shorter one only chunks of 0 input frames follow;
 *   - out_frames is plan->chunk until the result's end, which falls into the last chunk submitted;
 *   - at most plan->slots chunks are in flight.
 */
#ifndef GC_ENGINE_BACKEND_H
#define GC_ENGINE_BACKEND_H

#include "costs.h"
#include "libgpuconv/dsp/pcm.h"
#include "libgpuconv/ir/object.h"
#include "schedule.h"

/* What a processor is, as far as choosing needs it. */
typedef struct gc_device {
    char name[128];
    int number;    /* CUDA device, else 0 */
    int threads;   /* CPU threads in use */
    double memory; /* bytes free for us */
    int multiprocessors;
    int64_t shared_memory; /* bytes a block may take */
    bool tensor_cores;     /* that sum products of halves many times faster than multiply-adds */
} gc_device;

struct gpuconv_plan {
    _Atomic int references;
    const struct gc_backend *backend;
    gpuconv_ir *ir;
    gc_device device;
    gc_schedule schedule;
    int64_t chunk;    /* frames */
    int slots;        /* chunks in flight at most */
    double predicted; /* seconds for the expected frames */
    double compared;  /* what algorithms of this backend are compared by; 0: by predicted */
    char why[256], note[256];
};

enum { GC_TIMELINE = 48 };

/* One chunk's way through a state, seconds since its first submit: begin and end of each stage. */
typedef struct gc_passage {
    double copy_in[2], compute[2], copy_out[2];
} gc_passage;

typedef struct gc_measurement {
    double setup, copy_in, compute, copy_out; /* seconds, summed over chunks */
    int64_t chunks;
    int passages; /* of the first GC_TIMELINE chunks */
    gc_passage passage[GC_TIMELINE];
    gc_pcm_overs overs;
} gc_measurement;

/* What a processor can do at most, measured. */
typedef struct gc_peak_rates {
    double arithmetic;                           /* fused multiply-adds in a loop: operations a second, two each */
    double copy;                                 /* bytes read and written a second, of data beyond any cache */
    double launch;                               /* seconds that starting an empty piece of work takes */
    double to_device, from_device, both_at_once; /* bytes a second each way; 0: there is no bus */
} gc_peak_rates;

typedef struct gc_state gc_state;

typedef struct gc_backend {
    gpuconv_backend id;

    /* Is the processor there, and what is it? DEVICE with a reason when not. */
    gpuconv_status (*probe)(const gpuconv_config *config, gc_device *device, gpuconv_error *error);

    /* Fills plan->schedule, chunk, slots, predicted and, where it differs from predicted, compared for one algorithm
     * (never AUTO); plan->ir and plan->device are set. UNSUPPORTED with a reason when it cannot. */
    gpuconv_status (*plan)(gpuconv_plan *plan, gpuconv_algorithm algorithm, const gpuconv_config *config,
                           gpuconv_error *error);

    gpuconv_status (*state)(const gpuconv_plan *plan, gc_pcm in, gc_pcm out, gc_state **state, gpuconv_error *error);
    gpuconv_status (*acquire)(gc_state *state, void **raw);
    gpuconv_status (*submit)(gc_state *state, int64_t in_frames, int64_t out_frames);
    gpuconv_status (*finish)(gc_state *state);                                  /* no more will be submitted */
    gpuconv_status (*wait)(gc_state *state, const void **raw, int64_t *frames); /* 0 frames: finished and empty */
    void (*release)(gc_state *state);
    void (*stop)(gc_state *state); /* from any thread: every waiting call returns CANCELLED from now on */
    gpuconv_status (*reset)(gc_state *state);
    void (*measure)(gc_state *state, gc_measurement *measurement); /* when nothing is in flight */
    const char *(*failure)(const gc_state *state);                 /* why DEVICE came back: one sentence, or "" */
    void (*free)(gc_state *state);

    /* For benchmarks: what the processor of `config` can do at most. DEVICE, MEMORY. */
    gpuconv_status (*peak_rates)(const gpuconv_config *config, gc_peak_rates *rates, gpuconv_error *error);

    /* For benchmarks: copying so many bytes to another place where it computes, as seconds[run]: the least that a
     * convolution of them can take. DEVICE, MEMORY. */
    gpuconv_status (*copy)(const gpuconv_config *config, int64_t bytes, int runs, double *seconds,
                           gpuconv_error *error);

    /* For benchmarks and calibration: the convolution alone, of planar samples that lie where it computes. out[channel]
     * gets `frames` outputs (NaN where none was written); seconds[run] what a run took, warmed up. DEVICE, MEMORY. */
    gpuconv_status (*trial)(const gpuconv_plan *plan, const float *const *in, int64_t frames, float *const *out,
                            int runs, double *seconds, gpuconv_error *error);

    /* The same by the library that others use there, at the best of its sizes; `name` says which. UNSUPPORTED where it
     * is not installed. */
    gpuconv_status (*time_reference)(const gpuconv_plan *plan, const float *const *in, int64_t frames,
                                     float *const *out, int runs, double *seconds, char name[64], gpuconv_error *error);

    /* Fills the processor's share of *costs, its name too, in a few seconds. DEVICE, MEMORY. */
    gpuconv_status (*calibrate)(const gpuconv_config *config, gc_costs *costs, gpuconv_error *error);
} gc_backend;

extern const gc_backend gc_backend_cpu;
#ifdef GPUCONV_WITH_CUDA
extern const gc_backend gc_backend_cuda;
#endif

#endif
