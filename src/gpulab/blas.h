/* Closes cuBLAS, which lab.h declares the calls of. */
#ifndef GPULAB_BLAS_H
#define GPULAB_BLAS_H

#include "lab.h"

/* Destroys the handles and closes the libraries. The next product opens them again. */
void gc_lab_blas_close(void);

#endif
