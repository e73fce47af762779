/* gpuconv_convolve_file: one run of a job from file to file, its notes and report, and what follows the output:
 * comparison and drawing; and the job whose sources move. */
#ifndef GC_FILE_JOB_H
#define GC_FILE_JOB_H

#include "transfer.h"

/* ---- Notes and report (file_task.c) ------------------------------------------------------------------------------ */

/* Sends a line of text to the job's callback, if it has one. */
void gc_note(const gpuconv_job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sends the progress of a job that has read `frames` frames since the time `begin`, if it has a callback for it.
 * `step`: the name of the way that a comparison times; NULL: this is the job itself. */
void gc_send_progress(const gpuconv_job *job, const gc_reader *reader, int64_t frames, double begin, const char *step);

/* dB: a response begins with the first sample that comes this close to its peak. */
enum { GC_ONSET_LEVEL = -60 };

/* Adds the files and times of a finished run to the report, which may be NULL, and sends notes about samples that were
 * clipped or are not finite, and about what the input holds and was not read. `setup`, `wall`: seconds. */
void gc_report_run(gpuconv_report *report, const gpuconv_job *job, const gc_transfer *transfer,
                   const gc_stream_stats *stats, double setup, double wall);

/* ---- A run (file_task.c) ----------------------------------------------------------------------------------------- */

typedef struct gc_file_task {
    const gpuconv_job *job;
    bool announce;           /* send notes about the response and about the plan */
    int64_t part;            /* result frames to compute; -1: all */
    double begin;            /* time of the start, seconds */
    gpuconv_ir *shaped, *ir; /* the response before and after gains and the wet/dry mix */
    float peak;              /* of `shaped` */
    double silence;          /* at its beginning, seconds */
    gpuconv_plan *plan;
    gc_transfer transfer; /* its figures stay when the run has ended */
    double gpu_start;     /* seconds in which a GPU was started, or looked for */
    double setup, wall;   /* seconds from the start until the first sample is read, and until the end */
} gc_file_task;

/* Starts a run and opens its input. The task is freed in any case. Returns the errors of gc_reader_open. */
gpuconv_status gc_file_task_open(gc_file_task *task, const gpuconv_job *job, gpuconv_error *error);

/* Convolves the open input into the output file, and sends notes and progress. Afterwards the plan and the responses
 * still exist. `report` may be NULL. Returns the errors of gpuconv_convolve_file. */
gpuconv_status gc_file_task_convolve(gc_file_task *task, const gpuconv_config *config, gpuconv_report *report,
                                     gpuconv_error *error);

/* Runs in the same way in order to be timed: the samples go to a file in the folder of the output, in the same format,
 * which has no name or a temporary one and never takes that of the output. gc_file_task_free removes it. Sends and
 * reports nothing. `part`: about this many frames of the result, from its beginning, in whole chunks; -1: all of them.
 * The latency of the configuration bounds the chunks. */
gpuconv_status gc_file_task_try(gc_file_task *task, const gpuconv_config *config, int64_t part, gpuconv_error *error);

void gc_file_task_free(gc_file_task *task);

/* ---- After the output -------------------------------------------------------------------------------------------- */

/* Computes the job of a finished task in other ways and adds sentences and rows to the report, which may be NULL: then
 * there is nothing to do. `config` is that of the job. Each way runs the whole job if that fits the job's budget, else
 * a part. A way that fails is left out, with its reason. Returns FILE, FORMAT (the input has changed), MEMORY,
 * CANCELLED. */
gpuconv_status gc_compare(const gc_file_task *task, const gpuconv_config *config, gpuconv_report *report,
                          gpuconv_error *error);

/* Draws waveform, spectrogram and spectrum of the job's input and output on the same scales, and the decay of the
 * response, into the file job->plot. @param svg gets the panels as of gc_plot_panels_svg if job->plot is NULL; freed by
 * the caller @return ARGUMENT, UNSUPPORTED (no gnuplot), FILE, MEMORY, CANCELLED */
gpuconv_status gc_draw_job(const gpuconv_job *job, const gpuconv_ir *ir, char **svg, gpuconv_error *error);

/* ---- Moving sources (move_file.c) -------------------------------------------------------------------------------- */

/* Moves the channels of the open input along job->path, before job->head, into the output file. Fails with ARGUMENT (a
 * step that a moving source does not have), UNSUPPORTED (a GPU), FILE, FORMAT, MEMORY or CANCELLED. */
gpuconv_status gc_move_file(const gpuconv_job *job, const gpuconv_config *config, gc_reader *reader,
                            gpuconv_report *report, gpuconv_error *error);

/* Returns whether a job has moving sources, a head that turns, or a room. */
bool gc_moves(const gpuconv_job *job);

/* Checks that the response is a SOFA file or a room, and that each source has one place. Returns ARGUMENT. */
gpuconv_status gc_moving_check(const gpuconv_job *job, gpuconv_error *error);

/* The objects of moving sources; NULL: not used. */
typedef struct gc_moving {
    gpuconv_sofa *set;
    gpuconv_path *path, *receiver_path;
    gpuconv_head *head;
    gpuconv_motion *motion;
} gc_moving;

/* Opens what a job names, for `channels` sources, and makes moving sources of it; threads, backend and device are those
 * of `config`. gc_moving_close frees all, after a failure too. Returns the errors of gpuconv_sofa_open,
 * gpuconv_path_load, gpuconv_path_new_still, gpuconv_head_load, gpuconv_motion_new and gpuconv_motion_new_in_room. */
gpuconv_status gc_moving_open(gc_moving *m, const gpuconv_job *job, const gpuconv_config *config, double rate,
                              int channels, gpuconv_error *error);
void gc_moving_close(gc_moving *m);

#endif
