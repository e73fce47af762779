/* Finding the module that carries messages between ranks. */
#include "ranks.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/module.h"

#include <stdlib.h>

/* What launchers put into the environment: Open MPI's mpirun, PMIx and PMI (Slurm's srun --mpi). */
static bool launched(void) {
    static const char *const signs[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (getenv(signs[i]))
            return true;
    return false;
}

gpuconv_status gc_ranks_open(const gc_ranks **ranks, gpuconv_error *error) {
    static gc_ranks made;
    char why[400];
    *ranks = NULL;
    if (!launched())
        return GPUCONV_OK;
    gc_ranks_start *start;
    *(void **)&start = gc_module_load("gpuconv-mpi", GC_RANKS_START, why, sizeof why);
    if (!start)
        return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED,
                       "started as one of several processes, but this build has no MPI: %s", why);
    if (!start(&made, why, sizeof why))
        return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED, "MPI does not start: %s", why);
    *ranks = &made;
    return GPUCONV_OK;
}
