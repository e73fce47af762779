/* Benchmarks of convolution on this machine. Every output is verified, and times are compared with the machine's peak
 * rates. */
#ifndef GPUCONV_BENCH_BENCH_H
#define GPUCONV_BENCH_BENCH_H

#include "libgpuconv/conv/backend.h"
#include "libgpuconv/measure/measure.h"

typedef struct gc_bench_case {
    const char *name;
    int64_t frames, taps;
    int channels; /* each with its own response, unless it is a matrix */
    int outputs;  /* of a dense matrix: a response from every channel to every output; 0: no matrix */
} gc_bench_case;

/* Returns the number of outputs, and of responses. */
static inline int gc_bench_outputs(const gc_bench_case *what) {
    return what->outputs ? what->outputs : what->channels;
}
static inline int gc_bench_responses(const gc_bench_case *what) {
    return what->channels * (what->outputs ? what->outputs : 1);
}

enum { GC_BENCH_POINTS = 64 };

/* Points of a roofline diagram: arithmetic intensity (operations of the algorithm per byte of input and output) and
 * achieved rate (operations per second). */
typedef struct gc_roofline {
    int points;
    int backend[GC_BENCH_POINTS];
    double intensity[GC_BENCH_POINTS], rate[GC_BENCH_POINTS];
} gc_roofline;

/* The configuration of a benchmark, and the peak rates that its figures are compared with. */
typedef struct gc_bench {
    gpuconv_config config;          /* backend AUTO: every available backend */
    int runs;                       /* 3..64 */
    bool time_reference;            /* also times FFTW and cuFFT if they are installed */
    gpuconv_report *report;         /* receives the results */
    gc_roofline *roofline;          /* receives a point for every convolution; may be NULL */
    void (*note)(const char *text); /* receives progress and skipped measurements; may be NULL */
    /* Peak rates by backend, written by gc_bench_peak_rates; 0: not measured, or no such backend. */
    double arithmetic[GC_BACKENDS]; /* operations per second */
    double bus[GC_BACKENDS];        /* bytes per second in each direction, both directions at once */
    double copy[GC_BACKENDS];       /* bytes per second, read and written */
} gc_bench;

/* Returns the cases that the documentation quotes, and their number. */
const gc_bench_case *gc_bench_cases(int *count);

/* Measures the peak rates of each backend and reports them in the section "ceilings". @return DEVICE, MEMORY */
gpuconv_status gc_bench_peak_rates(gc_bench *bench, gpuconv_error *error);

/* Times one case with every algorithm of each backend, at the transform size that the planner chooses: rows of the list
 * "convolutions".
 * @return STATE if the error of an output exceeds -120 dB; DEVICE, MEMORY, CANCELLED */
gpuconv_status gc_bench_convolve(const gc_bench *bench, const gc_bench_case *what, gpuconv_error *error);

/* Times a batch in device memory: on each CUDA device `signals` signals of what->frames, each with its own response of
 * what->taps; on 1, 2, 4, ... devices and on all devices. Reports rows of "batches". @return DEVICE, MEMORY, STATE */
gpuconv_status gc_bench_batch(const gc_bench *bench, const gc_bench_case *what, int64_t signals, gpuconv_error *error);

/* Draws the peak rates as lines and the convolutions as points to an .svg, .png or .pdf by gnuplot. @return any status
 * of gc_plot_write */
gpuconv_status gc_bench_draw_roofline(const gc_bench *bench, const char *path, gpuconv_error *error);

/* Times an engine from memory to memory, with floats and with 16-bit integers: rows of "streams" with the share of the
 * bus rate, and the percentage of the first chunks that were computed while others were copied in and out.
 * @return STATE if the error of an output exceeds -120 dB (16 bits: -70 dB); DEVICE, MEMORY */
gpuconv_status gc_bench_stream(const gc_bench *bench, const gc_bench_case *what, gpuconv_error *error);

typedef enum gc_bench_axis { GC_BENCH_TAPS = 0, GC_BENCH_FRAMES } gc_bench_axis;

/* Times a case for response lengths 1, 2, 4 ... `most`, or for input lengths from 2^10 to `most`: rows of "sweep".
 * @param plot drawing that gnuplot writes, SVG or PNG by its extension; NULL: none */
gpuconv_status gc_bench_sweep(const gc_bench *bench, const gc_bench_case *what, gc_bench_axis axis, int64_t most,
                              const char *plot, gpuconv_error *error);

#endif
