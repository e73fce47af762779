/*
 * Benchmarks of convolution on this machine. Every output is verified, and times are compared with the machine's peak
 * rates.
 */
#ifndef GPUCONV_BENCH_BENCH_H
#define GPUCONV_BENCH_BENCH_H

#include "libgpuconv/conv/backend.h"
#include "libgpuconv/dsp/point_sums.h"
#include "libgpuconv/measure/measure.h"

/* ---- Cases, batches, lengths (bench.c), streams (stream.c) ------------------------------------------------------- */

typedef struct gc_bench_case {
    const char *name;
    int64_t frames, taps;
    int channels; /* each with its own response, unless it is a matrix */
    int outputs;  /* of a dense matrix: a response from every channel to every output; 0: no matrix */
} gc_bench_case;

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

/* ---- Material: signals and responses from a fixed seed ----------------------------------------------------------- */

typedef struct gc_material {
    gc_bench_case what;
    float **in, **out; /* by channel */
    float **taps;      /* by channel; of a matrix: response of input i and output o at i * outputs + o */
    gpuconv_ir *ir;
    gc_point_sums *sums; /* of the correct output, by channel */
} gc_material;

/* Creates the input, the response and space for the output. @return MEMORY, CANCELLED */
gpuconv_status gc_material_new(const gc_bench_case *what, gc_material *material, gpuconv_error *error);
void gc_material_free(gc_material *material);

/* Makes the routed response of a case from its taps, as in gc_material. @return MEMORY */
gpuconv_status gc_bench_response(const gc_bench_case *what, const float *const *taps, double rate, gpuconv_ir **ir,
                                 gpuconv_error *error);

/* ---- Times of single plans --------------------------------------------------------------------------------------- */

enum { GC_BENCH_RUNS_MOST = GC_TIMING_RUNS_MAX };

/* Passes a text to the benchmark's note callback. */
void gc_bench_note(const gc_bench *bench, const char *text);

/* Lists the backends to be measured: all available ones, or the configured one. @return their number */
int gc_bench_backends(const gc_bench *bench, const gc_backend *list[GC_BACKENDS]);

/* Fails with DEVICE because the list is empty. */
gpuconv_status gc_bench_fail_no_backend(gpuconv_error *error);

/* Adds a point to the benchmark's roofline, if there is one and it is not full. */
void gc_roofline_add(const gc_bench *bench, const gpuconv_plan *plan, const gc_bench_case *what, double seconds);

/* ---- Rows of arrays, as Python and C programs run them, beside peers (rows.c) ------------------------------------ */

/* Times rows of 128 to 2^20 frames, forward and with both gradients, packed rows, and filters that change with time, on
 * each backend; on the CPU a part of the rows. Reports rows of "rows": the time, its ratio to that of reading and
 * writing every sample once at the rate of a copy, and to the forward; where python3 has PyTorch the time of its FFT on
 * the same processor, and on a GPU that of NVIDIA's fft_causal_conv1d where it is installed. gc_bench_peak_rates comes
 * before. most: longer rows are left out.
 * @return STATE if an output is wrong: above -115 dB, for 16 bits -48 dB; DEVICE, MEMORY, CANCELLED */
gpuconv_status gc_bench_rows(const gc_bench *bench, int64_t most, gpuconv_error *error);

/* ---- Real time: blocks paced by a clock, without a sound device (realtime.c) ------------------------------------- */

typedef struct gc_bench_realtime_case {
    gpuconv_backend backend; /* CUDA: a bank on a GPU; otherwise the CPU */
    int device;
    int channels; /* each with its own response, unless it is a matrix */
    int outputs;  /* of a dense matrix on the CPU: a response from every channel to every output; 0: no matrix */
    const char
        *moving; /* a SOFA file: the channels move before it, rendered by `threads` or a GPU; NULL: they do not */
    int64_t taps;
    int block; /* frames */
    double rate, seconds;
    int threads;      /* of the CPU for the tail */
    bool search;      /* doubles the channels while 99.9 % of the blocks are in time and no tail block is late */
    const char *plot; /* drawing of the block times; NULL: none */
} gc_bench_realtime_case;

/* Reports rows of "real time": block times, deadline, late blocks and processor time. The histogram of the last run
 * goes to the list "block times" and to what->plot. @return MEMORY, CANCELLED, STATE if the output is wrong */
gpuconv_status gc_bench_realtime(const gc_bench *bench, const gc_bench_realtime_case *what, gpuconv_error *error);

/* Runs the same channels on CPU and GPU, doubled until the CPU is late: rows of "real time" and "crossover", and the
 * numbers of channels from which the GPU needs less processor time, and from which only the GPU is in time. @return as
 * gc_bench_realtime; DEVICE, UNSUPPORTED */
gpuconv_status gc_bench_crossover(const gc_bench *bench, const gc_bench_realtime_case *what, gpuconv_error *error);

#endif
