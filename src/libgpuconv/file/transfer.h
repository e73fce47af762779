/* The passage of samples from a reader through an engine to a writer. */
#ifndef GC_FILE_TRANSFER_H
#define GC_FILE_TRANSFER_H

#include "libgpuconv/audio/file.h"
#include "libgpuconv/dsp/dither.h"
#include "libgpuconv/engine/engine.h"

typedef struct gc_transfer {
    gc_reader *reader;
    gc_writer *writer;
    gpuconv_engine *engine;
    const char *output; /* how messages call the writer's file */
    int64_t chunk;      /* frames, as the engine's plan has it */
    int64_t limit;      /* frames to read at most; -1: to the end */
    /* Of the result the frames `skip` .. frames read + `after` are written; within the tail no more than the last
     * sample of `floor` and more. Where any of that leaves something out of an integer file, or `dither` is asked for,
     * the engine must give floats, and `convert` says so: only what is written is then rounded and counted. */
    int64_t skip, after;
    float floor; /* 0: none */
    bool convert, dither;
    void (*progress)(void *context, int64_t frames); /* read so far; on this thread; or NULL */
    void *context;
    const volatile int *cancel;
    /* afterwards: */
    int64_t read, written;
    double read_seconds, write_seconds;
    gc_pcm_overs overs; /* with `convert` */
    /* inside: */
    _Atomic int64_t total; /* one frame behind the last that is written, once the input has ended */
    int64_t input;         /* frames of input; with total */
    int64_t taken;         /* frames of the result that came out of the engine */
    float *held;           /* quiet frames of the tail, which are written if something louder follows */
    int64_t held_frames, held_room;
    gc_dither pack;
    void *raw;
    int outputs;
    gpuconv_status write_status;
    gpuconv_error write_error;
} gc_transfer;

/* Moves what is wanted, and leaves the writer to be committed. FILE, FORMAT (nothing was wanted), DEVICE, MEMORY,
 * CANCELLED. */
gpuconv_status gc_transfer_run(gc_transfer *transfer, gpuconv_error *error);

#endif
