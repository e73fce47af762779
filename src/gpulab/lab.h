/*
 * The interface of a module of the lab: one lesson of a CUDA course, as a ladder of variants of one computation.
 *
 * A module consists of kernels/course/<module>.c (idea, gc_lab_module, reference, CPU variants),
 * kernels/course/<module>.cu (GPU variants) and a line in kernels/course/modules.def. Both files neither allocate,
 * print nor measure time. The harness in this folder passes buffers and streams to every variant, fills its outputs
 * with NaN, compares them with the reference, and times the variant.
 *
 * Inputs are random numbers from a fixed seed. They are rounded to the type in which the variant reads them, and the
 * reference gets the rounded values.
 */
#ifndef GPULAB_LAB_H
#define GPULAB_LAB_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { LAB_DIMENSIONS = 4, LAB_BUFFERS = 8, LAB_STREAMS = 8 };

/* ---- Buffers ----------------------------------------------------------------------------------------------------- */

typedef enum gc_lab_type {
    LAB_AS_IS = 0, /* in a variant: the type that the module gives the buffer */
    LAB_F32,
    LAB_F64,
    LAB_F16,
    LAB_BF16,
    LAB_I32,
    LAB_U8
} gc_lab_type;

typedef enum gc_lab_role {
    LAB_INPUT,
    LAB_OUTPUT,   /* compared with the reference */
    LAB_MEASURED, /* written by the variant, read by its figure(): cycles, counts */
    LAB_SCRATCH   /* zeroed before a variant starts; not checked afterwards */
} gc_lab_role;

typedef struct gc_lab_buffer {
    const char *name;
    gc_lab_role role;
    gc_lab_type type;
    int64_t count;
    double low, high;                                                 /* range of random floats; 0, 0: -1 to 1 */
    void (*fill)(const int64_t *size, void *elements, int64_t count); /* NULL: random; for permutations, indices */
} gc_lab_buffer;

/* The host memory that belongs to the buffers, for variants that copy between host and device. */
typedef enum gc_lab_memory {
    LAB_DEVICE = 0, /* no host memory: inputs and outputs are on the device before and after */
    LAB_PAGEABLE,   /* memory of malloc; the variant copies from host[] to buffer[] and back */
    LAB_PINNED,
    LAB_PORTABLE, /* pinned for all contexts */
    LAB_COMBINED, /* pinned, write-combined */
    LAB_MAPPED,   /* buffer[] is the device address of host[] */
    LAB_MANAGED   /* buffer[] and host[] are the same managed memory */
} gc_lab_memory;

/* ---- A run ------------------------------------------------------------------------------------------------------- */

typedef struct gc_lab_run {
    int64_t size[LAB_DIMENSIONS];
    int64_t count[LAB_BUFFERS];   /* elements */
    void *buffer[LAB_BUFFERS];    /* operands: device memory, or host memory for a CPU variant */
    void *host[LAB_BUFFERS];      /* host memory of the kind gc_lab_memory; the outputs after the run */
    const float *in[LAB_BUFFERS]; /* for the reference: the rounded inputs as floats; NULL: none */
    void *stream[LAB_STREAMS]; /* cudaStream_t; only the work in the first one is timed, except with LAB_HOST_CLOCK */
    void *scratch;             /* device memory for libraries */
    int64_t scratch_bytes;
    int parameter;       /* of the variant */
    int multiprocessors; /* of the device, 0 on the CPU */
    int capability;      /* 90 for 9.0 */
    double clock_hz;     /* of the multiprocessors, read before the run; 0: unknown */
} gc_lab_run;

/* GPU variant: queues the work and returns the cudaError_t, 0 for success, or LAB_CANNOT. CPU variant: does the work
 * and returns 0. */
typedef int (*gc_lab_launch)(const gc_lab_run *run);

enum { LAB_CANNOT = -1 }; /* this device lacks a feature that the variant needs */

typedef struct gc_lab_facts {
    int registers, local_bytes; /* per thread */
    int shared_bytes, threads;  /* per block */
    int blocks;                 /* resident per multiprocessor */
} gc_lab_facts;

/* ---- Variants, sizes, effects ------------------------------------------------------------------------------------ */

typedef enum gc_lab_where { LAB_CPU, LAB_GPU } gc_lab_where;

typedef enum gc_lab_unit { LAB_FP32, LAB_FP64, LAB_TENSOR_16, LAB_TENSOR_TF32 } gc_lab_unit;

enum {                     /* flags of a variant */
       LAB_RACES = 1,      /* has an intended race: the result is shown, not checked */
       LAB_HOST_CLOCK = 2, /* timed by the host's clock until all streams are idle */
       LAB_ONCE = 4,       /* run once, without a cold run: its figure() is the result */
       LAB_LIBRARY = 8,    /* calls kernels of a library */
       LAB_ON_DEVICE = 16, /* its outputs are in buffer[], although it has host memory */
       LAB_NO_BANDS = 32   /* its buffers have no guard bands, so that a memory checker sees their ends */
};

enum {                /* uses of a size */
       LAB_CHECK = 1, /* every element is compared */
       LAB_QUICK = 2, /* also under a sanitizer, so it must be small */
       LAB_GPU_TIME = 4,
       LAB_CPU_TIME = 8,
       LAB_SLOW_TIME = 16, /* for variants that show a slow method */
       LAB_MIDDLE_TIME = 32
};

typedef struct gc_lab_size {
    int64_t value[LAB_DIMENSIONS];
    unsigned use;
} gc_lab_size;

