/*
 * What a module of the lab is: one lesson of a CUDA course, as a ladder of variants of one computation.
 *
 * A module is kernels/course/<module>.c - the idea, the descriptor below, the reference, the variants on the CPU - and
 * kernels/course/<module>.cu - the variants on the GPU - and a line in kernels/course/modules.def. Neither allocates,
 * prints nor takes a time: the harness in this folder hands every variant its buffers and streams, poisons its outputs,
 * holds them against the reference, and measures it.
 *
 * Inputs are drawn with a fixed seed and rounded to the type in which a variant takes them, so that the reference sees
 * the very numbers that the variant sees.
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
    LAB_AS_IS = 0, /* for a variant: whatever the module's buffer says */
    LAB_F32,
    LAB_F64,
    LAB_F16,
    LAB_BF16,
    LAB_I32,
    LAB_U8
} gc_lab_type;

typedef enum gc_lab_role {
    LAB_INPUT,
    LAB_OUTPUT,   /* held against the reference */
    LAB_MEASURED, /* written by the variant and read by its figure(): cycles, counts */
    LAB_SCRATCH   /* zeros when a variant starts; what it leaves there counts for nothing */
} gc_lab_role;

typedef struct gc_lab_buffer {
    const char *name;
    gc_lab_role role;
    gc_lab_type type;
    int64_t count;
    double low, high;                                                 /* floats are drawn from here; 0, 0: -1 to 1 */
    void (*fill)(const int64_t *size, void *elements, int64_t count); /* instead of drawing: permutations, indices */
} gc_lab_buffer;

/* Where the host's side of the buffers lies, for variants whose lesson that is. */
typedef enum gc_lab_memory {
    LAB_DEVICE = 0, /* no host side: inputs and outputs lie on the device before and after */
    LAB_PAGEABLE,   /* plain memory; the variant itself copies, from host[] to buffer[] and back */
    LAB_PINNED,
    LAB_PORTABLE, /* pinned for every context */
    LAB_COMBINED, /* pinned, write-combined */
    LAB_MAPPED,   /* buffer[] is the device's address of host[] */
    LAB_MANAGED   /* buffer[] and host[] are the same managed memory */
} gc_lab_memory;

/* ---- A run ------------------------------------------------------------------------------------------------------- */

typedef struct gc_lab_run {
    int64_t size[LAB_DIMENSIONS];
    int64_t count[LAB_BUFFERS];   /* elements */
    void *buffer[LAB_BUFFERS];    /* where the variant computes: device memory, or host memory for one on the CPU */
    void *host[LAB_BUFFERS];      /* the host's side as gc_lab_memory says; afterwards, what the outputs hold */
    const float *in[LAB_BUFFERS]; /* for the reference: inputs as floats, rounded as the variant got them; or NULL */
    void *stream[LAB_STREAMS];    /* cudaStream_t; a launcher that uses another one than the first joins nothing */
    void *scratch;                /* device memory for libraries */
    int64_t scratch_bytes;
    int parameter;       /* the variant's */
    int multiprocessors; /* of the device, 0 on the CPU */
    int capability;      /* 90 for 9.0 */
    double clock_hz;     /* of the multiprocessors, as read just before; 0: unknown */
} gc_lab_run;

/* Queues the work and returns cudaError_t as int, 0 for success; on the CPU does the work and returns 0. */
typedef int (*gc_lab_launch)(const gc_lab_run *run);

enum { LAB_CANNOT = -1 }; /* this device has not what the variant needs */

typedef struct gc_lab_facts {
    int registers, local_bytes, shared_bytes, threads,
        blocks; /* a thread, a thread, a block, a block, a multiprocessor */
} gc_lab_facts;

/* ---- Variants, sizes, effects ------------------------------------------------------------------------------------ */

typedef enum gc_lab_where { LAB_CPU, LAB_GPU } gc_lab_where;

typedef enum gc_lab_unit { LAB_FP32, LAB_FP64, LAB_TENSOR_16, LAB_TENSOR_TF32 } gc_lab_unit;

enum {                     /* flags of a variant */
       LAB_RACES = 1,      /* its race is the lesson: the result is shown, not checked */
       LAB_HOST_CLOCK = 2, /* timed by the host's clock, all streams waited for */
       LAB_ONCE = 4,       /* measured once, not warm against cold: its figure is what counts */
       LAB_LIBRARY = 8,    /* somebody else's kernels */
       LAB_ON_DEVICE = 16  /* its outputs lie on the device, although its memory has a host side */
};

