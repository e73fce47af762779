/* Calls the room acoustics of libtools, and puts the figures into rows. */
#include "room_figures.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libtools/room/figures.h"

#include <math.h>
#include <string.h>

static void fill_row(const gc_figures *all, const gc_figure *f, double row[GCPY_FIGURES]) {
    const gc_acoustics *a = &f->a;
    const double values[GCPY_FIGURES] = {
        [GCPY_CHANNEL] = f->channel,
        [GCPY_BAND] = f->band.nominal,
        [GCPY_EDT] = a->edt,
        [GCPY_T20] = a->t20,
        [GCPY_T30] = a->t30,
        [GCPY_C50] = a->c50,
        [GCPY_C80] = a->c80,
        [GCPY_D50] = a->d50,
        [GCPY_CENTRE] = a->centre,
        [GCPY_NOISE] = a->noise,
        [GCPY_INR] = a->inr,
        [GCPY_ONSET] = a->onset,
        [GCPY_STRENGTH] = f->strength,
        [GCPY_LATERAL] = f->lateral,
        [GCPY_IACC] = f->ears.all,
        [GCPY_IACC_EARLY] = f->ears.early,
        [GCPY_IACC_LATE] = f->ears.late,
        [GCPY_STI] = f->band.nominal > 0 ? (double)NAN : all->speech[f->channel].sti,
        [GCPY_DOUBT] = a->doubt,
    };
    memcpy(row, values, sizeof values);
}

gpuconv_status gcpy_figures(const gpuconv_ir *ir, const gcpy_figures_options *o, double **figures, int *rows,
                            gpuconv_error *error) {
    gc_figures all;
    gc_figures_options options = gc_figures_default();
    options.per_octave = o->per_octave;
    options.lateral = o->lateral;
    options.reference = o->reference;
    options.reference_level = o->reference_level;
    options.reference_distance = o->reference_distance;
    options.levels.speech = o->speech_level;
    options.levels.has_noise = o->noise_level != NULL;
    for (int k = 0; k < GC_SPEECH_BANDS && o->noise_level; k++)
        options.levels.noise[k] = o->noise_level[k];
    *figures = NULL;
    gpuconv_status status = gc_figures_of(ir, "the response", &options, &all, error);
    if (status)
        return status;
    *rows = all.channels * all.bands;
    *figures = gc_calloc(*rows, GCPY_FIGURES * (int64_t)sizeof **figures);
    if (!*figures)
        status = gc_fail_memory(error, "the figures of a response");
    for (int i = 0; i < *rows && !status; i++)
        fill_row(&all, &all.figure[i], *figures + (int64_t)i * GCPY_FIGURES);
    gc_figures_free(&all);
    return status;
}

void gcpy_doubt(unsigned doubt, char *text, size_t room) {
    (void)gc_doubt_text(doubt, text, room);
}
