/* Test signals and responses of the benchmarks, and verification of outputs. */
#include "material.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/random.h"

#include <math.h>
#include <stdlib.h>

/* Allocates a zeroed plane per channel. @return NULL if memory is exhausted */
static float **planar(int channels, int64_t frames) {
    float **p = gc_calloc(channels, sizeof *p);
    for (int c = 0; p && c < channels; c++) {
        p[c] = gc_calloc(frames, sizeof **p);
        if (!p[c]) {
            for (int k = 0; k < c; k++)
                free(p[k]);
            free(p);
            return NULL;
        }
    }
    return p;
}

static void free_planar(float **p, int channels) {
    for (int c = 0; p && c < channels; c++)
        free(p[c]);
    free(p);
}

void gc_material_free(gc_material *m) {
    free_planar(m->in, m->what.channels);
    free_planar(m->out, gc_bench_outputs(&m->what));
    free_planar(m->taps, gc_bench_responses(&m->what));
    gpuconv_ir_free(m->ir);
    free(m->sums);
    *m = (gc_material){0};
}

/* Returns whether a long loop must end at frame i: checks the cancel flag every 65536 frames. */
static bool cancelled_at(int64_t i) {
    return i % 65536 == 65535 && gc_cancelled();
}

gpuconv_status gc_material_new(const gc_bench_case *what, gc_material *m, gpuconv_error *error) {
    *m = (gc_material){.what = *what};
    uint64_t state = (uint64_t)(what->frames * 31 + what->taps) | 1;
    m->in = planar(what->channels, what->frames);
    m->out = planar(gc_bench_outputs(what), what->frames);
    m->taps = planar(gc_bench_responses(what), what->taps);
    m->sums = gc_calloc(what->channels, sizeof *m->sums);
    gpuconv_ir *mono = NULL;
    gpuconv_status status = m->in && m->out && m->taps && m->sums ? GPUCONV_OK : gc_fail_memory(error, "the benchmark");
    for (int c = 0; !status && c < gc_bench_responses(what); c++) {
        for (int64_t i = 0; c < what->channels && i < what->frames && !cancelled_at(i); i++)
            m->in[c][i] = gc_random_float(&state);
        for (int64_t i = 0; i < what->taps && !cancelled_at(i); i++) /* decays by 60 dB */
            m->taps[c][i] = gc_random_float(&state) * (float)exp(-6.9 * (double)i / (double)what->taps);
        if (!what->outputs) /* for a matrix they would take minutes */
            m->sums[c] = gc_point_sums_of_convolution(m->in[c], what->frames, m->taps[c], what->taps, what->frames);
        if (gc_cancelled())
            status = gc_fail_cancelled(error, "the benchmark");
    }
    if (!status && what->outputs)
        status = gpuconv_ir_new_matrix((const float *const *)m->taps, what->channels, what->outputs, what->taps, 48000,
                                       &m->ir, error);
    if (!status && !what->outputs)
        status = gpuconv_ir_new((const float *const *)m->taps, what->channels, what->taps, 48000, &mono, error);
    if (!status && !what->outputs)
        status = gpuconv_ir_route(mono, what->channels, &m->ir, error);
    gpuconv_ir_free(mono);
    if (status)
        gc_material_free(m);
    return status;
}

/* Sums over the checked frames: expected^2, (actual - expected)^2. */
typedef struct sums {
    double expected, error;
} sums;

/* Compares the output with direct sums at both ends and at random frames. @return false if a sample is not finite */
static bool compare(const gc_material *m, sums *s) {
    enum { MOST = 160, LEAST = 12 };
    const int outputs = gc_bench_outputs(&m->what), responses = gc_bench_responses(&m->what) / outputs;
    const int checked = responses * LEAST > MOST ? LEAST : MOST / responses;
    uint64_t state = 77;
    *s = (sums){0};
    for (int c = 0; c < outputs; c++) {
        for (int64_t i = 0; i < m->what.frames && !cancelled_at(i); i++)
            if (!isfinite(m->out[c][i]))
                return false;
        for (int k = 0; k < checked && !gc_cancelled(); k++) {
            int64_t at = k == 0 ? 0 : (int64_t)(((double)gc_random_float(&state) + 0.5) * (double)(m->what.frames - 1));
            at = k == 1 ? m->what.frames - 1 : at;
            double expected = 0, actual = (double)m->out[c][at];
            for (int r = 0; r < responses; r++) {
                const int input = m->what.outputs ? r : c;
                const float *x = m->in[input], *h = m->taps[m->what.outputs ? input * outputs + c : c];
                for (int64_t i = 0; i < m->what.taps && i <= at; i++)
                    expected += (double)h[i] * (double)x[at - i];
            }
            s->expected += expected * expected;
            s->error += (actual - expected) * (actual - expected);
        }
    }
    return true;
}

double gc_material_error(const gc_material *m) {
    sums s;
    return compare(m, &s) ? 10 * log10(s.error / s.expected) : (double)INFINITY;
}

double gc_material_whole_error(const gc_material *m) {
    double error = 0, energy = 0;
    if (m->what.outputs)
        return gc_material_error(m);
    for (int c = 0; c < m->what.channels && !gc_cancelled(); c++) {
        const gc_point_sums got = gc_point_sums_of(m->out[c], m->what.frames);
        error += gc_point_sums_distance(&got, &m->sums[c]);
        for (int64_t i = 0; i < m->what.frames; i++)
            energy += (double)m->out[c][i] * (double)m->out[c][i];
    }
    return 10 * log10(error / energy);
}
