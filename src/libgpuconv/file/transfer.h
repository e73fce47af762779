/* Transfers samples from a reader through an engine to a writer. */
#ifndef GC_FILE_TRANSFER_H
#define GC_FILE_TRANSFER_H

#include "libgpuconv/audio/file.h"
#include "libgpuconv/conv/engine.h"
#include "libgpuconv/dsp/dither.h"

#include <stdatomic.h>

/* The frames of a result that are written: from `skip` up to the number of input frames plus `after`. Within the tail,
 * frames after the last sample of magnitude `floor` or more are left out; 0: none. */
typedef struct gc_window {
    int64_t skip, after;
    float floor;
} gc_window;

/* The values from which gc_window follows. */
typedef struct gc_window_wish {
    const gpuconv_job *job; /* mode, tail and tail_floor */
    double rate;            /* of the input, Hz */
    int64_t frames;         /* of the input; -1: unknown */
    const char *input;      /* its name, in messages */
    int64_t lead, tail;     /* of the response: frames before time zero, and all frames but one */
} gc_window_wish;

/* Finds the window of a result. Fails with ARGUMENT (no frame is valid). */
gpuconv_status gc_window_find(const gc_window_wish *wish, gc_window *window, gpuconv_error *error);

/* Returns the number of frames in a window; -1: unknown. */
int64_t gc_window_frames(const gc_window *window, int64_t input_frames);

typedef struct gc_transfer {
    gc_reader *reader;
    gc_writer *writer;
    gpuconv_engine *engine;
    const char *output; /* name of the output in messages */
    int64_t chunk;      /* frames per chunk of the engine's plan */
    int64_t limit;      /* ends the transfer once this many frames of the result are computed; -1: at its end */
    gc_window window;

    /* The engine gives floats, which are converted to the writer's format, with dither if `dither` is set. Required
     * with `dither`, and if frames are left out of an integer file: then only samples that are written are rounded and
     * counted as clipped. */
    bool convert, dither;

    /* Called on the reading thread after each chunk with the frames read so far; NULL: none. */
    void (*progress)(void *context, int64_t frames);
    void *context;
    const volatile int *cancel; /* NULL: none */

    /* Results: */
    int64_t read, written; /* frames */
    int64_t computed;      /* result frames taken from the engine */
    double read_seconds, write_seconds;
    gc_pcm_overs overs; /* with `convert` only; else the engine counts */

    /* Private: */
    _Atomic int64_t total; /* result frames up to the end of the window; INT64_MAX until the input has ended */
    int64_t input;         /* input frames; set before total */
    float *held;           /* quiet frames of the tail, written if a louder one follows */
    int64_t held_frames, held_room;
    gc_dither pack;
    void *raw; /* a chunk in the writer's format, with `convert` */
    int outputs;
} gc_transfer;

/* Creates the output of a job as transfer->writer, with the metadata of transfer->reader. frames: negative: unknown.
 * same_channels: each output is one of the input's channels, in their order. Returns the errors of gc_writer_new. */
gpuconv_status gc_transfer_open(gc_transfer *transfer, const gpuconv_job *job, int channels, bool same_channels,
                                int64_t frames, gpuconv_error *error);

/* Sets the window, and whether the engine must give floats. */
void gc_transfer_keep(gc_transfer *transfer, const gc_window *window, const gpuconv_ir *ir, bool dither);

/* Writing without an engine, which gc_transfer_run does itself: begins; writes the next interleaved frames of the
 * result, up to a chunk, that lie in the window, and holds quiet ones of a tail that has a floor; notes that the input
 * has ended, before a frame of the tail is written; frees what was held. Return FILE, MEMORY, CANCELLED. */
gpuconv_status gc_transfer_begin(gc_transfer *transfer, gpuconv_error *error);
gpuconv_status gc_transfer_put(gc_transfer *transfer, const void *frames, int64_t count, gpuconv_error *error);
void gc_transfer_end_input(gc_transfer *transfer);
void gc_transfer_end(gc_transfer *transfer);

/* Runs the transfer. The caller commits the writer. Fails with FILE, FORMAT (no frame to write, or an input longer than
 * its header says), DEVICE, MEMORY or CANCELLED. */
gpuconv_status gc_transfer_run(gc_transfer *transfer, gpuconv_error *error);

#endif
