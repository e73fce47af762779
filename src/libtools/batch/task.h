/* A task of a batch worker: one manifest entry with its open files, from opening the inputs to committing the output.
 * It has one part for each convolution: those that add up to the output, then those of the early reflections. */
#ifndef GPUCONV_BATCH_TASK_H
#define GPUCONV_BATCH_TASK_H

#include "libgpuconv/audio/file.h"
#include "mix.h"
#include "work.h"

/* One input through one response. */
typedef struct gc_part {
    gc_reader *reader; /* NULL: read already, or the part has the input of an earlier part */
    int input_of;      /* the part that reads this part's input */
    gc_response *response;
    bool response_is_new; /* this part is the first to use the response */
    gc_audio_info info;   /* of the input */
    int64_t frames;       /* to be read; -1: unknown */
    bool to_end;          /* up to the end of the file */
    int64_t start;        /* frame of the output at which the result begins */
    int64_t skip, after;  /* frames `skip` to frames + after of the convolution are kept */
    double power;         /* mean power of the input; only for GC_LEVEL_INPUT */
    gc_choice choice;     /* of the backend for slots */
    /* In the buffers of a slot: samples, their bytes, and the index of the part's item. */
    gc_batch_samples in, out;
    int64_t in_bytes, out_bytes;
    int item;
} gc_part;

typedef struct gc_task {
    int64_t entry; /* its index in the manifest */
    gc_part *part;
    int parts, sources; /* parts [0, sources) are the output, the others its early reflections */
    bool mixed;         /* the output is mixed in memory: several parts, noise or a level */
    bool stored;        /* the slot delivers the output in the file's own sample format, interleaved */
    double start_time;
    gc_state input_state, response_state, noise_state;
    bool shortened;                  /* an input ends before the part that was asked for */
    char *path, *early_path;         /* of the outputs; early_path NULL: none */
    char note[256];                  /* of the writer */
    char input_note[128];            /* of what an input does not hold, or is not read of it */
    const char *where;               /* the name of the device that computed, for the report */
    int64_t clipped;                 /* samples of the output */
    int64_t not_finite;              /* samples of inputs, valid once the readers are freed, and of the output */
    double offset, noise_offset;     /* seconds; drawn, if the entry says so */
    int64_t written;                 /* frames of the output */
    int64_t output_size, early_size; /* bytes */
} gc_task;

/* Opens an entry's inputs, seeks to the part that it selects and acquires the responses. The task must be closed also
 * after a failure. Fails with ARGUMENT (a refused entry), FORMAT (an empty part), MEMORY, or as gc_reader_open and
 * gc_responses_acquire. */
gpuconv_status gc_task_open(const gc_worker *worker, int64_t entry, gc_task *task, gpuconv_error *error);

/* Sets a part's window once its length is known. Fails with ARGUMENT (no frame is valid). */
gpuconv_status gc_task_set_window(const gc_worker *worker, const gc_task *task, gc_part *part, gpuconv_error *error);

/* Checks that the input of a part gave all frames that were to be read, and at its end that no more follow. Fails with
 * FORMAT. */
gpuconv_status gc_task_check_input(const gc_worker *worker, const gc_task *task, const gc_part *part, int64_t got,
                                   gpuconv_error *error);

/* Returns the entry of a task, and the wishes for its output. */
const gc_entry *gc_task_entry(const gc_worker *worker, const gc_task *task);
gc_output_options gc_task_options(const gc_worker *worker, const gc_task *task);

/* Creates an output file, whose folders are made. Fails as gc_create_parent_folders and gc_writer_new. */
gpuconv_status gc_task_open_output(const gc_worker *worker, gc_task *task, const char *path, int channels,
                                   int64_t frames, gc_writer **writer, gpuconv_error *error);

/* Gives an output its name; `early`: the second one. Fails as gc_writer_commit_checked. */
gpuconv_status gc_task_commit(gc_task *task, gc_writer *writer, bool early, gpuconv_error *error);

/* Reports the task's outcome to the worker's owner. An entry that was cancelled is not reported: it is neither done nor
 * failed, and --resume processes it. */
void gc_task_report(const gc_worker *worker, const gc_task *task, gpuconv_status status, const gpuconv_error *error);

void gc_task_close(const gc_worker *worker, gc_task *task);

#endif
