/* The notes and the progress of a job. */
#include "job_notes.h"

#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/limits.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/visible.h"

#include <math.h>
#include <stdarg.h>

void gc_note(const gpuconv_job *job, const char *format, ...) {
    if (!job->note)
        return;
    char text[512];
    va_list args;
    va_start(args, format);
    gc_visible_print(text, sizeof text, format, args);
    va_end(args);
    job->note(job->context, text);
}

void gc_send_progress(const gpuconv_job *job, const gc_reader *reader, int64_t frames, double begin, const char *step) {
    const gc_audio_info *in = gc_reader_info(reader);
    const gpuconv_progress p = {sizeof p, frames, in->frames, in->rate, gc_now() - begin, step};
    if (job->progress)
        job->progress(job->context, &p);
}

void gc_note_output(const gpuconv_job *job, const gc_writer *writer) {
    int64_t first = 0;
    const int64_t count = gc_writer_nonfinite(writer, &first);
    if (count > 0)
        gc_note(job,
                "%s: %lld sample%s not finite (NaN or infinity), the first at frame %lld; the input is too large for "
                "single precision, --algorithm direct has more room",
                job->output, (long long)count, count == 1 ? " is" : "s are", (long long)first);
}

/* Sends a note about clipped samples, with the gain that avoids them. The gain is rounded down to 0.1 dB and keeps the
 * peak one quantisation step below full scale, because full scale itself clips and samples are rounded. The margin is
 * at least 1e-6, which covers the rounding of the floats. */
void gc_note_overs(const gpuconv_job *job, gc_pcm out, const gc_pcm_overs *overs) {
    if (overs->clipped == 0)
        return;
    double peak = (double)overs->peak, full = 1 - fmax(ldexp(1, 1 - out.bits), 1e-6);
    double gain = floor(10 * (job->gain - 20 * log10(peak / full))) / 10;
    long long count = (long long)overs->clipped;
    const char *plural = count == 1 ? "" : "s";
    if (peak <= full)
        gc_note(job, "%s: %lld sample%s not a number (NaN), written as silence", job->output, count, plural);
    else if (gc_is_gain(gain))
        gc_note(job, "%s: %lld sample%s clipped; --gain %.1f would avoid it", job->output, count, plural, gain);
    else
        gc_note(job, "%s: %lld sample%s clipped", job->output, count, plural);
}

void gc_note_input(const gpuconv_job *job, const gc_reader *reader) {
    int64_t first, count = gc_reader_nonfinite(reader, &first);
    if (*gc_reader_note(reader))
        gc_note(job, "%s: %s", job->input, gc_reader_note(reader));
    if (count == 1)
        gc_note(job, "%s: 1 sample is not finite (NaN or infinity) and was taken as silence; it is at frame %lld",
                job->input, (long long)first);
    else if (count > 1)
        gc_note(
            job,
            "%s: %lld samples are not finite (NaN or infinity) and were taken as silence; the first is at frame %lld",
            job->input, (long long)count, (long long)first);
}