enum {                /* uses of a size */
       LAB_CHECK = 1, /* every element compared */
       LAB_QUICK = 2, /* also under a sanitizer, which is slow */
       LAB_GPU_TIME = 4,
       LAB_CPU_TIME = 8,
       LAB_SLOW_TIME = 16, /* for variants that are slow on purpose */
       LAB_MIDDLE_TIME = 32
};

typedef struct gc_lab_size {
    int64_t value[LAB_DIMENSIONS];
    unsigned use;
} gc_lab_size;

typedef struct gc_lab_cost {
    double bytes, operations; /* the least that the computation must move and do */
} gc_lab_cost;

typedef struct gc_lab_variant {
    const char *name;
    const char *changed; /* what it changed over the one before it */
    gc_lab_where where;
    gc_lab_launch launch;  /* NULL: not in this build */
    gc_lab_launch prepare; /* before it, not timed: constant memory, attributes of a kernel; or NULL */
    int parameter;
    gc_lab_type input, output; /* of the float buffers; LAB_AS_IS */
    gc_lab_memory memory;
    gc_lab_unit unit;
    double tolerance;   /* relative RMS error; the peak may be eight times that. 0: every bit */
    unsigned flags, at; /* at: uses of sizes at which it is timed; 0: LAB_CPU_TIME or LAB_GPU_TIME */
    const char *course; /* the course's figure and its hardware, or NULL */
    const char *needs;  /* what LAB_CANNOT means */
    double (*figure)(const gc_lab_run *run); /* what it measured itself, from host[]; or NULL: its time */
    const char *figure_unit;
    void (*tell)(const gc_lab_run *run, char *text, size_t room); /* what it saw, in words, from host[]; or NULL */
    int (*facts)(const gc_lab_run *run, gc_lab_facts *facts);     /* registers and occupancy of its kernel; or NULL */
} gc_lab_variant;

/* What the numbers must show: `slower` takes at least `ratio` times as long as `faster` (or its figure is that much
 * larger). With `agree` set they must be within that ratio of one another, either way. With `slower` NULL, `faster`
 * reaches that share of its ceiling. */
typedef struct gc_lab_effect {
    const char *what, *slower, *faster;
    double ratio;
    int agree;
} gc_lab_effect;

typedef struct gc_lab_module {
    const char *name, *title;
    const char *course; /* which courses show it, and where */
    const char *idea;   /* for a student: paragraphs parted by empty lines */
    const char *see, *next;
    const char *dimension[LAB_DIMENSIONS]; /* names of a size's numbers */
    const gc_lab_size *sizes;
    int size_count;
    int (*buffers)(const int64_t *size, gc_lab_buffer *buffer); /* fills in LAB_BUFFERS at most, gives their number */
    gc_lab_cost (*cost)(const int64_t *size, const gc_lab_variant *variant);
    double (*reference)(const gc_lab_run *run, int buffer, int64_t index); /* one element of an output, in double */
    const gc_lab_variant *variants;
    int variant_count;
    const gc_lab_effect *effects;
    int effect_count;
} gc_lab_module;

#define LAB_LENGTH(array) ((int)(sizeof(array) / sizeof *(array)))

/* For a module whose tables are named so. */
#define LAB_TABLES                                                                                                     \
    .sizes = sizes, .size_count = LAB_LENGTH(sizes), .variants = variants, .variant_count = LAB_LENGTH(variants),      \
    .effects = effects, .effect_count = LAB_LENGTH(effects)

/* LAB_LAUNCHER declares a launcher of the .cu file, LAB_ON_GPU names it: NULL in a build without CUDA. */
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

/* ---- cuBLAS, for modules that hold themselves against it --------------------------------------------------------- */

typedef enum gc_lab_blas {
    LAB_BLAS_PEDANTIC, /* fp32 as written */
    LAB_BLAS_DEFAULT,
    LAB_BLAS_TF32,
    LAB_BLAS_F16, /* half in, float out, float sums */
    LAB_BLAS_BF16
} gc_lab_blas;

/* c = a b, row-major, m x n x k; on streams[0], or with `halves` set in two handles on two streams, each half of the
 * rows. The Lt form asks for the best algorithm by heuristic, with workspace. cudaError_t as int; LAB_CANNOT: no cuBLAS
 * here. */
int gc_lab_blas_multiply(const gc_lab_run *run, gc_lab_blas mode, const void *a, const void *b, float *c, int halves);
int gc_lab_blas_lt(const gc_lab_run *run, gc_lab_blas mode, const void *a, const void *b, float *c);

#ifdef __cplusplus
}
#endif

#endif
