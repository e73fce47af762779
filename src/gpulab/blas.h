/* The end of what lab.h declares of cuBLAS. */
#ifndef GPULAB_BLAS_H
#define GPULAB_BLAS_H

#include "lab.h"

/* Gives handles and libraries back; the next product opens them again. */
void gc_lab_blas_close(void);

#endif
