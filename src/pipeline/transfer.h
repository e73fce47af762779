/* The passage of samples from a reader through an engine to a writer. */
#ifndef GC_PIPELINE_TRANSFER_H
#define GC_PIPELINE_TRANSFER_H

#include "../audio/file.h"
#include "../engine/engine.h"

typedef struct gc_transfer {
    gc_reader *reader;
    gc_writer *writer;
    gpuconv_engine *engine;
    const char *output; /* how messages call the writer's file */
    int64_t chunk;      /* frames, as the engine's plan has it */
    int64_t limit;      /* frames to read at most; -1: to the end */
    const volatile int *cancel;
    /* afterwards: */
    int64_t read, written;
    double read_seconds, write_seconds;
    /* inside: */
    gpuconv_status write_status;
    gpuconv_error write_error;
} gc_transfer;

/* Moves everything, tail included, and leaves the writer to be committed. FILE, DEVICE, MEMORY, CANCELLED. */
gpuconv_status gc_transfer_run(gc_transfer *transfer, gpuconv_error *error);

#endif
