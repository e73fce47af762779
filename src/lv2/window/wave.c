/* Reads the envelope of a response, or the directions of a set, on a thread, so that a large file does not stop the
 * host's window. */
#include "window.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Reads the directions of a set, or some of many. */
static gpuconv_status read_set(const char *path, wave *w, gpuconv_error *error) {
    gpuconv_sofa *set;
    gpuconv_status status = gpuconv_sofa_open(path, 0, &set, error);
    if (status)
        return status;
    w->total = gpuconv_sofa_directions(set);
    w->rate = gpuconv_sofa_rate(set);
    const int step = (w->total - 1) / WAVE_BINS + 1;
    for (int i = 0; i < w->total; i += step) {
        double at[3];
        gpuconv_sofa_position(set, i, at);
        float *direction = w->direction[w->directions++];
        direction[0] = (float)(atan2(at[1], at[0]) * 180 / 3.14159265358979);
        direction[1] = (float)(atan2(at[2], hypot(at[0], at[1])) * 180 / 3.14159265358979);
    }
    gpuconv_sofa_free(set);
    return status;
}

/* Takes the magnitudes of the first routes. */
static void measure(const gpuconv_ir *ir, wave *w) {
    int64_t frames = gpuconv_ir_frames(ir);
    double most = 0;
    (void)gpuconv_ir_peak(ir, &most);
    for (int i = 0; i < gpuconv_ir_inputs(ir); i++)
        for (int o = 0; o < gpuconv_ir_outputs(ir) && w->channels < WAVE_CHANNELS; o++) {
            const float *taps = gpuconv_ir_taps(ir, i, o);
            if (!taps)
                continue;
            float *peak = w->peak[w->channels++];
            for (int64_t f = 0; f < frames; f++) {
                float magnitude = fabsf(taps[f]) / (float)(most > 0 ? most : 1);
                int bin = (int)((double)f / (double)frames * WAVE_BINS);
                peak[bin] = fmaxf(peak[bin], magnitude);
            }
        }
    w->total = gpuconv_ir_routes(ir);
    w->rate = gpuconv_ir_rate(ir);
    w->seconds = (double)frames / w->rate;
}

static void *read_wave(void *argument) {
    wave_reader *r = argument;
    gpuconv_error error = {GPUCONV_OK, ""};
    gpuconv_ir *ir = NULL;
    (void)gpuconv_cancel_set(&r->cancel);
    memset(&r->made, 0, sizeof r->made);
    if (r->is_set)
        (void)read_set(r->path, &r->made, &error);
    else if (gpuconv_ir_load_as(r->path, 48000, NULL, &ir, &error) == GPUCONV_OK)
        measure(ir, &r->made);
    (void)snprintf(r->made.message, sizeof r->made.message, "%.199s", error.message);
    gpuconv_ir_free(ir);
    atomic_store(&r->done, true);
    return NULL;
}

void wave_reader_end(wave_reader *r) {
    if (!r->running)
        return;
    __atomic_store_n(&r->cancel, 1, __ATOMIC_RELAXED);
    pthread_join(r->thread, NULL);
    r->running = false;
}

void wave_reader_begin(wave_reader *r, bool is_set, const char *path) {
    wave_reader_end(r);
    r->cancel = 0;
    r->is_set = is_set;
    atomic_store(&r->done, false);
    (void)snprintf(r->path, sizeof r->path, "%s", path);
    r->running = pthread_create(&r->thread, NULL, read_wave, r) == 0; /* without it, no envelope is shown */
}

bool wave_reader_take(wave_reader *r, wave *to) {
    if (!r->running || !atomic_load(&r->done))
        return false;
    wave_reader_end(r);
    *to = r->made;
    return true;
}
