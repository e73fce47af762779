/* Convolves parts of any length in memory. */
#include "render.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/pcm.h"
#include "libgpuconv/dsp/simd.h"
#include "libgpuconv/ir/object.h"
#include "store.h"
#include "worker_engine.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 16 };

/* Enlarges planar samples, of which `used` frames are kept. @return MEMORY */
static gpuconv_status enlarge(gc_mix *m, int64_t used, gpuconv_error *error) {
    gc_mix larger;
    gpuconv_status status = gc_mix_new(&larger, m->channels, gc_max(2 * m->frames, PIECE), m->rate, error);
    if (status)
        return status;
    for (int c = 0; c < m->channels; c++)
        memcpy(larger.row[c], m->row[c], (size_t)used * sizeof(float));
    gc_mix_free(m);
    *m = larger;
    return GPUCONV_OK;
}

/* Reads the input of a part up to its end, if its length is unknown. */
static gpuconv_status read_input(const gc_worker *w, gc_task *t, gc_part *p, gc_mix *x, gpuconv_error *error) {
    const int channels = p->info.channels;
    int64_t got = 1, used = 0;
    float *piece = gc_calloc((int64_t)PIECE * channels, sizeof *piece);
    gpuconv_status status = piece ? gc_mix_new(x, channels, p->frames < 0 ? PIECE : p->frames, p->info.rate, error)
                                  : gc_fail_memory(error, t->path);
    while (!status && got > 0 && used != p->frames) {
        if (used == x->frames && (status = enlarge(x, used, error)) != GPUCONV_OK)
            break;
        const int64_t wanted = gc_min(PIECE, x->frames - used);
        status = gc_reader_read_floats(p->reader, piece, wanted, &got, error);
        for (int c = 0; c < channels; c++)
            for (int64_t i = 0; i < got; i++)
                x->row[c][used + i] = piece[i * channels + c];
        used += status ? 0 : got;
    }
    free(piece);
    if (!status)
        status = gc_task_check_input(w, t, p, used, error);
    if (!status && used == 0)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "the input holds no frames");
    x->frames = p->frames = used;
    return status;
}

/* Feeds all of the input and takes all of the result. */
static gpuconv_status run_engine(gpuconv_engine *engine, const gc_mix *x, gc_mix *y, const volatile int *cancel,
                                 gpuconv_error *error) {
    const float **in = gc_calloc(x->channels, (int64_t)sizeof *in);
    float **out = gc_calloc(y->channels, (int64_t)sizeof *out);
    gpuconv_status status = in && out ? GPUCONV_OK : gc_fail_memory(error, "a convolution");
    int64_t fed = 0, taken = 0;
    while (!status && taken < y->frames) {
        int64_t produced = 0;
        const int64_t n = gc_min(PIECE, x->frames - fed);
        for (int c = 0; c < x->channels; c++)
            in[c] = x->row[c] + fed;
        for (int c = 0; c < y->channels; c++)
            out[c] = y->row[c] + taken;
        status = n > 0 ? gpuconv_engine_process(engine, in, n, out, &produced)
                       : gpuconv_engine_drain(engine, out, gc_min(PIECE, y->frames - taken), &produced);
        if (status)
            gc_fail(error, status, "the convolution failed");
        else if (n == 0 && produced == 0)
            status = gc_fail(error, GPUCONV_ERROR_STATE, "the convolution ended after %lld of %lld frames",
                             (long long)taken, (long long)y->frames);
        else if (cancel && *cancel)
            status = gc_fail(error, GPUCONV_ERROR_CANCELLED, "interrupted");
        fed += n;
        taken += status ? 0 : produced;
    }
    free((void *)in);
    free((void *)out);
    return status;
}

/* Convolves an input with the response of a part. *on_gpu: becomes false if a GPU did not compute it. */
static gpuconv_status convolve(const gc_worker *w, const gc_part *p, const gc_mix *x, gc_mix *y, bool *on_gpu,
                               gpuconv_error *error) {
    const gpuconv_ir *ir = p->response->ir;
    const gc_pcm floats = {GC_F32, 32};
    gpuconv_plan *plan = NULL;
    gpuconv_engine *engine = NULL;
    gpuconv_status status = gc_mix_new(y, ir->outputs, x->frames + ir->frames - 1, x->rate, error);
    if (!status)
        status = gc_worker_engine(w, ir, x->frames, floats, floats, &plan, &engine, error);
    *on_gpu = *on_gpu && !status && gpuconv_plan_backend(plan) == GPUCONV_BACKEND_CUDA;
    if (!status)
        status = run_engine(engine, x, y, w->cancel, error);
    gpuconv_engine_free(engine);
    gpuconv_plan_free(plan);
    return status;
}

/* Reads the input of source `i` and convolves it for the output and for the early reflections. */
static gpuconv_status render_source(const gc_worker *w, gc_task *t, int i, gc_mix *results, bool *on_gpu,
                                    gpuconv_error *error) {
    gpuconv_error inner = {0};
    gc_mix x = {0};
    gc_part *p = &t->part[i];
    const gc_source source = gc_entry_source(gc_task_entry(w, t), i);
    gpuconv_status status = read_input(w, t, p, &x, &inner);
    if (!status) {
        t->not_finite += gc_reader_nonfinite(p->reader, NULL);
        gc_reader_free(p->reader);
        p->reader = NULL;
        if (gc_entry_recipe(gc_task_entry(w, t))->level == GC_LEVEL_INPUT)
            p->power = gc_mean_power((const float *const *)x.row, x.channels, x.frames);
        status = gc_task_set_window(w, t, p, &inner);
    }
    if (!status)
        status = convolve(w, p, &x, &results[i], on_gpu, &inner);
    if (!status && t->early_path) {
        t->part[t->sources + i].frames = p->frames;
        status = convolve(w, &t->part[t->sources + i], &x, &results[t->sources + i], on_gpu, &inner);
    }
    gc_mix_free(&x);
    return status ? gc_fail(error, status, "%s: %s", source.input, inner.message) : GPUCONV_OK;
}

gpuconv_status gc_render(const gc_worker *w, gc_task *t, const char *device, gpuconv_error *error) {
    bool on_gpu = true;
    gc_mix *results = gc_calloc(t->parts, sizeof *results);
    float ***rows = gc_calloc(t->parts, (int64_t)sizeof *rows);
    gc_scratch scratch = {0};
    gpuconv_status status = results && rows ? GPUCONV_OK : gc_fail_memory(error, t->path);
    for (int i = 0; i < t->sources && !status; i++)
        status = render_source(w, t, i, results, &on_gpu, error);
    for (int i = 0; i < t->parts && !status; i++)
        rows[i] = results[i].row;
    t->where = on_gpu ? device : "cpu";
    if (!status)
        status = gc_store_rows(w, t, (float *const *const *)rows, &scratch, error);
    for (int i = 0; i < t->parts && results; i++)
        gc_mix_free(&results[i]);
    gc_scratch_free(&scratch);
    free((void *)rows);
    free(results);
    return status;
}
