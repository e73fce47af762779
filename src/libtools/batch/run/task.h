/* Tasks of a batch worker: one manifest entry with its open files, from opening the inputs to committing the outputs. A
 * task has one part for each convolution: those that add up to the output, then those of the early reflections. */
#ifndef GPUCONV_BATCH_RUN_TASK_H
#define GPUCONV_BATCH_RUN_TASK_H

#include "gpuconv.h"
#include "libgpuconv/audio/file.h"
#include "libgpuconv/file/transfer.h"
#include "libtools/batch/entry/entry.h"
#include "worker.h"

/* Planar samples, owned. */
typedef struct gc_mix {
    float **row; /* one for each channel */
    int channels, rate;
    int64_t frames;
} gc_mix;

/* Allocates silence. @return MEMORY */
gpuconv_status gc_mix_new(gc_mix *mix, int channels, int64_t frames, int rate, gpuconv_error *error);
void gc_mix_free(gc_mix *mix);

/* Adds `frames` frames of row[channel] from frame `at` of the mix on; frames behind its end are left out. */
void gc_mix_add(gc_mix *mix, const float *const *row, int64_t frames, int64_t at);

/* Adds noise from its frame `from` on, repeated as often as needed, such that the mean power of the mix before is `snr`
 * decibels above that of the noise. A single channel is added to all. *silent: mix or noise is silent, and nothing was
 * added. Fails with FORMAT if the channels do not fit. */
gpuconv_status gc_mix_add_noise(gc_mix *mix, const gpuconv_ir *noise, int64_t from, double snr, bool *silent,
                                gpuconv_error *error);

/* Returns the factor that brings the mix to a level; 1 for GC_LEVEL_NONE or silence. `input_power`: mean power of the
 * input, for GC_LEVEL_INPUT. Fails with FORMAT if there is no loudness, MEMORY. */
gpuconv_status gc_mix_find_level(const gc_mix *mix, gc_level_kind kind, double decibels, double input_power,
                                 double *factor, gpuconv_error *error);
void gc_mix_scale(gc_mix *mix, double factor);

/* Returns the number of frames up to the last one, from frame `from` on, in which a channel reaches `floor`; at least
 * `from`. */
int64_t gc_audible_frames(const float *const *row, int channels, int64_t frames, int64_t from, float floor);

/* Returns the mean power of planar samples. */
double gc_mean_power(const float *const *row, int channels, int64_t frames);

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
    gc_window window;     /* the frames of the convolution that are kept */
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

/* Gives an output its name; `early`: the second one. Fails as gc_writer_commit. */
gpuconv_status gc_task_commit(gc_task *task, gc_writer *writer, bool early, gpuconv_error *error);

/* Reports the task's outcome to the worker's owner. An entry that was cancelled is not reported: it is neither done nor
 * failed, and --resume processes it. */
void gc_task_report(const gc_worker *worker, const gc_task *task, gpuconv_status status, const gpuconv_error *error);

void gc_task_close(const gc_worker *worker, gc_task *task);

/* Scratch memory of a worker, grown as needed. */
typedef struct gc_scratch {
    void *raw; /* samples of one file in its own format */
    int64_t raw_bytes;
} gc_scratch;

void gc_scratch_free(gc_scratch *scratch);

/* Writes samples. Threads that only copy samples into files are limited by the worker's copy_permits, because they
 * contend inside the kernel; threads that encode are not. */
gpuconv_status gc_store_samples(const gc_worker *worker, gc_writer *writer, const void *raw, int64_t frames,
                                gpuconv_error *error);

/* Stores a task from the whole convolutions of its parts: rows[part][channel] has frames + taps - 1 frames. Commits the
 * outputs. */
gpuconv_status gc_store_rows(const gc_worker *worker, gc_task *task, float *const *const *rows, gc_scratch *scratch,
                             gpuconv_error *error);

#endif
