/* Lines of text and the progress that a job sends to its caller. */
#ifndef GC_FILE_JOB_NOTES_H
#define GC_FILE_JOB_NOTES_H

#include "libgpuconv/audio/file.h"

/* Sends a line of text to the job's callback, if it has one. */
void gc_note(const gpuconv_job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sends the progress of a job that has read `frames` frames since the time `begin`, if it has a callback for it.
 * `step`: what is timed for a comparison; NULL: the job itself. */
void gc_send_progress(const gpuconv_job *job, const gc_reader *reader, int64_t frames, double begin, const char *step);

/* Sends a note about clipped samples, if there are any, with the gain that avoids them. */
void gc_note_overs(const gpuconv_job *job, gc_pcm out, const gc_pcm_overs *overs);

/* Sends a note about samples of the output that are not finite, if there are any. */
void gc_note_output(const gpuconv_job *job, const gc_writer *writer);

/* Sends notes about what the input holds and was not read, and about its samples that were not finite. */
void gc_note_input(const gpuconv_job *job, const gc_reader *reader);

#endif
