/* Protects existing files from being replaced by mistake. */
#ifndef GC_FILE_OVERWRITE_H
#define GC_FILE_OVERWRITE_H

#include "gpuconv.h"

/* Refuses to replace an existing output that the response is read from, or that is the response of an earlier job whose
 * result is the response of this one: they have changed places. This is certain if the response has exactly the frames
 * of the input convolved with the output. An output of more than a minute is no response; one as long as the input is a
 * result of mode "same" or of no tail. Refuses nothing if the job says `force`. Returns ARGUMENT. */
gpuconv_status gc_check_overwrite(const gpuconv_job *job, gpuconv_error *error);

#endif