typedef struct gc_lab_cost {
    double bytes, operations; /* lower bounds of the computation: bytes moved, operations done */
    double written;           /* of the bytes; 0: half of them */
} gc_lab_cost;

typedef struct gc_lab_variant {
    const char *name;
    const char *changed; /* the difference from the variant before it */
    const char *limit;   /* what limits its speed, with the arithmetic, and the next idea; or NULL */
    gc_lab_where where;
    gc_lab_launch launch;  /* NULL: not in this build */
    const char *code;      /* name of the launcher or function in the sources, from which its code is shown */
    gc_lab_launch prepare; /* runs before, untimed: constant memory, kernel attributes; or NULL */
    int parameter;
    gc_lab_type input, output; /* of the float buffers; LAB_AS_IS */
    gc_lab_memory memory;
    gc_lab_unit unit;
    double tolerance;   /* relative RMS error; the peak error may be 8 times as large. 0: equal bits */
    unsigned flags, at; /* at: uses of the sizes that it is timed at; 0: LAB_CPU_TIME or LAB_GPU_TIME */
    const char *course; /* the course's figure and its hardware, or NULL */
    const char *needs;  /* the missing feature, as text, for LAB_CANNOT */
    double (*figure)(const gc_lab_run *run); /* its own measurement, from host[]; NULL: none */
    const char *figure_unit;
    void (*describe)(const gc_lab_run *run, char *text, size_t room); /* describes its outputs, from host[]; or NULL */
    int (*facts)(const gc_lab_run *run, gc_lab_facts *facts); /* registers and occupancy of its kernel; or NULL */
} gc_lab_variant;

/* A condition on the measured times: `slower` takes at least `ratio` times as long as `faster` (or its figure is that
 * much larger). With `agree` set the two times differ at most by that factor. With `slower` NULL, `faster` reaches that
 * share of its peak rate. */
typedef struct gc_lab_effect {
    const char *what, *slower, *faster;
    double ratio;
    int agree;
} gc_lab_effect;

typedef struct gc_lab_module {
    const char *name, *title;
    const char *course; /* the courses that teach it, with chapters */
    const char *idea;   /* for a student: paragraphs separated by blank lines */
    const char *see, *next;
    const char *dimension[LAB_DIMENSIONS]; /* names of the dimensions of a size */
    const gc_lab_size *sizes;
    int size_count;
    int (*buffers)(const int64_t *size, gc_lab_buffer *buffer); /* fills up to LAB_BUFFERS, returns their number */
    gc_lab_cost (*cost)(const int64_t *size, const gc_lab_variant *variant);
    double (*reference)(const gc_lab_run *run, int buffer, int64_t index); /* one element of an output, in double */
    const gc_lab_variant *variants;
    int variant_count;
    const gc_lab_effect *effects;
    int effect_count;
} gc_lab_module;

#define LAB_LENGTH(array) ((int)(sizeof(array) / sizeof *(array)))

/* Initialises the tables of a module that has arrays of these names. */
#define LAB_TABLES                                                                                                     \
    .sizes = sizes, .size_count = LAB_LENGTH(sizes), .variants = variants, .variant_count = LAB_LENGTH(variants),      \
    .effects = effects, .effect_count = LAB_LENGTH(effects)

/* LAB_LAUNCHER declares a launcher of the .cu file. LAB_ON_GPU is its address, or NULL in a build without CUDA. */
#ifdef __cplusplus
#define LAB_FROM_C extern "C"
#else
#define LAB_FROM_C
#endif
#define LAB_LAUNCHER(name) LAB_FROM_C int name(const gc_lab_run *run)
#define LAB_FACTS(name) LAB_FROM_C int name(const gc_lab_run *run, gc_lab_facts *facts)
#ifdef GPUCONV_WITH_CUDA
#define LAB_ON_GPU(name) (name)
#else
#define LAB_ON_GPU(name) NULL
#endif
#ifdef GPUCONV_WITH_HOPPER /* the build has code for sm_90a */
#define LAB_ON_HOPPER(name) (name)
#else
#define LAB_ON_HOPPER(name) NULL
#endif

/* Set `launch` and `code` of a variant. */
#define LAB_RUNS(function) .launch = (function), .code = #function
#define LAB_RUNS_ON_GPU(launcher) .launch = LAB_ON_GPU(launcher), .code = #launcher
#define LAB_RUNS_ON_HOPPER(launcher) .launch = LAB_ON_HOPPER(launcher), .code = #launcher

/* ---- cuBLAS, as a reference for speed ---------------------------------------------------------------------------- */

typedef enum gc_lab_blas {
    LAB_BLAS_PEDANTIC, /* fp32 as written */
    LAB_BLAS_DEFAULT,
    LAB_BLAS_TF32,
    LAB_BLAS_F16, /* fp16 inputs, fp32 output and sums */
    LAB_BLAS_BF16
} gc_lab_blas;

/* Compute c = a b, row-major, of size m x n x k, on stream[0]. With `halves` set, each of two streams computes half of
 * the rows with its own handle. The Lt form uses cuBLASLt with a workspace and the algorithm that its heuristic
 * chooses. Return a cudaError_t, or LAB_CANNOT if cuBLAS is not available. */
int gc_lab_blas_multiply(const gc_lab_run *run, gc_lab_blas mode, const void *a, const void *b, float *c, int halves);
int gc_lab_blas_lt(const gc_lab_run *run, gc_lab_blas mode, const void *a, const void *b, float *c);

#ifdef __cplusplus
}
#endif

#endif
