/*
 * What the picture of the README is drawn from. `spectrogram wave FILE SECONDS` prints lowest and highest sample of
 * each of 1000 columns of the first channel; `spectrogram levels FILE SECONDS` prints time, frequency (kHz) and level
 * (dB) of a Hann-windowed transform of 1024 points (Harris 1978), gnuplot's image format.
 */
#include <fftw3.h>
#include <math.h>
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS = 1024, COLUMNS = 600, WAVES = 1000 };

static int wave(const float *x, sf_count_t n, double seconds) {
    for (int c = 0; c < WAVES; c++) {
        float low = 0, high = 0;
        for (sf_count_t i = n * c / WAVES; i < n * (c + 1) / WAVES; i++) {
            low = x[i] < low ? x[i] : low;
            high = x[i] > high ? x[i] : high;
        }
        printf("%.5f %.5f %.5f\n", seconds * c / WAVES, (double)low, (double)high);
    }
    return 0;
}

static int levels(const float *x, sf_count_t n, double seconds, int rate) {
    float *in = fftwf_alloc_real(POINTS);
    fftwf_complex *out = fftwf_alloc_complex(POINTS / 2 + 1);
    if (!in || !out)
        return 1;
    fftwf_plan plan = fftwf_plan_dft_r2c_1d(POINTS, in, out, FFTW_ESTIMATE);
    for (int c = 0; c < COLUMNS; c++) {
        sf_count_t middle = n * c / COLUMNS;
        for (int i = 0; i < POINTS; i++) {
            sf_count_t at = middle + i - POINTS / 2;
            double window = 0.5 - 0.5 * cos(6.283185307179586 * i / POINTS);
            in[i] = at >= 0 && at < n ? (float)(window * (double)x[at]) : 0.0f;
        }
        fftwf_execute(plan);
        for (int k = 0; k < POINTS / 2 && k * rate < 12000 * POINTS; k++) {
            double re = (double)out[k][0], im = (double)out[k][1];
            double level = 10 * log10((re * re + im * im) * 16 / (POINTS * (double)POINTS) + 1e-12);
            printf("%.4f %.4f %.1f\n", seconds * c / COLUMNS, 1e-3 * k * rate / POINTS, level);
        }
        putchar('\n');
    }
    fftwf_destroy_plan(plan);
    fftwf_free(in);
    fftwf_free(out);
    return 0;
}

int main(int argc, char **argv) {
    SF_INFO info = {0};
    SNDFILE *file = argc == 4 ? sf_open(argv[2], SFM_READ, &info) : NULL;
    double seconds = argc == 4 ? atof(argv[3]) : 0;
    if (!file || !(seconds > 0)) {
        fprintf(stderr, "usage: spectrogram wave|levels FILE SECONDS\n");
        return 2;
    }
    sf_count_t n = (sf_count_t)(seconds * info.samplerate);
    float *all = calloc((size_t)n * (size_t)info.channels, sizeof *all), *x = calloc((size_t)n, sizeof *x);
    if (!all || !x)
        return 1;
    sf_readf_float(file, all, n);
    for (sf_count_t i = 0; i < n; i++)
        x[i] = all[i * info.channels];
    int failed = strcmp(argv[1], "wave") == 0 ? wave(x, n, seconds) : levels(x, n, seconds, info.samplerate);
    sf_close(file);
    free(all);
    free(x);
    return failed || fflush(stdout) != 0;
}
