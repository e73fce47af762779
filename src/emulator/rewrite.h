/* Turns CUDA's own syntax into C++. */
#ifndef GPULAB_EMULATOR_REWRITE_H
#define GPULAB_EMULATOR_REWRITE_H

/* Returns the source with
 *
 *   kernel<<<blocks, threads, bytes, stream>>>(arguments)    as a call of gce::launch
 *   extern __shared__ float tile[];                          as a pointer to the dynamic shared memory
 *
 * and with the same lines. The caller frees it. NULL without memory. */
char *gc_emulator_rewrite(const char *source);

#endif
