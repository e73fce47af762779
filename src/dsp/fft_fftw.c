/* Transforms through FFTW. Its planner is not thread-safe, so planning and destroying hold one lock; executing a plan
 * on new arrays is safe from any thread (FFTW manual, 5.2 and 4.6). Plans are estimated, not measured: on short jobs
 * the measuring costs more than it saves. */
#include "fft.h"

#include "../core/memory.h"

#include <fftw3.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t planner = PTHREAD_MUTEX_INITIALIZER;

struct gc_fft {
    fftwf_plan forward, backward;
};

struct gc_rfft {
    fftwf_plan forward, backward;
};

static void destroy(fftwf_plan forward, fftwf_plan backward) {
    pthread_mutex_lock(&planner);
    if (forward)
        fftwf_destroy_plan(forward);
    if (backward)
        fftwf_destroy_plan(backward);
    pthread_mutex_unlock(&planner);
}

gc_fft *gc_fft_new(int64_t points) {
    gc_fft *fft = gc_calloc(1, sizeof *fft);
    float *data = points <= INT_MAX ? gc_calloc(points, 2 * sizeof *data) : NULL;
    if (fft && data) {
        fftwf_complex *c = (fftwf_complex *)data;
        pthread_mutex_lock(&planner);
        fft->forward = fftwf_plan_dft_1d((int)points, c, c, FFTW_FORWARD, FFTW_ESTIMATE);
        fft->backward = fftwf_plan_dft_1d((int)points, c, c, FFTW_BACKWARD, FFTW_ESTIMATE);
        pthread_mutex_unlock(&planner);
    }
    free(data);
    if (fft && (!fft->forward || !fft->backward)) {
        gc_fft_free(fft);
        return NULL;
    }
    return fft;
}

void gc_fft_forward(const gc_fft *fft, float *data) {
    fftwf_execute_dft(fft->forward, (fftwf_complex *)data, (fftwf_complex *)data);
}

void gc_fft_backward(const gc_fft *fft, float *data) {
    fftwf_execute_dft(fft->backward, (fftwf_complex *)data, (fftwf_complex *)data);
}

void gc_fft_free(gc_fft *fft) {
    if (!fft)
        return;
    destroy(fft->forward, fft->backward);
    free(fft);
}

gc_rfft *gc_rfft_new(int64_t points) {
    gc_rfft *fft = gc_calloc(1, sizeof *fft);
    float *signal = points <= INT_MAX ? gc_calloc(points, sizeof *signal) : NULL;
    float *bins = points <= INT_MAX ? gc_calloc(points / 2 + 1, 2 * sizeof *bins) : NULL;
    if (fft && signal && bins) {
        fftwf_complex *c = (fftwf_complex *)bins;
        pthread_mutex_lock(&planner);
        fft->forward = fftwf_plan_dft_r2c_1d((int)points, signal, c, FFTW_ESTIMATE);
        fft->backward = fftwf_plan_dft_c2r_1d((int)points, c, signal, FFTW_ESTIMATE);
        pthread_mutex_unlock(&planner);
    }
    free(signal);
    free(bins);
    if (fft && (!fft->forward || !fft->backward)) {
        gc_rfft_free(fft);
        return NULL;
    }
    return fft;
}

void gc_rfft_forward(const gc_rfft *fft, float *signal, float *bins) {
    fftwf_execute_dft_r2c(fft->forward, signal, (fftwf_complex *)bins);
}

void gc_rfft_backward(const gc_rfft *fft, float *bins, float *signal) {
    fftwf_execute_dft_c2r(fft->backward, (fftwf_complex *)bins, signal);
}

void gc_rfft_free(gc_rfft *fft) {
    if (!fft)
        return;
    destroy(fft->forward, fft->backward);
    free(fft);
}
