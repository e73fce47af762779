/* Benchmarks: convolutions of one machine, checked and held against what the machine can do at most. */
#ifndef GPUCONV_BENCH_BENCH_H
#define GPUCONV_BENCH_BENCH_H

#include "gpuconv.h"

typedef struct gc_bench_case {
    const char *name;
    int64_t frames, taps;
    int channels; /* each through a response of its own */
} gc_bench_case;

enum { GC_BENCH_POINTS = 64 };

/* Where convolutions stand between memory and arithmetic: operations that the algorithm does, over the bytes that must
 * be moved at least, and over the time that it took. */
typedef struct gc_roofline {
    int points;
    int backend[GC_BENCH_POINTS];
    double intensity[GC_BENCH_POINTS], rate[GC_BENCH_POINTS];
} gc_roofline;

typedef struct gc_bench {
    gpuconv_config config;  /* AUTO: every backend that is there */
    int runs;               /* 3..64 */
    bool peers;             /* also by FFTW and cuFFT where they are installed */
    gpuconv_report *report; /* takes the figures */
    /* By backend, from gc_bench_ceilings; 0: not measured, or not there. */
    double arithmetic[3];  /* operations a second at most */
    double bus[3];         /* bytes a second each way, both ways at once */
    double copy[3];        /* bytes a second, read and written */
    gc_roofline *roofline; /* takes a point of every convolution; NULL */
    const volatile int *cancel;
    void (*note)(void *context, const char *text); /* progress, and what could not be done */
    void *context;
} gc_bench;

/* The cases that the documentation quotes; *count of them. */
const gc_bench_case *gc_bench_cases(int *count);

/* The ceilings of each backend into the section "ceilings". DEVICE, MEMORY. */
gpuconv_status gc_bench_ceilings(gc_bench *bench, gpuconv_error *error);

/* One case, by every algorithm of each backend at the sizes that its plan chooses: rows of the list "convolutions". An
 * output that is off by more than -120 dB is a failure: STATE, with a sentence. */
gpuconv_status gc_bench_convolve(const gc_bench *bench, const gc_bench_case *what, gpuconv_error *error);

/* `signals` signals of what->frames on each CUDA device, each through its own response of what->taps, in device memory:
 * on one device, on two, ... on all of them. Rows of "batches". DEVICE, MEMORY, STATE. */
gpuconv_status gc_bench_batch(const gc_bench *bench, const gc_bench_case *what, int64_t signals, gpuconv_error *error);

/* The ceilings as lines and the points in between, to an .svg or .png through gnuplot. As gc_plot_write. */
gpuconv_status gc_bench_draw_roofline(const gc_bench *bench, const char *path, gpuconv_error *error);

/* The case through an engine, memory to memory, as floats and as 16-bit integers: rows of "streams", with the share of
 * the bus, and of the first chunks the percentage that was computed while others were copied in and out. Outputs are
 * checked as above (16 bits: to -70 dB). */
gpuconv_status gc_bench_stream(const gc_bench *bench, const gc_bench_case *what, gpuconv_error *error);

/* The case's time against response lengths 1, 2, 4 ... `most`, or against input lengths from 2^10 to `most`: rows of
 * "sweep". With `plot`, a drawing of it (SVG or PNG by its extension) through gnuplot. */
typedef enum gc_bench_axis { GC_BENCH_TAPS = 0, GC_BENCH_FRAMES } gc_bench_axis;

gpuconv_status gc_bench_sweep(const gc_bench *bench, const gc_bench_case *what, gc_bench_axis axis, int64_t most,
                              const char *plot, gpuconv_error *error);

#endif
