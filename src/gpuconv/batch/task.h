/* A task of a batch worker: one manifest entry with its open files, from opening the input to committing the output. */
#ifndef GPUCONV_BATCH_TASK_H
#define GPUCONV_BATCH_TASK_H

#include "libgpuconv/audio/file.h"
#include "work.h"

typedef struct gc_task {
    int64_t entry; /* its index in the manifest */
    gc_reader *reader;
    gc_response *response;
    bool response_is_new; /* this task is the first to use the response */
    int64_t frames;       /* to be read; -1: unknown */
    gc_audio_info info;   /* of the input */
    double start_time;
    gc_state input_state, output_state;
    bool in_place;      /* the output replaces the task's own input or response */
    char *path;         /* of the output */
    char note[256];     /* of the writer */
    int64_t not_finite; /* input samples, valid once the reader is freed */
    /* Layout in the buffers of a slot: first byte, bytes, distance of two channels (of two frames' samples, if they are
     * interleaved), sample format. */
    int64_t in_at, in_bytes, in_row, out_at, out_bytes, out_row;
    gc_pcm in_pcm, out_pcm;
    bool stored; /* the slot delivers the output in the file's own sample format, interleaved */
    int item;    /* index of the task's first item in the slot */
} gc_task;

/* Opens an entry's input, seeks to the part that it selects and acquires its response. The task must be closed also
 * after a failure. Fails with ARGUMENT (a refused entry), FORMAT (an empty part), MEMORY, or as gc_reader_open and
 * gc_responses_acquire. */
gpuconv_status gc_task_open(const gc_worker *worker, int64_t entry, gc_task *task, gpuconv_error *error);

/* Creates the output file, whose folders are made. Fails as gc_create_parent_folders and gc_writer_new. */
gpuconv_status gc_task_open_output(const gc_worker *worker, gc_task *task, gc_writer **writer, gpuconv_error *error);

/* Gives the output its name. `where` is the device's name for the report. Fails as gc_writer_commit_checked. */
gpuconv_status gc_task_commit(const gc_worker *worker, gc_task *task, gc_writer *writer, const char *where,
                              int64_t clipped, gpuconv_error *error);

/* Reports the task's outcome to the worker's owner. An entry that was cancelled is not reported: it is neither done nor
 * failed, and --resume processes it. */
void gc_task_report(const gc_worker *worker, const gc_task *task, gpuconv_status status, const gpuconv_error *error,
                    const char *where, int64_t clipped);

void gc_task_close(const gc_worker *worker, gc_task *task);

#endif
